/*
 * GET /metrics: Prometheus text, version 0.0.4. Each family stands once with its help and type,
 * then its samples. Without memory the answer is an error, never half a page.
 */
#include "core/bytes.h"
#include "daemon/routes.h"
#include "wafertier/version.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    FIRST_BOUND = 8,
    LAST_BOUND = 54
}; /* buckets that are shown, each doubling: 16 us to 134 s */

struct page {
    struct wt_daemon *d;
    struct wt_bytes text;
    bool failed;
};

__attribute__((format(printf, 2, 3))) static void line(struct page *p, const char *fmt, ...) {
    char text[1024];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    p->failed = p->failed || n < 0 || (size_t)n >= sizeof text ||
                wt_bytes_add(&p->text, text, (size_t)n) < 0;
}

static void family(struct page *p, const char *name, const char *type, const char *help) {
    line(p, "# HELP wafertier_%s %s\n# TYPE wafertier_%s %s\n", name, help, name, type);
}

static void number(struct page *p, const char *name, const char *type, const char *help,
                   double value) {
    family(p, name, type, help);
    line(p, "wafertier_%s %.17g\n", name, value);
}

/* A label's value: backslash, quote and newline are escaped; cut to fit. */
static const char *escape(const char *in, char *out, size_t size) {
    size_t n = 0;
    for (; *in && n + 2 < size; in++) {
        if (*in == '\\' || *in == '"')
            out[n++] = '\\';
        out[n++] = (unsigned char)*in < ' ' || (unsigned char)*in > '~' ? '?' : *in;
    }
    out[n] = '\0';
    return out;
}

static void histogram(struct page *p, const char *name, const char *labels,
                      const struct wt_hist *h) {
    uint64_t sum = 0;
    unsigned b = 0;
    const char *comma = labels[0] ? "," : "";
    for (unsigned i = FIRST_BOUND; i <= LAST_BOUND; i += 2) {
        for (; b <= i; b++)
            sum += h->n[b];
        line(p, "wafertier_%s_bucket{%s%sle=\"%.9g\"} %" PRIu64 "\n", name, labels, comma,
             (double)wt_hist_bound(i) / 1e6, sum);
    }
    line(p, "wafertier_%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", name, labels, comma, h->count);
    const char *open = labels[0] ? "{" : "", *close = labels[0] ? "}" : "";
    line(p, "wafertier_%s_sum%s%s%s %.9g\n", name, open, labels, close, h->sum_us / 1e6);
    line(p, "wafertier_%s_count%s%s%s %" PRIu64 "\n", name, open, labels, close, h->count);
}

/* ---- tiers ---- */

struct tier_row {
    const char *name, *type, *help;
    double (*value)(struct wt_daemon *d, uint32_t t, const struct wt_tier_stats *s);
};

static double up(struct wt_daemon *d, uint32_t t, const struct wt_tier_stats *s) {
    (void)d;
    (void)t;
    return !s->down;
}
static double full(struct wt_daemon *d, uint32_t t, const struct wt_tier_stats *s) {
    (void)s;
    return wt_mover_full(d->mover, t);
}
static double capacity(struct wt_daemon *d, uint32_t t, const struct wt_tier_stats *s) {
    (void)s;
    return (double)wt_planner_capacity(d->planner, t);
}
static double used(struct wt_daemon *d, uint32_t t, const struct wt_tier_stats *s) {
    (void)s;
    return (double)wt_stats_used(d, t);
}
static double shards(struct wt_daemon *d, uint32_t t, const struct wt_tier_stats *s) {
    (void)s;
    return (double)wt_stats_held(d, t);
}
static double in_flight(struct wt_daemon *d, uint32_t t, const struct wt_tier_stats *s) {
    (void)d;
    (void)t;
    return s->in_flight;
}
static double queued(struct wt_daemon *d, uint32_t t, const struct wt_tier_stats *s) {
    (void)d;
    (void)t;
    return s->queued;
}
static double bytes_read(struct wt_daemon *d, uint32_t t, const struct wt_tier_stats *s) {
    (void)d;
    (void)t;
    return (double)s->bytes_read;
}
static double bytes_written(struct wt_daemon *d, uint32_t t, const struct wt_tier_stats *s) {
    (void)d;
    (void)t;
    return (double)s->bytes_written;
}
static double reported_reads(struct wt_daemon *d, uint32_t t, const struct wt_tier_stats *s) {
    (void)s;
    return (double)d->reads.tier_reads[t];
}
static double reported_bytes(struct wt_daemon *d, uint32_t t, const struct wt_tier_stats *s) {
    (void)s;
    return (double)d->reads.tier_bytes[t];
}

