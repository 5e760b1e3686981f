/* Jobs of known order on the virtual clock; see run.h. */
#include "tools/sim/run.h"

#include "core/mem.h"

#include <math.h>
#include <stdlib.h>

struct reader {
    struct wt_future future;
    struct wt_future_at at;
    uint64_t shard, place; /* the next one, and how many before it */
    bool ended, joined;
    int id;
    double *used; /* [prefetch] when the job was done with its last reads */
    double last;  /* of them */
    double start;
};

struct mix {
    const struct wt_sim_mix *o;
    uint64_t *cum;
    struct reader *reader;
    double period; /* between two reads of a job */
};

/* splitmix64: the simulation must be the same everywhere. */
static uint64_t draw(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static double uniform(uint64_t *state) { /* (0, 1) */
    return ((double)(draw(state) >> 11) + 0.5) / 0x1p53;
}

int wt_sim_mix_sizes(const struct wt_sim_mix *mix, struct wt_sim_load *load, struct wt_err *err) {
    uint64_t state = mix->seed ^ UINT64_C(0x5157);
    load->objects = mix->shards;
    load->size = wt_calloc(mix->shards, sizeof *load->size);
    if (!load->size)
        return wt_err_set(err, WT_ENOMEM, "no memory for %u shards", mix->shards);
    for (uint32_t i = 0; i < mix->shards; i++) {
        double normal = sqrt(-2 * log(uniform(&state))) * cos(2 * M_PI * uniform(&state));
        double size = mix->sizes == WT_SIM_EVEN ? 1 : exp(0.5 * normal);
        load->size[i] = (uint64_t)fmax(1, round(size * (double)mix->mean));
        load->bytes += load->size[i];
    }
    return 0;
}

static void mix_free(struct mix *m) {
    for (uint32_t j = 0; m->reader && j < m->o->jobs; j++)
        free(m->reader[j].used);
    free(m->reader);
    free(m->cum);
}

static void next_read(struct reader *r) {
    uint64_t x;
    r->ended = !wt_future_step(&r->future, &r->at, &r->shard, &x);
}

static int make_reader(struct mix *m, uint32_t j, uint64_t *state, struct wt_err *err) {
    struct reader *r = &m->reader[j];
    struct wt_plan_opts opts = {.samples = m->o->shards,
                                .seed = draw(state),
                                .batch = 1,
                                .block = 1,
                                .lanes = 1,
                                .window = 1};
    struct wt_plan plan;
    int rc = wt_plan_init(&plan, &opts, err);
    if (rc < 0)
        return rc;
    double late = m->o->offset == WT_SIM_NONE ? 0 : floor(uniform(state) * m->o->shards);
    wt_future_init(&r->future, &plan, m->cum, m->o->shards, m->o->epochs, 0);
    r->start = (late + (double)j / m->o->jobs) * m->period;
    r->used = wt_calloc(m->o->prefetch, sizeof *r->used);
    for (uint32_t i = 0; r->used && i < m->o->prefetch; i++)
        r->used[i] = r->start;
    r->last = r->start;
    next_read(r);
    return r->used ? 0 : wt_err_set(err, WT_ENOMEM, "no memory for job %u", j);
}

static int mix_init(struct mix *m, const struct wt_sim_mix *o, struct wt_err *err) {
    uint64_t state = o->seed;
    *m = (struct mix){.o = o, .period = o->epoch_s / o->shards};
    m->cum = wt_calloc((size_t)o->shards + 1, sizeof *m->cum);
    m->reader = wt_calloc(o->jobs, sizeof *m->reader);
    int rc = m->cum && m->reader ? 0 : wt_err_set(err, WT_ENOMEM, "no memory for %u jobs", o->jobs);
    for (uint32_t i = 0; rc == 0 && i <= o->shards; i++)
        m->cum[i] = i;
    for (uint32_t j = 0; rc == 0 && j < o->jobs; j++)
        rc = make_reader(m, j, &state, err);
    if (rc < 0)
        mix_free(m);
    return rc;
}

/* When the reader begins its next read: as soon as one of the last `prefetch` was used. */
static double begins(const struct mix *m, const struct reader *r) {
    return r->ended ? INFINITY : r->used[r->place % m->o->prefetch];
}

static struct reader *first_reader(const struct mix *m, double *t) {
    struct reader *first = NULL;
    *t = INFINITY;
    for (uint32_t j = 0; j < m->o->jobs; j++) {
        double b = begins(m, &m->reader[j]);
        if (b < *t) {
            *t = b;
            first = &m->reader[j];
        }
    }
    return first;
}

/* The read is there at `ready`: it is used a period after the one before, or later. */
static double advance(const struct mix *m, struct reader *r, double ready) {
    double wanted = r->last + (r->place ? m->period : 0);
    double wait = ready > wanted ? ready - wanted : 0;
    r->last = wanted + wait;
    r->used[r->place % m->o->prefetch] = r->last + (m->o->prefetch == 1 ? m->period : 0);
    r->place++;
    next_read(r);
    return wait;
}

static int note(struct wt_sim_load *load, uint32_t shard, struct wt_err *err) {
    if (load->n >= UINT32_MAX - 1)
        return wt_err_set(err, WT_ERANGE, "more than 2^32 requests: simulate fewer epochs");
    if (wt_grow(&load->object, &load->cap, load->n + 1, sizeof *load->object) < 0)
        return wt_err_set(err, WT_ENOMEM, "no memory for %llu requests",
                          (unsigned long long)load->n);
    load->object[load->n++] = shard;
    return 0;
}

int wt_sim_mix_requests(const struct wt_sim_mix *o, struct wt_sim_load *load, struct wt_err *err) {
    struct mix m;
    int rc = mix_init(&m, o, err);
    if (rc < 0)
        return rc;
    double t;
    struct reader *r;
    load->n = 0;
    while (rc == 0 && (r = first_reader(&m, &t))) {
        rc = note(load, (uint32_t)r->shard, err);
        advance(&m, r, t);
    }
    load->from = load->n / 4;
    mix_free(&m);
    return rc;
}

double wt_sim_mix_seconds(const struct wt_sim_mix *o, const struct wt_sim_load *load) {
    return (double)(load->n - load->from) / o->jobs * o->epoch_s / o->shards;
}

/* ---- with the policy ---- */

static void report(struct mix *m, struct wt_world *w, struct reader *r, double now) {
    struct wt_horizon *h = wt_foresight_horizon(w->foresight);
    if (!r->joined) {
        struct wt_horizon_opts o = {
            .plan = r->future.plan, .cum = m->cum, .shards = m->o->shards, .epochs = m->o->epochs};
        r->id = wt_horizon_join(h, &o, now);
        r->joined = true;
        wt_foresight_sweep(w->foresight);
    }
    if (wt_horizon_report(h, r->id, r->place, r->place, now))
        wt_foresight_sweep(w->foresight);
}

static void leave(struct wt_world *w, struct reader *r) {
    wt_horizon_leave(wt_foresight_horizon(w->foresight), r->id);
    wt_foresight_sweep(w->foresight);
}

static int one_read(struct mix *m, struct wt_world *w, struct wt_sim_load *load, struct reader *r,
                    double now, double *wake, struct wt_err *err) {
    report(m, w, r, now);
    wt_world_decide(w, now, wake);
    wt_world_work(w, now);
    if (load->n == load->from)
        w->count = (struct wt_world_count){0};
    double ready = wt_world_read(w, (uint32_t)r->shard, now);
    int rc = note(load, (uint32_t)r->shard, err);
    w->count.stall += advance(m, r, ready);
    if (r->ended)
        leave(w, r);
    return rc;
}

int wt_sim_run_mix(const struct wt_sim_mix *o, struct wt_world *w, struct wt_sim_load *load,
                   struct wt_err *err) {
    struct mix m;
    int rc = mix_init(&m, o, err);
    if (rc < 0)
        return rc;
    double t, wake = INFINITY;
    struct reader *r;
    load->n = 0;
    w->known = true;
    while (rc == 0 && (r = first_reader(&m, &t))) {
        double next = fmin(fmin(t, wake), wt_world_next(w));
        if (wt_world_next(w) <= next)
            wt_world_copied(w);
        if (t <= next) {
            rc = one_read(&m, w, load, r, t, &wake, err);
        } else {
            wt_world_decide(w, next, &wake);
            wt_world_work(w, next);
        }
    }
    mix_free(&m);
    return rc;
}
