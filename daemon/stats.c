/* What the control socket shows, as JSON; see daemon.h. Every function returns a new object, or
 * NULL when out of memory. */
#include "core/json.h"
#include "daemon/body.h"
#include "daemon/routes.h"

#include "wafertier/version.h"

static json_t *number(uint64_t v) {
    return wt_body_number(v);
}

static double seconds(uint64_t ms) {
    return (double)ms / 1000;
}

static const char *tier_name(const struct wt_daemon *d, int t) {
    return t >= 0 && t < (int)d->n_tiers ? wt_tier_name(d->tier[t]) : NULL;
}

static bool tier_is_down(const struct wt_daemon *d) {
    for (uint32_t t = 0; t < d->n_tiers; t++)
        if (wt_tier_is_down(d->tier[t]))
            return true;
    return false;
}

json_t *wt_stats_health(struct wt_daemon *d) {
    bool active = wt_daemon_active(d);
    const char *status = !active ? "standby" : tier_is_down(d) ? "degraded" : "ok";
    json_t *down = json_array();
    for (uint32_t t = 0; t < d->n_tiers; t++)
        if (wt_tier_is_down(d->tier[t]))
            wt_json_push(&down, wt_json_string(wt_tier_name(d->tier[t])));
    return json_pack("{s:s, s:s, s:f, s:o, s:o}", "status", status, "version",
                     WAFERTIER_VERSION_STRING, "uptime_s",
                     seconds(wt_daemon_now_ms(d) - d->started_ms), "down", down, "standby_reason",
                     wt_json_string(active || !d->lock ? "" : wt_lock_why(d->lock)));
}

static uint64_t all_ops(const uint64_t *n) {
    uint64_t sum = 0;
    for (int op = 0; op < WT_OP_COUNT; op++)
        sum += n[op];
    return sum;
}

/* Cold holds every shard. */
uint64_t wt_stats_used(const struct wt_daemon *d, uint32_t t) {
    uint64_t sum = d->catalog.used[t];
    for (size_t i = 0; t == 0 && i < d->catalog.n_sets; i++)
        sum += d->catalog.set[i]->retired ? 0 : d->catalog.set[i]->d.m.stored_bytes;
    return sum;
}

uint64_t wt_stats_held(const struct wt_daemon *d, uint32_t t) {
    uint64_t sum = d->catalog.held[t];
    for (size_t i = 0; t == 0 && i < d->catalog.n_sets; i++)
        sum += d->catalog.set[i]->retired ? 0 : d->catalog.set[i]->d.m.shards;
    return sum;
}

static json_t *latency_json(const struct wt_hist *h) {
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "count", number(h->count), "p50_us",
                     number(wt_hist_percentile(h, 0.5)), "p90_us",
                     number(wt_hist_percentile(h, 0.9)), "p99_us",
                     number(wt_hist_percentile(h, 0.99)), "max_us", number(h->max_us));
}

static json_t *tier_json(struct wt_daemon *d, uint32_t t) {
    struct wt_tier_stats s;
    wt_tier_stats(d->tier[t], &s);
    uint64_t used = wt_stats_used(d, t), shards = wt_stats_held(d, t);
    json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "name",
                          wt_json_string(wt_tier_name(d->tier[t])), "url",
                          wt_json_string(wt_tier_url(d->tier[t])), "capacity",
                          number(wt_planner_capacity(d->planner, t)), "used", number(used),
                          "shards", number(shards), "down", s.down, "ops", number(all_ops(s.ops)),
                          "errors", number(all_ops(s.errors)), "bytes_read", number(s.bytes_read),
                          "bytes_written", number(s.bytes_written));
    json_t *more = json_pack(
        "{s:f, s:f, s:i, s:i, s:b, s:o, s:{s:o, s:o}, s:{s:o, s:o}}", "latency_us", s.latency_us,
        "bandwidth", s.bandwidth, "in_flight", (int)s.in_flight, "queued", (int)s.queued, "full",
        wt_mover_full(d->mover, t), "last_error", wt_json_string(s.last_error), "reported", "reads",
        number(d->reads.tier_reads[t]), "bytes", number(d->reads.tier_bytes[t]), "latency", "get",
        latency_json(&s.get), "put", latency_json(&s.put));
    wt_json_put(&more, "landed", number(d->catalog.landed[t]));
    if (!o || !more || json_object_update(o, more) < 0) {
        json_decref(o);
        o = NULL;
    }
    json_decref(more);
    return o;
}

