/*
 * What the crew does with a fetch: room for it, its index, its sums, its frames.
 *
 * Happy path: a plain tar is checked where it lies (a kept mapping once for as long as it is kept);
 * the frames of a .tar.zst are decoded into the chunk's buffer by as many workers as are free, each
 * taking the next frame. The last one ends the fetch. Failure modes:
 * anything wrong is WT_ECORRUPT in f->rc and the next copy is tried; in a salvage nothing is
 * refused, but the samples that a damaged block or frame touches are marked bad.
 */
#include "libloader/fetch.h"

static struct wt_fetch *of_task(struct wt_task *task) {
    return (struct wt_fetch *)((char *)task - offsetof(struct wt_fetch, task));
}

static void hand_back(struct wt_fetch *f) {
    wt_context_post(f->l->ctx, &f->post);
}

static void count_time(struct wl_loader *l, uint64_t queued, uint64_t began) {
    wt_count(&l->meter.stage[WT_AT_DECODE].wait_ns, began - queued);
    wt_count(&l->meter.stage[WT_AT_DECODE].busy_ns, wt_now_ns() - began);
}

/* ---- room ---- */

static int need_buffer(struct wt_fetch *f, struct wt_buffer **at, uint64_t size,
                       struct wt_err *err) {
    if (*at && (*at)->mem.size >= size)
        return 0;
    wt_buffers_put(&f->l->buffers, *at);
    *at = NULL;
    return wt_buffers_get(&f->l->buffers, (size_t)size, at, err);
}

void wt_decode_room(struct wt_task *task, struct wt_worker *worker) {
    (void)worker;
    struct wt_fetch *f = of_task(task);
    struct wt_chunk *c = f->chunk;
    f->raw_off = 0;
    if (!wt_chunk_whole(c)) {
        f->raw_off = c->rec.index_off;
        f->rc = need_buffer(f, &f->raw, c->rec.size - c->rec.index_off, &f->err);
    } else if (c->rec.codec == WT_CODEC_TAR) {
        f->rc = need_buffer(f, &c->buf, c->rec.size, &f->err);
    } else {
        f->rc = need_buffer(f, &f->raw, c->rec.size, &f->err);
    }
    hand_back(f);
}

/* ---- the index ---- */

static int check_index(const struct wt_shard_index *x, const struct wt_shard_rec *rec,
                       struct wt_err *err) {
    if (x->samples != rec->samples || x->tar_size != rec->tar_size || x->size != rec->size ||
        x->codec != rec->codec)
        return wt_err_set(
            err, WT_ECORRUPT,
            "its index (%u samples, %llu bytes) is not the one that the manifest names", x->samples,
            (unsigned long long)x->tar_size);
    return 0;
}

static int parse_tail(struct wt_fetch *f, const uint8_t *tail, struct wt_err *err) {
    const struct wt_shard_rec *rec = &f->chunk->rec;
    int rc = wt_shard_index_parse(tail, (size_t)(rec->size - rec->index_off), rec->index_off,
                                  rec->size, rec->codec, &f->index, err);
    if (rc)
        return rc;
    f->parsed = true;
    return check_index(&f->index, rec, err);
}

void wt_decode_tail(struct wt_task *task, struct wt_worker *worker) {
    (void)worker;
    struct wt_fetch *f = of_task(task);
    struct wt_chunk *c = f->chunk;
    uint64_t began = wt_now_ns();
    f->rc = parse_tail(f, f->raw->mem.ptr, &f->err);
    if (!f->rc) {
        f->span = wt_shard_span(&f->index, c->first, c->count);
        f->raw_off = f->span.off;
        f->rc =
            need_buffer(f, c->rec.codec == WT_CODEC_TAR ? &c->buf : &f->raw, f->span.len, &f->err);
    }
    count_time(f->l, task->queued_ns, began);
    hand_back(f);
}

/* Finds the index, wherever this chunk's is, and the span of its samples. */
static int find_index(struct wt_fetch *f, struct wt_err *err) {
    struct wt_chunk *c = f->chunk;
    int rc = 0;
    if (c->kept) {
        rc = wt_kept_index(c->kept, &c->rec, &f->x, err);
        if (!rc)
            rc = check_index(f->x, &c->rec, err);
        f->stored = c->kept->view.data;
        f->raw_off = 0;
    } else {
        const uint8_t *bytes = c->rec.codec == WT_CODEC_TAR ? c->buf->mem.ptr : f->raw->mem.ptr;
        if (wt_chunk_whole(c))
            rc = parse_tail(f, bytes + c->rec.index_off, err);
        f->x = &f->index;
        f->stored = bytes;
    }
    if (!rc)
        f->span = wt_shard_span(f->x, c->first, c->count);
    return rc;
}

/* ---- plain tars ---- */

