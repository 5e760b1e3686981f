/*
 * The file: backend, shared by its parts.
 *
 *   file.c    requests <-> jobs on the pool; open, cancel, close
 *   root.c    the root folder: what kind of file system, is it (still) there, the descriptor on it
 *   get.c     STAT, GET      put.c   PUT_*, REMOVE      list.c   LIST and walking
 *   usage.c   capacity       lock.c  LOCK, UNLOCK       maps.c   MAP and the kept mappings
 *   lease.c   what makes mapping safe
 *
 * A job owns copies of all it needs, so that it can be abandoned when a mount hangs; but for the
 * caller's buffers, which it touches directly on file systems that do not hang (`direct`: then the
 * request waits for the call), and elsewhere through a bounce buffer, between wt_job_enter and
 * wt_job_leave.
 */
#ifndef WT_TIERS_FILE_FILE_H
#define WT_TIERS_FILE_FILE_H

#include "tiers/backend.h"
#include "tiers/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/types.h>

extern const struct wt_backend wt_backend_file;

#define FILE_TMP ".wafertier.tmp"

enum file_kind { FILE_NETWORK, FILE_LOCAL, FILE_TMPFS };

/* A descriptor on the root folder; jobs hold references, a remount replaces it. */
struct file_dir {
    atomic_uint refs;
    int fd; /* O_PATH */
    dev_t dev;
    ino_t ino;
};

struct file_lock { /* held; gone with its descriptor */
    char key[WT_KEY_SIZE];
    char owner[128];
    int fd;
    struct file_lock *next;
};

struct file_mapping;
/* SAFE: with a lease; ALWAYS: bare, somebody who truncates a file kills its reader. */
enum file_map { FILE_MAP_SAFE, FILE_MAP_ALWAYS, FILE_MAP_NEVER };

enum file_scan { SCAN_NEVER, SCAN_RUNS, SCAN_DONE, SCAN_FAILED };

/* What a tier and its jobs share; any thread. The last reference frees it. */
struct file_root {
    atomic_uint refs;
    char path[512];
    char instance[64]; /* begins the names of this tier's temporaries */
    bool read_only, bounce;
    bool mount_required; /* a folder of the root file system is not it */
    enum file_map map;
    atomic_bool closing; /* ends a long count */
    _Atomic uint64_t capacity;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t scanned;
    struct file_dir *dir; /* NULL: not there */
    bool seen;            /* it has been there: not made again when it goes */
    enum file_kind kind;
    bool is_tmpfs;
    uint64_t counter;
    uint64_t used, reserved;
    uint64_t changes; /* commits and removes so far: a scan beside them counts again */
    enum file_scan scan;
    struct wt_err scan_err;
    struct file_lock *locks;
    struct file_mapping *mappings;
    size_t n_mappings;
    bool watched; /* a thread looks after their leases */
    pthread_cond_t unwatch;
};

struct file_put {
    struct wt_put head;
    atomic_uint refs;
    struct file_root *root;
    int fd;
    uint64_t
        reserved; /* bytes of the capacity that it holds; its OPEN's and COMMIT's worker only */
    char tmp[96]; /* its name below FILE_TMP */
};

struct file_job {
    struct wt_job job;
    struct wt_tier *tier;
    struct wt_req *req; /* NULL: a background job, or abandoned. Loop only */
    struct file_root *root;
    enum wt_op op;
    int (*run)(struct file_job *job, const struct file_dir *dir);
    bool direct;
    /* copies of the request */
    char key[WT_KEY_SIZE];
    char owner[128];
    uint64_t off, size, ttl_ms;
    void *buf;
    const void *src;
    size_t len;
    unsigned flags;
    struct file_put *put; /* a reference */
    /* results */
    int rc;
    struct wt_err err;
    size_t got;
    uint64_t used, limit;
    struct wt_map *map;
    struct file_put *opened;
    struct file_lock *locked; /* taken, not yet handed over */
    struct file_batch *batch; /* LIST: entries on their way to the loop */
};