static const struct tier_row tier_rows[] = {
    {"tier_up", "gauge", "1: the tier answers.", up},
    {"tier_full", "gauge", "1: it refused a copy lately.", full},
    {"tier_capacity_bytes", "gauge", "What the policy counts on; 0: unlimited.", capacity},
    {"tier_used_bytes", "gauge", "Bytes of shards, by the catalog.", used},
    {"tier_shards", "gauge", "Shards that it holds, by the catalog.", shards},
    {"tier_in_flight", "gauge", "Requests of the daemon that run.", in_flight},
    {"tier_queued", "gauge", "Requests of the daemon that wait.", queued},
    {"tier_read_bytes_total", "counter", "Bytes that the daemon read.", bytes_read},
    {"tier_written_bytes_total", "counter", "Bytes that the daemon wrote.", bytes_written},
    {"reported_reads_total", "counter", "Reads that jobs finished at the tier.", reported_reads},
    {"reported_bytes_total", "counter", "Bytes that jobs read from the tier.", reported_bytes},
};

static void tiers(struct page *p) {
    struct wt_daemon *d = p->d;
    struct wt_tier_stats s;
    char name[160];
    for (size_t i = 0; i < sizeof tier_rows / sizeof tier_rows[0]; i++) {
        const struct tier_row *r = &tier_rows[i];
        family(p, r->name, r->type, r->help);
        for (uint32_t t = 0; t < d->n_tiers; t++) {
            wt_tier_stats(d->tier[t], &s);
            line(p, "wafertier_%s{tier=\"%s\"} %.17g\n", r->name,
                 escape(wt_tier_name(d->tier[t]), name, sizeof name), r->value(d, t, &s));
        }
    }
}

static void operations(struct page *p, const char *family_name, const char *help, bool errors) {
    struct wt_tier_stats s;
    char name[160];
    family(p, family_name, "counter", help);
    for (uint32_t t = 0; t < p->d->n_tiers; t++) {
        wt_tier_stats(p->d->tier[t], &s);
        for (int op = 0; op < WT_OP_COUNT; op++)
            line(p, "wafertier_%s{tier=\"%s\",op=\"%s\"} %" PRIu64 "\n", family_name,
                 escape(wt_tier_name(p->d->tier[t]), name, sizeof name), wt_op_name((enum wt_op)op),
                 errors ? s.errors[op] : s.ops[op]);
    }
}

static void latencies(struct page *p) {
    struct wt_tier_stats s;
    char name[160], labels[256];
    family(p, "tier_latency_seconds", "histogram", "Requests of the daemon that ended well.");
    for (uint32_t t = 0; t < p->d->n_tiers; t++) {
        wt_tier_stats(p->d->tier[t], &s);
        escape(wt_tier_name(p->d->tier[t]), name, sizeof name);
        snprintf(labels, sizeof labels, "tier=\"%s\",op=\"get\"", name);
        histogram(p, "tier_latency_seconds", labels, &s.get);
        snprintf(labels, sizeof labels, "tier=\"%s\",op=\"put\"", name);
        histogram(p, "tier_latency_seconds", labels, &s.put);
    }
}

/* ---- moves, jobs, data sets ---- */

static void labelled(struct page *p, const char *name, const char *label, const char *const *values,
                     const uint64_t *numbers, size_t n) {
    for (size_t i = 0; i < n; i++)
        line(p, "wafertier_%s{%s=\"%s\"} %" PRIu64 "\n", name, label, values[i], numbers[i]);
}

