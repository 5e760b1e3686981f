/* Zip archives and npz files, sound and hostile. */
#include "kit.h"

#include "tools/ingest/reader.h"
#include "tools/ingest/zip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Opens and reads all samples of an npz; the first error, or 0. *sum: of the images' bytes. */
static int read_all(const char *path, const struct wt_reader_opts *opts,
                    struct wt_reader_info *info, uint64_t *sum, struct wt_err *err) {
    struct wt_reader_opts none = {0};
    struct wt_image image = {0};
    void *s = NULL;
    *sum = 0;
    *err = (struct wt_err){0};
    int rc = wt_reader_npz.open(path, opts ? opts : &none, &s, info, err);
    for (uint64_t i = 0; rc == 0 && i < info->samples; i++) {
        wt_image_reset(&image);
        rc = wt_reader_npz.read(s, i, &image, err);
        for (uint64_t b = 0; rc == 0 && b < info->bytes; b++)
            *sum += image.field[0].data[b];
    }
    wt_reader_npz.close(s);
    wt_image_free(&image);
    return rc;
}

enum { N = 50, SIDE = 16, PIXELS = N * SIDE * SIDE };

struct arrays {
    uint8_t pixels[PIXELS];
    struct wt_bytes images, labels;
    uint64_t sum;
};

static void make_arrays(struct arrays *a) {
    int64_t labels[N];
    memset(a, 0, sizeof *a);
    for (int i = 0; i < PIXELS; i++)
        a->sum += a->pixels[i] = (uint8_t)(i * 7 + i / 253);
    for (int i = 0; i < N; i++)
        labels[i] = i % 5 - 1;
    kit_npy(&a->images, "'|u1'", false, "(50, 16, 16)", a->pixels, PIXELS);
    kit_npy(&a->labels, "'<i8'", false, "(50,)", labels, sizeof labels);
}

static void free_arrays(struct arrays *a) {
    wt_bytes_free(&a->images);
    wt_bytes_free(&a->labels);
}

static void stored_deflated_zip64_and_descriptors(void **state) {
    struct kit *k = *state;
    struct arrays a;
    make_arrays(&a);
    for (int mode = 0; mode < 16; mode++) {
        struct kit_member m[2] = {
            {.name = "y.npy",
             .data = a.labels.data,
             .len = a.labels.len,
             .deflate = mode & 1,
             .zip64 = mode & 2,
             .descriptor = mode & 4},
            {.name = "x.npy",
             .data = a.images.data,
             .len = a.images.len,
             .deflate = mode & 1,
             .zip64 = mode & 2,
             .descriptor = mode & 4},
        };
        struct wt_bytes zip = {0};
        struct wt_reader_info info;
        struct wt_err err;
        uint64_t sum;
        kit_zip(&zip, m, 2, mode & 8);
        const char *path = kit_write(k, "a.npz", zip.data, zip.len);
        if (read_all(path, NULL, &info, &sum, &err) < 0)
            fail_msg("mode %d: %s", mode, err.text);
        assert_int_equal(info.samples, N);
        assert_int_equal(info.labels, WT_LABEL_CLASS);
        assert_int_equal(sum, a.sum);
        wt_bytes_free(&zip);
    }
    free_arrays(&a);
}

static void every_cut_and_every_flip_is_an_error_or_harmless(void **state) {
    struct kit *k = *state;
    struct arrays a;
    make_arrays(&a);
    struct kit_member m[2] = {
        {.name = "images.npy", .data = a.images.data, .len = a.images.len, .deflate = true},
        {.name = "labels.npy", .data = a.labels.data, .len = a.labels.len, .deflate = true},
    };
    struct wt_bytes zip = {0};
    struct wt_reader_info info;
    struct wt_err err;
    uint64_t sum;
    kit_zip(&zip, m, 2, true);
    for (size_t cut = 0; cut < zip.len; cut += cut < 200 || zip.len - cut < 300 ? 1 : 97)
        if (read_all(kit_write(k, "cut.npz", zip.data, cut), NULL, &info, &sum, &err) == 0)
            fail_msg("cut at %zu of %zu goes unnoticed", cut, zip.len);
    size_t refused = 0, tried = 0;
    for (size_t at = 0; at < zip.len; at += at % 3 + 1) {
        zip.data[at] ^= (uint8_t)(1u << at % 8);
        int rc = read_all(kit_write(k, "flip.npz", zip.data, zip.len), NULL, &info, &sum, &err);
        zip.data[at] ^= (uint8_t)(1u << at % 8);
        tried++;
        refused += rc < 0;
        if (rc == 0 && (sum != a.sum || info.samples != N))
            fail_msg("a flip at %zu changes pixels without an error", at);
    }
    assert_true(refused * 10 > tried * 8); /* what is left are time stamps, versions, comments */
    wt_bytes_free(&zip);
    free_arrays(&a);
}

