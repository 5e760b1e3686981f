/*
 * MAP: the whole object in memory, on tmpfs alone, where its pages are memory already.
 *
 * Mappings are kept by (device, inode, size) while anybody holds them, so that mapping an object
 * again costs an open and no page faults. An inode's number is not used again while its mapping
 * lives. Objects are published by rename and never changed; against those who do it nevertheless
 * each mapping has a lease (lease.c). While there are mappings a thread looks at their leases
 * WATCH_MS apart; where one is being broken, it puts a private copy in the mapping's place, at the
 * same address and in one step for those who read there, and gives the lease back. Nobody notices
 * but the one who wanted to write, who waits that long. Failures: no lease, holes in the file (a
 * page that a full tmpfs has no room for is a SIGBUS too), too many mappings for the descriptors
 * that this process may have: WT_EUNSUPPORTED, the object is to be read instead. No memory for the
 * copy: tried again until the kernel breaks the lease by force.
 */
#include "tiers/file/file.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { WATCH_MS = 200, LINGER = 25 /* looks without a mapping before the thread ends */ };

struct file_mapping {
    struct file_root *root;
    dev_t dev;
    ino_t ino;
    int fd;     /* has the lease; -1: none, or given back */
    bool stale; /* a copy of what the file was */
    void *data; /* NULL: an empty object */
    size_t size;
    unsigned refs; /* under root->lock */
    struct file_mapping *next;
};

static void mapping_free(struct file_mapping *m) {
    if (m->data)
        munmap(m->data, m->size);
    if (m->fd >= 0) {
        file_lease_end(m->fd);
        close(m->fd);
    }
    file_root_unref(m->root);
    free(m);
}

/* wt_map's release: any thread. */
static void release(void *arg) {
    struct file_mapping *m = arg;
    struct file_root *root = m->root;
    pthread_mutex_lock(&root->lock);
    bool last = --m->refs == 0;
    if (last) {
        struct file_mapping **at = &root->mappings;
        while (*at != m)
            at = &(*at)->next;
        *at = m->next;
        root->n_mappings--;
        if (atomic_load(&root->closing))
            pthread_cond_signal(&root->unwatch);
    }
    pthread_mutex_unlock(&root->lock);
    if (last)
        mapping_free(m);
}

/* With the lock. */
static struct file_mapping *find(struct file_root *root, const struct stat *st) {
    struct file_mapping *m = root->mappings;
    while (m && (m->stale || m->ino != st->st_ino || m->dev != st->st_dev ||
                 m->size != (size_t)st->st_size))
        m = m->next;
    if (m)
        m->refs++;
    return m;
}

static struct file_mapping *find_kept(struct file_root *root, const struct stat *st) {
    pthread_mutex_lock(&root->lock);
    struct file_mapping *m = find(root, st);
    pthread_mutex_unlock(&root->lock);
    return m;
}

/* ---- the watch ---- */

/* With the lock. A copy takes the mapping's place in one step: mremap holds the address space. */
static void replace_by_copy(struct file_mapping *m) {
    void *copy = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return; /* at the next look */
    memcpy(copy, m->data, m->size);
    if (mremap(copy, m->size, m->size, MREMAP_MAYMOVE | MREMAP_FIXED, m->data) == MAP_FAILED) {
        munmap(copy, m->size);
        return;
    }
    m->stale = true;
    file_lease_end(m->fd);
    close(m->fd);
    m->fd = -1;
}

static void look(struct file_root *root) {
    for (struct file_mapping *m = root->mappings; m; m = m->next)
        if (m->fd >= 0 && file_lease_breaks(m->fd))
            replace_by_copy(m);
}

/* With the lock. */
static void wait_a_while(struct file_root *root) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += WATCH_MS * 1000000L;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&root->unwatch, &root->lock, &t);
}

static void *watch(void *arg) {
    struct file_root *root = arg;
    unsigned idle = 0;
    pthread_mutex_lock(&root->lock);
    while (idle < LINGER && !(atomic_load(&root->closing) && !root->mappings)) {
        look(root);
        idle = root->mappings ? 0 : idle + 1;
        wait_a_while(root);
    }
    root->watched = false;
    pthread_mutex_unlock(&root->lock);
    file_root_unref(root);
    return NULL;
}

