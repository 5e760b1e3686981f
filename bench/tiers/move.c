/*
 * bench/tiers/move: moves of the daemon's mover between real tiers, against what the slower of the
 * two tiers gives by itself, and against a bare loop that does both sides' work.
 *
 *   bench_move CONF POOL OSD FOLDER SOCKET [OBJECTS [FROM TO]]      a pool, the admin socket of its
 * only OSD, a folder on a CephFS of the same cluster, a Redis; 8 objects; every move, or the one
 * from cold or warm to warm or hot (bench/tiers/move.sh starts them)
 *
 * Method: objects of 32 MiB lie in the source; the mover (daemon/mover.c, with the daemon's own
 * settings: 4 moves, 64 MiB in flight) copies, hashes, verifies and commits all of them. Beside
 * each run the limits are measured: the source read alone, the destination written alone
 * (move_limit.h), and the same bytes read and written by a bare loop (move_both.h). A round is
 * (read, write, both, move), its order changes from round to round; a round's ratios are move /
 * min(read, write) and move / both. The second is the goal: here both tiers and the mover share
 * processors, and RADOS and CephFS the disk as well, so that neither side is ever alone. Warm is
 * read without the page cache: who moves a shard away did not read it just before. Printed:
 * medians, 95% intervals, CPU seconds per GB of the mover's process and of the bare loop's, the
 * goal. What the mover says it moved must be what the servers counted, within 2%; else the exit
 * status is 1.
 */
#include "bench/measure.h"
#include "bench/tiers/counters.h"
#include "bench/tiers/move_both.h"
#include "core/mem.h"
#include "daemon/mover.h"
#include "tiers/sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 10, OBJECTS_MAX = 64, FLIGHT = 8, MOVES = 4, OBJECT = 4 * WT_PART };

enum place { COLD, WARM, HOT, PLACES };
static const char *const names[PLACES] = {"cold", "warm", "hot"};

struct bench {
    struct wt_tier_opts opts[PLACES];
    struct wt_tier *tier[PLACES];
    const char *osd, *folder, *socket;
    uv_loop_t loop;
    unsigned n;
    struct wt_hash hash[OBJECTS_MAX];
    struct limit_data limit;
    struct both_pool *pool;
    struct wt_mem mem;
    struct bench_meter meter;
    bool wrong;
};

/* The mover sees two tiers: the source, as its cold one, and the destination. */
struct way {
    enum place from, to;
    struct wt_catalog catalog;
    struct wt_catalog_set *set;
    struct wt_mover *mover;
};

/* ---- the data: a data set whose shards are the objects ---- */

static char keys[OBJECTS_MAX][WT_OBJECT_NAME];

static const char *key_of(unsigned i) {
    return keys[i];
}

static void fill(uint8_t *data, unsigned i) {
    uint64_t x = i + 1;
    for (size_t k = 0; k < OBJECT; k += 8) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(data + k, &x, 8);
    }
}

static struct wt_shard_rec record(const struct bench *b, unsigned i) {
    return (struct wt_shard_rec){.hash = b->hash[i],
                                 .size = OBJECT,
                                 .tar_size = OBJECT,
                                 .index_off = OBJECT - 1024,
                                 .first = i,
                                 .samples = 1,
                                 .codec = WT_CODEC_TAR};
}

static void make_names(struct bench *b) {
    for (unsigned i = 0; i < b->n; i++) {
        fill(b->limit.data, i);
        b->hash[i] = wt_hash(b->limit.data, OBJECT);
        struct wt_shard_rec rec = record(b, i);
        wt_shard_name("bench", i, &rec, keys[i]);
    }
}

static void put_objects(struct bench *b, enum place where) {
    struct wt_sync *sync;
    struct wt_tier *tier;
    struct wt_err err = {0};
    if (wt_sync_new(NULL, &sync, &err) < 0 || wt_sync_open(sync, &b->opts[where], &tier, &err) < 0)
        bench_die("%s", err.text);
    for (unsigned i = 0; i < b->n; i++) {
        fill(b->limit.data, i);
        int rc = wt_sync_write(sync, tier, keys[i], b->limit.data, OBJECT, 0, &err);
        if (rc < 0 && rc != WT_EEXISTS)
            bench_die("%s: %s", keys[i], err.text);
    }
    wt_sync_free(sync);
}

