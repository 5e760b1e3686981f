/* Finding, expecting and copying; see row.h. */
#include "libloader/row.h"

#include <string.h>

/* Of a field so many bytes are asked for ahead; in longer ones the processor sees for itself what
 * comes next. */
enum { AHEAD_BYTES = 192, LINE = 64 };

static void *cell(const struct wl_batch *b, size_t tensor, uint64_t row) {
    return (char *)b->tensor[tensor].data + row * b->row_bytes[tensor];
}

/* ---- ahead of the copy ---- */

static struct wt_place place_of(const struct wl_loader *l, const struct wt_row *row, uint64_t pos) {
    struct wt_place at;
    at.chunk = wt_unit_locate(l, row->unit, row->track->lane, pos, &at.sample);
    return at;
}

void wt_row_find(const struct wl_loader *l, struct wt_row *row) {
    if (!row->unit)
        return;
    row->at = place_of(l, row, row->pos);
    const struct wt_shard_index *x = row->at.chunk->index;
    if (!x)
        return;
    uint32_t s = row->at.chunk->index_first + row->at.sample;
    __builtin_prefetch(wt_shard_ref(x, s, 0));
    __builtin_prefetch(&x->key_off[s]);
    __builtin_prefetch(&x->id[s]);
    __builtin_prefetch(&x->label[s]);
}

/* The place of a field in the tar, or NULL where it is not what the manifest says. */
static const struct wt_field_ref *field_ref(const struct wl_loader *l, const struct wt_place *at,
                                            size_t f) {
    const struct wt_chunk *c = at->chunk;
    if (c->field[f] < 0)
        return NULL;
    const struct wt_field_ref *ref =
        wt_shard_ref(c->index, c->index_first + at->sample, (uint32_t)c->field[f]);
    return ref->shape_id == c->shape[f] && ref->len == l->field[f].bytes ? ref : NULL;
}

void wt_row_expect(const struct wl_loader *l, const struct wt_row *row) {
    const struct wt_chunk *c = row->at.chunk;
    if (!row->unit || !c->index)
        return;
    __builtin_prefetch(wt_shard_key(c->index, c->index_first + row->at.sample));
    for (size_t f = 0; f < l->n_fields; f++) {
        const struct wt_field_ref *ref = field_ref(l, &row->at, f);
        if (!ref)
            return;
        const uint8_t *src = c->data + (ref->off - c->tar_off);
        size_t n = ref->len < AHEAD_BYTES ? (size_t)ref->len : (size_t)AHEAD_BYTES;
        for (size_t i = 0; i < n; i += LINE)
            __builtin_prefetch(src + i);
    }
}

/* ---- errors ---- */

static const char *key_of(const struct wt_place *at) {
    const struct wt_chunk *c = at->chunk;
    return c->index ? wt_shard_key(c->index, c->index_first + at->sample) : "";
}

static int name_place(const struct wl_loader *l, const struct wt_place *at, wl_error *e) {
    const struct wt_chunk *c = at->chunk;
    wt_shard_name(l->dataset, c->shard, &c->rec, e->shard);
    const char *key = key_of(at);
    size_t n = strlen(key);
    memcpy(e->key, key, n < sizeof e->key ? n + 1 : sizeof e->key - 1);
    if (c->index && c->index->n_fields)
        e->offset = wt_shard_ref(c->index, c->index_first + at->sample, 0)->off;
    return e->code;
}

static const char *shown(const struct wt_field *f) {
    return f->name[0] ? f->name : "image";
}

static int deviates(const struct wl_loader *l, const struct wt_place *at, size_t f, wl_error *e) {
    const struct wt_chunk *c = at->chunk;
    uint32_t s = c->index_first + at->sample;
    const struct wt_field_ref *ref =
        c->field[f] < 0 ? NULL : wt_shard_ref(c->index, s, (uint32_t)c->field[f]);
    char want[96], have[96];
    wt_shape_format(&l->field[f].shape, want, sizeof want);
    if (!ref || ref->shape_id >= c->index->n_shapes)
        wt_error_set(e, WL_ERROR_UNSUPPORTED,
                     "sample %s has no field '%s', which every row of a batch needs: leave it out "
                     "with 'fields'",
                     key_of(at), shown(&l->field[f]));
    else
        wt_error_set(e, WL_ERROR_UNSUPPORTED, "sample %s: field '%s' is %s, the data set's is %s",
                     key_of(at), shown(&l->field[f]),
                     wt_shape_format(&c->index->shape[ref->shape_id], have, sizeof have), want);
    return name_place(l, at, e);
}

static int damaged(const struct wl_loader *l, const struct wt_place *at, wl_error *e) {
    char shard[WT_OBJECT_NAME];
    wt_shard_name(l->dataset, at->chunk->shard, &at->chunk->rec, shard);
    wt_error_set(e, WL_ERROR_CORRUPT,
                 "shard %s: sample %s is damaged in its cold copy: put the shard again, or set "
                 "'bad' to substitute or mask",
                 shard, at->chunk->index ? key_of(at) : "(its index too)");
    return name_place(l, at, e);
}

/* ---- the copy ---- */

