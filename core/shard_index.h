/*
 * Between the files that read shards: shard_index.c finds and frames the index, shard_fill.c checks
 * and copies its arrays, shard_read.c uses them.
 */
#ifndef WT_CORE_SHARD_INDEX_H
#define WT_CORE_SHARD_INDEX_H

#include "core/shard_format.h"

struct wt_index_in { /* the payload of __index__ whose hash was right */
    const uint8_t *payload;
    uint64_t len;
    const uint8_t *section[WT_SECTIONS];
};

/* Fills the arrays of x, allocated by then, from the sections; every value is checked. 0 or
 * WT_ECORRUPT. */
int wt_index_fill(const struct wt_index_in *in, struct wt_shard_index *x, struct wt_err *err);

/* Whether src is exactly one zstd frame with a checksum that says it holds `decoded` bytes. 0 or
 * WT_ECORRUPT. */
int wt_frame_check(const void *src, uint64_t len, uint64_t decoded);

#endif