static void moves(struct page *p) {
    struct wt_mover_stats s;
    wt_mover_stats(p->d->mover, &s);
    static const char *const states[] = {"running", "queued", "waiting"}, *const ends[] = {
                                                                              "done", "failed",
                                                                              "refused",
                                                                              "canceled"};
    family(p, "moves", "gauge", "Moves by state.");
    labelled(p, "moves", "state", states, (uint64_t[]){s.running, s.queued, s.waiting}, 3);
    family(p, "moves_total", "counter", "Moves that ended.");
    labelled(p, "moves_total", "result", ends,
             (uint64_t[]){s.done, s.failed, s.refused, s.canceled}, 4);
    number(p, "moved_bytes_total", "counter", "Bytes copied and committed.", (double)s.bytes);
    number(p, "moved_from_cold_bytes_total", "counter", "Part of it that was read from cold.",
           (double)s.from_cold);
    static const char *const results[] = {"hit", "miss"};
    family(p, "reads_total", "counter", "Reads that jobs reported; hit: finished above cold.");
    labelled(p, "reads_total", "result", results,
             (uint64_t[]){p->d->reads.hits, p->d->reads.misses}, 2);
}

static void copies(struct page *p) {
    struct wt_scrub_stats s;
    struct wt_claims_stats c;
    struct wt_mover_stats m;
    wt_scrub_stats(p->d->scrub, &s);
    wt_claims_stats(p->d->claims, &c);
    wt_mover_stats(p->d->mover, &m);
    static const char *const found[] = {"whole", "missing", "damaged", "cold_missing",
                                        "cold_damaged"};
    static const char *const how[] = {"right", "wrong", "ignored"};
    family(p, "scrubbed_copies_total", "counter", "Copies read and compared with their hash.");
    labelled(p, "scrubbed_copies_total", "found", found,
             (uint64_t[]){s.copies, s.missing, s.damaged, s.cold_missing, s.cold_damaged}, 5);
    number(p, "scrubbed_bytes_total", "counter", "Bytes read for that.", (double)s.bytes);
    number(p, "cold_repaired_total", "counter", "Cold copies made anew from a copy above.",
           (double)m.mended);
    family(p, "claims_total", "counter", "Copies that jobs called damaged, as they were found.");
    labelled(p, "claims_total", "found", how, (uint64_t[]){c.right, c.wrong, c.ignored}, 3);
}

static void jobs(struct page *p) {
    char name[2 * WT_JOB_NAME];
    number(p, "jobs", "gauge", "Jobs that report.", (double)wt_jobs_count(p->d->jobs));
    number(p, "jobs_expired_total", "counter", "Jobs that stopped to report.",
           (double)p->d->job_expired);
    family(p, "job_cold_ratio", "gauge", "Bytes from cold to what the optimum needs; 0: none yet.");
    for (const struct wt_job *j = wt_jobs_first(p->d->jobs); j; j = j->next)
        line(p, "wafertier_job_cold_ratio{job=\"%s\",name=\"%s\",dataset=\"%s\"} %.9g\n", j->id,
             escape(j->o.name, name, sizeof name), j->set->d.m.name, wt_stats_cold_ratio(j));
    family(p, "job_stall_seconds_total", "counter", "Time that its consumer waited, by stage.");
    for (const struct wt_job *j = wt_jobs_first(p->d->jobs); j; j = j->next)
        for (unsigned i = 0; i < WT_STALL_STAGES; i++)
            line(p,
                 "wafertier_job_stall_seconds_total{job=\"%s\",name=\"%s\",dataset=\"%s\","
                 "stage=\"%s\"} %.9g\n",
                 j->id, escape(j->o.name, name, sizeof name), j->set->d.m.name, wt_stall_stages[i],
                 j->stalls.stage[i]);
}

static void landed(struct page *p) {
    const struct wt_catalog *c = &p->d->catalog;
    struct wt_mover_stats m;
    wt_mover_stats(p->d->mover, &m);
    family(p, "dataset_dirty_shards", "gauge", "Shards that were landed and are not in cold yet.");
    for (size_t i = 0; i < c->n_sets; i++)
        if (!c->set[i]->retired)
            line(p, "wafertier_dataset_dirty_shards{dataset=\"%s\"} %" PRIu64 "\n",
                 c->set[i]->d.m.name, c->set[i]->dirty);
    number(p, "flushed_shards_total", "counter", "Landed shards copied to cold and read back.",
           (double)m.flushed);
}

