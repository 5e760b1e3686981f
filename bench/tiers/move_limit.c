/* See move_limit.h. */
#include "bench/tiers/move_limit.h"

#include "bench/measure.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { FLIGHT_MAX = 16, VALUE = (1 << 20) - 4096 };

double limit_now(void) {
    return (double)uv_hrtime() / 1e9;
}

/* ---- reading a tier ---- */

struct reading {
    const struct limit_data *d;
    struct wt_tier *tier;
    struct wt_req req[FLIGHT_MAX];
    unsigned next, busy; /* parts, of all objects one after the other */
};

static void read_next(struct reading *r, struct wt_req *req) {
    unsigned per_object = (unsigned)(r->d->size / WT_PART);
    if (r->next == r->d->n * per_object)
        return;
    req->key = r->d->key(r->next / per_object);
    req->off = r->next++ % per_object * (uint64_t)WT_PART;
    if (wt_tier_submit(r->tier, req) < 0)
        bench_die("%s: %s", req->key, req->err.text);
    r->busy++;
}

static void on_read(struct wt_req *req) {
    struct reading *r = req->arg;
    if (req->rc < 0 || req->got != WT_PART)
        bench_die("%s: %s", req->key, req->rc < 0 ? req->err.text : "it is short");
    r->busy--;
    read_next(r, req);
}

double limit_read_tier(const struct limit_data *d, uv_loop_t *loop, struct wt_tier *tier) {
    struct reading r = {.d = d, .tier = tier};
    double begin = limit_now();
    for (unsigned i = 0; i < d->flight; i++) {
        r.req[i] = (struct wt_req){.op = WT_OP_GET,
                                   .buf = d->data + (size_t)i * WT_PART,
                                   .len = WT_PART,
                                   .done = on_read,
                                   .arg = &r};
        read_next(&r, &r.req[i]);
    }
    while (r.busy)
        uv_run(loop, UV_RUN_ONCE);
    return limit_now() - begin;
}

/* ---- writing to Redis ---- */

int limit_connect(const char *path) {
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&un, sizeof un) < 0)
        bench_die("no Redis at %s", path);
    return fd;
}

static void send_all(int fd, struct iovec *io, int n) {
    while (n) {
        ssize_t sent = writev(fd, io, n);
        if (sent <= 0)
            bench_die("Redis closed the connection");
        for (; n && (size_t)sent >= io->iov_len; io++, n--)
            sent -= (ssize_t)io->iov_len;
        if (n) {
            io->iov_base = (char *)io->iov_base + sent;
            io->iov_len -= (size_t)sent;
        }
    }
}

/* Reads answers ("+OK") until only `left` are due. */
static void read_answers(int fd, unsigned *due, unsigned left) {
    char text[256];
    while (*due > left) {
        ssize_t got = read(fd, text, sizeof text);
        if (got <= 0 || text[0] == '-')
            bench_die("Redis refuses: %.*s", got > 0 ? (int)got : 0, text);
        for (ssize_t i = 0; i < got; i++)
            *due -= text[i] == '\n';
    }
}

static void set_value(int fd, unsigned object, unsigned value, uint8_t *data, size_t len) {
    char name[48], head[128];
    int name_len = snprintf(name, sizeof name, "limit:%u:%u", object, value);
    int head_len = snprintf(head, sizeof head, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%zu\r\n", name_len,
                            name, len);
    struct iovec io[] = {{head, (size_t)head_len}, {data, len}, {(char *)(uintptr_t) "\r\n", 2}};
    send_all(fd, io, 3);
}

/* The values of `len` bytes from `at` on. */
static unsigned set_values(int fd, unsigned object, unsigned first, uint8_t *data, size_t len) {
    unsigned n = 0;
    for (size_t at = 0; at < len; at += VALUE, n++)
        set_value(fd, object, first + n, data + at, len - at < VALUE ? len - at : VALUE);
    return n;
}

void limit_set_part(int fd, unsigned object, unsigned part, uint8_t *data) {
    unsigned due = set_values(fd, object, part * (WT_PART / VALUE + 1), data, WT_PART);
    read_answers(fd, &due, 0);
}

void limit_flush(const char *socket) {
    static const char flush[] = "FLUSHALL\r\n";
    int fd = limit_connect(socket);
    unsigned due = 1;
    if (write(fd, flush, sizeof flush - 1) != sizeof flush - 1)
        bench_die("Redis closed the connection");
    read_answers(fd, &due, 0);
    close(fd);
}

double limit_write_redis(const struct limit_data *d, const char *socket) {
    int fd = limit_connect(socket);
    unsigned due = 0;
    double begin = limit_now();
    for (unsigned i = 0; i < d->n; i++) {
        unsigned sent = set_values(fd, i, 0, d->data, d->size);
        due += sent;
        read_answers(fd, &due, sent); /* those of the object before */
    }
    read_answers(fd, &due, 0);
    double seconds = limit_now() - begin;
    close(fd);
    limit_flush(socket);
    return seconds;
}

/* ---- writing files ---- */

struct writing {
    const struct limit_data *d;
    const char *folder;
    atomic_uint next;
};

static void write_file(const struct writing *w, unsigned i) {
    char temporary[600], path[600];
    snprintf(temporary, sizeof temporary, "%s/limit.%u.part", w->folder, i);
    snprintf(path, sizeof path, "%s/limit.%u", w->folder, i);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    for (size_t at = 0; fd >= 0 && at < w->d->size;) {
        size_t len = w->d->size - at < WT_PART ? w->d->size - at : (size_t)WT_PART;
        ssize_t n = write(fd, w->d->data + at, len);
        if (n <= 0)
            bench_die("%s cannot be written", temporary);
        at += (size_t)n;
    }
    if (fd < 0 || fsync(fd) < 0 || close(fd) < 0 || rename(temporary, path) < 0)
        bench_die("%s cannot be written", path);
}

static void *write_some(void *arg) {
    struct writing *w = arg;
    for (unsigned i; (i = atomic_fetch_add(&w->next, 1)) < w->d->n;)
        write_file(w, i);
    return NULL;
}

void limit_uncache(const struct limit_data *d, const char *folder) {
    for (unsigned i = 0; i < d->n; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", folder, d->key(i));
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
            bench_die("%s cannot be taken out of the page cache", path);
        close(fd);
    }
}

double limit_write_files(const struct limit_data *d, const char *folder) {
    struct writing w = {.d = d, .folder = folder};
    pthread_t thread[FLIGHT_MAX];
    double begin = limit_now();
    for (unsigned i = 0; i < d->writers; i++)
        if (pthread_create(&thread[i], NULL, write_some, &w) != 0)
            bench_die("no thread");
    for (unsigned i = 0; i < d->writers; i++)
        pthread_join(thread[i], NULL);
    double seconds = limit_now() - begin;
    for (unsigned i = 0; i < d->n; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/limit.%u", folder, i);
        unlink(path);
    }
    return seconds;
}
