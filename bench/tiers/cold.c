/*
 * bench/tiers/cold: reads of a rados: tier against a bare librados aio loop over the very same
 * objects, at the same depth: whole shards, ranges of 1 MiB and of 64 KiB.
 *
 *   bench_cold CONF POOL OSD [MIB]      a pool that nobody else uses, the admin socket of its only
 * OSD; MIB of data, 512 (bench/tiers/cold.sh starts a Ceph)
 *
 * Method: shards of 64 MiB are put through the tier; then PAIRS alternated pairs (ours, bare; the
 * order changes from pair to pair) read the same ranges in the same order into the same memory,
 * touched before. Printed: MB/s, the median of the pairs' ratios with its 95% interval (order
 * statistics: the 2nd and 9th of 10 hold 97.9%), CPU seconds per GB of this process, the goal. What
 * ours read must be what the OSD counted, within 2%; else the exit status is 1.
 */
#include "bench/tiers/counters.h"
#include "core/mem.h"
#include "tiers/sync.h"

#include <pthread.h>
#include <rados/librados.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
    SHARD = 64 << 20,
    PAIRS = 10,
    DEPTH = 16, /* parts or ranges in flight */
    SHARDS_MAX = 256,
};

struct range {
    uint32_t shard;
    uint64_t off;
};

struct bench {
    const char *conf, *pool, *osd;
    bool wrong; /* the OSD counted other bytes */
    uint32_t shards;
    char part[SHARDS_MAX][200]; /* "KEY@TOKEN": parts are ".N" of it */
    struct wt_mem mem;          /* DEPTH parts and a shard */
    struct range *ranges;
    size_t n_ranges, len; /* of each range; whole shards: parts */
    bool whole;
    uv_loop_t loop;
    struct wt_tier *tier;
    rados_t ceph;
    rados_ioctx_t io;
};

struct result {
    double rate[PAIRS], cpu;
};

static void die(const char *what, const char *why) {
    fprintf(stderr, "bench_cold: %s: %s\n", what, why);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* ---- ours: the tier, requests of a range (or a whole shard) each ---- */

struct ours {
    struct bench *b;
    size_t next, left, requests, per_shard;
    struct wt_req req[DEPTH];
    char key[DEPTH][32];
};

static void next_request(struct ours *o, struct wt_req *req) {
    struct bench *b = o->b;
    size_t slot = (size_t)(req - o->req);
    if (o->next == o->requests)
        return;
    /* A whole shard is one request; its parts go out together. */
    const struct range *r = &b->ranges[o->next++ * o->per_shard];
    snprintf(o->key[slot], sizeof o->key[slot], "shard%u", r->shard);
    req->key = o->key[slot];
    req->off = r->off;
    if (wt_tier_submit(b->tier, req) < 0)
        die("get", req->err.text);
}

static void on_done(struct wt_req *req) {
    struct ours *o = req->arg;
    if (req->rc < 0 || req->got != req->len)
        die("get", req->rc < 0 ? req->err.text : "short");
    o->left--;
    next_request(o, req);
}

static void read_ours(struct bench *b) {
    struct ours *o = calloc(1, sizeof *o);
    size_t len = b->whole ? SHARD : b->len;
    /* One shard more than fits: the tier itself keeps no more than DEPTH parts (128 MiB) in flight.
     */
    size_t slots = b->whole ? (size_t)DEPTH * WT_PART / SHARD + 1 : DEPTH;
    o->b = b;
    o->per_shard = len / b->len;
    o->requests = o->left = b->n_ranges / o->per_shard;
    for (size_t i = 0; i < slots; i++) {
        o->req[i] = (struct wt_req){.op = WT_OP_GET,
                                    .buf = (char *)b->mem.ptr + i * len,
                                    .len = len,
                                    .done = on_done,
                                    .arg = o};
        next_request(o, &o->req[i]);
    }
    while (o->left)
        uv_run(&b->loop, UV_RUN_ONCE);
    free(o);
}

/* ---- bare: rados_aio_read of the parts, DEPTH in flight, the next from where one ended ---- */

struct bare {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    size_t idle[DEPTH], n_idle;
    rados_completion_t completion[DEPTH];
};

struct bare_slot {
    struct bare *bare;
    size_t i;
};

static void on_bare(rados_completion_t completion, void *arg) {
    (void)completion;
    struct bare_slot *s = arg;
    pthread_mutex_lock(&s->bare->lock);
    s->bare->idle[s->bare->n_idle++] = s->i;
    pthread_cond_signal(&s->bare->ended);
    pthread_mutex_unlock(&s->bare->lock);
}

static size_t take_idle(struct bare *x, size_t least) {
    pthread_mutex_lock(&x->lock);
    while (x->n_idle < least)
        pthread_cond_wait(&x->ended, &x->lock);
    size_t i = x->idle[--x->n_idle];
    pthread_mutex_unlock(&x->lock);
    return i;
}

static void reap(struct bench *b, struct bare *x, size_t i) {
    if (!x->completion[i])
        return;
    rados_aio_wait_for_complete(x->completion[i]);
    if (rados_aio_get_return_value(x->completion[i]) != (int)b->len)
        die("rados_aio_read", "short or failed");
    rados_aio_release(x->completion[i]);
    x->completion[i] = NULL;
}

static void read_bare(struct bench *b) {
    struct bare x = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER, .n_idle = DEPTH};
    struct bare_slot slot[DEPTH];
    for (size_t i = 0; i < DEPTH; i++) {
        x.idle[i] = i;
        slot[i] = (struct bare_slot){&x, i};
    }
    for (size_t n = 0; n < b->n_ranges; n++) {
        const struct range *r = &b->ranges[n];
        char oid[256];
        size_t i = take_idle(&x, 1);
        reap(b, &x, i);
        snprintf(oid, sizeof oid, "%s.%llu", b->part[r->shard],
                 (unsigned long long)(r->off / WT_PART));
        rados_aio_create_completion2(&slot[i], on_bare, &x.completion[i]);
        if (rados_aio_read(b->io, oid, x.completion[i], (char *)b->mem.ptr + i * b->len, b->len,
                           r->off % WT_PART) < 0)
            die("rados_aio_read", "refused");
    }
    take_idle(&x, DEPTH);
    for (size_t i = 0; i < DEPTH; i++)
        reap(b, &x, i);
}

