/* Shards: what was written is read back, for both codecs; whole, in parts, by tensor; and what a
 * writer refuses. */
#include "shard_kit.h"

#include "core/tar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct kit_recipe recipes[] = {
    {.samples = 1, .rows = 3, .cols = 5},
    {.samples = 300,
     .rows = 52,
     .cols = 52,
     .sidecars = true,
     .mask_every = 3,
     .unlabelled_every = 4},
    {.samples = 40,
     .rows = 20,
     .cols = 31,
     .n_multihot = 38,
     .mask_every = 1,
     .unlabelled_every = 5},
    {.samples = 7, .rows = 512, .cols = 300, .sidecars = true, .mask_every = 2},
    {.samples = 3, .rows = 1500, .cols = 1024, .mask_every = 2, .unlabelled_every = 2},
    {.samples = 2, .rows = 2, .cols = 700000}, /* a row of more than a block */
};
enum { N_RECIPES = sizeof recipes / sizeof recipes[0] };

static void open_or_fail(const struct wt_shard_out *out, enum wt_codec codec,
                         struct wt_shard_index *x) {
    struct wt_err err = {0};
    if (kit_open(out->data, out->size, codec, x, &err) < 0)
        fail_msg("open: %s", err.text);
}

static void read_range(const struct kit_recipe *r, const struct wt_shard_index *x,
                       const uint8_t *object, uint32_t first, uint32_t count) {
    uint8_t *tar = NULL;
    uint64_t tar_off = 0;
    struct wt_err err = {0};
    if (kit_fetch(x, object, first, count, &tar, &tar_off, &err) < 0)
        fail_msg("fetch: %s", err.text);
    kit_check(r, x, first, count, tar, tar_off);
    free(tar);
}

static void round_trip(const struct kit_recipe *r) {
    struct wt_shard_out out;
    struct wt_shard_index x;
    kit_build(r, &out);
    open_or_fail(&out, r->codec, &x);
    assert_int_equal(x.size, out.size);
    assert_int_equal(x.tar_size, out.tar_size);
    assert_true(wt_hash_equal(out.hash, wt_hash(out.data, out.size)));
    read_range(r, &x, out.data, 0, r->samples);
    for (uint32_t i = 0; i < r->samples; i += 1 + r->samples / 20) {
        read_range(r, &x, out.data, i, 1);
        read_range(r, &x, out.data, i, r->samples - i);
    }
    wt_shard_index_free(&x);
    wt_shard_out_free(&out);
}

static void both_codecs_round_trip(void **state) {
    (void)state;
    for (int i = 0; i < N_RECIPES; i++) {
        struct kit_recipe r = recipes[i];
        r.codec = WT_CODEC_TAR;
        round_trip(&r);
        r.codec = WT_CODEC_ZSTD;
        round_trip(&r);
    }
}

/* A tensor of 64 KiB or more: frames of its own, of whole rows; none shared with another sample. */
static void large_tensors_have_own_frames(void **state) {
    (void)state;
    struct kit_recipe r = recipes[4];
    struct wt_shard_out out;
    struct wt_shard_index x;
    r.codec = WT_CODEC_ZSTD;
    kit_build(&r, &out);
    open_or_fail(&out, r.codec, &x);
    int f = wt_shard_field(&x, "");
    for (uint32_t i = 0; i < r.samples; i++) {
        struct wt_span s = wt_shard_span(&x, i, 1);
        assert_int_equal(s.tar_off, x.start[i]);
        assert_int_equal(s.tar_len, x.start[i + 1] - x.start[i]);
        const struct wt_field_ref *ref = wt_shard_ref(&x, i, (uint32_t)f);
        assert_int_equal(x.rows_per_block[ref->shape_id], 512); /* 1 MiB of 2048-byte rows */
        uint32_t k = 0;
        while (x.frame[k].tar_off < ref->off)
            k++;
        for (uint64_t at = 0; at < ref->len; at += 1 << 20)
            assert_int_equal(x.frame[k++].tar_off, ref->off + at);
        assert_int_equal(x.frame[k].tar_off, ref->off + ref->len);
    }
    wt_shard_index_free(&x);
    wt_shard_out_free(&out);
}

