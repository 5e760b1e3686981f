/*
 * What `wafertier loadtest` says: each stage's limit, the bottleneck, what to change.
 *
 * The CPU stages share the loader's threads: threads / (CPU time of a sample) is what they could
 * do if nothing else held them. What storage could do at most is not known until storage is what
 * holds the loader: then it is the measured rate, and before that it is at least the measured rate.
 */
#include "core/bytes.h"
#include "core/json.h"
#include "tools/loadtest/loadtest.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double per(double value, double of) {
    return of > 0 ? value / of : 0;
}

static const char *rate_text(double bytes_per_s, char out[WT_SIZE_TEXT]) {
    return wt_size_format((uint64_t)bytes_per_s, out);
}

/* Samples a second that the threads could do with this CPU time for a sample; 0: no limit seen. */
static double cpu_limit(const struct wt_loadtest *t, double busy_s) {
    return per((double)t->flat.samples * t->threads, busy_s);
}

static void print_phase(const char *name, const struct wt_loadtest_phase *p) {
    char bytes[WT_SIZE_TEXT];
    printf("%s: %.0f samples/s, %s/s in batches, over %.1f s; the consumer waited %.1f%% of it\n",
           name, per((double)p->samples, p->seconds),
           rate_text(per((double)p->bytes, p->seconds), bytes), p->seconds,
           100 * wt_loadtest_waits(p));
}

static void print_cpu(const struct wt_loadtest *t, const char *name, double busy_s, double line_s,
                      double stall_s) {
    double limit = cpu_limit(t, busy_s);
    char samples[32] = "-";
    if (limit > 0)
        snprintf(samples, sizeof samples, "%.0f", limit);
    printf("  %-14s %12.2f %18s %12.2f %11.2f\n", name, 1e6 * per(busy_s, (double)t->flat.samples),
           samples, line_s, stall_s);
}

static void print_tier(const struct wt_loadtest *t, size_t i, bool holds) {
    const struct wt_loadtest_phase *p = &t->flat;
    const wl_tier_stats *tier = &p->d.tier[i];
    char read[WT_SIZE_TEXT], label[96], limit[48];
    if (!tier->reads && !tier->failures && !tier->down)
        return;
    snprintf(label, sizeof label, "fetch: %.*s", 60, tier->name);
    snprintf(limit, sizeof limit, "%s%s/s",
             holds ? "" : ">= ", rate_text(per((double)tier->bytes, p->seconds), read));
    printf("  %-14s %12s %18s %12s %11.2f", label, "", limit, "", p->d.tier_stall_s[i]);
    if (tier->failures || tier->down)
        printf("  (%" PRIu64 " failed reads%s)", tier->failures, tier->down ? ", down" : "");
    putchar('\n');
}

static void print_stages(const struct wt_loadtest *t, const char *worst, int tier) {
    const wl_stats *d = &t->flat.d;
    printf("  %-14s %12s %18s %12s %11s\n", "stage", "us a sample", "limit, samples/s",
           "in line, s", "waited, s");
    for (size_t i = 0; i < d->tiers; i++)
        print_tier(t, i, worst && tier == (int)i);
    print_cpu(t, "decode", d->decode.busy_s, d->decode.wait_s, d->stall_decode_s);
    print_cpu(t, "stage", d->stage.busy_s, d->stage.wait_s, d->stall_stage_s);
    double both = d->decode.busy_s + d->stage.busy_s;
    printf("  %-14s %12.2f %18.0f\n", "decode + stage", 1e6 * per(both, (double)t->flat.samples),
           cpu_limit(t, both));
}

static void advise_fetch(const struct wt_loadtest *t, int tier) {
    const wl_stats *d = &t->flat.d;
    const char *name = tier >= 0 ? d->tier[tier].name : "storage";
    if (t->info.ranged)
        printf("- windows did not fit the memory and samples are read one by one: give the loader "
               "more memory=, or fewer lanes=\n");
    if (tier >= 0 && (size_t)tier + 1 < d->tiers)
        printf("- most of the waiting is for tier '%s': copy the data set higher, wafertier warm "
               "%s --tier %s --wait, or give that tier more capacity\n",
               name, t->dataset, d->tier[d->tiers - 1].name);
    else
        printf("- tier '%s' gives no more to this loader: a faster tier above it, or shards that "
               "are smaller on disk (wafertier pack --codec zstd)\n",
               name);
    if (d->retries)
        printf("- %" PRIu64 " reads were repeated: wafertier doctor tells which tier is ill\n",
               d->retries);
}