static int copy_checked(struct wl_loader *l, const struct wt_place *at, size_t f,
                        const uint8_t *src, void *dst, wl_error *e) {
    const struct wt_chunk *c = at->chunk;
    struct wt_err err = {0};
    if (wt_shard_verify_field(c->index, c->index_first + at->sample, (uint32_t)c->field[f], src,
                              dst, &err) == 0)
        return 0;
    wt_error_from(e, &err);
    return name_place(l, at, e);
}

/* Plain tars alone have sums of their decoded bytes; a frame's was checked when it was decoded into
 * memory. */
static int copy_fields(struct wl_loader *l, struct wl_batch *b, uint64_t row,
                       const struct wt_place *at, wl_error *e) {
    const struct wt_chunk *c = at->chunk;
    bool check = l->o.verify_every_read && c->rec.codec == WT_CODEC_TAR;
    for (size_t f = 0; f < l->n_fields; f++) {
        const struct wt_field_ref *ref = field_ref(l, at, f);
        if (!ref)
            return deviates(l, at, f, e);
        const uint8_t *src = c->data + (ref->off - c->tar_off);
        if (!check)
            memcpy(cell(b, f, row), src, l->field[f].bytes);
        else if (copy_checked(l, at, f, src, cell(b, f, row), e))
            return e->code;
    }
    return 0;
}

static void set_size(struct wl_loader *l, struct wl_batch *b, uint64_t row) {
    const struct wt_shape *shape = &l->field[l->size_field].shape;
    int32_t hw[2] = {shape->ndim > 0 ? (int32_t)shape->dim[0] : 1,
                     shape->ndim > 1 ? (int32_t)shape->dim[1] : 1};
    memcpy(cell(b, l->at_size, row), hw, sizeof hw);
}

static void set_label(const struct wl_loader *l, const struct wl_batch *b, uint64_t row,
                      int32_t label) {
    memcpy(cell(b, l->at_label, row), &label, sizeof label);
}

static void set_identity(struct wl_loader *l, struct wl_batch *b, uint64_t row,
                         const struct wt_place *at) {
    const struct wt_shard_index *x = at->chunk->index;
    uint32_t s = at->chunk->index_first + at->sample;
    memcpy(cell(b, l->at_id, row), &x->id[s], sizeof x->id[s]);
    const char *key = wt_shard_key(x, s);
    size_t n = strnlen(key, WT_RING_KEY - 1);
    memcpy(b->key[row], key, n);
    b->key[row][n] = '\0';
}

static int give_sample(struct wl_loader *l, struct wl_batch *b, uint64_t row,
                       const struct wt_place *at, wl_error *e) {
    const struct wt_shard_index *x = at->chunk->index;
    uint32_t s = at->chunk->index_first + at->sample;
    int rc = copy_fields(l, b, row, at, e);
    if (rc)
        return rc;
    set_label(l, b, row, x->label[s]);
    if (l->at_multihot != SIZE_MAX)
        memcpy(cell(b, l->at_multihot, row), x->multihot + (size_t)s * x->n_multihot,
               x->n_multihot);
    set_identity(l, b, row, at);
    if (l->size_field >= 0)
        set_size(l, b, row);
    *(uint8_t *)cell(b, l->at_valid, row) = 1;
    return 0;
}

static void blank(const struct wl_loader *l, struct wl_batch *b, uint64_t row) {
    for (size_t i = 0; i < b->n_tensors; i++)
        memset(cell(b, i, row), 0, b->row_bytes[i]);
    set_label(l, b, row, -1);
    b->key[row][0] = '\0';
}

/* ---- bad samples ---- */

static bool is_bad(const struct wt_place *at) {
    const struct wt_chunk *c = at->chunk;
    return !c->index || (c->bad && atomic_load_explicit(&c->bad[at->sample], memory_order_relaxed));
}

/* The next good position of the window, in the order in which the lane delivers it. */
static bool substitute(const struct wl_loader *l, struct wt_row *row) {
    const struct wt_unit *u = row->unit;
    for (uint64_t k = 1; k < u->count; k++) {
        struct wt_place other = place_of(l, row, u->pos + (row->pos - u->pos + k) % u->count);
        if (is_bad(&other))
            continue;
        row->at = other;
        return true;
    }
    return false;
}

static int give_bad(struct wl_loader *l, struct wl_batch *b, struct wt_row *row, wl_error *e) {
    row->bad = true;
    if (l->o.bad == WL_BAD_SUBSTITUTE && substitute(l, row))
        return give_sample(l, b, row->number, &row->at, e);
    if (l->o.bad != WL_BAD_MASK)
        return damaged(l, &row->at, e);
    row->valid = false;
    blank(l, b, row->number);
    if (row->at.chunk->index)
        set_identity(l, b, row->number, &row->at);
    return 0;
}

int wt_row_give(struct wl_loader *l, struct wl_batch *b, struct wt_row *row, wl_error *e) {
    if (!row->unit) {
        blank(l, b, row->number);
        return 0;
    }
    row->valid = true;
    return is_bad(&row->at) ? give_bad(l, b, row, e) : give_sample(l, b, row->number, &row->at, e);
}
