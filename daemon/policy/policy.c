/* The passes and the decision; see policy.h. */
#include "daemon/policy/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 320, PER_OCTAVE = 8, LOWEST_OCTAVE = -20 };

struct pick {
    double rank; /* larger: sooner */
    int64_t tie; /* larger: sooner, at equal ranks */
    double heat;
    uint64_t shard, size;
    uint8_t mask;
    bool young, spare, unwanted, pinned;
    bool taken;
};

struct picks { /* the best WT_POLICY_KEEP of all that were offered: a heap with the worst on top
                  until it is sorted */
    struct pick *at;
    uint32_t n;
};

struct room {             /* bytes of a tier while the decision is made */
    uint64_t used, after; /* now; when all that leaves has left */
    uint64_t high, low;   /* marks */
};

enum phase { WEIGH, COLLECT };

struct wt_policy {
    uint32_t n_tiers;
    enum phase phase;
    uint64_t next; /* shard */
    uint64_t weight[BUCKETS], total;
    double high_heat;
    struct picks come[WT_POLICY_TIERS], go[WT_POLICY_TIERS];
    struct pick *memory;
};

struct decision {
    struct wt_policy *p;
    const struct wt_policy_conf *conf;
    const struct wt_policy_tier *tiers;
    const struct wt_policy_view *view;
    struct room room[WT_POLICY_TIERS];
    uint64_t *placed; /* shards that got a place in a higher tier: a hash set */
    size_t placed_cap;
    wt_policy_emit emit;
    void *arg;
};

struct wt_policy *wt_policy_new(uint32_t n_tiers) {
    if (n_tiers == 0 || n_tiers > WT_POLICY_TIERS)
        return NULL;
    struct wt_policy *p = calloc(1, sizeof *p);
    struct pick *memory = calloc((size_t)n_tiers * 2 * WT_POLICY_KEEP, sizeof *memory);
    if (!p || !memory) {
        free(p);
        free(memory);
        return NULL;
    }
    p->n_tiers = n_tiers;
    p->memory = memory;
    for (uint32_t t = 0; t < n_tiers; t++) {
        p->come[t].at = memory + (size_t)t * 2 * WT_POLICY_KEEP;
        p->go[t].at = p->come[t].at + WT_POLICY_KEEP;
    }
    return p;
}

void wt_policy_free(struct wt_policy *p) {
    if (!p)
        return;
    free(p->memory);
    free(p);
}

void wt_policy_reset(struct wt_policy *p) {
    p->phase = WEIGH;
    p->next = 0;
    p->total = 0;
    memset(p->weight, 0, sizeof p->weight);
    for (uint32_t t = 0; t < p->n_tiers; t++)
        p->come[t].n = p->go[t].n = 0;
}

/* ---- heat ---- */

static void weigh(struct wt_policy *p, const struct wt_policy_shard *s) {
    if (s->heat <= 0 || s->unwanted)
        return;
    double at = (log2(s->heat) - LOWEST_OCTAVE) * PER_OCTAVE;
    uint32_t bucket = at <= 0 ? 0 : at >= BUCKETS - 1 ? BUCKETS - 1 : (uint32_t)at;
    p->weight[bucket] += s->size;
    p->total += s->size;
}

/* The middle of the bucket that holds the percentile; 0 when nothing was read. */
static double percentile(const struct wt_policy *p, double part) {
    double above = (1 - part) * (double)p->total, sum = 0;
    for (int b = BUCKETS - 1; b >= 0; b--) {
        sum += (double)p->weight[b];
        if (p->weight[b] && sum > above)
            return exp2((b + 0.5) / PER_OCTAVE + LOWEST_OCTAVE);
    }
    return 0;
}

uint32_t wt_policy_band(const struct wt_policy_conf *conf, uint32_t n_tiers, double heat,
                        double high_heat) {
    double low = conf->cold_below * high_heat, high = conf->hot_above * high_heat;
    if (n_tiers < 2 || heat <= 0 || high_heat <= 0 || heat < low)
        return 0;
    if (heat >= high || n_tiers == 2)
        return n_tiers - 1;
    if (low <= 0)
        return 1;
    double part =
        log(heat / low) / log(high / low); /* 0..1: the tiers between share the band evenly */
    uint32_t step = (uint32_t)(part * (n_tiers - 2));
    return 1 + (step < n_tiers - 2 ? step : n_tiers - 3);
}

/* ---- the best of many ---- */

static bool sooner(const struct pick *a, const struct pick *b) {
    if (a->rank > b->rank || a->rank < b->rank)
        return a->rank > b->rank;
    return a->tie > b->tie;
}

static void swap(struct pick *a, struct pick *b) {
    struct pick t = *a;
    *a = *b;
    *b = t;
}

static void sift_down(struct picks *h, uint32_t i) {
    for (;;) {
        uint32_t worst = i, left = 2 * i + 1;
        for (uint32_t k = left; k < left + 2 && k < h->n; k++)
            if (sooner(&h->at[worst], &h->at[k]))
                worst = k;
        if (worst == i)
            return;
        swap(&h->at[i], &h->at[worst]);
        i = worst;
    }
}

