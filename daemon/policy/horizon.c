/* Jobs on one time axis; see horizon.h. */
#include "daemon/policy/horizon.h"

#include <math.h>
#include <stdlib.h>

#define SMOOTH_S  10.0  /* rates are averaged over about so long */
#define HOLD_S    5.0   /* a place is extrapolated for so long after the last report */
#define UNKNOWN_S 600.0 /* an epoch of a job of which nothing is known */
#define SLOWEST   1e-6  /* spans a second: a job that stands still is not taken as gone */

enum {
    LEAP = 2048, /* uses that a walk may be behind before it leaps */
    LEADS = 5,
};

struct walk { /* one step ahead of what was handed out */
    struct wt_future_at at;
    uint64_t shard, x;
    bool ended;
};

struct job {
    bool departed;
    uint64_t base, place, used, before; /* place: all uses before it have begun, by what was used;
                                           before: used, a report ago */
    uint64_t next, lead[LEADS];         /* of the fetches; lead: the least between two of them */
    uint32_t leads;                     /* ever */
    double rate, seen, since;           /* since: the rate is measured from there on */
    struct wt_future future;
    struct walk ahead, done;
    uint64_t gone; /* uses at a smaller x have passed: many may be at the same one */
};

struct wt_horizon {
    struct job *job[WT_HORIZON_JOBS];
    uint32_t n; /* all used ones are below */
};

struct wt_horizon *wt_horizon_new(void) {
    return calloc(1, sizeof(struct wt_horizon));
}

void wt_horizon_free(struct wt_horizon *h) {
    for (uint32_t i = 0; h && i < WT_HORIZON_JOBS; i++)
        free(h->job[i]);
    free(h);
}

/* ---- walks ---- */

static void walk_on(struct job *j, struct walk *w) {
    w->ended = !wt_future_step(&j->future, &w->at, &w->shard, &w->x);
}

static void walk_to(struct job *j, struct walk *w, uint64_t x) {
    wt_future_seek(&j->future, &w->at, x);
    do
        walk_on(j, w);
    while (!w->ended && w->x < x);
}

/* ---- jobs ---- */

int wt_horizon_join(struct wt_horizon *h, const struct wt_horizon_opts *o, double now) {
    uint32_t i = 0;
    while (i < WT_HORIZON_JOBS && h->job[i])
        i++;
    struct job *j = i < WT_HORIZON_JOBS ? calloc(1, sizeof *j) : NULL;
    if (!j)
        return -1;
    wt_future_init(&j->future, &o->plan, o->cum, o->shards, o->epochs, o->ahead);
    j->base = o->base;
    j->seen = now;
    walk_on(j, &j->ahead);
    walk_on(j, &j->done);
    h->job[i] = j;
    h->n = i + 1 > h->n ? i + 1 : h->n;
    return (int)i;
}

void wt_horizon_leave(struct wt_horizon *h, int job) {
    free(h->job[job]);
    h->job[job] = NULL;
    while (h->n && !h->job[h->n - 1])
        h->n--;
}

void wt_horizon_depart(struct wt_horizon *h, int job, bool departed) {
    h->job[job]->departed = departed;
}

void wt_horizon_rebase(struct wt_horizon *h, int job, uint64_t base) {
    h->job[job]->base = base;
}

/* What is assumed until the rate was measured: an epoch takes as long as others' do. */
static double assumed(const struct wt_horizon *h, const struct job *j) {
    double epochs = 0;
    uint32_t known = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        const struct job *o = h->job[i];
        if (!o || o->rate <= 0)
            continue;
        epochs += o->rate / (double)o->future.span;
        known++;
    }
    return (known ? epochs / known : 1 / UNKNOWN_S) * (double)j->future.span;
}

static double rate_of(const struct wt_horizon *h, const struct job *j) {
    double slowest = SLOWEST * (double)j->future.span;
    double rate = j->rate > 0 ? j->rate : assumed(h, j);
    return rate > slowest ? rate : slowest;
}

double wt_horizon_rate(const struct wt_horizon *h, int job) {
    return h->job[job]->rate;
}

static double time_of(const struct wt_horizon *h, const struct job *j, uint64_t x) {
    return j->seen + ((double)x - (double)j->place) / rate_of(h, j);
}

double wt_horizon_time(const struct wt_horizon *h, int job, uint64_t x) {
    return time_of(h, h->job[job], x);
}

/* The first x that comes at t or later. */
static uint64_t place_at(const struct wt_horizon *h, const struct job *j, double t) {
    double x = (double)j->place + (t - j->seen) * rate_of(h, j) - 1e-6;
    return x <= 0 ? 0 : x >= 9e18 ? (uint64_t)9e18 : (uint64_t)ceil(x);
}

static double held(const struct job *j, double now) {
    return now > j->seen + HOLD_S ? j->seen + HOLD_S : now;
}

/* The mean since the job began to read, later of the last SMOOTH_S. */
static void measure(struct job *j, uint64_t used, double now) {
    double dt = now - j->seen;
    if (j->used == 0 || used < j->used) { /* it begins, or begins again elsewhere */
        j->since = now;
    } else if (dt > 0) {
        double part = dt / (now - j->since), smooth = 1 - exp(-dt / SMOOTH_S);
        double rate = (double)(used - j->used) / dt;
        part = j->rate > 0 && part < smooth ? smooth : part;
        j->rate = j->rate > 0 ? j->rate + part * (rate - j->rate) : rate;
    }
    j->before = j->used < used ? j->used : used;
    j->used = used;
}

/* How far ahead of what is used a fetch begins. Before a window is fetched, the distance to it
 * falls to that: the least of it counts, of the last few windows the second least, as windows at
 * the end of an epoch are shorter. */
