/* The generator as a source; see gen.h. */
#include "tools/gen/gen.h"

#include "core/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wt_gen {
    struct wt_source source; /* first */
    struct wt_gen_opts opts;
    const struct wt_gen_class *cls;
    uint64_t pixels;
    char *names[WT_GEN_MAP_CLASSES];
};

static uint64_t gen_tar_bytes(const struct wt_source *src, uint64_t i) {
    const struct wt_gen *g = (const struct wt_gen *)src;
    (void)i;
    return wt_tar_member(g->pixels * wt_dtype_size(g->opts.dtype));
}

static bool gen_ordered(const struct wt_source *src, uint64_t first, uint64_t count) {
    (void)src;
    (void)first;
    (void)count;
    return false;
}

static uint32_t draw_class(const struct wt_gen *g, struct wt_rng *rng) {
    double u = wt_rng_unit(rng);
    uint32_t n = g->opts.kind == WT_GEN_MAP ? WT_GEN_MAP_CLASSES : WT_GEN_SEM_CLASSES, c = 0;
    while (c + 1 < n && u >= g->cls[c].share)
        u -= g->cls[c++].share;
    return c;
}

static void draw_picture(const struct wt_gen *g, uint32_t cls, uint64_t i, struct wt_rng *rng,
                         uint8_t *levels, uint8_t *data) {
    const struct wt_gen_opts *o = &g->opts;
    struct wt_rng noise = wt_rng_of(o->seed ^ UINT64_C(0x5eed), i);
    if (o->kind == WT_GEN_SEM) {
        wt_gen_sem(cls, o->height, o->width, rng, levels);
        if (o->dtype == WT_DTYPE_U8)
            wt_gen_noise_u8(noise.key, levels, data, g->pixels);
        else
            wt_gen_noise_u16(noise.key, levels, (uint16_t *)(void *)data, g->pixels);
        return;
    }
    wt_gen_map(cls, o->height, o->width, rng, levels);
    for (uint64_t p = 0; p < g->pixels; p++) {
        if (o->dtype == WT_DTYPE_U8)
            data[p] = levels[p];
        else
            wt_put16(data + 2 * p, levels[p]);
    }
}

static int format_meta(const struct wt_gen *g, struct wt_rng *rng, char *out, size_t size) {
    static const char *const recipes[] = {"M1-LS", "M2-LS", "V1-CH", "PC-LS"};
    const double die_mm = 10;
    int x, y;
    do { /* a die on a wafer of 300 mm */
        x = (int)wt_rng_below(rng, 29) - 14;
        y = (int)wt_rng_below(rng, 29) - 14;
    } while (x * x + y * y > 14 * 14);
    return snprintf(out, size,
                    "{\"source\":\"gen\",\"die_x\":%d,\"die_y\":%d,\"radius_mm\":%.1f,\"tool\":\"%"
                    "s-%02u\",\"recipe\":\"%s\"}",
                    x, y, die_mm * sqrt(x * x + y * y),
                    g->opts.kind == WT_GEN_SEM ? "SEM" : "PROBE", 1 + wt_rng_below(rng, 6),
                    recipes[wt_rng_below(rng, 4)]);
}

static int make_sample(struct wt_gen *g, struct wt_image *image, uint64_t i, wt_emit_fn emit,
                       void *arg, struct wt_err *err) {
    const struct wt_gen_opts *o = &g->opts;
    struct wt_rng rng = wt_rng_of(o->seed, i);
    struct wt_shape shape = {.dtype = o->dtype, .ndim = 2, .dim = {o->height, o->width}};
    uint8_t *data;
    char key[WT_KEY_MAX], meta[256];
    wt_image_reset(image);
    int rc = wt_image_add(image, "", &shape, 0, &data, err);
    if (rc == 0 && wt_grow(&image->scratch.data, &image->scratch.cap, g->pixels, 1) < 0)
        rc = wt_err_set(err, WT_ENOMEM, "no memory for an image");
    if (rc < 0)
        return rc;
    uint32_t cls = draw_class(g, &rng);
    uint64_t wafer =
        (uint64_t)((double)i / (double)o->samples * (double)o->lots * (double)o->wafers);
    snprintf(key, sizeof key, "lot%04" PRIu64 "/w%02" PRIu64 "/s%07" PRIu64, wafer / o->wafers,
             wafer % o->wafers, i);
    format_meta(g, &rng, meta, sizeof meta);
    draw_picture(g, cls, i, &rng, image->scratch.data, data);
    struct wt_tensor tensor = {.name = "", .shape = shape, .data = data};
    struct wt_sample_in s = {.key = key,
                             .id = wt_sample_id(key),
                             .label = o->unlabelled ? WT_UNLABELLED : (int32_t)cls,
                             .json = meta,
                             .tensors = &tensor,
                             .n_tensors = 1};
    return emit(arg, &s, err);
}

static int gen_read(struct wt_source *src, struct wt_image *image, uint64_t first, uint64_t count,
                    wt_emit_fn emit, void *arg, struct wt_err *err) {
    int rc = 0;
    for (uint64_t i = first; rc == 0 && i < first + count; i++)
        rc = make_sample((struct wt_gen *)src, image, i, emit, arg, err);
    return rc;
}

static const struct wt_source_ops gen_ops = {
    .tar_bytes = gen_tar_bytes, .ordered = gen_ordered, .read = gen_read};

int wt_gen_open(const struct wt_gen_opts *opts, struct wt_gen **out, struct wt_err *err) {
    uint64_t pixels = (uint64_t)opts->height * opts->width;
    if (pixels == 0 || pixels * wt_dtype_size(opts->dtype) > WT_IMAGE_MAX)
        return wt_err_set(err, WT_ERANGE, "images of %u x %u cannot be generated", opts->height,
                          opts->width);
    if (opts->samples == 0 || opts->lots == 0 || opts->wafers == 0)
        return wt_err_set(err, WT_ERANGE, "samples, lots and wafers have to be 1 or more");
    struct wt_gen *g = wt_calloc(1, sizeof *g);
    if (!g)
        return wt_err_set(err, WT_ENOMEM, "no memory for the generator");
    bool map = opts->kind == WT_GEN_MAP;
    g->opts = *opts;
    g->pixels = pixels;
    g->cls = map ? wt_gen_map_classes : wt_gen_sem_classes;
    g->source = (struct wt_source){.ops = &gen_ops, .samples = opts->samples, .classes = g->names};
    if (!opts->unlabelled) {
        g->source.label_kind = WT_LABEL_CLASS;
        g->source.n_classes = map ? WT_GEN_MAP_CLASSES : WT_GEN_SEM_CLASSES;
    }
    int rc = 0;
    for (uint32_t c = 0; rc == 0 && c < g->source.n_classes; c++)
        if (!(g->names[c] = strdup(g->cls[c].name)))
            rc = wt_err_set(err, WT_ENOMEM, "no memory for the generator");
    if (rc < 0)
        wt_gen_close(g);
    else
        *out = g;
    return rc;
}

struct wt_source *wt_gen_source(struct wt_gen *g) {
    return &g->source;
}

void wt_gen_close(struct wt_gen *g) {
    if (!g)
        return;
    for (size_t c = 0; c < WT_GEN_MAP_CLASSES; c++)
        free(g->names[c]);
    free(g);
}