/* With the lock. */
static bool start_watch(struct file_root *root) {
    if (root->watched)
        return true;
    pthread_t thread;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    file_root_ref(root);
    root->watched = pthread_create(&thread, NULL, watch, root) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (root->watched)
        pthread_detach(thread);
    else
        atomic_fetch_sub(&root->refs, 1); /* the caller has another one */
    return root->watched;
}

void file_maps_closing(struct file_root *root) {
    pthread_mutex_lock(&root->lock);
    pthread_cond_signal(&root->unwatch);
    pthread_mutex_unlock(&root->lock);
}

/* ---- mapping ---- */

/* Another worker may have mapped the same meanwhile: then its mapping is taken. */
static struct file_mapping *keep(struct file_mapping *m, const struct stat *st) {
    struct file_root *root = m->root;
    pthread_mutex_lock(&root->lock);
    struct file_mapping *other = find(root, st);
    bool watched = other || m->fd < 0 || start_watch(root);
    if (!other && watched) {
        m->next = root->mappings;
        root->mappings = m;
        root->n_mappings++;
    }
    pthread_mutex_unlock(&root->lock);
    if (!other && watched)
        return m;
    mapping_free(m);
    return other;
}

/* A quarter of the descriptors that this process may have. */
static bool room_for_one(struct file_root *root) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return false;
    pthread_mutex_lock(&root->lock);
    bool room = root->n_mappings < limit.rlim_cur / 4;
    pthread_mutex_unlock(&root->lock);
    return room;
}

static int refuse(struct file_job *job, const char *why) {
    return wt_err_set(&job->err, WT_EUNSUPPORTED, "%s: it is to be read, not mapped", why);
}

/* Takes fd's lease, and then a second look at the file. */
static int make_safe(struct file_job *job, int fd, struct stat *st) {
    if (!room_for_one(job->root))
        return refuse(job, "a quarter of this process's descriptors holds mappings");
    if (!file_lease_take(fd))
        return refuse(job, "no lease on it (another user's file, or somebody writes to it)");
    int rc = 0;
    if (fstat(fd, st) < 0)
        rc = file_fail(job, errno, "stat");
    else if ((uint64_t)st->st_blocks * 512 < (uint64_t)st->st_size)
        rc = refuse(job, "the file has holes");
    if (rc < 0)
        file_lease_end(fd);
    return rc;
}

/* Takes fd over. */
static struct file_mapping *make(struct file_job *job, int fd, const struct stat *st) {
    struct file_mapping *m = calloc(1, sizeof *m);
    if (!m) {
        wt_err_set(&job->err, WT_ENOMEM, "out of memory for a mapping");
        file_lease_end(fd);
        close(fd);
        return NULL;
    }
    bool bare = job->root->map == FILE_MAP_ALWAYS || st->st_size == 0;
    *m = (struct file_mapping){.root = file_root_ref(job->root),
                               .dev = st->st_dev,
                               .ino = st->st_ino,
                               .fd = bare ? -1 : fd,
                               .size = (size_t)st->st_size,
                               .refs = 1};
    if (m->size) {
        void *data = mmap(NULL, m->size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
        if (data == MAP_FAILED)
            wt_err_sys(&job->err, errno, "map");
        else
            m->data = data;
    }
    if (bare) {
        file_lease_end(fd);
        close(fd);
    }
    if (!m->size || m->data)
        return m;
    mapping_free(m);
    return NULL;
}

static int map_fresh(struct file_job *job, int fd, struct stat *st, struct file_mapping **out) {
    int rc = job->root->map == FILE_MAP_ALWAYS ? 0 : make_safe(job, fd, st);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    struct file_mapping *m = make(job, fd, st);
    if (!m)
        return job->err.code;
    *out = keep(m, st);
    return *out ? 0 : refuse(job, "no thread to watch its lease");
}

int file_run_map(struct file_job *job, const struct file_dir *dir) {
    struct stat st;
    int fd;
    int rc = file_open_object(job, dir, &st, &fd);
    if (rc < 0)
        return rc;
    struct file_mapping *m = find_kept(job->root, &st);
    if (m)
        close(fd);
    else if ((rc = map_fresh(job, fd, &st, &m)) < 0)
        return rc;
    job->map = wt_map_new(m->data ? m->data : "", m->size, release, m);
    if (!job->map) {
        release(m);
        return wt_err_set(&job->err, WT_ENOMEM, "out of memory for a mapping");
    }
    return 0;
}
