/* Counters of a loader: written by any thread without a lock, read by wl_get_stats. */
#ifndef WT_LOADER_STATS_H
#define WT_LOADER_STATS_H

#include <wafertier/loader.h>

#include <stdatomic.h>
#include <stdint.h>

enum wt_stage_id { WT_AT_FETCH, WT_AT_DECODE, WT_AT_STAGE, WT_AT_DELIVER, WT_STAGES };

enum wt_blame_id {
    WT_BLAME_NOBODY,
    WT_BLAME_FETCH,
    WT_BLAME_DECODE,
    WT_BLAME_STAGE,
    WT_BLAME_CONSUMER,
    WT_BLAMES
};

struct wt_meter {
    struct {
        _Atomic uint64_t busy_ns, wait_ns;
    } stage[WT_STAGES];
    struct {
        _Atomic uint64_t reads, bytes, misses, failures;
        _Atomic uint64_t stalled_ns; /* of fetch: while it was read from */
    } tier[WL_MAX_TIERS];
    _Atomic uint64_t batches, samples, bytes, stall_ns, bad, retries, joins, waits, met;
    _Atomic uint64_t stalled_ns[WT_BLAMES]; /* parts of stall_ns, by what was waited for */
    _Atomic int blame;                      /* enum wt_blame_id */
    _Atomic int blame_tier;                 /* -1: none */
};

static inline void wt_count(_Atomic uint64_t *counter, uint64_t n) {
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

#endif