static int check_tar(struct wt_fetch *f, struct wt_err *err) {
    struct wt_chunk *c = f->chunk;
    c->data = f->stored;
    c->tar_off = f->raw_off;
    if (!f->salvage)
        return c->kept ? wt_kept_check(c->kept, c->first, c->count, err)
                       : wt_shard_verify(f->x, c->first, c->count, c->data, c->tar_off, err);
    for (uint32_t i = 0; i < c->count; i++) {
        int rc = wt_shard_verify(f->x, c->first + i, 1, c->data, c->tar_off, err);
        if (rc == WT_ECORRUPT)
            wt_chunk_mark_bad(c, i);
        else if (rc)
            return rc;
    }
    return 0;
}

/* ---- frames ---- */

static void fail_once(struct wt_fetch *f, int rc, const struct wt_err *err) {
    int none = 0;
    if (atomic_compare_exchange_strong(&f->claimed, &none, 1)) {
        f->rc = rc;
        if (err != &f->err)
            f->err = *err;
    }
}

/* The samples of the chunk that have bytes in a frame. */
static void mark_frame(struct wt_fetch *f, uint32_t frame) {
    struct wt_chunk *c = f->chunk;
    uint64_t from = f->x->frame[frame].tar_off, to = f->x->frame[frame + 1].tar_off;
    for (uint32_t i = 0; i < c->count; i++) {
        const uint64_t *start = &f->x->start[c->first + i];
        if (start[0] < to && start[1] > from)
            wt_chunk_mark_bad(c, i);
    }
}

static void decode_frames(struct wt_fetch *f, struct wt_worker *worker) {
    struct wt_chunk *c = f->chunk;
    uint32_t end = f->span.frame_first + f->span.n_frames;
    while (!atomic_load(&f->claimed)) {
        uint32_t i = atomic_fetch_add(&f->next_frame, 1);
        if (i >= end)
            break;
        struct wt_err err = {0};
        const struct wt_frame *frame = &f->x->frame[i];
        int rc = wt_shard_decode_frame(
            worker->decoder, f->x, i, f->stored + (frame->off - f->raw_off),
            (uint8_t *)c->buf->mem.ptr + (frame->tar_off - f->span.tar_off), &err);
        if (rc == WT_ECORRUPT && f->salvage)
            mark_frame(f, i);
        else if (rc)
            fail_once(f, rc, &err);
    }
}

static void end_frames(struct wt_fetch *f) {
    if (atomic_fetch_sub(&f->workers, 1) != 1)
        return;
    if (!f->rc)
        f->rc = wt_chunk_bind(f, &f->err);
    wt_fetch_decoded(f);
}

static void help_frames(struct wt_task *task, struct wt_worker *worker) {
    struct wt_fetch *f = ((struct wt_frame_helper *)task)->f;
    uint64_t began = wt_now_ns();
    decode_frames(f, worker);
    count_time(f->l, task->queued_ns, began);
    end_frames(f);
}

/* As many workers as have at least two frames to do, this one included. */
static void start_frames(struct wt_fetch *f) {
    unsigned n = wt_crew_threads(f->l->ctx->crew), most = (f->span.n_frames + 1) / 2;
    n = n > most ? most : n;
    n = n > WT_FETCH_HELPERS + 1 ? WT_FETCH_HELPERS + 1 : n < 1 ? 1 : n;
    atomic_store(&f->next_frame, f->span.frame_first);
    atomic_store(&f->workers, n);
    for (unsigned i = 0; i + 1 < n; i++) {
        f->helper[i] =
            (struct wt_frame_helper){.task = {.rank = f->task.rank, .run = help_frames}, .f = f};
        wt_crew_submit(f->l->ctx->crew, &f->helper[i].task);
    }
}

static int prepare(struct wt_fetch *f) {
    struct wt_chunk *c = f->chunk;
    int rc = find_index(f, &f->err);
    if (!rc && f->salvage && wt_chunk_begin_salvage(c) < 0)
        rc = wt_err_set(&f->err, WT_ENOMEM, "out of memory for a list of bad samples");
    if (rc || c->rec.codec == WT_CODEC_TAR)
        return rc ? rc : check_tar(f, &f->err);
    rc = need_buffer(f, &c->buf, f->span.tar_len, &f->err);
    if (rc)
        return rc;
    c->data = c->buf->mem.ptr;
    c->tar_off = f->span.tar_off;
    start_frames(f);
    return 0;
}

void wt_decode_run(struct wt_task *task, struct wt_worker *worker) {
    struct wt_fetch *f = of_task(task);
    struct wl_loader *l = f->l;
    uint64_t began = wt_now_ns(), queued = task->queued_ns;
    atomic_store(&f->claimed, 0);
    atomic_store(&f->workers, 1);
    atomic_store(&f->next_frame, UINT32_MAX);
    int rc = prepare(f);
    if (rc)
        fail_once(f, rc, &f->err);
    else if (f->chunk->rec.codec == WT_CODEC_ZSTD)
        decode_frames(f, worker);
    count_time(l, queued, began);
    end_frames(f);
}
