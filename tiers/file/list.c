/*
 * Walking the tree, and LIST on top of it.
 *
 * Happy path: the folder that the prefix names is read, entries go out one by one, folders below it
 * in turn. LIST gathers them in batches of bounded size on the worker, which waits while the loop
 * hands one to on_entry: a slow caller slows the walk, memory stays bounded. Names that are no
 * keys, symlinks and special files are not ours and are passed over. What vanishes during the walk
 * is passed over as well.
 */
#include "tiers/file/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the walk ---- */

struct walker {
    const struct file_walk *walk;
    size_t filter; /* entries must begin with this many bytes of the prefix */
    char path[WT_KEY_SIZE];
};

static int walk_folder(struct walker *w, int dirfd, size_t len);

static int emit(struct walker *w, const struct stat *st) {
    size_t tmp = strlen(FILE_TMP);
    struct wt_entry entry = {
        .key = w->path,
        .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
        .mtime = st->st_mtim.tv_sec,
        .unpublished = strncmp(w->path, FILE_TMP, tmp) == 0 && w->path[tmp] == '/',
    };
    return w->walk->each(w->walk->arg, &entry);
}

/* path[0, len) is the entry's whole name. A folder becomes a deeper walk, or "name/" when shallow.
 */
static int visit_folder(struct walker *w, int dirfd, const char *name, size_t len,
                        const struct stat *st) {
    if (len + 2 > sizeof w->path || strcmp(w->path, FILE_TMP) == 0)
        return 0; /* nothing below can be a key; the temporaries are walked apart */
    w->path[len] = '/';
    w->path[len + 1] = '\0';
    if (w->walk->shallow)
        return emit(w, st);
    int fd = file_open_folder(dirfd, name);
    if (fd < 0)
        return errno == ENOENT || errno == ELOOP || errno == ENOTDIR ? 0 : -errno;
    return walk_folder(w, fd, len + 1);
}

static int visit(struct walker *w, int dirfd, const char *name, size_t len) {
    size_t n = strlen(name);
    if (len + n >= sizeof w->path || wt_key_check(name, NULL) < 0)
        return 0;
    memcpy(w->path + len, name, n + 1);
    size_t compare = len + n < w->filter ? len + n : w->filter;
    if (strncmp(w->path, w->walk->prefix, compare) != 0 || compare < w->filter)
        return 0;
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISDIR(st.st_mode))
        return visit_folder(w, dirfd, name, len + n, &st);
    return S_ISREG(st.st_mode) ? emit(w, &st) : 0;
}

/* Takes dirfd over; path[0, len) is the folder's name with its '/'. */
static int walk_folder(struct walker *w, int dirfd, size_t len) {
    DIR *dir = fdopendir(dirfd);
    if (!dir) {
        int why = errno;
        close(dirfd);
        return -why;
    }
    int rc = 0;
    while (rc == 0) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry) {
            rc = -errno;
            break;
        }
        if (w->walk->stopped && w->walk->stopped(w->walk->arg))
            rc = -ECANCELED;
        else
            rc = visit(w, dirfd, entry->d_name, len);
    }
    closedir(dir);
    return rc;
}

/* Walks the folder path[0, len), "" for the root. */
static int walk_from(struct walker *w, int dirfd, size_t len) {
    int fd;
    if (len) {
        w->path[len - 1] = '\0';
        fd = file_open_folder(dirfd, w->path);
        w->path[len - 1] = '/';
    } else {
        fd = file_open_folder(dirfd, ".");
    }
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
    return walk_folder(w, fd, len);
}

int file_walk(int dirfd, const struct file_walk *walk) {
    struct walker w = {.walk = walk};
    size_t len = strlen(walk->prefix);
    if (len + 2 > sizeof w.path)
        return -EINVAL;
    memcpy(w.path, walk->prefix, len + 1);
    if (walk->shallow) {
        if (len && w.path[len - 1] != '/')
            w.path[len++] = '/';
        return walk_from(&w, dirfd, len);
    }
    w.filter = len;
    const char *slash = strrchr(walk->prefix, '/');
    int rc = walk_from(&w, dirfd, slash ? (size_t)(slash - walk->prefix) + 1 : 0);
    if (rc || *walk->prefix)
        return rc;
    struct walker tmp = {.walk = walk, .path = FILE_TMP "/"};
    return walk_from(&tmp, dirfd, strlen(tmp.path));
}

/* ---- LIST ---- */

enum { BATCH_ENTRIES = 512, BATCH_TEXT = 64 << 10 };

struct file_batch {
    size_t n, text_len;
    int rc; /* what on_entry gave; written by the loop while the worker waits */
    struct wt_entry entry[BATCH_ENTRIES];
    char text[BATCH_TEXT];
};

void file_batch_free(struct file_batch *batch) {
    free(batch);
}

void file_list_progress(struct wt_job *base) {
    struct file_job *job = (struct file_job *)base;
    struct file_batch *batch = job->batch;
    if (job->req)
        wt_req_alive(job->req);
    int rc = batch->rc;
    for (size_t i = 0; i < batch->n && rc == 0 && job->req; i++)
        rc = job->req->on_entry(job->req, &batch->entry[i]);
    /* on_entry may cancel the request, which takes it from the job: the batch is then the worker's
     * alone. */
    if (job->req)
        batch->rc = rc;
}

/* 0: go on; positive: end. */
static int flush(struct file_job *job) {
    struct file_batch *batch = job->batch;
    if (batch->n == 0)
        return 0;
    if (!wt_job_progress(&job->job))
        return -ECANCELED;
    batch->n = batch->text_len = 0;
    return batch->rc ? 1 : 0;
}

static int gather(void *arg, const struct wt_entry *entry) {
    struct file_job *job = arg;
    struct file_batch *batch = job->batch;
    size_t len = strlen(entry->key) + 1;
    if (batch->n == BATCH_ENTRIES || batch->text_len + len > BATCH_TEXT) {
        int rc = flush(job);
        if (rc)
            return rc;
    }
    char *key = batch->text + batch->text_len;
    memcpy(key, entry->key, len);
    batch->text_len += len;
    batch->entry[batch->n] = *entry;
    batch->entry[batch->n++].key = key;
    return 0;
}

static bool stopped(void *arg) {
    return wt_job_stopped(&((struct file_job *)arg)->job);
}

int file_run_list(struct file_job *job, const struct file_dir *dir) {
    job->batch = calloc(1, sizeof *job->batch);
    if (!job->batch)
        return wt_err_set(&job->err, WT_ENOMEM, "out of memory for a list");
    struct file_walk walk = {
        .prefix = job->key,
        .shallow = (job->flags & WT_LIST_SHALLOW) != 0,
        .stopped = stopped,
        .each = gather,
        .arg = job,
    };
    int rc = file_walk(dir->fd, &walk);
    if (rc == 0)
        rc = flush(job);
    if (rc == -ECANCELED)
        return WT_ECANCELED;
    if (rc < 0)
        return wt_err_sys(&job->err, -rc, "list");
    return job->batch->rc;
}
