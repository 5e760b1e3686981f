/*
 * PUT_* and REMOVE.
 *
 * Happy path: OPEN reserves room and makes a temporary below .wafertier.tmp/ (its blocks allocated,
 * so that a full disk shows now), WRITE fills it, COMMIT syncs it, renames it to its place and
 * syncs the folder. tmpfs needs no sync. Failures: a put that ends in any other way unlinks its
 * temporary and gives the room back; a process that dies leaves the temporary, which LIST shows as
 * unpublished. A commit abandoned before its rename undoes itself; inside the rename its outcome is
 * unknown.
 */
#include "tiers/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- life ---- */

struct file_put *file_put_ref(struct file_put *put) {
    atomic_fetch_add(&put->refs, 1);
    return put;
}

void file_put_unref(struct file_put *put) {
    if (!put || atomic_fetch_sub(&put->refs, 1) != 1)
        return;
    if (put->fd >= 0)
        close(put->fd);
    if (put->reserved)
        file_unreserve(put->root, put->reserved);
    wt_put_fini(&put->head);
    file_root_unref(put->root);
    free(put);
}

static void tmp_path(const struct file_put *put, char out[160]) {
    snprintf(out, 160, FILE_TMP "/%s", put->tmp);
}

void file_put_undo(struct file_put *put, const struct file_dir *dir) {
    char tmp[160];
    tmp_path(put, tmp);
    unlinkat(dir->fd, tmp, 0); /* failing that, it is an orphan that gc finds */
}

/* ---- open ---- */

static bool below_tmp(const char *key) {
    size_t n = strlen(FILE_TMP);
    return strncmp(key, FILE_TMP, n) == 0 && (key[n] == '/' || key[n] == '\0');
}

