/* PNG files of every kind that the encoder makes, and damaged ones. */
#include "kit.h"

#include "tools/ingest/reader.h"

#include <spng.h>
#include <stdlib.h>
#include <string.h>

struct kind {
    enum spng_color_type type;
    int depth, channels; /* of the file */
    int out_channels;    /* of the reader */
    bool trns, interlaced;
};

enum { W = 13, H = 7 };

/* Encodes rows as they lie in memory; 16-bit samples in the machine's order. */
static void encode(struct wt_bytes *out, const struct kind *k, const uint8_t *pixels, size_t len) {
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    struct spng_ihdr ihdr = {.width = W,
                             .height = H,
                             .bit_depth = (uint8_t)k->depth,
                             .color_type = (uint8_t)k->type,
                             .interlace_method = k->interlaced};
    int code = 0;
    size_t size;
    assert_non_null(ctx);
    assert_int_equal(spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1), 0);
    assert_int_equal(spng_set_ihdr(ctx, &ihdr), 0);
    if (k->type == SPNG_COLOR_TYPE_INDEXED) {
        struct spng_plte plte = {.n_entries = 4};
        for (uint8_t i = 0; i < 4; i++)
            plte.entries[i] = (struct spng_plte_entry){
                .red = i, .green = (uint8_t)(10 * i), .blue = (uint8_t)(100 + i)};
        assert_int_equal(spng_set_plte(ctx, &plte), 0);
    }
    if (k->trns) {
        struct spng_trns trns = {.n_type3_entries = 2, .type3_alpha = {5, 6}};
        assert_int_equal(spng_set_trns(ctx, &trns), 0);
    }
    assert_int_equal(spng_encode_image(ctx, pixels, len, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE), 0);
    void *buf = spng_get_png_buffer(ctx, &size, &code);
    assert_non_null(buf);
    assert_int_equal(wt_bytes_add(out, buf, size), 0);
    free(buf);
    spng_ctx_free(ctx);
}

static int read_png(const char *path, uint64_t max, struct wt_reader_info *info,
                    struct wt_image *image, struct wt_err *err) {
    struct wt_reader_opts opts = {.max_image = max};
    void *s = NULL;
    *err = (struct wt_err){0};
    int rc = wt_reader_png.open(path, &opts, &s, info, err);
    wt_image_reset(image);
    if (rc == 0)
        rc = wt_reader_png.read(s, 0, image, err);
    wt_reader_png.close(s);
    return rc;
}

static void every_kind(void **state) {
    struct kit *k = *state;
    static const struct kind kinds[] = {
        {SPNG_COLOR_TYPE_GRAYSCALE, 8, 1, 1, false, false},
        {SPNG_COLOR_TYPE_GRAYSCALE, 16, 1, 1, false, false},
        {SPNG_COLOR_TYPE_GRAYSCALE, 8, 1, 1, false, true},
        {SPNG_COLOR_TYPE_GRAYSCALE, 16, 1, 1, false, true},
        {SPNG_COLOR_TYPE_TRUECOLOR, 8, 3, 3, false, false},
        {SPNG_COLOR_TYPE_TRUECOLOR, 16, 3, 3, false, false},
        {SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 8, 4, 4, false, false},
        {SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 16, 4, 4, false, true},
        {SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, 8, 2, 2, false, false},
        {SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, 16, 2, 2, false, false},
    };
    struct wt_image image = {0};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        uint8_t pixels[W * H * 8];
        size_t len = (size_t)(W * H * kinds[i].channels * kinds[i].depth / 8);
        for (size_t b = 0; b < len; b++)
            pixels[b] = (uint8_t)(b * 37 + i);
        struct wt_bytes file = {0};
        struct wt_reader_info info;
        struct wt_err err;
        encode(&file, &kinds[i], pixels, len);
        if (read_png(kit_write(k, "a.png", file.data, file.len), 0, &info, &image, &err) < 0)
            fail_msg("kind %zu: %s", i, err.text);
        assert_int_equal(info.shape.dtype, kinds[i].depth == 16 ? WT_DTYPE_U16 : WT_DTYPE_U8);
        assert_int_equal(info.shape.ndim, kinds[i].channels == 1 ? 2 : 3);
        assert_int_equal(info.shape.dim[0], H);
        assert_int_equal(info.shape.dim[1], W);
        assert_int_equal(info.bytes, len);
        assert_memory_equal(image.field[0].data, pixels, len);
        wt_bytes_free(&file);
    }
    wt_image_free(&image);
}