static void advise(const struct wt_loadtest *t, const char *worst, int tier) {
    if (!worst || strcmp(worst, "consumer") == 0) {
        printf("- nothing: the batches were there before they were asked for\n");
        return;
    }
    if (strcmp(worst, "fetch") == 0) {
        advise_fetch(t, tier);
        return;
    }
    if (t->threads < t->processors)
        printf("- more threads=: %u work, this process may use %u processors\n", t->threads,
               t->processors);
    if (strcmp(worst, "decode") == 0)
        printf("- a data set of plain tars (wafertier pack --codec tar) costs sums instead of "
               "decoding, and more room and bytes to read\n");
    else
        printf("- fewer fields= where not all are needed\n");
    if (t->threads >= t->processors)
        printf("- all %u processors work: more of them, or more ranks on other hosts\n",
               t->processors);
}

static void print_verdict(const struct wt_loadtest *t) {
    double can = per((double)t->flat.samples, t->flat.seconds);
    print_phase("at the rate", &t->paced);
    if (wt_loadtest_waits(&t->paced) < 0.01)
        printf("%.0f samples/s are held: the trainer waits %.2f%% of its time, flat out the loader "
               "gives %.1f times as much\n",
               t->rate, 100 * wt_loadtest_waits(&t->paced), per(can, t->rate));
    else
        printf("%.0f samples/s are NOT held: the trainer waits %.1f%% of its time\n", t->rate,
               100 * wt_loadtest_waits(&t->paced));
}

void wt_loadtest_print(const struct wt_loadtest *t) {
    char memory[WT_SIZE_TEXT], stored[WT_SIZE_TEXT];
    const wl_info *i = &t->info;
    printf("%s: %" PRIu64 " samples in %" PRIu64 " shards, %s; %" PRIu64
           " rows a batch on rank %d of %d, %" PRIu64 " steps an epoch\n",
           t->dataset, i->samples, i->shards, wt_size_format(i->stored_bytes, stored),
           i->rank_batch, i->rank, i->world, i->steps);
    printf("first batch after %.3f s, %s of memory, %u threads\n\n", t->first_batch_s,
           wt_size_format(i->memory, memory), t->threads);
    int tier;
    const char *worst = wt_loadtest_bottleneck(&t->flat, &tier);
    print_phase("flat out", &t->flat);
    print_stages(t, worst, tier);
    printf("\nbottleneck: %s%s%s\n", worst ? worst : "none", tier >= 0 ? " from tier " : "",
           tier >= 0 ? t->flat.d.tier[tier].name : "");
    advise(t, worst, tier);
    if (t->rate > 0) {
        putchar('\n');
        print_verdict(t);
    }
}

static json_t *phase_json(const struct wt_loadtest_phase *p) {
    int tier;
    const char *worst = wt_loadtest_bottleneck(p, &tier);
    json_t *tiers = json_array();
    for (size_t i = 0; i < p->d.tiers; i++)
        wt_json_push(&tiers,
                     json_pack("{s:s, s:I, s:I, s:I, s:f}", "name", p->d.tier[i].name, "reads",
                               (json_int_t)p->d.tier[i].reads, "bytes",
                               (json_int_t)p->d.tier[i].bytes, "failures",
                               (json_int_t)p->d.tier[i].failures, "stall_s", p->d.tier_stall_s[i]));
    json_t *root =
        json_pack("{s:f, s:I, s:I, s:f, s:f, s:f, s:f, s:s, s:s}", "seconds", p->seconds, "samples",
                  (json_int_t)p->samples, "bytes", (json_int_t)p->bytes, "samples_per_s",
                  per((double)p->samples, p->seconds), "stall_s", p->stall_s, "decode_busy_s",
                  p->d.decode.busy_s, "stage_busy_s", p->d.stage.busy_s, "bottleneck",
                  worst ? worst : "", "bottleneck_tier", tier >= 0 ? p->d.tier[tier].name : "");
    wt_json_put(&root, "tiers", tiers);
    return root;
}

int wt_loadtest_print_json(const struct wt_loadtest *t, struct wt_err *err) {
    json_t *root = json_pack("{s:s, s:I, s:i, s:i, s:I, s:f, s:I}", "dataset", t->dataset, "rows",
                             (json_int_t)t->info.rank_batch, "rank", t->info.rank, "world",
                             t->info.world, "threads", (json_int_t)t->threads, "first_batch_s",
                             t->first_batch_s, "memory", (json_int_t)t->info.memory);
    wt_json_put(&root, "flat", phase_json(&t->flat));
    if (t->rate > 0) {
        wt_json_put(&root, "rate", json_real(t->rate));
        wt_json_put(&root, "paced", phase_json(&t->paced));
        wt_json_put(&root, "held", json_boolean(wt_loadtest_waits(&t->paced) < 0.01));
    }
    size_t len;
    char *text = root ? wt_json_dump(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9), &len) : NULL;
    json_decref(root);
    if (!text)
        return wt_err_set(err, WT_ENOMEM, "out of memory for the answer");
    fputs(text, stdout);
    free(text);
    return 0;
}
