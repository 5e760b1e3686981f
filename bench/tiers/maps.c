/*
 * bench/tiers/maps: what a safe mapping costs (tiers/file/lease.c), and what reading instead of
 * mapping would.
 *
 *   bench_maps [FOLDER]        a folder on tmpfs, /dev/shm by default
 *
 * Method: objects of three sizes. "map": MAP and release of an object that is not mapped yet, with
 * a lease (map=safe) and without (map=always), pages faulted in by both. "use": all of the objects
 * copied into memory that was touched before, from kept mappings (the limit: a memcpy) and by GET
 * (map=never). Medians of ROUNDS; faults by getrusage. The leases' thread runs during "use".
 */
#include "core/mem.h"
#include "tiers/sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 15, TOTAL = 256 << 20 };

struct bench {
    char folder[300];
    struct wt_sync *sync;
    struct wt_tier *safe, *always, *never;
    size_t size;
    unsigned n;
    struct wt_mem to;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what, const struct wt_err *err) {
    fprintf(stderr, "bench_maps: %s: %s\n", what, err->text);
    exit(1);
}

static struct wt_tier *open_tier(struct bench *b, const char *map) {
    struct wt_tier_opts opts = {.name = "t"};
    struct wt_tier *tier;
    struct wt_err err = {0};
    snprintf(opts.url, sizeof opts.url, "file://%s?map=%s", b->folder, map);
    if (wt_sync_open(b->sync, &opts, &tier, &err) < 0)
        die("open", &err);
    return tier;
}

static const char *key(unsigned i) {
    static char text[20];
    snprintf(text, sizeof text, "o%u", i);
    return text;
}

static struct wt_map *map(struct bench *b, struct wt_tier *tier, unsigned i) {
    struct wt_req req = {.op = WT_OP_MAP, .key = key(i)};
    if (wt_sync_do(b->sync, tier, &req) < 0)
        die("map", &req.err);
    return req.map;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double t[ROUNDS]) {
    qsort(t, ROUNDS, sizeof t[0], by_value);
    return t[ROUNDS / 2];
}

/* Seconds for one map and release. */
static double map_all(struct bench *b, struct wt_tier *tier) {
    double begin = now();
    for (unsigned i = 0; i < b->n; i++)
        wt_map_release(map(b, tier, i));
    return (now() - begin) / b->n;
}

static double copy_all(struct bench *b, struct wt_map *const *maps) {
    double begin = now();
    for (unsigned i = 0; i < b->n; i++)
        memcpy((char *)b->to.ptr + i * b->size, wt_map_view(maps[i]).data, b->size);
    return now() - begin;
}

static double get_all(struct bench *b) {
    double begin = now();
    for (unsigned i = 0; i < b->n; i++) {
        struct wt_req req = {
            .op = WT_OP_GET, .key = key(i), .buf = (char *)b->to.ptr + i * b->size, .len = b->size};
        if (wt_sync_do(b->sync, b->never, &req) < 0)
            die("get", &req.err);
    }
    return now() - begin;
}

static long faults(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return r.ru_minflt;
}

static void run(struct bench *b) {
    struct wt_map *safe[TOTAL >> 20], *always[TOTAL >> 20];
    double t[5][ROUNDS];
    struct wt_err err = {0};
    for (unsigned i = 0; i < b->n; i++)
        if (wt_sync_write(b->sync, b->safe, key(i), b->to.ptr, b->size, 0, &err) < 0)
            die("put", &err);
    for (unsigned r = 0; r < ROUNDS; r++) {
        t[0][r] = map_all(b, b->safe) * 1e6;
        t[1][r] = map_all(b, b->always) * 1e6;
    }
    for (unsigned i = 0; i < b->n; i++) {
        safe[i] = map(b, b->safe, i);
        always[i] = map(b, b->always, i);
    }
    long before = faults();
    double gb = (double)b->size * b->n / 1e9;
    for (unsigned r = 0; r < ROUNDS; r++) {
        t[2][r] = gb / copy_all(b, safe);
        t[3][r] = gb / copy_all(b, always);
        t[4][r] = gb / get_all(b);
    }
    before = faults() - before;
    for (unsigned i = 0; i < b->n; i++) {
        wt_map_release(safe[i]);
        wt_map_release(always[i]);
        wt_sync_remove(b->sync, b->safe, key(i), NULL);
    }
    double m[5];
    for (unsigned i = 0; i < 5; i++)
        m[i] = median(t[i]);
    printf("%5zu MiB x %3u   map: lease %7.1f us, bare %7.1f us, ratio %.2f   use: lease %5.2f, "
           "bare %5.2f, GET %5.2f GB/s (of bare %.2f, %.2f); %ld faults\n",
           b->size >> 20, b->n, m[0], m[1], m[0] / m[1], m[2], m[3], m[4], m[2] / m[3], m[4] / m[3],
           before);
}

int main(int argc, char **argv) {
    struct bench b = {.n = 0};
    struct wt_err err = {0};
    snprintf(b.folder, sizeof b.folder, "%.200s/wt-bench-maps-XXXXXX",
             argc > 1 ? argv[1] : "/dev/shm");
    if (!mkdtemp(b.folder) || wt_sync_new(NULL, &b.sync, &err) < 0 ||
        wt_mem_map(&b.to, TOTAL, &err) < 0)
        die(b.folder, &err);
    b.safe = open_tier(&b, "safe");
    b.always = open_tier(&b, "always");
    b.never = open_tier(&b, "never");
    static const size_t sizes[] = {1 << 20, 8 << 20, 64 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        b.size = sizes[i];
        b.n = (unsigned)(TOTAL / b.size);
        run(&b);
    }
    wt_sync_free(b.sync);
    wt_mem_unmap(&b.to);
    char temporaries[350];
    snprintf(temporaries, sizeof temporaries, "%s/.wafertier.tmp", b.folder);
    rmdir(temporaries);
    rmdir(b.folder);
    return 0;
}
