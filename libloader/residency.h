/*
 * Where a loader believes copies to be: one byte a shard, bit i set when tier i is known not to
 * hold it. Asking and the daemon's hints teach it; an epoch's start forgets it. A wrong belief
 * costs one request.
 */
#ifndef WT_LOADER_RESIDENCY_H
#define WT_LOADER_RESIDENCY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct wt_residency {
    uint64_t shards;
    uint8_t unknown;         /* what is absent before anything is known */
    _Atomic uint8_t *absent; /* [shards] */
};

/* landed: cold is not asked before a hint says so, or nothing else has it. 0 or WT_ENOMEM */
int wt_residency_init(struct wt_residency *r, uint64_t shards, bool landed);
void wt_residency_free(struct wt_residency *r);
void wt_residency_forget(struct wt_residency *r);
/* All below: any thread. */
void wt_residency_missed(struct wt_residency *r, uint64_t shard, unsigned tier);
/* held: bits of the tiers that hold it (cold = bit 0); known: bits of the tiers that
 * the hint speaks about. */
void wt_residency_hint(struct wt_residency *r, uint64_t shard, unsigned held, unsigned known);
unsigned wt_residency_absent(const struct wt_residency *r, uint64_t shard); /* bits */

/* Which tier to read from: the cheapest by cost[] (microseconds, infinite when down), where a
 * higher tier counts as cheaper by WT_TIER_SPARE a step, since reading it spares the ones below,
 * and where costs below WT_COST_FLOOR are as good as each other: prefetch hides them. skip: bits
 * left out. -1: none is left. */
#define WT_TIER_SPARE 4.0
#define WT_COST_FLOOR 20000.0
int wt_residency_pick(const double *cost, unsigned n_tiers, unsigned skip);

#endif
