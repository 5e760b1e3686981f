/*
 * bench/tiers/hot: reads of a Redis tier against a bare raw-socket reader of the same values and
 * against plain hiredis GET, over a Unix socket and TCP, with 1 and 2 connections.
 *
 *   bench_hot SOCKET PORT      a Redis that nobody else uses (bench/tiers/hot.sh starts one)
 *
 * Method: objects are put through the tier; then PAIRS alternated pairs (ours, the other one; the
 * order changes from pair to pair) read all of their chunks once. Printed: GB/s, the median of the
 * pairs' ratios with its 95% interval (order statistics), CPU seconds per GB of the reading
 * process, the goal. All three read into the same memory, touched before. What ours read must be
 * what the server counted (total_net_output_bytes), within 2%; else the exit status is 1.
 */
#include "bench/tiers/counters.h"
#include "core/mem.h"
#include "tiers/sync.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    OBJECTS = 24,
    PAIRS = 10,
    FLIGHT = 4,
    DEPTH = 2,
    NAMES_MAX = 2000,
    NAME_SIZE = 128,
    CONNS_MAX = 2
};

struct bench {
    const char *path; /* NULL: TCP */
    int port, conns;
    int raw_fd[CONNS_MAX];           /* kept, as ours are: buffers of the kernel have grown */
    char name[NAMES_MAX][NAME_SIZE]; /* chunks */
    size_t n_names;
    struct wt_mem mem;  /* FLIGHT parts */
    uint64_t bytes;     /* that one run reads */
    const char *server; /* its socket */
    bool wrong;         /* the server counted other bytes */
};

static void die(const char *what) {
    fprintf(stderr, "bench_hot: %s\n", what);
    exit(1);
}

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- a bare reader: own header parse, read(2) straight into the buffer, two GETs in flight ----
 */

struct raw {
    int fd;
    size_t next_sent, next_got, step; /* names */
    char line[64];
    size_t line_len;
    size_t left; /* of the body and its CRLF */
    uint8_t *to;
};

static int raw_connect(const struct bench *b) {
    int fd, on = 1;
    if (b->path) {
        struct sockaddr_un un = {.sun_family = AF_UNIX};
        snprintf(un.sun_path, sizeof un.sun_path, "%s", b->path);
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&un, sizeof un) < 0)
            die("cannot connect");
        return fd;
    }
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)b->port)};
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&in, sizeof in) < 0)
        die("cannot connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void raw_ask(const struct bench *b, struct raw *r) {
    char command[NAME_SIZE + 40];
    if (r->next_sent >= b->n_names)
        return;
    const char *name = b->name[r->next_sent];
    int n =
        snprintf(command, sizeof command, "*2\r\n$3\r\nGET\r\n$%zu\r\n%s\r\n", strlen(name), name);
    if (write(r->fd, command, (size_t)n) != n)
        die("write failed");
    r->next_sent += r->step;
}

/* The line "$n\r\n", byte by byte from what is there; then the body. */
static void raw_line(struct raw *r, const struct bench *b) {
    ssize_t n = recv(r->fd, r->line + r->line_len, 1, 0);
    if (n != 1)
        die("read failed");
    if (r->line[r->line_len++] != '\n')
        return;
    r->line_len = 0;
    r->left = strtoul(r->line + 1, NULL, 10) + 2;
    r->to = (uint8_t *)b->mem.ptr + (r->next_got * (size_t)(1 << 20)) % b->mem.size;
}

static void raw_some(struct raw *r, const struct bench *b) {
    if (r->left == 0) {
        raw_line(r, b);
        return;
    }
    ssize_t n = read(r->fd, r->to, r->left);
    if (n <= 0)
        die("read failed");
    r->to += n;
    r->left -= (size_t)n;
    if (r->left == 0) {
        r->next_got += r->step;
        raw_ask(b, r);
    }
}

static void run_raw(struct bench *b) {
    struct raw raw[CONNS_MAX] = {0};
    struct pollfd at[CONNS_MAX];
    for (int i = 0; i < b->conns; i++) {
        raw[i] = (struct raw){.fd = b->raw_fd[i],
                              .step = (size_t)b->conns,
                              .next_sent = (size_t)i,
                              .next_got = (size_t)i};
        at[i] = (struct pollfd){.fd = raw[i].fd, .events = POLLIN};
        for (int k = 0; k < DEPTH; k++)
            raw_ask(b, &raw[i]);
    }
    for (int open = b->conns; open > 0;) {
        if (b->conns > 1 && poll(at, (nfds_t)b->conns, -1) < 0)
            die("poll failed");
        for (int i = 0; i < b->conns; i++) {
            if (at[i].fd < 0 || (b->conns > 1 && !(at[i].revents & POLLIN)))
                continue;
            raw_some(&raw[i], b);
            if (raw[i].next_got >= b->n_names) {
                at[i].fd = -1;
                open--;
            }
        }
    }
}

/* ---- plain hiredis: GET, and a copy out of the reply ---- */