/* ---- root.c ---- */
struct file_root *file_root_new(const struct wt_tier_opts *opts, const char *path, bool bounce);
struct file_root *file_root_ref(struct file_root *root);
void file_root_unref(struct file_root *root);
/* Looks for the folder (makes it when it was never there), replaces the descriptor. May block. */
int file_root_check(struct file_root *root, struct wt_err *err);
/* The descriptor; looks for the folder when there is none. NULL: WT_EDOWN and the like in err. */
struct file_dir *file_root_dir(struct file_root *root, struct wt_err *err);
void file_dir_unref(struct file_dir *dir);
/* Something was not found below `dir`: 0, it is just missing; 1, the root is another one now, try
 * again; negative: the root is gone. */
int file_root_moved(struct file_root *root, const struct file_dir *dir, struct wt_err *err);
enum file_kind file_root_kind(struct file_root *root);
unsigned file_root_caps(struct file_root *root);
/* Opens `name` below dir as a folder to read or sync; -1 and errno. */
int file_open_folder(int dirfd, const char *name);

/* ---- the jobs; 0 or a code with job->err set ---- */
int file_run_stat(struct file_job *job, const struct file_dir *dir);
int file_run_get(struct file_job *job, const struct file_dir *dir);
int file_run_map(struct file_job *job, const struct file_dir *dir);
int file_run_put_open(struct file_job *job, const struct file_dir *dir);
int file_run_put_write(struct file_job *job, const struct file_dir *dir);
int file_run_put_commit(struct file_job *job, const struct file_dir *dir);
int file_run_put_abort(struct file_job *job, const struct file_dir *dir);
/* A commit that may not be: undone; job->err says why. */
int file_run_put_refuse(struct file_job *job, const struct file_dir *dir);
int file_run_remove(struct file_job *job, const struct file_dir *dir);
int file_run_list(struct file_job *job, const struct file_dir *dir);
int file_run_usage(struct file_job *job, const struct file_dir *dir);
int file_run_count(struct file_job *job, const struct file_dir *dir);
int file_run_probe(struct file_job *job, const struct file_dir *dir);
int file_run_lock(struct file_job *job, const struct file_dir *dir);
int file_run_unlock(struct file_job *job, const struct file_dir *dir);
int file_run_release_all(struct file_job *job, const struct file_dir *dir);

/* An error from errno; ENOTDIR, ELOOP and EISDIR mean that there is no such object. */
int file_fail(struct file_job *job, int errno_value, const char *what);
/* Opens job->key to read; its state in *st. Only regular files are objects. */
int file_open_object(struct file_job *job, const struct file_dir *dir, struct stat *st, int *fd);

struct file_put *file_put_ref(struct file_put *put);
void file_put_unref(struct file_put *put);
/* Removes the temporary (the room goes with the last reference). May block. */
void file_put_undo(struct file_put *put, const struct file_dir *dir);

/* LIST's batches, on the loop. */
void file_list_progress(struct wt_job *job);
void file_batch_free(struct file_batch *batch);

/* Walks the objects below dirfd. each: non-zero ends the walk and is its result. -errno on failure.
 */
struct file_walk {
    const char *prefix;
    bool shallow;
    bool (*stopped)(void *arg);
    int (*each)(void *arg, const struct wt_entry *entry);
    void *arg;
};
int file_walk(int dirfd, const struct file_walk *walk);

/* usage.c. On the loop: must what is in the tier be counted now? Then the caller starts a job of
 * file_run_count, or says that it failed. */
bool file_count_begin(struct file_root *root);
void file_count_failed(struct file_root *root, const struct wt_err *err);
/* Room for `size` bytes is reserved for the put, or WT_EFULL and the like. */
int file_reserve(struct file_job *job, const struct file_dir *dir, uint64_t size);
void file_unreserve(struct file_root *root, uint64_t size);
/* The book after a commit (added, of which `reserved` were held) or a remove (taken). */
void file_used_changed(struct file_root *root, uint64_t added, uint64_t taken, uint64_t reserved);

/* lease.c: read leases on files that are mapped. */
void file_maps_closing(struct file_root *root); /* ends the watch where there is no mapping */
bool file_leases_possible(void);
bool file_lease_take(int fd);
bool file_lease_breaks(int fd); /* somebody waits to write */
void file_lease_end(int fd);    /* fine where there is none */

void file_lock_keep(struct file_root *root, struct file_lock *lock);
void file_lock_free(struct file_lock *lock);
void file_locks_free(struct file_root *root);

#endif
