/*
 * Damaged shards: every bit of a small one is flipped, every cut at a block or a frame is tried,
 * and an index whose hash is right but whose content lies is refused too.
 *
 * In a plain tar some bytes may change unseen, because no reader of ours looks at them: headers of
 * members, headers of npy files, sidecars and padding (the object's content hash covers them). In a
 * .tar.zst a few bits may: those that decode to the very same bytes (unused bits of an entropy
 * stream, a match at another copy of the same text).
 */
#include "shard_kit.h"

#include "core/shard_format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct kit_recipe small = {.samples = 4,
                                        .rows = 5,
                                        .cols = 7,
                                        .sidecars = true,
                                        .mask_every = 2,
                                        .n_multihot = 5,
                                        .unlabelled_every = 3};

enum seen { DETECTED, UNCHANGED, WRONG };

/* Reads everything of an object: refused, or read with the right content, or believed though wrong.
 */
static enum seen read_all(const struct kit_recipe *r, const uint8_t *data, uint64_t size) {
    struct wt_shard_index x;
    uint8_t *tar = NULL;
    uint64_t tar_off = 0;
    if (kit_open(data, size, r->codec, &x, NULL) < 0)
        return DETECTED;
    enum seen seen = DETECTED;
    if (kit_fetch(&x, data, 0, x.samples, &tar, &tar_off, NULL) == 0)
        seen = kit_same(r, &x, 0, x.samples, tar, tar_off) ? UNCHANGED : WRONG;
    free(tar);
    wt_shard_index_free(&x);
    return seen;
}

/* Whether offset `at` of a plain tar lies in a tensor or in the index member. */
static bool matters(const struct wt_shard_index *x, uint64_t at) {
    for (uint32_t i = 0; i < x->samples * x->n_fields; i++)
        if (x->ref[i].len && at >= x->ref[i].off && at < x->ref[i].off + x->ref[i].len)
            return true;
    return at >= x->start[x->samples];
}

static void flipped_bits_of_a_tar(void **state) {
    (void)state;
    struct kit_recipe r = small;
    struct wt_shard_out out;
    struct wt_shard_index x;
    kit_build(&r, &out);
    assert_int_equal(kit_open(out.data, out.size, r.codec, &x, NULL), 0);
    for (uint64_t i = 0; i < out.size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            out.data[i] ^= (uint8_t)(1 << bit);
            assert_int_equal(read_all(&r, out.data, out.size),
                             matters(&x, i) ? DETECTED : UNCHANGED);
            out.data[i] ^= (uint8_t)(1 << bit);
        }
    }
    assert_int_equal(read_all(&r, out.data, out.size), UNCHANGED);
    wt_shard_index_free(&x);
    wt_shard_out_free(&out);
}

static void flipped_bits_of_a_zstd(void **state) {
    (void)state;
    struct kit_recipe r = small;
    struct wt_shard_out out;
    struct wt_shard_index x;
    r.codec = WT_CODEC_ZSTD;
    kit_build(&r, &out);
    assert_int_equal(kit_open(out.data, out.size, r.codec, &x, NULL), 0);
    uint64_t unseen = 0;
    for (uint64_t i = 0; i < out.size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            out.data[i] ^= (uint8_t)(1 << bit);
            enum seen seen = read_all(&r, out.data, out.size);
            assert_int_not_equal(seen, WRONG);
            unseen += seen == UNCHANGED;
            out.data[i] ^= (uint8_t)(1 << bit);
        }
    }
    assert_true(unseen * 50 < out.size * 8);
    wt_shard_index_free(&x);
    wt_shard_out_free(&out);
}

static int open_prefix(const struct kit_recipe *r, const uint8_t *data, uint64_t len) {
    uint8_t *copy = malloc(len + 1);
    struct wt_shard_index x;
    assert_non_null(copy);
    memcpy(copy, data, len);
    int rc = kit_open(copy, len, r->codec, &x, NULL);
    if (rc == 0)
        wt_shard_index_free(&x);
    free(copy);
    return rc;
}