static void small_samples_share_frames(void **state) {
    (void)state;
    struct kit_recipe r = recipes[1];
    struct wt_shard_out out;
    struct wt_shard_index x;
    r.codec = WT_CODEC_ZSTD;
    kit_build(&r, &out);
    open_or_fail(&out, r.codec, &x);
    assert_true(x.n_frames > 4 && x.n_frames < 20);
    for (uint32_t k = 0, i = 0; k + 1 < x.n_frames; k++) { /* cut only between samples */
        while (i < x.samples && x.start[i] < x.frame[k].tar_off)
            i++;
        assert_int_equal(x.start[i], x.frame[k].tar_off);
        uint64_t len = x.frame[k + 1].tar_off - x.frame[k].tar_off;
        assert_true(len < 280 << 10);
        if (k + 2 < x.n_frames)
            assert_true(len >= WT_SMALL_FRAME);
    }
    assert_int_equal(x.frame[x.n_frames - 1].off, out.index_off);
    assert_true(out.size < out.tar_size);
    wt_shard_index_free(&x);
    wt_shard_out_free(&out);
}

/* The tar as a stranger sees it: names, adjacency, sidecars, the index last. */
static void members_are_webdataset(void **state) {
    (void)state;
    struct kit_recipe r = {.samples = 4,
                           .rows = 4,
                           .cols = 4,
                           .sidecars = true,
                           .mask_every = 2,
                           .unlabelled_every = 2};
    static const char *const want[] = {
        "lotA/wB/s0000.mask.npy", "lotA/wB/s0000.npy",  "lotA/wB/s0000.json",
        "lotA/wB/s0001.npy",      "lotA/wB/s0001.cls",  "lotA/wB/s0001.json",
        "lotA/wB/s0002.mask.npy", "lotA/wB/s0002.npy",  "lotA/wB/s0003.npy",
        "lotA/wB/s0003.cls",      "lotA/wB/s0003.json", "__index__"};
    struct wt_shard_out out;
    struct wt_tar_iter it;
    struct wt_tar_entry e;
    struct wt_npy npy;
    kit_build(&r, &out);
    wt_tar_iter_init(&it, out.data, out.size);
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_int_equal(wt_tar_next(&it, &e, NULL), 1);
        assert_string_equal(e.name, want[i]);
        if (strstr(e.name, ".npy")) {
            assert_int_equal(wt_npy_parse(out.data + e.data_off, e.size, &npy, NULL), 0);
            assert_int_equal(npy.data_off + npy.data_len, e.size);
        }
        if (strcmp(e.name, "lotA/wB/s0003.cls") == 0)
            assert_memory_equal(out.data + e.data_off, "3", 1);
    }
    assert_int_equal(out.index_off, e.header_off);
    assert_int_equal(wt_tar_next(&it, &e, NULL), 0);
    assert_int_equal(it.pos + WT_TAR_END, out.size);
    wt_shard_out_free(&out);
}

static void equal_content_gives_equal_bytes(void **state) {
    (void)state;
    for (int codec = WT_CODEC_TAR; codec <= WT_CODEC_ZSTD; codec++) {
        struct kit_recipe r = recipes[1];
        struct wt_shard_out a, b;
        r.codec = (enum wt_codec)codec;
        kit_build(&r, &a);
        kit_build(&r, &b);
        assert_true(wt_hash_equal(a.hash, b.hash));
        assert_int_equal(a.size, b.size);
        wt_shard_out_free(&a);
        wt_shard_out_free(&b);
    }
}

static void verify_field_copies_and_checks(void **state) {
    (void)state;
    struct kit_recipe r = recipes[4];
    struct wt_shard_out out;
    struct wt_shard_index x;
    struct wt_err err = {0};
    r.codec = WT_CODEC_TAR;
    kit_build(&r, &out);
    open_or_fail(&out, r.codec, &x);
    uint32_t f = (uint32_t)wt_shard_field(&x, "");
    const struct wt_field_ref *ref = wt_shard_ref(&x, 1, f);
    uint8_t *copy = calloc(1, ref->len), *src = out.data + ref->off;
    assert_non_null(copy);
    assert_int_equal(wt_shard_verify_field(&x, 1, f, src, copy, &err), 0);
    assert_memory_equal(copy, src, ref->len);
    src[ref->len - 1] ^= 1;
    assert_int_equal(wt_shard_verify_field(&x, 1, f, src, copy, &err), WT_ECORRUPT);
    assert_non_null(strstr(err.text, "lotA/wB/s0001"));
    assert_int_equal(wt_shard_verify_field(&x, 1, f, src, NULL, &err), WT_ECORRUPT);
    assert_int_equal(wt_shard_verify(&x, 0, 1, out.data, 0, &err), 0);
    assert_int_equal(wt_shard_verify(&x, 1, 2, out.data + x.start[1], x.start[1], &err),
                     WT_ECORRUPT);
    uint32_t mask = (uint32_t)wt_shard_field(&x, "mask"); /* sample 1 has none */
    assert_int_equal(wt_shard_verify_field(&x, 1, mask, src, copy, &err), 0);
    free(copy);
    wt_shard_index_free(&x);
    wt_shard_out_free(&out);
}

