/* See read_image.h. */
#include "read_image.h"

#include "fuzz.h"

#include <unistd.h>

enum { IMAGE_MAX = 1 << 20, SAMPLES_MAX = 16 };

static void read_samples(const struct wt_reader_ops *ops, void *state,
                         const struct wt_reader_info *info) {
    struct wt_image image = {0};
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < info->samples && i < SAMPLES_MAX; i++) {
        struct wt_err err = {0};
        wt_image_reset(&image);
        rc = ops->read(state, i, &image, &err);
        FUZZ_CHECK(rc == 0 || (rc == err.code && err.text[0]));
        if (rc < 0)
            break;
        uint64_t bytes = 0;
        FUZZ_CHECK(image.n_fields >= 1);
        FUZZ_CHECK(wt_shape_bytes(&image.field[0].shape, &bytes) && bytes <= IMAGE_MAX &&
                   bytes <= info->bytes);
        FUZZ_CHECK(info->shape.ndim == WT_SHAPE_VARIES ||
                   wt_shape_equal(&image.field[0].shape, &info->shape));
        volatile uint8_t last = bytes ? image.field[0].data[bytes - 1] : 0;
        (void)last;
    }
    wt_image_free(&image);
}

static void read_labels(const struct wt_reader_ops *ops, void *state,
                        const struct wt_reader_info *info) {
    for (uint64_t i = 0;
         ops->label && info->labels != WT_LABEL_NONE && i < info->samples && i < SAMPLES_MAX; i++) {
        int32_t cls = WT_UNLABELLED;
        const uint8_t *multihot = NULL;
        ops->label(state, i, &cls, &multihot);
        FUZZ_CHECK(cls >= WT_UNLABELLED);
        for (uint32_t c = 0; multihot && c < info->n_multihot; c++)
            FUZZ_CHECK(multihot[c] <= 1);
    }
}

void fuzz_read_images(const struct wt_reader_ops *ops, const uint8_t *data, size_t size) {
    char path[FUZZ_PATH];
    struct wt_reader_opts opts = {.max_image = IMAGE_MAX};
    struct wt_reader_info info;
    struct wt_err err = {0};
    void *state = NULL;
    int fd = fuzz_file(data, size, path);
    int rc = ops->open(path, &opts, &state, &info, &err);
    FUZZ_CHECK(rc == 0 || (rc == err.code && err.text[0]));
    if (rc == 0) {
        read_labels(ops, state, &info);
        read_samples(ops, state, &info);
        ops->close(state);
    }
    close(fd);
}