static void palettes_and_few_bits_are_expanded(void **state) {
    struct kit *k = *state;
    struct wt_image image = {0};
    struct wt_reader_info info;
    struct wt_err err;
    uint8_t index[W * H];
    for (int i = 0; i < W * H; i++)
        index[i] = (uint8_t)(i % 4);
    for (int trns = 0; trns < 2; trns++) {
        struct kind kind = {.type = SPNG_COLOR_TYPE_INDEXED, .depth = 8, .trns = trns};
        struct wt_bytes file = {0};
        encode(&file, &kind, index, sizeof index);
        assert_int_equal(
            read_png(kit_write(k, "p.png", file.data, file.len), 0, &info, &image, &err), 0);
        assert_int_equal(info.shape.dim[2], trns ? 4 : 3);
        const uint8_t *third =
            image.field[0].data + 2 * info.shape.dim[2]; /* pixel 2 has colour 2 */
        assert_memory_equal(third, ((uint8_t[]){2, 20, 102, 255}), info.shape.dim[2]);
        if (trns)
            assert_int_equal(image.field[0].data[7], 6); /* the alpha of colour 1 */
        wt_bytes_free(&file);
    }
    /* Two bits of gray: four levels over the whole range. */
    struct kind kind = {.type = SPNG_COLOR_TYPE_GRAYSCALE, .depth = 2};
    uint8_t rows[H * 4];
    memset(rows, 0x1b, sizeof rows); /* 0 1 2 3 */
    struct wt_bytes file = {0};
    encode(&file, &kind, rows, sizeof rows);
    assert_int_equal(read_png(kit_write(k, "g.png", file.data, file.len), 0, &info, &image, &err),
                     0);
    assert_int_equal(info.bytes, W * H);
    assert_memory_equal(image.field[0].data, ((uint8_t[]){0, 85, 170, 255, 0}), 5);
    assert_int_equal(wt_bytes_add(&image.meta, "", 1), 0);
    assert_non_null(strstr((char *)image.meta.data, "\"bit_depth\":2"));
    wt_bytes_free(&file);
    wt_image_free(&image);
}

static void damage_is_found(void **state) {
    struct kit *k = *state;
    struct wt_image image = {0};
    struct wt_reader_info info;
    struct wt_err err;
    uint8_t pixels[W * H * 2];
    for (size_t b = 0; b < sizeof pixels; b++)
        pixels[b] = (uint8_t)(b * b);
    struct wt_bytes file = {0};
    encode(&file, &(struct kind){.type = SPNG_COLOR_TYPE_GRAYSCALE, .depth = 16}, pixels,
           sizeof pixels);
    /* The last four bytes are the sum of a chunk without data. */
    for (size_t cut = 0; cut + 4 < file.len; cut++)
        if (read_png(kit_write(k, "c.png", file.data, cut), 0, &info, &image, &err) == 0)
            fail_msg("cut at %zu of %zu goes unnoticed", cut, file.len);
    for (size_t at = 0; at < file.len; at++) {
        file.data[at] ^= 0x10;
        int rc = read_png(kit_write(k, "f.png", file.data, file.len), 0, &info, &image, &err);
        file.data[at] ^= 0x10;
        if (rc == 0 && memcmp(image.field[0].data, pixels, sizeof pixels) != 0)
            fail_msg("a flip at %zu changes pixels without an error", at);
    }
    /* Sizes: over the limit, and more than the file can hold. */
    const char *path = kit_write(k, "ok.png", file.data, file.len);
    assert_int_equal(read_png(path, W * H * 2 - 1, &info, &image, &err), WT_ERANGE);
    assert_int_equal(read_png(path, W * H * 2, &info, &image, &err), 0);
    wt_bytes_free(&file);
    wt_image_free(&image);
}

static uint32_t crc_of(const uint8_t *p, size_t n) {
    uint32_t c = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int b = 0; b < 8; b++)
            c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
    }
    return ~c;
}

static void a_huge_promise_costs_nothing(void **state) {
    struct kit *k = *state;
    struct wt_image image = {0};
    struct wt_reader_info info;
    struct wt_err err;
    uint8_t pixels[W * H] = {0};
    struct wt_bytes file = {0};
    encode(&file, &(struct kind){.type = SPNG_COLOR_TYPE_GRAYSCALE, .depth = 8}, pixels,
           sizeof pixels);
    for (int i = 0; i < 2; i++) { /* width and height become 32768: 1 GiB out of 100 bytes */
        file.data[16 + 4 * i + 2] = 0x80;
        file.data[16 + 4 * i + 3] = 0;
    }
    uint32_t crc = __builtin_bswap32(crc_of(file.data + 12, 17));
    memcpy(file.data + 29, &crc, 4);
    assert_int_equal(read_png(kit_write(k, "h.png", file.data, file.len), 0, &info, &image, &err),
                     WT_ECORRUPT);
    assert_non_null(strstr(err.text, "cannot come out of"));
    assert_null(image.field[0].data);
    wt_bytes_free(&file);
    wt_image_free(&image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_kind, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(palettes_and_few_bits_are_expanded, kit_setup,
                                        kit_teardown),
        cmocka_unit_test_setup_teardown(damage_is_found, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(a_huge_promise_costs_nothing, kit_setup, kit_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
