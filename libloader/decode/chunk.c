/*
 * The last step of a chunk: what staging looks up for each sample is found once and put where it
 * will be wanted, and of a large index only the part that the chunk needs is kept. Failure mode: no
 * memory.
 */
#include "core/shard_format.h"
#include "libloader/fetch.h"

#include <stdlib.h>
#include <string.h>

int wt_chunk_begin_salvage(struct wt_chunk *c) {
    if (!c->bad)
        c->bad = wt_calloc(c->count, sizeof *c->bad);
    return c->bad ? 0 : WT_ENOMEM;
}

void wt_chunk_mark_bad(struct wt_chunk *c, uint32_t sample) {
    atomic_store_explicit(&c->bad[sample], 1, memory_order_relaxed);
}

/* ---- a part of an index ---- */

struct slice_sizes {
    size_t shape, id, label, multihot, key_off, ref, text, total;
};

static size_t put(size_t *at, size_t bytes) {
    size_t here = *at;
    *at = (here + bytes + 15) & ~(size_t)15;
    return here;
}

static struct slice_sizes slice_layout(const struct wt_shard_index *x, uint32_t first,
                                       uint32_t count) {
    struct slice_sizes s = {0};
    size_t n = count;
    s.shape = put(&s.total, x->n_shapes * sizeof *x->shape);
    s.id = put(&s.total, n * sizeof *x->id);
    s.label = put(&s.total, n * sizeof *x->label);
    s.multihot = put(&s.total, n * x->n_multihot);
    s.key_off = put(&s.total, n * sizeof *x->key_off);
    s.ref = put(&s.total, n * x->n_fields * sizeof *x->ref);
    size_t text = 0;
    for (uint32_t i = 0; i < count; i++)
        text += strlen(wt_shard_key(x, first + i)) + 1;
    s.text = put(&s.total, text);
    return s;
}

/* Replaces c->own by a copy of what samples [first, first + count) need: labels, keys, places,
 * shapes. */
static int slice_index(struct wt_chunk *c) {
    const struct wt_shard_index *x = &c->own;
    struct slice_sizes s = slice_layout(x, c->first, c->count);
    char *block = malloc(s.total);
    if (!block)
        return WT_ENOMEM;
    struct wt_shard_index cut = *x;
    cut.samples = c->count;
    cut.shape = memcpy(block + s.shape, x->shape, x->n_shapes * sizeof *x->shape);
    cut.id = memcpy(block + s.id, x->id + c->first, c->count * sizeof *x->id);
    cut.label = memcpy(block + s.label, x->label + c->first, c->count * sizeof *x->label);
    cut.multihot = x->multihot
                       ? memcpy(block + s.multihot, x->multihot + (size_t)c->first * x->n_multihot,
                                (size_t)c->count * x->n_multihot)
                       : NULL;
    cut.ref = memcpy(block + s.ref, x->ref + (size_t)c->first * x->n_fields,
                     (size_t)c->count * x->n_fields * sizeof *x->ref);
    cut.key_off = (uint32_t *)(block + s.key_off);
    cut.text = block + s.text;
    cut.text_len = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const char *key = wt_shard_key(x, c->first + i);
        cut.key_off[i] = cut.text_len;
        memcpy(cut.text + cut.text_len, key, strlen(key) + 1);
        cut.text_len += (uint32_t)strlen(key) + 1;
    }
    cut.rows_per_block = NULL;
    cut.start = NULL;
    cut.json_off = NULL;
    cut.sums = NULL;
    cut.frame = NULL;
    wt_shard_index_free(&c->own);
    c->own = cut;
    c->slice = block;
    c->index_first = 0;
    return 0;
}

/* ---- binding ---- */

static void find_fields(const struct wl_loader *l, struct wt_chunk *c) {
    const struct wt_shard_index *x = c->index;
    for (size_t f = 0; f < l->n_fields; f++) {
        c->field[f] = wt_shard_field(x, l->field[f].name);
        c->shape[f] = UINT32_MAX - 1;
        for (uint32_t s = 0; s < x->n_shapes; s++)
            if (wt_shape_equal(&x->shape[s], &l->field[f].shape))
                c->shape[f] = s;
    }
    uint32_t first = l->n_fields ? c->shape[0] : UINT32_MAX;
    c->one_sum = l->o.verify_every_read && x->codec == WT_CODEC_TAR && first < x->n_shapes &&
                 wt_block_bytes(&x->shape[first], l->field[0].bytes, x->rows_per_block[first]) >=
                     l->field[0].bytes;
}

int wt_chunk_bind(struct wt_fetch *f, struct wt_err *err) {
    struct wl_loader *l = f->l;
    struct wt_chunk *c = f->chunk;
    c->index_first = c->first;
    c->index = f->x;
    if (!c->kept) {
        c->own = f->index;
        f->parsed = false;
        c->index = &c->own;
        bool small = c->count <= c->own.samples / 2 && !l->o.verify_every_read;
        if (small && slice_index(c) < 0)
            return wt_err_set(err, WT_ENOMEM, "out of memory for the index of %u samples",
                              c->count);
    }
    if ((c->index->n_multihot != 0) != (l->at_multihot != SIZE_MAX) ||
        (c->index->n_multihot && c->index->n_multihot != l->ds.m.n_classes))
        return wt_err_set(err, WT_ECORRUPT, "its labels have %u classes, the manifest has %u",
                          c->index->n_multihot, l->ds.m.n_classes);
    find_fields(l, c);
    wt_chunk_records(l, c);
    return 0;
}
