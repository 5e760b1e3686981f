/*
 * What must hold, after every step and at the end; see sim.h.
 *
 *   - cold is never written and never removed from by a daemon; what it publishes is whole
 *   - a copy is removed only when the cold one was seen with its size since the last change, or
 *     when the copy itself was found damaged
 *   - a tier never gets more than its capacity
 *   - only the holder of the lock hands over what changes a tier
 *   - a daemon that is asked to stop does so in time, and leaves without the outcome only of what
 *     cannot be taken back
 *   - the counters are the sums that they stand for
 *   - in the end nothing goes on moving, every move has ended, the catalog is what the stores hold,
 *     jobs were served
 */
#include "sim.h"

#include "core/lease.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- at the stores ---- */

/* Leases are in the cold tier; whose time is over, or stands there once too often, does no harm. */
static bool is_lease(const struct sim_store *s, const char *key) {
    return s->tier == 0 && strncmp(key, WT_LEASE_FOLDER "/", sizeof WT_LEASE_FOLDER) == 0;
}

void sim_check_commit(struct sim_process *p, struct sim_store *s, const char *key,
                      const struct sim_blob *b) {
    struct sim_world *w = s->w;
    struct sim_shard *shard = sim_shard_of(w, key);
    if (is_lease(s, key))
        return;
    w->count.commits++;
    if (s->tier == 0 && strcmp(key, WT_RULES_KEY) == 0)
        return; /* pins and quotas: a later daemon's change replaces what comes late */
    if (s->tier == 0 && (!shard || !shard->harmed))
        sim_break(w, "%u writes %s to cold, which has it", p->pid, key);
    else if (!shard || shard->blob->size != b->size ||
             memcmp(shard->blob->data, b->data, b->size) != 0)
        sim_break(w, "%u publishes %s in %s, which is not that shard", p->pid, key,
                  w->tier[s->tier].name);
    else if (s->tier == 0)
        shard->harmed = false; /* mended: from now on it must stay whole */
    else if (sim_active(w) != p)
        s->late += b->size; /* handed over when it held the lock; nobody can have counted it */
    else if (s->used > p->d.conf.tier[s->tier].capacity + s->late + s->cut_off)
        sim_break(w, "%u fills %s with %" PRIu64 " bytes (%zu are new); it may have %" PRIu64,
                  p->pid, w->tier[s->tier].name, s->used, b->size,
                  p->d.conf.tier[s->tier].capacity);
}

void sim_check_remove(struct sim_process *p, struct sim_store *s, const struct sim_object *o) {
    if (is_lease(s, o->key))
        return;
    s->w->count.removes++;
    if (s->tier == 0)
        sim_break(s->w, "%u removes %s from cold", p->pid, o->key);
}

static bool changes(enum wt_op op) {
    return op == WT_OP_PUT_OPEN || op == WT_OP_PUT_COMMIT || op == WT_OP_REMOVE;
}

static void check_drop(struct sim_process *p, const struct sim_store *s, const char *key) {
    struct sim_shard *shard = sim_shard_of(s->w, key);
    if (!shard)
        return;
    const struct sim_object *o = sim_store_find(s, key);
    bool bad = shard->seen_bad & (1u << s->tier) || (o && !sim_whole(shard, o));
    if (o && shard->checked_by != p->pid && !bad)
        sim_break(s->w, "%u removes %s from %s without a look at its cold copy", p->pid, key,
                  s->w->tier[s->tier].name);
    shard->seen_bad &= (uint8_t) ~(1u << s->tier);
    shard->checked_by = 0;
}

void sim_check_submit(struct sim_process *p, const struct sim_store *s, const struct wt_req *req) {
    const struct sim_store *cold = &s->w->store[0];
    if (!changes(req->op) || (s->tier == 0 && (!req->key || is_lease(s, req->key))))
        return;
    if (!cold->owner[0] || cold->owner_pid != p->pid || cold->lock_until <= s->w->now_ns)
        sim_break(s->w, "%u asks for %s in %s but does not hold the lock", p->pid,
                  wt_op_name(req->op), s->w->tier[s->tier].name);
    if (req->op == WT_OP_REMOVE)
        check_drop(p, s, req->key);
}

