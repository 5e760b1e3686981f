/*
 * The futures of all jobs on one time axis: when is a shard needed next, by anyone, in seconds.
 *
 * Jobs tell their place (see future.h) now and then; the rate between is measured and smoothed, and
 * places between reports are extrapolated, for a few seconds. Each job is walked twice: `ahead`
 * hands out uses before they come, `done` those that have passed. Nothing here knows of tiers.
 *
 * Happy path: join, report, ask; leave. Failures: WT_HORIZON_JOBS jobs at most, and no memory. A
 * job whose reads do not fit its plan is marked departed by the caller: it is left out until they
 * fit.
 */
#ifndef WT_DAEMON_POLICY_HORIZON_H
#define WT_DAEMON_POLICY_HORIZON_H

#include "daemon/policy/future.h"

enum { WT_HORIZON_JOBS = 256 };

struct wt_horizon_opts {
    struct wt_plan plan;
    const uint64_t *cum;   /* borrowed until leave */
    uint64_t shards, base; /* number of its first shard among all */
    uint64_t epochs;       /* 0: not known */
    uint64_t ahead;        /* see struct wt_future */
};

struct wt_horizon;
struct wt_horizon *wt_horizon_new(void);
void wt_horizon_free(struct wt_horizon *h);
/* -1: too many, or no memory. */
int wt_horizon_join(struct wt_horizon *h, const struct wt_horizon_opts *o, double now);
void wt_horizon_leave(struct wt_horizon *h, int job);
/* used: what the job has consumed. next: where its next fetch begins, which leaps by a window each
 * time; how far ahead of `used` it is when it does is learnt from that, and fetches are foreseen by
 * the steady pace of what is consumed. true: it is far from where it was,
 * and the keys of all shards must be looked at anew. */
bool wt_horizon_report(struct wt_horizon *h, int job, uint64_t next, uint64_t used, double now);
void wt_horizon_depart(struct wt_horizon *h, int job, bool departed);
/* Shards have other numbers. */
void wt_horizon_rebase(struct wt_horizon *h, int job, uint64_t base);

/* Jobs whose future counts; how many still read something. */
uint32_t wt_horizon_live(const struct wt_horizon *h);
bool wt_horizon_covers(const struct wt_horizon *h, uint64_t shard);
/* x per second; 0: not known yet. */
double wt_horizon_rate(const struct wt_horizon *h, int job);
double wt_horizon_time(const struct wt_horizon *h, int job, uint64_t x);
/* Does a use of the job's shard (its own number) lie between what it had consumed one report before
 * the last and what it has begun to read, give or take what it fetches ahead? */
bool wt_horizon_fits(struct wt_horizon *h, int job, uint64_t own_shard);

/* When the shard is used next, of what has not passed; INFINITY: never. */
double wt_horizon_next(struct wt_horizon *h, uint64_t shard);
/* ... after the use x of `job`, at the time `t`. */
double wt_horizon_following(struct wt_horizon *h, uint64_t shard, int job, uint64_t x, double t);
/* How much of the shard that use reads, at most 1. */
double wt_horizon_part(const struct wt_horizon *h, int job, uint64_t shard);

struct wt_horizon_use {
    int job;
    uint64_t shard, x;
    double t;
};
/* The first use to come, of all jobs; false: none. It stays the first until wt_horizon_pass. */
bool wt_horizon_peek(struct wt_horizon *h, double now, struct wt_horizon_use *use);
void wt_horizon_pass(struct wt_horizon *h, int job);
/* A use that has passed `lag` seconds ago or more; false: none is left. Each is given once. */
bool wt_horizon_passed(struct wt_horizon *h, double now, double lag, uint64_t *shard);

#endif
