/* Keys, sweeps, and which shard comes for which; see foresight.h. */
#include "daemon/policy/foresight.h"

#include "daemon/policy/heap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MARGIN       2.0  /* a stage begins when it has so many times the time that it takes */
#define SWEEP_S      60.0 /* between sweeps, as rates drift */
#define SWEEP_EACH_S 2e-6 /* ... more where they take long: for each shard and job */
#define EPSILON      1e-6 /* seconds */

enum {
    PENDING = 256, /* stages that wait for room */
    VICTIMS = 64,  /* that one newcomer may push out */
    LOOKS = 32,    /* at the top of a heap, to find them */
    USES_MAX = 16, /* that a shard must have to be worth a whole read */
};

struct pending { /* a stage, or a copy that goes a tier down, whose place is still being cleared */
    struct wt_foresight_move m;
    uint64_t size;
};

struct wt_foresight {
    uint32_t n_tiers;
    uint64_t shards;
    struct wt_horizon *horizon;
    struct wt_heap_table table;
    struct wt_heap heap[WT_POLICY_TIERS];
    uint8_t *where; /* the tier whose heap a shard is in */
    uint64_t next;  /* of the sweep; = shards: it is over */
    double swept;
    uint8_t usable; /* tiers, as of the last run */
    struct pending pending[PENDING];
    uint32_t n_pending;
    struct wt_foresight_stats stats;
};

struct run { /* what holds during one call */
    struct wt_foresight *f;
    const struct wt_policy_view *view;
    const struct wt_foresight_pace *pace;
    double now;
    uint64_t used[WT_POLICY_TIERS], after[WT_POLICY_TIERS], high[WT_POLICY_TIERS];
    uint32_t waiting; /* copies from cold */
    uint64_t looks;   /* keys that were brought up to date */
    bool steady;      /* a single job: nothing that is of use is swapped */
    wt_foresight_emit emit;
    void *arg;
};

struct wt_foresight *wt_foresight_new(uint32_t n_tiers) {
    if (n_tiers == 0 || n_tiers > WT_POLICY_TIERS)
        return NULL;
    struct wt_foresight *f = calloc(1, sizeof *f);
    struct wt_horizon *horizon = f ? wt_horizon_new() : NULL;
    if (!horizon) {
        free(f);
        return NULL;
    }
    f->n_tiers = n_tiers;
    f->horizon = horizon;
    for (uint32_t t = 0; t < n_tiers; t++)
        f->heap[t].table = &f->table;
    return f;
}

static void free_shards(struct wt_foresight *f) {
    for (uint32_t t = 0; t < f->n_tiers; t++)
        wt_heap_clear(&f->heap[t]);
    free(f->table.key);
    free(f->table.place);
    free(f->where);
    f->table = (struct wt_heap_table){0};
    f->where = NULL;
    f->shards = f->next = 0;
}

void wt_foresight_free(struct wt_foresight *f) {
    if (!f)
        return;
    free_shards(f);
    wt_horizon_free(f->horizon);
    free(f);
}

bool wt_foresight_resize(struct wt_foresight *f, uint64_t shards) {
    free_shards(f);
    f->n_pending = 0;
    if (shards == 0)
        return true;
    if (shards >= UINT32_MAX)
        return false;
    f->table.key = calloc(shards, sizeof *f->table.key);
    f->table.place = calloc(shards, sizeof *f->table.place);
    f->where = calloc(shards, sizeof *f->where);
    if (!f->table.key || !f->table.place || !f->where) {
        free_shards(f);
        return false;
    }
    f->shards = shards;
    return true;
}

struct wt_horizon *wt_foresight_horizon(struct wt_foresight *f) {
    return f->horizon;
}
void wt_foresight_sweep(struct wt_foresight *f) {
    f->next = 0;
}
void wt_foresight_stats(const struct wt_foresight *f, struct wt_foresight_stats *out) {
    *out = f->stats;
}
bool wt_foresight_knows(const struct wt_foresight *f, uint64_t shard) {
    return f->shards && wt_horizon_covers(f->horizon, shard);
}

/* ---- keys ---- */

static double interval(double heat, double half_life) {
    return heat > 0 ? half_life / (heat * M_LN2) : INFINITY;
}

double wt_foresight_heat(const struct wt_foresight *f, uint64_t shard, double now,
                         double half_life) {
    if (shard >= f->shards || !wt_heap_has(&f->table, shard))
        return 0;
    double wait = f->table.key[shard] - now;
    return isinf(wait) ? 0 : half_life / ((wait > 1e-3 ? wait : 1e-3) * M_LN2);
}

static double key_of(struct wt_foresight *f, uint64_t shard, const struct wt_policy_shard *s,
                     double now, double half_life) {
    if (wt_horizon_covers(f->horizon, shard))
        return wt_horizon_next(f->horizon, shard);
    return now + interval(s->heat, half_life);
}

