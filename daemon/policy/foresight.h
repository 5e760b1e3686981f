/*
 * Foresight: places the shards of jobs whose order is known so that as few bytes as possible leave
 * the cold tier, readers and mover together. A pure decision like policy.h: time, shards and tiers
 * come from the caller, moves go to it.
 *
 * The rule is Belady's with bypass, made ahead of time. Before a shard that is not above cold is
 * used (at t1), its *following* use t2 is compared with the next uses of what is above cold:
 *   - there is room, or there are shards that are needed later than t2: those leave and it is
 *     staged, by one read of cold, before t1; its reader then hits;
 *   - else it is left to its reader, who reads cold once. No copy is made of it;
 *   - a stage that could not end before t1 is not begun: it would be a second read of cold for the
 *     same use. One that could wait is not begun yet: it would hold room for nothing.
 * With a single job nothing is ever swapped: each reuse crosses the end of an epoch, so a fixed set
 * is as good as it gets, and moves nothing. With several, a tier passes on what it gives up to the
 * tier below where that is worth more than the farthest there.
 * A shard that no such job reads ranks by the reads that its heat promises: one in
 * half-life / (heat ln 2) seconds.
 *
 * Keys (next uses) are held in one heap a tier, brought up to date when a use has passed, when a
 * shard comes to the top, and by a sweep over all in slices. Failures: out of memory leaves a shard
 * out until the next sweep; a refused move is offered again while there is time.
 */
#ifndef WT_DAEMON_POLICY_FORESIGHT_H
#define WT_DAEMON_POLICY_FORESIGHT_H

#include "daemon/policy/horizon.h"
#include "daemon/policy/policy.h"

struct wt_foresight_move {
    uint64_t shard;
    int to, drop; /* as in struct wt_policy_move */
    double due;   /* a stage is of no use later; INFINITY: at any time */
    int job;      /* for whose use it is staged, -1 */
};
/* false: not taken now. */
typedef bool (*wt_foresight_emit)(void *arg, const struct wt_foresight_move *move);

struct wt_foresight_pace { /* how fast moves are */
    double react;          /* seconds that pass until a decision takes effect */
    double copy;           /* seconds that a copy from cold takes from its begin, as measured */
    uint32_t moves;        /* copies that run at a time */
    uint32_t waiting; /* copies that are queued: more are decided only while there are few, for what
                         leaves for a copy that comes too late is lost */
    double half_life; /* of heat, seconds */
};

struct wt_foresight_stats {
    uint64_t staged, staged_bytes;   /* from cold */
    uint64_t swapped, swapped_bytes; /* left for another: the churn */
    uint64_t demoted, bypassed, late;
};

struct wt_foresight;
struct wt_foresight *wt_foresight_new(uint32_t n_tiers); /* NULL: out of memory */
void wt_foresight_free(struct wt_foresight *f);
/* There are so many shards now, or they have other numbers: all is looked at anew. false: no
 * memory, or 2^32 - 1 and more. */
bool wt_foresight_resize(struct wt_foresight *f, uint64_t shards);
/* Jobs join and leave here, so that keys follow. */
struct wt_horizon *wt_foresight_horizon(struct wt_foresight *f);
void wt_foresight_sweep(struct wt_foresight *f); /* a job came or went: look at all soon */

/* A shard came to a tier or left it. */
void wt_foresight_touch(struct wt_foresight *f, const struct wt_policy_view *view, uint64_t shard,
                        double now, double half_life);
/* Does work up to `budget` (a resident shard costs 1 and a quarter for each job) and emits moves.
 * true: all that can be done now is done; call again at *wake (INFINITY: when something happens).
 */
bool wt_foresight_run(struct wt_foresight *f, const struct wt_policy_conf *conf,
                      const struct wt_policy_view *view, const struct wt_policy_tier *tiers,
                      const struct wt_foresight_pace *pace, double now, uint64_t budget,
                      wt_foresight_emit emit, void *arg, double *wake);

/* Is the shard's future known? Then policy.h must not bring it anywhere. */
bool wt_foresight_knows(const struct wt_foresight *f, uint64_t shard);
/* The heat that stands for the next use of a shard that is above cold, for comparison with others'.
 */
double wt_foresight_heat(const struct wt_foresight *f, uint64_t shard, double now,
                         double half_life);
void wt_foresight_stats(const struct wt_foresight *f, struct wt_foresight_stats *out);

#endif
