/* Copies and checks of the index's arrays, one function a section; see shard_index.h. */
#include "core/shard_check.h"
#include "core/shard_index.h"

#include <string.h>

static int bad(struct wt_err *err, const char *what) {
    return wt_err_set(err, WT_ECORRUPT, "shard index: %s", what);
}

static int bad_sample(const struct wt_shard_index *x, uint32_t sample, struct wt_err *err,
                      const char *what) {
    return wt_err_set(err, WT_ECORRUPT, "shard index: sample %u ('%.100s'): %s", sample,
                      wt_shard_key(x, sample), what);
}

static int fill_fields(const uint8_t *in, struct wt_shard_index *x, struct wt_err *err) {
    memcpy(x->field, in, (size_t)x->n_fields * WT_FIELD_NAME);
    for (uint32_t f = 0; f < x->n_fields; f++) {
        const char *name = x->field[f];
        if (!wt_field_name_legal(name))
            return bad(err, "an illegal field name");
        for (size_t i = strlen(name); i < WT_FIELD_NAME; i++)
            if (name[i])
                return bad(err, "a field name with something behind it");
        for (uint32_t k = 0; k < f; k++)
            if (strcmp(name, x->field[k]) == 0)
                return bad(err, "the same field twice");
    }
    return 0;
}

static int fill_shapes(const uint8_t *in, struct wt_shard_index *x, struct wt_err *err) {
    for (uint32_t i = 0; i < x->n_shapes; i++, in += WT_SHAPE_RECORD) {
        struct wt_shape s = {.dtype = (enum wt_dtype)wt_get32(in), .ndim = wt_get32(in + 4)};
        uint64_t bytes;
        if (s.ndim > WT_MAX_NDIM || wt_get32(in) > WT_DTYPE_C128 || wt_get32(in + 44))
            return bad(err, "an impossible shape");
        for (uint32_t d = 0; d < WT_MAX_NDIM; d++) {
            s.dim[d] = wt_get32(in + 8 + (size_t)d * 4);
            if (d >= s.ndim && s.dim[d])
                return bad(err, "an impossible shape");
        }
        if (!wt_shape_bytes(&s, &bytes) || bytes > x->tar_size)
            return bad(err, "a shape that is larger than the shard");
        x->shape[i] = s;
        x->rows_per_block[i] = wt_get32(in + 40);
        if (x->rows_per_block[i] == 0 || x->rows_per_block[i] > WT_BLOCK_BYTES)
            return bad(err, "an impossible number of rows in a block");
    }
    return 0;
}

static int fill_text(const struct wt_index_in *in, struct wt_shard_index *x, struct wt_err *err) {
    memcpy(x->text, in->section[WT_SEC_TEXT], x->text_len);
    if (x->text[0] || x->text[x->text_len - 1])
        return bad(err, "its text does not end");
    memcpy(x->key_off, in->section[WT_SEC_KEY], (size_t)x->samples * 4);
    memcpy(x->json_off, in->section[WT_SEC_JSON], (size_t)x->samples * 4);
    for (uint32_t i = 0; i < x->samples; i++) {
        if (x->key_off[i] >= x->text_len || x->json_off[i] >= x->text_len)
            return bad(err, "a text lies outside");
        size_t len = strnlen(wt_shard_key(x, i), WT_KEY_MAX);
        if (len == 0 || len == WT_KEY_MAX)
            return bad(err, "a key is empty or too long");
    }
    return 0;
}

static int fill_labels(const struct wt_index_in *in, struct wt_shard_index *x, struct wt_err *err) {
    int32_t limit = x->n_multihot ? 1 : WT_MAX_CLASSES;
    memcpy(x->id, in->section[WT_SEC_ID], (size_t)x->samples * 8);
    memcpy(x->label, in->section[WT_SEC_LABEL], (size_t)x->samples * 4);
    for (uint32_t i = 0; i < x->samples; i++)
        if (x->label[i] < WT_UNLABELLED || x->label[i] >= limit)
            return bad_sample(x, i, err, "an impossible label");
    return 0;
}

