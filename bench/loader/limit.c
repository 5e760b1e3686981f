/* Threads that take the next batch, or the next frame, until there is none; see limit.h. */
#include "bench/loader/limit.h"

#include "bench/measure.h"
#include "core/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { THREADS_MAX = 64 };

struct frame {
    const uint8_t *data;
    size_t len, decoded;
    uint64_t at; /* where its content begins among all */
};

struct limit {
    const struct set *set;
    unsigned threads, slots;
    uint64_t batch;
    struct wt_mem slot; /* of all slots */
    const uint8_t **src;
    uint64_t n_src;
    struct frame *frame;
    uint64_t n_frames;
    uint64_t decoded; /* bytes of all frames */
    size_t largest;   /* frame, decoded */
    ZSTD_DCtx *zstd[THREADS_MAX];
    struct wt_mem out[THREADS_MAX]; /* of each thread */
    struct wt_mem all;              /* of the whole data set */
    _Atomic uint64_t next;
    _Atomic unsigned number; /* that the next thread takes */
};

static void add_frames(struct limit *l, const struct set_shard *sh, size_t *cap) {
    struct wt_span span = wt_shard_span(&sh->index, 0, sh->rec.samples);
    if (wt_grow(&l->frame, cap, l->n_frames + span.n_frames, sizeof *l->frame) < 0)
        bench_die("out of memory");
    for (uint32_t i = 0; i < span.n_frames; i++) {
        const struct wt_frame *f = &sh->index.frame[span.frame_first + i];
        struct frame frame = {.data = sh->data + f->off,
                              .len = (size_t)(f[1].off - f->off),
                              .decoded = (size_t)(f[1].tar_off - f->tar_off),
                              .at = l->decoded};
        l->decoded += frame.decoded;
        l->largest = frame.decoded > l->largest ? frame.decoded : l->largest;
        l->frame[l->n_frames++] = frame;
    }
}

static void map(struct wt_mem *mem, size_t size) {
    struct wt_err err = {0};
    if (wt_mem_map(mem, size, &err) < 0)
        bench_die("%s", err.text);
}

struct limit *limit_new(const struct set *s, unsigned threads, unsigned slots, uint64_t batch) {
    struct limit *l = calloc(1, sizeof *l);
    if (!l || threads > THREADS_MAX)
        bench_die("out of memory, or more than %d threads", THREADS_MAX);
    *l = (struct limit){.set = s, .threads = threads, .slots = slots, .batch = batch};
    map(&l->slot, slots * batch * s->row);
    size_t cap = 0;
    for (uint64_t i = 0; i < s->ds.m.shards; i++)
        if (s->shard[i].rec.codec == WT_CODEC_ZSTD)
            add_frames(l, &s->shard[i], &cap);
    map(&l->all, l->decoded);
    for (unsigned i = 0; i < threads && l->n_frames; i++) {
        map(&l->out[i], l->largest);
        l->zstd[i] = ZSTD_createDCtx();
        if (!l->zstd[i])
            bench_die("out of memory");
    }
    return l;
}

void limit_free(struct limit *l) {
    for (unsigned i = 0; i < l->threads; i++) {
        wt_mem_unmap(&l->out[i]);
        ZSTD_freeDCtx(l->zstd[i]);
    }
    wt_mem_unmap(&l->all);
    wt_mem_unmap(&l->slot);
    free(l->frame);
    free(l->src);
    free(l);
}

void limit_prepare(struct limit *l, const uint64_t *order, uint64_t n) {
    free(l->src);
    l->src = calloc(n, sizeof *l->src);
    if (!l->src)
        bench_die("out of memory");
    l->n_src = n;
    for (uint64_t i = 0; i < n; i++) {
        struct set_place at = set_find(l->set, order[i]);
        l->src[i] = at.shard->tar + at.off;
    }
}

static void *gather(void *arg) {
    struct limit *l = arg;
    size_t row = l->set->row;
    for (;;) {
        uint64_t step = atomic_fetch_add(&l->next, 1);
        if (step * l->batch >= l->n_src)
            return NULL;
        uint8_t *dst = (uint8_t *)l->slot.ptr + step % l->slots * l->batch * row;
        const uint8_t **src = l->src + step * l->batch;
        for (uint64_t i = 0; i < l->batch; i++)
            memcpy(dst + i * row, src[i], row);
    }
}

static void *decode(struct limit *l, bool cached) {
    unsigned me = atomic_fetch_add(&l->number, 1);
    for (;;) {
        uint64_t i = atomic_fetch_add(&l->next, 1);
        if (i >= l->n_frames)
            return NULL;
        const struct frame *f = &l->frame[i];
        uint8_t *dst = cached ? l->out[me].ptr : (uint8_t *)l->all.ptr + f->at;
        if (ZSTD_decompressDCtx(l->zstd[me], dst, f->decoded, f->data, f->len) != f->decoded)
            bench_die("frame %llu does not decode", (unsigned long long)i);
    }
}

static void *decode_all(void *limit) {
    return decode(limit, false);
}

static void *decode_cached(void *limit) {
    return decode(limit, true);
}

static void run(struct limit *l, void *(*work)(void *)) {
    pthread_t thread[THREADS_MAX];
    atomic_store(&l->next, 0);
    atomic_store(&l->number, 0);
    for (unsigned i = 0; i < l->threads; i++)
        if (pthread_create(&thread[i], NULL, work, l) != 0)
            bench_die("no thread");
    for (unsigned i = 0; i < l->threads; i++)
        pthread_join(thread[i], NULL);
}

void limit_gather(struct limit *l) {
    run(l, gather);
}

void limit_decode(struct limit *l) {
    run(l, decode_all);
}

void limit_decode_cached(struct limit *l) {
    run(l, decode_cached);
}