static uint32_t top_tier(uint8_t mask) {
    return mask > 1 ? 31 - (uint32_t)__builtin_clz(mask) : 0;
}

static void take_out(struct wt_foresight *f, uint64_t shard) {
    if (wt_heap_has(&f->table, shard))
        wt_heap_remove(&f->heap[f->where[shard]], (uint32_t)shard);
}

static void put_in(struct wt_foresight *f, uint64_t shard, uint32_t tier, double key) {
    if (f->where[shard] != tier)
        take_out(f, shard);
    f->where[shard] = (uint8_t)tier;
    if (!wt_heap_put(&f->heap[tier], (uint32_t)shard, key))
        take_out(f, shard); /* no memory: the next sweep tries again */
}

static void touch(struct wt_foresight *f, const struct wt_policy_view *view, uint64_t shard,
                  double now, double half_life, bool sweeping) {
    struct wt_policy_shard s;
    view->get(view->arg, shard, &s);
    uint32_t tier = top_tier(s.mask & f->usable);
    bool out = !wt_heap_has(&f->table, shard);
    if (tier == 0)
        take_out(f, shard);
    else if (!(sweeping && out && (s.busy || (s.pin & (1u << tier)))))
        put_in(f, shard, tier, key_of(f, shard, &s, now, half_life));
}

void wt_foresight_touch(struct wt_foresight *f, const struct wt_policy_view *view, uint64_t shard,
                        double now, double half_life) {
    if (shard < f->shards && wt_horizon_live(f->horizon))
        touch(f, view, shard, now, half_life, false);
}

/* ---- victims ---- */

struct victims {
    uint32_t shard[VICTIMS], n;
    uint64_t size[VICTIMS], bytes;
    double key[VICTIMS];
};

/* The farthest of a tier, its key brought up to date; WT_HEAP_OUT: none that may leave. */
static uint32_t farthest(struct run *r, uint32_t t, struct wt_policy_shard *s) {
    struct wt_foresight *f = r->f;
    for (int look = 0; look < LOOKS; look++) {
        uint32_t v = wt_heap_top(&f->heap[t]);
        if (v == WT_HEAP_OUT)
            return v;
        r->view->get(r->view->arg, v, s);
        if (s->busy || (s->pin & (1u << t)) || !(s->mask & (1u << t))) {
            take_out(f, v); /* a sweep puts it back */
            continue;
        }
        double key = key_of(f, v, s, r->now, r->pace->half_life);
        r->looks++;
        if (key >= f->table.key[v] - EPSILON) {
            f->table.key[v] = key > f->table.key[v] ? key : f->table.key[v];
            return v;
        }
        put_in(f, v, t, key);
    }
    return WT_HEAP_OUT;
}

static bool may_leave(const struct run *r, double key, double newcomer) {
    return r->steady ? isinf(key) && !isinf(newcomer) : key > newcomer + EPSILON;
}

static bool fits(uint64_t used, uint64_t size, uint64_t limit) {
    return used <= limit && size <= limit - used;
}

/* Takes from the heap of t what must leave for `size` bytes needed again at `key`. On failure all
 * is as before. */
static bool choose(struct run *r, uint32_t t, uint64_t size, double key, struct victims *v) {
    struct wt_foresight *f = r->f;
    struct wt_policy_shard s;
    v->n = 0;
    v->bytes = 0;
    while (
        !fits(r->after[t] - (v->bytes < r->after[t] ? v->bytes : r->after[t]), size, r->high[t])) {
        uint32_t one = v->n < VICTIMS ? farthest(r, t, &s) : WT_HEAP_OUT;
        if (one == WT_HEAP_OUT || !may_leave(r, f->table.key[one], key)) {
            for (uint32_t i = 0; i < v->n; i++)
                put_in(f, v->shard[i], t, v->key[i]);
            return false;
        }
        v->shard[v->n] = one;
        v->size[v->n] = s.size;
        v->key[v->n++] = f->table.key[one];
        v->bytes += s.size;
        take_out(f, one);
    }
    return true;
}

static bool make_room(struct run *r, uint32_t t, uint64_t size, double key);

/* The tier below that takes a victim, where it is worth more than what is there; -1. */
static int lower_tier(struct run *r, uint32_t t, uint64_t size, double key) {
    for (uint32_t b = t - 1; b > 0; b--)
        if ((r->f->usable & (1u << b)) && !isinf(key) && size <= r->high[b] &&
            make_room(r, b, size, key))
            return (int)b;
    return -1;
}

