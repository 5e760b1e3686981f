/*
 * STAT and GET.
 *
 * Happy path of GET: open, fstat, pread until the range or the object ends. On file systems that do
 * not hang straight into the caller's buffer, on others 256 KiB at a time into the worker's own,
 * copied over while the job is not abandoned. Failures: a read that ends before the size that fstat
 * gave: WT_ECHANGED. An end asked for between two calls: WT_ECANCELED. WT_GET_ONCE: what was read
 * from a network mount leaves the page cache; who reads it next is another machine.
 */
#include "tiers/file/file.h"

#include "core/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { DIRECT_PIECE = 4 << 20 }; /* between two looks at the stop flag */

int file_fail(struct file_job *job, int errno_value, const char *what) {
    if (errno_value == ENOTDIR || errno_value == ELOOP || errno_value == EISDIR ||
        errno_value == ENOENT)
        return wt_err_set(&job->err, WT_EMISSING, "no such object");
    return wt_err_sys(&job->err, errno_value, "%s", what);
}

int file_run_stat(struct file_job *job, const struct file_dir *dir) {
    struct stat st;
    if (fstatat(dir->fd, job->key, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return file_fail(job, errno, "stat");
    if (!S_ISREG(st.st_mode))
        return wt_err_set(&job->err, WT_EMISSING, "no such object (it is not a regular file)");
    job->size = (uint64_t)st.st_size;
    return 0;
}

int file_open_object(struct file_job *job, const struct file_dir *dir, struct stat *st, int *fd) {
    /* O_NONBLOCK: opening a FIFO would wait for its writer. */
    int opened =
        openat(dir->fd, job->key, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (opened < 0)
        return file_fail(job, errno, "open");
    int rc = 0;
    if (fstat(opened, st) < 0)
        rc = file_fail(job, errno, "stat");
    else if (!S_ISREG(st->st_mode))
        rc = wt_err_set(&job->err, WT_EMISSING, "no such object (it is not a regular file)");
    if (rc < 0)
        close(opened);
    else
        *fd = opened;
    return rc;
}

/* One pread, again after a signal. */
static ssize_t read_some(int fd, void *buf, size_t len, uint64_t off) {
    ssize_t n;
    do
        n = pread(fd, buf, len, (off_t)off);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Into the worker's buffer, then into the caller's. Bytes, 0 at the end, or a code. */
static ssize_t piece_bounced(struct file_job *job, int fd, size_t done, size_t want) {
    void *scratch = wt_job_scratch(&job->job);
    if (!scratch)
        return wt_err_set(&job->err, WT_ENOMEM, "out of memory for a bounce buffer");
    size_t len = want < WT_POOL_SCRATCH ? want : WT_POOL_SCRATCH;
    ssize_t n = read_some(fd, scratch, len, job->off + done);
    if (n < 0)
        return file_fail(job, errno, "read");
    if (!wt_job_enter(&job->job))
        return WT_ECANCELED;
    wt_copy((char *)job->buf + done, scratch, (size_t)n);
    wt_job_leave(&job->job);
    return n;
}

static ssize_t piece_direct(struct file_job *job, int fd, size_t done, size_t want) {
    size_t len = want < DIRECT_PIECE ? want : DIRECT_PIECE;
    ssize_t n = read_some(fd, (char *)job->buf + done, len, job->off + done);
    return n < 0 ? file_fail(job, errno, "read") : n;
}

static int read_range(struct file_job *job, int fd, uint64_t size) {
    uint64_t left = job->off < size ? size - job->off : 0;
    size_t want = left < job->len ? (size_t)left : job->len;
    size_t done = 0;
    while (done < want) {
        if (wt_job_stopped(&job->job))
            return WT_ECANCELED;
        ssize_t n = job->direct ? piece_direct(job, fd, done, want - done)
                                : piece_bounced(job, fd, done, want - done);
        if (n < 0)
            return (int)n;
        if (n == 0)
            return wt_err_set(&job->err, WT_ECHANGED, "it ended at %llu bytes, not at %llu",
                              (unsigned long long)(job->off + done), (unsigned long long)size);
        done += (size_t)n;
    }
    job->got = done;
    return 0;
}

int file_run_get(struct file_job *job, const struct file_dir *dir) {
    struct stat st;
    int fd;
    int rc = file_open_object(job, dir, &st, &fd);
    if (rc < 0)
        return rc;
    rc = read_range(job, fd, (uint64_t)st.st_size);
    if (rc == 0 && job->flags & WT_GET_ONCE && file_root_kind(job->root) == FILE_NETWORK)
        posix_fadvise(fd, (off_t)job->off, (off_t)job->got, POSIX_FADV_DONTNEED);
    close(fd);
    return rc;
}