static json_t *tiers_array(struct wt_daemon *d) {
    json_t *list = json_array();
    for (uint32_t t = 0; t < d->n_tiers; t++)
        wt_json_push(&list, tier_json(d, t));
    return list;
}

json_t *wt_stats_tiers(struct wt_daemon *d) {
    return json_pack("{s:o}", "tiers", tiers_array(d));
}

json_t *wt_stats_dataset(const struct wt_daemon *d, const struct wt_catalog_set *set) {
    json_t *held = json_object();
    for (uint32_t t = 0; t < d->n_tiers; t++)
        wt_json_put(&held, wt_tier_name(d->tier[t]),
                    number(t ? set->held[t] : set->d.m.shards - set->dirty));
    const struct wt_manifest *m = &set->d.m;
    return json_pack("{s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:s?, s:o}", "name",
                     m->name, "generation", number(m->generation), "retired", set->retired,
                     "shards", number(m->shards), "samples", number(m->samples), "stored_bytes",
                     number(m->stored_bytes), "tar_bytes", number(m->tar_bytes), "created",
                     number(m->created), "jobs", (int)set->jobs, "resident", held, "home",
                     set->home ? m->home : NULL, "dirty", number(set->dirty));
}

json_t *wt_stats_datasets(struct wt_daemon *d) {
    json_t *list = json_array();
    for (size_t i = 0; i < d->catalog.n_sets; i++)
        wt_json_push(&list, wt_stats_dataset(d, d->catalog.set[i]));
    return json_pack("{s:o}", "datasets", list);
}

enum { MOVES_SHOWN = 100 }; /* of each list: thousands would hold up the loop */

struct move_list {
    struct wt_daemon *d;
    json_t *list;
    uint64_t n;
};

static void add_move(void *arg, const struct wt_move_info *m) {
    struct move_list *l = arg;
    if (l->n++ >= MOVES_SHOWN)
        return;
    wt_json_push(&l->list,
                 json_pack("{s:s, s:o, s:o, s:s?, s:s?, s:s?, s:s, s:o, s:i, s:o, s:s, s:o}",
                           "dataset", m->dataset, "shard", number(m->shard), "size",
                           number(m->size), "from", tier_name(l->d, m->from), "to",
                           tier_name(l->d, m->to), "drop", tier_name(l->d, m->drop), "step",
                           m->step, "done", number(m->done), "attempts", (int)m->attempts, "ms",
                           number(m->ms), "code", wt_err_name(m->rc), "text",
                           wt_json_string(m->text)));
}

static json_t *moves_array(struct wt_daemon *d, enum wt_move_list which, uint64_t *n) {
    struct move_list l = {.d = d, .list = json_array()};
    wt_mover_list(d->mover, which, add_move, &l);
    *n = l.n;
    return l.list;
}

json_t *wt_stats_moves(struct wt_daemon *d) {
    struct wt_mover_stats s;
    wt_mover_stats(d->mover, &s);
    uint64_t running, waiting, recent, aside;
    json_t *list[] = {
        moves_array(d, WT_MOVES_RUNNING, &running), moves_array(d, WT_MOVES_WAITING, &waiting),
        moves_array(d, WT_MOVES_RECENT, &recent), moves_array(d, WT_MOVES_ASIDE, &aside)};
    return json_pack("{s:o, s:i, s:o, s:o, s:o, s:o, s:o}", "running", list[0], "queued",
                     (int)s.queued, "waiting", list[1], "waiting_count", number(waiting), "recent",
                     list[2], "set_aside", list[3], "set_aside_count", number(aside));
}

static json_t *move_counts(struct wt_daemon *d) {
    struct wt_mover_stats s;
    wt_mover_stats(d->mover, &s);
    return json_pack("{s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "running",
                     (int)s.running, "queued", (int)s.queued, "waiting", (int)s.waiting, "done",
                     number(s.done), "failed", number(s.failed), "refused", number(s.refused),
                     "canceled", number(s.canceled), "retried", number(s.retried), "bytes",
                     number(s.bytes), "from_cold", number(s.from_cold), "late", number(s.late));
}

