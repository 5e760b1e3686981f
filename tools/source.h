/*
 * Where packed samples come from: files (ingest/) or a generator (gen.c). The packer asks for
 * ranges of samples, from several threads at once where the range may be read out of order.
 */
#ifndef WT_TOOLS_SOURCE_H
#define WT_TOOLS_SOURCE_H

#include "core/dataset.h"
#include "tools/ingest/image.h"

#include <stdbool.h>
#include <stdint.h>

/* Takes one sample; non-zero ends the range with that code. The sample lives for the call. */
typedef int (*wt_emit_fn)(void *arg, const struct wt_sample_in *sample, struct wt_err *err);

struct wt_source;
struct wt_source_ops {
    /* Estimated bytes of sample i in a tar. Cheap. */
    uint64_t (*tar_bytes)(const struct wt_source *src, uint64_t i);
    /* Has [first, first + count) to be read after all before it, by one thread at a time? Going
     * back to the start is possible. */
    bool (*ordered)(const struct wt_source *src, uint64_t first, uint64_t count);
    /* Gives the samples of the range in order; a bad one may be left out (the source counts it).
     * image: the calling thread's. */
    int (*read)(struct wt_source *src, struct wt_image *image, uint64_t first, uint64_t count,
                wt_emit_fn emit, void *arg, struct wt_err *err);
};

struct wt_source { /* first member of the implementation */
    const struct wt_source_ops *ops;
    uint64_t samples;
    enum wt_label_kind label_kind;
    char *const *classes; /* [n_classes]; owned by the implementation */
    uint32_t n_classes;
};

/* What a tensor of `bytes` takes in a tar: header, npy header, padding. */
static inline uint64_t wt_tar_member(uint64_t bytes) {
    return 512 + (bytes + 128 + 511) / 512 * 512;
}
/* A stable id for a sample: from its key alone, and positive as a signed number. */
static inline uint64_t wt_sample_id(const char *key) {
    return wt_hash64(key, strlen(key)) >> 1;
}

#endif
