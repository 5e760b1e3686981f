/* wl_get_stats: counters as they stand, the queues under the lock. Nothing here can fail but a
 * wrong size. */
#include "libloader/internal.h"

#include <stdio.h>
#include <string.h>

static double seconds(const _Atomic uint64_t *ns) {
    return (double)atomic_load_explicit(ns, memory_order_relaxed) / 1e9;
}

static uint64_t value(const _Atomic uint64_t *n) {
    return atomic_load_explicit(n, memory_order_relaxed);
}

static void fill_stage(const struct wt_meter *m, enum wt_stage_id id, wl_stage_stats *out) {
    out->busy_s = seconds(&m->stage[id].busy_ns);
    out->wait_s = seconds(&m->stage[id].wait_ns);
}

static void fill_tiers(const wl_loader *l, wl_stats *s) {
    s->tiers = l->ctx->n_tiers < WL_MAX_TIERS ? l->ctx->n_tiers : WL_MAX_TIERS;
    for (size_t i = 0; i < s->tiers; i++) {
        wl_tier_stats *t = &s->tier[i];
        snprintf(t->name, sizeof t->name, "%s", l->ctx->conf.tier[i].name);
        t->reads = value(&l->meter.tier[i].reads);
        t->bytes = value(&l->meter.tier[i].bytes);
        t->misses = value(&l->meter.tier[i].misses);
        t->failures = value(&l->meter.tier[i].failures);
        t->down = atomic_load_explicit(&l->ctx->down[i], memory_order_relaxed);
        s->tier_stall_s[i] = seconds(&l->meter.tier[i].stalled_ns);
    }
}

static void fill_queues(const wl_loader *l, wl_stats *s) {
    wt_lock((wl_loader *)l);
    for (size_t i = 0; i < l->n_tracks; i++)
        for (unsigned j = 0; j < l->track[i].n_units; j++)
            if (l->track[i].unit[j].state == WT_UNIT_LOADING)
                s->fetch.queue += l->track[i].unit[j].n_chunks - l->track[i].unit[j].started;
    s->decode.queue = wt_fetch_decoding(l);
    s->stage.queue = wt_ring_count(l->ring, WT_SLOT_STAGING);
    s->deliver.queue = wt_ring_count(l->ring, WT_SLOT_READY);
    s->memory = atomic_load(&l->reserved);
    wt_unlock((wl_loader *)l);
}

static void fill_blame(const wl_loader *l, wl_stats *s) {
    static const char *const names[] = {"", "fetch", "decode", "stage", "consumer"};
    s->blame = names[atomic_load_explicit(&l->meter.blame, memory_order_relaxed)];
    s->stall_fetch_s = seconds(&l->meter.stalled_ns[WT_BLAME_FETCH]);
    s->stall_decode_s = seconds(&l->meter.stalled_ns[WT_BLAME_DECODE]);
    s->stall_stage_s = seconds(&l->meter.stalled_ns[WT_BLAME_STAGE]);
    s->stall_consumer_s = seconds(&l->meter.stalled_ns[WT_BLAME_CONSUMER]);
    int tier = atomic_load_explicit(&l->meter.blame_tier, memory_order_relaxed);
    if (tier >= 0)
        snprintf(s->blame_tier, sizeof s->blame_tier, "%s", l->ctx->conf.tier[tier].name);
}

int wl_get_stats(const wl_loader *l, wl_stats *stats) {
    if (!l || !stats || stats->size < offsetof(wl_stats, blame) || stats->size > (size_t)64 << 10)
        return wt_error_set(wt_error_thread(), WL_ERROR_INVALID,
                            "wl_get_stats: set stats->size to sizeof(wl_stats)");
    wl_stats s = {.size = stats->size};
    const struct wt_meter *m = &l->meter;
    s.batches = value(&m->batches);
    s.samples = value(&m->samples);
    s.bytes = value(&m->bytes);
    s.stall_s = seconds(&m->stall_ns);
    s.elapsed_s = (double)(wt_now_ns() - l->opened_ns) / 1e9;
    fill_stage(m, WT_AT_FETCH, &s.fetch);
    fill_stage(m, WT_AT_DECODE, &s.decode);
    fill_stage(m, WT_AT_STAGE, &s.stage);
    fill_stage(m, WT_AT_DELIVER, &s.deliver);
    fill_queues(l, &s);
    fill_blame(l, &s);
    fill_tiers(l, &s);
    s.bad_samples = value(&m->bad);
    s.retries = value(&m->retries);
    s.joins = value(&m->joins);
    s.waits = value(&m->waits);
    s.waits_met = value(&m->met);
    memset(stats, 0, s.size);
    memcpy(stats, &s, s.size < sizeof s ? s.size : sizeof s);
    return WL_OK;
}
