/* The manifest, shards.idx and names of objects: round trips, hostile JSON, wrong hashes and
 * totals, a million shards. */
#include "core/bytes.h"
#include "core/dataset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* ---- a data set of n shards ---- */

struct made {
    struct wt_manifest m;
    uint8_t *idx;
    const void **parts;
    size_t *lens;
};

static struct wt_shard_rec record(uint64_t i, uint64_t first) {
    uint32_t samples = 1 + (uint32_t)(i % 5);
    return (struct wt_shard_rec){
        .hash = {.hi = i * 0x9e3779b97f4a7c15, .lo = ~i},
        .size = 40000 + i % 1000,
        .tar_size = 50000 + i % 1000,
        .index_off = 30000,
        .first = first,
        .samples = samples,
        .codec = WT_CODEC_ZSTD,
    };
}

static char *copy_text(const char *text) {
    char *copy = strdup(text);
    assert_non_null(copy);
    return copy;
}

static void fill_manifest(struct wt_manifest *m) {
    snprintf(m->name, sizeof m->name, "wafers-1");
    m->generation = 3;
    m->created = 1700000000;
    m->pixel_bytes = 1000;
    m->labelled = 7;
    m->lots = 2;
    m->wafers = 5;
    m->label_kind = WT_LABEL_CLASS;
    m->n_classes = 2;
    m->classes = calloc(2, sizeof *m->classes);
    m->class_count = calloc(2, sizeof *m->class_count);
    assert_true(m->classes && m->class_count);
    m->classes[0] = copy_text("Edge-Ring");
    m->classes[1] = copy_text("\xc3\xa4 \"quoted\"");
    m->class_count[0] = 3;
    m->class_count[1] = 4;
    m->n_fields = 2;
    m->field[0] = (struct wt_field_info){"", {WT_DTYPE_U8, 2, {52, 52}}};
    m->field[1] = (struct wt_field_info){"mask", {WT_DTYPE_F32, UINT32_MAX, {0}}};
}

static void make(struct made *d, uint64_t shards, uint32_t per_part) {
    *d = (struct made){0};
    fill_manifest(&d->m);
    d->m.shards = shards;
    d->m.n_parts = (uint32_t)((shards + per_part - 1) / per_part);
    d->idx = malloc(shards * WT_IDX_RECORD);
    d->m.part = calloc(d->m.n_parts, sizeof *d->m.part);
    d->parts = calloc(d->m.n_parts, sizeof *d->parts);
    d->lens = calloc(d->m.n_parts, sizeof *d->lens);
    assert_true(d->idx && d->m.part && d->parts && d->lens);
    for (uint64_t i = 0; i < shards; i++) {
        struct wt_shard_rec rec = record(i, d->m.samples);
        wt_shard_rec_encode(&rec, d->idx + i * WT_IDX_RECORD);
        d->m.samples += rec.samples;
        d->m.stored_bytes += rec.size;
        d->m.tar_bytes += rec.tar_size;
    }
    for (uint32_t p = 0; p < d->m.n_parts; p++) {
        uint64_t first = (uint64_t)p * per_part;
        uint64_t n = shards - first < per_part ? shards - first : per_part;
        d->parts[p] = d->idx + first * WT_IDX_RECORD;
        d->lens[p] = n * WT_IDX_RECORD;
        d->m.part[p] =
            (struct wt_idx_part){.hash = wt_hash(d->parts[p], d->lens[p]), .records = (uint32_t)n};
    }
}

static void unmake(struct made *d) {
    wt_manifest_free(&d->m);
    free(d->idx);
    free(d->parts);
    free(d->lens);
}

/* ---- names ---- */

