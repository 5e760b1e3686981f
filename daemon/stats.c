/* What the control socket shows, as JSON; see daemon.h. Every function returns a new object, or
 * NULL when out of memory. */
#include "core/json.h"
#include "daemon/daemon.h"

#include "wafertier/version.h"

/* jansson has signed integers. */
static json_t *number(uint64_t v) {
    return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
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

static json_t *tier_json(struct wt_daemon *d, uint32_t t) {
    struct wt_tier_stats s;
    wt_tier_stats(d->tier[t], &s);
    uint64_t used = d->catalog.used[t], shards = d->catalog.held[t];
    for (size_t i = 0; t == 0 && i < d->catalog.n_sets; i++) { /* cold holds every shard */
        const struct wt_catalog_set *set = d->catalog.set[i];
        used += set->retired ? 0 : set->d.m.stored_bytes;
        shards += set->retired ? 0 : set->d.m.shards;
    }
    json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "name",
                          wt_json_string(wt_tier_name(d->tier[t])), "url",
                          wt_json_string(wt_tier_url(d->tier[t])), "capacity",
                          number(wt_planner_capacity(d->planner, t)), "used", number(used),
                          "shards", number(shards), "down", s.down, "ops", number(all_ops(s.ops)),
                          "errors", number(all_ops(s.errors)), "bytes_read", number(s.bytes_read),
                          "bytes_written", number(s.bytes_written));
    json_t *more = json_pack(
        "{s:f, s:f, s:i, s:i, s:b, s:o, s:{s:o, s:o}}", "latency_us", s.latency_us, "bandwidth",
        s.bandwidth, "in_flight", (int)s.in_flight, "queued", (int)s.queued, "full",
        wt_mover_full(d->mover, t), "last_error", wt_json_string(s.last_error), "reported", "reads",
        number(d->reads.tier_reads[t]), "bytes", number(d->reads.tier_bytes[t]));
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
        wt_json_put(&held, wt_tier_name(d->tier[t]), number(t ? set->held[t] : set->d.m.shards));
    const struct wt_manifest *m = &set->d.m;
    return json_pack("{s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:i, s:o}", "name", m->name,
                     "generation", number(m->generation), "retired", set->retired, "shards",
                     number(m->shards), "samples", number(m->samples), "stored_bytes",
                     number(m->stored_bytes), "tar_bytes", number(m->tar_bytes), "created",
                     number(m->created), "jobs", (int)set->jobs, "resident", held);
}

json_t *wt_stats_datasets(struct wt_daemon *d) {
    json_t *list = json_array();
    for (size_t i = 0; i < d->catalog.n_sets; i++)
        wt_json_push(&list, wt_stats_dataset(d, d->catalog.set[i]));
    return json_pack("{s:o}", "datasets", list);
}

json_t *wt_stats_predicted(struct wt_daemon *d, const struct wt_job *job) {
    struct wt_foresee *f = wt_planner_foresee(d->planner);
    uint64_t above = wt_planner_above(d->planner);
    double cold = wt_foresee_cold(f, above);
    return json_pack("{s:o, s:f, s:f}", "cold_bytes_per_epoch",
                     number((uint64_t)(cold * (double)job->set->d.m.stored_bytes)), "cold_part",
                     cold, "cold_bandwidth", wt_foresee_need(f, above));
}

static const char *order_of(const struct wt_job *j) {
    return j->future < 0 ? "unknown" : j->departed ? "departed" : "known";
}

/* Bytes from cold, by its readers and for it, to what the optimum would have taken; 0: none yet. */
static double efficiency(const struct wt_job *j) {
    double cold = (double)(j->tier_bytes[0] + j->staged_bytes);
    return j->least_bytes >= 1 ? cold / j->least_bytes : 0;
}

