/*
 * Shards: immutable WebDataset tars with random access. docs/shard-format.md describes every byte.
 *
 *   .tar       plain; crc32c of each block of whole rows is in the index
 *   .tar.zst   the same tar in zstd frames (content size and checksum on), the zstd seekable table
 *              at the end
 *
 * The last member is `__index__`. Offsets in it are offsets in the *tar* stream, whichever way that
 * is stored: a `.tar` reader uses them as they are, a `.tar.zst` reader maps them through the frame
 * table.
 *
 * Write: wt_shard_writer_new -> add samples -> finish: one buffer that holds the whole object.
 * Read:  the tail of the object, from index_off (shards.idx has it; without, wt_shard_locate finds
 * it from the object's end) -> wt_shard_index_parse -> for a range of samples wt_shard_span says
 *        which stored bytes to fetch -> wt_shard_verify (.tar) or wt_shard_decode_frame for each
 *        frame (.tar.zst) makes them verified tar bytes.
 *
 * Failures: anything wrong in structure (seek table, index, sizes) is WT_ECORRUPT and condemns that
 * copy; a wrong sum is WT_ECORRUPT for that range alone. Either way the reader takes the next copy.
 * An index of a later format version is WT_EUNSUPPORTED.
 */
#ifndef WT_CORE_SHARD_H
#define WT_CORE_SHARD_H

#include "core/err.h"
#include "core/npy.h"
#include "core/sum.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wt_codec { WT_CODEC_TAR = 0, WT_CODEC_ZSTD = 1 };

enum {
    WT_SHARD_VERSION = 1,
    WT_MAX_FIELDS = 16, /* tensors of a sample */
    WT_FIELD_NAME = 32, /* with the NUL */
    WT_KEY_MAX = 92,    /* <lot>/<wafer>/<sample>, so that a member name stays under 100 */
    WT_MAX_CLASSES = 65536,
    WT_BLOCK_BYTES = 1 << 20,   /* whole rows of about this much share a sum or a frame */
    WT_OWN_FRAMES = 64 << 10,   /* a tensor of this size or more has frames of its own */
    WT_SMALL_FRAME = 256 << 10, /* smaller members share frames of about this */
};
#define WT_SHARD_MAX_DECODED (UINT64_C(1) << 40)

#define WT_UNLABELLED (-1)

/* ---- writing ---- */

struct wt_tensor {
    const char *name; /* "" (the member is `.npy`: the image), "mask", "reference" ... [a-z0-9_] */
    struct wt_shape shape;
    const void *data; /* C order, little-endian */
};

struct wt_sample_in {
    const char *key; /* "<lot>/<wafer>/<sample>": parts of [A-Za-z0-9_-+=%~@]; see wt_key_escape */
    uint64_t id;     /* stable in the data set */
    int32_t label;   /* class, or WT_UNLABELLED */
    const uint8_t *multihot; /* n_multihot bytes of 0/1; NULL: no label, in a multi-hot data set */
    const char *json;        /* UTF-8 object with die x/y, source file...; NULL: none */
    const struct wt_tensor *tensors;
    size_t n_tensors;
};

struct wt_shard_opts {
    enum wt_codec codec;
    int level;           /* zstd level, 0: 3 */
    bool sidecars;       /* write .cls and .json members (the index has them anyhow) */
    uint32_t n_multihot; /* classes of a multi-hot data set, 0: single labels */
};

struct wt_shard_out {
    uint8_t *data; /* the whole object; free() */
    uint64_t size;
    uint64_t tar_size;    /* size of the tar stream; = size for .tar */
    uint64_t index_off;   /* stored offset: reading [index_off, size) gives all that
                             wt_shard_index_parse needs */
    uint64_t pixel_bytes; /* sum of the tensors */
    uint32_t samples;
    struct wt_hash hash; /* XXH3-128 of the object */
};

struct wt_shard_writer;
int wt_shard_writer_new(const struct wt_shard_opts *opts, struct wt_shard_writer **out,
                        struct wt_err *err);
/* Copies everything. WT_EINVAL names the key and what is wrong with it (bad key, bad field, twice
 * the same key); WT_ERANGE: the shard is full, finish it first. The writer is as before then.
 * Members of a sample are written in the order in which their fields first appeared in the shard.
 */
int wt_shard_writer_add(struct wt_shard_writer *w, const struct wt_sample_in *sample,
                        struct wt_err *err);
uint64_t wt_shard_writer_tar_bytes(const struct wt_shard_writer *w); /* so far */
uint32_t wt_shard_writer_samples(const struct wt_shard_writer *w);
/* Ends the shard; the writer is then empty and can take the next one, also after an error. A shard
 * of no samples is WT_EINVAL. */
int wt_shard_writer_finish(struct wt_shard_writer *w, struct wt_shard_out *out, struct wt_err *err);
void wt_shard_writer_free(struct wt_shard_writer *w);
void wt_shard_out_free(struct wt_shard_out *out);

