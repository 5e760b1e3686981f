/*
 * A world for the policy on a virtual clock: shards, tiers with capacity and bandwidth, one mover.
 *
 * Happy path: whoever runs the world lets it decide (world_decide), reads shards (world_read) and
 * ends the copy that runs when its time has come (world_copied); every byte that leaves cold is
 * counted, readers' and mover's alike. Each tier serves one transfer after the other, at its
 * bandwidth; the mover has WT_WORLD_COPIES of them with cold at a time, so no reader waits for more
 * than those. A reader that finds its shard on the way waits for it, as its own read would come
 * after it; one that finds the copy still queued cancels it. Copies from a tier above cold, and
 * removals, take no time.
 * Failures: WT_ENOMEM.
 */
#ifndef WT_TOOLS_SIM_WORLD_H
#define WT_TOOLS_SIM_WORLD_H

#include "core/err.h"
#include "daemon/policy/foresight.h"

#include <stddef.h>

enum { WT_WORLD_COPIES = 4 };

struct wt_world_conf {
    uint32_t n_tiers; /* with cold */
    uint64_t capacity[WT_POLICY_TIERS];
    double bandwidth[WT_POLICY_TIERS]; /* bytes a second, 0: free */
    double react;
    struct wt_policy_conf policy;
};

struct wt_world_count {
    uint64_t reads, bytes;
    uint64_t tier_reads[WT_POLICY_TIERS], tier_bytes[WT_POLICY_TIERS]; /* finished there */
    uint64_t copies, copied;    /* from cold, by the mover; bytes */
    uint64_t dropped;           /* bytes that left what is above cold */
    uint64_t joined, pointless; /* reads that waited for a copy; copies that were cancelled */
    double stall;               /* seconds, over all jobs */
};

struct wt_world_copy {
    uint32_t shard, to;
    double due, begins, ends;
};

struct wt_world {
    struct wt_world_conf conf;
    uint32_t shards;
    const uint64_t *size; /* borrowed */
    uint8_t *mask, *busy; /* busy: a copy from cold is queued or runs */
    float *heat;
    uint32_t *heated;
    uint64_t used[WT_POLICY_TIERS], coming[WT_POLICY_TIERS];
    double free_at[WT_POLICY_TIERS]; /* when what was begun has ended */
    struct wt_world_copy *queue;     /* by due time */
    size_t n_queue, cap_queue;
    struct wt_world_copy running[WT_WORLD_COPIES]; /* the first ends first */
    uint32_t n_running;
    double copy_s; /* what a copy takes, smoothed */
    double half_life, now;
    bool known; /* jobs tell their order; else all goes by frequency */
    struct wt_foresight *foresight;
    struct wt_policy *policy;
    uint64_t emitted;
    struct wt_world_count count;
};

int wt_world_init(struct wt_world *w, const struct wt_world_conf *conf, const uint64_t *size,
                  uint32_t shards, struct wt_err *err);
void wt_world_free(struct wt_world *w);

/* Lets the policy decide with what is known now; *wake: when it wants to be asked again. */
void wt_world_decide(struct wt_world *w, double now, double *wake);
/* Begins copies of the queue. */
void wt_world_work(struct wt_world *w, double now);
/* When the first running copy ends, INFINITY: none runs; and ends it. */
double wt_world_next(const struct wt_world *w);
void wt_world_copied(struct wt_world *w);
/* A reader asks for a shard; the time at which it has it. */
double wt_world_read(struct wt_world *w, uint32_t shard, double now);
/* A pass of the frequency policy over all shards. */
void wt_world_pass(struct wt_world *w, double now);
uint64_t wt_world_cold(const struct wt_world_count *c); /* bytes that left cold */

#endif
