/*
 * POST /v1/jobs/{id}/progress: what a job has read, where it stands, what it waited for; the answer
 * tells where what comes next lies. A report is checked completely before anything of it counts.
 */
#include "core/json.h"
#include "core/mem.h"
#include "daemon/body.h"
#include "daemon/heat.h"
#include "daemon/routes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 4096 };

struct report {
    uint64_t epoch, step;
    bool told; /* where its next fetch begins: */
    uint64_t fetch_epoch, fetch_pos;
    struct wt_stalls stalls; /* as the job has them, where it tells any */
    struct wt_read *read;
    size_t n_reads;
    const json_t *lost, *bad, *next;
};

static int parse_stalls(const struct wt_daemon *d, const struct wt_job *job, const json_t *body,
                        struct wt_stalls *out, struct wt_err *err) {
    const json_t *by_stage = json_object_get(body, "stalled"),
                 *by_tier = json_object_get(body, "stalled_tiers");
    const char *name;
    json_t *v;
    int rc = 0;
    *out = job->stalls;
    if ((by_stage && !json_is_object(by_stage)) || (by_tier && !json_is_object(by_tier)))
        return wt_err_set(err, WT_EINVAL, "'stalled' and 'stalled_tiers' must be objects");
    for (unsigned i = 0; i < WT_STALL_STAGES && rc == 0; i++)
        rc = wt_body_seconds(by_stage, wt_stall_stages[i], &out->stage[i], err);
    json_object_foreach((json_t *)(uintptr_t)by_tier, name, v) {
        int tier = -1;
        bool hit;
        if (rc == 0 && wt_job_tier(job, d->conf.tier, d->n_tiers, name, &tier, &hit) < 0)
            rc = wt_err_set(err, WT_EINVAL, "'stalled_tiers' names tier '%.64s', which is unknown",
                            name);
        if (rc == 0 && tier >= 0)
            rc = wt_body_seconds(by_tier, name, &out->tier[tier], err);
    }
    return rc;
}

static int parse_read(const struct wt_daemon *d, const struct wt_job *job, const json_t *row,
                      struct wt_read *out, struct wt_err *err) {
    json_int_t shard, ranges, bytes;
    const char *tier;
    if (json_unpack((json_t *)(uintptr_t)row, "[I,s,I,I!]", &shard, &tier, &ranges, &bytes) < 0 ||
        ranges < 0 || bytes < 0)
        return wt_err_set(err, WT_EINVAL,
                          "a row of 'reads' must be [shard, \"tier\", ranges, bytes]");
    if (shard < 0 || (uint64_t)shard >= job->set->d.m.shards)
        return wt_err_set(err, WT_EINVAL, "'reads' names shard %lld of %" PRIu64, (long long)shard,
                          job->set->d.m.shards);
    *out = (struct wt_read){
        .shard = (uint64_t)shard, .ranges = (uint64_t)ranges, .bytes = (uint64_t)bytes};
    if (wt_job_tier(job, d->conf.tier, d->n_tiers, tier, &out->tier, &out->hit) < 0)
        return wt_err_set(err, WT_EINVAL,
                          "'reads' names tier '%.64s', which neither the daemon nor the job has",
                          tier);
    return 0;
}

/* [epoch, lane position]; nothing or null: it does not say. */
static int parse_fetched(const json_t *v, struct report *r, struct wt_err *err) {
    json_int_t epoch, pos;
    if (!v || json_is_null(v))
        return 0;
    if (json_unpack((json_t *)(uintptr_t)v, "[I,I!]", &epoch, &pos) < 0 || epoch < 0 || pos < 0)
        return wt_err_set(err, WT_EINVAL, "'fetched' must be [epoch, lane position]");
    r->told = true;
    r->fetch_epoch = (uint64_t)epoch;
    r->fetch_pos = (uint64_t)pos;
    return 0;
}

struct lost_copy {
    uint64_t shard;
    int tier; /* -1: one that the daemon does not have */
    bool damaged;
};

static int parse_lost(const struct wt_daemon *d, const struct wt_job *job, const json_t *row,
                      struct lost_copy *out, struct wt_err *err) {
    json_int_t shard;
    const char *tier, *how;
    bool hit;
    if (json_unpack((json_t *)(uintptr_t)row, "[I,s,s!]", &shard, &tier, &how) < 0 || shard < 0 ||
        (uint64_t)shard >= job->set->d.m.shards ||
        (strcmp(how, "missing") != 0 && strcmp(how, "damaged") != 0))
        return wt_err_set(err, WT_EINVAL,
                          "a row of 'lost' must be [shard, \"tier\", \"missing\" or \"damaged\"] "
                          "with a shard below %" PRIu64,
                          job->set->d.m.shards);
    *out = (struct lost_copy){.shard = (uint64_t)shard, .damaged = how[0] == 'd'};
    if (wt_job_tier(job, d->conf.tier, d->n_tiers, tier, &out->tier, &hit) < 0)
        return wt_err_set(err, WT_EINVAL,
                          "'lost' names tier '%.64s', which neither the daemon nor the job has",
                          tier);
    return 0;
}

