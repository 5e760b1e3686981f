/* Shards, tiers and the mover of a simulation; see world.h. */
#include "tools/sim/world.h"

#include "core/mem.h"
#include "daemon/heat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BUDGET = 5000, TURNS = 64, PASSES = 2, SMOOTH = 8 };

int wt_world_init(struct wt_world *w, const struct wt_world_conf *conf, const uint64_t *size,
                  uint32_t shards, struct wt_err *err) {
    *w = (struct wt_world){.conf = *conf, .shards = shards, .size = size, .half_life = 3600};
    w->mask = wt_calloc(shards, 1);
    w->busy = wt_calloc(shards, 1);
    w->heat = wt_calloc(shards, sizeof *w->heat);
    w->heated = wt_calloc(shards, sizeof *w->heated);
    w->foresight = wt_foresight_new(conf->n_tiers);
    w->policy = wt_policy_new(conf->n_tiers);
    if (!w->mask || !w->busy || !w->heat || !w->heated || !w->foresight || !w->policy ||
        !wt_foresight_resize(w->foresight, shards)) {
        wt_world_free(w);
        return wt_err_set(err, WT_ENOMEM, "no memory for a world of %u shards", shards);
    }
    memset(w->mask, 1, shards);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < shards; i++)
        bytes += size[i];
    if (conf->bandwidth[0] > 0)
        w->copy_s = (double)bytes / shards / conf->bandwidth[0];
    return 0;
}

void wt_world_free(struct wt_world *w) {
    free(w->mask);
    free(w->busy);
    free(w->heat);
    free(w->heated);
    free(w->queue);
    wt_foresight_free(w->foresight);
    wt_policy_free(w->policy);
    *w = (struct wt_world){0};
}

uint64_t wt_world_cold(const struct wt_world_count *c) {
    return c->tier_bytes[0] + c->copied;
}

/* ---- what the policy sees ---- */

static void get_shard(void *arg, uint64_t i, struct wt_policy_shard *out) {
    const struct wt_world *w = arg;
    *out = (struct wt_policy_shard){
        .size = w->size[i],
        .heat = wt_heat_at(w->heat[i], w->heated[i], (uint32_t)w->now, w->half_life),
        .age = UINT32_MAX,
        .mask = w->mask[i],
        .busy = w->busy[i],
        .settled = w->known,
    };
}

static void get_tiers(const struct wt_world *w, struct wt_policy_tier tiers[WT_POLICY_TIERS]) {
    for (uint32_t t = 0; t < w->conf.n_tiers; t++)
        tiers[t] = (struct wt_policy_tier){.capacity = w->conf.capacity[t],
                                           .used = w->used[t] + w->coming[t],
                                           .usable = t == 0 || w->conf.capacity[t] > 0};
}

static void touch(struct wt_world *w, uint32_t shard) {
    struct wt_policy_view view = {.shards = w->shards, .get = get_shard, .arg = w};
    wt_foresight_touch(w->foresight, &view, shard, w->now, w->half_life);
}

/* ---- moves ---- */

static void hold(struct wt_world *w, uint32_t shard, uint32_t tier) {
    w->mask[shard] |= (uint8_t)(1u << tier);
    w->used[tier] += w->size[shard];
}

static void lose(struct wt_world *w, uint32_t shard, uint32_t tier) {
    w->mask[shard] &= (uint8_t) ~(1u << tier);
    w->used[tier] -= w->size[shard];
    if (w->mask[shard] == 1)
        w->count.dropped += w->size[shard];
}

static void count_copy(struct wt_world *w, uint32_t shard) {
    w->count.copies++;
    w->count.copied += w->size[shard];
}

static bool enqueue(struct wt_world *w, uint32_t shard, uint32_t to, double due) {
    if (wt_grow(&w->queue, &w->cap_queue, w->n_queue + 1, sizeof *w->queue) < 0)
        return false;
    size_t i = w->n_queue++;
    for (; i && w->queue[i - 1].due > due; i--)
        w->queue[i] = w->queue[i - 1];
    w->queue[i] = (struct wt_world_copy){.shard = shard, .to = to, .due = due};
    w->busy[shard] = 1;
    w->coming[to] += w->size[shard];
    return true;
}

static void dequeue(struct wt_world *w, size_t i) {
    memmove(&w->queue[i], &w->queue[i + 1], (--w->n_queue - i) * sizeof *w->queue);
}

static void done_with(struct wt_world *w, const struct wt_world_copy *c) {
    w->busy[c->shard] = 0;
    w->coming[c->to] -= w->size[c->shard];
}

/* A copy from cold takes time where cold's bandwidth is limited; all else is done at once. */
static bool move(struct wt_world *w, uint32_t shard, int to, int drop, double due) {
    w->emitted++;
    if (to > 0 && w->mask[shard] == 1 && w->conf.bandwidth[0] > 0)
        return enqueue(w, shard, (uint32_t)to, due);
    if (to > 0 && w->mask[shard] == 1)
        count_copy(w, shard);
    if (to > 0)
        hold(w, shard, (uint32_t)to);
    if (drop > 0)
        lose(w, shard, (uint32_t)drop);
    touch(w, shard);
    return true;
}