/* Now where there is room, else when there is; the last place in the list is a stage's. */
static bool demote(struct run *r, const struct wt_foresight_move *m, uint64_t size) {
    struct wt_foresight *f = r->f;
    if (m->to < 0)
        return r->emit(r->arg, m);
    if (fits(r->used[m->to], size, r->high[m->to])) {
        if (!r->emit(r->arg, m))
            return false;
        r->used[m->to] += size;
        return true;
    }
    if (f->n_pending >= PENDING - 1)
        return false;
    f->pending[f->n_pending++] = (struct pending){.m = *m, .size = size};
    return true;
}

static void evict(struct run *r, uint32_t t, const struct victims *v) {
    struct wt_foresight_stats *st = &r->f->stats;
    for (uint32_t i = 0; i < v->n; i++) {
        int to = lower_tier(r, t, v->size[i], v->key[i]);
        struct wt_foresight_move m = {
            .shard = v->shard[i], .to = to, .drop = (int)t, .due = INFINITY, .job = -1};
        if (!demote(r, &m, v->size[i]))
            continue; /* a sweep puts it back */
        r->after[t] -= v->size[i] < r->after[t] ? v->size[i] : r->after[t];
        if (to > 0) {
            r->after[to] += v->size[i];
            st->demoted++;
        } else {
            st->swapped++;
            st->swapped_bytes += v->size[i];
        }
    }
}

static bool make_room(struct run *r, uint32_t t, uint64_t size, double key) {
    struct victims v;
    if (!choose(r, t, size, key, &v))
        return false;
    evict(r, t, &v);
    return fits(r->after[t], size, r->high[t]);
}

/* ---- stages ---- */

/* What became of a waiting move: it makes no sense any more. */
static bool pointless(const struct run *r, const struct pending *p) {
    struct wt_policy_shard s;
    r->view->get(r->view->arg, p->m.shard, &s);
    if (p->m.drop > 0)
        return s.busy || !(s.mask & (1u << p->m.drop));
    return s.busy || s.mask & r->f->usable & ~1u || p->m.due < r->now - EPSILON;
}

static void count_stage(struct wt_foresight *f, const struct pending *p) {
    if (p->m.drop > 0)
        return;
    f->stats.staged++;
    f->stats.staged_bytes += p->size;
}

/* Gives waiting moves for which there is room now; true: the mover takes no more. */
static bool flush(struct run *r) {
    struct wt_foresight *f = r->f;
    uint32_t kept = 0;
    bool refused = false;
    for (uint32_t i = 0; i < f->n_pending; i++) {
        struct pending p = f->pending[i];
        uint32_t to = (uint32_t)p.m.to;
        bool room = (f->usable & (1u << to)) && fits(r->used[to], p.size, r->high[to]);
        if (pointless(r, &p)) {
            f->stats.late += p.m.due < r->now - EPSILON;
        } else if (!refused && room && r->emit(r->arg, &p.m)) {
            r->used[to] += p.size;
            count_stage(f, &p);
        } else {
            refused = refused || room;
            f->pending[kept++] = p;
        }
    }
    f->n_pending = kept;
    return refused;
}

/* Is it worth a whole read of cold? Then when the last use comes that makes it so. A use that reads
 * a part of the shard saves only that. */
static double worth_until(struct run *r, const struct wt_horizon_use *use) {
    double part = wt_horizon_part(r->f->horizon, use->job, use->shard), t = use->t;
    uint32_t uses = part > 0.75 ? 1 : part * USES_MAX < 1 ? USES_MAX : (uint32_t)(1 / part);
    t = wt_horizon_following(r->f->horizon, use->shard, use->job, use->x, t);
    for (uint32_t i = 1; i < uses && !isinf(t); i++)
        t = wt_horizon_following(r->f->horizon, use->shard, -1, 0, t + EPSILON);
    return t;
}

static bool stage(struct run *r, const struct wt_horizon_use *use,
                  const struct wt_policy_shard *s) {
    struct wt_foresight *f = r->f;
    double until = worth_until(r, use);
    if (isinf(until))
        return false;
    for (uint32_t t = f->n_tiers; t-- > 1;) {
        if (!(f->usable & (1u << t)) || (s->barred & (1u << t)) || s->size > r->high[t] ||
            !make_room(r, t, s->size, until))
            continue;
        r->after[t] += s->size;
        r->waiting++;
        f->pending[f->n_pending++] = (struct pending){
            .m = {.shard = use->shard, .to = (int)t, .drop = -1, .due = use->t, .job = use->job},
            .size = s->size};
        flush(r);
        return true;
    }
    return false;
}

