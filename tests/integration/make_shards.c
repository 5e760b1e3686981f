/*
 * Writes shards for shard_tools.sh: make_shards FOLDER makes small.tar, small.tar.zst, large.tar,
 * large.tar.zst there.
 *
 * Pixel k of sample i is (k * 31 + i * 7) mod 251 (image, u8) or that + 300 (large image, u16); the
 * mask is k mod 2. The script's Python knows these rules too.
 */
#include "core/shard.h"

#include <stdio.h>
#include <stdlib.h>

struct plan {
    const char *name;
    enum wt_codec codec;
    uint32_t samples, rows, cols;
    bool wide; /* u16 */
};

static void fill(const struct plan *p, uint32_t i, uint8_t *image, uint8_t *mask) {
    uint64_t n = (uint64_t)p->rows * p->cols;
    for (uint64_t k = 0; k < n; k++) {
        uint32_t v = (uint32_t)((k * 31 + i * 7) % 251);
        if (p->wide) {
            v += 300;
            image[2 * k] = (uint8_t)v;
            image[2 * k + 1] = (uint8_t)(v >> 8);
        } else {
            image[k] = (uint8_t)v;
        }
        mask[k] = k % 2;
    }
}

static int add_samples(const struct plan *p, struct wt_shard_writer *w, uint8_t *image,
                       uint8_t *mask, struct wt_err *err) {
    for (uint32_t i = 0; i < p->samples; i++) {
        char key[WT_KEY_MAX], json[64];
        snprintf(key, sizeof key, "lot1/w%02u/die%04u", i / 100, i);
        snprintf(json, sizeof json, "{\"x\": %u}", i);
        fill(p, i, image, mask);
        enum wt_dtype dtype = p->wide ? WT_DTYPE_U16 : WT_DTYPE_U8;
        struct wt_tensor tensors[] = {
            {"", {dtype, 2, {p->rows, p->cols}}, image},
            {"mask", {WT_DTYPE_BOOL, 2, {p->rows, p->cols}}, mask},
        };
        struct wt_sample_in sample = {
            .key = key,
            .id = i,
            .label = (int32_t)(i % 9),
            .json = json,
            .tensors = tensors,
            .n_tensors = i % 2 ? 1 : 2,
        };
        int rc = wt_shard_writer_add(w, &sample, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int write_file(const char *folder, const char *name, const struct wt_shard_out *out) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f)
        return -1;
    size_t n = fwrite(out->data, 1, out->size, f);
    return fclose(f) == 0 && n == out->size ? 0 : -1;
}

static int make(const char *folder, const struct plan *p) {
    struct wt_shard_opts opts = {.codec = p->codec, .sidecars = true};
    struct wt_shard_writer *w = NULL;
    struct wt_shard_out out = {0};
    struct wt_err err = {0};
    uint64_t n = (uint64_t)p->rows * p->cols;
    uint8_t *image = malloc(2 * n), *mask = malloc(n);
    int rc = image && mask ? wt_shard_writer_new(&opts, &w, &err) : WT_ENOMEM;
    if (rc == 0)
        rc = add_samples(p, w, image, mask, &err);
    if (rc == 0)
        rc = wt_shard_writer_finish(w, &out, &err);
    if (rc == 0 && write_file(folder, p->name, &out) < 0)
        rc = wt_err_set(&err, WT_ESYSTEM, "%s/%s cannot be written", folder, p->name);
    if (rc < 0)
        fprintf(stderr, "make_shards: %s\n", err.text);
    wt_shard_out_free(&out);
    wt_shard_writer_free(w);
    free(image);
    free(mask);
    return rc;
}

int main(int argc, char **argv) {
    static const struct plan plans[] = {
        {"small.tar", WT_CODEC_TAR, 250, 52, 52, false},
        {"small.tar.zst", WT_CODEC_ZSTD, 250, 52, 52, false},
        {"large.tar", WT_CODEC_TAR, 4, 1100, 1000, true},
        {"large.tar.zst", WT_CODEC_ZSTD, 4, 1100, 1000, true},
    };
    if (argc != 2) {
        fprintf(stderr, "usage: make_shards FOLDER\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++)
        if (make(argv[1], &plans[i]) < 0)
            return 1;
    return 0;
}
