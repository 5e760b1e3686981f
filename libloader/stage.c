/*
 * Staging: the rows of a batch are copied from chunks into a slot, split over workers where there
 * is much to copy.
 *
 * Happy path: for each row the plan says which lane position it is, the unit which chunk and
 * sample; the fields are copied, label, id, size and key are set. Positions beyond a lane's end are
 * padding: zeroes, valid = 0. Failure modes: a sample that is bad in its cold copy is an error,
 * masked, or substituted by the next good position of the window, as the options say; a sample
 * whose field deviates from the manifest is an error. The batch keeps the error of its first such
 * row.
 */
#include "libloader/internal.h"

#include <stdlib.h>
#include <string.h>

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

struct place { /* where a row's sample is */
    const struct wt_chunk *chunk;
    uint32_t sample; /* of the chunk */
};

/* ---- one row ---- */

static void *cell(const struct wl_batch *b, size_t tensor, uint64_t row) {
    return (char *)b->tensor[tensor].data + row * b->row_bytes[tensor];
}

static void set_label(const struct wl_batch *b, size_t tensor, uint64_t row, int32_t label) {
    memcpy(cell(b, tensor, row), &label, sizeof label);
}

static void blank_row(const struct wl_loader *l, struct wl_batch *b, uint64_t row) {
    for (size_t i = 0; i < b->n_tensors; i++)
        memset(cell(b, i, row), 0, b->row_bytes[i]);
    set_label(b, l->at_label, row, -1);
    b->key[row][0] = '\0';
}

static void fail_row(struct wl_loader *l, struct wl_batch *b, uint64_t row, const wl_error *e) {
    wt_lock(l);
    if (row < b->err_row) {
        b->err_row = row;
        b->err = *e;
    }
    wt_unlock(l);
}

static void name_place(const struct wl_loader *l, const struct place *at, wl_error *e) {
    const struct wt_chunk *c = at->chunk;
    wt_shard_name(l->dataset, c->shard, &c->rec, e->shard);
    if (!c->index)
        return;
    const char *key = wt_shard_key(c->index, c->index_first + at->sample);
    size_t n = strlen(key);
    memcpy(e->key, key, n < sizeof e->key ? n + 1 : sizeof e->key - 1);
    if (c->index->n_fields)
        e->offset = wt_shard_ref(c->index, c->index_first + at->sample, 0)->off;
}

static const char *shown(const struct wt_field *f) {
    return f->name[0] ? f->name : "image";
}

static int deviates(struct wl_loader *l, const struct place *at, size_t f,
                    const struct wt_field_ref *ref, wl_error *e) {
    const struct wt_chunk *c = at->chunk;
    const char *key = wt_shard_key(c->index, c->index_first + at->sample);
    char want[96], have[96];
    wt_shape_format(&l->field[f].shape, want, sizeof want);
    if (!ref || ref->shape_id >= c->index->n_shapes)
        wt_error_set(e, WL_ERROR_UNSUPPORTED,
                     "sample %s has no field '%s', which every row of a batch needs: leave it out "
                     "with 'fields'",
                     key, shown(&l->field[f]));
    else
        wt_error_set(e, WL_ERROR_UNSUPPORTED, "sample %s: field '%s' is %s, the data set's is %s",
                     key, shown(&l->field[f]),
                     wt_shape_format(&c->index->shape[ref->shape_id], have, sizeof have), want);
    name_place(l, at, e);
    return e->code;
}

/* Plain tars alone have sums of their decoded bytes; a frame's was checked when it was decoded into
 * memory. */
static int copy_fields(struct wl_loader *l, struct wl_batch *b, uint64_t row,
                       const struct place *at, wl_error *e) {
    const struct wt_chunk *c = at->chunk;
    uint32_t s = c->index_first + at->sample;
    bool check = l->o.verify_every_read && c->rec.codec == WT_CODEC_TAR;
    for (size_t f = 0; f < l->n_fields; f++) {
        const struct wt_field_ref *ref =
            c->field[f] < 0 ? NULL : wt_shard_ref(c->index, s, (uint32_t)c->field[f]);
        if (!ref || ref->shape_id != c->shape[f] || ref->len != l->field[f].bytes)
            return deviates(l, at, f, ref, e);
        const uint8_t *src = c->data + (ref->off - c->tar_off);
        struct wt_err err = {0};
        if (!check) {
            memcpy(cell(b, f, row), src, l->field[f].bytes);
        } else if (wt_shard_verify_field(c->index, s, (uint32_t)c->field[f], src, cell(b, f, row),
                                         &err) < 0) {
            wt_error_from(e, &err);
            name_place(l, at, e);
            return e->code;
        }
    }
    return 0;
}

