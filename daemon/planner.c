/* From the catalog to the policy to the mover; see planner.h. */
#include "daemon/planner.h"

#include "core/mem.h"
#include "daemon/heat.h"
#include "daemon/quota.h"

#include <stdlib.h>
#include <string.h>

enum {
    REST = 4,         /* passes by frequency take a fifth of the time at most, */
    IDLE_REST = 5000, /* ... and where nothing happens a five-thousandth */
    COALESCE_MS = 50, /* what happens within makes one pass */
    SOON_MS = 10,
    SLICE = 20000, /* shards: a few milliseconds */
};

struct fill { /* how full a tier is, and how full it may be */
    struct wt_req req;
    struct wt_planner *planner;
    uint32_t tier;
    bool busy;
    bool heard;             /* since moves were allowed: before, others may have filled the tier */
    bool stale;             /* what is asked now was asked before that, or before a reload */
    uint64_t capacity, own; /* that counts; the tier's own, 0: unlimited */
    struct wt_usage usage; /* also by what the catalog does not know: of others, or not found yet */
    uint64_t told;         /* what was used when the policy was last told */
};

struct wt_planner {
    uv_timer_t timer; /* passes by frequency */
    uv_timer_t ahead; /* foresight */
    unsigned open;    /* timers */
    bool on, stopping;
    bool again;   /* something happened during the pass */
    bool running; /* a pass is under way */
    struct wt_planner_opts o;
    struct wt_policy *policy;
    struct wt_foresee *foresee;
    uint64_t shape, passes;
    uint64_t spent_ns, rested_ms; /* by the pass; when the next one may begin, */
    uint64_t idle_ms;             /* ... and though nothing happened */
    uint64_t stayed_ms;           /* what came lately may leave from then on; 0: nothing did */
    double half_life;
    uint32_t now; /* second of the pass */
    struct fill fill[WT_TIERS_MAX];
    unsigned asking;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

static void on_timer(uv_timer_t *timer);

struct wt_planner *wt_planner_new(uv_loop_t *loop, const struct wt_planner_opts *opts) {
    struct wt_planner *p = wt_calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->o = *opts;
    p->half_life = 3600;
    p->policy = wt_policy_new(opts->catalog->n_tiers);
    p->foresee = wt_foresee_new(opts->catalog, opts->mover);
    if (!p->policy || !p->foresee) {
        wt_policy_free(p->policy);
        wt_foresee_free(p->foresee);
        free(p);
        return NULL;
    }
    for (uint32_t t = 0; t < opts->catalog->n_tiers; t++)
        p->fill[t] =
            (struct fill){.planner = p, .tier = t, .capacity = opts->tier_opts[t].capacity};
    uv_timer_init(loop, &p->timer);
    uv_timer_init(loop, &p->ahead);
    p->timer.data = p->ahead.data = p;
    p->open = 2;
    return p;
}

void wt_planner_half_life(struct wt_planner *p, double seconds) {
    p->half_life = seconds;
}
double wt_planner_get_half_life(const struct wt_planner *p) {
    return p->half_life;
}
uint64_t wt_planner_capacity(const struct wt_planner *p, uint32_t tier) {
    return p->fill[tier].capacity;
}
uint64_t wt_planner_mark(const struct wt_planner *p, uint32_t tier) {
    uint64_t c = p->fill[tier].capacity;
    return c ? (uint64_t)((double)c * p->o.conf->high) : UINT64_MAX;
}
uint64_t wt_planner_passes(const struct wt_planner *p) {
    return p->passes;
}

/* ---- what the policy sees ---- */

/* Tiers of which the set has used up its share. */
static uint8_t over_quota(const struct wt_catalog_set *set, uint32_t n_tiers, uint64_t size) {
    uint8_t mask = 0;
    for (uint32_t t = 1; set->limited && t < n_tiers; t++)
        if (!wt_catalog_room(set, t, size))
            mask |= (uint8_t)(1u << t);
    return mask;
}

static void get_shard(void *arg, uint64_t i, struct wt_policy_shard *out) {
    const struct wt_planner *p = arg;
    uint64_t shard;
    const struct wt_catalog_set *set = wt_catalog_at(p->o.catalog, i, &shard);
    const struct wt_shard_state *s = &set->shard[shard];
    *out = (struct wt_policy_shard){
        .size = wt_catalog_size(set, shard),
        .heat = wt_heat_at(s->heat, s->heated, p->now, p->half_life),
        .age = p->now > s->since ? p->now - s->since : 0,
        .mask = s->mask | 1, /* what is landed is bound to its home: cold is not asked for it */
        .pin = wt_catalog_bound(set, shard),
        .busy = s->flags & (WT_SHARD_BUSY | WT_SHARD_ASIDE),
        .unwanted = set->retired && set->jobs == 0,
    };
    out->barred = s->barred | over_quota(set, p->o.catalog->n_tiers, out->size);
    wt_foresee_settle(p->foresee, i, uv_now(p->timer.loop), out);
}

/* With what is not in the catalog: the most that can be there. */
static uint64_t used_of(const struct wt_planner *p, uint32_t t) {
    return wt_usage_most(&p->fill[t].usage, wt_mover_net(p->o.mover, t), p->o.catalog->used[t]);
}

/* What is on its way out, or may be out already. */
static uint64_t leaving_of(const struct wt_planner *p, uint32_t t) {
    return wt_mover_leaving(p->o.mover, t) +
           wt_usage_doubt(&p->fill[t].usage, wt_mover_net(p->o.mover, t), p->o.catalog->used[t]);
}

/* Where there is a limit to keep, nothing comes before the tier has said what is in it. */
static bool is_heard(const struct wt_planner *p, uint32_t t) {
    return t == 0 || p->fill[t].heard || p->o.tier_opts[t].capacity == 0;
}

bool wt_planner_room(const struct wt_planner *p, uint32_t t, uint64_t bytes) {
    uint64_t used = used_of(p, t) + wt_mover_coming(p->o.mover, t), capacity = p->fill[t].capacity;
    return is_heard(p, t) && (capacity == 0 || (used <= capacity && bytes <= capacity - used));
}

static void get_tiers(const struct wt_planner *p, struct wt_policy_tier out[WT_TIERS_MAX]) {
    for (uint32_t t = 0; t < p->o.catalog->n_tiers; t++) {
        struct wt_policy_tier *x = &out[t];
        *x = (struct wt_policy_tier){.capacity = p->fill[t].capacity,
                                     .used = used_of(p, t) + wt_mover_coming(p->o.mover, t),
                                     .leaving = leaving_of(p, t),
                                     .usable = !wt_tier_is_down(p->o.tiers[t]) &&
                                               !p->o.tier_opts[t].read_only && is_heard(p, t)};
        /* It refused although there should be room: whatever fills it, nothing comes in before
         * something has left. */
        if (t && wt_mover_full(p->o.mover, t) && (x->capacity == 0 || x->capacity > x->used))
            x->capacity = x->used ? x->used : 1;
    }
}

/* Pins and requests by hand outrank a quota. `granted` is what this pass gives; what moves bring
 * already is in the catalog. */
static bool reserve(void *arg, uint64_t i, uint32_t tier, uint64_t size) {
    struct wt_planner *p = arg;
    uint64_t shard;
    struct wt_catalog_set *set = wt_catalog_at(p->o.catalog, i, &shard);
    if (!set->limited || (wt_catalog_bound(set, shard) & (1u << tier)))
        return true;
    if (!wt_catalog_room(set, tier, set->granted[tier] + size))
        return false;
    set->granted[tier] += size;
    return true;
}

static void on_move(void *arg, const struct wt_policy_move *move) {
    struct wt_planner *p = arg;
    uint64_t shard;
    struct wt_catalog_set *set = wt_catalog_at(p->o.catalog, move->shard, &shard);
    uint64_t size = wt_catalog_size(set, shard);
    int to = move->to;
    if (to >= 0 && set->limited && set->granted[to] >= size)
        set->granted[to] -= size; /* from now on among what comes */
    if (to >= 0 && move->drop >= 0 && !wt_catalog_room(set, (uint32_t)to, size) &&
        !(wt_catalog_bound(set, shard) & (1u << to)))
        to = -1; /* no room below by its quota: it only leaves */
    wt_mover_add(p->o.mover, set, shard, to, move->drop); /* refused: decided again later */
}

static void forget_grants(struct wt_planner *p) {
    for (size_t i = 0; i < p->o.catalog->n_sets; i++)
        memset(p->o.catalog->set[i]->granted, 0, sizeof p->o.catalog->set[i]->granted);
}

/* ---- foresight ---- */

struct wt_foresee *wt_planner_foresee(const struct wt_planner *p) {
    return p->foresee;
}

static struct wt_policy_view view_of(struct wt_planner *p) {
    return (struct wt_policy_view){
        .shards = p->o.catalog->shards, .get = get_shard, .reserve = reserve, .arg = p};
}

void wt_planner_touched(struct wt_planner *p, const struct wt_catalog_set *set, uint64_t shard) {
    struct wt_policy_view view = view_of(p);
    p->stayed_ms = uv_now(p->timer.loop) + UINT64_C(1000) * p->o.conf->min_stay + 1000;
    wt_foresee_touch(p->foresee, &view, set, shard, uv_now(p->timer.loop));
}

uint64_t wt_planner_above(const struct wt_planner *p) {
    uint64_t sum = 0;
    for (uint32_t t = 1; t < p->o.catalog->n_tiers; t++) {
        uint64_t c = p->fill[t].capacity;
        if (c == 0)
            return UINT64_MAX;
        c = (uint64_t)((double)c * p->o.conf->high);
        sum = c < UINT64_MAX - sum ? sum + c : UINT64_MAX;
    }
    return sum;
}

static void on_ahead(uv_timer_t *timer) {
    struct wt_planner *p = timer->data;
    struct wt_policy_view view = view_of(p);
    struct wt_policy_tier tiers[WT_TIERS_MAX];
    uint64_t wake, now = uv_now(timer->loop);
    p->now = wt_clock_now(&p->o.catalog->clock);
    get_tiers(p, tiers);
    struct wt_foresee_input in = {.conf = p->o.conf,
                                  .view = &view,
                                  .tiers = tiers,
                                  .half_life = p->half_life,
                                  .report_ms = *p->o.report_ms};
    if (!wt_foresee_run(p->foresee, &in, now, &wake))
        uv_timer_start(timer, on_ahead, 1, 0); /* after what else waits: with 0 it would be next */
    else if (wake != UINT64_MAX)
        uv_timer_start(timer, on_ahead, wake - now, 0);
}

/* ---- passes ---- */

static void pass_soon(struct wt_planner *p) {
    uint64_t now = uv_now(p->timer.loop);
    uint64_t rest = p->rested_ms > now ? p->rested_ms - now : 0;
    uv_timer_start(&p->timer, on_timer, rest > COALESCE_MS ? rest : COALESCE_MS, 0);
}

static void on_timer(uv_timer_t *timer) {
    struct wt_planner *p = timer->data;
    struct wt_policy_tier tiers[WT_TIERS_MAX];
    uint64_t began = uv_hrtime();
    if (!p->running || p->shape != p->o.catalog->shape) {
        wt_policy_reset(p->policy);
        p->shape = p->o.catalog->shape;
        p->running = true;
        p->again = false;
        p->now = wt_clock_now(&p->o.catalog->clock);
        p->spent_ns = 0;
        forget_grants(p);
    }
    struct wt_policy_view view = view_of(p);
    get_tiers(p, tiers);
    bool done = wt_policy_step(p->policy, p->o.conf, &view, tiers, SLICE, on_move, p);
    p->spent_ns += uv_hrtime() - began;
    if (!done) {
        uv_timer_start(&p->timer, on_timer, 1, 0);
        return;
    }
    p->running = false;
    p->passes++;
    wt_quota_drain(p->o.catalog, p->o.mover, p->now, p->half_life);
    p->rested_ms = uv_now(timer->loop) + COALESCE_MS + REST * p->spent_ns / 1000000;
    p->idle_ms = uv_now(timer->loop) + IDLE_REST * p->spent_ns / 1000000;
    if (p->again)
        pass_soon(p);
}

void wt_planner_kick(struct wt_planner *p) {
    p->again = true;
    if (!p->on || p->stopping)
        return;
    if (!uv_is_active((uv_handle_t *)&p->timer))
        pass_soon(p);
    if (wt_foresee_active(p->foresee) &&
        (!uv_is_active((uv_handle_t *)&p->ahead) || uv_timer_get_due_in(&p->ahead) > SOON_MS))
        uv_timer_start(&p->ahead, on_ahead, SOON_MS, 0);
}

void wt_planner_look(struct wt_planner *p) {
    uint64_t now = uv_now(p->timer.loop);
    bool stayed = p->stayed_ms && now >= p->stayed_ms;
    if (stayed)
        p->stayed_ms = 0;
    if (stayed || now >= p->idle_ms)
        wt_planner_kick(p);
}

void wt_planner_enable(struct wt_planner *p, bool on) {
    p->on = on && !p->stopping;
    if (p->on) {
        for (uint32_t t = 1; t < p->o.catalog->n_tiers; t++) {
            p->fill[t].heard = p->fill[t].usage.known = false;
            p->fill[t].stale = p->fill[t].busy;
        }
        wt_planner_ask_usage(p);
        wt_planner_kick(p);
        return;
    }
    p->running = false;
    uv_timer_stop(&p->timer);
    uv_timer_stop(&p->ahead);
}

/* ---- usage ---- */

static void on_closed(uv_handle_t *h) {
    struct wt_planner *p = h->data;
    if (--p->open == 0 && p->stopped)
        p->stopped(p->stopped_arg); /* may free p */
}

static void try_close(struct wt_planner *p) {
    if (!p->stopping || p->asking || uv_is_closing((uv_handle_t *)&p->timer))
        return;
    uv_close((uv_handle_t *)&p->timer, on_closed);
    uv_close((uv_handle_t *)&p->ahead, on_closed);
}

/* The smaller one of what the configuration allows and what the tier has. */
static void limit(const struct wt_planner *p, struct fill *u) {
    uint64_t given = p->o.tier_opts[u->tier].capacity;
    u->capacity = given && (u->own == 0 || given < u->own) ? given : u->own;
}

void wt_planner_reload(struct wt_planner *p) {
    for (uint32_t t = 0; t < p->o.catalog->n_tiers; t++) {
        limit(p, &p->fill[t]);
        p->fill[t].stale = p->fill[t].busy; /* its answer may be of the old capacity */
    }
    wt_planner_kick(p);
}

static void on_usage(struct wt_req *req);

static void ask_usage(struct wt_planner *p, struct fill *u) {
    struct wt_moved now;
    wt_mover_moved(p->o.mover, u->tier, &now);
    wt_usage_ask(&u->usage, &now);
    u->req = (struct wt_req){.op = WT_OP_USAGE, .done = on_usage, .arg = u};
    u->busy = wt_tier_submit(p->o.tiers[u->tier], &u->req) == 0;
    p->asking += u->busy;
}

static void take_figure(const struct wt_planner *p, struct fill *u, uint64_t said) {
    struct wt_moved now;
    wt_mover_moved(p->o.mover, u->tier, &now);
    wt_usage_take(&u->usage, &now, said, p->o.catalog->used[u->tier]);
}

/* A figure that is about the last one changes nothing. */
static bool is_news(const struct wt_planner *p, const struct fill *u) {
    uint64_t used = used_of(p, u->tier);
    uint64_t differ = used > u->told ? used - u->told : u->told - used;
    return !u->heard || (u->capacity && differ > u->capacity >> 8) ||
           used > wt_planner_mark(p, u->tier);
}

static void on_usage(struct wt_req *req) {
    struct fill *u = req->arg;
    struct wt_planner *p = u->planner;
    u->busy = false;
    p->asking--;
    bool stale = u->stale;
    u->stale = false;
    if (stale && !p->stopping) {
        ask_usage(p, u);
    } else if (req->rc == 0) {
        bool resized = u->own != req->capacity;
        u->own = req->capacity;
        limit(p, u);
        take_figure(p, u, req->used);
        if (resized || is_news(p, u)) {
            u->heard = true;
            u->told = used_of(p, u->tier);
            wt_planner_kick(p);
        }
    } else if (req->rc == WT_EUNSUPPORTED) {
        u->heard = true;
    }
    try_close(p);
}

void wt_planner_ask_usage(struct wt_planner *p) {
    for (uint32_t t = 1; t < p->o.catalog->n_tiers && !p->stopping; t++)
        if (!p->fill[t].busy)
            ask_usage(p, &p->fill[t]);
}

void wt_planner_stop(struct wt_planner *p, void (*stopped)(void *arg), void *arg) {
    p->stopping = true;
    p->stopped = stopped;
    p->stopped_arg = arg;
    wt_planner_enable(p, false);
    for (uint32_t t = 0; t < p->o.catalog->n_tiers; t++)
        if (p->fill[t].busy)
            wt_tier_cancel(&p->fill[t].req);
    try_close(p);
}

void wt_planner_free(struct wt_planner *p) {
    if (!p)
        return;
    wt_policy_free(p->policy);
    wt_foresee_free(p->foresee);
    free(p);
}
