/* From the catalog to the policy to the mover; see planner.h. */
#include "daemon/planner.h"

#include "core/mem.h"
#include "daemon/heat.h"

#include <stdlib.h>
#include <string.h>

enum {
    COALESCE_MS = 50, /* what happens within makes one pass */
    SLICE = 20000,    /* shards: a few milliseconds */
};

struct usage { /* what a tier last said */
    struct wt_req req;
    struct wt_planner *planner;
    uint32_t tier;
    bool busy, known;
    uint64_t capacity;
    uint64_t used;  /* also by what the catalog does not know: left by others, or not found yet */
    int64_t net_at; /* wt_mover_net at the time */
};

struct wt_planner {
    uv_timer_t timer;
    bool open, on, stopping;
    bool again;   /* something happened during the pass */
    bool running; /* a pass is under way */
    struct wt_planner_opts o;
    struct wt_policy *policy;
    uint64_t shape, passes;
    double half_life;
    uint32_t now; /* second of the pass */
    struct usage usage[WT_TIERS_MAX];
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
    if (!p->policy) {
        free(p);
        return NULL;
    }
    for (uint32_t t = 0; t < opts->catalog->n_tiers; t++)
        p->usage[t] =
            (struct usage){.planner = p, .tier = t, .capacity = opts->tier_opts[t].capacity};
    uv_timer_init(loop, &p->timer);
    p->timer.data = p;
    p->open = true;
    return p;
}

void wt_planner_half_life(struct wt_planner *p, double seconds) {
    p->half_life = seconds;
}
double wt_planner_get_half_life(const struct wt_planner *p) {
    return p->half_life;
}
uint64_t wt_planner_capacity(const struct wt_planner *p, uint32_t tier) {
    return p->usage[tier].capacity;
}
uint64_t wt_planner_passes(const struct wt_planner *p) {
    return p->passes;
}

/* ---- what the policy sees ---- */

static void get_shard(void *arg, uint64_t i, struct wt_policy_shard *out) {
    const struct wt_planner *p = arg;
    uint64_t shard;
    const struct wt_catalog_set *set = wt_catalog_at(p->o.catalog, i, &shard);
    const struct wt_shard_state *s = &set->shard[shard];
    *out = (struct wt_policy_shard){
        .size = wt_catalog_size(set, shard),
        .heat = wt_heat_at(s->heat, s->heated, p->now, p->half_life),
        .age = p->now > s->since ? p->now - s->since : 0,
        .mask = s->mask,
        .pin = s->pin,
        .busy = s->flags & (WT_SHARD_BUSY | WT_SHARD_ASIDE),
        .unwanted = set->retired && set->jobs == 0,
    };
}

/* The catalog's figure, or the tier's own with what moved since it was given: whichever is more. */
static uint64_t used_of(const struct wt_planner *p, uint32_t t) {
    const struct usage *u = &p->usage[t];
    uint64_t catalog = p->o.catalog->used[t];
    int64_t moved = wt_mover_net(p->o.mover, t) - u->net_at;
    if (!u->known || (moved < 0 && u->used < (uint64_t)-moved))
        return catalog;
    uint64_t said = u->used + (uint64_t)moved;
    return said > catalog ? said : catalog;
}

static void get_tiers(const struct wt_planner *p, struct wt_policy_tier out[WT_TIERS_MAX]) {
    for (uint32_t t = 0; t < p->o.catalog->n_tiers; t++) {
        struct wt_policy_tier *x = &out[t];
        *x = (struct wt_policy_tier){.capacity = p->usage[t].capacity,
                                     .used = used_of(p, t) + wt_mover_coming(p->o.mover, t),
                                     .leaving = wt_mover_leaving(p->o.mover, t),
                                     .usable = !wt_tier_is_down(p->o.tiers[t]) &&
                                               !p->o.tier_opts[t].read_only};
        /* It refused although there should be room: whatever fills it, nothing comes in before
         * something has left. */
        if (t && wt_mover_full(p->o.mover, t) && (x->capacity == 0 || x->capacity > x->used))
            x->capacity = x->used ? x->used : 1;
    }
}