static void names_have_one_spelling(void **state) {
    (void)state;
    char name[WT_OBJECT_NAME], set[WT_DATASET_NAME], hex[WT_HASH_HEX];
    struct wt_shard_rec rec = record(12345678, 0);
    struct wt_hash hash;
    uint64_t number = 0;
    wt_hash_hex(rec.hash, hex);
    wt_shard_name("d.1_x-y", 12345678, &rec, name);
    char want[WT_OBJECT_NAME];
    snprintf(want, sizeof want, "d.1_x-y/shards/1234/12345678-%s.tar.zst", hex);
    assert_string_equal(name, want);
    assert_int_equal(wt_shard_name_parse(name, set, &number, &hash), 0);
    assert_string_equal(set, "d.1_x-y");
    assert_int_equal(number, 12345678);
    assert_true(wt_hash_equal(hash, rec.hash));
    rec.codec = WT_CODEC_TAR;
    wt_shard_name("d", 7, &rec, name);
    snprintf(want, sizeof want, "d/shards/0000/00000007-%s.tar", hex);
    assert_string_equal(name, want);
    for (uint64_t i = 9999; i <= 10000; i++) { /* 10,000 to a folder */
        wt_shard_name("d", i, &rec, name);
        snprintf(want, sizeof want, "d/shards/%04u/%08u-%s.tar", (unsigned)(i / 10000), (unsigned)i,
                 hex);
        assert_string_equal(name, want);
    }
    wt_shard_name("d", UINT64_C(1234567890123), &rec, name);
    assert_int_equal(wt_shard_name_parse(name, set, &number, &hash), 0);
    assert_int_equal(number, UINT64_C(1234567890123));
    wt_manifest_name("d", name);
    assert_string_equal(name, "d/manifest.json");
    wt_idx_name("d", rec.hash, name);
    snprintf(want, sizeof want, "d/idx/%s.idx", hex);
    assert_string_equal(name, want);
}

#define H "00112233445566778899aabbccddeeff"

static void other_names_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "d",
        "d/manifest.json",
        "d/shards/0000/00000007-" H ".tar.gz",
        "d/shards/0001/00000007-" H ".tar",
        "d/shards/0000/7-" H ".tar",
        "d/shards/0000/00000007-00112233445566778899AABBCCDDEEFF.tar",
        "d/shards/0000/00000007-" H,
        "d/shards/0000/00000007-0011.tar",
        "d/shards/0000/00000007-" H ".tar.zst.part",
        "D/shards/0000/00000007-" H ".tar",
        "../shards/0000/00000007-" H ".tar",
        "/shards/0000/00000007-" H ".tar",
        "d/shards/0000/99999999999999999999999999-" H ".tar",
        "d/other/0000/00000007-" H ".tar",
    };
    char set[WT_DATASET_NAME] = "same";
    uint64_t number = 77;
    struct wt_hash hash;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(wt_shard_name_parse(bad[i], set, &number, &hash), WT_EINVAL);
    assert_string_equal(set, "same");
    assert_int_equal(number, 77);
}