/* ---- shapes at the edge ---- */

static void odd_shapes_round_trip(void **state) {
    (void)state;
    static const uint8_t data[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    const struct wt_tensor tensors[] = {
        {"", {WT_DTYPE_C128, 0, {0}}, data},
        {"empty", {WT_DTYPE_F32, 2, {0, 9}}, NULL},
        {"line", {WT_DTYPE_U8, 1, {16}}, data},
        {"deep", {WT_DTYPE_U16, 8, {1, 2, 1, 2, 1, 2, 1, 1}}, data},
    };
    const struct wt_sample_in s = {
        .key = "a", .id = 1, .label = 5, .tensors = tensors, .n_tensors = 4};
    for (int codec = WT_CODEC_TAR; codec <= WT_CODEC_ZSTD; codec++) {
        struct wt_shard_opts opts = {.codec = (enum wt_codec)codec};
        struct wt_shard_writer *w = NULL;
        struct wt_shard_out out;
        struct wt_shard_index x;
        uint8_t *tar = NULL;
        uint64_t tar_off = 0;
        assert_int_equal(wt_shard_writer_new(&opts, &w, NULL), 0);
        assert_int_equal(wt_shard_writer_add(w, &s, NULL), 0);
        assert_int_equal(wt_shard_writer_finish(w, &out, NULL), 0);
        open_or_fail(&out, opts.codec, &x);
        assert_int_equal(kit_fetch(&x, out.data, 0, 1, &tar, &tar_off, NULL), 0);
        for (uint32_t f = 0; f < 4; f++) {
            const struct wt_field_ref *ref = wt_shard_ref(&x, 0, f);
            assert_true(wt_shape_equal(&x.shape[ref->shape_id], &tensors[f].shape));
            assert_int_equal(ref->len, f == 1 ? 0 : 16);
            assert_memory_equal(tar + ref->off - tar_off, data, ref->len);
        }
        free(tar);
        wt_shard_index_free(&x);
        wt_shard_out_free(&out);
        wt_shard_writer_free(w);
    }
}

/* ---- what a writer refuses ---- */

static const uint8_t byte = 7;
static const struct wt_tensor one = {"", {WT_DTYPE_U8, 1, {1}}, &byte};

static int add_key(struct wt_shard_writer *w, const char *key) {
    struct wt_sample_in s = {.key = key, .tensors = &one, .n_tensors = 1};
    return wt_shard_writer_add(w, &s, NULL);
}

static struct wt_shard_writer *new_writer(uint32_t n_multihot) {
    struct wt_shard_opts opts = {.n_multihot = n_multihot};
    struct wt_shard_writer *w = NULL;
    assert_int_equal(wt_shard_writer_new(&opts, &w, NULL), 0);
    return w;
}

static void bad_keys_are_refused(void **state) {
    (void)state;
    struct wt_shard_writer *w = new_writer(0);
    char key[WT_KEY_MAX + 1];
    static const char *const bad[] = {"",    "/a",        "a/",    "a//b", "a.b",
                                      "a b", "a\xc3\xa4", "__a/b", "a\\b"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(add_key(w, bad[i]), WT_EINVAL);
    memset(key, 'k', sizeof key);
    key[WT_KEY_MAX] = '\0';
    assert_int_equal(add_key(w, key), WT_EINVAL);
    assert_int_equal(wt_shard_writer_tar_bytes(w), 0);
    key[WT_KEY_MAX - 1] = '\0';
    assert_int_equal(add_key(w, key), 0);
    assert_int_equal(add_key(w, key), WT_EINVAL); /* twice the same */
    assert_int_equal(add_key(w, "lot/w/a-b+c=d%20~e@f_g"), 0);
    assert_int_equal(wt_shard_writer_samples(w), 2);
    wt_shard_writer_free(w);
}

static int add_tensor(struct wt_shard_writer *w, const char *name, struct wt_shape shape,
                      const void *data, struct wt_err *err) {
    struct wt_tensor t[2] = {{name, shape, data}, {"", shape, data}};
    struct wt_sample_in s = {.key = "k", .tensors = t, .n_tensors = 2};
    return wt_shard_writer_add(w, &s, err);
}

static void bad_tensors_are_refused(void **state) {
    (void)state;
    struct wt_shard_writer *w = new_writer(0);
    struct wt_err err = {0};
    struct wt_shape u8 = {WT_DTYPE_U8, 1, {1}};
    static const char *const names[] = {"", "Mask", "a.b", "a/b",
                                        "abcdefghijklmnopqrstuvwxyz0123456789"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(add_tensor(w, names[i], u8, &byte, &err), WT_EINVAL);
    assert_int_equal(add_tensor(w, "m", u8, NULL, &err), WT_EINVAL);
    struct wt_shape none = {WT_DTYPE_NONE, 1, {1}}, deep = {WT_DTYPE_U8, 9, {1}};
    struct wt_shape huge = {WT_DTYPE_F64, 3, {UINT32_MAX, UINT32_MAX, 2}};
    struct wt_shape wide = {WT_DTYPE_U8, 2, {2, (1u << 30) + 1}};
    assert_int_equal(add_tensor(w, "m", none, &byte, &err), WT_EINVAL);
    assert_int_equal(add_tensor(w, "m", deep, &byte, &err), WT_EINVAL);
    assert_int_equal(add_tensor(w, "m", huge, &byte, &err), WT_EINVAL);
    assert_int_equal(add_tensor(w, "m", wide, &byte, &err), WT_EINVAL);
    assert_non_null(strstr(err.text, "'k'"));
    struct wt_sample_in nothing = {.key = "k", .tensors = &one};
    assert_int_equal(wt_shard_writer_add(w, &nothing, &err), WT_EINVAL);
    struct wt_shard_out out = {.size = 77};
    assert_int_equal(wt_shard_writer_finish(w, &out, &err), WT_EINVAL);
    assert_int_equal(out.size, 77);
    wt_shard_writer_free(w);
}

static void key_and_field_must_fit_a_name(void **state) {
    (void)state;
    struct wt_shard_writer *w = new_writer(0);
    char key[WT_KEY_MAX];
    memset(key, 'k', sizeof key);
    key[WT_KEY_MAX - 1] = '\0'; /* 91 + ".mask.npy" = 100 */
    struct wt_tensor t = {"mask", {WT_DTYPE_U8, 1, {1}}, &byte};
    struct wt_sample_in s = {.key = key, .tensors = &t, .n_tensors = 1};
    assert_int_equal(wt_shard_writer_add(w, &s, NULL), WT_EINVAL);
    key[90] = '\0';
    assert_int_equal(wt_shard_writer_add(w, &s, NULL), 0);
    wt_shard_writer_free(w);
}

static void a_seventeenth_field_is_refused(void **state) {
    (void)state;
    struct wt_shard_writer *w = new_writer(0);
    for (int i = 0; i < WT_MAX_FIELDS + 1; i++) {
        char name[16], key[16];
        snprintf(name, sizeof name, "f%d", i);
        snprintf(key, sizeof key, "k%d", i);
        struct wt_tensor t = {name, {WT_DTYPE_U8, 1, {1}}, &byte};
        struct wt_sample_in s = {.key = key, .tensors = &t, .n_tensors = 1};
        assert_int_equal(wt_shard_writer_add(w, &s, NULL), i < WT_MAX_FIELDS ? 0 : WT_EINVAL);
    }
    assert_int_equal(wt_shard_writer_samples(w), WT_MAX_FIELDS);
    wt_shard_writer_free(w);
}

static void bad_labels_and_json_are_refused(void **state) {
    (void)state;
    struct wt_shard_writer *w = new_writer(0), *multi = new_writer(3);
    static const uint8_t good_hot[3] = {0, 1, 1}, bad_hot[3] = {0, 2, 0};
    struct wt_sample_in s = {.key = "k", .tensors = &one, .n_tensors = 1, .label = -2};
    assert_int_equal(wt_shard_writer_add(w, &s, NULL), WT_EINVAL);
    s.label = WT_MAX_CLASSES;
    assert_int_equal(wt_shard_writer_add(w, &s, NULL), WT_EINVAL);
    s.label = 0;
    s.multihot = good_hot;
    assert_int_equal(wt_shard_writer_add(w, &s, NULL), WT_EINVAL);
    assert_int_equal(wt_shard_writer_add(multi, &s, NULL), 0);
    s.key = "k2";
    s.multihot = bad_hot;
    assert_int_equal(wt_shard_writer_add(multi, &s, NULL), WT_EINVAL);
    s.multihot = NULL;
    static const char *const bad_json[] = {"", "{", "[1]", "3", "{\"a\": \"\xff\"}"};
    for (size_t i = 0; i < sizeof bad_json / sizeof bad_json[0]; i++) {
        s.json = bad_json[i];
        assert_int_equal(wt_shard_writer_add(w, &s, NULL), WT_EINVAL);
    }
    wt_shard_writer_free(w);
    wt_shard_writer_free(multi);
    struct wt_shard_writer *none = NULL;
    struct wt_shard_opts level = {.codec = WT_CODEC_ZSTD, .level = 99};
    assert_int_equal(wt_shard_writer_new(&level, &none, NULL), WT_EINVAL);
    assert_null(none);
}

static void a_writer_is_used_again(void **state) {
    (void)state;
    for (int codec = WT_CODEC_TAR; codec <= WT_CODEC_ZSTD; codec++) {
        struct wt_shard_opts opts = {.codec = (enum wt_codec)codec};
        struct wt_shard_writer *w = NULL;
        struct wt_shard_out a, b;
        assert_int_equal(wt_shard_writer_new(&opts, &w, NULL), 0);
        assert_int_equal(add_key(w, "same"), 0);
        assert_int_equal(wt_shard_writer_finish(w, &a, NULL), 0);
        assert_int_equal(wt_shard_writer_samples(w), 0);
        assert_int_equal(add_key(w, "same"), 0);
        assert_int_equal(wt_shard_writer_finish(w, &b, NULL), 0);
        assert_true(wt_hash_equal(a.hash, b.hash));
        wt_shard_out_free(&a);
        wt_shard_out_free(&b);
        wt_shard_writer_free(w);
    }
}

static void key_parts_are_escaped(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
    } rows[] = {{"abc", "abc"},   {"a.b", "a%2Eb"},       {"a/b c", "a%2Fb%20c"},
                {"50%", "50%25"}, {"\xc3\xa4", "%C3%A4"}, {"__x", "%5F_x"},
                {"_x", "_x"}};
    char out[WT_KEY_MAX];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(wt_key_escape(rows[i].text, out, sizeof out), 0);
        assert_string_equal(out, rows[i].part);
        struct wt_shard_writer *w = new_writer(0);
        assert_int_equal(add_key(w, out), 0);
        wt_shard_writer_free(w);
    }
    assert_int_equal(wt_key_escape("", out, sizeof out), WT_EINVAL);
    assert_int_equal(wt_key_escape("abcd", out, 4), WT_EINVAL);
    assert_int_equal(wt_key_escape("abc", out, 4), 0);
    char text[200];
    memset(text, '.', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(wt_key_escape(text, out, sizeof out), WT_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_codecs_round_trip),
        cmocka_unit_test(large_tensors_have_own_frames),
        cmocka_unit_test(small_samples_share_frames),
        cmocka_unit_test(members_are_webdataset),
        cmocka_unit_test(equal_content_gives_equal_bytes),
        cmocka_unit_test(verify_field_copies_and_checks),
        cmocka_unit_test(odd_shapes_round_trip),
        cmocka_unit_test(bad_keys_are_refused),
        cmocka_unit_test(bad_tensors_are_refused),
        cmocka_unit_test(key_and_field_must_fit_a_name),
        cmocka_unit_test(a_seventeenth_field_is_refused),
        cmocka_unit_test(bad_labels_and_json_are_refused),
        cmocka_unit_test(a_writer_is_used_again),
        cmocka_unit_test(key_parts_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
