/* Moves, tiers, jobs and requests as events; see daemon.h and events.h. */
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

void wt_daemon_on_move(void *arg, enum wt_move_change change, struct wt_catalog_set *set,
                       const struct wt_move_info *info) {
    struct wt_daemon *d = arg;
    if (change == WT_MOVE_STARTED) {
        wt_daemon_event(d, "move_started", move_json(d, set, info));
        return;
    }
    wt_daemon_event(d, change == WT_MOVE_DONE ? "move_done" : "move_failed",
                    end_json(d, set, info));
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