static void datasets(struct page *p) {
    const struct wt_catalog *c = &p->d->catalog;
    char name[160];
    family(p, "dataset_shards", "gauge", "Shards of the current generation.");
    for (size_t i = 0; i < c->n_sets; i++)
        if (!c->set[i]->retired)
            line(p, "wafertier_dataset_shards{dataset=\"%s\"} %" PRIu64 "\n", c->set[i]->d.m.name,
                 c->set[i]->d.m.shards);
    family(p, "dataset_resident_shards", "gauge", "Shards of it that a tier above cold holds.");
    for (size_t i = 0; i < c->n_sets; i++)
        for (uint32_t t = 1; t < p->d->n_tiers && !c->set[i]->retired; t++)
            line(p, "wafertier_dataset_resident_shards{dataset=\"%s\",tier=\"%s\"} %" PRIu64 "\n",
                 c->set[i]->d.m.name, escape(wt_tier_name(p->d->tier[t]), name, sizeof name),
                 c->set[i]->held[t]);
}

/* ---- the daemon ---- */

static void daemon_itself(struct page *p) {
    struct wt_daemon *d = p->d;
    const struct wt_pin *const *pin;
    const struct wt_quota *quota;
    family(p, "info", "gauge", "1; which version runs.");
    line(p, "wafertier_info{version=\"%s\"} 1\n", WAFERTIER_VERSION_STRING);
    number(p, "uptime_seconds", "gauge", "Since its start.",
           (double)(wt_daemon_now_ms(d) - d->started_ms) / 1000);
    number(p, "active", "gauge", "1: it holds the lock and moves shards.", wt_daemon_active(d));
    number(p, "pins", "gauge", "Pins in force.",
           (double)(d->rules ? wt_rules_pins(d->rules, &pin) : 0));
    number(p, "quotas", "gauge", "Quotas in force.",
           (double)(d->rules ? wt_rules_quotas(d->rules, &quota) : 0));
    number(p, "requests", "gauge", "Requests of warm and evict that run.",
           (double)wt_requests_running(d->requests));
    struct wt_foresight_stats f;
    wt_foresee_stats(wt_planner_foresee(d->planner), &f);
    number(p, "policy_passes_total", "counter", "Passes over all shards.",
           (double)wt_planner_passes(d->planner));
    number(p, "foresight_staged_bytes_total", "counter", "Copied from cold before a known use.",
           (double)f.staged_bytes);
    number(p, "foresight_swapped_bytes_total", "counter", "Dropped for them.",
           (double)f.swapped_bytes);
    number(p, "foresight_late_total", "counter", "Uses for which there was no time left.",
           (double)f.late);
}

static void control(struct page *p) {
    struct wt_control_stats s;
    wt_control_stats(p->d->control, &s);
    number(p, "control_requests_total", "counter", "Requests answered.", (double)s.requests);
    number(p, "control_failures_total", "counter", "Of these with 4xx or 5xx.", (double)s.failed);
    number(p, "control_connections", "gauge", "Open connections.", s.connections);
    number(p, "control_event_streams", "gauge", "Readers that follow events.", s.streams);
    family(p, "control_request_seconds", "histogram", "From a request's end to its answer.");
    histogram(p, "control_request_seconds", "", &s.latency);
    family(p, "loop_turn_seconds", "histogram", "What the loop did between two waits.");
    histogram(p, "loop_turn_seconds", "", &p->d->turns.hist);
}

void wt_route_metrics(void *arg, struct wt_call *call) {
    struct page p = {.d = arg};
    daemon_itself(&p);
    tiers(&p);
    operations(&p, "tier_operations_total", "Requests of the daemon.", false);
    operations(&p, "tier_errors_total", "Of these failed.", true);
    latencies(&p);
    moves(&p);
    copies(&p);
    jobs(&p);
    datasets(&p);
    landed(&p);
    control(&p);
    if (p.failed) {
        wt_bytes_free(&p.text);
        wt_call_reply(call, 0, NULL);
        return;
    }
    wt_call_text(call, "text/plain; version=0.0.4", (char *)p.text.data, p.text.len);
}
