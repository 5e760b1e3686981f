/* Records are filled by the crew when a chunk is bound, each at the place where the window's
 * permutation delivers it; see internal.h. Nothing can fail. */
#include "libloader/internal.h"

#include <string.h>

const struct wt_field_ref *wt_chunk_ref(const struct wl_loader *l, const struct wt_chunk *c,
                                        uint32_t sample, size_t field) {
    if (c->field[field] < 0)
        return NULL;
    const struct wt_field_ref *ref =
        wt_shard_ref(c->index, c->index_first + sample, (uint32_t)c->field[field]);
    return ref->shape_id == c->shape[field] && ref->len == l->field[field].bytes ? ref : NULL;
}

static bool is_plain(const struct wl_loader *l, const struct wt_chunk *c, uint32_t sample) {
    if (l->n_fields == 0 || (c->bad && atomic_load_explicit(&c->bad[sample], memory_order_relaxed)))
        return false;
    for (size_t f = 0; f < l->n_fields; f++)
        if (!wt_chunk_ref(l, c, sample, f))
            return false;
    return true;
}

void wt_record_fill(const struct wl_loader *l, const struct wt_chunk *c, uint32_t sample,
                    struct wt_record *out) {
    const struct wt_shard_index *x = c->index;
    *out = (struct wt_record){.chunk = c, .sample = sample};
    if (!x)
        return;
    out->id = x->id[c->index_first + sample];
    out->label = x->label[c->index_first + sample];
    if (is_plain(l, c, sample)) {
        const struct wt_field_ref *ref = wt_chunk_ref(l, c, sample, 0);
        out->src = c->data + (ref->off - c->tar_off);
        if (c->one_sum)
            out->sum = x->sums[ref->sum_first];
    }
    const char *key = wt_shard_key(x, c->index_first + sample);
    size_t n = strnlen(key, WT_RECORD_KEY);
    if (n < WT_RECORD_KEY)
        memcpy(out->key, key, n);
}

void wt_chunk_records(const struct wl_loader *l, const struct wt_chunk *c) {
    enum { PLACES = 32 };
    struct wt_unit *u = c->unit;
    uint64_t place[PLACES], first = c->at - u->pos;
    for (uint32_t i = 0; u->record && i < c->count; i += PLACES) {
        uint32_t n = c->count - i < PLACES ? c->count - i : (uint32_t)PLACES;
        wt_perm_inverses(&u->w.perm, first + i, n, place);
        for (uint32_t k = 0; k < n; k++)
            wt_record_fill(l, c, i + k, &u->record[place[k]]);
    }
}
