/*
 * Running jobs: who reads which data set, how far they are, what they read from where.
 *
 * Happy path: a job registers, reports at intervals, leaves. Failures: one that does not report for
 * `expiry` is forgotten; its next report gets WT_EMISSING and it registers again. Nothing here does
 * I/O; times come from the caller.
 */
#ifndef WT_DAEMON_JOBS_H
#define WT_DAEMON_JOBS_H

#include "core/plan.h"
#include "daemon/catalog.h"

enum { WT_JOBS_MAX = 4096, WT_JOB_NAME = 128, WT_JOB_ID = 40 };

struct wt_job_opts { /* what a job says of itself */
    char name[WT_JOB_NAME];
    char tier[WT_TIERS_MAX][64]; /* its own list, cold first */
    uint32_t n_tiers;
    uint64_t world, seed, epoch, epochs; /* epochs 0: it does not say how many */
    uint32_t plan_version;
    struct wt_plan_opts plan;
};

enum { WT_STALL_STAGES = 4 };
extern const char *const wt_stall_stages[WT_STALL_STAGES]; /* fetch, decode, stage, consumer */
struct wt_stalls { /* seconds that its consumer waited for data, as it tells */
    double stage[WT_STALL_STAGES];
    double tier[WT_TIERS_MAX]; /* of fetch: by the tier that was read */
};

enum { WT_JOB_BAD_MAX = 64, WT_JOB_SHARD = 192, WT_JOB_KEY = 96 };
struct wt_bad_sample { /* damaged in its cold copy, as a job found it */
    char shard[WT_JOB_SHARD];
    char key[WT_JOB_KEY]; /* "": the shard's index, and with it all its samples */
};

struct wt_job {
    struct wt_job *next;
    char id[WT_JOB_ID];
    struct wt_job_opts o;
    struct wt_catalog_set *set; /* counted in its `jobs` */
    uint64_t since_ms, seen_ms,
        epoch_ms;        /* registered; last report; begin of its epoch as reported */
    uint64_t longest_ms; /* longest epoch that ended */
    uint64_t step;
    uint64_t reads, hits, bytes;
    uint64_t tier_reads[WT_TIERS_MAX], tier_bytes[WT_TIERS_MAX]; /* of the daemon's tiers */
    struct wt_stalls stalls;
    struct wt_bad_sample *bad; /* the first WT_JOB_BAD_MAX */
    size_t n_bad, cap_bad;
    uint64_t claims_right, claims_wrong; /* copies that it called damaged, as they were found */
    uint64_t other_reads, other_bytes;   /* of tiers that the daemon does not know */
    /* foresee.h: */
    int future;           /* its number in the horizon, -1: its order is not known */
    bool departed;        /* it reads otherwise than it said */
    double fit, misfit;   /* reads that were as it said, and not, of the latest */
    uint64_t span, share; /* of an epoch and of a step, on the time axis */
    uint64_t ahead;       /* what it fetches before it needs it, when it does not tell */
    bool fetch_told;      /* it tells where its next fetch begins: */
    uint64_t fetch_epoch, fetch_pos;
    double epoch_s;        /* as measured; 0: not yet */
    uint64_t staged_bytes; /* that were copied from cold for it */
    double least_bytes;    /* that the optimum would have taken from cold for its reads */
};

struct wt_read { /* one row of a report: reads of a shard that a tier finished */
    uint64_t shard;
    int tier; /* the daemon's, -1: one that it does not know */
    bool hit; /* above cold */
    uint64_t ranges, bytes;
};

struct wt_jobs;
struct wt_jobs *wt_jobs_new(void);
void wt_jobs_free(struct wt_jobs *jobs);
/* `removed` is called before a job goes, however it goes. */
void wt_jobs_on_remove(struct wt_jobs *jobs, void (*removed)(void *arg, struct wt_job *job),
                       void *arg);
/* WT_EBUSY: too many. */
int wt_jobs_add(struct wt_jobs *jobs, const struct wt_job_opts *opts, struct wt_catalog_set *set,
                uint64_t now_ms, struct wt_job **out, struct wt_err *err);
struct wt_job *wt_jobs_find(const struct wt_jobs *jobs, const char *id);
void wt_jobs_remove(struct wt_jobs *jobs, struct wt_job *job);
struct wt_job *wt_jobs_first(const struct wt_jobs *jobs); /* then ->next */
size_t wt_jobs_count(const struct wt_jobs *jobs);

/* A report came: position and time. */
void wt_job_report(struct wt_job *job, uint64_t epoch, uint64_t step, uint64_t now_ms);
/* Counts a row. */
void wt_job_read(struct wt_job *job, const struct wt_read *read);
/* The job met a bad sample. WT_EEXISTS: it told before; WT_EFULL: it told of too many. */
int wt_job_bad(struct wt_job *job, const char *shard, const char *key);
/* The daemon's number of the tier that the job calls `name`; -1. *hit: it is above cold.
 * WT_EMISSING: not in the job's list either. */
int wt_job_tier(const struct wt_job *job, const struct wt_tier_opts *tiers, uint32_t n_tiers,
                const char *name, int *tier, bool *hit);

/* Forgets those last seen before now - expiry; calls `gone` before. */
void wt_jobs_expire(struct wt_jobs *jobs, uint64_t now_ms, uint64_t expiry_ms,
                    void (*gone)(void *arg, const struct wt_job *job), void *arg);
/* The longest epoch among the jobs, ended or running; 0 when there is none. */
uint64_t wt_jobs_longest_epoch(const struct wt_jobs *jobs, uint64_t now_ms);

#endif
