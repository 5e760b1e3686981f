/*
 * LOCK and UNLOCK: flock(2) on ROOT/<key>; the file says who holds it and until when.
 *
 * Happy path: the file is made, locked, written. The same owner on the same tier renews by writing
 * it anew. The lock goes with its descriptor: at UNLOCK, at the tier's close, at the process's end.
 * Failures: held by another: WT_ELOCKED with the name that stands in the file. A holder that hangs
 * past its time keeps the lock here (the kernel knows that it lives); the message says so. The file
 * itself stays: removing it would let two processes lock two files of one name.
 */
#include "tiers/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

void file_lock_free(struct file_lock *lock) {
    if (!lock)
        return;
    close(lock->fd);
    free(lock);
}

void file_locks_free(struct file_root *root) {
    while (root->locks) {
        struct file_lock *lock = root->locks;
        root->locks = lock->next;
        file_lock_free(lock);
    }
}

/* A worker's business: closing a file of a mount that hangs may hang. */
int file_run_release_all(struct file_job *job, const struct file_dir *dir) {
    (void)dir;
    pthread_mutex_lock(&job->root->lock);
    struct file_lock *locks = job->root->locks;
    job->root->locks = NULL;
    pthread_mutex_unlock(&job->root->lock);
    while (locks) {
        struct file_lock *next = locks->next;
        file_lock_free(locks);
        locks = next;
    }
    return 0;
}

void file_lock_keep(struct file_root *root, struct file_lock *lock) {
    pthread_mutex_lock(&root->lock);
    lock->next = root->locks;
    root->locks = lock;
    pthread_mutex_unlock(&root->lock);
}

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int write_holder(struct file_job *job, int fd) {
    char text[256];
    uint64_t ttl = job->ttl_ms < UINT32_MAX * UINT64_C(1000) ? job->ttl_ms : UINT32_MAX;
    int n =
        snprintf(text, sizeof text, "%llu %s\n", (unsigned long long)(now_ms() + ttl), job->owner);
    if (pwrite(fd, text, (size_t)n, 0) != n || ftruncate(fd, n) < 0)
        return wt_err_sys(&job->err, errno, "write its holder");
    return 0;
}

static int held_by(struct file_job *job, const char *owner) {
    return wt_err_set(&job->err, WT_ELOCKED, "held by %s", owner);
}

/* What the file says; another process may be writing it. */
static int tell_holder(struct file_job *job, int fd) {
    char text[256];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    char *owner;
    unsigned long long until = strtoull(text, &owner, 10);
    if (owner == text || *owner != ' ')
        return held_by(job, "another process");
    uint64_t now = now_ms();
    if (until >= now)
        return held_by(job, owner + 1);
    return wt_err_set(&job->err, WT_ELOCKED,
                      "held by %s, which should have renewed it %llu s ago but still lives",
                      owner + 1, (unsigned long long)(now - until) / 1000);
}

/* With the lock. */
static struct file_lock **find(struct file_root *root, const char *key) {
    struct file_lock **at = &root->locks;
    while (*at && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    return at;
}

/* Ours already: renewed (0) or another owner's. 1: not held here. */
static int renew(struct file_job *job) {
    pthread_mutex_lock(&job->root->lock);
    struct file_lock *lock = *find(job->root, job->key);
    bool same = lock && strcmp(lock->owner, job->owner) == 0;
    char owner[sizeof lock->owner] = "";
    if (lock)
        memcpy(owner, lock->owner, sizeof owner);
    int fd = same ? dup(lock->fd) : -1;
    pthread_mutex_unlock(&job->root->lock);
    if (!lock)
        return 1;
    if (!same)
        return held_by(job, owner);
    if (fd < 0)
        return wt_err_sys(&job->err, errno, "renew");
    int rc = write_holder(job, fd);
    close(fd); /* the lock stays with the other descriptor */
    return rc;
}

/* Is the descriptor still the file of that name? Someone may have removed it before we locked it.
 */
static bool still_named(const struct file_dir *dir, const char *key, int fd) {
    struct stat named, opened;
    return fstatat(dir->fd, key, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &opened) == 0 &&
           named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

static int take(struct file_job *job, const struct file_dir *dir, struct file_lock *lock) {
    lock->fd = openat(dir->fd, job->key, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (lock->fd < 0)
        return wt_err_sys(&job->err, errno, "open the lock's file");
    if (flock(lock->fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? tell_holder(job, lock->fd)
                                    : wt_err_sys(&job->err, errno, "flock");
    if (!still_named(dir, job->key, lock->fd))
        return wt_err_set(&job->err, WT_ELOCKED, "its file was removed meanwhile; try again");
    return write_holder(job, lock->fd);
}

int file_run_lock(struct file_job *job, const struct file_dir *dir) {
    int rc = renew(job);
    if (rc <= 0)
        return rc;
    struct file_lock *lock = calloc(1, sizeof *lock);
    if (!lock)
        return wt_err_set(&job->err, WT_ENOMEM, "out of memory for a lock");
    snprintf(lock->key, sizeof lock->key, "%s", job->key);
    snprintf(lock->owner, sizeof lock->owner, "%s", job->owner);
    rc = take(job, dir, lock);
    if (rc == 0) {
        job->locked = lock; /* kept when the loop gets it, dropped when nobody waits any more */
        return 0;
    }
    if (lock->fd >= 0)
        close(lock->fd);
    free(lock);
    return rc;
}

int file_run_unlock(struct file_job *job, const struct file_dir *dir) {
    (void)dir; /* the descriptor does it, also where the root is gone */
    pthread_mutex_lock(&job->root->lock);
    struct file_lock **at = find(job->root, job->key);
    struct file_lock *lock = *at;
    bool ours = lock && strcmp(lock->owner, job->owner) == 0;
    if (ours)
        *at = lock->next;
    pthread_mutex_unlock(&job->root->lock);
    if (!lock)
        return wt_err_set(&job->err, WT_EMISSING, "this lock is not held");
    if (!ours)
        return wt_err_set(&job->err, WT_ELOCKED, "held by another owner of this process");
    if (ftruncate(lock->fd, 0) < 0)
        wt_err_sys(&job->err, errno, "empty the lock's file"); /* it is released all the same */
    file_lock_free(lock);
    return 0;
}