static struct wt_dataset make_dataset(const struct bench *b) {
    static uint8_t idx[OBJECTS_MAX * WT_IDX_RECORD];
    struct wt_dataset d;
    struct wt_err err = {0};
    struct wt_manifest m = {.name = "bench",
                            .generation = 1,
                            .created = 1,
                            .shards = b->n,
                            .samples = b->n,
                            .stored_bytes = (uint64_t)b->n * OBJECT,
                            .tar_bytes = (uint64_t)b->n * OBJECT,
                            .pixel_bytes = (uint64_t)b->n * OBJECT,
                            .n_fields = 1};
    for (unsigned i = 0; i < b->n; i++) {
        struct wt_shard_rec rec = record(b, i);
        wt_shard_rec_encode(&rec, idx + (size_t)i * WT_IDX_RECORD);
    }
    size_t len = (size_t)b->n * WT_IDX_RECORD;
    const void *part = idx;
    m.part = calloc(1, sizeof *m.part);
    m.n_parts = 1;
    m.part[0] = (struct wt_idx_part){.hash = wt_hash(idx, len), .records = b->n};
    if (wt_dataset_build(&m, &part, &len, &d, &err) < 0)
        bench_die("%s", err.text);
    return d;
}

/* ---- the mover ---- */

static void way_open(struct bench *b, struct way *w) {
    static const struct wt_mover_conf conf = {.moves = MOVES,
                                              .queue = 1024,
                                              .retries = 0,
                                              .bytes = (uint64_t)FLIGHT * WT_PART,
                                              .backoff_ms = 500,
                                              .backoff_max_ms = 1000};
    static const struct wt_log silent;
    struct wt_tier *tiers[] = {b->tier[w->from], b->tier[w->to]};
    struct wt_dataset d = make_dataset(b);
    struct wt_err err = {0};
    wt_catalog_init(&w->catalog, 2);
    wt_clock_start(&w->catalog.clock, 1, uv_hrtime);
    if (wt_catalog_add(&w->catalog, &d, (struct wt_hash){0}, &w->set, &err) < 0 ||
        wt_mover_new(&b->loop, tiers, &w->catalog, &conf, &silent, &w->mover, &err) < 0)
        bench_die("%s", err.text);
    wt_mover_enable(w->mover, true);
}

static void on_stopped(void *arg) {
    *(bool *)arg = true;
}

static void way_close(struct bench *b, struct way *w) {
    bool stopped = false;
    wt_mover_stop(w->mover, on_stopped, &stopped);
    while (!stopped)
        uv_run(&b->loop, UV_RUN_ONCE);
    wt_mover_free(w->mover);
    wt_catalog_free(&w->catalog);
}

static void say_why(void *arg, const struct wt_move_info *info) {
    (void)arg;
    if (info->rc < 0)
        fprintf(stderr, "%s\n", info->text);
}

/* All objects to the destination, or (drop) away from it. */
static void move_all(struct bench *b, struct way *w, bool drop) {
    struct wt_mover_stats s;
    wt_mover_stats(w->mover, &s);
    uint64_t goal = s.done + b->n;
    for (unsigned i = 0; i < b->n; i++)
        if (wt_mover_add(w->mover, w->set, i, drop ? -1 : 1, drop ? 1 : -1) < 0)
            bench_die("the mover takes no move");
    do {
        uv_run(&b->loop, UV_RUN_ONCE);
        wt_mover_stats(w->mover, &s);
    } while (s.done < goal && !s.failed && !s.refused);
    if (s.done < goal) {
        wt_mover_list(w->mover, WT_MOVES_RECENT, say_why, NULL);
        bench_die("a move from %s to %s failed", names[w->from], names[w->to]);
    }
}

static void clear(struct bench *b, struct way *w) {
    move_all(b, w, true);
    if (w->to == HOT) /* its values go later by themselves: memory is wanted now */
        limit_flush(b->socket);
}

/* ---- rounds ---- */

enum part { READ, WRITE, BOTH, MOVE, PARTS };

