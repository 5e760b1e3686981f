/*
 * What foresight costs at size: a pass over all shards in slices, one event, and memory.
 *
 *     bench_pass [SHARDS [JOBS]]        10 million, 50; a quarter of the shards is above cold
 *
 * Limits are those of the design: a pass in 20 s, slices of 5 ms, an event in 5 us, 96 bytes a
 * shard.
 */
#include "core/mem.h"
#include "daemon/policy/foresight.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SLICE = 6000, STATE = 16, CUM = 8 }; /* SLICE: the daemon's budget of a slice */

struct bench {
    uint64_t shards;
    uint64_t *cum;
    struct wt_foresight *f;
    uint64_t moves;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void get(void *arg, uint64_t i, struct wt_policy_shard *out) {
    (void)arg;
    *out = (struct wt_policy_shard){.size = 64 << 20, .mask = i % 4 == 0 ? 3 : 1};
}

static bool take(void *arg, const struct wt_foresight_move *m) {
    (void)m;
    ((struct bench *)arg)->moves++;
    return true;
}

static void join(struct bench *b, uint64_t seed) {
    struct wt_plan_opts o = {.samples = b->shards * 100, .seed = seed, .batch = 1024, .block = 100};
    struct wt_horizon_opts h = {.cum = b->cum, .shards = b->shards};
    struct wt_err err;
    if (wt_plan_init(&h.plan, &o, &err) < 0)
        abort();
    h.ahead = h.plan.o.window * h.plan.o.block;
    int job = wt_horizon_join(wt_foresight_horizon(b->f), &h, 0);
    uint64_t span = h.plan.steps * h.plan.lane_batch;
    uint64_t place = span / 97 * seed; /* an epoch in ten hours, each elsewhere in it */
    wt_horizon_report(wt_foresight_horizon(b->f), job, place, place, 1);
    wt_horizon_report(wt_foresight_horizon(b->f), job, place + span / 36000, place + span / 36000,
                      2);
}

struct cost {
    double total, worst;
    uint64_t slices;
};

static struct cost work(struct bench *b, double at) {
    static const struct wt_policy_conf conf = {.high = 1, .low = 1};
    struct wt_policy_tier tiers[2] = {{.usable = true}, {.usable = true}};
    struct wt_foresight_pace pace = {.react = 1, .copy = 0.5, .moves = 16, .half_life = 3600};
    struct wt_policy_view view = {.shards = b->shards, .get = get, .arg = b};
    tiers[1].capacity = tiers[1].used = (b->shards + 3) / 4 * (UINT64_C(64) << 20);
    struct cost c = {0};
    bool done = false;
    double wake;
    while (!done) {
        double start = now();
        done = wt_foresight_run(b->f, &conf, &view, tiers, &pace, at, SLICE, take, b, &wake);
        double took = now() - start;
        c.total += took;
        c.worst = took > c.worst ? took : c.worst;
        c.slices++;
    }
    return c;
}

int main(int argc, char **argv) {
    struct bench b = {.shards = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000};
    uint64_t jobs = argc > 2 ? strtoull(argv[2], NULL, 10) : 50;
    b.cum = wt_calloc(b.shards + 1, sizeof *b.cum);
    b.f = wt_foresight_new(2);
    size_t before = mallinfo2().hblkhd + mallinfo2().uordblks;
    if (!b.cum || !b.f || !wt_foresight_resize(b.f, b.shards))
        return 1;
    for (uint64_t i = 0; i <= b.shards; i++)
        b.cum[i] = i * 100;
    for (uint64_t j = 0; j < jobs; j++)
        join(&b, j + 1);
    struct cost pass = work(&b, 2);
    size_t after = mallinfo2().hblkhd + mallinfo2().uordblks;
    printf("%" PRIu64 " shards, %" PRIu64 " jobs\n", b.shards, jobs);
    printf("%-28s %10s %10s %8s\n", "", "measured", "limit", "ratio");
    printf("%-28s %8.2f s %8.0f s %8.3f\n", "pass over all shards", pass.total, 20.0,
           pass.total / 20);
    printf("%-28s %7.2f ms %7.0f ms %8.3f\n", "worst slice", pass.worst * 1e3, 5.0,
           pass.worst * 1e3 / 5);
    double bytes = (double)(after - before) / (double)b.shards + STATE + CUM;
    printf("%-28s %9.1f B %8.0f B %8.3f\n", "memory a shard", bytes, 96.0, bytes / 96);
    struct wt_foresight_stats s0, s1;
    wt_foresight_stats(b.f, &s0);
    struct cost events = work(&b, 7); /* five seconds of all jobs */
    wt_foresight_stats(b.f, &s1);
    double n = (double)jobs * (double)b.shards / 36000 * 5;
    printf("%-28s %7.2f us %7.0f us %8.3f   (%.0f uses passed and to come, %" PRIu64 " decided)\n",
           "an event", events.total / n * 1e6 / 2, 5.0, events.total / n * 1e6 / 2 / 5, n,
           s1.bypassed + s1.staged + s1.late - s0.bypassed - s0.staged - s0.late);
    wt_foresight_free(b.f);
    free(b.cum);
    return 0;
}