static void refuse(struct kit *k, struct kit_member *m, size_t n, int want, const char *why) {
    struct wt_bytes zip = {0};
    struct wt_reader_info info;
    struct wt_err err;
    uint64_t sum;
    kit_zip(&zip, m, n, false);
    int rc = read_all(kit_write(k, "bad.npz", zip.data, zip.len), NULL, &info, &sum, &err);
    if (rc != want || !strstr(err.text, why))
        fail_msg("wanted '%s', got %d: %s", why, rc, err.text);
    wt_bytes_free(&zip);
}

static void hostile_archives_are_refused(void **state) {
    struct kit *k = *state;
    struct arrays a;
    make_arrays(&a);
    struct kit_member good = {.name = "x.npy",
                              .data = a.images.data,
                              .len = a.images.len,
                              .deflate = true},
                      m = good;
    m.bad_crc = true;
    refuse(k, &m, 1, WT_ECORRUPT, "wrong CRC-32");
    m = good;
    m.flags = 1;
    refuse(k, &m, 1, WT_EUNSUPPORTED, "encrypted");
    m = good;
    m.method_override = 12;
    refuse(k, &m, 1, WT_EUNSUPPORTED, "compression method 12");
    m = good;
    m.claim = UINT64_C(1) << 31; /* more than deflate can do */
    refuse(k, &m, 1, WT_ECORRUPT, "cannot have");
    m = good;
    m.claim = a.images.len - 1;
    refuse(k, &m, 1, WT_ECORRUPT, "promises");
    m = good;
    m.deflate = false;
    m.claim = a.images.len + 1;
    refuse(k, &m, 1, WT_ECORRUPT, "cannot have");

    /* A bomb: the array claims 1 TiB of zeros; what would be inflated is bounded by a sample, and
     * the size by the archive. */
    struct wt_bytes bomb = {0};
    uint8_t *zeros = calloc(1, 1 << 20);
    kit_npy(&bomb, "'|u1'", false, "(1048576, 1024, 1024)", zeros, 1 << 20);
    m = (struct kit_member){.name = "x.npy", .data = bomb.data, .len = bomb.len, .deflate = true};
    refuse(k, &m, 1, WT_ECORRUPT, "promises");
    m.claim = bomb.len - (1 << 20) + (UINT64_C(1) << 40);
    m.zip64 = true;
    refuse(k, &m, 1, WT_ECORRUPT, "cannot have");
    wt_bytes_free(&bomb);

    /* Longer than it says: the extra bytes are not given out. */
    kit_npy(&bomb, "'|u1'", false, "(4, 16, 16)", zeros, 1024);
    size_t honest = bomb.len;
    wt_bytes_add(&bomb, zeros, 1 << 20);
    m = (struct kit_member){
        .name = "x.npy", .data = bomb.data, .len = bomb.len, .claim = honest, .deflate = true};
    refuse(k, &m, 1, WT_ECORRUPT, "longer than it says");
    wt_bytes_free(&bomb);
    free(zeros);
    free_arrays(&a);
}

