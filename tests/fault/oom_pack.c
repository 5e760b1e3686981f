/*
 * Out of memory while `wafertier pack` works: folders of npy and png files with a CSV, an npz, into
 * a file: tier. It fails as a whole and leaves nothing, or the data set is complete and right.
 */
#include "oom.h"

#include "tests/unit/tools/kit.h"
#include "tools/ingest/ingest.h"
#include "tools/packer.h"

#include <ftw.h>
#include <inttypes.h>
#include <spng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIDE = 6, FILES = 5, MOST = 6000 };

struct pack_case {
    struct kit *kit;
    const char *input, *labels;
    int codec;
    uint64_t samples;
    char cold[300];
};

/* ---- inputs ---- */

static void pixels_of(unsigned i, uint8_t out[SIDE * SIDE]) {
    for (unsigned p = 0; p < SIDE * SIDE; p++)
        out[p] = (uint8_t)(i * 50 + p);
}

static void make_png(struct kit *k, const char *name, unsigned i) {
    uint8_t pixels[SIDE * SIDE];
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    struct spng_ihdr ihdr = {.width = SIDE, .height = SIDE, .bit_depth = 8};
    size_t len;
    int code;
    pixels_of(i, pixels);
    assert_non_null(ctx);
    assert_int_equal(spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1), 0);
    assert_int_equal(spng_set_ihdr(ctx, &ihdr), 0);
    assert_int_equal(
        spng_encode_image(ctx, pixels, sizeof pixels, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE), 0);
    void *png = spng_get_png_buffer(ctx, &len, &code);
    assert_non_null(png);
    kit_write(k, name, png, len);
    free(png);
    spng_ctx_free(ctx);
}

static void make_folder(struct kit *k) {
    uint8_t pixels[SIDE * SIDE];
    char name[32];
    for (unsigned i = 0; i < FILES; i++) {
        struct wt_bytes npy = {0};
        snprintf(name, sizeof name, "in/a%u.npy", i);
        pixels_of(i, pixels);
        kit_npy(&npy, "'|u1'", false, "(6, 6)", pixels, sizeof pixels);
        kit_write(k, name, npy.data, npy.len);
        wt_bytes_free(&npy);
    }
    make_png(k, "in/b.png", FILES);
    kit_text(
        k, "labels.csv",
        "file,label,x\na0.npy,ring,1\na1.npy,ring,2\na2.npy,none,3\na3.npy,,4\nb.png,\"none\",5\n");
}

static void make_npz(struct kit *k) {
    uint8_t pixels[FILES][SIDE * SIDE];
    const int32_t labels[FILES] = {0, 1, -1, 1, 2};
    struct wt_bytes images = {0}, classes = {0}, zip = {0};
    for (unsigned i = 0; i < FILES; i++)
        pixels_of(i, pixels[i]);
    kit_npy(&images, "'|u1'", false, "(5, 6, 6)", pixels, sizeof pixels);
    kit_npy(&classes, "'<i4'", false, "(5,)", labels, sizeof labels);
    const struct kit_member members[] = {
        {.name = "images.npy", .data = images.data, .len = images.len, .deflate = true},
        {.name = "labels.npy", .data = classes.data, .len = classes.len}};
    kit_zip(&zip, members, 2, false);
    kit_write(k, "in.npz", zip.data, zip.len);
    wt_bytes_free(&images);
    wt_bytes_free(&classes);
    wt_bytes_free(&zip);
}

/* ---- a run ---- */

static int pack(struct wt_target *target, const struct pack_case *c, struct wt_err *err) {
    char *inputs[] = {(char *)(uintptr_t)c->input};
    struct wt_ingest_opts in = {.inputs = inputs, .n_inputs = 1, .labels = c->labels};
    struct wt_pack_opts out = {.dataset = "d", .codec = c->codec, .shard_size = 4096, .threads = 1};
    struct wt_ingest *g = NULL;
    struct wt_manifest m = {.n_fields = 0};
    int rc = wt_ingest_open(&in, &g, err);
    if (rc == 0)
        rc = wt_pack_run(wt_ingest_source(g), target, &out, &m, err);
    if (rc == 0) {
        assert_int_equal(m.samples, c->samples);
        wt_manifest_free(&m);
    }
    wt_ingest_close(g);
    return rc;
}