/* A copy in a low tier goes up where there is room for it anyway. */
static void promote(struct run *r, const struct wt_horizon_use *use,
                    const struct wt_policy_shard *s) {
    uint32_t held = top_tier(s->mask & r->f->usable);
    for (uint32_t t = r->f->n_tiers; t-- > held + 1;) {
        struct wt_foresight_move m = {
            .shard = use->shard, .to = (int)t, .drop = (int)held, .due = INFINITY, .job = use->job};
        if (!(r->f->usable & (1u << t)) || (s->barred & (1u << t)) || (s->pin & (1u << held)) ||
            !fits(r->after[t], s->size, r->high[t]) || !fits(r->used[t], s->size, r->high[t]))
            continue;
        if (r->emit(r->arg, &m)) {
            r->after[t] += s->size;
            r->used[t] += s->size;
        }
        return;
    }
}

static bool is_pending(const struct wt_foresight *f, uint64_t shard) {
    for (uint32_t i = 0; i < f->n_pending; i++)
        if (f->pending[i].m.shard == shard)
            return true;
    return false;
}

/* How long it takes until a copy that is decided now has ended. */
static double takes(const struct run *r) {
    return r->pace->copy * (1 + (double)r->waiting / r->pace->moves);
}

/* false: its time has not come; *wake says when. */
static bool consider(struct run *r, const struct wt_horizon_use *use, double *wake) {
    struct wt_foresight *f = r->f;
    struct wt_policy_shard s;
    r->view->get(r->view->arg, use->shard, &s);
    double need = takes(r), early = use->t - r->pace->react - MARGIN * need;
    if (early > r->now + EPSILON) {
        *wake = early;
        return false;
    }
    if (s.busy || is_pending(f, use->shard))
        return true;
    if (s.mask & f->usable & ~1u)
        promote(r, use, &s);
    else if (r->now + need > use->t + EPSILON)
        f->stats.late++;
    else if (!stage(r, use, &s))
        f->stats.bypassed++;
    return true;
}

/* ---- a run ---- */

static void begin(struct run *r, const struct wt_policy_conf *conf,
                  const struct wt_policy_tier *tiers) {
    struct wt_foresight *f = r->f;
    f->usable = 1;
    for (uint32_t t = 1; t < f->n_tiers; t++) {
        const struct wt_policy_tier *x = &tiers[t];
        f->usable |= (uint8_t)(x->usable ? 1u << t : 0);
        r->used[t] = x->used;
        r->after[t] = x->used > x->leaving ? x->used - x->leaving : 0;
        r->high[t] = x->capacity ? (uint64_t)((double)x->capacity * conf->high) : UINT64_MAX;
    }
    r->waiting = r->pace->waiting;
    for (uint32_t i = 0; i < f->n_pending; i++) {
        const struct pending *p = &f->pending[i];
        r->after[p->m.to] += p->size;
        if (p->m.drop > 0)
            r->after[p->m.drop] -= p->size < r->after[p->m.drop] ? p->size : r->after[p->m.drop];
        else
            r->waiting++;
    }
    r->steady = wt_horizon_live(f->horizon) <= 1;
    double rest = SWEEP_S + SWEEP_EACH_S * (double)f->shards * wt_horizon_live(f->horizon);
    if (r->now - f->swept > rest) {
        f->swept = r->now;
        f->next = 0;
    }
}

bool wt_foresight_run(struct wt_foresight *f, const struct wt_policy_conf *conf,
                      const struct wt_policy_view *view, const struct wt_policy_tier *tiers,
                      const struct wt_foresight_pace *pace, double now, uint64_t budget,
                      wt_foresight_emit emit, void *arg, double *wake) {
    struct run r = {.f = f, .view = view, .pace = pace, .now = now, .emit = emit, .arg = arg};
    struct wt_horizon_use use;
    uint64_t shard, each = 1 + wt_horizon_live(f->horizon) / 4;
    *wake = INFINITY;
    if (!f->shards || !wt_horizon_live(f->horizon))
        return true;
    begin(&r, conf, tiers);
    for (; budget >= each && wt_horizon_passed(f->horizon, now, pace->react, &shard);
         budget -= each)
        if (shard < f->shards && wt_heap_has(&f->table, shard))
            touch(f, view, shard, now, pace->half_life, false);
    bool refused = flush(&r);
    while (!refused && budget >= 4 * each && f->n_pending < PENDING &&
           (pace->copy <= 0 || r.waiting < pace->moves) && wt_horizon_peek(f->horizon, now, &use)) {
        if (!consider(&r, &use, wake))
            break;
        wt_horizon_pass(f->horizon, use.job);
        uint64_t cost = (4 + r.looks) * each;
        r.looks = 0;
        budget -= cost < budget ? cost : budget;
    }
    for (; budget >= each && f->next < f->shards; f->next++) {
        touch(f, view, f->next, now, pace->half_life, true);
        budget -= !wt_heap_has(&f->table, f->next) ? 1 : each;
    }
    return budget >= 4 * each;
}
