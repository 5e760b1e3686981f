/*
 * One chunk on its way from a tier to memory. fetch.c moves it along on the I/O thread, decode/
 * works on it in the crew; a fetch is with one of the two at any time, handed over by post and
 * task. A crew task that went well ends it there and then.
 */
#ifndef WT_LOADER_FETCH_H
#define WT_LOADER_FETCH_H

#include "libloader/internal.h"

enum { WT_FETCH_REQS = 4, WT_FETCH_HELPERS = 15 };

enum wt_fetch_step {
    WT_FETCH_IDLE,
    WT_FETCH_MAP,    /* asking for a mapping */
    WT_FETCH_ROOM,   /* crew: buffers for what comes next */
    WT_FETCH_TAIL,   /* reading the index of a shard of which only a part is wanted */
    WT_FETCH_PARSE,  /* crew: that index, and buffers for the part */
    WT_FETCH_BODY,   /* reading the bytes */
    WT_FETCH_DECODE, /* crew: checking and decoding */
    WT_FETCH_WAIT,   /* no tier could give it: waiting for the next try */
    WT_FETCH_AWAIT,  /* a copy of it is under way, and there sooner than what we would read */
};

struct wt_fetch;

struct wt_frame_helper {
    struct wt_task task; /* first */
    struct wt_fetch *f;
};

struct wt_fetch {
    struct wl_loader *l;
    struct wt_chunk *chunk;
    _Atomic int step; /* enum wt_fetch_step; read by the stall report */
    _Atomic int tier;
    struct wt_post post;
    struct wt_delay delay;
    struct wt_task task;
    char key[WT_OBJECT_NAME];

    /* which tiers were asked in this round, and what came of it */
    unsigned tried;
    bool away, cold_bad, home_bad, cold_missing; /* home: of a data set that was landed */
    bool salvage;        /* the cold copy is damaged: take what is good of it */
    uint64_t trouble_ns; /* since when no tier could give it; 0: no trouble */
    unsigned backoff_ms;
    struct wt_err why; /* the cold tier's last error, else the last one */

    /* the copy under way that is waited for, once: its tier (0: none), and how long */
    int hope;
    uint64_t look_ns, until_ns;

    /* reading [next, end) into dst */
    struct wt_req req[WT_FETCH_REQS];
    bool flying[WT_FETCH_REQS];
    unsigned n_flying;
    uint8_t *dst;
    uint64_t begin, next, end;
    uint64_t step_ns;

    /* what tasks work on; rc and err are the result of the last step */
    int rc;
    struct wt_err err;
    struct wt_buffer *raw; /* stored bytes from raw_off on: a tail, or frames */
    uint64_t raw_off;
    struct wt_shard_index index;
    bool parsed;
    struct wt_span span;

    /* frames decoded by several workers */
    const struct wt_shard_index *x;
    const uint8_t *stored; /* of stored offset raw_off */
    struct wt_frame_helper helper[WT_FETCH_HELPERS];
    _Atomic uint32_t next_frame;
    _Atomic unsigned workers;
    _Atomic int claimed; /* the first failure has err */
};

static inline bool wt_chunk_whole(const struct wt_chunk *c) {
    return c->first == 0 && c->count == c->rec.samples;
}

static inline void wt_fetch_set_step(struct wt_fetch *f, enum wt_fetch_step step) {
    atomic_store_explicit(&f->step, (int)step, memory_order_relaxed);
}

static inline enum wt_fetch_step wt_fetch_step_of(const struct wt_fetch *f) {
    return (enum wt_fetch_step)atomic_load_explicit(&f->step, memory_order_relaxed);
}

static inline int wt_fetch_tier_of(const struct wt_fetch *f) {
    return atomic_load_explicit(&f->tier, memory_order_relaxed);
}

/* The end of wt_decode_run, in the crew: f is not to be touched afterwards. fetch.c */
void wt_fetch_decoded(struct wt_fetch *f);
/* Reads [begin, end) into dst, or maps the whole; ends with wt_fetch_read_done, f->rc set, perhaps
 * before it returns. I/O thread. read.c */
void wt_fetch_read(struct wt_fetch *f, enum wt_fetch_step step, uint8_t *dst, uint64_t begin,
                   uint64_t end);
void wt_fetch_map(struct wt_fetch *f);
void wt_fetch_read_done(struct wt_fetch *f); /* fetch.c */
/* Crew tasks (f->task); room and tail end by posting f->post. decode/decode.c */
void wt_decode_room(struct wt_task *task, struct wt_worker *worker);
void wt_decode_tail(struct wt_task *task, struct wt_worker *worker);
void wt_decode_run(struct wt_task *task, struct wt_worker *worker);
/* decode/chunk.c: the end of decoding: what staging needs of the index is bound to the chunk. */
int wt_chunk_bind(struct wt_fetch *f, struct wt_err *err);
/* A salvage: from here on samples can be marked, by several workers at once. */
int wt_chunk_begin_salvage(struct wt_chunk *c);
void wt_chunk_mark_bad(struct wt_chunk *c, uint32_t sample);

#endif