static void run_hiredis(struct bench *b) {
    redisContext *c[CONNS_MAX];
    for (int i = 0; i < b->conns; i++) {
        c[i] = b->path ? redisConnectUnix(b->path) : redisConnect("127.0.0.1", b->port);
        if (!c[i] || c[i]->err)
            die("hiredis cannot connect");
    }
    size_t conns = (size_t)b->conns;
    for (size_t i = 0; i < b->n_names; i += conns) {
        for (size_t k = 0; k < conns && i + k < b->n_names; k++)
            redisAppendCommand(c[k], "GET %s", b->name[i + k]);
        for (size_t k = 0; k < conns && i + k < b->n_names; k++) {
            redisReply *reply;
            if (redisGetReply(c[k], (void **)&reply) != REDIS_OK ||
                reply->type != REDIS_REPLY_STRING)
                die("hiredis GET failed");
            memcpy((uint8_t *)b->mem.ptr + ((i + k) * (size_t)(1 << 20)) % b->mem.size, reply->str,
                   (size_t)reply->len);
            freeReplyObject(reply);
        }
    }
    for (size_t i = 0; i < conns; i++)
        redisFree(c[i]);
}

/* ---- ours ---- */

struct ours {
    struct wt_tier *tier;
    struct wt_req req[FLIGHT];
    char key[FLIGHT][32];
    int next, busy;
};

static void submit_next(struct ours *o, struct wt_req *req) {
    if (o->next == OBJECTS)
        return;
    char *key = o->key[req - o->req];
    snprintf(key, 32, "bench/object-%d", o->next++);
    req->key = key;
    o->busy++;
    if (wt_tier_submit(o->tier, req) < 0)
        die(req->err.text);
}

static void on_read(struct wt_req *req) {
    struct ours *o = req->arg;
    if (req->rc < 0 || req->got != WT_PART)
        die(req->err.text);
    o->busy--;
    submit_next(o, req);
}

static void run_ours(struct bench *b, uv_loop_t *loop, struct wt_tier *tier) {
    struct ours o = {.tier = tier};
    for (int i = 0; i < FLIGHT; i++) {
        o.req[i] = (struct wt_req){.op = WT_OP_GET,
                                   .buf = (uint8_t *)b->mem.ptr + (size_t)i * WT_PART,
                                   .len = WT_PART,
                                   .done = on_read,
                                   .arg = &o};
        submit_next(&o, &o.req[i]);
    }
    while (o.busy)
        uv_run(loop, UV_RUN_ONCE);
}

static void on_closed(void *arg) {
    *(bool *)arg = true;
}

static struct wt_tier *open_tier(const struct bench *b, uv_loop_t *loop, const char *more) {
    struct wt_tier_opts opts = {.name = "hot"};
    struct wt_tier *tier;
    struct wt_err err;
    if (b->path)
        snprintf(opts.url, sizeof opts.url, "redis+unix://%s?connections=%d%s", b->path, b->conns,
                 more);
    else
        snprintf(opts.url, sizeof opts.url, "redis://127.0.0.1:%d?connections=%d%s", b->port,
                 b->conns, more);
    if (wt_tier_open(loop, &opts, NULL, &tier, &err) < 0)
        die(err.text);
    return tier;
}

static void close_tier(uv_loop_t *loop, struct wt_tier *tier) {
    bool closed = false;
    wt_tier_close(tier, on_closed, &closed);
    while (!closed)
        uv_run(loop, UV_RUN_ONCE);
}

/* ---- pairs ---- */

enum reader { OURS, RAW, HIREDIS };

struct figure {
    double rate[PAIRS], cpu;
};

static double time_one(struct bench *b, enum reader who, uv_loop_t *loop, struct wt_tier *tier,
                       double *cpu) {
    double wall = seconds(CLOCK_MONOTONIC), used = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (who == OURS)
        run_ours(b, loop, tier);
    else if (who == RAW)
        run_raw(b);
    else
        run_hiredis(b);
    *cpu += (seconds(CLOCK_PROCESS_CPUTIME_ID) - used) / ((double)b->bytes / 1e9) / PAIRS;
    return (double)b->bytes / 1e9 / (seconds(CLOCK_MONOTONIC) - wall);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *v) {
    double s[PAIRS];
    memcpy(s, v, sizeof s);
    qsort(s, PAIRS, sizeof s[0], by_value);
    return (s[PAIRS / 2 - 1] + s[PAIRS / 2]) / 2;
}

static void check_bytes(struct bench *b, uv_loop_t *loop, struct wt_tier *tier) {
    double ignored = 0;
    uint64_t before = bench_redis_counter(b->server, "total_net_output_bytes");
    time_one(b, OURS, loop, tier, &ignored);
    uint64_t counted = bench_redis_counter(b->server, "total_net_output_bytes") - before;
    b->wrong |= !bench_bytes_agree(b->path ? "unix" : "tcp", (double)b->bytes, (double)counted);
}