/* What the daemon is told of copies is what it may act upon. */
void sim_check_stat(struct sim_process *p, const struct sim_store *s, const char *key,
                    const struct wt_req *req) {
    if (req->op != WT_OP_STAT && req->op != WT_OP_GET)
        return;
    struct sim_shard *shard = sim_shard_of(s->w, key);
    if (!shard)
        return;
    const struct sim_object *o = sim_store_find(s, key);
    bool short_read = req->rc == 0 && req->op == WT_OP_STAT && req->size != shard->blob->size;
    if (s->tier == 0 && req->op == WT_OP_STAT)
        shard->checked_by = req->rc == 0 && !short_read ? p->pid : 0;
    if (short_read || req->rc == WT_ECORRUPT || (req->rc == 0 && o && !sim_whole(shard, o)))
        shard->seen_bad |= (uint8_t)(1u << s->tier);
}

/* ---- in the daemon ---- */

static void check_sums(struct sim_process *p, const struct wt_catalog *c) {
    uint64_t used[WT_TIERS_MAX] = {0}, held[WT_TIERS_MAX] = {0}, busy = 0;
    for (size_t i = 0; i < c->n_sets; i++) {
        const struct wt_catalog_set *set = c->set[i];
        uint64_t own[WT_TIERS_MAX] = {0};
        for (uint64_t k = 0; k < set->d.m.shards; k++) {
            const struct wt_shard_state *e = &set->shard[k];
            busy += (e->flags & WT_SHARD_BUSY) != 0;
            if (!(e->mask & 1) || (e->sure & ~e->mask))
                sim_break(p->w, "%u: shard %" PRIu64 " has mask %x, sure %x", p->pid, k, e->mask,
                          e->sure);
            for (uint32_t t = 1; e->mask >> t; t++)
                if (e->mask & (1u << t)) {
                    used[t] += wt_catalog_size(set, k);
                    own[t]++;
                }
        }
        for (uint32_t t = 1; t < c->n_tiers; t++) {
            held[t] += own[t];
            if (own[t] != set->held[t])
                sim_break(p->w, "%u: the set's count of %s is wrong", p->pid, p->w->tier[t].name);
        }
    }
    for (uint32_t t = 1; t < c->n_tiers; t++)
        if (used[t] != c->used[t] || held[t] != c->held[t])
            sim_break(p->w, "%u: the catalog counts %" PRIu64 " bytes in %s; there are %" PRIu64,
                      p->pid, c->used[t], p->w->tier[t].name, used[t]);
    struct wt_mover_stats m;
    wt_mover_stats(p->d.mover, &m);
    if (busy != (uint64_t)m.running + m.queued + m.waiting)
        sim_break(p->w, "%u: %" PRIu64 " shards are busy, %u moves are known", p->pid, busy,
                  m.running + m.queued + m.waiting);
}

static void check_reads(struct sim_process *p) {
    const struct wt_read_stats *r = &p->d.reads;
    uint64_t sum = 0;
    for (uint32_t t = 0; t < SIM_TIERS; t++)
        sum += r->tier_reads[t];
    if (r->hits + r->misses != r->reads || sum != r->reads)
        sim_break(p->w, "%u: %" PRIu64 " hits and %" PRIu64 " misses of %" PRIu64 " reads", p->pid,
                  r->hits, r->misses, r->reads);
}

void sim_check_turn(struct sim_process *p) {
    if (!p->d.mover)
        return;
    check_sums(p, &p->d.catalog);
    check_reads(p);
}

/* As if killed: only for something whose outcome it must wait for. What can be taken back is, and
 * when nothing is owed the lock is given back. */
void sim_check_leave(struct sim_process *p) {
    p->w->count.left++;
    if (!p->out_of_time && (p->d.saved || !sim_backend_owes(p)))
        sim_break(p->w, "%u leaves its tiers, which owe it nothing", p->pid);
}