/* ---- comparing ---- */

static void measure(struct bench *b, struct result *r, int pair, void (*run)(struct bench *)) {
    double begin = now(), cpu = cpu_seconds(), bytes = (double)(b->n_ranges * b->len);
    run(b);
    r->rate[pair] = bytes / (now() - begin) / 1e6;
    r->cpu += (cpu_seconds() - cpu) / (bytes / 1e9) / PAIRS;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v) {
    qsort(v, PAIRS, sizeof *v, by_value);
    return (v[PAIRS / 2 - 1] + v[PAIRS / 2]) / 2;
}

/* Also warms up. */
static void check_bytes(struct bench *b, const char *what) {
    uint64_t before = bench_osd_counter(b->osd, "op_r_out_bytes");
    read_ours(b);
    uint64_t counted = bench_osd_counter(b->osd, "op_r_out_bytes") - before;
    b->wrong |= !bench_bytes_agree(what, (double)(b->n_ranges * b->len), (double)counted);
}

static void compare(struct bench *b, const char *what) {
    struct result ours = {0}, bare = {0};
    double ratio[PAIRS];
    check_bytes(b, what);
    read_bare(b);
    for (int pair = 0; pair < PAIRS; pair++) {
        if (pair % 2)
            measure(b, &bare, pair, read_bare);
        measure(b, &ours, pair, read_ours);
        if (pair % 2 == 0)
            measure(b, &bare, pair, read_bare);
        ratio[pair] = ours.rate[pair] / bare.rate[pair];
    }
    double middle = median(ratio);
    printf("%-14s ours %5.0f MB/s %.2f CPU s/GB, bare aio %5.0f MB/s %.2f CPU s/GB: ratio %.3f "
           "[%.3f, %.3f] goal 0.95 %s\n",
           what, median(ours.rate), ours.cpu, median(bare.rate), bare.cpu, middle, ratio[1],
           ratio[PAIRS - 2], ratio[PAIRS - 2] >= 0.95 ? "reached" : "MISSED");
}

/* ---- setting up ---- */

