/*
 * A loader alone, as a trainer would drive it: how fast it can go, what holds it back, what to
 * change. The figures are differences of wl_get_stats over a time.
 */
#ifndef WT_TOOLS_LOADTEST_H
#define WT_TOOLS_LOADTEST_H

#include "core/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <wafertier/loader.h>

struct wt_loadtest_phase {
    double seconds;
    double stall_s; /* of them in wl_next */
    uint64_t samples, bytes;
    wl_stats d; /* counters: what the phase added; queues, memory, down: at its end */
    bool ended; /* the loader had no more batches */
};

struct wt_loadtest {
    const char *dataset;
    unsigned threads, processors;
    double rate;          /* samples a second of this rank; 0: none was asked for */
    double first_batch_s; /* from wl_open's begin */
    wl_info info;
    struct wt_loadtest_phase paced, flat; /* paced: only with a rate */
};

/* Takes batches for `seconds`; rate 0: as they come, else each batch is worked on for rows / rate.
 * `stopped` is asked between batches. */
int wt_loadtest_run(wl_loader *l, double seconds, double rate, bool (*stopped)(void *), void *arg,
                    struct wt_loadtest_phase *out, struct wt_err *err);

/* What the consumer waited for longest in a phase: "fetch", "decode", "stage", "consumer"; NULL
 * when it did not wait. *tier (may be NULL): for fetch the tier, else -1. */
const char *wt_loadtest_bottleneck(const struct wt_loadtest_phase *p, int *tier);
/* Part of the time that the paced consumer waited. */
double wt_loadtest_waits(const struct wt_loadtest_phase *p);

void wt_loadtest_print(const struct wt_loadtest *t);
int wt_loadtest_print_json(const struct wt_loadtest *t, struct wt_err *err);

#endif
