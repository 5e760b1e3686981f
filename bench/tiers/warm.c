/*
 * bench/tiers/warm: reads of a file: tier against fio on the same files, with the same block size
 * and as many reads in flight; page cache dropped before each run, and warm.
 *
 *   bench_warm FOLDER [MIB]      a folder on the mount; MIB of data, 512 (bench/tiers/warm.sh
 * mounts a CephFS, and takes a local disk)
 *
 * Method: DEPTH objects are put through the tier. Both read all of them, each by one reader, from
 * begin to end in blocks of 8 MiB: ours as DEPTH requests in flight, fio as DEPTH threads (psync).
 * PAIRS alternated pairs (the order changes from pair to pair). Printed: MB/s (fio's as it reports
 * it, without its start), the median of the pairs' ratios with its 95% interval, CPU seconds per
 * GB, the goal. Dropping the page cache needs root; without it that part is left out, and says so.
 */
#include "bench/measure.h"
#include "core/mem.h"
#include "tiers/sync.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH = 4, PAIRS = 10, CACHED_ROUNDS = 4 };

struct bench {
    const char *folder;
    size_t size; /* of an object */
    unsigned rounds;
    uv_loop_t loop;
    struct wt_tier *tier;
    struct wt_mem mem; /* DEPTH parts */
    struct bench_meter meter;
};

struct rate {
    double mbps, cpu; /* CPU seconds per GB */
};

/* ---- ours ---- */

struct reader {
    struct bench *b;
    struct wt_req req;
    char key[16];
    unsigned rounds; /* still to read */
    unsigned *busy;
};

static void submit(struct reader *r) {
    if (wt_tier_submit(r->b->tier, &r->req) < 0)
        bench_die("%s", r->req.err.text);
}

static void on_read(struct wt_req *req) {
    struct reader *r = req->arg;
    if (req->rc < 0 || req->got != req->len)
        bench_die("%s: %s", r->key, req->rc < 0 ? req->err.text : "it is short");
    req->off += req->len;
    if (req->off == r->b->size) {
        req->off = 0;
        r->rounds--;
    }
    if (r->rounds)
        submit(r);
    else
        --*r->busy;
}

static void read_all(struct bench *b) {
    struct reader reader[DEPTH];
    unsigned busy = DEPTH;
    for (unsigned i = 0; i < DEPTH; i++) {
        reader[i] = (struct reader){.b = b, .rounds = b->rounds, .busy = &busy};
        snprintf(reader[i].key, sizeof reader[i].key, "bench.%u", i);
        reader[i].req = (struct wt_req){.op = WT_OP_GET,
                                        .key = reader[i].key,
                                        .buf = (char *)b->mem.ptr + (size_t)i * WT_PART,
                                        .len = WT_PART,
                                        .done = on_read,
                                        .arg = &reader[i]};
        submit(&reader[i]);
    }
    while (busy)
        uv_run(&b->loop, UV_RUN_ONCE);
}

static double gigabytes(const struct bench *b) {
    return (double)b->size * DEPTH * b->rounds / 1e9;
}

static struct rate run_ours(struct bench *b) {
    struct bench_use begin = bench_now(&b->meter);
    read_all(b);
    struct bench_use use = bench_since(&b->meter, &begin);
    return (struct rate){gigabytes(b) * 1e3 / use.wall, use.cpu / gigabytes(b)};
}

/* ---- fio ---- */

static double number(const json_t *o, const char *name) {
    const json_t *v = json_object_get(o, name);
    if (!json_is_number(v))
        bench_die("fio's answer has no %s", name);
    return json_number_value(v);
}

static struct rate run_fio(struct bench *b) {
    char command[1000];
    snprintf(command, sizeof command,
             "timeout 120 fio --name=warm --directory='%s' --filename_format='bench.$jobnum' "
             "--numjobs=%d --thread --rw=read --bs=%d --size=%zu --loops=%u --ioengine=psync "
             "--invalidate=0 --group_reporting --output-format=json",
             b->folder, DEPTH, WT_PART, b->size, b->rounds);
    FILE *f = popen(command, "re");
    json_t *root = f ? json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    if (!root || pclose(f) != 0)
        bench_die("fio failed (is it installed? scripts/setup dev): %s", command);
    const json_t *job = json_array_get(json_object_get(root, "jobs"), 0);
    const json_t *read = json_object_get(job, "read");
    double bytes = number(read, "io_bytes"), ms = number(read, "runtime");
    /* Percents of each thread's time, on average. */
    double cpu = (number(job, "usr_cpu") + number(job, "sys_cpu")) / 100 * DEPTH * ms / 1e3;
    if (bytes < gigabytes(b) * 1e9 * 0.999)
        bench_die("fio read %.0f bytes only", bytes);
    struct rate rate = {number(read, "bw_bytes") / 1e6, cpu / (bytes / 1e9)};
    json_decref(root);
    return rate;
}

