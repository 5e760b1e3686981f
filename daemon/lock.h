/*
 * One daemon per set of tiers: an expiring exclusive lock in the cold tier.
 *
 * Happy path: taken at the start, renewed at a third of its time to live. Failures: somebody else
 * holds it: said once, tried again at a tenth of its time, nothing moves meanwhile; it cannot be
 * renewed: tried again at once, and at two thirds of its time `changed(false)` is called, well
 * before another can take it.
 */
#ifndef WT_DAEMON_LOCK_H
#define WT_DAEMON_LOCK_H

#include "core/dataset.h"
#include "core/log.h"
#include "tiers/tier.h"

struct wt_lock;
/* changed: on the loop, with true when it is held and false when it no longer is. The first attempt
 * comes at once. */
int wt_lock_new(uv_loop_t *loop, struct wt_tier *cold, uint64_t ttl_ms, const struct wt_log *log,
                void (*changed)(void *arg, bool held), void *arg, struct wt_lock **out,
                struct wt_err *err);
/* By the clock of now: a process that was stopped and goes on finds that its time is over here
 * first, when its loop has not run the timer yet that says so. */
bool wt_lock_held(const struct wt_lock *l);
/* Why it is not held: who holds it, or what failed; "" at first and when it is held. */
const char *wt_lock_why(const struct wt_lock *l);
/* Gives it back when it is held; `stopped` is called on the loop when that is over; then free. */
void wt_lock_stop(struct wt_lock *l, void (*stopped)(void *arg), void *arg);
void wt_lock_free(struct wt_lock *l);

#endif
