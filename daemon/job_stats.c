/* Jobs as JSON: what they read from where, how well, and what they waited for; see routes.h. */
#include "core/json.h"
#include "daemon/body.h"
#include "daemon/routes.h"

json_t *wt_stats_predicted(struct wt_daemon *d, const struct wt_job *job) {
    struct wt_foresee *f = wt_planner_foresee(d->planner);
    uint64_t above = wt_planner_above(d->planner);
    double cold = wt_foresee_cold(f, above);
    return json_pack("{s:o, s:f, s:f}", "cold_bytes_per_epoch",
                     wt_body_number((uint64_t)(cold * (double)job->set->d.m.stored_bytes)),
                     "cold_part", cold, "cold_bandwidth", wt_foresee_need(f, above));
}

static double seconds(uint64_t ms) {
    return (double)ms / 1000;
}

static const char *order_of(const struct wt_job *j) {
    return j->future < 0 ? "unknown" : j->departed ? "departed" : "known";
}

double wt_stats_cold_ratio(const struct wt_job *j) {
    double cold = (double)(j->tier_bytes[0] + j->staged_bytes);
    return j->least_bytes >= 1 ? cold / j->least_bytes : 0;
}

static json_t *place_json(struct wt_daemon *d, const struct wt_job *j) {
    uint64_t now = wt_daemon_now_ms(d);
    return json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:s, s:f}", "id", j->id,
                     "name", wt_json_string(j->o.name), "dataset", j->set->d.m.name, "generation",
                     wt_body_number(j->set->d.m.generation), "world", wt_body_number(j->o.world),
                     "seed", json_integer((json_int_t)j->o.seed), "epoch",
                     wt_body_number(j->o.epoch), "step", wt_body_number(j->step), "running_s",
                     seconds(now - j->since_ms), "last_report_s", seconds(now - j->seen_ms),
                     "order", order_of(j), "epoch_s", j->epoch_s);
}

static json_t *reads_json(struct wt_daemon *d, const struct wt_job *j) {
    json_t *reads = json_object(), *bytes = json_object();
    for (uint32_t t = 0; t < d->n_tiers; t++) {
        wt_json_put(&reads, wt_tier_name(d->tier[t]), wt_body_number(j->tier_reads[t]));
        wt_json_put(&bytes, wt_tier_name(d->tier[t]), wt_body_number(j->tier_bytes[t]));
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:o}", "reads",
                     wt_body_number(j->reads), "hits", wt_body_number(j->hits), "misses",
                     wt_body_number(j->reads - j->hits), "bytes", wt_body_number(j->bytes),
                     "tier_reads", reads, "tier_bytes", bytes, "staged_bytes",
                     wt_body_number(j->staged_bytes), "least_cold_bytes",
                     wt_body_number((uint64_t)j->least_bytes), "cold_ratio", wt_stats_cold_ratio(j),
                     "predicted", wt_stats_predicted(d, j));
}

/* The largest of n; -1: all are 0. */
static int largest(const double *v, unsigned n) {
    int best = -1;
    for (unsigned i = 0; i < n; i++)
        if (v[i] > (best < 0 ? 0 : v[best]))
            best = (int)i;
    return best;
}

static json_t *stalls_json(struct wt_daemon *d, const struct wt_job *j) {
    const double *s = j->stalls.stage;
    int stage = largest(s, WT_STALL_STAGES), tier = largest(j->stalls.tier, d->n_tiers);
    json_t *tiers = json_object();
    for (uint32_t t = 0; t < d->n_tiers; t++)
        wt_json_put(&tiers, wt_tier_name(d->tier[t]), json_real(j->stalls.tier[t]));
    json_t *blame = stage < 0 ? json_null() : json_string(wt_stall_stages[stage]);
    json_t *blame_tier =
        stage == 0 && tier >= 0 ? json_string(wt_tier_name(d->tier[tier])) : json_null();
    return json_pack("{s:f, s:{s:f, s:f, s:f, s:f}, s:o, s:o, s:o}", "stall_s",
                     s[0] + s[1] + s[2] + s[3], "stalls", wt_stall_stages[0], s[0],
                     wt_stall_stages[1], s[1], wt_stall_stages[2], s[2], wt_stall_stages[3], s[3],
                     "stall_tiers", tiers, "blame", blame, "blame_tier", blame_tier);
}

static json_t *bad_json(const struct wt_job *j) {
    json_t *list = json_array();
    for (size_t i = 0; i < j->n_bad; i++) {
        json_t *key = wt_json_string(j->bad[i].key), *shard = wt_json_string(j->bad[i].shard);
        json_t *row = json_object();
        wt_json_put(&row, "shard", shard);
        wt_json_put(&row, "key", key);
        wt_json_push(&list, row);
    }
    return json_pack("{s:o}", "quarantine", list);
}

static json_t *job_json(struct wt_daemon *d, const struct wt_job *j) {
    json_t *o = place_json(d, j), *parts[] = {reads_json(d, j), stalls_json(d, j), bad_json(j)};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (o && (!parts[i] || json_object_update(o, parts[i]) < 0)) {
            json_decref(o);
            o = NULL;
        }
        json_decref(parts[i]);
    }
    return o;
}

json_t *wt_stats_jobs(struct wt_daemon *d) {
    json_t *list = json_array();
    for (const struct wt_job *j = wt_jobs_first(d->jobs); j; j = j->next)
        wt_json_push(&list, job_json(d, j));
    return json_pack("{s:o}", "jobs", list);
}
