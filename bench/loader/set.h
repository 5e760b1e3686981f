/*
 * A data set in a folder, mapped: what a perfect reader would have before it starts. The limits
 * read it directly; the loader's batches are compared with it.
 */
#ifndef WT_BENCH_SET_H
#define WT_BENCH_SET_H

#include "core/dataset.h"
#include "core/plan.h"

#include <wafertier/loader.h>

struct set_shard {
    const uint8_t *data; /* the whole object, mapped and touched */
    const uint8_t *tar;  /* its tar stream up to the index; data itself when it is a plain tar */
    struct wt_shard_rec rec;
    struct wt_shard_index index;
};

struct set {
    struct wt_dataset ds;
    struct set_shard *shard;
    size_t row; /* bytes of an image */
};

/* Of folder/<dataset>; images must be of one shape. Ends the program on any failure. */
void set_open(struct set *s, const char *folder, const char *dataset);
void set_close(struct set *s);

/* Where an image lies in the tar stream of its shard. */
struct set_place {
    const struct set_shard *shard;
    uint32_t sample;
    uint64_t off;
};
struct set_place set_find(const struct set *s, uint64_t ordinal);

/* Ordinals of one epoch in the order in which a loader of rank 0 of 1 gives them: [steps * batch].
 */
uint64_t *set_order(const wl_info *info, uint64_t seed, uint64_t epoch);

#endif
