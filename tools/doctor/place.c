/*
 * What lies at the path of a file: tier.
 *
 * Happy path: a thread asks the file system and tells the caller, who waits for it. Failures: a
 * mount may hang for ever: then the thread is left behind with all it owns, and the answer is
 * WT_PLACE_HANGS. Nothing is made or changed.
 */
#include "tools/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

struct look { /* shared by asker and thread; the last one frees it */
    pthread_mutex_t lock;
    pthread_cond_t ready;
    atomic_int refs;
    bool done;
    void (*ask)(struct wt_place *place);
    struct wt_place place;
};

static void look_unref(struct look *l) {
    if (atomic_fetch_sub(&l->refs, 1) != 1)
        return;
    pthread_cond_destroy(&l->ready);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* The type of the mount that this device is, from the kernel's table; never touches the mount. */
static void find_kind(dev_t dev, char *out, size_t size) {
    char line[4096];
    FILE *table = fopen("/proc/self/mountinfo", "re");
    while (table && fgets(line, sizeof line, table)) {
        unsigned major_no, minor_no;
        char kind[64];
        const char *rest = strstr(line, " - ");
        if (sscanf(line, "%*d %*d %u:%u", &major_no, &minor_no) == 2 && rest &&
            makedev(major_no, minor_no) == dev && sscanf(rest, " - %63s", kind) == 1)
            snprintf(out, size, "%s", kind);
    }
    if (table)
        fclose(table);
}

static enum wt_place_state state_of(int why) {
    switch (why) {
    case ENOENT:
        return WT_PLACE_MISSING;
    case ENOTDIR:
        return WT_PLACE_NO_FOLDER;
    case EACCES:
        return WT_PLACE_NO_SEARCH;
    default: /* ENOTCONN, ESTALE, EIO, EHOSTDOWN: nobody serves it */
        return WT_PLACE_DEAD;
    }
}

static void look_at(struct wt_place *p) {
    struct stat st, slash;
    struct statvfs fs;
    if (stat(p->path, &st) < 0 || (S_ISDIR(st.st_mode) && statvfs(p->path, &fs) < 0)) {
        p->sys = errno;
        p->state = state_of(errno);
        return;
    }
    p->state = S_ISDIR(st.st_mode) ? WT_PLACE_FOLDER : WT_PLACE_NO_FOLDER;
    if (p->state == WT_PLACE_NO_FOLDER)
        return;
    p->device = st.st_dev;
    p->on_root = stat("/", &slash) == 0 && slash.st_dev == st.st_dev;
    p->owner = st.st_uid;
    p->group = st.st_gid;
    find_kind(st.st_dev, p->kind, sizeof p->kind);
    p->tmpfs = strcmp(p->kind, "tmpfs") == 0 || strcmp(p->kind, "ramfs") == 0;
    p->mount_read_only = fs.f_flag & ST_RDONLY;
    p->total = (uint64_t)fs.f_blocks * fs.f_frsize;
    /* CephFS without a manager knows nothing: 0 blocks. */
    p->available = fs.f_blocks ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
    p->writable = faccessat(AT_FDCWD, p->path, W_OK | X_OK, AT_EACCESS) == 0;
}

static void *look_thread(void *arg) {
    struct look *l = arg;
    struct wt_place place = l->place;
    l->ask(&place);
    pthread_mutex_lock(&l->lock);
    l->place = place;
    l->done = true;
    pthread_cond_signal(&l->ready);
    pthread_mutex_unlock(&l->lock);
    look_unref(l);
    return NULL;
}

/* What was just written would be read from memory else. */
static void drop_cache(struct wt_place *p) {
    int fd = open(p->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static struct look *look_new(const char *path, void (*ask)(struct wt_place *place)) {
    struct look *l = calloc(1, sizeof *l);
    pthread_condattr_t clock;
    if (!l)
        return NULL;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&l->ready, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&l->lock, NULL);
    atomic_init(&l->refs, 2);
    l->ask = ask;
    snprintf(l->place.path, sizeof l->place.path, "%s", path);
    return l;
}

static bool wait_done(struct look *l, unsigned timeout_ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int rc = 0;
    while (!l->done && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&l->ready, &l->lock, &until);
    return l->done;
}

static void ask_thread(const char *path, void (*ask)(struct wt_place *place), unsigned timeout_ms,
                       struct wt_place *out) {
    pthread_t thread;
    struct look *l = look_new(path, ask);
    *out = (struct wt_place){.state = WT_PLACE_HANGS};
    snprintf(out->path, sizeof out->path, "%s", path);
    if (!l)
        return;
    if (pthread_create(&thread, NULL, look_thread, l) != 0) {
        look_unref(l);
        look_unref(l);
        return;
    }
    pthread_detach(thread);
    pthread_mutex_lock(&l->lock);
    if (wait_done(l, timeout_ms))
        *out = l->place;
    pthread_mutex_unlock(&l->lock);
    look_unref(l);
}

void wt_place_look(const char *path, unsigned timeout_ms, struct wt_place *out) {
    ask_thread(path, look_at, timeout_ms, out);
}

void wt_place_forget(const struct wt_place *place, const char *key, unsigned timeout_ms) {
    struct wt_place unused;
    char path[sizeof place->path];
    if (snprintf(path, sizeof path, "%s/%s", place->path, key) < (int)sizeof path)
        ask_thread(path, drop_cache, timeout_ms, &unused);
}
