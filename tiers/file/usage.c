/*
 * How full the tier is: bytes of all objects and temporaries, counted by one walk at the first
 * need, then kept by this process's commits and removes; and what may be used of it, as configured
 * or as the file system says.
 *
 * The walk is a job of its own; who needs its result waits for a while. Commits and removes beside
 * it make it count again. Failures: a walk that takes long gives WT_EBUSY meanwhile; one that fails
 * is its askers' error, and the next need begins it anew.
 */
#include "tiers/file/file.h"

#include "core/bytes.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_S = 5, RECOUNTS = 3 };

struct count {
    struct file_root *root;
    uint64_t bytes;
};

static int count_one(void *arg, const struct wt_entry *entry) {
    struct count *c = arg;
    /* Our own puts under way are in `reserved`. */
    size_t tmp = strlen(FILE_TMP) + 1;
    if (entry->unpublished &&
        strncmp(entry->key + tmp, c->root->instance, strlen(c->root->instance)) == 0)
        return 0;
    c->bytes += entry->size;
    return 0;
}

static bool closing(void *arg) {
    struct count *c = arg;
    return atomic_load(&c->root->closing);
}

static int count_all(struct file_root *root, const struct file_dir *dir, struct wt_err *err,
                     uint64_t *bytes) {
    struct count c = {.root = root};
    struct file_walk walk = {.prefix = "", .stopped = closing, .each = count_one, .arg = &c};
    int rc = file_walk(dir->fd, &walk);
    if (rc < 0)
        return wt_err_sys(err, -rc, "count what is in it");
    *bytes = c.bytes;
    return 0;
}

static uint64_t changes_of(struct file_root *root) {
    pthread_mutex_lock(&root->lock);
    uint64_t changes = root->changes;
    pthread_mutex_unlock(&root->lock);
    return changes;
}

static void count_ended(struct file_root *root, enum file_scan how, uint64_t bytes,
                        const struct wt_err *err) {
    pthread_mutex_lock(&root->lock);
    root->scan = how;
    root->used = bytes;
    root->scan_err = *err;
    pthread_cond_broadcast(&root->scanned);
    pthread_mutex_unlock(&root->lock);
}

void file_count_failed(struct file_root *root, const struct wt_err *err) {
    count_ended(root, SCAN_FAILED, 0, err);
}

bool file_count_begin(struct file_root *root) {
    pthread_mutex_lock(&root->lock);
    bool begin = root->scan == SCAN_NEVER || root->scan == SCAN_FAILED;
    if (begin)
        root->scan = SCAN_RUNS;
    pthread_mutex_unlock(&root->lock);
    return begin;
}

int file_run_count(struct file_job *job, const struct file_dir *dir) {
    struct file_root *root = job->root;
    uint64_t bytes = 0, before;
    int rc, left = RECOUNTS;
    do {
        before = changes_of(root);
        rc = count_all(root, dir, &job->err, &bytes);
    } while (rc == 0 && before != changes_of(root) && --left > 0);
    if (rc == 0)
        count_ended(root, SCAN_DONE, bytes, &job->err);
    return rc;
}

/* With the lock: `used` is known, or an error. */
static int wait_counted(struct file_job *job) {
    struct file_root *root = job->root;
    for (int i = 0; root->scan == SCAN_RUNS && i < WAIT_S * 10; i++) {
        if (wt_job_stopped(&job->job))
            return WT_ECANCELED;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += 100000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&root->scanned, &root->lock, &until);
    }
    if (root->scan == SCAN_DONE)
        return 0;
    if (root->scan == SCAN_FAILED && root->scan_err.code) {
        job->err = root->scan_err;
        return job->err.code;
    }
    return wt_err_set(&job->err, WT_EBUSY, "still counting what is in it; try again later");
}

/* Comes back with root->lock held when it is 0: `used` is known then. */
static int lock_counted(struct file_job *job) {
    pthread_mutex_lock(&job->root->lock);
    int rc = wait_counted(job);
    if (rc < 0)
        pthread_mutex_unlock(&job->root->lock);
    return rc;
}

/* Room that the file system has for us; UINT64_MAX where it does not know. */
static int disk_room(struct file_job *job, const struct file_dir *dir, uint64_t *room) {
    struct statvfs fs;
    if (fstatvfs(dir->fd, &fs) < 0)
        return file_fail(job, errno, "statvfs");
    *room = fs.f_blocks ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
    return 0;
}

static int full(struct file_job *job, uint64_t size, uint64_t used, uint64_t reserved,
                uint64_t capacity) {
    char s[WT_SIZE_TEXT], u[WT_SIZE_TEXT], r[WT_SIZE_TEXT], c[WT_SIZE_TEXT];
    return wt_err_set(&job->err, WT_EFULL,
                      "tier is full: %s do not fit beside %s used and %s under way in its %s",
                      wt_size_format(size, s), wt_size_format(used, u), wt_size_format(reserved, r),
                      wt_size_format(capacity, c));
}

int file_reserve(struct file_job *job, const struct file_dir *dir, uint64_t size) {
    struct file_root *root = job->root;
    uint64_t room, capacity = atomic_load(&root->capacity);
    int rc = disk_room(job, dir, &room);
    if (rc < 0)
        return rc;
    if (size > room) {
        char s[WT_SIZE_TEXT], r[WT_SIZE_TEXT];
        return wt_err_set(&job->err, WT_EFULL, "file system is full: %s do not fit in the %s left",
                          wt_size_format(size, s), wt_size_format(room, r));
    }
    if (capacity == 0) {
        pthread_mutex_lock(&root->lock);
    } else if ((rc = lock_counted(job)) < 0) {
        return rc;
    } else {
        uint64_t taken = root->used + root->reserved;
        if (taken > capacity || size > capacity - taken)
            rc = full(job, size, root->used, root->reserved, capacity);
    }
    if (rc == 0)
        root->reserved += size;
    pthread_mutex_unlock(&root->lock);
    return rc;
}

void file_unreserve(struct file_root *root, uint64_t size) {
    pthread_mutex_lock(&root->lock);
    root->reserved -= size;
    pthread_mutex_unlock(&root->lock);
}

void file_used_changed(struct file_root *root, uint64_t added, uint64_t taken, uint64_t reserved) {
    pthread_mutex_lock(&root->lock);
    root->changes++;
    root->reserved -= reserved;
    /* Others may have put or removed behind our back: never below nothing. */
    root->used += added;
    root->used = root->used > taken ? root->used - taken : 0;
    pthread_mutex_unlock(&root->lock);
}

int file_run_usage(struct file_job *job, const struct file_dir *dir) {
    uint64_t room;
    int rc = disk_room(job, dir, &room);
    if (rc == 0)
        rc = lock_counted(job);
    if (rc < 0)
        return rc;
    struct file_root *root = job->root;
    job->used = root->used;
    job->limit = atomic_load(&root->capacity);
    pthread_mutex_unlock(&root->lock);
    if (job->limit == 0 && room != UINT64_MAX)
        job->limit = job->used + room;
    return 0;
}

int file_run_probe(struct file_job *job, const struct file_dir *dir) {
    (void)dir;
    uint64_t room;
    /* A fresh look by path: a descriptor on a mount that died stays dead. */
    int rc = file_root_check(job->root, &job->err);
    struct file_dir *fresh = rc < 0 ? NULL : file_root_dir(job->root, &job->err);
    if (!fresh)
        return job->err.code;
    rc = disk_room(job, fresh, &room);
    file_dir_unref(fresh);
    return rc;
}
