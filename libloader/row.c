/* Copying, and what else there is to say of a row; see row.h. */
#include "libloader/row.h"

#include "core/copy.h"
#include "core/mem.h"
#include "libloader/quarantine.h"

#include <string.h>

static void *cell(const struct wl_batch *b, size_t tensor, uint64_t row) {
    return (char *)b->tensor[tensor].data + row * b->row_bytes[tensor];
}

/* ---- errors ---- */

static const char *key_of(const struct wt_record *r) {
    const struct wt_chunk *c = r->chunk;
    return c->index ? wt_shard_key(c->index, c->index_first + r->sample) : "";
}

static int name_place(const struct wl_loader *l, const struct wt_record *r, wl_error *e) {
    const struct wt_chunk *c = r->chunk;
    wt_shard_name(l->dataset, c->shard, &c->rec, e->shard);
    const char *key = key_of(r);
    size_t n = strlen(key);
    memcpy(e->key, key, n < sizeof e->key ? n + 1 : sizeof e->key - 1);
    if (c->index && c->index->n_fields)
        e->offset = wt_shard_ref(c->index, c->index_first + r->sample, 0)->off;
    return e->code;
}

static const char *shown(const struct wt_field *f) {
    return f->name[0] ? f->name : "image";
}

static int deviates(const struct wl_loader *l, const struct wt_record *r, size_t f, wl_error *e) {
    const struct wt_chunk *c = r->chunk;
    uint32_t s = c->index_first + r->sample;
    const struct wt_field_ref *ref =
        c->field[f] < 0 ? NULL : wt_shard_ref(c->index, s, (uint32_t)c->field[f]);
    char want[96], have[96];
    wt_shape_format(&l->field[f].shape, want, sizeof want);
    if (!ref || ref->shape_id >= c->index->n_shapes)
        wt_error_set(e, WL_ERROR_UNSUPPORTED,
                     "sample %s has no field '%s', which every row of a batch needs: leave it out "
                     "with 'fields'",
                     key_of(r), shown(&l->field[f]));
    else
        wt_error_set(e, WL_ERROR_UNSUPPORTED, "sample %s: field '%s' is %s, the data set's is %s",
                     key_of(r), shown(&l->field[f]),
                     wt_shape_format(&c->index->shape[ref->shape_id], have, sizeof have), want);
    return name_place(l, r, e);
}

static int damaged(const struct wl_loader *l, const struct wt_record *r, wl_error *e) {
    char shard[WT_OBJECT_NAME];
    wt_shard_name(l->dataset, r->chunk->shard, &r->chunk->rec, shard);
    wt_error_set(e, WL_ERROR_CORRUPT,
                 "shard %s: sample %s is damaged in its cold copy: put the shard again, or set "
                 "'bad' to substitute or mask",
                 shard, r->chunk->index ? key_of(r) : "(its index too)");
    return name_place(l, r, e);
}

/* ---- the copy ---- */

static int copy_checked(const struct wl_loader *l, const struct wt_record *r, size_t f,
                        const uint8_t *src, void *dst, wl_error *e) {
    const struct wt_chunk *c = r->chunk;
    struct wt_err err = {0};
    if (wt_shard_verify_field(c->index, c->index_first + r->sample, (uint32_t)c->field[f], src, dst,
                              &err) == 0)
        return 0;
    wt_error_from(e, &err);
    return name_place(l, r, e);
}

/* Plain tars alone have sums of their decoded bytes; a frame's was checked when it was decoded into
 * memory. The record has the sum that most small images have; where it is wrong, or there are
 * several, the index says so, or says them. */
static int copy_field(const struct wl_loader *l, const struct wt_record *r, size_t f,
                      const uint8_t *src, void *dst, wl_error *e) {
    const struct wt_chunk *c = r->chunk;
    size_t n = l->field[f].bytes;
    if (!l->o.verify_every_read || c->rec.codec != WT_CODEC_TAR) {
        wt_copy(dst, src, n);
        return 0;
    }
    if (f == 0 && c->one_sum && wt_crc32c_copy(0, dst, src, n) == r->sum)
        return 0;
    return copy_checked(l, r, f, src, dst, e);
}

static int copy_fields(const struct wl_loader *l, struct wl_batch *b, uint64_t row,
                       const struct wt_record *r, wl_error *e) {
    const struct wt_chunk *c = r->chunk;
    const uint8_t *src = r->src;
    int rc = 0;
    for (size_t f = 0; f < l->n_fields && !rc; f++) {
        if (f > 0)
            src = c->data + (wt_chunk_ref(l, c, r->sample, f)->off - c->tar_off);
        rc = copy_field(l, r, f, src, cell(b, f, row), e);
    }
    return rc;
}

static void set_size(const struct wl_loader *l, struct wl_batch *b, uint64_t row) {
    const struct wt_shape *shape = &l->field[l->size_field].shape;
    int32_t hw[2] = {shape->ndim > 0 ? (int32_t)shape->dim[0] : 1,
                     shape->ndim > 1 ? (int32_t)shape->dim[1] : 1};
    memcpy(cell(b, l->at_size, row), hw, sizeof hw);
}

static void set_label(const struct wl_loader *l, const struct wl_batch *b, uint64_t row,
                      int32_t label) {
    memcpy(cell(b, l->at_label, row), &label, sizeof label);
}

static void set_key(struct wl_batch *b, uint64_t row, const char *key) {
    size_t n = strnlen(key, WT_RING_KEY - 1);
    memcpy(b->key[row], key, n);
    b->key[row][n] = '\0';
}