static void cut_tars_are_refused(void **state) {
    (void)state;
    struct wt_shard_out out;
    kit_build(&small, &out);
    for (uint64_t len = 0; len < out.size; len += 512)
        assert_int_equal(open_prefix(&small, out.data, len), WT_ECORRUPT);
    for (uint64_t cut = 1; cut < 512; cut++)
        assert_int_equal(open_prefix(&small, out.data, out.size - cut), WT_ECORRUPT);
    uint8_t *longer = calloc(1, out.size + 512); /* a block too many */
    assert_non_null(longer);
    memcpy(longer, out.data, out.size);
    assert_int_equal(open_prefix(&small, longer, out.size + 512), WT_ECORRUPT);
    free(longer);
    wt_shard_out_free(&out);
}

static void cut_zstds_are_refused(void **state) {
    (void)state;
    struct kit_recipe r = {.codec = WT_CODEC_ZSTD, .samples = 300, .rows = 52, .cols = 52};
    struct wt_shard_out out;
    struct wt_shard_index x;
    kit_build(&r, &out);
    assert_int_equal(kit_open(out.data, out.size, r.codec, &x, NULL), 0);
    assert_true(x.n_frames > 4);
    for (uint32_t f = 0; f <= x.n_frames; f++)
        assert_int_equal(open_prefix(&r, out.data, x.frame[f].off), WT_ECORRUPT);
    for (uint64_t cut = 1; cut < 200; cut++)
        assert_int_equal(open_prefix(&r, out.data, out.size - cut), WT_ECORRUPT);
    wt_shard_index_free(&x);
    wt_shard_out_free(&out);
}

/* A frame left out, the table rewritten so that it adds up: the index still knows the old one. */
static void a_missing_frame_is_refused(void **state) {
    (void)state;
    struct kit_recipe r = {.codec = WT_CODEC_ZSTD, .samples = 300, .rows = 52, .cols = 52};
    struct wt_shard_out out;
    struct wt_shard_index x;
    kit_build(&r, &out);
    assert_int_equal(kit_open(out.data, out.size, r.codec, &x, NULL), 0);
    uint32_t n = x.n_frames;
    uint64_t gone = x.frame[1].off, table = 17 + 8 * (uint64_t)n;
    uint8_t *cut = malloc(out.size);
    assert_non_null(cut);
    uint64_t frames = out.size - table - gone;
    memcpy(cut, out.data + gone, frames);
    uint8_t *p = cut + frames;
    memcpy(p, out.data + out.size - table, 8);
    wt_put32(p + 4, (uint32_t)(table - 8 - 8));
    memcpy(p + 8, out.data + out.size - table + 16, table - 16);
    wt_put32(p + table - 8 - 9, n - 1);
    struct wt_err err = {0};
    struct wt_shard_index y;
    assert_int_equal(kit_open(cut, frames + table - 8, r.codec, &y, &err), WT_ECORRUPT);
    free(cut);
    wt_shard_index_free(&x);
    wt_shard_out_free(&out);
}

/* Two entries of the seek table changed so that the sums stay: only the hash in the index tells. */
static void a_changed_table_is_refused(void **state) {
    (void)state;
    struct kit_recipe r = {.codec = WT_CODEC_ZSTD, .samples = 300, .rows = 52, .cols = 52};
    struct wt_shard_out out;
    struct wt_shard_index x;
    kit_build(&r, &out);
    assert_int_equal(kit_open(out.data, out.size, r.codec, &x, NULL), 0);
    uint8_t *entry = out.data + out.size - WT_SEEK_FOOT - 8 * (uint64_t)x.n_frames;
    wt_shard_index_free(&x);
    for (int which = 0; which < 8; which += 4) {
        wt_put32(entry + which, wt_get32(entry + which) + 1);
        wt_put32(entry + 8 + which, wt_get32(entry + 8 + which) - 1);
        struct wt_err err = {0};
        assert_int_equal(kit_open(out.data, out.size, r.codec, &x, &err), WT_ECORRUPT);
        assert_non_null(strstr(err.text, "seek table"));
        wt_put32(entry + which, wt_get32(entry + which) - 1);
        wt_put32(entry + 8 + which, wt_get32(entry + 8 + which) + 1);
    }
    wt_shard_out_free(&out);
}

