/*
 * The root folder of a file: tier.
 *
 * Happy path: found (or made, where its parent exists and it was never there before), its file
 * system recognised once: tmpfs, local, or anything else, which is taken for a network mount that
 * may hang. Failures: gone, unmounted, killed under us: WT_EDOWN; a probe looks again and takes a
 * fresh descriptor, since one on a dead mount stays dead after the mount is back. With
 * mount=required a folder on the root file system is a mount that is missing: down, nothing is
 * made.
 */
#include "tiers/file/file.h"

#include "core/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/vfs.h>
#include <unistd.h>

/* statfs(2) and the kernel's linux/magic.h. Only file systems whose calls always return. */
enum {
    MAGIC_TMPFS = 0x01021994,
    MAGIC_RAMFS = 0x858458f6,
    MAGIC_EXT = 0xef53,
    MAGIC_XFS = 0x58465342,
    MAGIC_BTRFS = 0x9123683e,
    MAGIC_OVERLAY = 0x794c7630,
    MAGIC_F2FS = 0xf2f52010,
    MAGIC_ZFS = 0x2fc12fc1,
};

static enum file_kind kind_of(uint32_t magic) {
    switch (magic) {
    case MAGIC_TMPFS:
    case MAGIC_RAMFS:
        return FILE_TMPFS;
    case MAGIC_EXT:
    case MAGIC_XFS:
    case MAGIC_BTRFS:
    case MAGIC_OVERLAY:
    case MAGIC_F2FS:
    case MAGIC_ZFS:
        return FILE_LOCAL;
    default:
        return FILE_NETWORK;
    }
}

/* ---- life ---- */

struct file_root *file_root_new(const struct wt_tier_opts *opts, const char *path, bool bounce) {
    struct file_root *root = calloc(1, sizeof *root);
    if (!root)
        return NULL;
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = uv_hrtime();
    root->refs = 1;
    snprintf(root->path, sizeof root->path, "%s", path);
    struct wt_process self = wt_process_self();
    char process[WT_PROCESS_TEXT];
    wt_process_format(&self, process); /* gc can tell whether a temporary's owner lives */
    snprintf(root->instance, sizeof root->instance, "%s-%016llx-", process,
             (unsigned long long)random);
    root->read_only = opts->read_only;
    root->bounce = bounce;
    root->capacity = opts->capacity;
    pthread_mutex_init(&root->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&root->scanned, &clock);
    pthread_cond_init(&root->unwatch, &clock);
    pthread_condattr_destroy(&clock);
    return root;
}

struct file_root *file_root_ref(struct file_root *root) {
    atomic_fetch_add(&root->refs, 1);
    return root;
}

void file_dir_unref(struct file_dir *dir) {
    if (!dir || atomic_fetch_sub(&dir->refs, 1) != 1)
        return;
    close(dir->fd);
    free(dir);
}

void file_root_unref(struct file_root *root) {
    if (atomic_fetch_sub(&root->refs, 1) != 1)
        return;
    file_locks_free(root);
    file_dir_unref(root->dir);
    pthread_cond_destroy(&root->scanned);
    pthread_cond_destroy(&root->unwatch);
    pthread_mutex_destroy(&root->lock);
    free(root);
}

/* ---- finding it ---- */

