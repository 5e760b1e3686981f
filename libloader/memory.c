/*
 * How much memory a loader takes, known before it takes any: windows where they fit the budget,
 * ranged reads where not, an error that names the need where even those do not. The order of
 * samples never depends on it.
 *
 * The figures are upper estimates from shards.idx: bytes of a sample are those of the shard whose
 * samples are the largest. Where a block turns out larger all the same, the buffers ask the context
 * for more.
 */
#include "libloader/internal.h"

enum { RANGED_UNITS = 3, FETCHES_MIN = 2, FETCHES_MAX = 16, HUGE_PAGE = 2 << 20 };
#define FETCH_BYTES (UINT64_C(128) << 20)

struct shard_sizes { /* the largest of each */
    uint64_t sample, stored, tail, tar, raw;
};

static uint64_t max64(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t min64(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static struct shard_sizes largest(const struct wt_dataset *ds) {
    struct shard_sizes s = {0};
    for (uint64_t i = 0; i < ds->m.shards; i++) {
        struct wt_shard_rec rec;
        wt_dataset_rec(ds, i, &rec);
        s.sample = max64(s.sample, rec.tar_size / rec.samples + 1);
        s.stored = max64(s.stored, rec.size);
        s.tar = max64(s.tar, rec.tar_size);
        s.tail = max64(s.tail, rec.size - rec.index_off);
        s.raw = max64(s.raw, rec.codec == WT_CODEC_ZSTD ? rec.size : rec.size - rec.index_off);
    }
    return s;
}

/* What the buffer pool takes for so many bytes: rounded up to an eighth, or to huge pages. */
static uint64_t buffer_bytes(uint64_t n) {
    n += n / 8 + 4096;
    return n >= HUGE_PAGE ? (n + 2 * (uint64_t)HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE : n;
}

static uint64_t index_bytes(const struct wl_loader *l, uint64_t samples) {
    return samples * (160 + 32 * (uint64_t)l->ds.m.n_fields);
}

unsigned wt_memory_fetches(const struct wl_loader *l) {
    uint64_t n = FETCH_BYTES / max64(1, largest(&l->ds).stored);
    return (unsigned)max64(FETCHES_MIN, min64(FETCHES_MAX, n));
}

/* A span of a lane's share touches at most 2 + (share - 2) / m windows, m being the samples of the
 * smallest one that has neighbours on both sides; and the next step's are fetched meanwhile. */
unsigned wt_memory_units(const struct wl_loader *l) {
    if (l->ranged)
        return RANGED_UNITS;
    const struct wt_plan *p = &l->plan;
    uint64_t shortest = p->o.samples - (p->blocks - 1) * p->o.block;
    uint64_t m = (p->o.window - 1) * p->o.block + shortest;
    uint64_t most = p->lane_batch < 2 ? 1 : 2 + (p->lane_batch - 2) / m;
    return (unsigned)(most <= 2 ? 2 : 2 * most - 1);
}

static unsigned lanes_touched(const struct wl_loader *l) {
    return wt_plan_lane_of(&l->plan, l->first_row + l->rows - 1) -
           wt_plan_lane_of(&l->plan, l->first_row) + 1;
}

uint64_t wt_memory_window(const struct wl_loader *l) {
    const struct wt_plan *p = &l->plan;
    return min64(p->o.window * p->o.block, p->o.samples / p->o.lanes + 1);
}

static uint64_t window_need(struct wl_loader *l, const struct shard_sizes *s) {
    const struct wt_plan *p = &l->plan;
    l->ranged = false;
    uint64_t samples = wt_memory_window(l);
    uint64_t block = min64(p->o.block, samples);
    /* A block over two shards is two chunks; a part of a .tar.zst comes in whole frames. */
    uint64_t slack = block == samples ? 0 : 2 * (uint64_t)WT_SMALL_FRAME;
    uint64_t one = buffer_bytes(block * s->sample + min64(slack, s->tar)) + HUGE_PAGE;
    uint64_t unit =
        one * (samples / block + 1) + index_bytes(l, samples) + samples * sizeof(struct wt_record);
    return unit * wt_memory_units(l) * lanes_touched(l);
}

static uint64_t ranged_need(struct wl_loader *l, const struct shard_sizes *s) {
    l->ranged = true;
    uint64_t one =
        buffer_bytes(min64(s->sample + 2 * (uint64_t)WT_SMALL_FRAME, s->tar)) + index_bytes(l, 1);
    return one * l->rows * wt_memory_units(l) + 4 * s->tail * wt_memory_fetches(l);
}

static int take_more(void *owner, size_t bytes) {
    struct wl_loader *l = owner;
    int rc = wt_context_take(l->ctx, bytes, NULL);
    if (!rc)
        atomic_fetch_add(&l->reserved, bytes);
    return rc;
}

int wt_memory_reserve(struct wl_loader *l, uint64_t ring_bytes, struct wt_err *err) {
    struct shard_sizes s = largest(&l->ds);
    uint64_t fixed = ring_bytes + l->ds.m.shards * (WT_IDX_RECORD + sizeof(uint64_t) + 1);
    uint64_t fetch = buffer_bytes(s.raw) * wt_memory_fetches(l);
    uint64_t windows = window_need(l, &s) + fetch, ranged = ranged_need(l, &s) + fetch;
    bool whole_windows = wt_context_take(l->ctx, fixed + windows, NULL) == 0;
    /* A substitute comes from anywhere in the window, so the window must be there. */
    bool may_range = ranged < windows && l->o.bad != WL_BAD_SUBSTITUTE;
    uint64_t pool = whole_windows ? windows : ranged;
    if (!whole_windows && (!may_range || wt_context_take(l->ctx, fixed + ranged, NULL) < 0)) {
        uint64_t least = fixed + (may_range ? ranged : windows);
        return wt_err_set(err, WT_ENOMEM,
                          "data set '%s' needs %llu bytes (%llu with its windows in memory) and "
                          "the context has %llu left: "
                          "raise 'memory', or lower 'slots', 'batch' or 'window'",
                          l->dataset, (unsigned long long)least,
                          (unsigned long long)(fixed + windows),
                          (unsigned long long)wt_context_spare(l->ctx));
    }
    l->ranged = !whole_windows;
    atomic_store(&l->reserved, fixed + pool);
    wt_buffers_init(&l->buffers, take_more, l);
    l->buffers.limit = (size_t)pool;
    return 0;
}

void wt_memory_release(struct wl_loader *l) {
    if (!atomic_load(&l->reserved))
        return;
    wt_buffers_end(&l->buffers);
    wt_context_give(l->ctx, atomic_exchange(&l->reserved, 0));
}