/* Makes one legal key part of any text: bytes outside [A-Za-z0-9_-+=@~] become %XX ('.' too:
 * WebDataset splits a key at the first dot; and the first of two leading '_', since it skips
 * folders named so). WT_EINVAL when it is empty or does not fit. */
int wt_key_escape(const char *text, char *out, size_t size);

/* ---- reading ---- */

struct wt_field_ref { /* where one tensor lies */
    uint64_t off;     /* of the first element, in the tar stream */
    uint64_t len;     /* bytes; 0 with shape_id UINT32_MAX: the sample has no such field */
    uint32_t shape_id;
    uint32_t sum_first; /* plain tar: index of its first crc32c in sums[] */
};

/* .tar.zst: frame i covers tar bytes [tar_off, next tar_off) and stored bytes [off, next off). */
struct wt_frame {
    uint64_t tar_off, off;
};

struct wt_shard_index {
    enum wt_codec codec;
    uint32_t samples, n_fields, n_shapes, n_frames, n_multihot;
    uint64_t size, tar_size;
    char field[WT_MAX_FIELDS][WT_FIELD_NAME];
    struct wt_shape *shape;   /* [n_shapes] */
    uint32_t *rows_per_block; /* [n_shapes] rows that share a sum or frame */
    uint64_t *id;   /* [samples]; also the start of the one allocation that all arrays share */
    int32_t *label; /* [samples] class or WT_UNLABELLED; a multi-hot data set: 0 labelled, -1 not */
    uint8_t *multihot; /* [samples][n_multihot] of 0/1, NULL when n_multihot is 0 */
    uint64_t *start;   /* [samples + 1] tar offset of the first header; last: the index member's */
    uint32_t *key_off, *json_off; /* [samples] into text; json_off 0: none */
    struct wt_field_ref *ref;     /* [samples][n_fields] */
    uint32_t *sums;
    uint32_t n_sums;
    struct wt_frame
        *frame; /* [n_frames + 1], .tar.zst only; the last frame holds the index itself */
    char *text;
    uint32_t text_len; /* NUL-terminated strings */
};

/* Where the tail begins, from the last bytes of an object: give the last `len` bytes (at least 64
 * KiB or the whole object) and its size. WT_ERANGE with *index_off = an earlier offset: call again
 * with the bytes from there. */
int wt_shard_locate(const void *end, size_t len, uint64_t size, enum wt_codec codec,
                    uint64_t *index_off, struct wt_err *err);

/* Parses and checks everything (bounds, order, sums of the index, overlaps). tail: the bytes
 * [index_off, size). *index is filled on success; free it. */
int wt_shard_index_parse(const void *tail, size_t len, uint64_t index_off, uint64_t size,
                         enum wt_codec codec, struct wt_shard_index *index, struct wt_err *err);
void wt_shard_index_free(struct wt_shard_index *index);
static inline const char *wt_shard_key(const struct wt_shard_index *x, uint32_t sample) {
    return x->text + x->key_off[sample];
}
static inline const struct wt_field_ref *wt_shard_ref(const struct wt_shard_index *x,
                                                      uint32_t sample, uint32_t field) {
    return &x->ref[(size_t)sample * x->n_fields + field];
}
int wt_shard_field(const struct wt_shard_index *x, const char *name); /* its number, or -1 */

/* A piece of a shard to fetch. tar bytes [tar_off, tar_off + tar_len) come from stored bytes [off,
 * off + len): for .tar the same; for .tar.zst the whole frames [frame_first, frame_first +
 * n_frames) that cover the samples. */
struct wt_span {
    uint64_t off, len;
    uint64_t tar_off, tar_len;
    uint32_t frame_first, n_frames;
};
/* Samples [first, first + count); count > 0 and in range. */
struct wt_span wt_shard_span(const struct wt_shard_index *x, uint32_t first, uint32_t count);

/* Decodes frame `frame` (stored bytes at src, its whole compressed length) into dst (exactly its
 * tar length). Checks size and checksum. The context is reused; one thread at a time. */
struct wt_decoder;
struct wt_decoder *wt_decoder_new(void);
void wt_decoder_free(struct wt_decoder *d);
int wt_shard_decode_frame(struct wt_decoder *d, const struct wt_shard_index *x, uint32_t frame,
                          const void *src, void *dst, struct wt_err *err);

/* Plain tar: checks the sums of samples [first, first+count) whose tar bytes from tar_off on lie at
 * data. WT_ECORRUPT names the key. */
int wt_shard_verify(const struct wt_shard_index *x, uint32_t first, uint32_t count,
                    const void *data, uint64_t tar_off, struct wt_err *err);
/* The same for one tensor whose tar bytes lie at src, optionally copied while it is summed (dst
 * NULL: only checked). Of a .tar.zst, whose frames were checked when they were decoded: only
 * copied. */
int wt_shard_verify_field(const struct wt_shard_index *x, uint32_t sample, uint32_t field,
                          const void *src, void *dst, struct wt_err *err);

#endif
