/*
 * What jobs say of copies: "damaged". A job may be wrong, or lie, and must not be able to empty a
 * tier: the copy is read and judged by its hash before anything happens to it.
 *
 * Happy path: a claim has the mover check that copy; damaged, it is dropped, whole, it stays and
 * the claim counts against its job. Failures: more claims than can be looked at now, or of a shard
 * that moves: not taken, the copy is only asked for; the job meets it again. A job that was wrong
 * many times, and more often than right, is named once and not believed any more.
 */
#ifndef WT_DAEMON_CLAIMS_H
#define WT_DAEMON_CLAIMS_H

#include "core/log.h"
#include "daemon/jobs.h"
#include "daemon/mover.h"

struct wt_claims_stats {
    uint64_t right, wrong; /* as the checks found */
    uint64_t ignored;      /* of jobs that are not believed */
};

struct wt_claims;
struct wt_claims *wt_claims_new(struct wt_mover *mover, struct wt_jobs *jobs,
                                const struct wt_log *log);
void wt_claims_free(struct wt_claims *c);
/* false: it is not looked at now. */
bool wt_claims_take(struct wt_claims *c, struct wt_job *job, struct wt_catalog_set *set,
                    uint64_t shard, uint32_t tier);
/* A move ended; those that are no check of a claim are none of ours. */
void wt_claims_ended(struct wt_claims *c, const struct wt_catalog_set *set,
                     const struct wt_move_info *info);
void wt_claims_stats(const struct wt_claims *c, struct wt_claims_stats *out);

#endif
