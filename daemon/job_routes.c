/*
 * Data sets and jobs: registration, and their end; progress is in progress.c. Bodies are checked
 * completely before anything is changed; errors say what was given and what is wanted.
 */
#include "core/mem.h"
#include "daemon/body.h"
#include "daemon/routes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
        wt_call_reply(l->call, WT_HTTP_OK, wt_stats_dataset(l->d, set));
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

void wt_route_post_dataset(void *arg, struct wt_call *call) {
    struct wt_daemon *d = arg;
    char name[WT_DATASET_NAME];
    struct wt_err err = {0};
    if (wt_refuse_standby(d, call))
        return;
    if (wt_body_text(call->body, "name", name, sizeof name, &err) < 0)
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
    int rc = wt_body_u64(plan, "version", true, &version, err);
    if (rc == 0)
        rc = wt_body_u64(plan, "samples", true, &o->plan.samples, err);
    if (rc == 0)
        rc = wt_body_u64(plan, "batch", true, &o->plan.batch, err);
    if (rc == 0)
        rc = wt_body_u64(plan, "block", false, &o->plan.block, err);
    if (rc == 0)
        rc = wt_body_u64(plan, "lanes", false, &lanes, err);
    if (rc == 0)
        rc = wt_body_u64(plan, "window", false, &window, err);
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
    int rc = wt_body_text(body, "name", o->name, sizeof o->name, err);
    if (rc == 0)
        rc = wt_body_text(body, "dataset", dataset, WT_DATASET_NAME, err);
    if (rc == 0)
        rc = wt_body_u64(body, "generation", false, generation, err);
    if (rc == 0)
        rc = wt_body_u64(body, "world", false, &o->world, err);
    const json_t *seed = json_object_get(body, "seed");
    if (rc == 0 && seed && !json_is_integer(seed))
        rc = wt_err_set(err, WT_EINVAL, "'seed' must be a whole number");
    o->seed = (uint64_t)json_integer_value(
        seed); /* all 64 bits: large ones are written as negative numbers */
    if (rc == 0)
        rc = wt_body_u64(body, "epoch", false, &o->epoch, err);
    if (rc == 0)
        rc = wt_body_u64(body, "epochs", false, &o->epochs, err);
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
    wt_daemon_job_event(d, "job_registered", job);
    wt_planner_kick(d->planner);
    wt_call_reply(call, WT_HTTP_OK,
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

void wt_route_post_job(void *arg, struct wt_call *call) {
    struct wt_daemon *d = arg;
    struct load_call what = {.d = d, .call = call};
    char dataset[WT_DATASET_NAME];
    struct wt_err err = {0};
    if (wt_refuse_standby(d, call))
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

struct wt_job *wt_job_of(struct wt_daemon *d, struct wt_call *call) {
    struct wt_job *job = wt_jobs_find(d->jobs, call->id);
    struct wt_err err;
    if (job)
        return job;
    wt_err_set(&err, WT_EMISSING,
               "no job %s: it expired or the daemon was restarted; register again", call->id);
    wt_call_fail(call, &err);
    return NULL;
}

void wt_route_delete_job(void *arg, struct wt_call *call) {
    struct wt_daemon *d = arg;
    struct wt_job *job = wt_job_of(d, call);
    if (!job)
        return;
    wt_log(&d->log, WT_LOG_INFO,
           "job %s (%s) leaves after %" PRIu64 " reads, %" PRIu64 " of them above cold", job->id,
           job->o.name, job->reads, job->hits);
    wt_daemon_job_event(d, "job_ended", job);
    wt_jobs_remove(d->jobs, job);
    wt_planner_kick(d->planner);
    wt_call_reply(call, WT_HTTP_OK, json_pack("{s:b}", "removed", 1));
}
