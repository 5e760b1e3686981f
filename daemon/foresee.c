/* Jobs, catalog and mover around the foresight; see foresee.h. */
#include "daemon/foresee.h"

#include "core/mem.h"
#include "daemon/policy/predict.h"

#include <math.h>
#include <stdlib.h>

enum {
    BUDGET = 6000, /* of a slice: some milliseconds */
    WATCHED = 64,  /* reads that the watch looks back on */
    SOME = 16,     /* ... before it says anything */
    PROBES = 4096, /* shards compared of two generations */
};

struct wt_foresee {
    struct wt_catalog *catalog;
    struct wt_mover *mover;
    struct wt_foresight *foresight;
    struct wt_job *job[WT_HORIZON_JOBS]; /* by its number in the horizon */
    uint64_t shape;                      /* of the catalog that shards are numbered by */
    double cold, half_life;
    uint64_t cold_for; /* capacity */
    bool cold_known;
};

static double seconds(uint64_t ms) {
    return (double)ms / 1000;
}

struct wt_foresee *wt_foresee_new(struct wt_catalog *catalog, struct wt_mover *mover) {
    struct wt_foresee *f = wt_calloc(1, sizeof *f);
    struct wt_foresight *foresight = f ? wt_foresight_new(catalog->n_tiers) : NULL;
    if (!foresight) {
        free(f);
        return NULL;
    }
    *f = (struct wt_foresee){.catalog = catalog,
                             .mover = mover,
                             .foresight = foresight,
                             .shape = UINT64_MAX,
                             .half_life = 3600};
    return f;
}

void wt_foresee_free(struct wt_foresee *f) {
    if (!f)
        return;
    wt_foresight_free(f->foresight);
    free(f);
}

static struct wt_horizon *horizon(const struct wt_foresee *f) {
    return wt_foresight_horizon(f->foresight);
}

bool wt_foresee_active(const struct wt_foresee *f) {
    return wt_horizon_live(horizon(f)) > 0;
}
void wt_foresee_stats(const struct wt_foresee *f, struct wt_foresight_stats *out) {
    wt_foresight_stats(f->foresight, out);
}

/* ---- jobs ---- */

/* Samples of both generations: a wrong guess costs copies, nothing else. */
static bool same_shards(const struct wt_catalog_set *a, const struct wt_catalog_set *b) {
    uint64_t n = a->d.m.shards, step = n / PROBES + 1;
    if (b->d.m.shards < n)
        return false;
    for (uint64_t i = 0; i < n; i += step) {
        struct wt_shard_rec x, y;
        wt_dataset_rec(&a->d, i, &x);
        wt_dataset_rec(&b->d, i, &y);
        if (!wt_hash_equal(x.hash, y.hash))
            return false;
    }
    return true;
}

static uint64_t base_of(const struct wt_foresee *f, const struct wt_catalog_set *set) {
    const struct wt_catalog_set *now =
        set->retired ? wt_catalog_find(f->catalog, set->d.m.name, 0) : NULL;
    return now && same_shards(set, now) ? now->base : set->base;
}

static uint64_t used_of(const struct wt_job *job) {
    uint64_t most = job->span, step = job->step < most / job->share ? job->step : most / job->share;
    uint64_t epoch = job->o.epoch;
    epoch = epoch < (UINT64_MAX >> 2) / most ? epoch : (UINT64_MAX >> 2) / most;
    return epoch * most + step * job->share;
}

/* What it has begun to read. Nonsense in a report does not leave the axis. */
static uint64_t place_of(const struct wt_job *job) {
    uint64_t epoch = job->fetch_epoch, most = job->span, pos = job->fetch_pos;
    if (!job->fetch_told)
        return used_of(job) + job->ahead;
    epoch = epoch < (UINT64_MAX >> 2) / most ? epoch : (UINT64_MAX >> 2) / most;
    return epoch * job->span + (pos < 2 * most ? pos : 2 * most);
}

void wt_foresee_join(struct wt_foresee *f, struct wt_job *job, uint64_t now_ms) {
    struct wt_err err;
    struct wt_horizon_opts o = {.cum = job->set->d.cum,
                                .shards = job->set->d.m.shards,
                                .base = base_of(f, job->set),
                                .epochs = job->o.epochs};
    job->future = -1;
    if (job->o.plan_version != WT_PLAN_VERSION || job->o.plan.samples != job->set->d.m.samples ||
        wt_plan_init(&o.plan, &job->o.plan, &err) < 0)
        return;
    o.ahead =
        (uint64_t)o.plan.o.window * o.plan.o.block; /* a window is fetched while one is read */
    job->future = wt_horizon_join(horizon(f), &o, seconds(now_ms));
    if (job->future < 0)
        return;
    job->span = o.plan.steps * o.plan.lane_batch;
    f->job[job->future] = job;
    f->cold_known = false;
    job->share = o.plan.lane_batch;
    job->ahead = o.ahead;
    wt_horizon_report(horizon(f), job->future, place_of(job), used_of(job), seconds(now_ms));
    wt_foresight_sweep(f->foresight);
}

void wt_foresee_leave(struct wt_foresee *f, struct wt_job *job) {
    if (job->future < 0)
        return;
    wt_horizon_leave(horizon(f), job->future);
    f->job[job->future] = NULL;
    f->cold_known = false;
    job->future = -1;
    wt_foresight_sweep(f->foresight);
}

void wt_foresee_report(struct wt_foresee *f, struct wt_job *job, uint64_t now_ms) {
    if (job->future < 0)
        return;
    if (wt_horizon_report(horizon(f), job->future, place_of(job), used_of(job), seconds(now_ms)))
        wt_foresight_sweep(f->foresight);
    double rate = wt_horizon_rate(horizon(f), job->future);
    job->epoch_s = rate > 0 ? (double)job->span / rate : 0;
}