static void other_arrays_are_refused(void **state) {
    struct kit *k = *state;
    struct wt_bytes b = {0};
    uint8_t data[64] = "x";
    struct {
        const char *descr, *shape;
        int want;
        const char *why;
    } bad[] = {
        {"'|O'", "(4, 2)", WT_EUNSUPPORTED, "x.npy"},
        {"[('a', '<u2')]", "(4, 8)", WT_EUNSUPPORTED, "x.npy"},
        {"'|u1'", "(64,)", WT_EFORMAT, "[N, ...]"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        kit_npy(&b, bad[i].descr, false, bad[i].shape, data, sizeof data);
        struct kit_member m = {.name = "x.npy", .data = b.data, .len = b.len};
        refuse(k, &m, 1, bad[i].want, bad[i].why);
        wt_bytes_free(&b);
    }
    kit_npy(&b, "'|u1'", false, "(4, 16)", data, sizeof data);
    struct kit_member m[2] = {{.name = "pictures.npy", .data = b.data, .len = b.len},
                              {.name = "y.npy", .data = b.data, .len = b.len}};
    refuse(k, m, 2, WT_EMISSING, "pictures, y");
    m[0].name = "x.npy";
    refuse(k, m, 2, WT_ERANGE, "neither 0 nor 1");
    wt_bytes_free(&b);
}

static void big_endian_and_fortran_become_c_order(void **state) {
    struct kit *k = *state;
    enum { A = 3, B = 4, C = 5 };
    uint8_t big[A * B * C * 2], fortran[A * B * C];
    uint64_t want_sum = 0;
    for (int i = 0; i < A * B * C; i++) {
        big[2 * i] = 1;
        big[2 * i + 1] = (uint8_t)i;
        want_sum += 1 + (uint64_t)i;
    }
    for (int a = 0; a < A; a++)
        for (int b = 0; b < B; b++)
            for (int c = 0; c < C; c++)
                fortran[a + A * (b + B * c)] = (uint8_t)(a * 100 + b * 10 + c);
    struct wt_bytes file = {0}, zip = {0};
    struct wt_reader_info info;
    struct wt_err err;
    uint64_t sum;
    kit_npy(&file, "'>u2'", false, "(3, 4, 5)", big, sizeof big);
    struct kit_member m = {.name = "data.npy", .data = file.data, .len = file.len, .deflate = true};
    kit_zip(&zip, &m, 1, false);
    assert_int_equal(read_all(kit_write(k, "be.npz", zip.data, zip.len), NULL, &info, &sum, &err),
                     0);
    assert_int_equal(info.shape.dtype, WT_DTYPE_U16);
    assert_int_equal(sum, want_sum);
    wt_bytes_free(&file);
    wt_bytes_free(&zip);

    kit_npy(&file, "'|u1'", true, "(3, 4, 5)", fortran, sizeof fortran);
    m = (struct kit_member){
        .name = "data.npy", .data = file.data, .len = file.len, .deflate = true};
    kit_zip(&zip, &m, 1, false);
    const char *path = kit_write(k, "fo.npz", zip.data, zip.len);
    void *s;
    struct wt_image image = {0};
    assert_int_equal(wt_reader_npz.open(path, &(struct wt_reader_opts){0}, &s, &info, &err), 0);
    assert_int_equal(wt_reader_npz.read(s, 2, &image, &err), 0);
    for (int b = 0; b < B; b++)
        for (int c = 0; c < C; c++)
            assert_int_equal(image.field[0].data[b * C + c], 200 + b * 10 + c);
    wt_reader_npz.close(s);
    wt_image_free(&image);
    wt_bytes_free(&file);
    wt_bytes_free(&zip);
}

static void labels_of_every_kind(void **state) {
    struct kit *k = *state;
    uint8_t pixels[4 * 4] = {1};
    static const struct {
        const char *descr, *shape;
        size_t width;
        double value[8];
        int want;
        enum wt_label_kind kind;
    } cases[] = {
        {"'<i4'", "(4,)", 4, {3, -1, 0, 2}, 0, WT_LABEL_CLASS},
        {"'<i4'", "(4, 1)", 4, {3, -1, 0, 2}, 0, WT_LABEL_CLASS},
        {"'<i4'", "(4, 2)", 4, {0, 1, 1, 1, 0, 0, 1, 0}, 0, WT_LABEL_MULTIHOT},
        {"'<f8'", "(4,)", 8, {3, -1, 0, 2}, 0, WT_LABEL_CLASS},
        {"'<f8'", "(4,)", 8, {3, 0.5, 0, 2}, WT_ERANGE, 0},
        {"'<i4'", "(4,)", 4, {3, -2, 0, 2}, WT_ERANGE, 0},
        {"'<i4'", "(4,)", 4, {3, 65536, 0, 2}, WT_ERANGE, 0},
        {"'<i4'", "(4, 2)", 4, {0, 1, 2}, WT_ERANGE, 0},
        {"'<i4'", "(3,)", 4, {0, 1, 2}, WT_EFORMAT, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wt_bytes x = {0}, y = {0}, zip = {0};
        uint8_t raw[64];
        size_t n = strchr(cases[i].shape, '2') ? 8 : cases[i].shape[1] == '3' ? 3 : 4;
        for (size_t v = 0; v < n; v++) {
            int32_t whole = (int32_t)cases[i].value[v];
            if (cases[i].width == 4)
                memcpy(raw + 4 * v, &whole, 4);
            else
                memcpy(raw + 8 * v, &cases[i].value[v], 8);
        }
        kit_npy(&x, "'|u1'", false, "(4, 2, 2)", pixels, sizeof pixels);
        kit_npy(&y, cases[i].descr, false, cases[i].shape, raw, n * cases[i].width);
        struct kit_member m[2] = {{.name = "arr_0.npy", .data = x.data, .len = x.len},
                                  {.name = "arr_1.npy", .data = y.data, .len = y.len}};
        kit_zip(&zip, m, 2, false);
        struct wt_reader_info info;
        struct wt_err err = {0};
        void *s = NULL;
        int rc = wt_reader_npz.open(kit_write(k, "l.npz", zip.data, zip.len),
                                    &(struct wt_reader_opts){0}, &s, &info, &err);
        if (rc != cases[i].want)
            fail_msg("case %zu: %d %s", i, rc, err.text);
        int32_t cls;
        const uint8_t *multihot;
        if (rc == 0) {
            assert_int_equal(info.labels, cases[i].kind);
            wt_reader_npz.label(s, 1, &cls, &multihot);
            assert_int_equal(cls, -1);
            if (cases[i].kind == WT_LABEL_MULTIHOT) {
                assert_int_equal(info.n_multihot, 2);
                assert_memory_equal(multihot, ((uint8_t[]){1, 1}), 2);
            } else {
                wt_reader_npz.label(s, 0, &cls, &multihot);
                assert_int_equal(cls, 3);
            }
            wt_reader_npz.close(s);
        }
        wt_bytes_free(&x);
        wt_bytes_free(&y);
        wt_bytes_free(&zip);
    }
}

static void no_samples_out_of_order(void **state) {
    struct kit *k = *state;
    struct arrays a;
    make_arrays(&a);
    struct kit_member m = {
        .name = "x.npy", .data = a.images.data, .len = a.images.len, .deflate = true};
    struct wt_bytes zip = {0};
    kit_zip(&zip, &m, 1, false);
    void *s;
    struct wt_reader_info info;
    struct wt_image image = {0};
    struct wt_err err = {0};
    assert_int_equal(wt_reader_npz.open(kit_write(k, "o.npz", zip.data, zip.len),
                                        &(struct wt_reader_opts){0}, &s, &info, &err),
                     0);
    assert_true(info.ordered);
    assert_int_equal(wt_reader_npz.read(s, 1, &image, &err), WT_EINVAL);
    assert_int_equal(wt_reader_npz.read(s, 0, &image, &err), 0);
    assert_memory_equal(image.field[0].data, a.pixels, SIDE * SIDE);
    wt_reader_npz.close(s);
    /* A sample over the limit is refused before it is read. */
    assert_int_equal(wt_reader_npz.open(kit_path(k, "o.npz"),
                                        &(struct wt_reader_opts){.max_image = 255}, &s, &info,
                                        &err),
                     0);
    assert_int_equal(wt_reader_npz.read(s, 0, &image, &err), WT_ERANGE);
    wt_reader_npz.close(s);
    wt_image_free(&image);
    wt_bytes_free(&zip);
    free_arrays(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stored_deflated_zip64_and_descriptors, kit_setup,
                                        kit_teardown),
        cmocka_unit_test_setup_teardown(every_cut_and_every_flip_is_an_error_or_harmless, kit_setup,
                                        kit_teardown),
        cmocka_unit_test_setup_teardown(hostile_archives_are_refused, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(other_arrays_are_refused, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(big_endian_and_fortran_become_c_order, kit_setup,
                                        kit_teardown),
        cmocka_unit_test_setup_teardown(labels_of_every_kind, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(no_samples_out_of_order, kit_setup, kit_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
