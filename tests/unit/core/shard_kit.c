/* See shard_kit.h. */
#include "shard_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint16_t pixel(uint32_t sample, uint64_t at) {
    return (uint16_t)((at * 2654435761u >> 7) ^ sample * 40503u) & 0x0fff;
}

static uint8_t mask_value(uint32_t sample, uint64_t at) {
    return (at + sample) % 5 == 0;
}

static bool has_mask(const struct kit_recipe *r, uint32_t i) {
    return r->mask_every && i % r->mask_every == 0;
}

static bool labelled(const struct kit_recipe *r, uint32_t i) {
    return !r->unlabelled_every || i % r->unlabelled_every != 0;
}

static bool hot(uint32_t sample, uint32_t c) {
    return (sample + c) % 3 == 0;
}

static void make_texts(uint32_t i, char key[WT_KEY_MAX], char json[64]) {
    snprintf(key, WT_KEY_MAX, "lotA/wB/s%04u", i);
    snprintf(json, 64, "{\"x\": %u, \"file\": \"%u.png\"}", i, i);
}

struct images {
    uint16_t *image;
    uint8_t *mask, *hot;
};

static int add_sample(const struct kit_recipe *r, struct wt_shard_writer *w, uint32_t i,
                      const struct images *m, struct wt_err *err) {
    char key[WT_KEY_MAX], json[64];
    make_texts(i, key, json);
    uint64_t n = (uint64_t)r->rows * r->cols;
    for (uint64_t k = 0; k < n; k++) {
        m->image[k] = pixel(i, k);
        m->mask[k] = mask_value(i, k);
    }
    for (uint32_t c = 0; c < r->n_multihot; c++)
        m->hot[c] = hot(i, c);
    struct wt_tensor tensors[2] = {
        {.name = "mask", .shape = {WT_DTYPE_U8, 2, {r->rows, r->cols}}, .data = m->mask},
        {.name = "", .shape = {WT_DTYPE_U16, 2, {r->rows, r->cols}}, .data = m->image},
    };
    bool mask = has_mask(r, i);
    struct wt_sample_in s = {
        .key = key,
        .id = 1000 + 7 * (uint64_t)i,
        .label = labelled(r, i) ? (int32_t)(i % 9) : WT_UNLABELLED,
        .multihot = r->n_multihot && labelled(r, i) ? m->hot : NULL,
        .json = i % 3 == 2 ? NULL : json,
        .tensors = mask ? tensors : tensors + 1,
        .n_tensors = mask ? 2 : 1,
    };
    return wt_shard_writer_add(w, &s, err);
}

void kit_build(const struct kit_recipe *r, struct wt_shard_out *out) {
    struct wt_shard_opts opts = {
        .codec = r->codec, .sidecars = r->sidecars, .n_multihot = r->n_multihot};
    struct wt_shard_writer *w = NULL;
    struct wt_err err = {0};
    uint64_t n = (uint64_t)r->rows * r->cols + 1;
    struct images m = {calloc(n, 2), calloc(n, 1), calloc(r->n_multihot + 1, 1)};
    assert_true(m.image && m.mask && m.hot);
    assert_int_equal(wt_shard_writer_new(&opts, &w, &err), 0);
    for (uint32_t i = 0; i < r->samples; i++)
        if (add_sample(r, w, i, &m, &err) < 0)
            fail_msg("add: %s", err.text);
    assert_int_equal(wt_shard_writer_samples(w), r->samples);
    if (wt_shard_writer_finish(w, out, &err) < 0)
        fail_msg("finish: %s", err.text);
    wt_shard_writer_free(w);
    free(m.image);
    free(m.mask);
    free(m.hot);
}

static bool same_index(const struct kit_recipe *r, const struct wt_shard_index *x, uint32_t i) {
    char key[WT_KEY_MAX], json[64];
    make_texts(i, key, json);
    int32_t label = labelled(r, i) ? (int32_t)(r->n_multihot ? 0 : i % 9) : WT_UNLABELLED;
    if (strcmp(wt_shard_key(x, i), key) != 0 || x->id[i] != 1000 + 7 * (uint64_t)i ||
        x->label[i] != label)
        return false;
    if (i % 3 == 2 ? x->json_off[i] != 0 : strcmp(x->text + x->json_off[i], json) != 0)
        return false;
    for (uint32_t c = 0; c < r->n_multihot; c++)
        if (x->multihot[i * r->n_multihot + c] != (labelled(r, i) && hot(i, c)))
            return false;
    return true;
}