/* ---- pairs ---- */

/* false: nobody but root may. */
static bool drop_page_cache(void) {
    FILE *f = fopen("/proc/sys/vm/drop_caches", "we");
    if (!f)
        return false;
    sync();
    fputs("1\n", f);
    return fclose(f) == 0;
}

static struct rate run(struct bench *b, bool ours, bool drop) {
    if (drop && !drop_page_cache())
        bench_die("the page cache can no longer be dropped");
    return ours ? run_ours(b) : run_fio(b);
}

static void compare(struct bench *b, bool drop) {
    double ratio[PAIRS], ours[PAIRS], fio[PAIRS], our_cpu = 0, fio_cpu = 0;
    b->rounds = drop ? 1 : CACHED_ROUNDS;
    run_ours(b);
    for (int i = 0; i < PAIRS; i++) {
        struct rate x[2];
        bool first = i % 2 == 0;
        x[first] = run(b, first, drop);
        x[!first] = run(b, !first, drop);
        ours[i] = x[1].mbps;
        fio[i] = x[0].mbps;
        ratio[i] = x[1].mbps / x[0].mbps;
        our_cpu += x[1].cpu / PAIRS;
        fio_cpu += x[0].cpu / PAIRS;
    }
    struct bench_middle m = bench_middle(ratio, PAIRS);
    printf("%-19s ours %5.0f MB/s %.2f CPU s/GB, fio %5.0f MB/s %.2f CPU s/GB: ratio %.3f [%.3f, "
           "%.3f] goal 0.95 %s\n",
           drop ? "page cache dropped" : "page cache warm", bench_middle(ours, PAIRS).median,
           our_cpu, bench_middle(fio, PAIRS).median, fio_cpu, m.median, m.low, m.high,
           m.high >= 0.95 ? "reached" : "MISSED");
}

static void write_objects(struct bench *b, const struct wt_tier_opts *opts) {
    struct wt_sync *sync;
    struct wt_tier *tier;
    struct wt_err err = {0};
    uint8_t *data = malloc(b->size);
    if (!data || wt_sync_new(NULL, &sync, &err) < 0 || wt_sync_open(sync, opts, &tier, &err) < 0)
        bench_die("open: %s", err.text);
    for (size_t i = 0; i < b->size; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    for (unsigned i = 0; i < DEPTH; i++) {
        char key[16];
        snprintf(key, sizeof key, "bench.%u", i);
        int rc = wt_sync_write(sync, tier, key, data, b->size, 0, &err);
        if (rc < 0 && rc != WT_EEXISTS)
            bench_die("put: %s", err.text);
    }
    wt_sync_free(sync);
    free(data);
}

static void on_closed(void *arg) {
    (void)arg;
}

int main(int argc, char **argv) {
    struct bench b = {.folder = argc > 1 ? argv[1] : ""};
    struct wt_tier_opts opts = {.name = "warm", .depth = DEPTH, .timeout_ms = 60000};
    struct wt_err err = {0};
    size_t mib = argc > 2 ? strtoul(argv[2], NULL, 10) : 512;
    b.size = (mib << 20) / DEPTH / WT_PART * WT_PART;
    int n = snprintf(opts.url, sizeof opts.url, "file://%s", b.folder);
    if (b.folder[0] != '/' || b.size == 0 || n < 0 || (size_t)n >= sizeof opts.url)
        bench_die("usage: bench_warm FOLDER [MIB]: an absolute path, 32 MiB or more");
    setvbuf(stdout, NULL, _IOLBF, 0);
    bench_meter_open(&b.meter);
    if (wt_mem_map(&b.mem, (size_t)DEPTH * WT_PART, &err) < 0)
        bench_die("%s", err.text);
    write_objects(&b, &opts);
    uv_loop_init(&b.loop);
    if (wt_tier_open(&b.loop, &opts, NULL, &b.tier, &err) < 0)
        bench_die("%s", err.text);
    printf("%s: %d objects of %zu MiB, blocks of 8 MiB, %d in flight, %d pairs\n", b.folder, DEPTH,
           b.size >> 20, DEPTH, PAIRS);
    if (drop_page_cache())
        compare(&b, true);
    else
        printf("page cache dropped: LEFT OUT, only root may drop it\n");
    compare(&b, false);
    wt_tier_close(b.tier, on_closed, NULL);
    uv_run(&b.loop, UV_RUN_DEFAULT);
    uv_loop_close(&b.loop);
    wt_mem_unmap(&b.mem);
    return 0;
}
