/*
 * Staging: the rows of a batch are copied from chunks into a slot, split over workers where there
 * is much to copy.
 *
 * Happy path: the plan says which lane position a row is, the unit what lies there; row.c copies
 * runs of rows. Positions beyond a lane's end are padding: zeroes, valid = 0. Failure modes: the
 * batch keeps the error of its first row that could not be given.
 */
#include "libloader/row.h"

#include <stdlib.h>

enum { PARTS_MAX = 16 };
#define PART_BYTES (UINT64_C(512) << 10)

struct part {
    struct wt_task task; /* first */
    struct wt_stage *stage;
    uint64_t first, end; /* rows */
};

struct wt_stage {
    struct wl_loader *l;
    struct wl_batch *batch;
    _Atomic unsigned left;
    _Atomic uint64_t valid, bad;
    struct part part[PARTS_MAX];
};

static void fail_row(struct wl_loader *l, struct wl_batch *b, uint64_t row, const wl_error *e) {
    wt_lock(l);
    if (row < b->err_row) {
        b->err_row = row;
        b->err = *e;
    }
    wt_unlock(l);
}

/* ---- parts ---- */

static const struct wt_unit *find_unit(const struct wt_track *t, uint64_t epoch, uint64_t pos) {
    for (unsigned i = 0; i < t->n_units; i++) {
        const struct wt_unit *u = &t->unit[i];
        if (u->state == WT_UNIT_READY && u->e.epoch == epoch && pos >= u->pos &&
            pos - u->pos < u->count)
            return u;
    }
    return NULL;
}

/* Units of other steps may change state meanwhile: which ones this batch uses is looked up under
 * the lock, once for each run of rows. */
static const struct wt_unit *unit_at(struct wl_loader *l, const struct wt_track *t, uint64_t epoch,
                                     uint64_t pos) {
    wt_lock(l);
    const struct wt_unit *u = find_unit(t, epoch, pos);
    wt_unlock(l);
    return u;
}

/* Rows of one lane from `row` on that one unit serves, or that are padding: how many, at most n; 0
 * when one of them failed. */
static uint64_t stage_run(struct wl_loader *l, struct wt_rows *r, const struct wt_track *t,
                          uint64_t row, uint64_t n) {
    uint64_t pos = wt_loader_step_pos(l, r->b->epoch, r->b->step) + t->a + (row - t->row);
    if (pos >= t->samples) {
        wt_rows_blank(r, row);
        return 1;
    }
    const struct wt_unit *u = unit_at(l, t, r->b->epoch, pos);
    uint64_t at = pos - u->pos, given = 0;
    bool failed = false;
    n = n < u->count - at ? n : u->count - at;
    while (given < n && !failed) {
        if (u->record)
            given += wt_rows_plain(r, row + given, u->record + at + given, n - given, &failed);
        if (given < n && !failed) {
            failed = !wt_rows_any(r, row + given, t, u, pos + given);
            given += !failed;
        }
    }
    if (failed)
        fail_row(l, r->b, row + given, &r->err);
    return failed ? 0 : n;
}

static void stage_rows(struct wl_loader *l, struct wl_batch *b, uint64_t first, uint64_t end) {
    struct wt_rows r = {.l = l, .b = b};
    const struct wt_track *t = l->track;
    for (uint64_t row = first, n = 1; row < end && n; row += n) {
        while (row >= t->row + (t->b - t->a))
            t++;
        uint64_t left = t->row + (t->b - t->a) - row;
        n = stage_run(l, &r, t, row, left < end - row ? left : end - row);
    }
    atomic_fetch_add_explicit(&b->stage->valid, r.n_valid, memory_order_relaxed);
    atomic_fetch_add_explicit(&b->stage->bad, r.n_bad, memory_order_relaxed);
}

/* Counts the step off the units that it used; the last one frees a unit for the next window. */
static void count_off(struct wl_loader *l, const struct wl_batch *b) {
    for (size_t i = 0; i < l->n_tracks; i++) {
        for (unsigned j = 0; j < l->track[i].n_units; j++) {
            struct wt_unit *u = &l->track[i].unit[j];
            if (u->state == WT_UNIT_READY && u->e.epoch == b->epoch && b->step >= u->first_step &&
                b->step <= u->last_step && --u->steps_left == 0)
                wt_unit_release(l, u);
        }
    }
}

static void stage_done(struct wt_stage *s) {
    struct wl_loader *l = s->l;
    struct wl_batch *b = s->batch;
    wt_lock(l);
    b->valid = atomic_load(&s->valid);
    b->n_bad = atomic_load(&s->bad);
    if (b->err.code)
        l->stage_failed = true;
    wt_ring_publish(b);
    count_off(l, b);
    l->busy--;
    wt_pump(l);
    if (b->seq == l->consume.seq || atomic_load(&l->stopping))
        wt_ring_unlock_wake(l->ring);
    else
        wt_unlock(l);
}

static void run_part(struct wt_task *task, struct wt_worker *worker) {
    (void)worker;
    struct part *p = (struct part *)task;
    struct wt_stage *s = p->stage;
    struct wl_loader *l = s->l;
    uint64_t began = wt_now_ns();
    stage_rows(l, s->batch, p->first, p->end);
    wt_count(&l->meter.stage[WT_AT_STAGE].wait_ns, began - task->queued_ns);
    wt_count(&l->meter.stage[WT_AT_STAGE].busy_ns, wt_now_ns() - began);
    if (atomic_fetch_sub(&s->left, 1) == 1)
        stage_done(s);
}

void wt_stage_start(struct wl_loader *l, struct wl_batch *b) {
    struct wt_stage *s = b->stage;
    uint64_t bytes = 0;
    for (size_t i = 0; i < b->n_tensors; i++)
        bytes += b->row_bytes[i] * b->rows;
    uint64_t n = bytes / PART_BYTES + 1, most = wt_crew_threads(l->ctx->crew);
    n = n < most ? n : most;
    n = n < PARTS_MAX ? n : PARTS_MAX;
    n = n < b->rows ? n : b->rows;
    atomic_store(&s->left, (unsigned)n);
    atomic_store(&s->valid, 0);
    atomic_store(&s->bad, 0);
    l->busy++;
    for (uint64_t i = 0; i < n; i++) {
        s->part[i] = (struct part){.task = {.rank = WT_RANK_STAGE | b->seq, .run = run_part},
                                   .stage = s,
                                   .first = b->rows * i / n,
                                   .end = b->rows * (i + 1) / n};
        wt_crew_submit(l->ctx->crew, &s->part[i].task);
    }
}

int wt_stage_new(struct wl_loader *l, struct wt_err *err) {
    for (unsigned i = 0; i < l->ring->n_slots; i++) {
        struct wt_stage *s = wt_calloc(1, sizeof *s);
        if (!s)
            return wt_err_set(err, WT_ENOMEM, "out of memory for staging");
        s->l = l;
        s->batch = &l->ring->slot[i];
        l->ring->slot[i].stage = s;
    }
    return 0;
}

void wt_stage_free(struct wl_loader *l) {
    for (unsigned i = 0; i < l->ring->n_slots; i++) {
        free(l->ring->slot[i].stage);
        l->ring->slot[i].stage = NULL;
    }
}
