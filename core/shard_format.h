/*
 * The layout of `__index__` and of the zstd seek table, for the files that write and read shards.
 * docs/shard-format.md says the same in prose.
 *
 * The payload is a header of 128 bytes, the sections in the order of enum wt_section (each begins
 * at a multiple of 8), zeros, and a trailer of 24 bytes; its length is a multiple of 512. All
 * integers are little-endian.
 */
#ifndef WT_CORE_SHARD_FORMAT_H
#define WT_CORE_SHARD_FORMAT_H

#include "core/bytes.h"
#include "core/shard.h"
#include "core/tar.h"

#define WT_INDEX_MEMBER  "__index__"
#define WT_INDEX_MAGIC   "WTIDX\0\0\0"
#define WT_TRAILER_MAGIC "WTIDXEND"

enum {
    WT_INDEX_HEADER = 128,
    WT_INDEX_TRAILER = 24,
    WT_INDEX_MAX = 256 << 20, /* payload: bounds what a hostile shard makes a reader allocate */

    /* fields of the header */
    WT_AT_MAGIC = 0,
    WT_AT_VERSION = 8,
    WT_AT_CODEC = 12,
    WT_AT_SAMPLES = 16,
    WT_AT_FIELDS = 20,
    WT_AT_SHAPES = 24,
    WT_AT_SUMS = 28,
    WT_AT_MULTIHOT = 32,
    WT_AT_TEXT_LEN = 36,
    WT_AT_TAR_SIZE = 40,
    WT_AT_MEMBER = 48, /* tar offset of the index member's header */
    WT_AT_LEN = 56,    /* of the payload */
    WT_AT_FRAMES = 64, /* frames before the index's own; 0 for .tar */
    WT_AT_ZERO = 68,
    WT_AT_FRAMES_HASH = 72, /* XXH3-64 of their seek table entries; 0 for .tar */
    WT_AT_SECTIONS = 80,    /* 12 x u32: where each section begins in the payload */

    /* fields of the trailer, from its start */
    WT_AT_HASH = 0, /* XXH3-64 of all before the trailer */
    WT_AT_END_LEN = 8,
    WT_AT_END_MAGIC = 16,

    WT_SHAPE_RECORD = 48, /* u32 dtype, ndim, dim[8], rows_per_block, 0 */
    WT_MAX_ROW = 1 << 30, /* a row is never split, and frame lengths are u32 */

    /* zstd seekable format */
    WT_SEEK_HEAD = 8,
    WT_SEEK_ENTRY = 8,
    WT_SEEK_FOOT = 9,
};
#define WT_SEEK_SKIPPABLE UINT32_C(0x184D2A5E)
#define WT_SEEK_MAGIC     UINT32_C(0x8F92EAB1)
#define WT_NO_SHAPE       UINT32_MAX

enum wt_section {
    WT_SEC_FIELDS,  /* n_fields x 32: name, filled with NUL */
    WT_SEC_SHAPES,  /* n_shapes x WT_SHAPE_RECORD */
    WT_SEC_ID,      /* samples x u64 */
    WT_SEC_START,   /* (samples + 1) x u64: tar offset of the first header; last: the index member's
                     */
    WT_SEC_REF_OFF, /* samples x n_fields x u64: tar offset of the first element, 0: none */
    WT_SEC_REF_SHAPE, /* samples x n_fields x u32: WT_NO_SHAPE: none */
    WT_SEC_LABEL,     /* samples x i32 */
    WT_SEC_MULTIHOT,  /* samples x ceil(n_multihot / 8): class c is bit c % 8 of byte c / 8 */
    WT_SEC_KEY,       /* samples x u32: offset in the text */
    WT_SEC_JSON,      /* samples x u32: offset in the text, 0: none */
    WT_SEC_SUMS, /* n_sums x u32: crc32c of each block, in order of sample, field, block; .tar only
                  */
    WT_SEC_TEXT, /* text_len bytes: NUL-terminated strings, the first one empty */
    WT_SECTIONS
};

static inline uint64_t wt_align8(uint64_t n) {
    return (n + 7) & ~UINT64_C(7);
}

/* Rows are slices along dimension 0; a scalar is one row. bytes: of the whole tensor. */
static inline uint64_t wt_row_bytes(const struct wt_shape *s, uint64_t bytes) {
    return s->ndim == 0 || s->dim[0] == 0 ? bytes : bytes / s->dim[0];
}

static inline uint64_t wt_block_bytes(const struct wt_shape *s, uint64_t bytes, uint32_t rows) {
    return wt_row_bytes(s, bytes) * rows;
}

/* Blocks of a tensor; 0 when it is empty. */
static inline uint64_t wt_block_count(const struct wt_shape *s, uint64_t bytes, uint32_t rows) {
    uint64_t all = s->ndim == 0 ? 1 : s->dim[0];
    return bytes == 0 ? 0 : (all + rows - 1) / rows;
}

#endif
