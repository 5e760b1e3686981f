/*
 * Which shard belongs in which tier: a pure decision over a view of the shards. No I/O, no clock,
 * no randomness: the same input gives the same moves, in production and in a simulation.
 *
 * A pass looks at every shard twice, in slices: first heat (bytes by heat, for the percentile that
 * the bands stand on), then for each tier the hottest shards that should come and the coldest that
 * could go. Then it decides, from the highest tier down:
 *   - what has no place in a tier overflows to the next lower one;
 *   - a shard leaves only under pressure: the tier is above its high mark (then down to the low
 * one), or a shard comes that is hotter by `beat` times and `margin` whole reads. So a resident set
 * does not churn when all is read equally often, and a scan flushes nothing;
 *   - a pinned shard comes before all others, whatever it displaces, and never leaves;
 *   - a shard that stands in a higher tier as well leaves first; one that leaves goes a tier down
 * where there is room;
 *   - a tier that is not usable, and a shard larger than the tier, are never tried.
 * A move that needs room which another one still has to make is not given yet: the next pass gives
 * it.
 */
#ifndef WT_DAEMON_POLICY_H
#define WT_DAEMON_POLICY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WT_POLICY_TIERS = 8,
    WT_POLICY_KEEP = 4096, /* shards that a pass considers to come to, or leave, a tier */
};

struct wt_policy_conf {
    double cold_below, hot_above; /* bands, parts of the percentile's heat */
    double percentile;
    double high, low;    /* marks, parts of the capacity */
    double beat, margin; /* see above */
    uint32_t min_stay;   /* seconds */
};

struct wt_policy_tier {
    uint64_t capacity; /* 0: unlimited */
    uint64_t used;     /* with what is on its way in */
    uint64_t leaving;  /* part of it that is being removed */
    bool usable;       /* up, writable, not said to be full */
};

struct wt_policy_shard {
    uint64_t size;
    double heat;
    uint32_t age;   /* seconds since it last came to a tier */
    uint8_t mask;   /* tiers that hold it; bit 0 is cold */
    uint8_t pin;    /* tiers that must have and keep it */
    uint8_t barred; /* tiers it may not enter */
    bool busy;      /* it moves, or is set aside */
    bool unwanted;  /* of a retired generation: leaves without need */
    bool
        settled; /* others decide where it comes to (foresight.h); it leaves under pressure alone */
};

struct wt_policy_view {
    uint64_t shards;
    void (*get)(void *arg, uint64_t shard, struct wt_policy_shard *out);
    /* Reserves room in what the shard's data set may have of the tier; false: it has used that up.
     * Asked once for each shard that is to come, before others leave for it. NULL: no quotas. */
    bool (*reserve)(void *arg, uint64_t shard, uint32_t tier, uint64_t size);
    void *arg;
};

struct wt_policy_move {
    uint64_t shard;
    int to;   /* tier to copy it to, -1: none */
    int drop; /* tier to remove it from (after the copy), -1: none */
};
typedef void (*wt_policy_emit)(void *arg, const struct wt_policy_move *move);

struct wt_policy;
struct wt_policy *wt_policy_new(uint32_t n_tiers); /* NULL: out of memory */
void wt_policy_free(struct wt_policy *p);
/* Forgets the pass under way: the shards changed their numbers. */
void wt_policy_reset(struct wt_policy *p);
/* Looks at up to `budget` shards more. true: the pass is done and its moves were emitted. `tiers`
 * as of now. */
bool wt_policy_step(struct wt_policy *p, const struct wt_policy_conf *conf,
                    const struct wt_policy_view *view, const struct wt_policy_tier *tiers,
                    uint64_t budget, wt_policy_emit emit, void *arg);
/* The tier that the bands give to `heat` when the percentile's heat is `high_heat`. */
uint32_t wt_policy_band(const struct wt_policy_conf *conf, uint32_t n_tiers, double heat,
                        double high_heat);

#endif
