/*
 * The future of one job: which shard it reads when, from its plan.
 *
 * A use is the moment when the loader begins to fetch a window that holds samples of the shard. Its
 * place is x = epoch * span + lane position of the window's first sample, so the job's own progress
 * (epoch, step) is on the same axis: x grows by the lane batch each step. Lanes run side by side.
 * `next` is O(blocks of the shard) by the inverse permutation; `step` walks all uses in order.
 *
 * Happy path: init from a checked plan and the data set's cumulative counts, then ask. Failures:
 * none; a job whose epochs are over, and a shard that the tail drops, have no next use.
 */
#ifndef WT_DAEMON_POLICY_FUTURE_H
#define WT_DAEMON_POLICY_FUTURE_H

#include "core/plan.h"

#include <stdbool.h>
#include <stdint.h>

#define WT_FUTURE_NEVER UINT64_MAX

enum { WT_FUTURE_EPOCHS = 4, WT_FUTURE_LANES = 64 };

struct wt_future_epoch {
    struct wt_epoch e;
    uint64_t first[WT_FUTURE_LANES]; /* stream index of each lane's first block */
};

struct wt_future {
    struct wt_plan plan;
    const uint64_t *cum;     /* [shards + 1], as in struct wt_dataset; borrowed */
    uint64_t shards, epochs; /* epochs 0: it goes on for ever */
    uint64_t span;           /* x of an epoch */
    uint64_t ahead;          /* the loader fetches so far ahead of what it delivers */
    double lanes_a_sample;
    uint64_t start[WT_FUTURE_LANES + 1]; /* where lanes begin, where there are so few */
    struct wt_future_epoch cache[WT_FUTURE_EPOCHS];
};

/* Where a walk is: zeroed, at the beginning. */
struct wt_future_at {
    uint64_t epoch, window, piece, pieces, first;
    uint64_t shard, end; /* shards of the piece that are still to be given */
    uint64_t x;
    uint32_t turn; /* lanes come from the last to the first: their grids begin in this order */
    bool loaded, any;
};

/* `f` must stay where it is: its epochs point into it. */
void wt_future_init(struct wt_future *f, const struct wt_plan *plan, const uint64_t *cum,
                    uint64_t shards, uint64_t epochs, uint64_t ahead);
/* The first use of the shard at x >= from; WT_FUTURE_NEVER. */
uint64_t wt_future_next(struct wt_future *f, uint64_t shard, uint64_t from);
/* The part of a shard that a use reads, at most 1. */
double wt_future_part(const struct wt_future *f, uint64_t shard);
/* The next use in order; false when the job's epochs are over. */
bool wt_future_step(struct wt_future *f, struct wt_future_at *at, uint64_t *shard, uint64_t *x);
/* Goes to where uses at x >= `x` begin; some before may still come. */
void wt_future_seek(struct wt_future *f, struct wt_future_at *at, uint64_t x);
/* x up to which a job that delivered `step` steps of `epoch` has begun to read. */
uint64_t wt_future_place(const struct wt_future *f, uint64_t epoch, uint64_t step);

#endif
