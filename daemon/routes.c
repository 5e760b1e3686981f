/*
 * The control protocol: which path does what; see control.h. Bodies are checked completely before
 * anything is changed. Answers: docs of the protocol name every field; errors say what was given
 * and what is wanted.
 */
#include "core/json.h"
#include "core/mem.h"
#include "daemon/daemon.h"
#include "daemon/heat.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 4096, OK = 200 };

/* ---- reading JSON ---- */

static int want_u64(const json_t *body, const char *name, bool needed, uint64_t *out,
                    struct wt_err *err) {
    const json_t *v = json_object_get(body, name);
    if (!v && !needed)
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return wt_err_set(err, WT_EINVAL, "'%s' must be a whole number, not negative", name);
    *out = (uint64_t)json_integer_value(v);
    return 0;
}

static int want_text(const json_t *body, const char *name, char *out, size_t size,
                     struct wt_err *err) {
    const char *text = json_string_value(json_object_get(body, name));
    if (!text || !text[0] || strlen(text) >= size)
        return wt_err_set(err, WT_EINVAL, "'%s' must be a text of 1 to %zu bytes", name, size - 1);
    memcpy(out, text, strlen(text) + 1);
    return 0;
}

/* Standing by, the daemon must not act for others: the one that holds the lock does. */
static bool refuse_standby(struct wt_daemon *d, struct wt_call *call) {
    if (wt_daemon_active(d))
        return false;
    struct wt_err err;
    wt_err_set(&err, WT_ELOCKED, "this daemon stands by and takes nothing on: %s",
               d->lock && wt_lock_why(d->lock)[0] ? wt_lock_why(d->lock) : "it just starts");
    wt_call_fail(call, &err);
    return true;
}

/* ---- what is shown ---- */

static void get_stats(void *arg, struct wt_call *call) {
    wt_call_reply(call, OK, wt_stats_json(arg));
}
static void get_health(void *arg, struct wt_call *call) {
    wt_call_reply(call, OK, wt_stats_health(arg));
}
static void get_tiers(void *arg, struct wt_call *call) {
    wt_call_reply(call, OK, wt_stats_tiers(arg));
}
static void get_datasets(void *arg, struct wt_call *call) {
    wt_call_reply(call, OK, wt_stats_datasets(arg));
}
static void get_jobs(void *arg, struct wt_call *call) {
    wt_call_reply(call, OK, wt_stats_jobs(arg));
}
static void get_moves(void *arg, struct wt_call *call) {
    wt_call_reply(call, OK, wt_stats_moves(arg));
}

/* ---- data sets ---- */

struct load_call {
    struct wt_daemon *d;
    struct wt_call *call;
    struct wt_job_opts job; /* of a registration */
    uint64_t generation;
};

static void on_dataset_loaded(void *arg, int rc, const struct wt_err *err,
                              struct wt_catalog_set *set) {
    struct load_call *l = arg;
    if (rc < 0)
        wt_call_fail(l->call, err);
    else
        wt_call_reply(l->call, OK, wt_stats_dataset(l->d, set));
    free(l);
}

static void load(struct wt_daemon *d, struct wt_call *call, const char *name,
                 const struct load_call *what, wt_dataset_done done) {
    struct wt_err err = {0};
    struct load_call *l = wt_calloc(1, sizeof *l);
    if (!l) {
        wt_err_set(&err, WT_ENOMEM, "out of memory");
        wt_call_fail(call, &err);
        return;
    }
    *l = *what;
    if (wt_datasets_want(d->datasets, name, done, l, &err) < 0) {
        wt_call_fail(call, &err);
        free(l);
    }
}

static void post_dataset(void *arg, struct wt_call *call) {
    struct wt_daemon *d = arg;
    char name[WT_DATASET_NAME];
    struct wt_err err = {0};
    if (refuse_standby(d, call))
        return;
    if (want_text(call->body, "name", name, sizeof name, &err) < 0)
        wt_call_fail(call, &err);
    else
        load(d, call, name, &(struct load_call){.d = d, .call = call}, on_dataset_loaded);
}

/* ---- registration ---- */

static int parse_tiers(const json_t *body, struct wt_job_opts *o, struct wt_err *err) {
    const json_t *list = json_object_get(body, "tiers");
    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > WT_TIERS_MAX)
        return wt_err_set(err, WT_EINVAL, "'tiers' must be a list of 1 to %d names, cold first",
                          WT_TIERS_MAX);
    o->n_tiers = (uint32_t)json_array_size(list);
    for (uint32_t t = 0; t < o->n_tiers; t++) {
        const char *name = json_string_value(json_array_get(list, t));
        if (!name || strlen(name) >= sizeof o->tier[t])
            return wt_err_set(err, WT_EINVAL, "'tiers' must hold names of at most %zu bytes",
                              sizeof o->tier[t] - 1);
        memcpy(o->tier[t], name, strlen(name) + 1);
    }
    return 0;
}