static json_t *scrub_json(struct wt_daemon *d) {
    struct wt_scrub_stats s;
    struct wt_mover_stats m;
    wt_scrub_stats(d->scrub, &s);
    wt_mover_stats(d->mover, &m);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "passes", number(s.passes),
                     "copies", number(s.copies), "bytes", number(s.bytes), "missing",
                     number(s.missing), "damaged", number(s.damaged), "cold_missing",
                     number(s.cold_missing), "cold_damaged", number(s.cold_damaged),
                     "cold_repaired", number(m.mended));
}

static json_t *flush_json(struct wt_daemon *d) {
    struct wt_flush_stats s;
    struct wt_mover_stats m;
    uint64_t sets = 0, dirty = 0;
    wt_flush_stats(d->flush, &s);
    wt_mover_stats(d->mover, &m);
    for (size_t i = 0; i < d->catalog.n_sets; i++) {
        sets += d->catalog.set[i]->home != 0;
        dirty += d->catalog.set[i]->home ? d->catalog.set[i]->dirty : 0;
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "landed", number(sets), "dirty", number(dirty),
                     "shards", number(m.flushed), "datasets", number(s.sets), "failures",
                     number(s.failures));
}

static json_t *claims_json(struct wt_daemon *d) {
    struct wt_claims_stats s;
    wt_claims_stats(d->claims, &s);
    return json_pack("{s:o, s:o, s:o}", "right", number(s.right), "wrong", number(s.wrong),
                     "ignored", number(s.ignored));
}

static json_t *reconcile_json(struct wt_daemon *d) {
    struct wt_reconcile_stats s;
    wt_reconcile_stats(d->reconcile, &s);
    return json_pack("{s:b, s:o, s:o, s:o}", "busy", s.busy, "confirmed", number(s.confirmed),
                     "lost", number(s.lost), "found", number(s.found));
}

static json_t *foresight_json(struct wt_daemon *d) {
    struct wt_foresight_stats s;
    double copy;
    uint32_t moves, queued;
    wt_foresee_stats(wt_planner_foresee(d->planner), &s);
    wt_mover_pace(d->mover, &copy, &moves, &queued);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f}", "staged", number(s.staged),
                     "staged_bytes", number(s.staged_bytes), "swapped", number(s.swapped),
                     "swapped_bytes", number(s.swapped_bytes), "demoted", number(s.demoted),
                     "bypassed", number(s.bypassed), "late", number(s.late), "copy_s", copy);
}

static json_t *control_json(struct wt_daemon *d) {
    struct wt_control_stats s;
    wt_control_stats(d->control, &s);
    return json_pack("{s:o, s:o, s:i, s:i, s:o}", "requests", number(s.requests), "failed",
                     number(s.failed), "connections", (int)s.connections, "event_streams",
                     (int)s.streams, "latency", latency_json(&s.latency));
}

static json_t *loop_json(const struct wt_daemon *d) {
    json_t *o = latency_json(&d->turns.hist);
    wt_json_put(&o, "over_5ms", number(d->turns.over));
    wt_json_put(&o, "max_cpu_us", number(d->turns.max_cpu_us));
    return o;
}

json_t *wt_stats_json(struct wt_daemon *d) {
    const struct wt_pin *const *pin;
    const struct wt_quota *quota;
    const struct wt_read_stats *r = &d->reads;
    return json_pack(
        "{s:s, s:f, s:b, s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o}, s:o, s:o, s:o, s:f, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "version", WAFERTIER_VERSION_STRING, "uptime_s",
        seconds(wt_daemon_now_ms(d) - d->started_ms), "active", wt_daemon_active(d), "tiers",
        tiers_array(d), "moves", move_counts(d), "jobs", number(wt_jobs_count(d->jobs)), "reads",
        "total", number(r->reads), "hits", number(r->hits), "misses", number(r->misses), "bytes",
        number(r->bytes), "datasets", number(d->catalog.n_sets), "shards",
        number(d->catalog.shards), "reconcile", reconcile_json(d), "half_life_s",
        wt_planner_get_half_life(d->planner), "policy_passes",
        number(wt_planner_passes(d->planner)), "jobs_expired", number(d->job_expired), "foresight",
        foresight_json(d), "control", control_json(d), "loop", loop_json(d), "pins",
        number(d->rules ? wt_rules_pins(d->rules, &pin) : 0), "quotas",
        number(d->rules ? wt_rules_quotas(d->rules, &quota) : 0), "requests",
        number(wt_requests_running(d->requests)), "scrub", scrub_json(d), "claims", claims_json(d),
        "flush", flush_json(d));
}