static void set_size(struct wl_loader *l, struct wl_batch *b, uint64_t row) {
    const struct wt_shape *shape = &l->field[l->size_field].shape;
    int32_t hw[2] = {shape->ndim > 0 ? (int32_t)shape->dim[0] : 1,
                     shape->ndim > 1 ? (int32_t)shape->dim[1] : 1};
    memcpy(cell(b, l->at_size, row), hw, sizeof hw);
}

static void set_identity(struct wl_loader *l, struct wl_batch *b, uint64_t row,
                         const struct place *at) {
    const struct wt_shard_index *x = at->chunk->index;
    uint32_t s = at->chunk->index_first + at->sample;
    memcpy(cell(b, l->at_id, row), &x->id[s], sizeof x->id[s]);
    const char *key = wt_shard_key(x, s);
    size_t n = strlen(key) + 1;
    memcpy(b->key[row], key, n < WT_RING_KEY ? n : (size_t)WT_RING_KEY);
    b->key[row][WT_RING_KEY - 1] = '\0';
}

static int give_sample(struct wl_loader *l, struct wl_batch *b, uint64_t row,
                       const struct place *at, wl_error *e) {
    const struct wt_shard_index *x = at->chunk->index;
    uint32_t s = at->chunk->index_first + at->sample;
    int rc = copy_fields(l, b, row, at, e);
    if (rc)
        return rc;
    set_label(b, l->at_label, row, x->label[s]);
    if (l->at_multihot != SIZE_MAX)
        memcpy(cell(b, l->at_multihot, row), x->multihot + (size_t)s * x->n_multihot,
               x->n_multihot);
    set_identity(l, b, row, at);
    if (l->size_field >= 0)
        set_size(l, b, row);
    *(uint8_t *)cell(b, l->at_valid, row) = 1;
    return 0;
}

static bool is_bad(const struct place *at) {
    const struct wt_chunk *c = at->chunk;
    return !c->index || (c->bad && atomic_load_explicit(&c->bad[at->sample], memory_order_relaxed));
}

static struct place locate(const struct wl_loader *l, const struct wt_track *t,
                           const struct wt_unit *u, uint64_t pos) {
    struct place at;
    at.chunk = wt_unit_locate(l, u, t->lane, pos, &at.sample);
    return at;
}

/* The next good position of the window, in the order in which the lane delivers it. */
static bool substitute(const struct wl_loader *l, const struct wt_track *t, const struct wt_unit *u,
                       uint64_t pos, struct place *at) {
    for (uint64_t k = 1; k < u->count; k++) {
        struct place other = locate(l, t, u, u->pos + (pos - u->pos + k) % u->count);
        if (is_bad(&other))
            continue;
        *at = other;
        return true;
    }
    return false;
}

static int bad_row(struct wl_loader *l, struct wl_batch *b, uint64_t row, const struct wt_track *t,
                   const struct wt_unit *u, uint64_t pos, struct place *at, wl_error *e) {
    atomic_fetch_add_explicit(&b->stage->bad, 1, memory_order_relaxed);
    if (l->o.bad == WL_BAD_SUBSTITUTE && substitute(l, t, u, pos, at))
        return give_sample(l, b, row, at, e);
    if (l->o.bad == WL_BAD_MASK) {
        blank_row(l, b, row);
        if (at->chunk->index)
            set_identity(l, b, row, at);
        return 0;
    }
    char shard[WT_OBJECT_NAME];
    wt_shard_name(l->dataset, at->chunk->shard, &at->chunk->rec, shard);
    const char *key =
        at->chunk->index ? wt_shard_key(at->chunk->index, at->chunk->index_first + at->sample) : "";
    wt_error_set(e, WL_ERROR_CORRUPT,
                 "shard %s: sample %s is damaged in its cold copy: put the shard again, or set "
                 "'bad' to substitute or mask",
                 shard, key[0] ? key : "(its index too)");
    name_place(l, at, e);
    return e->code;
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

static void stage_track(struct wl_loader *l, struct wl_batch *b, const struct wt_track *t,
                        uint64_t first, uint64_t end) {
    const struct wt_unit *u = NULL;
    uint64_t base = wt_loader_step_pos(l, b->epoch, b->step) + t->a - t->row, n_valid = 0;
    for (uint64_t row = first; row < end; row++) {
        uint64_t pos = base + row;
        if (pos >= t->samples) {
            blank_row(l, b, row);
            continue;
        }
        if (!u || pos < u->pos || pos - u->pos >= u->count)
            u = unit_at(l, t, b->epoch, pos);
        wl_error e;
        struct place at = locate(l, t, u, pos);
        int rc =
            is_bad(&at) ? bad_row(l, b, row, t, u, pos, &at, &e) : give_sample(l, b, row, &at, &e);
        if (rc) {
            fail_row(l, b, row, &e);
            return;
        }
        n_valid += *(uint8_t *)cell(b, l->at_valid, row);
    }
    atomic_fetch_add_explicit(&b->stage->valid, n_valid, memory_order_relaxed);
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
