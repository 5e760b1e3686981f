/*
 * Readers: one ops table for each file format that `wafertier pack` understands.
 *
 * Happy path: wt_reader_find picks the format by extension and magic; open reads headers only and
 * says how many samples the file holds and what they look like; read fills one image (all its
 * tensors, in C order and little-endian, and its metadata). A file is opened twice: once when the
 * pack is planned, once when its shard is built. Failures: every error names the file; nothing is
 * allocated from a size that the file merely claims, unless the limit in the options and the bytes
 * at hand allow it.
 *
 * An ordered reader (a compressed stream) gives samples 0, 1, 2, ... and never goes back; all
 * others give any sample at any time. A reader is used by one thread at a time.
 */
#ifndef WT_TOOLS_INGEST_READER_H
#define WT_TOOLS_INGEST_READER_H

#include "core/dataset.h"
#include "tools/ingest/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wt_reader_opts {
    const char *images; /* npz: the images array, NULL: by its usual names */
    const char *labels; /* npz: the labels array, NULL: by its usual names; "" for none */
    uint64_t max_image; /* bytes of a decoded tensor; 0: WT_IMAGE_MAX */
};

struct wt_reader_info {
    uint64_t samples;
    struct wt_shape shape; /* of every sample's image; ndim WT_SHAPE_VARIES when they differ */
    uint64_t bytes;        /* of the largest sample, all tensors */
    bool ordered;
    enum wt_label_kind labels; /* labels that the file itself has */
    uint32_t n_multihot;
};
#define WT_SHAPE_VARIES UINT32_MAX

struct wt_reader_ops {
    const char *name;
    const char *const *extensions; /* lower case, with the dot; NULL-terminated */
    bool (*magic)(const uint8_t *head, size_t len);
    int (*open)(const char *path, const struct wt_reader_opts *opts, void **state,
                struct wt_reader_info *info, struct wt_err *err);
    int (*read)(void *state, uint64_t index, struct wt_image *image, struct wt_err *err);
    /* The label of any sample, in any order: *cls a class or WT_UNLABELLED; *multihot points at
     * n_multihot bytes or is NULL (unlabelled). NULL: the format has no labels. */
    void (*label)(void *state, uint64_t index, int32_t *cls, const uint8_t **multihot);
    void (*close)(void *state);
};

extern const struct wt_reader_ops wt_reader_npy;
extern const struct wt_reader_ops wt_reader_npz;
extern const struct wt_reader_ops wt_reader_png;

/* Does the name end as one of the formats does? NULL: no. */
const struct wt_reader_ops *wt_reader_by_name(const char *path);
/* By name, and the magic has to agree; by magic alone where the name says nothing. WT_EFORMAT names
 * what would do. */
int wt_reader_find(const char *path, const struct wt_reader_ops **ops, struct wt_err *err);

#endif