static uint64_t lead_of(struct job *j, uint64_t next, uint64_t used) {
    uint64_t gap = next > used ? next - used : 0, best[2] = {UINT64_MAX, UINT64_MAX};
    if (used < j->used)
        j->leads = 0;
    if (j->leads == 0 || next != j->next)
        j->lead[j->leads++ % LEADS] = gap;
    uint64_t *latest = &j->lead[(j->leads - 1) % LEADS];
    *latest = gap < *latest ? gap : *latest;
    j->next = next;
    for (uint32_t i = 0; i < j->leads && i < LEADS; i++) {
        if (j->lead[i] < best[0]) {
            best[1] = best[0];
            best[0] = j->lead[i];
        } else if (j->lead[i] < best[1]) {
            best[1] = j->lead[i];
        }
    }
    if (j->leads <= 2) /* no whole one yet */
        return best[0] < j->future.ahead ? best[0] : j->future.ahead;
    uint64_t half = j->future.plan.lane_batch / 2; /* somewhere within the step */
    return best[1] > half ? best[1] - half : 0;
}

bool wt_horizon_report(struct wt_horizon *h, int job, uint64_t next, uint64_t used, double now) {
    struct job *j = h->job[job];
    uint64_t span = j->future.span;
    if (now < j->seen)
        return false;
    uint64_t place = used + lead_of(j, next, used);
    measure(j, used, now);
    j->place = place;
    j->seen = now;
    const struct wt_plan_opts *o = &j->future.plan.o;
    uint64_t far = 4 * o->window * o->block + LEAP * o->block / o->lanes;
    if (place + span / 2 >= j->done.x && (j->done.ended || place <= j->done.x + far))
        return false;
    j->gone = 0; /* it goes on elsewhere */
    walk_to(j, &j->done, place);
    walk_to(j, &j->ahead, place);
    return true;
}

uint32_t wt_horizon_live(const struct wt_horizon *h) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->n; i++)
        n += h->job[i] && !h->job[i]->departed && !h->job[i]->done.ended;
    return n;
}

static bool reads(const struct job *j, uint64_t shard) {
    return j && !j->departed && shard >= j->base && shard - j->base < j->future.shards;
}

bool wt_horizon_covers(const struct wt_horizon *h, uint64_t shard) {
    for (uint32_t i = 0; i < h->n; i++)
        if (reads(h->job[i], shard))
            return true;
    return false;
}

double wt_horizon_part(const struct wt_horizon *h, int job, uint64_t shard) {
    const struct job *j = h->job[job];
    return wt_future_part(&j->future, shard - j->base);
}

bool wt_horizon_fits(struct wt_horizon *h, int job, uint64_t own_shard) {
    struct job *j = h->job[job];
    uint64_t slack = j->future.ahead, from = j->before > slack ? j->before - slack : 0;
    uint64_t begun = j->next > j->place ? j->next : j->place;
    return wt_future_next(&j->future, own_shard, from) < begun + slack + 1;
}

/* ---- next uses ---- */

/* From where on uses have not passed. */
static uint64_t left(const struct job *j) {
    return j->gone > j->done.x ? j->gone : j->done.x;
}

static double sooner(struct wt_horizon *h, struct job *j, uint64_t shard, uint64_t from,
                     double best) {
    uint64_t x = wt_future_next(&j->future, shard - j->base, from);
    double t = x == WT_FUTURE_NEVER ? INFINITY : time_of(h, j, x);
    return t < best ? t : best;
}

double wt_horizon_next(struct wt_horizon *h, uint64_t shard) {
    double best = INFINITY;
    for (uint32_t i = 0; i < h->n; i++) {
        struct job *j = h->job[i];
        if (reads(j, shard) && !j->done.ended)
            best = sooner(h, j, shard, left(j), best);
    }
    return best;
}

double wt_horizon_following(struct wt_horizon *h, uint64_t shard, int job, uint64_t x, double t) {
    double best = INFINITY;
    for (uint32_t i = 0; i < h->n; i++) {
        struct job *j = h->job[i];
        if (!reads(j, shard) || j->done.ended)
            continue;
        uint64_t from = (int)i == job ? x + 1 : place_at(h, j, t);
        best = sooner(h, j, shard, from > left(j) ? from : left(j), best);
    }
    return best < t ? t : best;
}

/* ---- the two walks over all jobs ---- */

bool wt_horizon_peek(struct wt_horizon *h, double now, struct wt_horizon_use *use) {
    use->job = -1;
    for (uint32_t i = 0; i < h->n; i++) {
        struct job *j = h->job[i];
        if (!j || j->departed)
            continue;
        uint64_t gone = place_at(h, j, held(j, now)); /* its reader has come to these already */
        while (!j->ahead.ended && j->ahead.x < gone)
            walk_on(j, &j->ahead);
        if (j->ahead.ended)
            continue;
        double t = time_of(h, j, j->ahead.x);
        if (use->job < 0 || t < use->t)
            *use = (struct wt_horizon_use){
                .job = (int)i, .shard = j->base + j->ahead.shard, .x = j->ahead.x, .t = t};
    }
    return use->job >= 0;
}

void wt_horizon_pass(struct wt_horizon *h, int job) {
    walk_on(h->job[job], &h->job[job]->ahead);
}

bool wt_horizon_passed(struct wt_horizon *h, double now, double lag, uint64_t *shard) {
    for (uint32_t i = 0; i < h->n; i++) {
        struct job *j = h->job[i];
        if (!j || j->done.ended || j->done.x >= place_at(h, j, held(j, now) - lag))
            continue;
        *shard = j->base + j->done.shard;
        j->gone = j->done.x + 1;
        walk_on(j, &j->done);
        return true;
    }
    return false;
}