static int open_path(const char *path) {
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Takes fd over unless it lies on a mount, where one is required: then -1, ENODEV. */
static int want_mount(const struct file_root *root, int fd) {
    struct stat slash, st;
    if (fd < 0 || !root->mount_required ||
        (stat("/", &slash) == 0 && fstat(fd, &st) == 0 && st.st_dev != slash.st_dev))
        return fd;
    close(fd);
    errno = ENODEV;
    return -1;
}

/* May the root be made: was it never there before, is its parent where it should be (else ENODEV)?
 */
static bool may_make(struct file_root *root) {
    char parent[sizeof root->path];
    pthread_mutex_lock(&root->lock);
    bool make = !root->seen && !root->read_only;
    pthread_mutex_unlock(&root->lock);
    if (!make || !root->mount_required)
        return make;
    snprintf(parent, sizeof parent, "%s", root->path);
    *strrchr(parent, '/') = '\0';
    int fd = want_mount(root, open_path(parent[0] ? parent : "/"));
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static int open_or_make(struct file_root *root) {
    int fd = open_path(root->path);
    if (fd >= 0 || errno != ENOENT)
        return want_mount(root, fd);
    errno = ENOENT;
    if (!may_make(root))
        return -1;
    if (mkdir(root->path, 0755) < 0 && errno != EEXIST) {
        errno = ENOENT;
        return -1;
    }
    return open_path(root->path);
}

/* Takes fd over. */
static int adopt(struct file_root *root, int fd, struct wt_err *err) {
    struct stat st;
    struct statfs fs;
    struct file_dir *dir = malloc(sizeof *dir);
    if (!dir || fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0) {
        int why = dir ? errno : ENOMEM;
        free(dir);
        close(fd);
        return wt_err_sys(err, why, "root %s", root->path);
    }
    *dir = (struct file_dir){.refs = 1, .fd = fd, .dev = st.st_dev, .ino = st.st_ino};
    enum file_kind kind = kind_of((uint32_t)fs.f_type);
    pthread_mutex_lock(&root->lock);
    struct file_dir *old = root->dir;
    root->dir = dir;
    root->seen = true;
    root->is_tmpfs = kind == FILE_TMPFS;
    root->kind = root->bounce ? FILE_NETWORK : kind;
    if ((!old || old->dev != dir->dev || old->ino != dir->ino) && root->scan != SCAN_RUNS)
        root->scan = SCAN_NEVER; /* another folder: what was counted is not in it */
    pthread_mutex_unlock(&root->lock);
    file_dir_unref(old);
    return 0;
}

static void forget(struct file_root *root) {
    pthread_mutex_lock(&root->lock);
    struct file_dir *old = root->dir;
    root->dir = NULL;
    pthread_mutex_unlock(&root->lock);
    file_dir_unref(old);
}

int file_root_check(struct file_root *root, struct wt_err *err) {
    int fd = open_or_make(root);
    if (fd >= 0)
        return adopt(root, fd, err);
    int why = errno;
    forget(root);
    switch (why) {
    case ENODEV:
        return wt_err_set(err, WT_EDOWN,
                          "root %s lies on the root file system: what should be mounted there is "
                          "not (mount=required)",
                          root->path);
    case ENOENT:
        return wt_err_set(err, WT_EDOWN, "root %s is not there; mount or make it", root->path);
    case ENOTDIR:
        return wt_err_set(err, WT_EDOWN, "root %s is not a folder", root->path);
    case EACCES:
        return wt_err_set(err, WT_EDOWN, "root %s: permission denied; let this user search it",
                          root->path);
    default:
        return wt_err_sys(err, why, "root %s", root->path);
    }
}

struct file_dir *file_root_dir(struct file_root *root, struct wt_err *err) {
    for (int tries = 0; tries < 2; tries++) {
        pthread_mutex_lock(&root->lock);
        struct file_dir *dir = root->dir;
        if (dir)
            atomic_fetch_add(&dir->refs, 1);
        pthread_mutex_unlock(&root->lock);
        if (dir)
            return dir;
        if (tries == 0 && file_root_check(root, err) < 0)
            return NULL;
    }
    wt_err_set(err, WT_EDOWN, "root %s comes and goes", root->path);
    return NULL;
}

int file_root_moved(struct file_root *root, const struct file_dir *dir, struct wt_err *err) {
    struct stat st;
    if (stat(root->path, &st) == 0 && st.st_dev == dir->dev && st.st_ino == dir->ino)
        return 0;
    int rc = file_root_check(root, err);
    return rc < 0 ? rc : 1;
}

enum file_kind file_root_kind(struct file_root *root) {
    pthread_mutex_lock(&root->lock);
    enum file_kind kind = root->kind;
    pthread_mutex_unlock(&root->lock);
    return kind;
}

unsigned file_root_caps(struct file_root *root) {
    pthread_mutex_lock(&root->lock);
    unsigned caps = root->kind == FILE_TMPFS && root->map != FILE_MAP_NEVER ? WT_CAP_MAP : 0;
    if (root->is_tmpfs)
        caps |= WT_CAP_VOLATILE;
    if (!root->read_only)
        caps |= WT_CAP_WRITE | WT_CAP_LOCK;
    pthread_mutex_unlock(&root->lock);
    return caps;
}

int file_open_folder(int dirfd, const char *name) {
    return openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}