static int check_lost(const struct wt_daemon *d, const struct wt_job *job, const json_t *lost,
                      struct wt_err *err) {
    struct lost_copy c;
    int rc = 0;
    if (lost && (!json_is_array(lost) || json_array_size(lost) > ROWS_MAX))
        return wt_err_set(err, WT_EINVAL, "'lost' must be a list of at most %d rows", ROWS_MAX);
    for (size_t i = 0; i < json_array_size(lost) && rc == 0; i++)
        rc = parse_lost(d, job, json_array_get(lost, i), &c, err);
    return rc;
}

static int parse_bad(const json_t *row, const char **shard, const char **key, struct wt_err *err) {
    if (json_unpack((json_t *)(uintptr_t)row, "[s,s!]", shard, key) < 0 ||
        strlen(*shard) >= WT_JOB_SHARD || strlen(*key) >= WT_JOB_KEY)
        return wt_err_set(err, WT_EINVAL,
                          "a row of 'bad' must be [\"shard's object\", \"key\"], of less than %d "
                          "and %d bytes",
                          WT_JOB_SHARD, WT_JOB_KEY);
    return 0;
}

static int check_bad(const json_t *bad, struct wt_err *err) {
    const char *shard, *key;
    int rc = 0;
    if (bad && (!json_is_array(bad) || json_array_size(bad) > ROWS_MAX))
        return wt_err_set(err, WT_EINVAL, "'bad' must be a list of at most %d rows", ROWS_MAX);
    for (size_t i = 0; i < json_array_size(bad) && rc == 0; i++)
        rc = parse_bad(json_array_get(bad, i), &shard, &key, err);
    return rc;
}

static int parse_report(const struct wt_daemon *d, const struct wt_job *job, const json_t *body,
                        struct report *r, struct wt_err *err) {
    const json_t *reads = json_object_get(body, "reads");
    r->next = json_object_get(body, "next");
    r->lost = json_object_get(body, "lost");
    r->bad = json_object_get(body, "bad");
    int rc = wt_body_u64(body, "epoch", true, &r->epoch, err);
    if (rc == 0)
        rc = wt_body_u64(body, "step", true, &r->step, err);
    if (rc == 0)
        rc = parse_fetched(json_object_get(body, "fetched"), r, err);
    if (rc == 0)
        rc = parse_stalls(d, job, body, &r->stalls, err);
    if (rc < 0)
        return rc;
    if ((reads && !json_is_array(reads)) || (r->next && !json_is_array(r->next)))
        return wt_err_set(err, WT_EINVAL, "'reads' and 'next' must be lists");
    if (json_array_size(reads) > ROWS_MAX || json_array_size(r->next) > ROWS_MAX)
        return wt_err_set(err, WT_EINVAL, "'reads' and 'next' take at most %d rows", ROWS_MAX);
    for (size_t i = 0; i < json_array_size(r->next); i++) {
        const json_t *v = json_array_get(r->next, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0 ||
            (uint64_t)json_integer_value(v) >= job->set->d.m.shards)
            return wt_err_set(err, WT_EINVAL, "'next' must hold numbers of shards below %" PRIu64,
                              job->set->d.m.shards);
    }
    r->n_reads = json_array_size(reads);
    r->read = wt_calloc(r->n_reads, sizeof *r->read);
    if (!r->read)
        return wt_err_set(err, WT_ENOMEM, "out of memory");
    for (size_t i = 0; i < r->n_reads && rc == 0; i++)
        rc = parse_read(d, job, json_array_get(reads, i), &r->read[i], err);
    if (rc == 0)
        rc = check_lost(d, job, r->lost, err);
    return rc < 0 ? rc : check_bad(r->bad, err);
}

/* A job that reads in another order than it told is named once, and again when it is back. */
static void watch(struct wt_daemon *d, struct wt_job *job, const struct wt_read *read) {
    bool news;
    wt_foresee_read(wt_planner_foresee(d->planner), job, read, &news);
    if (news)
        wt_daemon_job_event(d, job->departed ? "job_departed" : "job_returned", job);
    if (news && job->departed)
        wt_log(&d->log, WT_LOG_WARN,
               "job %s (%s) does not read %s in the order that it told: its shards go by "
               "frequency; check that it passes the plan it uses, and that only rank 0 reports",
               job->id, job->o.name, job->set->d.m.name);
    else if (news)
        wt_log(&d->log, WT_LOG_INFO, "job %s (%s) reads in its order again", job->id, job->o.name);
}