static void dataset_names_are_checked(void **state) {
    (void)state;
    static const char *const good[] = {"a", "9", "wafers-2024.b_1"};
    static const char *const bad[] = {"", ".a", "-a", "_a", "A", "a/b", "a b", "\xc3\xa4", "a\n"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(wt_dataset_name_check(good[i], NULL), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(wt_dataset_name_check(bad[i], NULL), WT_EINVAL);
    char name[WT_DATASET_NAME + 1];
    memset(name, 'a', sizeof name);
    name[WT_DATASET_NAME] = '\0';
    assert_int_equal(wt_dataset_name_check(name, NULL), WT_EINVAL);
    name[WT_DATASET_NAME - 1] = '\0';
    assert_int_equal(wt_dataset_name_check(name, NULL), 0);
}

/* ---- records ---- */

static void records_round_trip(void **state) {
    (void)state;
    struct wt_shard_rec rec = record(99, 1234), back;
    uint8_t bytes[WT_IDX_RECORD];
    wt_shard_rec_encode(&rec, bytes);
    assert_int_equal(wt_shard_rec_decode(bytes, &back), 0);
    assert_memory_equal(&rec, &back, sizeof rec);
    for (size_t i = 0; i < sizeof bytes * 8; i++) {
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_int_equal(wt_shard_rec_decode(bytes, &back), WT_ECORRUPT);
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
}

static void nonsense_records_are_refused(void **state) {
    (void)state;
    struct wt_shard_rec bad[8], back;
    for (int i = 0; i < 8; i++)
        bad[i] = record(1, 0);
    bad[0].samples = 0;
    bad[1].index_off = bad[1].size;
    bad[2].tar_size = WT_SHARD_MAX_DECODED + 1;
    bad[3].codec = (enum wt_codec)2;
    bad[4].codec = WT_CODEC_TAR; /* size differs from the tar's */
    bad[5].samples = 1000000;    /* more than fit */
    bad[6].first = UINT64_C(1) << 60;
    bad[7].index_off = 0;
    for (int i = 0; i < 8; i++) {
        uint8_t bytes[WT_IDX_RECORD];
        wt_shard_rec_encode(&bad[i], bytes);
        assert_int_equal(wt_shard_rec_decode(bytes, &back), WT_ECORRUPT);
    }
}

/* ---- the manifest ---- */

static void manifest_round_trips(void **state) {
    (void)state;
    struct made d;
    struct wt_manifest back;
    struct wt_err err = {0};
    make(&d, 10, 4);
    char *text = wt_manifest_format(&d.m);
    assert_non_null(text);
    assert_int_equal(text[strlen(text) - 1], '\n');
    if (wt_manifest_parse(text, strlen(text), &back, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(back.name, "wafers-1");
    assert_int_equal(back.generation, 3);
    assert_int_equal(back.samples, d.m.samples);
    assert_int_equal(back.n_parts, 3);
    assert_true(wt_hash_equal(back.part[2].hash, d.m.part[2].hash));
    assert_int_equal(back.part[2].records, 2);
    assert_string_equal(back.classes[1], "\xc3\xa4 \"quoted\"");
    assert_int_equal(back.class_count[1], 4);
    assert_true(wt_shape_equal(&back.field[0].shape, &d.m.field[0].shape));
    assert_int_equal(back.field[1].shape.ndim, UINT32_MAX);
    assert_int_equal(back.field[1].shape.dtype, WT_DTYPE_F32);
    char *again = wt_manifest_format(&back);
    assert_string_equal(again, text);
    free(again);
    free(text);
    wt_manifest_free(&back);
    wt_manifest_free(&back);
    unmake(&d);
}

/* Replaces the first `from` in a good manifest by `to`; returns what parsing says. */
static int parse_with(const char *from, const char *to, struct wt_err *err) {
    struct made d;
    make(&d, 10, 4);
    char *text = wt_manifest_format(&d.m);
    assert_non_null(text);
    char *at = strstr(text, from);
    if (!at)
        fail_msg("the manifest has no %s", from);
    char *changed = malloc(strlen(text) + strlen(to) + 1);
    assert_non_null(changed);
    sprintf(changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    struct wt_manifest back = {.generation = 77};
    int rc = wt_manifest_parse(changed, strlen(changed), &back, err);
    if (rc == 0)
        wt_manifest_free(&back);
    else
        assert_int_equal(back.generation, 77);
    free(changed);
    free(text);
    unmake(&d);
    return rc;
}

/* Landed data: the home goes with the next generation, and what is not known stays. */
static void a_home_is_kept_until_the_flush(void **state) {
    (void)state;
    struct made d;
    struct wt_err err = {0};
    struct wt_manifest m = {0};
    make(&d, 10, 4);
    snprintf(d.m.home, sizeof d.m.home, "warm 1");
    char *text = wt_manifest_format(&d.m);
    assert_non_null(text);
    assert_int_equal(wt_manifest_parse(text, strlen(text), &m, &err), 0);
    assert_string_equal(m.home, "warm 1");
    wt_manifest_free(&m);

    char *wider = malloc(strlen(text) + 100);
    assert_non_null(wider);
    sprintf(wider, "{\"later\": {\"x\": [1, 2]}, %s", strchr(text, '{') + 1);
    char *next = wt_manifest_flushed(wider, strlen(wider), 1800000000, &err);
    assert_non_null(next);
    assert_int_equal(wt_manifest_parse(next, strlen(next), &m, &err), 0);
    assert_string_equal(m.home, "");
    assert_int_equal(m.generation, d.m.generation + 1);
    assert_int_equal(m.created, 1800000000);
    assert_int_equal(m.shards, 10);
    assert_memory_equal(m.part, d.m.part, m.n_parts * sizeof *m.part);
    assert_non_null(strstr(next, "\"later\""));
    assert_null(wt_manifest_flushed(next, strlen(next), 1, &err)); /* it is in cold already */
    assert_int_equal(err.code, WT_EINVAL);
    wt_manifest_free(&m);
    free(next);
    free(wider);

    static const char *const bad[] = {"\"home\": 7", "\"home\": \"\"", "\"home\": \"a\\nb\""};
    char *at = strstr(text, "\"home\": \"warm 1\"");
    assert_non_null(at);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char *wrong = malloc(strlen(text) + 100);
        assert_non_null(wrong);
        sprintf(wrong, "%.*s%s%s", (int)(at - text), text, bad[i],
                at + strlen("\"home\": \"warm 1\""));
        assert_int_equal(wt_manifest_parse(wrong, strlen(wrong), &m, &err), WT_ECORRUPT);
        assert_non_null(strstr(err.text, "'home'"));
        assert_null(wt_manifest_flushed(wrong, strlen(wrong), 1, &err));
        free(wrong);
    }
    free(text);
    unmake(&d);
}

static void hostile_manifests_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *from, *to;
    } rows[] = {
        {"wafertier-dataset", "other"},
        {"\"wafers-1\"", "\"../x\""},
        {"\"wafers-1\"", "17"},
        {"\"wafers-1\"", "\"a\\u0000b\""},
        {"\"generation\": 3", "\"generation\": 0"},
        {"\"generation\": 3", "\"generation\": -3"},
        {"\"generation\": 3", "\"generation\": 3.5"},
        {"\"generation\": 3", "\"generation\": 99999999999999999999"},
        {"\"generation\": 3", "\"generation\": 3, \"generation\": 4"},
        {"\"shards\": 10", "\"shards\": 11"},
        {"\"samples\": ", "\"samples\": 1, \"other\": "},
        {"\"samples\": ", "\"samples\": 4611686018427387904, \"other\": "},
        {"\"tar_bytes\": ", "\"tar_bytes\": 1, \"other\": "},
        {"\"labelled\": 7", "\"labelled\": 8"},
        {"\"labelled\": 7", "\"labelled\": 1000"},
        {"\"labels\": \"class\"", "\"labels\": \"none\""},
        {"\"labels\": \"class\"", "\"labels\": \"some\""},
        {"\"Edge-Ring\"", "\"\""},
        {"\"Edge-Ring\"", "\"a\\nb\""},
        {"\"Edge-Ring\"", "\"\xc3\xa4 \\\"quoted\\\"\""},
        {"\"Edge-Ring\"", "\"\xff\""},
        {"\"mask\"", "\"Mask\""},
        {"\"mask\"", "\"\""},
        {"\"u8\"", "\"u9\""},
        {"52,", "-52,"},
        {"52,", "4294967296,"},
        {"\"shape\": null", "\"shape\": \"x\""},
        {"\"shape\": null", "\"shape\": [1,1,1,1,1,1,1,1,1]"},
        {"\"shape\": null", "\"shape\": [4294967295, 4294967295, 4294967295]"},
        {"\"index\": [", "\"index\": [3, "},
        {"\"index\": [", "\"index\": [{\"hash\": \"xyz\", \"shards\": 1}, "},
        {"\"index\": [", "\"other\": ["},
        {"\"shards\": 4", "\"shards\": 0"},
        {"\"shards\": 4", "\"shards\": 65537"},
        {"\"lots\": 2", "\"lots\": 4294967297"},
        {"{", "["},
        {"}\n", ""},
        {"}\n", "} x\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wt_err err = {0};
        int rc = parse_with(rows[i].from, rows[i].to, &err);
        /* The last closing brace is the one meant by "}\n"; the first is inside a list, which
         * breaks it as well. */
        if (rc != WT_ECORRUPT || !err.text[0])
            fail_msg("%s -> %s: %d %s", rows[i].from, rows[i].to, rc, err.text);
    }
    struct wt_err err = {0};
    assert_int_equal(parse_with("\"version\": 1", "\"version\": 2", &err), WT_EUNSUPPORTED);
    assert_int_equal(parse_with("\"version\": 1", "\"version\": 1, \"new\": {\"a\": []}", &err), 0);
    struct wt_manifest m;
    assert_int_equal(wt_manifest_parse("", 0, &m, &err), WT_ECORRUPT);
    assert_int_equal(wt_manifest_parse("[1]", 3, &m, &err), WT_ECORRUPT);
}

static void deep_json_is_survived(void **state) {
    (void)state;
    enum { N = 100000 };
    char *text = malloc(N);
    struct wt_manifest m;
    assert_non_null(text);
    memset(text, '[', N);
    assert_int_equal(wt_manifest_parse(text, N, &m, NULL), WT_ECORRUPT);
    free(text);
}

/* ---- the index in memory ---- */

static void dataset_is_built_and_searched(void **state) {
    (void)state;
    struct made d;
    struct wt_dataset set;
    struct wt_err err = {0};
    make(&d, 1000, 300);
    uint64_t samples = d.m.samples;
    if (wt_dataset_build(&d.m, d.parts, d.lens, &set, &err) < 0)
        fail_msg("%s", err.text);
    assert_null(d.m.part);
    assert_int_equal(set.m.samples, samples);
    assert_int_equal(set.cum[1000], samples);
    for (uint64_t s = 0, shard = 0; s < samples; s++) {
        while (set.cum[shard + 1] <= s)
            shard++;
        assert_int_equal(wt_dataset_find(&set, s), shard);
    }
    struct wt_shard_rec rec, want = record(567, set.cum[567]);
    wt_dataset_rec(&set, 567, &rec);
    assert_memory_equal(&rec, &want, sizeof rec);
    wt_dataset_free(&set);
    unmake(&d);
}

static void wrong_parts_are_refused(void **state) {
    (void)state;
    struct made d;
    struct wt_dataset set;
    struct wt_err err = {0};
    make(&d, 100, 30);
    d.idx[31 * WT_IDX_RECORD] ^= 1;
    assert_int_equal(wt_dataset_build(&d.m, d.parts, d.lens, &set, &err), WT_ECORRUPT);
    assert_non_null(strstr(err.text, "hash"));
    d.m.part[1].hash = wt_hash(d.parts[1], d.lens[1]); /* now the record's own sum is wrong */
    assert_int_equal(wt_dataset_build(&d.m, d.parts, d.lens, &set, &err), WT_ECORRUPT);
    assert_non_null(strstr(err.text, "record 1"));
    d.idx[31 * WT_IDX_RECORD] ^= 1;
    d.m.part[1].hash = wt_hash(d.parts[1], d.lens[1]);
    d.lens[0] -= 1;
    assert_int_equal(wt_dataset_build(&d.m, d.parts, d.lens, &set, &err), WT_ECORRUPT);
    d.lens[0] += 1;
    uint64_t *totals[] = {&d.m.samples, &d.m.stored_bytes, &d.m.tar_bytes};
    for (int i = 0; i < 3; i++) {
        ++*totals[i];
        assert_int_equal(wt_dataset_build(&d.m, d.parts, d.lens, &set, &err), WT_ECORRUPT);
        assert_non_null(strstr(err.text, "totals"));
        --*totals[i];
    }
    d.m.shards++;
    assert_int_equal(wt_dataset_build(&d.m, d.parts, d.lens, &set, &err), WT_EINVAL);
    d.m.shards--;
    const void *swap = d.parts[0]; /* right parts in the wrong order */
    d.parts[0] = d.parts[1];
    d.parts[1] = swap;
    struct wt_idx_part part = d.m.part[0];
    d.m.part[0] = d.m.part[1];
    d.m.part[1] = part;
    assert_int_equal(wt_dataset_build(&d.m, d.parts, d.lens, &set, &err), WT_ECORRUPT);
    assert_non_null(d.m.part);
    unmake(&d);
}

static void a_million_shards_are_built_quickly(void **state) {
    (void)state;
    struct made d;
    struct wt_dataset set;
    struct timespec a, b;
    make(&d, 1000000, WT_IDX_PART);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    assert_int_equal(wt_dataset_build(&d.m, d.parts, d.lens, &set, NULL), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    double took = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
    print_message("a million records: %.3f s\n", took);
    assert_true(took < 5); /* 0.06 s here; sanitizers and loaded machines take longer */
    assert_int_equal(wt_dataset_find(&set, set.m.samples - 1), 999999);
    wt_dataset_free(&set);
    unmake(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_one_spelling),
        cmocka_unit_test(other_names_are_refused),
        cmocka_unit_test(dataset_names_are_checked),
        cmocka_unit_test(records_round_trip),
        cmocka_unit_test(nonsense_records_are_refused),
        cmocka_unit_test(manifest_round_trips),
        cmocka_unit_test(a_home_is_kept_until_the_flush),
        cmocka_unit_test(hostile_manifests_are_refused),
        cmocka_unit_test(deep_json_is_survived),
        cmocka_unit_test(dataset_is_built_and_searched),
        cmocka_unit_test(wrong_parts_are_refused),
        cmocka_unit_test(a_million_shards_are_built_quickly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
