/*
 * Jobs: they read shards in the order of their plan, from the highest tier that has a whole copy,
 * and report as a loader does.
 *
 * Happy path: register with the daemon that is active, read a window's shards at each step, report
 * the reads, go on. Failures: no daemon, or one that does not know the job (any more): it reads on
 * and registers again. One kind has no plan and reads by a skewed choice, one departs from the plan
 * that it told. A shard that no tier can give whole is a broken rule, unless the simulator has
 * spoiled its cold copy itself.
 */
#include "sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 512 };

/* ---- reading ---- */

static bool serves(const struct sim_store *s, const struct sim_shard *shard) {
    if (s->down_until > s->w->now_ns || s->hang_until > s->w->now_ns)
        return false;
    const struct sim_object *o = sim_store_find(s, shard->key);
    return o && sim_whole(shard, o);
}

/* The tier that gave it; -1: its tier is away, it is read later. */
static int read_from(struct sim_world *w, const struct sim_shard *shard) {
    for (uint32_t t = SIM_TIERS; t-- > 0;)
        if (serves(&w->store[t], shard))
            return (int)t;
    const struct sim_store *cold = &w->store[0];
    const struct sim_object *o = sim_store_find(cold, shard->key);
    if (!shard->harmed && (!o || !sim_whole(shard, o)))
        sim_break(w, "%s: no copy is left of it", shard->key);
    return -1;
}

static void read_shard(struct sim_job *job, uint64_t number, uint64_t bytes) {
    struct sim_world *w = job->w;
    int tier = read_from(w, &w->shard[job->set->shard[number]]);
    if (tier < 0)
        return;
    job->reads++;
    job->hits += tier > 0;
    if (json_array_size(job->rows) < ROWS)
        json_array_append_new(job->rows,
                              json_pack("[I,s,I,I]", (json_int_t)number, w->tier[tier].name,
                                        (json_int_t)1, (json_int_t)bytes));
}

static void read_samples(struct sim_job *job, uint64_t first, uint64_t count) {
    const struct wt_dataset *d = &job->set->d;
    while (count) {
        uint64_t shard = wt_dataset_find(d, first), end = d->cum[shard + 1];
        uint64_t n = end - first < count ? end - first : count;
        struct wt_shard_rec rec;
        wt_dataset_rec(d, shard, &rec);
        read_shard(job, shard, rec.size * n / rec.samples);
        first += n;
        count -= n;
    }
}

/* The windows that begin in this step, of all lanes. */
static void read_plan(struct sim_job *job) {
    struct wt_epoch e = wt_plan_epoch(&job->plan, job->epoch);
    uint64_t from = job->step * job->plan.lane_batch, to = from + job->plan.lane_batch;
    for (uint32_t lane = 0; lane < job->plan.o.lanes; lane++)
        for (uint64_t i = 0; i < wt_epoch_windows(&e, lane); i++) {
            struct wt_window win = wt_epoch_window(&e, lane, i);
            if (win.pos < from || win.pos >= to)
                continue;
            for (uint64_t k = 0; k < win.n_pieces; k++) {
                struct wt_piece piece = wt_epoch_piece(&e, lane, win.piece_first + k);
                read_samples(job, piece.first, piece.count);
            }
        }
}

/* The first shards far more often than the last ones. */
static void read_skewed(struct sim_job *job) {
    const struct wt_dataset *d = &job->set->d;
    for (unsigned i = 0; i < 4; i++) {
        double u = (double)sim_below(job->w, 1000000) / 1e6;
        uint64_t shard = (uint64_t)(u * u * u * (double)d->m.shards);
        struct wt_shard_rec rec;
        wt_dataset_rec(d, shard, &rec);
        read_shard(job, shard, rec.size);
    }
}

static void next_step(struct sim_job *job) {
    if (job->kind == SIM_JOB_PLAN)
        read_plan(job);
    else
        read_skewed(job);
    if (++job->step < job->plan.steps)
        return;
    job->step = 0;
    job->epoch++;
}

/* ---- talking to the daemon ---- */

static void on_registered(void *arg, const struct sim_answer *a) {
    struct sim_job *job = arg;
    job->waits = false;
    if (a->status != 200)
        return;
    snprintf(job->id, sizeof job->id, "%s", json_string_value(json_object_get(a->body, "id")));
    job->on = true;
}