static void count_read(struct wt_daemon *d, struct wt_job *job, const struct wt_read *read) {
    struct wt_shard_state *s =
        &wt_catalog_home(&d->catalog, job->set, read->shard)->shard[read->shard];
    wt_heat_add(&s->heat, &s->heated, wt_daemon_now_s(d), wt_planner_get_half_life(d->planner),
                read->bytes, wt_catalog_size(job->set, read->shard));
    /* Read below where we believe a copy: it may be gone, it is looked at soon. */
    if (read->tier >= 0 && s->sure >> read->tier > 1) {
        s->sure &= (uint8_t)((2u << read->tier) - 1);
        wt_reconcile_doubtful(d->reconcile);
    }
    wt_job_read(job, read);
    job->least_bytes += (double)read->bytes * wt_foresee_cold(wt_planner_foresee(d->planner),
                                                              wt_planner_above(d->planner));
    watch(d, job, read);
    struct wt_read_stats *r = &d->reads;
    r->reads += read->ranges;
    r->bytes += read->bytes;
    *(read->hit ? &r->hits : &r->misses) += read->ranges;
    if (read->tier >= 0) {
        r->tier_reads[read->tier] += read->ranges;
        r->tier_bytes[read->tier] += read->bytes;
    }
}

/* A copy that a job did not find is looked for; one that it calls damaged is read first: the size
 * tells nothing of it, and the job may be wrong. */
static void doubt_copy(struct wt_daemon *d, struct wt_job *job, const struct lost_copy *c) {
    struct wt_catalog_set *home = wt_catalog_home(&d->catalog, job->set, c->shard);
    struct wt_shard_state *s = &home->shard[c->shard];
    if (c->tier <= 0 || !(s->mask & (1u << c->tier)))
        return;
    if (c->damaged && wt_claims_take(d->claims, job, home, c->shard, (uint32_t)c->tier)) {
        wt_log(&d->log, WT_LOG_INFO,
               "shard %" PRIu64 " of %s is damaged in tier %s, says job %s (%s): that copy is read",
               c->shard, home->d.m.name, wt_tier_name(d->tier[c->tier]), job->id, job->o.name);
        return;
    }
    s->sure &= (uint8_t) ~(1u << c->tier);
    d->doubts = true;
}

static void take_lost(struct wt_daemon *d, struct wt_job *job, const json_t *lost) {
    struct lost_copy c;
    for (size_t i = 0; i < json_array_size(lost); i++)
        if (parse_lost(d, job, json_array_get(lost, i), &c, NULL) == 0)
            doubt_copy(d, job, &c);
}

/* What is damaged in cold no copy can mend: a person is told, once for each sample and job. */
static void take_bad(struct wt_daemon *d, struct wt_job *job, const json_t *bad) {
    const char *shard, *key;
    for (size_t i = 0; i < json_array_size(bad); i++) {
        if (parse_bad(json_array_get(bad, i), &shard, &key, NULL) < 0 ||
            wt_job_bad(job, shard, key) < 0)
            continue;
        wt_log(&d->log, WT_LOG_WARN,
               "%s %s of shard %s is damaged in its cold copy, says job %s (%s): run wafertier "
               "verify %s, pack it again",
               key[0] ? "sample" : "the index", key, shard, job->id, job->o.name,
               job->set->d.m.name);
    }
}

static json_t *report_answer(const struct wt_daemon *d, const struct wt_job *job,
                             const json_t *next) {
    json_t *residency = json_array(), *moves = json_array(), *tiers = json_array();
    for (uint32_t t = 0; t < d->n_tiers; t++)
        wt_json_push(&tiers, json_string(wt_tier_name(d->tier[t])));
    for (size_t i = 0; i < json_array_size(next); i++) {
        json_int_t shard = json_integer_value(json_array_get(next, i));
        const struct wt_catalog_set *home = wt_catalog_home(&d->catalog, job->set, (uint64_t)shard);
        uint64_t left;
        int target = wt_mover_expect(d->mover, home, (uint64_t)shard, &left);
        wt_json_push(&residency, json_pack("[I,i]", shard, (int)home->shard[shard].mask));
        if (target >= 0)
            wt_json_push(&moves, json_pack("[I,s,I]", shard, wt_tier_name(d->tier[target]),
                                           (json_int_t)left));
    }
    return json_pack("{s:o, s:o, s:o}", "residency", residency, "tiers", tiers, "moves", moves);
}

void wt_route_post_progress(void *arg, struct wt_call *call) {
    struct wt_daemon *d = arg;
    struct report r = {0};
    struct wt_err err = {0};
    struct wt_job *job = wt_job_of(d, call);
    if (!job)
        return;
    if (parse_report(d, job, call->body, &r, &err) < 0) {
        wt_call_fail(call, &err);
    } else {
        wt_job_report(job, r.epoch, r.step, wt_daemon_now_ms(d));
        job->stalls = r.stalls;
        job->fetch_told = r.told;
        job->fetch_epoch = r.fetch_epoch;
        job->fetch_pos = r.fetch_pos;
        wt_foresee_report(wt_planner_foresee(d->planner), job, wt_daemon_now_ms(d));
        wt_daemon_half_life(d);
        for (size_t i = 0; i < r.n_reads; i++)
            count_read(d, job, &r.read[i]);
        take_lost(d, job, r.lost);
        take_bad(d, job, r.bad);
        if (r.n_reads) {
            d->dirty = true;
            wt_planner_kick(d->planner);
        }
        wt_call_reply(call, WT_HTTP_OK, report_answer(d, job, r.next));
    }
    free(r.read);
}