/* ---- an index that lies, under a right hash ---- */

static void sign_payload(uint8_t *payload, uint64_t len) {
    wt_put64(payload + len - WT_INDEX_TRAILER, wt_hash64(payload, len - WT_INDEX_TRAILER));
}

/* Every u32 of the payload takes hostile values. Whatever is accepted must be safe to use. */
static void lying_indexes_are_refused_or_safe(void **state) {
    (void)state;
    static const uint32_t lies[] = {0,          1,          7,   0x7fffffff, 0x80000000,
                                    0xffffffff, 0xfffffffe, 513, 65537};
    struct wt_shard_out out;
    kit_build(&small, &out);
    uint64_t len = out.size - out.index_off - WT_TAR_BLOCK - WT_TAR_END;
    uint8_t *payload = out.data + out.index_off + WT_TAR_BLOCK;
    for (uint64_t at = 0; at + WT_INDEX_TRAILER < len; at += 4) {
        for (size_t k = 0; k < sizeof lies / sizeof lies[0]; k++) {
            uint32_t before = wt_get32(payload + at);
            wt_put32(payload + at, lies[k]);
            sign_payload(payload, len);
            struct wt_shard_index x;
            if (kit_open(out.data, out.size, WT_CODEC_TAR, &x, NULL) == 0) {
                uint8_t *tar = NULL; /* a sanitizer watches */
                uint64_t tar_off;
                if (kit_fetch(&x, out.data, 0, x.samples, &tar, &tar_off, NULL) == 0)
                    free(tar);
                for (uint32_t i = 0; i < x.samples; i++)
                    assert_true(strlen(wt_shard_key(&x, i)) + strlen(x.text + x.json_off[i]) > 0);
                wt_shard_index_free(&x);
            }
            wt_put32(payload + at, before);
        }
    }
    wt_shard_out_free(&out);
}

struct lie {
    uint32_t at; /* in the header, or in a section */
    int section; /* -1: the header */
    uint32_t value;
    const char *part; /* of the message */
};

