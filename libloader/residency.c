/* Beliefs about copies, and the choice among them; see residency.h. */
#include "libloader/residency.h"

#include "core/mem.h"

#include <math.h>
#include <stdlib.h>

int wt_residency_init(struct wt_residency *r, uint64_t shards, bool landed) {
    r->absent = wt_calloc((size_t)shards, sizeof *r->absent);
    r->shards = shards;
    r->unknown = landed;
    if (!r->absent)
        return WT_ENOMEM;
    wt_residency_forget(r);
    return 0;
}

void wt_residency_free(struct wt_residency *r) {
    free(r->absent);
    *r = (struct wt_residency){0};
}

void wt_residency_forget(struct wt_residency *r) {
    for (uint64_t i = 0; i < r->shards; i++)
        atomic_store_explicit(&r->absent[i], r->unknown, memory_order_relaxed);
}

void wt_residency_missed(struct wt_residency *r, uint64_t shard, unsigned tier) {
    atomic_fetch_or_explicit(&r->absent[shard], (uint8_t)(1u << tier), memory_order_relaxed);
}

void wt_residency_hint(struct wt_residency *r, uint64_t shard, unsigned held, unsigned known) {
    if (shard >= r->shards)
        return;
    uint8_t old = atomic_load_explicit(&r->absent[shard], memory_order_relaxed), next;
    do {
        next = (uint8_t)((old & ~known) | (known & ~held));
        if (!r->unknown) /* the truth of all but landed data */
            next &= (uint8_t)~1u;
    } while (!atomic_compare_exchange_weak_explicit(&r->absent[shard], &old, next,
                                                    memory_order_relaxed, memory_order_relaxed));
}

unsigned wt_residency_absent(const struct wt_residency *r, uint64_t shard) {
    return atomic_load_explicit(&r->absent[shard], memory_order_relaxed);
}

int wt_residency_pick(const double *cost, unsigned n_tiers, unsigned skip) {
    int best = -1;
    double best_cost = INFINITY, weight = 1;
    for (unsigned i = 0; i < n_tiers; i++, weight *= WT_TIER_SPARE) {
        if (skip >> i & 1)
            continue;
        double c = (cost[i] < WT_COST_FLOOR ? WT_COST_FLOOR : cost[i]) / weight;
        if (best < 0 || c <= best_cost) {
            best = (int)i;
            best_cost = c;
        }
    }
    return best;
}
