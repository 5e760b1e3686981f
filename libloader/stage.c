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

/* Rows on their way: found FAR before they are given, their bytes asked for NEAR before. */
enum { PARTS_MAX = 16, FAR = 16, NEAR = 6 };
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

/* What is left to do with a run of rows of one lane. */
struct run {
    struct wl_loader *l;
    struct wl_batch *b;
    const struct wt_track *t;
    const struct wt_unit *unit; /* of the last row that was found */
    uint64_t base;              /* lane position of row 0 */
    struct wt_row row[FAR];     /* by their number modulo FAR */
    uint64_t n_valid, n_bad;
};

static void find_row(struct run *r, uint64_t number) {
    uint64_t pos = r->base + number;
    if (pos < r->t->samples &&
        (!r->unit || pos < r->unit->pos || pos - r->unit->pos >= r->unit->count))
        r->unit = unit_at(r->l, r->t, r->b->epoch, pos);
    struct wt_row *row = &r->row[number % FAR];
    *row = (struct wt_row){
        .number = number, .pos = pos, .track = r->t, .unit = pos < r->t->samples ? r->unit : NULL};
    wt_row_find(r->l, row);
}

static bool give_row(struct run *r, uint64_t number) {
    struct wt_row *row = &r->row[number % FAR];
    wl_error e;
    if (wt_row_give(r->l, r->b, row, &e)) {
        fail_row(r->l, r->b, number, &e);
        return false;
    }
    r->n_valid += row->valid;
    r->n_bad += row->bad;
    return true;
}

static void stage_track(struct wl_loader *l, struct wl_batch *b, const struct wt_track *t,
                        uint64_t first, uint64_t end) {
    struct run r = {
        .l = l, .b = b, .t = t, .base = wt_loader_step_pos(l, b->epoch, b->step) + t->a - t->row};
    bool ok = true;
    for (uint64_t i = first; i < end + FAR && ok; i++) {
        if (i >= first + FAR)
            ok = give_row(&r, i - FAR);
        if (i < end)
            find_row(&r, i);
        if (i >= first + FAR - NEAR && i - (FAR - NEAR) < end)
            wt_row_expect(l, &r.row[(i - (FAR - NEAR)) % FAR]);
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
    wt_unlock(l);
}

static void run_part(struct wt_task *task, struct wt_worker *worker) {
    (void)worker;
    struct part *p = (struct part *)task;
    struct wt_stage *s = p->stage;
    struct wl_loader *l = s->l;
    uint64_t began = wt_now_ns();
    for (size_t i = 0; i < l->n_tracks; i++) {
        const struct wt_track *t = &l->track[i];
        uint64_t first = t->row > p->first ? t->row : p->first, end = t->row + (t->b - t->a);
        end = end < p->end ? end : p->end;
        if (first < end)
            stage_track(l, s->batch, t, first, end);
    }
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