static int run(void *arg, struct wt_err *err) {
    struct pack_case *c = arg;
    struct wt_target target = {.sync = NULL};
    int rc = wt_target_open(&(struct wt_target_opts){.url = c->cold}, &target, err);
    if (rc < 0)
        return rc;
    rc = pack(&target, c, err);
    wt_target_close(&target);
    return rc;
}

/* ---- what is left ---- */

static unsigned objects;

static int count_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st;
    objects += type == FTW_F && !strstr(path, "/.wafertier");
    (void)at;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

/* Pixels count up from the first one, whichever image it is. */
static void check_image(struct wt_target *t, const struct wt_shard_blob *b, uint32_t i) {
    const struct wt_field_ref *ref = wt_shard_ref(&b->index, i, 0);
    uint8_t *data = NULL;
    struct wt_err err = {0};
    assert_int_equal(ref->len, SIDE * SIDE);
    if (b->index.codec != WT_CODEC_TAR)
        return;
    if (wt_target_range(t, b->name, ref->off, SIDE * SIDE, &data, &err) < 0)
        fail_msg("%s", err.text);
    for (unsigned p = 0; p < SIDE * SIDE; p++)
        assert_int_equal(data[p], (uint8_t)(data[0] + p));
    free(data);
}

static void check_dataset(struct wt_target *t, const struct pack_case *c) {
    struct wt_dataset d;
    struct wt_err err = {0};
    uint64_t seen = 0;
    if (wt_target_dataset(t, "d", &d, &err) < 0)
        fail_msg("%s", err.text);
    for (uint64_t s = 0; s < d.m.shards; s++) {
        struct wt_shard_blob b;
        if (wt_target_index(t, &d, s, &b, &err) < 0)
            fail_msg("%s", err.text);
        for (uint32_t i = 0; i < b.index.samples; i++)
            check_image(t, &b, i);
        seen += b.index.samples;
        wt_shard_blob_free(&b);
    }
    assert_int_equal(seen, c->samples);
    assert_int_equal(d.m.samples, c->samples);
    wt_dataset_free(&d);
}

/* Nothing fails any more here. */
static void after(void *arg, int rc) {
    struct pack_case *c = arg;
    struct wt_target target = {.sync = NULL};
    struct wt_err err = {0};
    if (rc == 0) {
        assert_int_equal(wt_target_open(&(struct wt_target_opts){.url = c->cold}, &target, &err),
                         0);
        check_dataset(&target, c);
        wt_target_close(&target);
    }
    objects = 0;
    nftw(c->cold, count_one, 16, FTW_PHYS);
    if (rc < 0 && objects != 0)
        fail_msg("%u objects are left after %s failed", objects, oom_failed());
    nftw(c->cold, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    assert_int_equal(mkdir(c->cold, 0755), 0);
}

static void pack_in_need(struct kit *k, const char *name, struct pack_case c) {
    snprintf(c.cold, sizeof c.cold, "%s", kit_path(k, "cold"));
    mkdir(c.cold, 0755);
    uint64_t n = oom_each(
        &(struct oom_case){.name = name, .run = run, .after = after, .arg = &c, .most = MOST});
    assert_true(n > 100);
}

static void pack_folder(void **state) {
    struct kit *k = *state;
    char in[600], csv[600];
    make_folder(k);
    snprintf(in, sizeof in, "%s", kit_path(k, "in"));
    snprintf(csv, sizeof csv, "%s", kit_path(k, "labels.csv"));
    pack_in_need(
        k, "pack a folder as tar",
        (struct pack_case){.input = in, .labels = csv, .codec = WT_PACK_TAR, .samples = FILES + 1});
}

static void pack_npz(void **state) {
    struct kit *k = *state;
    char in[600];
    make_npz(k);
    snprintf(in, sizeof in, "%s", kit_path(k, "in.npz"));
    pack_in_need(k, "pack an npz as zstd",
                 (struct pack_case){.input = in, .codec = WT_PACK_ZSTD, .samples = FILES});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pack_folder, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(pack_npz, kit_setup, kit_teardown),
    };
    oom_init();
    alarm(580);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