/* ---- in the end ---- */

static void check_moves(struct sim_process *p) {
    struct wt_mover_stats m;
    wt_mover_stats(p->d.mover, &m);
    p->w->count.moves += m.done;
    if (m.running + m.queued + m.waiting)
        sim_break(p->w, "%u running, %u queued and %u waiting moves never end", m.running, m.queued,
                  m.waiting);
    for (uint32_t t = 0; t < SIM_TIERS; t++)
        if (wt_mover_coming(p->d.mover, t) || wt_mover_leaving(p->d.mover, t))
            sim_break(p->w, "bytes come to %s or leave it, but nothing moves", p->w->tier[t].name);
}

/* Every entry has its object. */
static void check_entries(struct sim_process *p, uint32_t t) {
    const struct wt_catalog *c = &p->d.catalog;
    const struct sim_store *s = &p->w->store[t];
    for (size_t i = 0; i < c->n_sets; i++)
        for (uint64_t k = 0; k < c->set[i]->d.m.shards; k++) {
            char key[WT_OBJECT_NAME];
            const struct wt_shard_state *e = &c->set[i]->shard[k];
            if (!(e->mask & (1u << t)))
                continue;
            wt_catalog_key(c->set[i], k, key);
            if (!sim_store_find(s, key))
                sim_break(p->w, "%s is believed to be in %s", key, p->w->tier[t].name);
            else if (!(e->sure & (1u << t)) && !(e->flags & WT_SHARD_ASIDE))
                sim_break(p->w, "%s in %s was never looked at", key, p->w->tier[t].name);
        }
}

/* Every object of the generation that the daemon follows has its entry; older ones are gc's
 * business, newer ones it was not told of. */
static void check_objects(struct sim_process *p, uint32_t t) {
    const struct sim_world *w = p->w;
    const struct wt_catalog_set *set = wt_catalog_find(&p->d.catalog, "wafers", 0);
    for (uint64_t k = 0; set && k < set->d.m.shards; k++) {
        char key[WT_OBJECT_NAME];
        wt_catalog_key(set, k, key);
        if (!(set->shard[k].mask & (1u << t)) && sim_store_find(&w->store[t], key))
            sim_break(p->w, "%s lies in %s, unknown to the daemon", key, w->tier[t].name);
    }
}

static void check_truth(struct sim_world *w) {
    for (size_t i = 0; i < w->n_shards; i++) {
        const struct sim_object *o = sim_store_find(&w->store[0], w->shard[i].key);
        if (!w->shard[i].harmed && (!o || !sim_whole(&w->shard[i], o)))
            sim_break(w, "%s is not whole in cold", w->shard[i].key);
    }
}

static bool any_harmed(const struct sim_world *w) {
    size_t i = 0;
    while (i < w->n_shards && !w->shard[i].harmed)
        i++;
    return i < w->n_shards;
}

/* Nobody reads. As the half-life of heat goes on, some may change places; not again and again. */
static void check_rest(struct sim_world *w) {
    uint64_t changes = w->count.commits + w->count.removes - w->changes;
    if (changes > 2 * w->n_shards)
        sim_break(w, "nobody reads, and yet tiers were changed %" PRIu64 " times", changes);
}

void sim_check_end(struct sim_world *w) {
    struct sim_process *p = sim_active(w);
    check_truth(w);
    if (!p) {
        sim_break(w, "no daemon is active in the end");
        return;
    }
    check_moves(p);
    check_rest(w);
    if (wt_requests_running(p->d.requests))
        sim_break(w, "%zu requests by hand never end", wt_requests_running(p->d.requests));
    if (!wt_catalog_find(&p->d.catalog, "wafers", 0))
        sim_break(w, "the daemon has not found the data set");
    for (uint32_t t = 1; t < SIM_TIERS; t++) {
        check_entries(p, t);
        check_objects(p, t);
    }
    for (unsigned i = 0; i < w->n_jobs; i++)
        if (!w->job[i].reads && !any_harmed(w))
            sim_break(w, "job %u read nothing", i);
}