static void on_reported(void *arg, const struct sim_answer *a) {
    struct sim_job *job = arg;
    job->waits = false;
    if (a->status == 200)
        return;
    job->on = false; /* it does not know us: a restart, or we were silent for too long */
    if (a->status == 400)
        sim_break(job->w, "a report was refused: %s",
                  json_string_value(json_object_get(a->body, "error")));
}

/* It begins anew with the generation of now, sometimes with another seed. */
static void choose(struct sim_job *job) {
    struct sim_world *w = job->w;
    struct wt_err err;
    job->set = &w->set[w->n_sets - 1];
    job->epoch = job->step = 0;
    uint64_t samples = job->set->d.m.samples;
    struct wt_plan_opts o = {.samples = samples,
                             .seed = job->seed,
                             .batch = samples < 8 ? 1 : 8,
                             .block = sim_between(w, 1, 8),
                             .lanes = samples < 64 ? 1 : 2,
                             .window = (uint32_t)sim_between(w, 1, 3),
                             .tail = WT_TAIL_PAD};
    if (wt_plan_init(&job->plan, &o, &err) < 0)
        sim_break(w, "the simulator plans badly: %s", err.text);
}

static json_t *registration(const struct sim_job *job) {
    const struct wt_plan_opts *o = &job->plan.o;
    json_t *body =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:[s,s,s]}", "name", "job", "dataset", "wafers",
                  "generation", (json_int_t)job->set->d.m.generation, "seed", (json_int_t)job->seed,
                  "epoch", (json_int_t)job->epoch, "tiers", "cold", "warm", "hot");
    if (job->kind != SIM_JOB_ZIPF)
        json_object_set_new(body, "plan",
                            json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "version",
                                      (json_int_t)WT_PLAN_VERSION, "samples",
                                      (json_int_t)o->samples, "batch", (json_int_t)o->batch,
                                      "block", (json_int_t)o->block, "lanes", (json_int_t)o->lanes,
                                      "window", (json_int_t)o->window, "tail", "pad"));
    return body;
}

static json_t *report(struct sim_job *job) {
    json_t *rows = job->rows, *next = json_array();
    job->rows = json_array();
    for (uint64_t i = 0; i < 4 && i < job->set->d.m.shards; i++)
        json_array_append_new(next, json_integer((json_int_t)i));
    return json_pack("{s:I, s:I, s:o, s:o}", "epoch", (json_int_t)job->epoch, "step",
                     (json_int_t)job->step, "reads", rows, "next", next);
}

static void talk(struct sim_job *job, struct sim_process *p) {
    char path[128];
    job->waits = true;
    if (job->on) {
        snprintf(path, sizeof path, "/v1/jobs/%s/progress", job->id);
        sim_call(p, "POST", path, report(job), on_reported, job);
    } else {
        choose(job); /* a job that comes back after a generation was retired takes the new one */
        sim_call(p, "POST", "/v1/jobs", registration(job), on_registered, job);
    }
}

static void on_time(struct sim_world *w, void *arg) {
    struct sim_job *job = arg;
    if (w->jobs_over)
        return;
    if (job->on)
        next_step(job);
    struct sim_process *p = sim_active(w);
    if (p && !job->waits)
        talk(job, p);
    sim_at(w, sim_between(w, 200 * SIM_MS, 900 * SIM_MS), on_time, job);
}

void sim_jobs_start(struct sim_world *w) {
    for (unsigned i = 0; i < w->n_jobs; i++) {
        struct sim_job *job = &w->job[i];
        *job = (struct sim_job){.w = w, .number = i, .rows = json_array()};
        job->kind = sim_chance(w, 700)   ? SIM_JOB_PLAN
                    : sim_chance(w, 700) ? SIM_JOB_ZIPF
                                         : SIM_JOB_LIAR;
        job->seed = sim_below(w, 1000);
        choose(job);
        sim_at(w, sim_between(w, SIM_MS, 20 * SIM_S), on_time, job);
    }
}

/* They end without a word: the daemon finds out. */
void sim_jobs_stop(struct sim_world *w) {
    w->jobs_over = true;
    for (unsigned i = 0; i < w->n_jobs; i++) {
        w->count.reads += w->job[i].reads;
        w->count.hits += w->job[i].hits;
    }
}

void sim_jobs_free(struct sim_world *w) {
    for (unsigned i = 0; i < w->n_jobs; i++)
        json_decref(w->job[i].rows);
}