struct round {
    double rate[PARTS]; /* bytes a second */
    double cpu[PARTS];  /* seconds per GB */
};

static double bytes_of(const struct bench *b) {
    return (double)b->n * OBJECT;
}

static double both(struct bench *b, const struct way *w) {
    struct both_ends ends = {.from_pool = w->from == COLD ? b->pool : NULL,
                             .from_folder = w->from == WARM ? b->folder : NULL,
                             .to_folder = w->to == WARM ? b->folder : NULL,
                             .to_socket = w->to == HOT ? b->socket : NULL};
    return both_run(&b->limit, &ends);
}

static double move(struct bench *b, struct way *w) {
    double begin = limit_now();
    move_all(b, w, false);
    return limit_now() - begin;
}

static void one_part(struct bench *b, struct way *w, enum part part, struct round *r) {
    if (w->from == WARM)
        limit_uncache(&b->limit, b->folder);
    struct bench_use begin = bench_now(&b->meter);
    double seconds = part == READ   ? limit_read_tier(&b->limit, &b->loop, b->tier[w->from])
                     : part == BOTH ? both(b, w)
                     : part == MOVE ? move(b, w)
                     : w->to == HOT ? limit_write_redis(&b->limit, b->socket)
                                    : limit_write_files(&b->limit, b->folder);
    r->rate[part] = bytes_of(b) / seconds;
    r->cpu[part] = bench_since(&b->meter, &begin).cpu / (bytes_of(b) / 1e9);
    if (part == MOVE)
        clear(b, w);
}

static uint64_t counted(const struct bench *b, enum place where, bool out) {
    if (where == HOT)
        return bench_redis_counter(b->socket,
                                   out ? "total_net_output_bytes" : "total_net_input_bytes");
    return bench_osd_counter(b->osd, out ? "op_r_out_bytes" : "op_w_in_bytes");
}

/* Also warms up. A read of warm may come from the page cache, so only what is written is counted
 * there. */
static void check_bytes(struct bench *b, struct way *w) {
    char what[40];
    struct wt_mover_stats before, after;
    wt_mover_stats(w->mover, &before);
    uint64_t out = counted(b, w->from, true), in = counted(b, w->to, false);
    move_all(b, w, false);
    out = counted(b, w->from, true) - out;
    in = counted(b, w->to, false) - in;
    wt_mover_stats(w->mover, &after);
    double moved = (double)(after.bytes - before.bytes);
    if (w->from != WARM) {
        snprintf(what, sizeof what, "out of %s", names[w->from]);
        b->wrong |= !bench_bytes_agree(what, moved, (double)out);
    }
    snprintf(what, sizeof what, "into %s", names[w->to]);
    b->wrong |= !bench_bytes_agree(what, moved, (double)in);
    clear(b, w);
}

struct figures {
    double rate[PARTS][ROUNDS], cpu[PARTS]; /* MB/s; mean */
    double alone[ROUNDS], both[ROUNDS];     /* ratios */
};

static void print(const struct way *w, struct figures *f) {
    double mid[PARTS];
    for (int part = 0; part < PARTS; part++)
        mid[part] = bench_middle(f->rate[part], ROUNDS).median;
    struct bench_middle alone = bench_middle(f->alone, ROUNDS),
                        both = bench_middle(f->both, ROUNDS);
    printf("%s -> %-4s  moves %5.0f MB/s %.2f CPU s/GB; %s alone reads %5.0f, %s alone writes "
           "%5.0f: ratio to the slower %.3f [%.3f, %.3f]\n",
           names[w->from], names[w->to], mid[MOVE], f->cpu[MOVE], names[w->from], mid[READ],
           names[w->to], mid[WRITE], alone.median, alone.low, alone.high);
    printf("              a bare loop of both %5.0f MB/s %.2f CPU s/GB: ratio %.3f [%.3f, %.3f] "
           "goal 0.90 %s\n",
           mid[BOTH], f->cpu[BOTH], both.median, both.low, both.high,
           both.high >= 0.90 ? "reached" : "MISSED");
}

