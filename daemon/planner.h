/*
 * Drives the policy: gives it the catalog and the tiers as they are, in slices, and its moves to
 * the mover.
 *
 * Happy path: something happened (a report, a move ended, a tick); soon after, a pass begins; each
 * slice takes a few milliseconds; its moves are queued. What happens meanwhile leads to one more
 * pass. Failures: none of its own; a mover whose queue is full takes the rest next time.
 */
#ifndef WT_DAEMON_PLANNER_H
#define WT_DAEMON_PLANNER_H

#include "daemon/catalog.h"
#include "daemon/foresee.h"
#include "daemon/mover.h"
#include "daemon/policy/policy.h"

struct wt_planner_opts {
    struct wt_tier *const *tiers;
    const struct wt_tier_opts *tier_opts;
    struct wt_catalog *catalog;
    struct wt_mover *mover;
    const struct wt_policy_conf *conf; /* may change between calls */
    const uint64_t *report_ms;         /* how often jobs report; may change too */
};

struct wt_planner;
struct wt_planner *wt_planner_new(uv_loop_t *loop, const struct wt_planner_opts *opts);
/* A pass soon. Cheap: many calls make one pass. Nothing happens while it is off (as it begins). */
void wt_planner_kick(struct wt_planner *p);
/* The same though nothing happened, for time passes: the longer a pass takes, the seldomer. */
void wt_planner_look(struct wt_planner *p);
void wt_planner_enable(struct wt_planner *p, bool on);
/* Heat halves in this time. */
void wt_planner_half_life(struct wt_planner *p, double seconds);
double wt_planner_get_half_life(const struct wt_planner *p);
/* The capacities of the configuration have changed. */
void wt_planner_reload(struct wt_planner *p);
/* Asks the tiers how full they are; the answers are used when they come. */
void wt_planner_ask_usage(struct wt_planner *p);
/* Bytes that the policy counts on; 0: unlimited, or not known yet. */
uint64_t wt_planner_capacity(const struct wt_planner *p, uint32_t tier);
/* Up to which the tier is filled; UINT64_MAX: unlimited. */
uint64_t wt_planner_mark(const struct wt_planner *p, uint32_t tier);
/* As far as it is known now, `bytes` more have room in the tier beside all that comes. */
bool wt_planner_room(const struct wt_planner *p, uint32_t tier, uint64_t bytes);
/* Bytes of all tiers above cold together, up to the mark to which they are filled; UINT64_MAX:
 * unlimited. */
uint64_t wt_planner_above(const struct wt_planner *p);
/* The jobs whose order is known; valid as long as the planner is. */
struct wt_foresee *wt_planner_foresee(const struct wt_planner *p);
/* A shard came to a tier or left it. */
void wt_planner_touched(struct wt_planner *p, const struct wt_catalog_set *set, uint64_t shard);
uint64_t wt_planner_passes(const struct wt_planner *p);
void wt_planner_stop(struct wt_planner *p, void (*stopped)(void *arg), void *arg);
void wt_planner_free(struct wt_planner *p);

#endif
