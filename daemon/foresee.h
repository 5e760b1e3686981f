/*
 * Foresight in the daemon: jobs and the catalog on one side, the mover on the other; the decision
 * is policy/foresight.h.
 *
 * Happy path: a job that tells its plan joins; its reports move it on the time axis; the planner
 * calls run, which stages shards with a deadline. What it reads is held against its plan.
 * Failures: a job without a plan, or with one that does not fit its data set, is treated by
 * frequency. So is one whose reads do not fit its plan (job->departed) until they do again. A job
 * on a retired generation is followed on the current one where that has the same shards.
 */
#ifndef WT_DAEMON_FORESEE_H
#define WT_DAEMON_FORESEE_H

#include "daemon/jobs.h"
#include "daemon/mover.h"
#include "daemon/policy/foresight.h"

struct wt_foresee;
struct wt_foresee *wt_foresee_new(struct wt_catalog *catalog, struct wt_mover *mover);
void wt_foresee_free(struct wt_foresee *f);

void wt_foresee_join(struct wt_foresee *f, struct wt_job *job, uint64_t now_ms);
void wt_foresee_leave(struct wt_foresee *f, struct wt_job *job);
/* After wt_job_report. */
void wt_foresee_report(struct wt_foresee *f, struct wt_job *job, uint64_t now_ms);
/* A read of the last report, for the watch over its order; *news: departed has changed. */
void wt_foresee_read(struct wt_foresee *f, struct wt_job *job, const struct wt_read *read,
                     bool *news);
void wt_foresee_touch(struct wt_foresee *f, const struct wt_policy_view *view,
                      const struct wt_catalog_set *set, uint64_t shard, uint64_t now_ms);

/* What the policy sees of shard `i` of all, with all that the caller knows filled in. */
void wt_foresee_settle(const struct wt_foresee *f, uint64_t i, uint64_t now_ms,
                       struct wt_policy_shard *s);
struct wt_foresee_input {
    const struct wt_policy_conf *conf;
    const struct wt_policy_view *view;
    const struct wt_policy_tier *tiers;
    double half_life;
    uint64_t report_ms; /* jobs report so often */
};
/* true: all is done until *wake_ms (UINT64_MAX: until something happens). */
bool wt_foresee_run(struct wt_foresee *f, const struct wt_foresee_input *in, uint64_t now_ms,
                    uint64_t *wake_ms);
bool wt_foresee_active(const struct wt_foresee *f); /* there is a job whose future is known */
/* When shard `i` of all is read next, in seconds of the loop's clock; INFINITY: not known. */
double wt_foresee_next(struct wt_foresee *f, uint64_t i);
/* The part of what the jobs read that the optimum would take from cold; kept until jobs or the
 * capacity above cold change. */
double wt_foresee_cold(struct wt_foresee *f, uint64_t capacity);
/* Bytes a second from cold that the optimum needs for the jobs of now. */
double wt_foresee_need(struct wt_foresee *f, uint64_t capacity);
void wt_foresee_stats(const struct wt_foresee *f, struct wt_foresight_stats *out);

#endif