static void lies_are_named(void **state) {
    (void)state;
    static const struct lie lies[] = {
        {WT_AT_SAMPLES, -1, 0, "counts"},
        {WT_AT_SAMPLES, -1, 0x40000000, "outside"},
        {WT_AT_FIELDS, -1, 17, "counts"},
        {WT_AT_SHAPES, -1, 0xffffffff, "outside"},
        {WT_AT_SUMS, -1, 0xfffffff0, "outside"},
        {WT_AT_TEXT_LEN, -1, 0xffffffff, "outside"},
        {WT_AT_CODEC, -1, WT_CODEC_ZSTD, "kind"},
        {WT_AT_VERSION, -1, 2, "version 2"},
        {WT_AT_TAR_SIZE, -1, 512, "size"},
        {WT_AT_FRAMES, -1, 1, "frames"},
        {0, WT_SEC_FIELDS, 0x41414141, "field name"},
        {0, WT_SEC_SHAPES, 99, "shape"},
        {4, WT_SEC_SHAPES, 9, "shape"},
        {8, WT_SEC_SHAPES, 0xffffffff, "larger"},
        {40, WT_SEC_SHAPES, 0, "rows"},
        {0, WT_SEC_START, 512, "start"},
        {8, WT_SEC_START, 1, "order"},
        {8, WT_SEC_START, 0, "order"},
        {0, WT_SEC_REF_OFF, 0, "outside"},
        {4, WT_SEC_REF_OFF, 0xffffffff, "outside"},
        {0, WT_SEC_REF_SHAPE, 1000, "shape"},
        {0, WT_SEC_LABEL, 0xfffffffe, "label"},
        {0, WT_SEC_MULTIHOT, 0xffffffff, "classes"},
        {0, WT_SEC_KEY, 0, "key"},
        {0, WT_SEC_KEY, 0xffffff, "text"},
        {0, WT_SEC_JSON, 0xffffff, "text"},
        {0, WT_SEC_TEXT, 0x41414141, "text"},
    };
    struct wt_shard_out out;
    kit_build(&small, &out);
    uint64_t len = out.size - out.index_off - WT_TAR_BLOCK - WT_TAR_END;
    uint8_t *payload = out.data + out.index_off + WT_TAR_BLOCK;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        const struct lie *lie = &lies[i];
        uint8_t *p = payload + lie->at;
        if (lie->section >= 0)
            p += wt_get32(payload + WT_AT_SECTIONS + 4 * lie->section);
        uint32_t before = wt_get32(p);
        struct wt_shard_index x = {.samples = 77};
        struct wt_err err = {0};
        wt_put32(p, lie->value);
        sign_payload(payload, len);
        int rc = kit_open(out.data, out.size, WT_CODEC_TAR, &x, &err);
        if (rc >= 0 || !strstr(err.text, lie->part))
            fail_msg("lie %zu: %d '%s'", i, rc, err.text);
        assert_int_equal(x.samples, 77);
        wt_put32(p, before);
    }
    wt_shard_out_free(&out);
}

static void locate_asks_for_more(void **state) {
    (void)state;
    for (int codec = WT_CODEC_TAR; codec <= WT_CODEC_ZSTD; codec++) {
        struct kit_recipe r = small;
        struct wt_shard_out out;
        uint64_t at = 0;
        r.codec = (enum wt_codec)codec;
        kit_build(&r, &out);
        const uint8_t *end = out.data + out.size;
        assert_int_equal(wt_shard_locate(end - 4, 4, out.size, r.codec, &at, NULL), WT_ERANGE);
        assert_true(at < out.size);
        assert_int_equal(
            wt_shard_locate(out.data + at, out.size - at, out.size, r.codec, &at, NULL), 0);
        assert_int_equal(at, out.index_off);
        struct wt_shard_index x;
        assert_int_equal(wt_shard_index_parse(out.data, 10, at, out.size, r.codec, &x, NULL),
                         WT_EINVAL);
        assert_int_equal(wt_shard_index_parse(out.data + at + 1, out.size - at - 1, at + 1,
                                              out.size, r.codec, &x, NULL),
                         WT_ECORRUPT);
        wt_shard_out_free(&out);
    }
}

/* One kind read as the other. */
static void the_wrong_codec_is_refused(void **state) {
    (void)state;
    struct kit_recipe r = small;
    struct wt_shard_out out;
    struct wt_shard_index x;
    kit_build(&r, &out);
    assert_int_equal(kit_open(out.data, out.size, WT_CODEC_ZSTD, &x, NULL), WT_ECORRUPT);
    wt_shard_out_free(&out);
    r.codec = WT_CODEC_ZSTD;
    kit_build(&r, &out);
    assert_int_equal(kit_open(out.data, out.size, WT_CODEC_TAR, &x, NULL), WT_ECORRUPT);
    wt_shard_out_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flipped_bits_of_a_tar),
        cmocka_unit_test(flipped_bits_of_a_zstd),
        cmocka_unit_test(cut_tars_are_refused),
        cmocka_unit_test(cut_zstds_are_refused),
        cmocka_unit_test(a_missing_frame_is_refused),
        cmocka_unit_test(a_changed_table_is_refused),
        cmocka_unit_test(lying_indexes_are_refused_or_safe),
        cmocka_unit_test(lies_are_named),
        cmocka_unit_test(locate_asks_for_more),
        cmocka_unit_test(the_wrong_codec_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
