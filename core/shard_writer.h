/*
 * What shard_writer.c (collects samples) and shard_finish.c (makes the object) share.
 *
 * The tar grows in `tar`; beside it the sections of the index, encoded as they will be stored. For
 * .tar.zst `cuts` says where frames end; they are compressed at the end of the shard.
 */
#ifndef WT_CORE_SHARD_WRITER_H
#define WT_CORE_SHARD_WRITER_H

#include "core/shard_format.h"

#include <zstd.h>

struct wt_slot { /* of a set of numbers, found by the hash of what they stand for */
    uint64_t hash;
    uint32_t id_plus_1; /* 0: free */
};

struct wt_set {
    struct wt_slot *slot;
    size_t cap; /* a power of two, or 0 */
    uint32_t used;
};

struct wt_placed { /* a tensor in the tar; rows of the index are made of them when all fields are
                      known */
    uint64_t off;
    uint32_t sample, field, shape;
};

struct wt_shard_writer {
    struct wt_shard_opts opts;
    ZSTD_CCtx *zstd; /* NULL for .tar */
    bool broken;     /* ran out of memory in the middle of a sample */
    uint32_t samples, n_fields, n_shapes;
    uint64_t pixel_bytes;
    uint64_t last_cut; /* tar offset up to which frames are decided */
    char field[WT_MAX_FIELDS][WT_FIELD_NAME];
    struct wt_bytes tar;
    struct wt_bytes cuts;   /* u64 tar offsets where frames end, ascending */
    struct wt_bytes placed; /* struct wt_placed */
    struct wt_bytes section[WT_SECTIONS];
    struct wt_set keys, shapes;
};

/* The frames so far end here: cuts what is left of [last_cut, off) in frames of WT_BLOCK_BYTES or a
 * little more. */
int wt_shard_cut(struct wt_shard_writer *w, uint64_t off);
/* Empties the writer, keeps its memory. */
void wt_shard_writer_reset(struct wt_shard_writer *w);

#endif