static bool same_mask(const struct kit_recipe *r, const struct wt_shard_index *x, uint32_t i,
                      const uint8_t *tar, uint64_t tar_off) {
    int f = wt_shard_field(x, "mask");
    if (f < 0)
        return !has_mask(r, i);
    const struct wt_field_ref *ref = wt_shard_ref(x, i, (uint32_t)f);
    if (!has_mask(r, i))
        return ref->len == 0 && ref->shape_id == UINT32_MAX;
    uint64_t n = (uint64_t)r->rows * r->cols;
    if (ref->len != n || x->shape[ref->shape_id].dtype != WT_DTYPE_U8)
        return false;
    for (uint64_t k = 0; k < n; k++)
        if (tar[ref->off - tar_off + k] != mask_value(i, k))
            return false;
    return true;
}

static bool same_image(const struct kit_recipe *r, const struct wt_shard_index *x, uint32_t i,
                       const uint8_t *tar, uint64_t tar_off) {
    int f = wt_shard_field(x, "");
    if (f < 0)
        return false;
    const struct wt_field_ref *ref = wt_shard_ref(x, i, (uint32_t)f);
    uint64_t n = (uint64_t)r->rows * r->cols;
    struct wt_shape want = {WT_DTYPE_U16, 2, {r->rows, r->cols}};
    if (ref->shape_id >= x->n_shapes || !wt_shape_equal(&x->shape[ref->shape_id], &want) ||
        ref->len != n * 2)
        return false;
    for (uint64_t k = 0; k < n; k++) {
        uint16_t v;
        memcpy(&v, tar + (ref->off - tar_off) + k * 2, 2);
        if (v != pixel(i, k))
            return false;
    }
    return true;
}

bool kit_same(const struct kit_recipe *r, const struct wt_shard_index *x, uint32_t first,
              uint32_t count, const uint8_t *tar, uint64_t tar_off) {
    if (x->samples != r->samples || x->codec != r->codec || x->n_multihot != r->n_multihot)
        return false;
    for (uint32_t i = first; i < first + count; i++)
        if (!same_index(r, x, i) || !same_mask(r, x, i, tar, tar_off) ||
            !same_image(r, x, i, tar, tar_off))
            return false;
    return true;
}

void kit_check(const struct kit_recipe *r, const struct wt_shard_index *x, uint32_t first,
               uint32_t count, const uint8_t *tar, uint64_t tar_off) {
    assert_true(kit_same(r, x, first, count, tar, tar_off));
}

int kit_open(const void *data, uint64_t size, enum wt_codec codec, struct wt_shard_index *x,
             struct wt_err *err) {
    uint64_t at = 0, len = size < 65536 ? size : 65536;
    const uint8_t *object = data;
    int rc = wt_shard_locate(object + size - len, len, size, codec, &at, err);
    if (rc < 0)
        return rc;
    return wt_shard_index_parse(object + at, size - at, at, size, codec, x, err);
}

static int decode(const struct wt_shard_index *x, const struct wt_span *s, const uint8_t *object,
                  uint8_t *tar, struct wt_err *err) {
    struct wt_decoder *d = wt_decoder_new();
    assert_non_null(d);
    int rc = 0;
    for (uint32_t f = s->frame_first; rc == 0 && f < s->frame_first + s->n_frames; f++) {
        uint64_t len = x->frame[f + 1].off - x->frame[f].off;
        uint8_t *exact = malloc(len); /* a sanitizer sees reads behind the frame */
        assert_non_null(exact);
        memcpy(exact, object + x->frame[f].off, len);
        rc = wt_shard_decode_frame(d, x, f, exact, tar + (x->frame[f].tar_off - s->tar_off), err);
        free(exact);
    }
    wt_decoder_free(d);
    return rc;
}

int kit_fetch(const struct wt_shard_index *x, const uint8_t *object, uint32_t first, uint32_t count,
              uint8_t **tar, uint64_t *tar_off, struct wt_err *err) {
    struct wt_span s = wt_shard_span(x, first, count);
    uint8_t *out = malloc(s.tar_len);
    int rc = 0;
    assert_non_null(out);
    assert_true(s.off + s.len <= x->size && s.tar_off + s.tar_len <= x->tar_size);
    assert_true(s.tar_off <= x->start[first] && s.tar_off + s.tar_len >= x->start[first + count]);
    if (x->codec == WT_CODEC_ZSTD)
        rc = decode(x, &s, object, out, err);
    else
        memcpy(out, object + s.off, s.len);
    if (rc == 0)
        rc = wt_shard_verify(x, first, count, out, s.tar_off, err);
    if (rc < 0) {
        free(out);
        return rc;
    }
    *tar = out;
    *tar_off = s.tar_off;
    return 0;
}
