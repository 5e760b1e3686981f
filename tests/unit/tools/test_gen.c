/* The generator: the same bytes on any number of threads, the right classes in the right shares. */
#include "kit.h"

#include "tools/gen/gen.h"
#include "tools/packer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void pack_hashes(const struct wt_gen_opts *o, unsigned threads, enum wt_codec codec,
                        struct wt_hash *hash, uint64_t *n) {
    struct wt_gen *g;
    struct wt_builder *b;
    struct wt_pack_plan plan;
    struct wt_shard_out out;
    struct wt_err err = {0};
    struct wt_pack_opts opts = {0};
    assert_int_equal(wt_gen_open(o, &g, &err), 0);
    struct wt_source *src = wt_gen_source(g);
    assert_int_equal(wt_pack_cut(src, 256 << 10, true, &plan, &err), 0);
    struct wt_shard_opts shard = wt_pack_shard_opts(src, &opts, codec);
    assert_int_equal(wt_builder_start(src, &plan, &shard, threads, &b, &err), 0);
    int more;
    for (*n = 0; (more = wt_builder_next(b, NULL, NULL, &out, &err)) > 0; (*n)++) {
        assert_true(*n < 64);
        hash[*n] = out.hash;
        wt_shard_out_free(&out);
    }
    assert_int_equal(more, 0);
    assert_int_equal(*n, plan.shards);
    struct wt_manifest m = {0};
    assert_int_equal(wt_builder_end(b, &m, &err), 0);
    assert_int_equal(m.labelled, o->samples);
    wt_manifest_free(&m);
    free(plan.first);
    wt_gen_close(g);
}

static void same_seed_same_shards(void **state) {
    (void)state;
    struct wt_gen_opts o = {.kind = WT_GEN_MAP,
                            .height = 52,
                            .width = 52,
                            .dtype = WT_DTYPE_U8,
                            .seed = 7,
                            .samples = 500,
                            .lots = 2,
                            .wafers = 5};
    for (int kind = 0; kind < 2; kind++) {
        struct wt_hash one[64], many[64], other[64];
        uint64_t n1, n2, n3;
        o.kind = (enum wt_gen_kind)kind;
        o.dtype = kind ? WT_DTYPE_U16 : WT_DTYPE_U8;
        o.seed = 7;
        pack_hashes(&o, 1, kind ? WT_CODEC_TAR : WT_CODEC_ZSTD, one, &n1);
        pack_hashes(&o, 5, kind ? WT_CODEC_TAR : WT_CODEC_ZSTD, many, &n2);
        o.seed = 8;
        pack_hashes(&o, 2, kind ? WT_CODEC_TAR : WT_CODEC_ZSTD, other, &n3);
        assert_true(n1 > 5);
        assert_int_equal(n1, n2);
        for (uint64_t i = 0; i < n1; i++) {
            assert_true(wt_hash_equal(one[i], many[i]));
            assert_false(wt_hash_equal(one[i], other[i]));
        }
    }
}

static void classes_have_their_shares(void **state) {
    (void)state;
    const struct wt_gen_class *const tables[] = {wt_gen_map_classes, wt_gen_sem_classes};
    const int n[] = {WT_GEN_MAP_CLASSES, WT_GEN_SEM_CLASSES};
    for (int t = 0; t < 2; t++) {
        double sum = 0;
        for (int c = 0; c < n[t]; c++)
            sum += tables[t][c].share;
        assert_true(sum > 0.999999 && sum < 1.000001);
        assert_string_equal(tables[t][0].name, "none");
    }
}

/* Share of bad dies in a ring of the wafer, over some wafers of a class. */
static double bad_share(uint32_t cls, double from, double to) {
    enum { SIDE = 60 };
    uint8_t map[SIDE * SIDE];
    uint64_t bad = 0, all = 0;
    for (uint64_t i = 0; i < 40; i++) {
        struct wt_rng rng = wt_rng_of(3, i);
        wt_gen_map(cls, SIDE, SIDE, &rng, map);
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                double dy = (y + 0.5) / SIDE * 2 - 1, dx = (x + 0.5) / SIDE * 2 - 1,
                       r2 = dx * dx + dy * dy;
                uint8_t v = map[y * SIDE + x];
                assert_true(v <= 2);
                assert_int_equal(v == 0, r2 > 1);
                if (r2 >= from * from && r2 < to * to) {
                    all++;
                    bad += v == 2;
                }
            }
    }
    return (double)bad / (double)all;
}

static void patterns_are_where_they_belong(void **state) {
    (void)state;
    assert_true(bad_share(0, 0, 1) < 0.1);                                  /* none */
    assert_true(bad_share(1, 0, 0.1) > 0.5 && bad_share(1, 0.6, 1) < 0.1);  /* center */
    assert_true(bad_share(2, 0.4, 0.5) > bad_share(2, 0, 0.1) + 0.1);       /* donut */
    assert_true(bad_share(4, 0.95, 1) > 0.5 && bad_share(4, 0, 0.7) < 0.1); /* edge-ring */
    double edge_loc = bad_share(3, 0.9, 1);
    assert_true(edge_loc > 0.1 && edge_loc < 0.5 && bad_share(3, 0, 0.7) < 0.1);
    assert_true(bad_share(8, 0, 1) > 0.85); /* near-full */
}

static void noise_spares_the_mean(void **state) {
    (void)state;
    enum { LEN = 1 << 16 };
    uint8_t *levels = malloc(LEN), *out = malloc(LEN);
    uint16_t *wide = malloc(2 * LEN);
    memset(levels, 120, LEN);
    wt_gen_noise_u8(1, levels, out, LEN);
    wt_gen_noise_u16(1, levels, wide, LEN);
    double sum = 0, squares = 0, wide_sum = 0;
    for (int i = 0; i < LEN; i++) {
        sum += out[i];
        squares += (out[i] - 120.0) * (out[i] - 120.0);
        wide_sum += wide[i];
    }
    assert_true(sum / LEN > 119 && sum / LEN < 121);
    assert_true(squares / LEN > 40 && squares / LEN < 160);
    assert_true(wide_sum / LEN > 119 * 256 && wide_sum / LEN < 121 * 256);
    free(levels);
    free(out);
    free(wide);
}

static void tiny_and_oblong_images(void **state) {
    (void)state;
    static const uint32_t sides[][2] = {{1, 1}, {1, 300}, {300, 1}, {7, 5}, {64, 65}, {33, 1000}};
    for (size_t s = 0; s < sizeof sides / sizeof sides[0]; s++) {
        uint32_t h = sides[s][0], w = sides[s][1];
        uint8_t *out = malloc((size_t)h * w);
        assert_non_null(out);
        for (uint64_t i = 0; i < 60; i++) {
            struct wt_rng rng = wt_rng_of(11, i);
            wt_gen_sem((uint32_t)(i % WT_GEN_SEM_CLASSES), h, w, &rng, out);
            wt_gen_map((uint32_t)(i % WT_GEN_MAP_CLASSES), h, w, &rng, out);
        }
        free(out);
    }
    struct wt_gen *g = NULL;
    struct wt_gen_opts o = {.height = 1 << 20,
                            .width = 1 << 20,
                            .dtype = WT_DTYPE_U8,
                            .samples = 1,
                            .lots = 1,
                            .wafers = 1};
    assert_int_equal(wt_gen_open(&o, &g, NULL), WT_ERANGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_same_shards),
        cmocka_unit_test(classes_have_their_shares),
        cmocka_unit_test(patterns_are_where_they_belong),
        cmocka_unit_test(noise_spares_the_mean),
        cmocka_unit_test(tiny_and_oblong_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