static int give_plain(struct wt_rows *rows, uint64_t row, const struct wt_record *r) {
    const struct wl_loader *l = rows->l;
    struct wl_batch *b = rows->b;
    if (copy_fields(l, b, row, r, &rows->err))
        return rows->err.code;
    set_label(l, b, row, r->label);
    if (l->at_multihot != SIZE_MAX) {
        const struct wt_shard_index *x = r->chunk->index;
        memcpy(cell(b, l->at_multihot, row),
               x->multihot + (size_t)(r->chunk->index_first + r->sample) * x->n_multihot,
               x->n_multihot);
    }
    memcpy(cell(b, l->at_id, row), &r->id, sizeof r->id);
    if (r->key[0])
        memcpy(b->key[row], r->key, sizeof r->key);
    else
        set_key(b, row, key_of(r));
    if (l->size_field >= 0)
        set_size(l, b, row);
    *(uint8_t *)cell(b, l->at_valid, row) = 1;
    rows->n_valid++;
    return 0;
}

/* ---- runs ---- */

/* Its first lines, and one where a small image ends: that may be on another page. What lies between
 * the processor fetches by itself once it sees the first ones used, and better so than by asking.
 */
static void expect(const struct wt_record *r) {
    enum { LINE = 64, LAST = 40 * LINE };
    __builtin_prefetch(r->src);
    if (!r->src)
        return;
    __builtin_prefetch(r->src + LINE);
    __builtin_prefetch(r->src + LAST);
}

uint64_t wt_rows_plain(struct wt_rows *r, uint64_t row, const struct wt_record *records, uint64_t n,
                       bool *failed) {
    enum { BURST = 8 };
    *failed = false;
    for (uint64_t i = 0; i < n && i < BURST; i++)
        expect(&records[i]);
    for (uint64_t i = 0; i < n; i += BURST) {
        for (uint64_t k = i + BURST; k < n && k < i + 2 * BURST; k++)
            expect(&records[k]);
        for (uint64_t k = i; k < n && k < i + BURST; k++) {
            if (!records[k].src)
                return k;
            *failed = give_plain(r, row + k, &records[k]) < 0;
            if (*failed)
                return k;
        }
    }
    return n;
}

/* ---- all others ---- */

void wt_rows_blank(struct wt_rows *r, uint64_t row) {
    struct wl_batch *b = r->b;
    for (size_t i = 0; i < b->n_tensors; i++)
        memset(cell(b, i, row), 0, b->row_bytes[i]);
    set_label(r->l, b, row, -1);
    b->key[row][0] = '\0';
}

static bool is_bad(const struct wt_record *r) {
    const struct wt_chunk *c = r->chunk;
    return !c->index || (c->bad && atomic_load_explicit(&c->bad[r->sample], memory_order_relaxed));
}

/* Puts the sample on the list of the bad, and its key to the row where another will be. */
static void note_bad(struct wt_rows *rows, uint64_t row, const struct wt_record *r) {
    const struct wl_loader *l = rows->l;
    struct wl_batch *b = rows->b;
    char shard[WT_OBJECT_NAME];
    const char *key = r->chunk->index ? key_of(r) : "";
    wt_shard_name(l->dataset, r->chunk->shard, &r->chunk->rec, shard);
    wt_quarantine_add(l->quarantine, shard, key, b->epoch);
    rows->n_bad++;
    if (l->o.bad != WL_BAD_SUBSTITUTE)
        return;
    pthread_mutex_lock(&b->ring->mutex);
    if (wt_grow(&b->wanted, &b->cap_wanted, b->n_wanted + 1, sizeof *b->wanted) == 0) {
        struct wt_wanted *w = &b->wanted[b->n_wanted++];
        size_t n = strnlen(key, sizeof w->key - 1);
        w->row = row;
        memcpy(w->key, key, n);
        w->key[n] = '\0';
    }
    pthread_mutex_unlock(&b->ring->mutex);
}

static void locate(const struct wl_loader *l, const struct wt_track *t, const struct wt_unit *u,
                   uint64_t pos, struct wt_record *out) {
    uint32_t sample;
    const struct wt_chunk *c = wt_unit_locate(l, u, t->lane, pos, &sample);
    wt_record_fill(l, c, sample, out);
}

/* The next good position of the window, in the order in which the lane delivers it. */
static bool substitute(const struct wl_loader *l, const struct wt_track *t, const struct wt_unit *u,
                       uint64_t pos, struct wt_record *r) {
    for (uint64_t k = 1; k < u->count; k++) {
        struct wt_record other;
        locate(l, t, u, u->pos + (pos - u->pos + k) % u->count, &other);
        if (is_bad(&other))
            continue;
        *r = other;
        return true;
    }
    return false;
}

static void mask(struct wt_rows *rows, uint64_t row, const struct wt_record *r) {
    const struct wt_chunk *c = r->chunk;
    wt_rows_blank(rows, row);
    if (!c->index)
        return;
    memcpy(cell(rows->b, rows->l->at_id, row), &c->index->id[c->index_first + r->sample],
           sizeof *c->index->id);
    set_key(rows->b, row, key_of(r));
}

bool wt_rows_any(struct wt_rows *rows, uint64_t row, const struct wt_track *t,
                 const struct wt_unit *u, uint64_t pos) {
    const struct wl_loader *l = rows->l;
    struct wt_record r;
    locate(l, t, u, pos, &r);
    if (is_bad(&r)) {
        note_bad(rows, row, &r);
        if (l->o.bad == WL_BAD_MASK) {
            mask(rows, row, &r);
            return true;
        }
        if (l->o.bad != WL_BAD_SUBSTITUTE || !substitute(l, t, u, pos, &r))
            return damaged(l, &r, &rows->err) == 0;
    }
    for (size_t f = 0; f < l->n_fields; f++)
        if (!wt_chunk_ref(l, r.chunk, r.sample, f))
            return deviates(l, &r, f, &rows->err) == 0;
    return give_plain(rows, row, &r) == 0;
}
