/* See shard_use.h. */
#include "shard_use.h"

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_MAX = 64, DECODED_MAX = 1 << 20 };

static void use_texts(const struct wt_shard_index *x, uint32_t sample) {
    FUZZ_CHECK(strlen(wt_shard_key(x, sample)) < WT_KEY_MAX);
    FUZZ_CHECK(x->json_off[sample] < x->text_len);
    FUZZ_CHECK(x->json_off[sample] + strlen(x->text + x->json_off[sample]) < x->text_len);
    FUZZ_CHECK(x->label[sample] >= WT_UNLABELLED && x->label[sample] < WT_MAX_CLASSES);
}

static void use_refs(const struct wt_shard_index *x, uint32_t sample, const struct wt_span *s,
                     const uint8_t *tar) {
    for (uint32_t f = 0; f < x->n_fields; f++) {
        const struct wt_field_ref *ref = wt_shard_ref(x, sample, f);
        if (ref->shape_id == UINT32_MAX)
            continue;
        FUZZ_CHECK(ref->shape_id < x->n_shapes && ref->off >= s->tar_off);
        FUZZ_CHECK(ref->off - s->tar_off <= s->tar_len &&
                   ref->len <= s->tar_len - (ref->off - s->tar_off));
        if (!tar)
            continue;
        uint8_t *dst = fuzz_alloc((size_t)ref->len);
        const uint8_t *src = tar + (ref->off - s->tar_off);
        if (wt_shard_verify_field(x, sample, f, src, dst, NULL) == 0)
            FUZZ_CHECK(memcmp(src, dst, (size_t)ref->len) == 0);
        free(dst);
    }
}

/* The tar bytes of a span, or NULL: too many, or damaged. */
static uint8_t *fetch(const struct wt_shard_index *x, const struct wt_span *s,
                      const uint8_t *object) {
    if (s->tar_len > DECODED_MAX)
        return NULL;
    uint8_t *tar = fuzz_alloc((size_t)s->tar_len);
    if (x->codec == WT_CODEC_TAR) {
        memcpy(tar, object + s->off, (size_t)s->len);
        return tar;
    }
    struct wt_decoder *d = wt_decoder_new();
    FUZZ_CHECK(d);
    int rc = 0;
    for (uint32_t f = s->frame_first; rc == 0 && f < s->frame_first + s->n_frames; f++) {
        uint8_t *src =
            fuzz_copy(object + x->frame[f].off, (size_t)(x->frame[f + 1].off - x->frame[f].off));
        rc = wt_shard_decode_frame(d, x, f, src, tar + (x->frame[f].tar_off - s->tar_off), NULL);
        free(src);
    }
    wt_decoder_free(d);
    if (rc == 0)
        return tar;
    free(tar);
    return NULL;
}

static void use_span(const struct wt_shard_index *x, uint32_t first, uint32_t count,
                     const uint8_t *object) {
    struct wt_span s = wt_shard_span(x, first, count);
    FUZZ_CHECK(s.off <= x->size && s.len <= x->size - s.off);
    FUZZ_CHECK(s.tar_off <= x->tar_size && s.tar_len <= x->tar_size - s.tar_off);
    FUZZ_CHECK(s.tar_off <= x->start[first] && s.tar_off + s.tar_len >= x->start[first + count]);
    uint8_t *tar = object ? fetch(x, &s, object) : NULL;
    if (tar)
        wt_shard_verify(x, first, count, tar, s.tar_off, NULL);
    for (uint32_t i = first; i < first + count && i < first + SAMPLES_MAX; i++)
        use_refs(x, i, &s, tar);
    free(tar);
}

void fuzz_use_index(const struct wt_shard_index *x, const uint8_t *object) {
    FUZZ_CHECK(x->samples > 0 && x->n_fields > 0 && x->n_fields <= WT_MAX_FIELDS);
    for (uint32_t i = 0; i < x->samples && i < SAMPLES_MAX; i++) {
        use_texts(x, i);
        use_span(x, i, 1, object);
    }
    for (uint32_t f = 0; f < x->n_fields; f++)
        FUZZ_CHECK(wt_shard_field(x, x->field[f]) == (int)f);
    use_span(x, 0, x->samples, object);
}

void fuzz_make_shard(enum wt_codec codec, struct wt_shard_out *out) {
    struct wt_shard_opts opts = {.codec = codec, .sidecars = true};
    struct wt_shard_writer *w = NULL;
    FUZZ_CHECK(wt_shard_writer_new(&opts, &w, NULL) == 0);
    for (uint32_t i = 0; i < 3; i++) {
        uint16_t pixels[12], mask[12];
        char key[32];
        for (uint32_t k = 0; k < 12; k++) {
            pixels[k] = (uint16_t)(k * 77 + i);
            mask[k] = k % 2;
        }
        struct wt_tensor tensors[] = {
            {.name = "", .shape = {WT_DTYPE_U16, 2, {3, 4}}, .data = pixels},
            {.name = "mask", .shape = {WT_DTYPE_U8, 1, {12}}, .data = mask},
        };
        snprintf(key, sizeof key, "lot/w%u/s%u", i / 2, i);
        struct wt_sample_in s = {.key = key,
                                 .id = i,
                                 .label = (int32_t)i - 1,
                                 .json = i ? "{\"x\":1}" : NULL,
                                 .tensors = tensors,
                                 .n_tensors = i == 1 ? 1 : 2};
        FUZZ_CHECK(wt_shard_writer_add(w, &s, NULL) == 0);
    }
    FUZZ_CHECK(wt_shard_writer_finish(w, out, NULL) == 0);
    wt_shard_writer_free(w);
}