static void compare(struct bench *b, enum reader other, const char *more, double goal) {
    uv_loop_t loop;
    uv_loop_init(&loop);
    struct wt_tier *tier = open_tier(b, &loop, more);
    for (int i = 0; i < b->conns; i++)
        b->raw_fd[i] = raw_connect(b);
    struct figure ours = {0}, theirs = {0};
    double ratio[PAIRS], ignored = 0;
    time_one(b, OURS, &loop, tier, &ignored); /* connected, headers seen, memory warm */
    if (other == HIREDIS)                     /* once for each way of connecting */
        check_bytes(b, &loop, tier);
    time_one(b, other, &loop, tier, &ignored);
    for (int i = 0; i < PAIRS; i++) {
        bool first = i % 2 == 0;
        if (first)
            ours.rate[i] = time_one(b, OURS, &loop, tier, &ours.cpu);
        theirs.rate[i] = time_one(b, other, &loop, tier, &theirs.cpu);
        if (!first)
            ours.rate[i] = time_one(b, OURS, &loop, tier, &ours.cpu);
        ratio[i] = ours.rate[i] / theirs.rate[i];
    }
    close_tier(&loop, tier);
    uv_loop_close(&loop);
    for (int i = 0; i < b->conns; i++)
        close(b->raw_fd[i]);
    qsort(ratio, PAIRS, sizeof ratio[0], by_value);
    printf("%-5s %d conn %-10s %6.2f GB/s %5.2f cpu s/GB | %-8s %6.2f GB/s %5.2f cpu s/GB | ratio "
           "%.2f "
           "[%.2f, %.2f] goal %.2f %s\n",
           b->path ? "unix" : "tcp", b->conns, more, median(ours.rate), ours.cpu,
           other == RAW ? "raw" : "hiredis", median(theirs.rate), theirs.cpu, median(ratio),
           ratio[1], ratio[PAIRS - 2], goal, ratio[PAIRS - 2] >= goal ? "reached" : "MISSED");
}

/* ---- the data ---- */

static void put_objects(struct bench *b) {
    struct wt_sync *sync;
    struct wt_tier *tier;
    struct wt_err err;
    struct wt_tier_opts opts = {.name = "hot"};
    snprintf(opts.url, sizeof opts.url, "redis+unix://%s", b->path);
    if (wt_sync_new(NULL, &sync, &err) < 0 || wt_sync_open(sync, &opts, &tier, &err) < 0)
        die(err.text);
    uint8_t *data = malloc(WT_PART);
    for (size_t i = 0; i < WT_PART; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 11);
    for (int i = 0; i < OBJECTS; i++) {
        char key[32];
        snprintf(key, sizeof key, "bench/object-%d", i);
        if (wt_sync_write(sync, tier, key, data, WT_PART, 0, &err) < 0)
            die(err.text);
    }
    free(data);
    wt_sync_free(sync);
}

static void find_chunks(struct bench *b, redisContext *c) {
    redisReply *keys = redisCommand(c, "SCAN 0 MATCH wt:[0-9a-f]* COUNT 100000");
    if (!keys || keys->type != REDIS_REPLY_ARRAY)
        die("SCAN failed");
    const redisReply *list = keys->element[1];
    for (size_t i = 0; i < list->elements && b->n_names < NAMES_MAX; i++)
        snprintf(b->name[b->n_names++], NAME_SIZE, "%s", list->element[i]->str);
    freeReplyObject(keys);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 3)
        die("usage: bench_hot SOCKET PORT");
    struct bench *b = calloc(1, sizeof *b);
    struct wt_err err;
    b->path = b->server = argv[1];
    b->bytes = (uint64_t)OBJECTS * WT_PART;
    if (wt_mem_map(&b->mem, (size_t)FLIGHT * WT_PART, &err) < 0)
        die(err.text);
    redisContext *c = redisConnectUnix(b->path);
    if (!c || c->err)
        die("no Redis at that socket");
    double before = (double)bench_redis_counter(b->server, "used_memory");
    put_objects(b);
    usleep(300000); /* query buffers of the writers are given back */
    find_chunks(b, c);
    double share =
        (double)b->bytes / ((double)bench_redis_counter(b->server, "used_memory") - before);
    printf("%d objects of 8 MiB in %zu chunks; payload / used_memory %.3f goal 0.97 %s\n", OBJECTS,
           b->n_names, share, share >= 0.97 ? "reached" : "MISSED");
    for (int tcp = 0; tcp < 2; tcp++) {
        b->path = tcp ? NULL : argv[1];
        b->port = atoi(argv[2]);
        for (b->conns = 1; b->conns <= CONNS_MAX; b->conns++) {
            compare(b, RAW, "", 0.90);
            compare(b, RAW, "&verify=1", 0); /* not the default: no goal */
            compare(b, HIREDIS, "", 1.5);
        }
    }
    redisFree(c);
    wt_mem_unmap(&b->mem);
    bool wrong = b->wrong;
    free(b);
    return wrong;
}