static int check_target(struct file_job *job, const struct file_dir *dir) {
    if (below_tmp(job->key))
        return wt_err_set(&job->err, WT_EINVAL, FILE_TMP " is for temporaries; take another key");
    struct stat st;
    if (fstatat(dir->fd, job->key, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* whatever is wrong, making it will tell */
    if (S_ISDIR(st.st_mode))
        return wt_err_set(&job->err, WT_EEXISTS, "there is a folder of this name");
    if (!(job->flags & WT_PUT_REPLACE))
        return wt_err_set(&job->err, WT_EEXISTS, "object exists already");
    return 0;
}

static int create(int dirfd, const char *path) {
    return openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
}

static int make_tmp(struct file_job *job, struct file_put *put, const struct file_dir *dir) {
    pthread_mutex_lock(&put->root->lock);
    unsigned long long n = put->root->counter++;
    pthread_mutex_unlock(&put->root->lock);
    snprintf(put->tmp, sizeof put->tmp, "%s%llu", put->root->instance, n);
    char tmp[160];
    tmp_path(put, tmp);
    put->fd = create(dir->fd, tmp);
    if (put->fd < 0 && errno == ENOENT) { /* the first put into this tier */
        if (mkdirat(dir->fd, FILE_TMP, 0755) < 0 && errno != EEXIST)
            return wt_err_sys(&job->err, errno, "make " FILE_TMP);
        put->fd = create(dir->fd, tmp);
    }
    if (put->fd < 0)
        return wt_err_sys(&job->err, errno, "make %s", tmp);
    /* Not posix_fallocate: where the file system cannot, glibc would write every block instead. */
    if (put->head.size && fallocate(put->fd, 0, 0, (off_t)put->head.size) < 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        return errno == EFBIG ? wt_err_set(&job->err, WT_ERANGE, "too large for its file system")
                              : wt_err_sys(&job->err, errno, "allocate %llu bytes",
                                           (unsigned long long)put->head.size);
    return 0;
}

static struct file_put *new_put(struct file_job *job) {
    struct file_put *put = calloc(1, sizeof *put);
    int rc = put ? wt_put_init(&put->head, job->key, job->size, job->flags) : WT_ENOMEM;
    if (rc < 0) {
        wt_err_set(&job->err, rc, "a put of %llu bytes: %s", (unsigned long long)job->size,
                   wt_err_text(rc));
        free(put);
        return NULL;
    }
    put->refs = 1;
    put->fd = -1;
    put->root = file_root_ref(job->root);
    return put;
}

int file_run_put_open(struct file_job *job, const struct file_dir *dir) {
    if (job->size > INT64_MAX)
        return wt_err_set(&job->err, WT_ERANGE, "too large");
    int rc = check_target(job, dir);
    if (rc < 0)
        return rc;
    struct file_put *put = new_put(job);
    if (!put)
        return job->err.code;
    rc = file_reserve(job, dir, job->size);
    if (rc == 0) {
        put->reserved = job->size;
        rc = make_tmp(job, put, dir);
        if (rc < 0)
            file_put_undo(put, dir);
    }
    if (rc < 0)
        file_put_unref(put);
    else
        job->opened = put;
    return rc;
}

/* ---- write ---- */

static int write_all(struct file_job *job, const char *data, size_t len, uint64_t off) {
    while (len) {
        if (wt_job_stopped(&job->job))
            return WT_ECANCELED;
        ssize_t n = pwrite(job->put->fd, data, len, (off_t)off);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return wt_err_sys(&job->err, n < 0 ? errno : EIO, "write at %llu",
                              (unsigned long long)off);
        data += n;
        len -= (size_t)n;
        off += (uint64_t)n;
    }
    return 0;
}

static int write_bounced(struct file_job *job) {
    char *scratch = wt_job_scratch(&job->job);
    if (!scratch)
        return wt_err_set(&job->err, WT_ENOMEM, "out of memory for a bounce buffer");
    for (size_t done = 0; done < job->len;) {
        size_t n = job->len - done < WT_POOL_SCRATCH ? job->len - done : WT_POOL_SCRATCH;
        if (!wt_job_enter(&job->job))
            return WT_ECANCELED;
        memcpy(scratch, (const char *)job->src + done, n);
        wt_job_leave(&job->job);
        int rc = write_all(job, scratch, n, job->off + done);
        if (rc < 0)
            return rc;
        done += n;
    }
    return 0;
}

int file_run_put_write(struct file_job *job, const struct file_dir *dir) {
    (void)dir; /* the temporary is open */
    return job->direct ? write_all(job, job->src, job->len, job->off) : write_bounced(job);
}

/* ---- commit and abort ---- */

static int sync_folder(int dirfd, const char *name) {
    int fd = file_open_folder(dirfd, name);
    if (fd < 0)
        return -1;
    int rc = fsync(fd);
    int why = errno;
    close(fd);
    errno = why;
    return rc;
}

/* Makes the folders above key; each new one's own folder is synced. */
static int make_folders(int dirfd, const char *key, bool sync) {
    char path[WT_KEY_SIZE];
    snprintf(path, sizeof path, "%s", key);
    char above[WT_KEY_SIZE] = ".";
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdirat(dirfd, path, 0755) == 0) {
            if (sync && sync_folder(dirfd, above) < 0)
                return -1;
        } else if (errno != EEXIST) {
            return -1;
        }
        memcpy(above, path, strlen(path) + 1);
        *slash = '/';
    }
    return 0;
}

static void folder_of(const char *key, char out[WT_KEY_SIZE]) {
    const char *slash = strrchr(key, '/');
    snprintf(out, WT_KEY_SIZE, "%.*s", slash ? (int)(slash - key) : 1, slash ? key : ".");
}

/* No file system may let it replace what is there: rename where it can promise that, a hard link
 * elsewhere. */
static int publish_new(int dirfd, const char *tmp, const char *key) {
    if (renameat2(dirfd, tmp, dirfd, key, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        return -1;
    if (linkat(dirfd, tmp, dirfd, key, 0) < 0)
        return -1;
    unlinkat(dirfd, tmp, 0);
    return 0;
}

static uint64_t size_of(int dirfd, const char *key) {
    struct stat st;
    return fstatat(dirfd, key, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_size : 0;
}

/* The rename itself; `replaced` gets the size of what was there. */
static int publish_once(struct file_job *job, const struct file_dir *dir, uint64_t *replaced) {
    char tmp[160];
    tmp_path(job->put, tmp);
    bool replace = (job->put->head.flags & WT_PUT_REPLACE) != 0;
    *replaced = replace ? size_of(dir->fd, job->key) : 0;
    return replace ? renameat(dir->fd, tmp, dir->fd, job->key)
                   : publish_new(dir->fd, tmp, job->key);
}

/* Its folders are made when the rename misses them: on a network mount each costs a round trip. */
static int publish(struct file_job *job, const struct file_dir *dir, bool sync,
                   uint64_t *replaced) {
    if (wt_job_stopped(&job->job)) /* too late: nobody waits for it, and nobody shall see it */
        return WT_ECANCELED;
    int rc = publish_once(job, dir, replaced);
    if (rc < 0 && errno == ENOENT) {
        if (make_folders(dir->fd, job->key, sync) < 0)
            return wt_err_sys(&job->err, errno, "make its folders");
        if (wt_job_stopped(&job->job))
            return WT_ECANCELED;
        rc = publish_once(job, dir, replaced);
    }
    return rc < 0 ? wt_err_sys(&job->err, errno, "publish") : 0;
}

static int commit(struct file_job *job, const struct file_dir *dir, enum file_kind kind) {
    struct file_put *put = job->put;
    bool sync = kind != FILE_TMPFS;
    if (sync && fsync(put->fd) < 0)
        return wt_err_sys(&job->err, errno, "sync");
    uint64_t replaced = 0;
    int rc = publish(job, dir, sync, &replaced);
    if (rc < 0)
        return rc;
    char folder[WT_KEY_SIZE];
    folder_of(job->key, folder);
    if (sync && sync_folder(dir->fd, folder) < 0) {
        int why = errno;
        if (!(put->head.flags & WT_PUT_REPLACE))
            unlinkat(dir->fd, job->key, 0);
        return wt_err_sys(&job->err, why, "sync its folder");
    }
    file_used_changed(put->root, put->head.size, replaced, put->reserved);
    put->reserved = 0;
    if (kind == FILE_NETWORK)
        posix_fadvise(put->fd, 0, 0, POSIX_FADV_DONTNEED); /* the reader is another machine */
    return 0;
}

int file_run_put_commit(struct file_job *job, const struct file_dir *dir) {
    int rc = commit(job, dir, file_root_kind(job->root));
    if (rc < 0)
        file_put_undo(job->put, dir);
    return rc;
}

int file_run_put_abort(struct file_job *job, const struct file_dir *dir) {
    file_put_undo(job->put, dir);
    return 0;
}

int file_run_put_refuse(struct file_job *job, const struct file_dir *dir) {
    file_put_undo(job->put, dir);
    return job->err.code;
}

/* ---- remove ---- */

int file_run_remove(struct file_job *job, const struct file_dir *dir) {
    struct stat st;
    if (fstatat(dir->fd, job->key, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return file_fail(job, errno, "stat");
    if (S_ISDIR(st.st_mode))
        return wt_err_set(&job->err, WT_EMISSING, "no such object (it is a folder)");
    if (unlinkat(dir->fd, job->key, 0) < 0)
        return file_fail(job, errno, "remove");
    file_used_changed(job->root, 0, (uint64_t)st.st_size, 0);
    return 0;
}
