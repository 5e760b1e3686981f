/* The table and the JSON of a simulation; see result.h. */
#include "tools/sim/result.h"

#include "core/bytes.h"
#include "core/json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

static uint64_t missed(const struct wt_offline *o) {
    return o->bytes - o->hit_bytes;
}

static double per(double a, double b) {
    return b > 0 ? a / b : 0;
}

static double to_bound(const struct wt_sim_result *r, uint64_t cold) {
    uint64_t least = missed(&r->other[WT_BOUND]);
    return least ? (double)cold / (double)least : cold ? 99 : 1;
}

double wt_sim_ratio(const struct wt_sim_result *r) {
    return to_bound(r, wt_world_cold(&r->count));
}

double wt_sim_churn(const struct wt_sim_result *r) {
    return r->epochs > 0 ? per((double)r->count.dropped, (double)r->cache * r->epochs) : 0;
}

static void print_row(FILE *out, const char *name, double hits, double hit_bytes, uint64_t cold,
                      double ratio) {
    char text[WT_SIZE_TEXT];
    fprintf(out, "%-10s %9.4f %9.4f %14s %10.4f\n", name, hits, hit_bytes,
            wt_size_format(cold, text), ratio);
}

static double reads_above(const struct wt_world_count *c) {
    return per((double)(c->reads - c->tier_reads[0]), (double)c->reads);
}

void wt_sim_print(const struct wt_sim_result *r, FILE *out) {
    const struct wt_world_count *c = &r->count;
    char a[WT_SIZE_TEXT], b[WT_SIZE_TEXT];
    fprintf(out, "%u shards, %s, %s above cold (%.1f%%), %" PRIu64 " requests of %u jobs\n\n",
            r->shards, wt_size_format(r->bytes, a), wt_size_format(r->cache, b),
            100 * per((double)r->cache, (double)r->bytes), r->requests, r->jobs);
    fprintf(out, "%-10s %9s %9s %14s %10s\n", "policy", "hits", "of bytes", "from cold",
            "/ optimum");
    print_row(out, "wafertier", reads_above(c), 1 - per((double)wt_world_cold(c), (double)c->bytes),
              wt_world_cold(c), wt_sim_ratio(r));
    for (int p = 0; p < WT_OFFLINE_COUNT; p++) {
        const struct wt_offline *o = &r->other[p];
        print_row(out, p == WT_BOUND ? "optimum" : wt_offline_name((enum wt_offline_policy)p),
                  per((double)o->hits, (double)o->requests),
                  per((double)o->hit_bytes, (double)o->bytes), missed(o), to_bound(r, missed(o)));
    }
    fprintf(out, "\n%-10s %12s %14s\n", "tier", "reads", "read");
    for (uint32_t t = 0; t < r->n_tiers; t++)
        fprintf(out, "%-10u %12" PRIu64 " %14s\n", t, c->tier_reads[t],
                wt_size_format(c->tier_bytes[t], a));
    fprintf(out, "%-10s %12" PRIu64 " %14s\n\n", "mover", c->copies, wt_size_format(c->copied, a));
    fprintf(out,
            "reads that waited for a copy %" PRIu64 ", copies cancelled %" PRIu64
            ", stages too late %" PRIu64 "\n",
            c->joined, c->pointless, r->foresight.late);
    if (r->churns)
        fprintf(out, "churn %.4f of the cache an epoch, stalled %.2f%% of the time\n",
                wt_sim_churn(r), 100 * per(c->stall, r->seconds * r->jobs));
}

static json_t *number(uint64_t v) {
    return json_integer((json_int_t)v);
}

static json_t *policy_json(double hits, double hit_bytes, uint64_t cold, double ratio) {
    return json_pack("{s:f, s:f, s:o, s:f}", "hits", hits, "hit_bytes", hit_bytes, "cold_bytes",
                     number(cold), "ratio", ratio);
}

int wt_sim_print_json(const struct wt_sim_result *r, FILE *out, struct wt_err *err) {
    const struct wt_world_count *c = &r->count;
    json_t *policies = json_object(), *tiers = json_array();
    wt_json_put(&policies, "wafertier",
                policy_json(reads_above(c), 1 - per((double)wt_world_cold(c), (double)c->bytes),
                            wt_world_cold(c), wt_sim_ratio(r)));
    for (int p = 0; p < WT_OFFLINE_COUNT; p++) {
        const struct wt_offline *o = &r->other[p];
        wt_json_put(&policies, wt_offline_name((enum wt_offline_policy)p),
                    policy_json(per((double)o->hits, (double)o->requests),
                                per((double)o->hit_bytes, (double)o->bytes), missed(o),
                                to_bound(r, missed(o))));
    }
    for (uint32_t t = 0; t < r->n_tiers; t++)
        wt_json_push(&tiers, json_pack("{s:o, s:o}", "reads", number(c->tier_reads[t]), "bytes",
                                       number(c->tier_bytes[t])));
    json_t *root = json_pack(
        "{s:i, s:i, s:o, s:o, s:o, s:f, s:o, s:o, s:{s:o, s:o, s:o, s:o, s:o}, s:f, s:f}", "jobs",
        (int)r->jobs, "shards", (int)r->shards, "bytes", number(r->bytes), "cache_bytes",
        number(r->cache), "requests", number(r->requests), "cold_bandwidth", r->bandwidth,
        "policies", policies, "tiers", tiers, "mover", "copies", number(c->copies), "bytes",
        number(c->copied), "joined", number(c->joined), "canceled", number(c->pointless), "late",
        number(r->foresight.late), "churn", wt_sim_churn(r), "stall_s", c->stall);
    size_t len;
    char *text = root ? wt_json_dump(root, JSON_INDENT(2), &len) : NULL;
    json_decref(root);
    if (!text)
        return wt_err_set(err, WT_ENOMEM, "out of memory");
    fwrite(text, 1, len, out);
    free(text);
    return 0;
}