static int parse_plan(const json_t *body, struct wt_job_opts *o, struct wt_err *err) {
    const json_t *plan = json_object_get(body, "plan");
    uint64_t version = 0, lanes = 0, window = 0;
    if (!plan) /* a reader without a plan is treated by frequency alone */
        return 0;
    if (!json_is_object(plan))
        return wt_err_set(err, WT_EINVAL, "'plan' must be an object");
    int rc = want_u64(plan, "version", true, &version, err);
    if (rc == 0)
        rc = want_u64(plan, "samples", true, &o->plan.samples, err);
    if (rc == 0)
        rc = want_u64(plan, "batch", true, &o->plan.batch, err);
    if (rc == 0)
        rc = want_u64(plan, "block", false, &o->plan.block, err);
    if (rc == 0)
        rc = want_u64(plan, "lanes", false, &lanes, err);
    if (rc == 0)
        rc = want_u64(plan, "window", false, &window, err);
    if (rc == 0 && (lanes > UINT32_MAX || window > UINT32_MAX || version > UINT32_MAX))
        rc = wt_err_set(err, WT_EINVAL,
                        "'version', 'lanes' and 'window' of the plan must fit 32 bits");
    if (rc < 0)
        return rc;
    const char *tail = json_string_value(json_object_get(plan, "tail")),
               *mode = json_string_value(json_object_get(plan, "mode"));
    o->plan.tail = tail && strcmp(tail, "pad") == 0 ? WT_TAIL_PAD : WT_TAIL_DROP;
    o->plan.mode = mode && strcmp(mode, "eval") == 0 ? WT_PLAN_EVAL : WT_PLAN_TRAIN;
    o->plan.lanes = (uint32_t)lanes;
    o->plan.window = (uint32_t)window;
    o->plan_version = (uint32_t)version;
    return 0;
}

static int parse_job(const json_t *body, struct wt_job_opts *o, char dataset[WT_DATASET_NAME],
                     uint64_t *generation, struct wt_err *err) {
    o->world = 1;
    int rc = want_text(body, "name", o->name, sizeof o->name, err);
    if (rc == 0)
        rc = want_text(body, "dataset", dataset, WT_DATASET_NAME, err);
    if (rc == 0)
        rc = want_u64(body, "generation", false, generation, err);
    if (rc == 0)
        rc = want_u64(body, "world", false, &o->world, err);
    const json_t *seed = json_object_get(body, "seed");
    if (rc == 0 && seed && !json_is_integer(seed))
        rc = wt_err_set(err, WT_EINVAL, "'seed' must be a whole number");
    o->seed = (uint64_t)json_integer_value(
        seed); /* all 64 bits: large ones are written as negative numbers */
    if (rc == 0)
        rc = want_u64(body, "epoch", false, &o->epoch, err);
    if (rc == 0)
        rc = want_u64(body, "epochs", false, &o->epochs, err);
    if (rc == 0)
        rc = parse_tiers(body, o, err);
    if (rc == 0)
        rc = parse_plan(body, o, err);
    o->plan.seed = o->seed;
    return rc;
}

static void admit(struct wt_daemon *d, struct wt_call *call, const struct wt_job_opts *o,
                  struct wt_catalog_set *set) {
    struct wt_job *job;
    struct wt_err err = {0};
    if (wt_jobs_add(d->jobs, o, set, wt_daemon_now_ms(d), &job, &err) < 0) {
        wt_call_fail(call, &err);
        return;
    }
    wt_log(&d->log, WT_LOG_INFO, "job %s (%s) reads %s, generation %" PRIu64, job->id, o->name,
           set->d.m.name, set->d.m.generation);
    wt_foresee_join(wt_planner_foresee(d->planner), job, wt_daemon_now_ms(d));
    wt_planner_kick(d->planner);
    wt_call_reply(call, OK,
                  json_pack("{s:s, s:I, s:I, s:o}", "id", job->id, "report_ms",
                            (json_int_t)d->conf.report_interval, "shards",
                            (json_int_t)set->d.m.shards, "predicted", wt_stats_predicted(d, job)));
}

static void on_job_loaded(void *arg, int rc, const struct wt_err *err, struct wt_catalog_set *set) {
    struct load_call *l = arg;
    struct wt_err missing = {0};
    if (rc == 0 && l->generation) {
        struct wt_catalog_set *exact =
            wt_catalog_find(&l->d->catalog, set->d.m.name, l->generation);
        if (!exact)
            rc = wt_err_set(&missing, WT_EMISSING,
                            "data set %s has generation %" PRIu64 ", not %" PRIu64, set->d.m.name,
                            set->d.m.generation, l->generation);
        set = exact;
    }
    if (rc < 0)
        wt_call_fail(l->call, missing.code ? &missing : err);
    else
        admit(l->d, l->call, &l->job, set);
    free(l);
}

static void post_job(void *arg, struct wt_call *call) {
    struct wt_daemon *d = arg;
    struct load_call what = {.d = d, .call = call};
    char dataset[WT_DATASET_NAME];
    struct wt_err err = {0};
    if (refuse_standby(d, call))
        return;
    if (parse_job(call->body, &what.job, dataset, &what.generation, &err) < 0) {
        wt_call_fail(call, &err);
        return;
    }
    struct wt_catalog_set *set = wt_catalog_find(&d->catalog, dataset, what.generation);
    if (set)
        admit(d, call, &what.job, set);
    else /* perhaps it was written since */
        load(d, call, dataset, &what, on_job_loaded);
}

