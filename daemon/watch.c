/* Moves, tiers, jobs and requests as events; see daemon.h and events.h. */
#include "core/bytes.h"
#include "core/json.h"
#include "daemon/body.h"
#include "daemon/daemon.h"

#include <inttypes.h>
#include <stdio.h>

void wt_daemon_event(struct wt_daemon *d, const char *kind, json_t *fields) {
    wt_events_add(d->events, kind, fields);
}

static json_t *tier_or_null(const struct wt_daemon *d, int t) {
    return t >= 0 && t < (int)d->n_tiers ? json_string(wt_tier_name(d->tier[t])) : json_null();
}

/* ---- moves ---- */

static json_t *move_json(const struct wt_daemon *d, const struct wt_catalog_set *set,
                         const struct wt_move_info *m) {
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "dataset", set->d.m.name, "shard",
                     wt_body_number(m->shard), "bytes", wt_body_number(m->size), "from",
                     tier_or_null(d, m->from), "to", tier_or_null(d, m->to), "drop",
                     tier_or_null(d, m->drop));
}

static json_t *end_json(const struct wt_daemon *d, const struct wt_catalog_set *set,
                        const struct wt_move_info *m) {
    json_t *o = move_json(d, set, m);
    json_t *more = json_pack("{s:o, s:s, s:o}", "ms", wt_body_number(m->ms), "code",
                             m->rc ? wt_err_name(m->rc) : "OK", "text", wt_json_string(m->text));
    if (o && (!more || json_object_update(o, more) < 0)) {
        json_decref(o);
        o = NULL;
    }
    json_decref(more);
    return o;
}

/* ---- what the truth is ---- */

static void tell_truth(struct wt_daemon *d, const char *kind, const struct wt_catalog_set *set,
                       uint64_t shard, const char *text) {
    wt_daemon_event(d, kind,
                    json_pack("{s:s, s:o, s:s}", "dataset", set->d.m.name, "shard",
                              wt_body_number(shard), "text", text));
}

void wt_daemon_cold_is_bad(void *arg, struct wt_catalog_set *set, uint64_t shard,
                           const char *what) {
    struct wt_daemon *d = arg;
    char text[192], key[WT_OBJECT_NAME];
    int rc = wt_mover_mend(d->mover, set, shard);
    wt_catalog_key(set, shard, key);
    if (rc < 0) /* what is above may be the last of it */
        set->shard[shard].flags |= WT_SHARD_ASIDE;
    snprintf(text, sizeof text, "the cold copy is %s; %s", what,
             rc == 0 ? "it is made anew from a copy in another tier"
             : rc == WT_EMISSING
                 ? "no other tier has one. Put it back from a backup, or pack it again; then reload"
                 : "copies in other tiers are kept, the next look tries to make it anew from them");
    wt_log(&d->log, rc == 0 ? WT_LOG_WARN : WT_LOG_ERROR, "%s: %s", key, text);
    tell_truth(d, what[0] == 'm' ? "cold_missing" : "cold_damaged", set, shard, text);
}

void wt_daemon_home_is_bad(struct wt_daemon *d, const struct wt_catalog_set *set, uint64_t shard,
                           const char *what) {
    char text[192], key[WT_OBJECT_NAME];
    if (set->shard[shard].flags & WT_SHARD_ASIDE) /* told already */
        return;
    set->shard[shard].flags |= WT_SHARD_ASIDE;
    wt_catalog_key(set, shard, key);
    snprintf(text, sizeof text,
             "the copy in tier %s is %s, and it was not flushed to cold yet: pack it again",
             set->d.m.home, what);
    wt_log(&d->log, WT_LOG_ERROR, "%s: %s", key, text);
    tell_truth(d, "landed_lost", set, shard, text);
}

void wt_daemon_on_flush(void *arg, bool flushed, const char *dataset, uint64_t generation,
                        const char *text) {
    wt_daemon_event(arg, flushed ? "flushed" : "flush_failed",
                    json_pack("{s:s, s:o, s:o}", "dataset", dataset, "generation",
                              wt_body_number(generation), "text", wt_json_string(text)));
}

/* A move met a cold copy that is not what it should be. */
static void look_at_cold(struct wt_daemon *d, enum wt_move_change change,
                         struct wt_catalog_set *set, const struct wt_move_info *info) {
    if (info->mends && change == WT_MOVE_DONE)
        tell_truth(d, "cold_repaired", set, info->shard, "the cold copy is whole again");
    bool bad = info->rc == WT_EMISSING || info->rc == WT_ECORRUPT;
    if (change != WT_MOVE_ASIDE || info->mends || !bad || wt_catalog_truth(set, info->shard) != 0)
        return;
    if (info->from == 0 || (info->to < 0 && info->drop >= 0))
        wt_daemon_cold_is_bad(d, set, info->shard, info->rc == WT_EMISSING ? "missing" : "damaged");
}