/* Reads that do not fit are counted against those that do, the latest ones. A quarter that does not
 * is more than retries and restarts make. */
void wt_foresee_read(struct wt_foresee *f, struct wt_job *job, const struct wt_read *read,
                     bool *news) {
    *news = false;
    if (job->future < 0)
        return;
    bool fits = wt_horizon_fits(horizon(f), job->future, read->shard);
    *(fits ? &job->fit : &job->misfit) += 1;
    if (job->fit + job->misfit > WATCHED) {
        job->fit /= 2;
        job->misfit /= 2;
    }
    double all = job->fit + job->misfit;
    bool departed = job->departed ? job->misfit * 10 > all : all >= SOME && job->misfit * 4 > all;
    if (departed == job->departed)
        return;
    *news = true;
    job->departed = departed;
    wt_horizon_depart(horizon(f), job->future, departed);
    f->cold_known = false;
    wt_foresight_sweep(f->foresight);
}

double wt_foresee_next(struct wt_foresee *f, uint64_t i) {
    return f->shape == f->catalog->shape && wt_foresee_active(f) ? wt_horizon_next(horizon(f), i)
                                                                 : INFINITY;
}

/* ---- what the optimum needs ---- */

static uint32_t describe(const struct wt_foresee *f, struct wt_predict_job out[WT_PREDICT_JOBS]) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < WT_HORIZON_JOBS && n < WT_PREDICT_JOBS; i++) {
        const struct wt_job *j = f->job[i];
        if (j && !j->departed)
            out[n++] = (struct wt_predict_job){.set = (uint32_t)base_of(f, j->set),
                                               .bytes = j->set->d.m.stored_bytes,
                                               .epoch_s = j->epoch_s};
    }
    return n;
}

double wt_foresee_cold(struct wt_foresee *f, uint64_t capacity) {
    struct wt_predict_job job[WT_PREDICT_JOBS];
    if (f->cold_known && f->cold_for == capacity)
        return f->cold;
    f->cold = wt_predict(job, describe(f, job), capacity);
    f->cold_for = capacity;
    f->cold_known = true;
    return f->cold;
}

double wt_foresee_need(struct wt_foresee *f, uint64_t capacity) {
    double rate = 0;
    for (uint32_t i = 0; i < WT_HORIZON_JOBS; i++) {
        const struct wt_job *j = f->job[i];
        if (j && !j->departed && j->epoch_s > 0)
            rate += (double)j->set->d.m.stored_bytes / j->epoch_s;
    }
    return rate * wt_foresee_cold(f, capacity);
}

/* ---- shards ---- */

void wt_foresee_settle(const struct wt_foresee *f, uint64_t i, uint64_t now_ms,
                       struct wt_policy_shard *s) {
    if (f->shape != f->catalog->shape || !wt_foresight_knows(f->foresight, i))
        return;
    s->settled = true;
    if (s->mask > 1)
        s->heat = wt_foresight_heat(f->foresight, i, seconds(now_ms), f->half_life);
}

void wt_foresee_touch(struct wt_foresee *f, const struct wt_policy_view *view,
                      const struct wt_catalog_set *set, uint64_t shard, uint64_t now_ms) {
    if (f->shape == f->catalog->shape)
        wt_foresight_touch(f->foresight, view, set->base + shard, seconds(now_ms), f->half_life);
}

/* Shards got other numbers: everything is looked at again. */
static bool follow_shape(struct wt_foresee *f) {
    if (f->shape == f->catalog->shape)
        return true;
    if (!wt_foresight_resize(f->foresight, f->catalog->shards))
        return false;
    for (uint32_t i = 0; i < WT_HORIZON_JOBS; i++)
        if (f->job[i])
            wt_horizon_rebase(horizon(f), (int)i, base_of(f, f->job[i]->set));
    f->shape = f->catalog->shape;
    f->cold_known = false;
    return true;
}

static bool on_move(void *arg, const struct wt_foresight_move *m) {
    struct wt_foresee *f = arg;
    uint64_t shard;
    struct wt_catalog_set *set = wt_catalog_at(f->catalog, m->shard, &shard);
    uint64_t due = isinf(m->due) ? UINT64_MAX : (uint64_t)(m->due * 1000);
    bool stage = m->to >= 0 && m->drop < 0;
    int to = m->to;
    if (to >= 0 && !wt_catalog_room(set, (uint32_t)to, wt_catalog_size(set, shard)))
        to = -1; /* its data set has what it may have there */
    if ((to < 0 && m->drop < 0) || wt_mover_add_due(f->mover, set, shard, to, m->drop, due) < 0)
        return false;
    if (stage && m->job >= 0 && f->job[m->job])
        f->job[m->job]->staged_bytes += wt_catalog_size(set, shard);
    return true;
}

bool wt_foresee_run(struct wt_foresee *f, const struct wt_foresee_input *in, uint64_t now_ms,
                    uint64_t *wake_ms) {
    *wake_ms = UINT64_MAX;
    f->half_life = in->half_life;
    if (!wt_foresee_active(f) || !follow_shape(f))
        return true;
    struct wt_foresight_pace pace = {.react = seconds(in->report_ms) + 0.1,
                                     .half_life = in->half_life};
    wt_mover_pace(f->mover, &pace.copy, &pace.moves, &pace.waiting);
    double wake, now = seconds(now_ms);
    bool done = wt_foresight_run(f->foresight, in->conf, in->view, in->tiers, &pace, now, BUDGET,
                                 on_move, f, &wake);
    if (wake < now + 1e9)
        *wake_ms = now_ms + (wake > now ? (uint64_t)((wake - now) * 1000) + 1 : 1);
    return done;
}
