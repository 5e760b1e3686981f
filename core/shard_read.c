/*
 * Using a parsed index: what to fetch for which samples, decoding of frames, checking of sums; see
 * shard.h.
 *
 * Failures: a wrong frame or sum is WT_ECORRUPT for that range alone; the message names the frame,
 * or the key and the field.
 */
#include "core/mem.h"
#include "core/shard_index.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

int wt_shard_field(const struct wt_shard_index *x, const char *name) {
    for (uint32_t f = 0; f < x->n_fields; f++)
        if (strcmp(x->field[f], name) == 0)
            return (int)f;
    return -1;
}

/* The number of frames that begin at or before `tar_off`. */
static uint32_t frames_upto(const struct wt_shard_index *x, uint64_t tar_off) {
    uint32_t low = 0, high = x->n_frames;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (x->frame[mid].tar_off <= tar_off)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct wt_span wt_shard_span(const struct wt_shard_index *x, uint32_t first, uint32_t count) {
    uint64_t from = x->start[first], to = x->start[first + count];
    if (x->codec == WT_CODEC_TAR)
        return (struct wt_span){
            .off = from, .len = to - from, .tar_off = from, .tar_len = to - from};
    uint32_t begin = frames_upto(x, from) - 1, end = frames_upto(x, to - 1);
    const struct wt_frame *a = &x->frame[begin], *b = &x->frame[end];
    return (struct wt_span){
        .off = a->off,
        .len = b->off - a->off,
        .tar_off = a->tar_off,
        .tar_len = b->tar_off - a->tar_off,
        .frame_first = begin,
        .n_frames = end - begin,
    };
}

/* ---- frames ---- */

struct wt_decoder {
    ZSTD_DCtx *zstd;
};

struct wt_decoder *wt_decoder_new(void) {
    struct wt_decoder *d = wt_calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->zstd = ZSTD_createDCtx();
    if (!d->zstd) {
        free(d);
        return NULL;
    }
    return d;
}

void wt_decoder_free(struct wt_decoder *d) {
    if (!d)
        return;
    ZSTD_freeDCtx(d->zstd);
    free(d);
}

int wt_frame_check(const void *src, uint64_t len, uint64_t decoded) {
    enum { DESCRIPTOR = 4, HAS_CHECKSUM = 4 };
    const uint8_t *p = src;
    if (len <= DESCRIPTOR || wt_get32(p) != ZSTD_MAGICNUMBER || !(p[DESCRIPTOR] & HAS_CHECKSUM))
        return WT_ECORRUPT;
    if (ZSTD_getFrameContentSize(src, len) != decoded)
        return WT_ECORRUPT;
    return ZSTD_findFrameCompressedSize(src, len) == len ? 0 : WT_ECORRUPT;
}

int wt_shard_decode_frame(struct wt_decoder *d, const struct wt_shard_index *x, uint32_t frame,
                          const void *src, void *dst, struct wt_err *err) {
    if (x->codec != WT_CODEC_ZSTD || frame >= x->n_frames)
        return wt_err_set(err, WT_EINVAL, "the shard has no frame %u", frame);
    uint64_t len = x->frame[frame + 1].off - x->frame[frame].off;
    uint64_t decoded = x->frame[frame + 1].tar_off - x->frame[frame].tar_off;
    if (wt_frame_check(src, len, decoded) < 0)
        return wt_err_set(err, WT_ECORRUPT, "frame %u is damaged in its header or size", frame);
    size_t n = ZSTD_decompressDCtx(d->zstd, dst, decoded, src, len);
    if (ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation)
        return wt_err_set(err, WT_ENOMEM, "no memory to decode frame %u", frame);
    if (ZSTD_isError(n))
        return wt_err_set(err, WT_ECORRUPT, "frame %u is damaged: %s", frame, ZSTD_getErrorName(n));
    if (n != decoded)
        return wt_err_set(err, WT_ECORRUPT, "frame %u decodes to %zu bytes instead of %llu", frame,
                          n, (unsigned long long)decoded);
    return 0;
}

/* ---- sums ---- */

int wt_shard_verify_field(const struct wt_shard_index *x, uint32_t sample, uint32_t field,
                          const void *src, void *dst, struct wt_err *err) {
    const struct wt_field_ref *ref = wt_shard_ref(x, sample, field);
    if (x->codec == WT_CODEC_ZSTD) { /* the frames had checksums */
        if (dst && ref->len)
            memcpy(dst, src, ref->len);
        return 0;
    }
    if (ref->len == 0)
        return 0;
    uint64_t block =
        wt_block_bytes(&x->shape[ref->shape_id], ref->len, x->rows_per_block[ref->shape_id]);
    const uint32_t *sum = x->sums + ref->sum_first;
    const uint8_t *from = src;
    uint8_t *to = dst;
    for (uint64_t at = 0; at < ref->len; at += block, sum++) {
        uint64_t len = ref->len - at < block ? ref->len - at : block;
        uint32_t crc =
            to ? wt_crc32c_copy(0, to + at, from + at, len) : wt_crc32c(0, from + at, len);
        if (crc != *sum)
            return wt_err_set(err, WT_ECORRUPT, "sample '%s', field '%s': wrong sum at byte %llu",
                              wt_shard_key(x, sample), x->field[field], (unsigned long long)at);
    }
    return 0;
}

int wt_shard_verify(const struct wt_shard_index *x, uint32_t first, uint32_t count,
                    const void *data, uint64_t tar_off, struct wt_err *err) {
    if (x->codec == WT_CODEC_ZSTD)
        return 0;
    for (uint32_t i = first; i < first + count; i++) {
        for (uint32_t f = 0; f < x->n_fields; f++) {
            const struct wt_field_ref *ref = wt_shard_ref(x, i, f);
            if (ref->len == 0)
                continue;
            const uint8_t *src = (const uint8_t *)data + (ref->off - tar_off);
            int rc = wt_shard_verify_field(x, i, f, src, NULL, err);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}
