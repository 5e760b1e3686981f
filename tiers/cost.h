/*
 * What a read from a tier costs: latency + bytes / bandwidth, learnt from the reads that ended,
 * decayed, times what stands before it. Pure: the clock comes from outside.
 *
 * Small reads teach the latency, large ones the bandwidth. An estimate that is not confirmed moves
 * back to the prior (half of the way in WT_COST_HALF_LIFE_S seconds): a tier that was slow once is
 * tried again.
 */
#ifndef WT_TIERS_COST_H
#define WT_TIERS_COST_H

#include <stddef.h>
#include <stdint.h>

enum {
    WT_COST_SMALL = 64 << 10, /* reads up to this size teach the latency */
    WT_COST_HALF_LIFE_S = 10,
};

struct wt_cost {
    double prior_us;
    double latency_us;
    double bandwidth;                  /* bytes a second of one request; 0: not measured */
    uint64_t latency_ns, bandwidth_ns; /* when they were measured last; 0: never */
};

void wt_cost_init(struct wt_cost *c, double prior_us);
/* A read of `bytes` took `us` at the backend. */
void wt_cost_sample(struct wt_cost *c, uint64_t bytes, double us, uint64_t now_ns);
/* A read that failed by its deadline: it costs at least that. */
void wt_cost_failed(struct wt_cost *c, double us, uint64_t now_ns);
/* Microseconds for `bytes` with `ahead` requests before it, `depth` at a time. */
double wt_cost_of(const struct wt_cost *c, uint64_t bytes, size_t ahead, size_t depth,
                  uint64_t now_ns);

#endif