void wt_daemon_on_move(void *arg, enum wt_move_change change, struct wt_catalog_set *set,
                       const struct wt_move_info *info) {
    struct wt_daemon *d = arg;
    if (change == WT_MOVE_STARTED) {
        wt_daemon_event(d, "move_started", move_json(d, set, info));
        return;
    }
    wt_daemon_event(d, change == WT_MOVE_DONE ? "move_done" : "move_failed",
                    end_json(d, set, info));
    wt_claims_ended(d->claims, set, info);
    if (d->flush)
        wt_flush_ended(d->flush, info);
    look_at_cold(d, change, set, info);
    if (change != WT_MOVE_DONE) /* a copy that was to go may be there or not */
        wt_reconcile_doubtful(d->reconcile);
    if (change == WT_MOVE_FAILED && info->rc != WT_ECANCELED)
        wt_requests_trouble(d->requests, set, info->rc, info->text);
    wt_planner_kick(d->planner);
}

/* ---- tiers and role ---- */

static void watch_tier(struct wt_daemon *d, uint32_t t) {
    uint8_t bit = (uint8_t)(1u << t);
    bool down = wt_tier_is_down(d->tier[t]), full = wt_mover_full(d->mover, t);
    if (down != !!(d->was_down & bit)) {
        struct wt_tier_stats s;
        wt_tier_stats(d->tier[t], &s);
        wt_daemon_event(d, down ? "tier_down" : "tier_up",
                        json_pack("{s:s, s:o}", "tier", wt_tier_name(d->tier[t]), "text",
                                  wt_json_string(down ? s.last_error : "")));
    }
    if (full && !(d->was_full & bit))
        wt_daemon_event(d, "tier_full",
                        json_pack("{s:s, s:s}", "tier", wt_tier_name(d->tier[t]), "text",
                                  "it refused a copy; it goes on serving"));
    d->was_down = down ? d->was_down | bit : d->was_down & (uint8_t)~bit;
    d->was_full = full ? d->was_full | bit : d->was_full & (uint8_t)~bit;
}

/* The tier is filled up to less than a shard of any data set that is here: nothing will come in. */
static const struct wt_catalog_set *too_large(const struct wt_daemon *d, uint32_t t) {
    const struct wt_catalog_set *some = NULL;
    uint64_t mark = wt_planner_mark(d->planner, t);
    for (size_t i = 0; i < d->catalog.n_sets; i++) {
        const struct wt_catalog_set *set = d->catalog.set[i];
        if (set->retired || set->d.m.shards == 0)
            continue;
        if (set->d.m.stored_bytes / set->d.m.shards <= mark)
            return NULL;
        some = set;
    }
    return some;
}

static void watch_size(struct wt_daemon *d, uint32_t t) {
    uint8_t bit = (uint8_t)(1u << t);
    const struct wt_catalog_set *set = too_large(d, t);
    if (set && !(d->was_small & bit)) {
        char size[WT_SIZE_TEXT], mark[WT_SIZE_TEXT], text[256];
        snprintf(text, sizeof text,
                 "it is filled up to %s, which is less than a shard (%s of %s): nothing comes in; "
                 "raise its capacity",
                 wt_size_format(wt_planner_mark(d->planner, t), mark), set->d.m.name,
                 wt_size_format(set->d.m.stored_bytes / set->d.m.shards, size));
        wt_log(&d->log, WT_LOG_WARN, "tier %s: %s", wt_tier_name(d->tier[t]), text);
        wt_daemon_event(d, "tier_small",
                        json_pack("{s:s, s:s}", "tier", wt_tier_name(d->tier[t]), "text", text));
    }
    d->was_small = set ? d->was_small | bit : d->was_small & (uint8_t)~bit;
}

static void watch_role(struct wt_daemon *d) {
    bool active = wt_daemon_active(d);
    const char *why = d->lock ? wt_lock_why(d->lock) : "";
    if (active && d->role != WT_ROLE_LEADER) {
        d->role = WT_ROLE_LEADER;
        wt_daemon_event(d, "leader", json_pack("{s:s}", "text", "the lock is held"));
    } else if (!active && why[0] && d->role != WT_ROLE_STANDBY) {
        d->role = WT_ROLE_STANDBY;
        wt_daemon_event(d, "standby", json_pack("{s:o}", "text", wt_json_string(why)));
    }
}

void wt_daemon_watch(struct wt_daemon *d) {
    for (uint32_t t = 0; t < d->n_tiers; t++)
        watch_tier(d, t);
    for (uint32_t t = 1; t < d->n_tiers; t++)
        watch_size(d, t);
    watch_role(d);
}

/* ---- jobs and requests ---- */

void wt_daemon_job_event(struct wt_daemon *d, const char *kind, const struct wt_job *job) {
    wt_daemon_event(d, kind,
                    json_pack("{s:s, s:o, s:s}", "job", job->id, "name",
                              wt_json_string(job->o.name), "dataset", job->set->d.m.name));
}

void wt_daemon_on_request(void *arg, const struct wt_request *r) {
    static const char *const states[] = {"running", "done", "failed", "canceled"};
    struct wt_daemon *d = arg;
    char id[32];
    bool one = (r->tiers & (r->tiers - 1)) == 0;
    snprintf(id, sizeof id, "%c%" PRIu64, r->evict ? 'e' : 'w', r->number);
    wt_daemon_event(
        d, r->evict ? "evict_done" : "warm_done",
        json_pack("{s:s, s:s, s:o, s:s, s:o}", "request", id, "dataset", r->selector.dataset,
                  "tier", tier_or_null(d, one ? 31 - __builtin_clz(r->tiers) : -1), "state",
                  states[r->state], "text", wt_json_string(r->n_reasons ? r->reason[0].text : "")));
}