static void on_move(void *arg, const struct wt_policy_move *move) {
    struct wt_planner *p = arg;
    uint64_t shard;
    struct wt_catalog_set *set = wt_catalog_at(p->o.catalog, move->shard, &shard);
    wt_mover_add(p->o.mover, set, shard, move->to,
                 move->drop); /* refused: decided again in a later pass */
}

/* ---- passes ---- */

static void on_timer(uv_timer_t *timer) {
    struct wt_planner *p = timer->data;
    struct wt_policy_tier tiers[WT_TIERS_MAX];
    if (!p->running || p->shape != p->o.catalog->shape) {
        wt_policy_reset(p->policy);
        p->shape = p->o.catalog->shape;
        p->running = true;
        p->again = false;
        p->now = wt_clock_now(&p->o.catalog->clock);
    }
    struct wt_policy_view view = {.shards = p->o.catalog->shards, .get = get_shard, .arg = p};
    get_tiers(p, tiers);
    if (!wt_policy_step(p->policy, p->o.conf, &view, tiers, SLICE, on_move, p)) {
        uv_timer_start(&p->timer, on_timer, 1, 0);
        return;
    }
    p->running = false;
    p->passes++;
    if (p->again)
        uv_timer_start(&p->timer, on_timer, COALESCE_MS, 0);
}

void wt_planner_kick(struct wt_planner *p) {
    p->again = true;
    if (p->on && !p->stopping && !uv_is_active((uv_handle_t *)&p->timer))
        uv_timer_start(&p->timer, on_timer, COALESCE_MS, 0);
}

void wt_planner_enable(struct wt_planner *p, bool on) {
    p->on = on && !p->stopping;
    if (p->on) {
        wt_planner_kick(p);
        return;
    }
    p->running = false;
    uv_timer_stop(&p->timer);
}

/* ---- usage ---- */

static void on_closed(uv_handle_t *h) {
    struct wt_planner *p = h->data;
    p->open = false;
    if (p->stopped)
        p->stopped(p->stopped_arg); /* may free p */
}

static void try_close(struct wt_planner *p) {
    if (p->stopping && p->asking == 0 && !uv_is_closing((uv_handle_t *)&p->timer))
        uv_close((uv_handle_t *)&p->timer, on_closed);
}

static void on_usage(struct wt_req *req) {
    struct usage *u = req->arg;
    struct wt_planner *p = u->planner;
    uint64_t own = p->o.tier_opts[u->tier].capacity;
    u->busy = false;
    p->asking--;
    if (req->rc == 0) {
        u->capacity = own && (req->capacity == 0 || own < req->capacity) ? own : req->capacity;
        /* A move that ended meanwhile may be in the figure or not: the next answer will tell. */
        u->known = u->net_at == wt_mover_net(p->o.mover, u->tier);
        u->used = req->used;
    }
    try_close(p);
}

void wt_planner_ask_usage(struct wt_planner *p) {
    for (uint32_t t = 1; t < p->o.catalog->n_tiers && !p->stopping; t++) {
        struct usage *u = &p->usage[t];
        if (u->busy)
            continue;
        u->known = false;
        u->net_at = wt_mover_net(p->o.mover, t);
        u->req = (struct wt_req){.op = WT_OP_USAGE, .done = on_usage, .arg = u};
        u->busy = wt_tier_submit(p->o.tiers[t], &u->req) == 0;
        p->asking += u->busy;
    }
}

void wt_planner_stop(struct wt_planner *p, void (*stopped)(void *arg), void *arg) {
    p->stopping = true;
    p->stopped = stopped;
    p->stopped_arg = arg;
    wt_planner_enable(p, false);
    for (uint32_t t = 0; t < p->o.catalog->n_tiers; t++)
        if (p->usage[t].busy)
            wt_tier_cancel(&p->usage[t].req);
    try_close(p);
}

void wt_planner_free(struct wt_planner *p) {
    if (!p)
        return;
    wt_policy_free(p->policy);
    free(p);
}
