/*
 * PNG files (libspng): gray, RGB and RGBA with 8 or 16 bits, gray with alpha, palettes expanded to
 * RGB or RGBA, 1/2/4-bit gray scaled to 8 bits, all interlaced or not. Shape [H,W] for gray,
 * [H,W,C] for all else; the source's depth is kept in the metadata as "bit_depth".
 *
 * Happy path: the header gives the shape when the pack is planned; the whole image is decoded when
 * its shard is built. Failures: broken chunks, wrong sums and cut files are errors of that file;
 * sizes are bounded before anything is allocated.
 */
#include "core/mem.h"
#include "tools/ingest/reader.h"

#include <errno.h>
#include <spng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct png_state {
    FILE *file;
    spng_ctx *ctx;
    struct spng_ihdr ihdr;
    struct wt_shape shape;
    int format; /* enum spng_format */
    int flags;  /* of the decoder */
    uint64_t max_image;
    char path[];
};

enum { MAX_SIDE = 1 << 20, MAX_CHUNK = 64 << 20 };

static bool png_magic(const uint8_t *head, size_t len) {
    return len >= 8 && memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static int spng_fail(const struct png_state *s, int code, struct wt_err *err) {
    return wt_err_set(err, code == SPNG_EMEM ? WT_ENOMEM : WT_ECORRUPT, "%s: %s", s->path,
                      spng_strerror(code));
}

/* What the pixels become: a format of spng's, and a shape. */
static void choose_format(struct png_state *s, bool transparent) {
    uint32_t channels = 1;
    s->format = SPNG_FMT_PNG; /* as stored, in the machine's byte order */
    switch (s->ihdr.color_type) {
    case SPNG_COLOR_TYPE_GRAYSCALE:
        if (s->ihdr.bit_depth < 8)
            s->format = SPNG_FMT_G8;
        break;
    case SPNG_COLOR_TYPE_INDEXED:
        s->format = transparent ? SPNG_FMT_RGBA8 : SPNG_FMT_RGB8;
        s->flags = transparent ? SPNG_DECODE_TRNS : 0;
        channels = transparent ? 4 : 3;
        break;
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
        channels = 2;
        break;
    case SPNG_COLOR_TYPE_TRUECOLOR:
        channels = 3;
        break;
    default:
        channels = 4;
    }
    s->shape =
        (struct wt_shape){.dtype = s->ihdr.bit_depth == 16 ? WT_DTYPE_U16 : WT_DTYPE_U8,
                          .ndim = channels == 1 ? 2 : 3,
                          .dim = {s->ihdr.height, s->ihdr.width, channels == 1 ? 0 : channels}};
}

static int start(struct png_state *s, struct wt_err *err) {
    s->ctx = spng_ctx_new(0);
    if (!s->ctx)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory", s->path);
    struct spng_trns trns;
    int rc = spng_set_image_limits(s->ctx, MAX_SIDE, MAX_SIDE);
    if (rc == 0)
        rc = spng_set_chunk_limits(s->ctx, MAX_CHUNK, MAX_CHUNK);
    if (rc == 0)
        rc = spng_set_crc_action(s->ctx, SPNG_CRC_ERROR, SPNG_CRC_ERROR);
    if (rc == 0)
        rc = spng_set_png_file(s->ctx, s->file);
    if (rc == 0)
        rc = spng_get_ihdr(s->ctx, &s->ihdr);
    if (rc)
        return spng_fail(s, rc, err);
    bool transparent = false;
    if (s->ihdr.color_type == SPNG_COLOR_TYPE_INDEXED) {
        rc = spng_get_trns(s->ctx, &trns);
        if (rc && rc != SPNG_ECHUNKAVAIL)
            return spng_fail(s, rc, err);
        transparent = rc == 0;
    }
    choose_format(s, transparent);
    return 0;
}

static void png_close(void *state) {
    struct png_state *s = state;
    if (!s)
        return;
    spng_ctx_free(s->ctx);
    if (s->file)
        fclose(s->file);
    free(s);
}

static int png_open(const char *path, const struct wt_reader_opts *opts, void **state,
                    struct wt_reader_info *info, struct wt_err *err) {
    struct png_state *s = wt_calloc(1, sizeof *s + strlen(path) + 1);
    if (!s)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory", path);
    memcpy(s->path, path, strlen(path) + 1);
    s->max_image = opts->max_image ? opts->max_image : WT_IMAGE_MAX;
    s->file = fopen(path, "rbe");
    uint64_t bytes = 0;
    int rc = !s->file ? wt_err_sys(err, errno, "%s: cannot be opened", path) : start(s, err);
    if (rc == 0 && (!wt_shape_bytes(&s->shape, &bytes) || bytes > s->max_image))
        rc = wt_err_set(err, WT_ERANGE, "%s: %u x %u pixels are more than an image may have", path,
                        s->ihdr.width, s->ihdr.height);
    if (rc < 0) {
        png_close(s);
        return rc;
    }
    *info = (struct wt_reader_info){.samples = 1, .shape = s->shape, .bytes = bytes};
    *state = s;
    return 0;
}

/* Is all that the header promises there? A few bytes may inflate to at most 1032 times as much:
 * what cannot hold the image is refused before memory is taken for it. */
static int check_promise(struct png_state *s, uint64_t bytes, struct wt_err *err) {
    long here = ftell(s->file);
    if (here < 0 || fseek(s->file, 0, SEEK_END) < 0)
        return wt_err_sys(err, errno, "%s: cannot be read", s->path);
    long size = ftell(s->file);
    if (size < 0 || fseek(s->file, here, SEEK_SET) < 0)
        return wt_err_sys(err, errno, "%s: cannot be read", s->path);
    /* A palette image of one bit grows 32-fold when it is expanded. */
    if (bytes / 32 / 1032 > (uint64_t)size)
        return wt_err_set(err, WT_ECORRUPT, "%s: %u x %u pixels cannot come out of %ld bytes",
                          s->path, s->ihdr.width, s->ihdr.height, size);
    return 0;
}

static int png_read(void *state, uint64_t index, struct wt_image *image, struct wt_err *err) {
    struct png_state *s = state;
    (void)index;
    uint64_t bytes;
    size_t want = 0;
    uint8_t *data;
    wt_shape_bytes(&s->shape, &bytes);
    int rc = check_promise(s, bytes, err);
    if (rc == 0 && (rc = wt_image_add(image, "", &s->shape, s->max_image, &data, err)) < 0)
        wt_err_wrap(err, "%s", s->path);
    if (rc < 0)
        return rc;
    int code = spng_decoded_image_size(s->ctx, s->format, &want);
    if (code == 0 && want != bytes)
        return wt_err_set(err, WT_EFORMAT, "%s: has an unexpected layout of pixels", s->path);
    if (code == 0)
        code = spng_decode_image(s->ctx, data, want, s->format, s->flags);
    if (code == 0)
        code = spng_decode_chunks(s->ctx); /* up to IEND: a cut file is found here */
    if (code)
        return spng_fail(s, code, err);
    bool palette = s->ihdr.color_type ==
                   SPNG_COLOR_TYPE_INDEXED; /* of 8-bit colours, however long its indices */
    if (wt_image_meta_int(image, "bit_depth", palette ? 8 : s->ihdr.bit_depth) < 0)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory", s->path);
    return 0;
}

const struct wt_reader_ops wt_reader_png = {
    .name = "png",
    .extensions = (const char *const[]){".png", NULL},
    .magic = png_magic,
    .open = png_open,
    .read = png_read,
    .close = png_close,
};
