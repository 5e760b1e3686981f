/*
 * See move_both.h. A failure ends the program: figures of a loop that lost a part are worth
 * nothing.
 */
#include "bench/tiers/move_both.h"

#include "bench/measure.h"

#include <fcntl.h>
#include <pthread.h>
#include <rados/librados.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NAME = 600, THREADS_MAX = 16 };

struct both_pool {
    rados_t ceph;
    rados_ioctx_t io;
};

/* ---- the source's objects in RADOS ---- */

static void pool_name(char out[NAME], unsigned object, unsigned part) {
    snprintf(out, NAME, "limit.%u.%u", object, part);
}

struct both_pool *both_pool_open(const struct limit_data *d, const char *conf, const char *pool) {
    struct both_pool *p = calloc(1, sizeof *p);
    if (!p || rados_create(&p->ceph, "admin") < 0 || rados_conf_read_file(p->ceph, conf) < 0 ||
        rados_connect(p->ceph) < 0 || rados_ioctx_create(p->ceph, pool, &p->io) < 0)
        bench_die("no connection to pool %s", pool);
    for (unsigned i = 0; i < d->n; i++)
        for (unsigned k = 0; k < d->size / WT_PART; k++) {
            char name[NAME];
            pool_name(name, i, k);
            if (rados_write_full(p->io, name, (const char *)d->data + (size_t)k * WT_PART,
                                 WT_PART) < 0)
                bench_die("%s cannot be written", name);
        }
    return p;
}

void both_pool_close(struct both_pool *p) {
    rados_ioctx_destroy(p->io);
    rados_shutdown(p->ceph);
    free(p);
}

/* ---- the loop ---- */

struct object {
    int from, to;  /* files, -1: none */
    unsigned left; /* parts to write */
};

struct both {
    const struct limit_data *d;
    const struct both_ends *ends;
    pthread_mutex_t lock; /* of `next` and of objects' counts and files */
    unsigned next;        /* unit of work */
    struct object *object;
};

struct thread {
    struct both *b;
    uint8_t *buf;
    int redis;
    pthread_t id;
};

static unsigned parts_of(const struct limit_data *d) {
    return (unsigned)(d->size / WT_PART);
}

static int open_file(const char *folder, const char *name, int flags) {
    char path[2 * NAME];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, flags | O_CLOEXEC, 0644);
    if (fd < 0)
        bench_die("%s cannot be opened", path);
    return fd;
}

static void open_object(const struct both *b, unsigned i) {
    struct object *o = &b->object[i];
    char name[NAME];
    snprintf(name, sizeof name, "limit.%u.part", i);
    if (b->ends->from_folder)
        o->from = open_file(b->ends->from_folder, b->d->key(i), O_RDONLY);
    if (b->ends->to_folder)
        o->to = open_file(b->ends->to_folder, name, O_WRONLY | O_CREAT | O_TRUNC);
}

/* The objects under way, `writers` of them, take turns by parts. False: all is taken. */
static bool take(struct both *b, unsigned *object, unsigned *part) {
    unsigned per = parts_of(b->d), at_once = b->d->writers;
    pthread_mutex_lock(&b->lock);
    bool more = b->next < b->d->n * per;
    if (more) {
        unsigned u = b->next++, first = u / (at_once * per) * at_once;
        unsigned group = b->d->n - first < at_once ? b->d->n - first : at_once;
        u -= first * per;
        *object = first + u % group;
        *part = u / group;
        if (*part == 0)
            open_object(b, *object);
    }
    pthread_mutex_unlock(&b->lock);
    return more;
}

static void read_part(struct thread *t, unsigned object, unsigned part) {
    const struct both_ends *ends = t->b->ends;
    char name[NAME];
    pool_name(name, object, part);
    ssize_t n = ends->from_pool
                    ? rados_read(ends->from_pool->io, name, (char *)t->buf, WT_PART, 0)
                    : pread(t->b->object[object].from, t->buf, WT_PART, (off_t)part * WT_PART);
    if (n != WT_PART)
        bench_die("part %u of object %u cannot be read", part, object);
}

static void write_part(struct thread *t, unsigned object, unsigned part) {
    if (t->redis >= 0)
        limit_set_part(t->redis, object, part, t->buf);
    else if (pwrite(t->b->object[object].to, t->buf, WT_PART, (off_t)part * WT_PART) != WT_PART)
        bench_die("part %u of object %u cannot be written", part, object);
}

static void publish(const struct both *b, unsigned i) {
    struct object *o = &b->object[i];
    char part[NAME], path[NAME];
    if (o->from >= 0)
        close(o->from);
    if (o->to < 0)
        return;
    snprintf(part, sizeof part, "%s/limit.%u.part", b->ends->to_folder, i);
    snprintf(path, sizeof path, "%s/limit.%u", b->ends->to_folder, i);
    if (fsync(o->to) < 0 || close(o->to) < 0 || rename(part, path) < 0)
        bench_die("%s cannot be written", path);
}

static void *move_parts(void *arg) {
    struct thread *t = arg;
    struct both *b = t->b;
    unsigned object, part;
    while (take(b, &object, &part)) {
        read_part(t, object, part);
        write_part(t, object, part);
        pthread_mutex_lock(&b->lock);
        bool last = --b->object[object].left == 0;
        pthread_mutex_unlock(&b->lock);
        if (last)
            publish(b, object);
    }
    return NULL;
}

static double run_threads(struct both *b, struct thread *thread) {
    double begin = limit_now();
    for (unsigned i = 0; i < b->d->flight; i++)
        if (pthread_create(&thread[i].id, NULL, move_parts, &thread[i]) != 0)
            bench_die("no thread");
    for (unsigned i = 0; i < b->d->flight; i++)
        pthread_join(thread[i].id, NULL);
    return limit_now() - begin;
}

static void remove_files(const struct both *b) {
    for (unsigned i = 0; b->ends->to_folder && i < b->d->n; i++) {
        char path[NAME];
        snprintf(path, sizeof path, "%s/limit.%u", b->ends->to_folder, i);
        unlink(path);
    }
}

double both_run(const struct limit_data *d, const struct both_ends *ends) {
    struct both b = {.d = d, .ends = ends, .object = calloc(d->n, sizeof *b.object)};
    struct thread thread[THREADS_MAX];
    if (!b.object || d->flight > THREADS_MAX)
        bench_die("too many parts in flight");
    for (unsigned i = 0; i < d->n; i++)
        b.object[i] = (struct object){-1, -1, parts_of(d)};
    for (unsigned i = 0; i < d->flight; i++)
        thread[i] = (struct thread){.b = &b,
                                    .buf = d->data + (size_t)i * WT_PART,
                                    .redis = ends->to_socket ? limit_connect(ends->to_socket) : -1};
    pthread_mutex_init(&b.lock, NULL);
    double seconds = run_threads(&b, thread);
    pthread_mutex_destroy(&b.lock);
    for (unsigned i = 0; i < d->flight; i++)
        if (thread[i].redis >= 0)
            close(thread[i].redis);
    if (ends->to_socket)
        limit_flush(ends->to_socket);
    remove_files(&b);
    free(b.object);
    return seconds;
}