static int fill_multihot(const uint8_t *in, struct wt_shard_index *x, struct wt_err *err) {
    uint32_t n = x->n_multihot, stride = (n + 7) / 8;
    for (uint32_t i = 0; n && i < x->samples; i++, in += stride) {
        uint8_t *out = x->multihot + (size_t)i * n, any = 0;
        for (uint32_t c = 0; c < n; c++)
            out[c] = in[c / 8] >> c % 8 & 1;
        for (uint32_t c = 0; c < stride; c++)
            any |= in[c];
        if (any && x->label[i] == WT_UNLABELLED)
            return bad_sample(x, i, err, "classes of a sample without label");
        if (n % 8 && in[stride - 1] >> n % 8)
            return bad_sample(x, i, err, "classes that do not exist");
    }
    return 0;
}

static int fill_starts(const uint8_t *in, struct wt_shard_index *x, struct wt_err *err) {
    memcpy(x->start, in, ((size_t)x->samples + 1) * 8);
    uint64_t before = 0;
    for (uint32_t i = 0; i < x->samples; i++) {
        if (x->start[i] % WT_TAR_BLOCK || x->start[i + 1] <= x->start[i] || x->start[i] < before)
            return bad_sample(x, i, err, "its offset is out of order");
        before = x->start[i];
    }
    return x->start[0] == 0 ? 0 : bad(err, "the first sample is not at the start");
}

/* One tensor: inside its sample, behind the one before (*at), and its sums are the next ones. */
static const char *fill_ref(struct wt_shard_index *x, struct wt_field_ref *ref, uint64_t end,
                            uint64_t *at, uint64_t *sums) {
    if (ref->shape_id == WT_NO_SHAPE)
        return ref->off ? "an offset of no tensor" : NULL;
    if (ref->shape_id >= x->n_shapes)
        return "a shape that does not exist";
    const struct wt_shape *s = &x->shape[ref->shape_id];
    wt_shape_bytes(s, &ref->len);
    if (ref->off < *at + WT_TAR_BLOCK || ref->off > end || ref->len > end - ref->off)
        return "a tensor lies outside the sample or over another";
    *at = ref->off + ref->len;
    if (x->codec == WT_CODEC_ZSTD)
        return NULL;
    uint64_t n = wt_block_count(s, ref->len, x->rows_per_block[ref->shape_id]);
    if (n > x->n_sums - *sums)
        return "sums are missing";
    ref->sum_first = (uint32_t)*sums;
    *sums += n;
    return NULL;
}

static int fill_refs(const struct wt_index_in *in, struct wt_shard_index *x, struct wt_err *err) {
    const uint8_t *off = in->section[WT_SEC_REF_OFF], *shape = in->section[WT_SEC_REF_SHAPE];
    struct wt_field_ref *ref = x->ref;
    uint64_t sums = 0;
    for (uint32_t i = 0; i < x->samples; i++) {
        uint64_t at = x->start[i];
        for (uint32_t f = 0; f < x->n_fields; f++, ref++, off += 8, shape += 4) {
            *ref = (struct wt_field_ref){.off = wt_get64(off), .shape_id = wt_get32(shape)};
            const char *fault = fill_ref(x, ref, x->start[i + 1], &at, &sums);
            if (fault)
                return bad_sample(x, i, err, fault);
        }
    }
    return sums == x->n_sums ? 0 : bad(err, "sums of no tensor");
}

int wt_index_fill(const struct wt_index_in *in, struct wt_shard_index *x, struct wt_err *err) {
    int rc = fill_fields(in->section[WT_SEC_FIELDS], x, err);
    if (rc == 0)
        rc = fill_shapes(in->section[WT_SEC_SHAPES], x, err);
    if (rc == 0)
        rc = fill_text(in, x, err);
    if (rc == 0)
        rc = fill_labels(in, x, err);
    if (rc == 0)
        rc = fill_multihot(in->section[WT_SEC_MULTIHOT], x, err);
    if (rc == 0)
        rc = fill_starts(in->section[WT_SEC_START], x, err);
    if (rc == 0 && x->start[x->samples] != wt_get64(in->payload + WT_AT_MEMBER))
        rc = bad(err, "the last sample does not end where the index begins");
    if (rc == 0)
        rc = fill_refs(in, x, err);
    if (rc == 0 && x->n_sums)
        memcpy(x->sums, in->section[WT_SEC_SUMS], (size_t)x->n_sums * 4);
    return rc;
}