static struct wt_job *job_of(struct wt_daemon *d, struct wt_call *call) {
    struct wt_job *job = wt_jobs_find(d->jobs, call->id);
    struct wt_err err;
    if (job)
        return job;
    wt_err_set(&err, WT_EMISSING,
               "no job %s: it expired or the daemon was restarted; register again", call->id);
    wt_call_fail(call, &err);
    return NULL;
}

static void delete_job(void *arg, struct wt_call *call) {
    struct wt_daemon *d = arg;
    struct wt_job *job = job_of(d, call);
    if (!job)
        return;
    wt_log(&d->log, WT_LOG_INFO,
           "job %s (%s) leaves after %" PRIu64 " reads, %" PRIu64 " of them above cold", job->id,
           job->o.name, job->reads, job->hits);
    wt_jobs_remove(d->jobs, job);
    wt_planner_kick(d->planner);
    wt_call_reply(call, OK, json_pack("{s:b}", "removed", 1));
}

/* ---- progress ---- */

struct report {
    uint64_t epoch, step;
    bool told; /* where its next fetch begins: */
    uint64_t fetch_epoch, fetch_pos;
    struct wt_read *read;
    size_t n_reads;
    const json_t *next;
};

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

static int parse_report(const struct wt_daemon *d, const struct wt_job *job, const json_t *body,
                        struct report *r, struct wt_err *err) {
    const json_t *reads = json_object_get(body, "reads");
    r->next = json_object_get(body, "next");
    int rc = want_u64(body, "epoch", true, &r->epoch, err);
    if (rc == 0)
        rc = want_u64(body, "step", true, &r->step, err);
    if (rc == 0)
        rc = parse_fetched(json_object_get(body, "fetched"), r, err);
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
    return rc;
}

/* A job that reads in another order than it told is named once, and again when it is back. */
static void watch(struct wt_daemon *d, struct wt_job *job, const struct wt_read *read) {
    bool news;
    wt_foresee_read(wt_planner_foresee(d->planner), job, read, &news);
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
    if (read->tier >= 0)
        s->sure &= (uint8_t)((2u << read->tier) - 1);
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

static json_t *report_answer(const struct wt_daemon *d, const struct wt_job *job,
                             const json_t *next) {
    json_t *residency = json_array(), *moves = json_array(), *tiers = json_array();
    for (uint32_t t = 0; t < d->n_tiers; t++)
        wt_json_push(&tiers, json_string(wt_tier_name(d->tier[t])));
    for (size_t i = 0; i < json_array_size(next); i++) {
        json_int_t shard = json_integer_value(json_array_get(next, i));
        const struct wt_catalog_set *home = wt_catalog_home(&d->catalog, job->set, (uint64_t)shard);
        int target = wt_mover_target(d->mover, home, (uint64_t)shard);
        wt_json_push(&residency, json_pack("[I,i]", shard, (int)home->shard[shard].mask));
        if (target >= 0)
            wt_json_push(&moves, json_pack("[I,s]", shard, wt_tier_name(d->tier[target])));
    }
    return json_pack("{s:o, s:o, s:o}", "residency", residency, "tiers", tiers, "moves", moves);
}

static void post_progress(void *arg, struct wt_call *call) {
    struct wt_daemon *d = arg;
    struct report r = {0};
    struct wt_err err = {0};
    struct wt_job *job = job_of(d, call);
    if (!job)
        return;
    if (parse_report(d, job, call->body, &r, &err) < 0) {
        wt_call_fail(call, &err);
    } else {
        wt_job_report(job, r.epoch, r.step, wt_daemon_now_ms(d));
        job->fetch_told = r.told;
        job->fetch_epoch = r.fetch_epoch;
        job->fetch_pos = r.fetch_pos;
        wt_foresee_report(wt_planner_foresee(d->planner), job, wt_daemon_now_ms(d));
        wt_daemon_half_life(d);
        for (size_t i = 0; i < r.n_reads; i++)
            count_read(d, job, &r.read[i]);
        if (r.n_reads) {
            d->dirty = true;
            wt_planner_kick(d->planner);
        }
        wt_call_reply(call, OK, report_answer(d, job, r.next));
    }
    free(r.read);
}

const struct wt_route wt_daemon_routes[] = {
    {"GET", "/healthz", false, get_health},
    {"GET", "/v1/stats", false, get_stats},
    {"GET", "/v1/tiers", false, get_tiers},
    {"GET", "/v1/datasets", false, get_datasets},
    {"GET", "/v1/jobs", false, get_jobs},
    {"GET", "/v1/moves", false, get_moves},
    {"POST", "/v1/datasets", true, post_dataset},
    {"POST", "/v1/jobs", true, post_job},
    {"POST", "/v1/jobs/{id}/progress", true, post_progress},
    {"DELETE", "/v1/jobs/{id}", true, delete_job},
};
const size_t wt_daemon_n_routes = sizeof wt_daemon_routes / sizeof wt_daemon_routes[0];
