/*
 * bench/plan: nanoseconds per index and per inverse of the keyed permutation, and how long an epoch
 * over 10 million shards takes to start. Prints the goal beside each figure.
 */
#include "core/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef uint64_t (*perm_fn)(const struct wt_perm *p, uint64_t i);

/* Median of 11 runs of a million calls, in ns a call. */
static double time_perm(perm_fn fn, uint64_t n, uint64_t *sink) {
    enum { RUNS = 11, CALLS = 1000000 };
    double ns[RUNS];
    for (uint64_t r = 0; r < RUNS; r++) {
        struct wt_perm p = wt_perm_make(n, 1, r, 1);
        double start = now();
        for (uint64_t i = 0; i < CALLS; i++)
            *sink += fn(&p, i % n);
        ns[r] = (now() - start) / CALLS;
    }
    qsort(ns, RUNS, sizeof ns[0], by_value);
    return ns[RUNS / 2];
}

static double time_epoch_start(uint64_t shards, uint64_t *sink) {
    struct wt_plan plan;
    struct wt_plan_opts o = {.samples = shards * 100, .batch = 1024, .block = 100, .seed = 1};
    double start = now();
    if (wt_plan_init(&plan, &o, NULL) < 0)
        return -1;
    struct wt_epoch e = wt_plan_epoch(&plan, 3);
    for (uint32_t l = 0; l < plan.o.lanes; l++)
        *sink += wt_epoch_sample(&e, l, 0);
    return (now() - start) / 1e9;
}

int main(void) {
    static const uint64_t sizes[] = {50, 1000, 100000, 10000000, 1000000000};
    uint64_t sink = 0;
    printf("%-12s  %10s  %12s  (goal <= 40 ns)\n", "blocks", "index ns", "inverse ns");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        printf("%-12llu  %10.1f  %12.1f\n", (unsigned long long)sizes[i],
               time_perm(wt_perm_at, sizes[i], &sink), time_perm(wt_perm_inverse, sizes[i], &sink));
    printf("start of an epoch over 10 million shards: %.6f s (goal <= 1 s)\n",
           time_epoch_start(10000000, &sink));
    return sink == 42; /* the calls are not optimised away */
}