static bool on_foresight(void *arg, const struct wt_foresight_move *m) {
    return move(arg, (uint32_t)m->shard, m->to, m->drop, m->due);
}

static void on_policy(void *arg, const struct wt_policy_move *m) {
    move(arg, (uint32_t)m->shard, m->to, m->drop, INFINITY);
}

static double transfer(struct wt_world *w, uint32_t shard, uint32_t tier, double now) {
    double begin = w->free_at[tier] > now ? w->free_at[tier] : now, rate = w->conf.bandwidth[tier];
    w->free_at[tier] = begin + (rate > 0 ? (double)w->size[shard] / rate : 0);
    return w->free_at[tier];
}

void wt_world_work(struct wt_world *w, double now) {
    while (w->n_queue && w->n_running < WT_WORLD_COPIES) {
        struct wt_world_copy c = w->queue[0];
        dequeue(w, 0);
        c.begins = now;
        c.ends = transfer(w, c.shard, 0, now);
        double write = w->conf.bandwidth[c.to];
        if (write > 0)
            c.ends = fmax(c.ends, now + (double)w->size[c.shard] / write);
        if (w->n_running) /* in order, for simplicity */
            c.ends = fmax(c.ends, w->running[w->n_running - 1].ends);
        w->running[w->n_running++] = c;
        count_copy(w, c.shard);
    }
}

double wt_world_next(const struct wt_world *w) {
    return w->n_running ? w->running[0].ends : INFINITY;
}

void wt_world_copied(struct wt_world *w) {
    struct wt_world_copy c = w->running[0];
    w->n_running--;
    memmove(&w->running[0], &w->running[1], w->n_running * sizeof c);
    w->now = c.ends;
    w->copy_s += (c.ends - c.begins - w->copy_s) / SMOOTH;
    done_with(w, &c);
    hold(w, c.shard, c.to);
    touch(w, c.shard);
}

/* ---- deciding ---- */

void wt_world_decide(struct wt_world *w, double now, double *wake) {
    struct wt_policy_view view = {.shards = w->shards, .get = get_shard, .arg = w};
    struct wt_policy_tier tiers[WT_POLICY_TIERS];
    w->now = now;
    for (int turn = 0; turn < TURNS; turn++) {
        struct wt_foresight_pace pace = {.react = w->conf.react,
                                         .copy = w->copy_s,
                                         .moves = WT_WORLD_COPIES,
                                         .waiting = (uint32_t)w->n_queue,
                                         .half_life = w->half_life};
        w->emitted = 0;
        get_tiers(w, tiers);
        bool done = wt_foresight_run(w->foresight, &w->conf.policy, &view, tiers, &pace, now,
                                     BUDGET, on_foresight, w, wake);
        if (done && w->emitted == 0)
            return;
    }
}

void wt_world_pass(struct wt_world *w, double now) {
    struct wt_policy_view view = {.shards = w->shards, .get = get_shard, .arg = w};
    struct wt_policy_tier tiers[WT_POLICY_TIERS];
    w->now = now;
    for (int i = 0; i < PASSES; i++) { /* the first clears room that the second uses */
        w->emitted = 0;
        get_tiers(w, tiers);
        wt_policy_step(w->policy, &w->conf.policy, &view, tiers, UINT64_MAX, on_policy, w);
        if (w->emitted == 0)
            return;
    }
}

/* ---- readers ---- */

static double serve(struct wt_world *w, uint32_t shard, uint32_t tier, double now) {
    w->count.tier_reads[tier]++;
    w->count.tier_bytes[tier] += w->size[shard];
    return transfer(w, shard, tier, now);
}

static void cancel(struct wt_world *w, uint32_t shard) {
    for (size_t i = 0; i < w->n_queue; i++) {
        if (w->queue[i].shard != shard)
            continue;
        struct wt_world_copy c = w->queue[i];
        dequeue(w, i);
        done_with(w, &c);
        w->count.pointless++;
        return;
    }
}

double wt_world_read(struct wt_world *w, uint32_t shard, double now) {
    w->now = now;
    w->count.reads++;
    w->count.bytes += w->size[shard];
    wt_heat_add(&w->heat[shard], &w->heated[shard], (uint32_t)now, w->half_life, w->size[shard],
                w->size[shard]);
    if (w->mask[shard] > 1)
        return serve(w, shard, 31 - (uint32_t)__builtin_clz(w->mask[shard]), now);
    for (uint32_t i = 0; i < w->n_running; i++) {
        if (w->running[i].shard != shard)
            continue;
        w->count.joined++;
        w->count.tier_reads[w->running[i].to]++;
        w->count.tier_bytes[w->running[i].to] += w->size[shard];
        return w->running[i].ends;
    }
    if (w->busy[shard])
        cancel(w, shard);
    return serve(w, shard, 0, now);
}
