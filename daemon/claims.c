/* Claims of jobs under examination; see claims.h. */
#include "daemon/claims.h"

#include "core/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    AT_ONCE = 4,    /* claims that are examined at the same time: each reads a whole copy */
    WRONG_MOST = 8, /* of a job, before it is no longer believed */
};

struct claim {
    const struct wt_catalog_set *set; /* NULL: free. The move keeps it from going */
    uint64_t shard;
    uint32_t tier;
    char job[WT_JOB_ID];
};

struct wt_claims {
    struct wt_mover *mover;
    struct wt_jobs *jobs;
    const struct wt_log *log;
    struct claim claim[AT_ONCE];
    struct wt_claims_stats stats;
};

struct wt_claims *wt_claims_new(struct wt_mover *mover, struct wt_jobs *jobs,
                                const struct wt_log *log) {
    struct wt_claims *c = wt_calloc(1, sizeof *c);
    if (c)
        *c = (struct wt_claims){.mover = mover, .jobs = jobs, .log = log};
    return c;
}

void wt_claims_free(struct wt_claims *c) {
    free(c);
}

void wt_claims_stats(const struct wt_claims *c, struct wt_claims_stats *out) {
    *out = c->stats;
}

static bool is_believed(const struct wt_job *job) {
    return job->claims_wrong < WRONG_MOST || job->claims_right >= job->claims_wrong;
}

bool wt_claims_take(struct wt_claims *c, struct wt_job *job, struct wt_catalog_set *set,
                    uint64_t shard, uint32_t tier) {
    struct claim *free_one = NULL;
    for (unsigned i = 0; i < AT_ONCE && !free_one; i++)
        free_one = c->claim[i].set ? NULL : &c->claim[i];
    if (!is_believed(job)) {
        c->stats.ignored++;
        return false;
    }
    if (!free_one || wt_mover_check(c->mover, set, shard, tier) < 0)
        return false;
    *free_one = (struct claim){.set = set, .shard = shard, .tier = tier};
    memcpy(free_one->job, job->id, sizeof free_one->job);
    return true;
}

static void count(struct wt_claims *c, const struct claim *claim, bool right) {
    struct wt_job *job = wt_jobs_find(c->jobs, claim->job);
    *(right ? &c->stats.right : &c->stats.wrong) += 1;
    if (!job)
        return;
    bool before = is_believed(job);
    *(right ? &job->claims_right : &job->claims_wrong) += 1;
    if (before && !is_believed(job))
        wt_log(c->log, WT_LOG_WARN,
               "job %s (%s) called %" PRIu64 " copies damaged that are whole: what it says of "
               "copies is ignored from now on; check its host's memory and network",
               job->id, job->o.name, job->claims_wrong);
}

void wt_claims_ended(struct wt_claims *c, const struct wt_catalog_set *set,
                     const struct wt_move_info *info) {
    for (unsigned i = 0; i < AT_ONCE; i++) {
        struct claim *claim = &c->claim[i];
        if (claim->set != set || claim->shard != info->shard || info->to >= 0)
            continue;
        if (info->rc == 0)
            count(c, claim, !(set->shard[claim->shard].mask & (1u << claim->tier)));
        claim->set = NULL; /* failing that nobody knows; the job meets it again */
    }
}
