/* The list of running jobs; see jobs.h. */
#include "daemon/jobs.h"

#include "core/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

const char *const wt_stall_stages[WT_STALL_STAGES] = {"fetch", "decode", "stage", "consumer"};

struct wt_jobs {
    struct wt_job *first;
    size_t count;
    uint64_t ever;
    void (*removed)(void *arg, struct wt_job *job);
    void *arg;
};

struct wt_jobs *wt_jobs_new(void) {
    return wt_calloc(1, sizeof(struct wt_jobs));
}

void wt_jobs_free(struct wt_jobs *jobs) {
    while (jobs && jobs->first)
        wt_jobs_remove(jobs, jobs->first);
    free(jobs);
}

void wt_jobs_on_remove(struct wt_jobs *jobs, void (*removed)(void *arg, struct wt_job *job),
                       void *arg) {
    jobs->removed = removed;
    jobs->arg = arg;
}

/* The random half tells jobs of this daemon from those of the one before. */
static void make_id(struct wt_jobs *jobs, char id[WT_JOB_ID]) {
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
        random = (uint64_t)(uintptr_t)jobs;
    snprintf(id, WT_JOB_ID, "j%" PRIu64 "-%08" PRIx32, ++jobs->ever, (uint32_t)random);
}

int wt_jobs_add(struct wt_jobs *jobs, const struct wt_job_opts *opts, struct wt_catalog_set *set,
                uint64_t now_ms, struct wt_job **out, struct wt_err *err) {
    if (jobs->count >= WT_JOBS_MAX)
        return wt_err_set(err, WT_EBUSY, "job %s: %d jobs are registered, the most there can be",
                          opts->name, WT_JOBS_MAX);
    struct wt_job *job = wt_calloc(1, sizeof *job);
    if (!job)
        return wt_err_set(err, WT_ENOMEM, "job %s: out of memory", opts->name);
    job->o = *opts;
    job->set = set;
    job->future = -1;
    job->since_ms = job->seen_ms = job->epoch_ms = now_ms;
    make_id(jobs, job->id);
    set->jobs++;
    job->next = jobs->first;
    jobs->first = job;
    jobs->count++;
    *out = job;
    return 0;
}

struct wt_job *wt_jobs_find(const struct wt_jobs *jobs, const char *id) {
    struct wt_job *job = jobs->first;
    while (job && strcmp(job->id, id) != 0)
        job = job->next;
    return job;
}

void wt_jobs_remove(struct wt_jobs *jobs, struct wt_job *job) {
    struct wt_job **at = &jobs->first;
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    if (jobs->removed)
        jobs->removed(jobs->arg, job);
    job->set->jobs--;
    jobs->count--;
    free(job->bad);
    free(job);
}

struct wt_job *wt_jobs_first(const struct wt_jobs *jobs) {
    return jobs->first;
}

size_t wt_jobs_count(const struct wt_jobs *jobs) {
    return jobs->count;
}

/* None where the clock went back. */
static uint64_t since(uint64_t then_ms, uint64_t now_ms) {
    return now_ms > then_ms ? now_ms - then_ms : 0;
}

void wt_job_report(struct wt_job *job, uint64_t epoch, uint64_t step, uint64_t now_ms) {
    if (epoch != job->o.epoch) {
        uint64_t took = since(job->epoch_ms, now_ms);
        if (epoch > job->o.epoch)
            took /= epoch - job->o.epoch; /* several ended since the last report */
        if (epoch > job->o.epoch && took > job->longest_ms)
            job->longest_ms = took;
        job->o.epoch = epoch;
        job->epoch_ms = now_ms;
    }
    job->step = step;
    job->seen_ms = now_ms;
}

int wt_job_bad(struct wt_job *job, const char *shard, const char *key) {
    for (size_t i = 0; i < job->n_bad; i++)
        if (strcmp(job->bad[i].key, key) == 0 && strcmp(job->bad[i].shard, shard) == 0)
            return WT_EEXISTS;
    if (job->n_bad == WT_JOB_BAD_MAX)
        return WT_EFULL;
    if (wt_grow(&job->bad, &job->cap_bad, job->n_bad + 1, sizeof *job->bad) < 0)
        return WT_ENOMEM;
    struct wt_bad_sample *b = &job->bad[job->n_bad++];
    snprintf(b->shard, sizeof b->shard, "%s", shard);
    snprintf(b->key, sizeof b->key, "%s", key);
    return 0;
}

void wt_job_read(struct wt_job *job, const struct wt_read *read) {
    job->reads += read->ranges;
    job->bytes += read->bytes;
    if (read->hit)
        job->hits += read->ranges;
    if (read->tier >= 0) {
        job->tier_reads[read->tier] += read->ranges;
        job->tier_bytes[read->tier] += read->bytes;
    } else {
        job->other_reads += read->ranges;
        job->other_bytes += read->bytes;
    }
}

int wt_job_tier(const struct wt_job *job, const struct wt_tier_opts *tiers, uint32_t n_tiers,
                const char *name, int *tier, bool *hit) {
    int known = -1;
    for (uint32_t t = 0; t < n_tiers; t++)
        if (strcmp(tiers[t].name, name) == 0)
            known = (int)t;
    uint32_t own = 0;
    while (own < job->o.n_tiers && strcmp(job->o.tier[own], name) != 0)
        own++;
    if (known < 0 && own == job->o.n_tiers)
        return WT_EMISSING;
    *tier = known;
    *hit = known >= 0 ? known > 0 : own > 0;
    return 0;
}

void wt_jobs_expire(struct wt_jobs *jobs, uint64_t now_ms, uint64_t expiry_ms,
                    void (*gone)(void *arg, const struct wt_job *job), void *arg) {
    for (struct wt_job *job = jobs->first, *next; job; job = next) {
        next = job->next;
        if (since(job->seen_ms, now_ms) < expiry_ms)
            continue;
        gone(arg, job);
        wt_jobs_remove(jobs, job);
    }
}

uint64_t wt_jobs_longest_epoch(const struct wt_jobs *jobs, uint64_t now_ms) {
    uint64_t longest = 0;
    for (const struct wt_job *job = jobs->first; job; job = job->next) {
        uint64_t running = since(job->epoch_ms, now_ms);
        uint64_t epoch = running > job->longest_ms ? running : job->longest_ms;
        longest = epoch > longest ? epoch : longest;
    }
    return longest;
}