static void write_shards(struct bench *b, const struct wt_tier_opts *opts) {
    struct wt_sync *sync;
    struct wt_tier *tier;
    struct wt_err err = {0};
    uint8_t *data = malloc(SHARD);
    for (size_t i = 0; i < SHARD; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    if (!data || wt_sync_new(NULL, &sync, &err) < 0 || wt_sync_open(sync, opts, &tier, &err) < 0)
        die("open", err.text);
    for (uint32_t i = 0; i < b->shards; i++) {
        char key[32];
        snprintf(key, sizeof key, "shard%u", i);
        if (wt_sync_write(sync, tier, key, data, SHARD, 0, &err) < 0)
            die("put", err.text);
    }
    wt_sync_free(sync);
    free(data);
}

static void connect_bare(struct bench *b) {
    rados_list_ctx_t list;
    const char *name;
    if (rados_create(&b->ceph, "admin") < 0 || rados_conf_read_file(b->ceph, b->conf) < 0 ||
        rados_connect(b->ceph) < 0 || rados_ioctx_create(b->ceph, b->pool, &b->io) < 0)
        die("connect", b->pool);
    if (rados_nobjects_list_open(b->io, &list) < 0)
        die("list", b->pool);
    while (rados_nobjects_list_next(list, &name, NULL, NULL) == 0) {
        const char *at = strchr(name, '@'), *dot = strrchr(name, '.');
        unsigned long shard = at ? strtoul(name + strlen("shard"), NULL, 10) : SHARDS_MAX;
        if (at && dot && shard < SHARDS_MAX)
            snprintf(b->part[shard], sizeof b->part[shard], "%.*s", (int)(dot - name), name);
    }
    rados_nobjects_list_close(list);
}

/* Every part once, or as many ranges as make a quarter of the data, anywhere. */
static void plan(struct bench *b, size_t len, bool whole) {
    uint64_t total = (uint64_t)b->shards * SHARD, x = 12345;
    b->len = len;
    b->whole = whole;
    b->n_ranges = (size_t)(whole ? total / len : total / 4 / len);
    free(b->ranges);
    b->ranges = calloc(b->n_ranges, sizeof *b->ranges);
    for (size_t i = 0; i < b->n_ranges; i++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t at = whole ? i * (uint64_t)len : (x >> 20) % (total / len) * len;
        b->ranges[i] = (struct range){(uint32_t)(at / SHARD), at % SHARD};
    }
}

static void on_closed(void *arg) {
    (void)arg;
}

int main(int argc, char **argv) {
    static struct bench b;
    struct wt_tier_opts opts = {.name = "cold", .depth = DEPTH, .timeout_ms = 60000};
    struct wt_err err = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 4)
        die("usage", "bench_cold CONF POOL OSD [MIB]");
    b.conf = argv[1];
    b.pool = argv[2];
    b.osd = argv[3];
    unsigned long mib = argc > 4 ? strtoul(argv[4], NULL, 10) : 512;
    b.shards = (uint32_t)(mib / (SHARD >> 20));
    if (b.shards < 2 || b.shards > SHARDS_MAX)
        die("usage", "MIB is 128 to 16384");
    int n = snprintf(opts.url, sizeof opts.url, "rados://%s?conf=%s", b.pool, b.conf);
    if (n < 0 || (size_t)n >= sizeof opts.url)
        die("usage", "CONF is too long");
    if (wt_mem_map(&b.mem, (size_t)DEPTH * WT_PART + SHARD, &err) < 0)
        die("memory", err.text);
    write_shards(&b, &opts);
    connect_bare(&b);
    uv_loop_init(&b.loop);
    if (wt_tier_open(&b.loop, &opts, NULL, &b.tier, &err) < 0)
        die("open", err.text);
    printf("%u shards of 64 MiB, %d in flight, %d pairs\n", b.shards, DEPTH, PAIRS);
    plan(&b, WT_PART, true);
    compare(&b, "whole shards");
    plan(&b, 1 << 20, false);
    compare(&b, "ranges 1 MiB");
    plan(&b, 64 << 10, false);
    compare(&b, "ranges 64 KiB");
    wt_tier_close(b.tier, on_closed, NULL);
    uv_run(&b.loop, UV_RUN_DEFAULT);
    uv_loop_close(&b.loop);
    rados_ioctx_destroy(b.io);
    rados_shutdown(b.ceph);
    wt_mem_unmap(&b.mem);
    free(b.ranges);
    return b.wrong;
}
