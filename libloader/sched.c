/*
 * The pump: what can be done now is done, in order of need; and the engine's start and stop. See
 * internal.h.
 *
 * Every wait in here (wt_engine_stop) ends because requests have deadlines and tasks are finite.
 */
#include "libloader/internal.h"

#include <stdlib.h>

static uint64_t ceil_div(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

uint64_t wt_loader_steps(const struct wl_loader *l, uint64_t epoch) {
    if (epoch != l->base_epoch || l->base_off == 0)
        return l->plan.steps;
    uint64_t share = l->plan.lane_batch, off = l->base_off;
    uint64_t shortest = l->plan.o.samples / l->plan.o.lanes,
             longest = ceil_div(l->plan.o.samples, l->plan.o.lanes);
    if (l->plan.o.tail == WT_TAIL_PAD || l->plan.o.mode == WT_PLAN_EVAL)
        return longest > off ? ceil_div(longest - off, share) : 0;
    return shortest > off ? (shortest - off) / share : 0;
}

uint64_t wt_loader_step_pos(const struct wl_loader *l, uint64_t epoch, uint64_t step) {
    return step * l->plan.lane_batch + (epoch == l->base_epoch ? l->base_off : 0);
}

/* ---- fetching ---- */

static void assign_windows(struct wl_loader *l) {
    for (size_t i = 0; i < l->n_tracks; i++) {
        struct wt_track *t = &l->track[i];
        for (unsigned j = 0; j < t->n_units && !t->done; j++)
            if (t->unit[j].state == WT_UNIT_IDLE)
                wt_unit_next(l, t, &t->unit[j]);
    }
}

static struct wt_unit *neediest(struct wl_loader *l) {
    struct wt_unit *best = NULL;
    for (size_t i = 0; i < l->n_tracks; i++) {
        for (unsigned j = 0; j < l->track[i].n_units; j++) {
            struct wt_unit *u = &l->track[i].unit[j];
            if (u->state == WT_UNIT_LOADING && u->started < u->n_chunks &&
                (!best || u->need < best->need))
                best = u;
        }
    }
    return best;
}

static void start_fetches(struct wl_loader *l) {
    while (l->n_idle) {
        struct wt_unit *u = neediest(l);
        if (!u)
            return;
        wt_fetch_start(l, &u->chunk[u->started++]);
    }
}

/* ---- staging ---- */

/* Are all of the lane's positions of this step in READY units? What the lane lacks at its end is
 * padding. */
static bool track_ready(const struct wl_loader *l, const struct wt_track *t, uint64_t epoch,
                        uint64_t step, const wl_error **err) {
    uint64_t low = wt_loader_step_pos(l, epoch, step), high = low + l->plan.lane_batch, covered = 0;
    if (l->ranged) {
        high = low + t->b;
        low += t->a;
    }
    high = high < t->samples ? high : t->samples;
    if (low >= high)
        return true;
    for (unsigned i = 0; i < t->n_units; i++) {
        const struct wt_unit *u = &t->unit[i];
        if (u->state == WT_UNIT_IDLE || u->e.epoch != epoch || u->pos >= high ||
            u->pos + u->count <= low)
            continue;
        if (u->state != WT_UNIT_READY)
            return false;
        if (u->err.code)
            *err = &u->err;
        covered +=
            (u->pos + u->count < high ? u->pos + u->count : high) - (u->pos > low ? u->pos : low);
    }
    return covered == high - low;
}

/* Moves a cursor over the end of epochs; false when all are done. */
static bool settle(const struct wl_loader *l, struct wt_cursor *c) {
    while (!(l->o.epochs && c->epoch >= l->o.epochs) && c->step >= wt_loader_steps(l, c->epoch)) {
        c->epoch++;
        c->step = 0;
    }
    return !(l->o.epochs && c->epoch >= l->o.epochs);
}

static void stage_one(struct wl_loader *l, struct wl_batch *b, const wl_error *err) {
    b->epoch = l->stage.epoch;
    b->step = l->stage.step;
    b->seq = l->stage.seq;
    b->done = wt_loader_step_pos(l, b->epoch, b->step + 1);
    l->by_seq[b->seq % l->ring->n_slots] = b;
    l->stage.step++;
    l->stage.seq++;
    if (err) {
        b->err = *err;
        l->stage_failed = true;
        wt_ring_publish(b);
        pthread_cond_broadcast(&l->ring->cond);
        return;
    }
    wt_stage_start(l, b);
}

static void stage_ready(struct wl_loader *l) {
    while (!l->stage_failed && settle(l, &l->stage)) {
        const wl_error *err = NULL;
        for (size_t i = 0; i < l->n_tracks; i++)
            if (!track_ready(l, &l->track[i], l->stage.epoch, l->stage.step, &err))
                return;
        struct wl_batch *b = wt_ring_take(l->ring);
        if (!b)
            return;
        stage_one(l, b, err);
    }
}

void wt_pump(struct wl_loader *l) {
    if (atomic_load(&l->stopping))
        return;
    assign_windows(l);
    start_fetches(l);
    stage_ready(l);
}

void wt_loader_freed(void *loader) {
    wt_pump(loader);
}

/* ---- start and stop ---- */

static unsigned count_tracks(const struct wl_loader *l) {
    uint64_t last = l->first_row + l->rows - 1;
    return wt_plan_lane_of(&l->plan, last) - wt_plan_lane_of(&l->plan, l->first_row) + 1;
}

static void fill_track(struct wl_loader *l, struct wt_track *t, uint32_t lane) {
    uint64_t share = l->plan.lane_batch, begin = lane * share, end = begin + share;
    uint64_t low = begin > l->first_row ? begin : l->first_row;
    uint64_t high = end < l->first_row + l->rows ? end : l->first_row + l->rows;
    *t = (struct wt_track){.lane = lane,
                           .a = low - begin,
                           .b = high - begin,
                           .row = low - l->first_row,
                           .samples = wt_plan_lane_samples(&l->plan, lane),
                           .fresh = true,
                           .epoch = l->stage.epoch,
                           .next_step = l->stage.step,
                           .done = l->o.epochs && l->stage.epoch >= l->o.epochs};
}

/* Together, so that they lie in huge pages. */
static int add_records(struct wl_loader *l, unsigned units, struct wt_err *err) {
    uint64_t each = wt_memory_window(l);
    int rc = wt_mem_map(&l->records, (size_t)(units * each) * sizeof(struct wt_record), err);
    for (unsigned i = 0; i < units && !rc; i++)
        l->units[i].record = (struct wt_record *)l->records.ptr + i * each;
    return rc;
}

static int build_tracks(struct wl_loader *l, struct wt_err *err) {
    unsigned each = wt_memory_units(l);
    l->n_tracks = count_tracks(l);
    l->track = wt_calloc(l->n_tracks, sizeof *l->track);
    l->units = wt_calloc(l->n_tracks * each, sizeof *l->units);
    if (!l->track || !l->units)
        return wt_err_set(err, WT_ENOMEM, "out of memory for %zu lanes", l->n_tracks);
    uint32_t lane = wt_plan_lane_of(&l->plan, l->first_row);
    for (size_t i = 0; i < l->n_tracks; i++) {
        fill_track(l, &l->track[i], lane + (uint32_t)i);
        l->track[i].n_units = each;
        l->track[i].unit = l->units + i * each;
    }
    return l->ranged ? 0 : add_records(l, (unsigned)l->n_tracks * each, err);
}

static void free_tracks(struct wl_loader *l) {
    for (size_t i = 0; i < l->n_tracks && l->track; i++) {
        for (unsigned j = 0; j < l->track[i].n_units; j++) {
            wt_unit_release(l, &l->track[i].unit[j]);
            wt_unit_free(&l->track[i].unit[j]);
        }
    }
    wt_mem_unmap(&l->records);
    free(l->track);
    free(l->units);
    l->track = NULL;
    l->units = NULL;
    l->n_tracks = 0;
}

int wt_engine_start(struct wl_loader *l, uint64_t epoch, uint64_t done, struct wt_err *err) {
    wt_lock(l);
    l->base_epoch = epoch;
    l->base_off = done % l->plan.lane_batch;
    l->newest_epoch = epoch;
    l->stage = l->consume = (struct wt_cursor){.epoch = epoch, .step = done / l->plan.lane_batch};
    int rc = build_tracks(l, err);
    if (!rc)
        rc = wt_fetches_new(l, wt_memory_fetches(l), err);
    if (rc) {
        free_tracks(l);
        wt_fetches_free(l);
    } else {
        atomic_store(&l->stopping, false);
        wt_pump(l);
    }
    wt_unlock(l);
    return rc;
}

void wt_engine_stop(struct wl_loader *l) {
    wt_lock(l);
    atomic_store(&l->stopping, true);
    pthread_cond_broadcast(&l->ring->cond);
    wt_fetch_cancel_all(l);
    while (l->busy)
        wt_ring_wait(l->ring, UINT64_MAX);
    for (unsigned i = 0; i < l->ring->n_slots; i++)
        if (l->ring->slot[i].state == WT_SLOT_READY)
            wt_ring_drop(&l->ring->slot[i]);
    for (unsigned i = 0; i < l->ring->n_slots; i++)
        l->by_seq[i] = NULL;
    l->stage_failed = false;
    free_tracks(l);
    wt_fetches_free(l);
    wt_unlock(l);
}