static void offer(struct picks *h, const struct pick *x) {
    if (h->n == WT_POLICY_KEEP) {
        if (sooner(x, &h->at[0])) {
            h->at[0] = *x;
            sift_down(h, 0);
        }
        return;
    }
    uint32_t i = h->n++;
    h->at[i] = *x;
    while (i && sooner(&h->at[(i - 1) / 2], &h->at[i])) {
        swap(&h->at[i], &h->at[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
}

static int by_rank(const void *a, const void *b) {
    return sooner(a, b) ? -1 : 1;
}

static void sort(struct picks *h) {
    qsort(h->at, h->n, sizeof h->at[0], by_rank);
}

/* ---- collecting ---- */

static uint8_t usable_mask(const struct wt_policy *p, const struct wt_policy_tier *tiers) {
    uint8_t mask = 1;
    for (uint32_t t = 1; t < p->n_tiers; t++)
        if (tiers[t].usable)
            mask |= (uint8_t)(1u << t);
    return mask;
}

static uint32_t highest(uint8_t mask) {
    return mask ? 31 - (uint32_t)__builtin_clz(mask) : 0;
}

static void collect(struct wt_policy *p, const struct wt_policy_conf *conf,
                    const struct wt_policy_tier *tiers, uint64_t shard,
                    const struct wt_policy_shard *s) {
    if (s->busy)
        return;
    uint8_t usable = usable_mask(p, tiers), held = s->mask & usable;
    uint32_t top = highest(held);
    uint32_t wanted = s->unwanted ? 0 : wt_policy_band(conf, p->n_tiers, s->heat, p->high_heat);
    struct pick x = {.rank = s->heat,
                     .tie = -(int64_t)shard,
                     .heat = s->heat,
                     .shard = shard,
                     .size = s->size,
                     .mask = s->mask,
                     .young = s->age < conf->min_stay,
                     .unwanted = s->unwanted};
    for (uint32_t t = top + 1; t <= wanted && !s->settled; t++)
        if (usable & ~s->barred & ~s->pin & (1u << t))
            offer(&p->come[t], &x);
    x.rank = INFINITY;
    x.pinned = true;
    for (uint32_t t = 1; t < p->n_tiers; t++)
        if (usable & s->pin & ~s->mask & (1u << t))
            offer(&p->come[t], &x);
    x.pinned = false;
    x.tie = (int64_t)shard; /* at equal heat the lower numbers stay: the same ones always */
    for (uint32_t t = 1; t < p->n_tiers; t++) {
        if (!(held & (1u << t)) || (s->pin & (1u << t)))
            continue;
        x.spare = t < top;
        x.rank = s->unwanted || x.spare ? INFINITY : -s->heat;
        offer(&p->go[t], &x);
    }
}

/* ---- deciding ---- */

static size_t slot_of(const struct decision *d, uint64_t shard) {
    size_t i = (size_t)(shard * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (d->placed_cap - 1);
    while (d->placed[i] && d->placed[i] != shard + 1)
        i = (i + 1) & (d->placed_cap - 1);
    return i;
}

static bool is_placed(const struct decision *d, uint64_t shard) {
    return d->placed[slot_of(d, shard)] != 0;
}

static void place(struct decision *d, uint64_t shard) {
    d->placed[slot_of(d, shard)] = shard + 1;
}

static struct room room_of(const struct wt_policy_tier *t, const struct wt_policy_conf *conf) {
    struct room r = {.used = t->used,
                     .after = t->used > t->leaving ? t->used - t->leaving : 0,
                     .high = UINT64_MAX,
                     .low = UINT64_MAX};
    if (t->capacity) {
        r.high = (uint64_t)((double)t->capacity * conf->high);
        r.low = (uint64_t)((double)t->capacity * conf->low);
    }
    return r;
}

static bool fits(uint64_t used, uint64_t size, uint64_t limit) {
    return used <= limit && size <= limit - used;
}

/* Where a shard that leaves tier t goes: one down, when it has no other copy above cold, is worth
 * it and there is room. */
static int lower_tier(struct decision *d, uint32_t t, const struct pick *v) {
    uint8_t others = (uint8_t)(v->mask & ~(1u << t) & ~1u & usable_mask(d->p, d->tiers));
    if (t < 2 || others || v->unwanted || !d->tiers[t - 1].usable || is_placed(d, v->shard) ||
        wt_policy_band(d->conf, d->p->n_tiers, v->heat, d->p->high_heat) == 0)
        return -1;
    struct room *below = &d->room[t - 1];
    if (!fits(below->used, v->size, below->high) || !fits(below->after, v->size, below->high))
        return -1;
    below->used += v->size;
    below->after += v->size;
    return (int)t - 1;
}

static void evict(struct decision *d, uint32_t t, struct pick *v) {
    struct wt_policy_move m = {.shard = v->shard, .to = lower_tier(d, t, v), .drop = (int)t};
    v->taken = true;
    d->room[t].after -= v->size < d->room[t].after ? v->size : d->room[t].after;
    place(d, v->shard); /* one move of a shard at a time */
    d->emit(d->arg, &m);
}

/* Retired shards always; others while the tier is above its mark. */
static void relieve(struct decision *d, uint32_t t) {
    struct picks *go = &d->p->go[t];
    bool pressed = d->room[t].after > d->room[t].high;
    for (uint32_t i = 0; i < go->n; i++) {
        struct pick *v = &go->at[i];
        if (is_placed(d, v->shard))
            continue;
        if (v->unwanted || (pressed && d->room[t].after > d->room[t].low))
            evict(d, t, v);
    }
}

static bool may_displace(const struct decision *d, const struct pick *c, const struct pick *v) {
    return v->spare || c->pinned || c->heat > d->conf->beat * v->heat + d->conf->margin;
}

/* Is v still there, and old enough to leave for c? */
static bool may_go(const struct decision *d, const struct pick *c, const struct pick *v) {
    return !v->taken && !is_placed(d, v->shard) && (!v->young || v->spare || c->pinned);
}

/* Makes room for c in t, or does nothing. */
static bool displace(struct decision *d, uint32_t t, const struct pick *c) {
    struct picks *go = &d->p->go[t];
    uint64_t after = d->room[t].after;
    uint32_t end = 0;
    for (; end < go->n && !fits(after, c->size, d->room[t].high); end++) {
        const struct pick *v = &go->at[end];
        if (!may_go(d, c, v))
            continue;
        if (!may_displace(d, c, v))
            return false;
        after -= v->size < after ? v->size : after;
    }
    if (!fits(after, c->size, d->room[t].high))
        return false;
    for (uint32_t i = 0; i < end; i++) {
        struct pick *v = &go->at[i];
        if (may_go(d, c, v))
            evict(d, t, v);
    }
    return true;
}

static void admit(struct decision *d, uint32_t t, const struct pick *c) {
    struct room *r = &d->room[t];
    if (is_placed(d, c->shard) || c->size > r->high)
        return;
    if (d->view->reserve && !d->view->reserve(d->view->arg, c->shard, t, c->size))
        return;
    /* `after` has the room that hotter ones wait for: nothing may slip into it before them. */
    if (!fits(r->after, c->size, r->high) && !displace(d, t, c))
        return; /* the tier below has it among its own candidates */
    r->after += c->size;
    place(d, c->shard);
    if (!fits(r->used, c->size, r->high))
        return; /* room is on its way: the next pass gives the move */
    r->used += c->size;
    struct wt_policy_move m = {.shard = c->shard, .to = (int)t, .drop = -1};
    d->emit(d->arg, &m);
}

static void decide_tier(struct decision *d, uint32_t t) {
    if (!d->tiers[t].usable)
        return;
    sort(&d->p->come[t]);
    sort(&d->p->go[t]);
    relieve(d, t);
    for (uint32_t i = 0; i < d->p->come[t].n; i++)
        admit(d, t, &d->p->come[t].at[i]);
}

static void decide(struct wt_policy *p, const struct wt_policy_conf *conf,
                   const struct wt_policy_view *view, const struct wt_policy_tier *tiers,
                   wt_policy_emit emit, void *arg) {
    struct decision d = {
        .p = p, .conf = conf, .tiers = tiers, .view = view, .emit = emit, .arg = arg};
    d.placed_cap = 4 * WT_POLICY_KEEP;
    while (d.placed_cap < (size_t)4 * WT_POLICY_KEEP * p->n_tiers)
        d.placed_cap *= 2;
    d.placed = calloc(d.placed_cap, sizeof *d.placed);
    if (!d.placed)
        return; /* no moves this time */
    for (uint32_t t = 0; t < p->n_tiers; t++)
        d.room[t] = room_of(&tiers[t], conf);
    for (uint32_t t = p->n_tiers; t-- > 1;)
        decide_tier(&d, t);
    free(d.placed);
}

bool wt_policy_step(struct wt_policy *p, const struct wt_policy_conf *conf,
                    const struct wt_policy_view *view, const struct wt_policy_tier *tiers,
                    uint64_t budget, wt_policy_emit emit, void *arg) {
    for (;;) {
        for (; p->next < view->shards && budget; p->next++, budget--) {
            struct wt_policy_shard s;
            view->get(view->arg, p->next, &s);
            if (p->phase == WEIGH)
                weigh(p, &s);
            else
                collect(p, conf, tiers, p->next, &s);
        }
        if (p->next < view->shards)
            return false;
        p->next = 0;
        if (p->phase == COLLECT)
            break;
        p->high_heat = percentile(p, conf->percentile);
        p->phase = COLLECT;
    }
    decide(p, conf, view, tiers, emit, arg);
    wt_policy_reset(p);
    return true;
}