static json_t *job_json(struct wt_daemon *d, const struct wt_job *j) {
    uint64_t now = wt_daemon_now_ms(d);
    json_t *reads = json_object(), *bytes = json_object();
    for (uint32_t t = 0; t < d->n_tiers; t++) {
        wt_json_put(&reads, wt_tier_name(d->tier[t]), number(j->tier_reads[t]));
        wt_json_put(&bytes, wt_tier_name(d->tier[t]), number(j->tier_bytes[t]));
    }
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:o, s:o, s:o, s:o, s:o, "
                     "s:o, s:s, s:f, "
                     "s:o, s:o, s:f, s:o}",
                     "id", j->id, "name", j->o.name, "dataset", j->set->d.m.name, "generation",
                     number(j->set->d.m.generation), "world", number(j->o.world), "seed",
                     json_integer((json_int_t)j->o.seed), "epoch", number(j->o.epoch), "step",
                     number(j->step), "running_s", seconds(now - j->since_ms), "last_report_s",
                     seconds(now - j->seen_ms), "reads", number(j->reads), "hits", number(j->hits),
                     "misses", number(j->reads - j->hits), "bytes", number(j->bytes), "tier_reads",
                     reads, "tier_bytes", bytes, "order", order_of(j), "epoch_s", j->epoch_s,
                     "staged_bytes", number(j->staged_bytes), "least_cold_bytes",
                     number((uint64_t)j->least_bytes), "cold_ratio", efficiency(j), "predicted",
                     wt_stats_predicted(d, j));
}

json_t *wt_stats_jobs(struct wt_daemon *d) {
    json_t *list = json_array();
    for (const struct wt_job *j = wt_jobs_first(d->jobs); j; j = j->next)
        wt_json_push(&list, job_json(d, j));
    return json_pack("{s:o}", "jobs", list);
}

struct move_list {
    struct wt_daemon *d;
    json_t *list;
};

static void add_move(void *arg, const struct wt_move_info *m) {
    struct move_list *l = arg;
    wt_json_push(&l->list,
                 json_pack("{s:s, s:o, s:o, s:s?, s:s?, s:s?, s:s, s:o, s:i, s:o, s:s, s:o}",
                           "dataset", m->dataset, "shard", number(m->shard), "size",
                           number(m->size), "from", tier_name(l->d, m->from), "to",
                           tier_name(l->d, m->to), "drop", tier_name(l->d, m->drop), "step",
                           m->step, "done", number(m->done), "attempts", (int)m->attempts, "ms",
                           number(m->ms), "code", wt_err_name(m->rc), "text",
                           wt_json_string(m->text)));
}

static json_t *moves_array(struct wt_daemon *d, enum wt_move_list which) {
    struct move_list l = {.d = d, .list = json_array()};
    wt_mover_list(d->mover, which, add_move, &l);
    return l.list;
}

json_t *wt_stats_moves(struct wt_daemon *d) {
    struct wt_mover_stats s;
    wt_mover_stats(d->mover, &s);
    return json_pack("{s:o, s:i, s:o, s:o, s:o}", "running", moves_array(d, WT_MOVES_RUNNING),
                     "queued", (int)s.queued, "waiting", moves_array(d, WT_MOVES_WAITING), "recent",
                     moves_array(d, WT_MOVES_RECENT), "set_aside", moves_array(d, WT_MOVES_ASIDE));
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
    wt_scrub_stats(d->scrub, &s);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "passes", number(s.passes), "copies",
                     number(s.copies), "bytes", number(s.bytes), "missing", number(s.missing),
                     "damaged", number(s.damaged), "cold_missing", number(s.cold_missing),
                     "cold_damaged", number(s.cold_damaged));
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

json_t *wt_stats_json(struct wt_daemon *d) {
    const struct wt_read_stats *r = &d->reads;
    return json_pack("{s:s, s:f, s:b, s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o}, s:o, s:o, s:o, s:f, "
                     "s:o, s:o, s:o, s:o}",
                     "version", WAFERTIER_VERSION_STRING, "uptime_s",
                     seconds(wt_daemon_now_ms(d) - d->started_ms), "active", wt_daemon_active(d),
                     "tiers", tiers_array(d), "moves", move_counts(d), "jobs",
                     number(wt_jobs_count(d->jobs)), "reads", "total", number(r->reads), "hits",
                     number(r->hits), "misses", number(r->misses), "bytes", number(r->bytes),
                     "datasets", number(d->catalog.n_sets), "shards", number(d->catalog.shards),
                     "reconcile", reconcile_json(d), "half_life_s",
                     wt_planner_get_half_life(d->planner), "policy_passes",
                     number(wt_planner_passes(d->planner)), "jobs_expired", number(d->job_expired),
                     "foresight", foresight_json(d), "scrub", scrub_json(d));
}