static void measure(struct bench *b, enum place from, enum place to) {
    struct way w = {.from = from, .to = to};
    struct figures f = {0};
    way_open(b, &w);
    check_bytes(b, &w);
    for (int i = 0; i < ROUNDS; i++) {
        struct round r = {0};
        for (int part = 0; part < PARTS; part++)
            one_part(b, &w, (enum part)((part + i) % PARTS), &r);
        for (int part = 0; part < PARTS; part++) {
            f.rate[part][i] = r.rate[part] / 1e6;
            f.cpu[part] += r.cpu[part] / ROUNDS;
        }
        f.alone[i] = r.rate[MOVE] / (r.rate[READ] < r.rate[WRITE] ? r.rate[READ] : r.rate[WRITE]);
        f.both[i] = r.rate[MOVE] / r.rate[BOTH];
    }
    way_close(b, &w);
    print(&w, &f);
}

static void on_closed(void *arg) {
    (void)arg;
}

static void set_urls(struct bench *b, char **argv) {
    static const char *const forms[PLACES] = {"rados://%s?conf=%s", "file://%s", "redis+unix://%s"};
    for (int p = 0; p < PLACES; p++) {
        struct wt_tier_opts *o = &b->opts[p];
        const char *first = p == COLD ? argv[2] : p == WARM ? argv[4] : argv[5];
        *o = (struct wt_tier_opts){.timeout_ms = 20000};
        snprintf(o->name, sizeof o->name, "%s", names[p]);
        if (p == COLD)
            snprintf(o->url, sizeof o->url, forms[COLD], first, argv[1]);
        else
            snprintf(o->url, sizeof o->url, p == WARM ? forms[WARM] : forms[HOT], first);
    }
}

static bool wanted(int argc, char **argv, enum place from, enum place to) {
    return argc < 9 || (strcmp(argv[7], names[from]) == 0 && strcmp(argv[8], names[to]) == 0);
}

int main(int argc, char **argv) {
    struct bench b = {.n = 8};
    struct wt_err err = {0};
    if (argc < 6)
        bench_die("usage: bench_move CONF POOL OSD FOLDER SOCKET [OBJECTS [FROM TO]]");
    b.osd = argv[3];
    b.folder = argv[4];
    b.socket = argv[5];
    if (argc > 6)
        b.n = (unsigned)strtoul(argv[6], NULL, 10);
    if (b.n < 4 || b.n > OBJECTS_MAX)
        bench_die("OBJECTS is 4 to %d", OBJECTS_MAX);
    setvbuf(stdout, NULL, _IOLBF, 0);
    bench_meter_open(&b.meter);
    if (wt_mem_map(&b.mem, (size_t)FLIGHT * WT_PART, &err) < 0)
        bench_die("%s", err.text);
    b.limit = (struct limit_data){.key = key_of,
                                  .n = b.n,
                                  .size = OBJECT,
                                  .data = b.mem.ptr,
                                  .flight = FLIGHT,
                                  .writers = MOVES};
    set_urls(&b, argv);
    make_names(&b);
    put_objects(&b, COLD);
    uv_loop_init(&b.loop);
    for (int p = 0; p < PLACES; p++)
        if (wt_tier_open(&b.loop, &b.opts[p], NULL, &b.tier[p], &err) < 0)
            bench_die("%s", err.text);
    printf("%u objects of 32 MiB, %d moves at a time, %d parts in flight, %d rounds\n", b.n, MOVES,
           FLIGHT, ROUNDS);
    b.pool = both_pool_open(&b.limit, argv[1], argv[2]);
    if (wanted(argc, argv, COLD, WARM))
        measure(&b, COLD, WARM);
    if (wanted(argc, argv, COLD, HOT))
        measure(&b, COLD, HOT);
    if (wanted(argc, argv, WARM, HOT)) {
        put_objects(&b, WARM);
        measure(&b, WARM, HOT);
    }
    both_pool_close(b.pool);
    for (int p = 0; p < PLACES; p++)
        wt_tier_close(b.tier[p], on_closed, NULL);
    uv_run(&b.loop, UV_RUN_DEFAULT);
    uv_loop_close(&b.loop);
    wt_mem_unmap(&b.mem);
    return b.wrong;
}
