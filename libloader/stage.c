/*
 * Staging: the rows of a batch are copied from chunks into a slot, split over workers where there
 * is much to copy.
 *
 * Happy path: for each row the plan says which lane position it is, the unit which chunk and
 * sample; row.c copies it. Several rows are on their way at once, so that the memory of one is
 * fetched while another is copied. Positions beyond a lane's end are padding: zeroes, valid = 0.
 * Failure modes: the batch keeps the error of its first row that could not be given.
 */
#include "libloader/row.h"

#include <stdlib.h>

enum { PARTS_MAX = 16, BURST = 8 /* rows */ };
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

/* The rows of a part, lane after lane. */
struct walk {
    struct wl_loader *l;
    struct wl_batch *b;
    const struct wt_track *t;   /* of the last row that was found */
    const struct wt_unit *unit; /* the same; NULL: not looked up yet */
    uint64_t base;              /* lane position of row 0 */
    uint64_t n_valid, n_bad;
    struct wt_row row[2 * BURST]; /* by their number modulo 2 BURST */
};

static void enter_track(struct walk *w, const struct wt_track *t) {
    w->t = t;
    w->unit = NULL;
    w->base = wt_loader_step_pos(w->l, w->b->epoch, w->b->step) + t->a - t->row;
}

static void find_row(struct walk *w, uint64_t number) {
    while (number >= w->t->row + (w->t->b - w->t->a))
        enter_track(w, w->t + 1);
    struct wt_row *row = &w->row[number % (2 * BURST)];
    uint64_t pos = w->base + number;
    bool padding = pos >= w->t->samples;
    if (!padding && (!w->unit || pos < w->unit->pos || pos - w->unit->pos >= w->unit->count))
        w->unit = unit_at(w->l, w->t, w->b->epoch, pos);
    row->number = number;
    row->pos = pos;
    row->track = w->t;
    row->unit = padding ? NULL : w->unit;
    wt_row_find(w->l, row);
}

static bool give_row(struct walk *w, uint64_t number) {
    struct wt_row *row = &w->row[number % (2 * BURST)];
    wl_error e;
    if (wt_row_give(w->l, w->b, row, &e)) {
        fail_row(w->l, w->b, number, &e);
        return false;
    }
    w->n_valid += row->valid;
    w->n_bad += row->bad;
    return true;
}

/* A burst of rows is found, then the one before it is given: so several waits for memory overlap.
 */
static void stage_rows(struct wl_loader *l, struct wl_batch *b, uint64_t first, uint64_t end) {
    struct walk w = {.l = l, .b = b};
    enter_track(&w, l->track);
    bool ok = true;
    for (uint64_t i = first; i < end + BURST && ok; i += BURST) {
        for (uint64_t k = i; k < i + BURST && k < end; k++)
            find_row(&w, k);
        for (uint64_t k = i; k < i + BURST && k < end + BURST && ok; k++)
            ok = k < first + BURST || give_row(&w, k - BURST);
    }
    atomic_fetch_add_explicit(&b->stage->valid, w.n_valid, memory_order_relaxed);
    atomic_fetch_add_explicit(&b->stage->bad, w.n_bad, memory_order_relaxed);
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
