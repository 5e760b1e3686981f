/*
 * The time axis with a loader as it is: it fetches whole windows, of several lanes, some distance
 * ahead of what is consumed, so that where it fetches leaps while it consumes at a steady pace.
 * When each shard is read must be foreseen all the same, and what was read is not foreseen again.
 */
#include "daemon/policy/horizon.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SHARDS = 96, SAMPLES = 4, LANES = 2, WINDOW = 4, SHARE = 2, EPOCHS = 4 };

struct world { /* a job that consumes a sample of each lane a second */
    struct wt_horizon *h;
    int job;
    uint64_t cum[SHARDS + 1], lead; /* a window is fetched so far ahead of what is consumed */
    uint64_t span;
    struct wt_future future;
};

static void make(struct world *w, uint64_t lead, uint64_t ahead) {
    struct wt_plan_opts o = {.samples = SHARDS * SAMPLES,
                             .seed = 7,
                             .batch = LANES * SHARE,
                             .block = SAMPLES,
                             .lanes = LANES,
                             .window = WINDOW};
    struct wt_err err;
    *w = (struct world){.lead = lead, .h = wt_horizon_new()};
    assert_non_null(w->h);
    for (uint64_t i = 0; i <= SHARDS; i++)
        w->cum[i] = i * SAMPLES;
    struct wt_horizon_opts opts = {
        .cum = w->cum, .shards = SHARDS, .epochs = EPOCHS, .ahead = ahead};
    assert_int_equal(wt_plan_init(&opts.plan, &o, &err), 0);
    wt_future_init(&w->future, &opts.plan, w->cum, SHARDS, EPOCHS, ahead);
    w->span = w->future.span;
    w->job = wt_horizon_join(w->h, &opts, 0);
    assert_int_equal(w->job, 0);
}

/* The first lane's first window that is not being fetched yet, and where the consumer stands: it
 * tells of whole steps. */
static void report(struct world *w, double now) {
    uint64_t used = (uint64_t)now, size = WINDOW * SAMPLES;
    uint64_t next = (used + w->lead) / size * size + size;
    wt_horizon_report(w->h, w->job, next, used - used % SHARE, now);
}

/* When it was read, by the true lead. */
static double true_time(const struct world *w, uint64_t x) {
    return (double)x - (double)w->lead;
}

static void windows_are_foreseen(void **state) {
    (void)state;
    static const uint64_t leads[] = {0, 5, 16, 40}; /* half a window to two and a half */
    for (size_t i = 0; i < 4; i++) {
        struct world w;
        double worst = 0;
        make(&w, leads[i], WINDOW * SAMPLES);
        for (double now = 0; now < (double)w.span * 2; now += 0.5) {
            struct wt_horizon_use use;
            report(&w, now);
            if (now < 4 * WINDOW * SAMPLES || !wt_horizon_peek(w.h, now, &use))
                continue;
            assert_true(use.t >= now - 1e-6);
            worst = fmax(worst, fabs(use.t - true_time(&w, use.x)));
        }
        print_message("lead %llu: off by %.2f s at most\n", (unsigned long long)leads[i], worst);
        assert_true(worst <= 2 * SHARE); /* a window takes 16 s */
        wt_horizon_free(w.h);
    }
}

/* Shards of one window share one place on the axis: each of them has passed. */
static void what_was_read_comes_an_epoch_later(void **state) {
    (void)state;
    struct world w;
    uint64_t shard, seen = 0;
    make(&w, 16, WINDOW * SAMPLES);
    for (double now = 0; now < (double)w.span * 2; now += 0.5) {
        report(&w, now);
        while (wt_horizon_passed(w.h, now, 1, &shard)) {
            double next = wt_horizon_next(w.h, shard);
            assert_true(next >= now - 1 - 1e-6);
            seen++;
        }
    }
    assert_in_range(seen, 2 * SHARDS - 8, 2 * SHARDS + 40);
    for (uint64_t i = 0; i < SHARDS; i++)
        assert_true(wt_horizon_next(w.h, i) >= (double)w.span * 2 - 2);
    wt_horizon_free(w.h);
}

/* It begins again elsewhere: what it had learnt of itself does not stand in the way. */
static void a_job_that_leaps_is_followed(void **state) {
    (void)state;
    struct world w;
    struct wt_horizon_use use;
    make(&w, 16, WINDOW * SAMPLES);
    double now = 0;
    for (; now < (double)w.span; now += 0.5)
        report(&w, now);
    for (double from = 10; from < (double)w.span; from += 0.5, now += 0.5) {
        uint64_t used = (uint64_t)from, size = WINDOW * SAMPLES;
        wt_horizon_report(w.h, w.job, (used + w.lead) / size * size + size, used - used % SHARE,
                          now);
        if (from > 10 + 4 * (double)size && wt_horizon_peek(w.h, now, &use))
            assert_true(fabs(use.t - (true_time(&w, use.x) + now - from)) <= 2 * SHARE);
    }
    wt_horizon_free(w.h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_foreseen),
        cmocka_unit_test(what_was_read_comes_an_epoch_later),
        cmocka_unit_test(a_job_that_leaps_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
