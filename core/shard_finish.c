/*
 * Making the object of a collected shard: the index member, and for .tar.zst the frames and the
 * seek table; see shard.h.
 *
 * Happy path: frames are compressed and listed -> the payload of `__index__` is put together (it
 * holds a hash of that list) -> its header, the payload and the end of the tar follow, plain or as
 * the last frame -> the seek table. Failures: no memory; the writer is emptied either way.
 */
#include "core/shard_writer.h"

#include "core/mem.h"

#include <stdlib.h>
#include <string.h>

struct frames { /* the object of a .tar.zst so far */
    struct wt_bytes out, table;
};

static int compress(struct wt_shard_writer *w, struct frames *f, const void *data, size_t len,
                    struct wt_err *err) {
    size_t bound = ZSTD_compressBound(len);
    struct wt_bytes *out = &f->out;
    if (wt_grow(&out->data, &out->cap, out->len + bound, 1) < 0)
        return wt_err_set(err, WT_ENOMEM, "no memory for a zstd frame of %zu bytes", bound);
    size_t n = ZSTD_compress2(w->zstd, out->data + out->len, bound, data, len);
    if (ZSTD_isError(n) || n > UINT32_MAX)
        return wt_err_set(err, WT_ENOMEM, "zstd: %s", ZSTD_getErrorName(n));
    out->len += n;
    uint8_t entry[WT_SEEK_ENTRY];
    wt_put32(entry, (uint32_t)n);
    wt_put32(entry + 4, (uint32_t)len);
    if (wt_bytes_add(&f->table, entry, sizeof entry) < 0)
        return wt_err_set(err, WT_ENOMEM, "no memory for the seek table");
    return 0;
}

static int compress_cuts(struct wt_shard_writer *w, struct frames *f, struct wt_err *err) {
    if (wt_shard_cut(w, w->tar.len) < 0)
        return wt_err_set(err, WT_ENOMEM, "no memory for the frames of a shard");
    uint64_t from = 0;
    for (size_t i = 0; i < w->cuts.len; i += 8) {
        uint64_t to = wt_get64(w->cuts.data + i);
        int rc = compress(w, f, w->tar.data + from, to - from, err);
        if (rc < 0)
            return rc;
        from = to;
    }
    return 0;
}

static int add_seek_table(struct frames *f, struct wt_err *err) {
    uint8_t head[WT_SEEK_HEAD], foot[WT_SEEK_FOOT];
    wt_put32(head, WT_SEEK_SKIPPABLE);
    wt_put32(head + 4, (uint32_t)(f->table.len + sizeof foot));
    wt_put32(foot, (uint32_t)(f->table.len / WT_SEEK_ENTRY));
    foot[4] = 0; /* no sums: the frames have their own */
    wt_put32(foot + 5, WT_SEEK_MAGIC);
    if (wt_bytes_add(&f->out, head, sizeof head) < 0 ||
        wt_bytes_add(&f->out, f->table.data, f->table.len) < 0 ||
        wt_bytes_add(&f->out, foot, sizeof foot) < 0)
        return wt_err_set(err, WT_ENOMEM, "no memory for the seek table");
    return 0;
}

/* ---- the index ---- */

/* Sections that need the final numbers of samples and fields. */
static int fill_sections(struct wt_shard_writer *w) {
    struct wt_bytes *off = &w->section[WT_SEC_REF_OFF], *shape = &w->section[WT_SEC_REF_SHAPE];
    uint64_t end = w->tar.len;
    size_t refs = (size_t)w->samples * w->n_fields;
    if (wt_bytes_add(&w->section[WT_SEC_FIELDS], w->field, (size_t)w->n_fields * WT_FIELD_NAME) <
            0 ||
        wt_bytes_add(&w->section[WT_SEC_START], &end, sizeof end) < 0 ||
        wt_bytes_zeros(off, refs * 8) < 0 || wt_bytes_zeros(shape, refs * 4) < 0)
        return WT_ENOMEM;
    memset(shape->data, 0xff, refs * 4); /* WT_NO_SHAPE */
    for (size_t i = 0; i < w->placed.len; i += sizeof(struct wt_placed)) {
        struct wt_placed p;
        memcpy(&p, w->placed.data + i, sizeof p);
        size_t at = (size_t)p.sample * w->n_fields + p.field;
        wt_put64(off->data + at * 8, p.off);
        wt_put32(shape->data + at * 4, p.shape);
    }
    return 0;
}

static void fill_header(const struct wt_shard_writer *w, const struct wt_bytes *table, uint8_t *h,
                        uint64_t len) {
    memcpy(h + WT_AT_MAGIC, WT_INDEX_MAGIC, 8);
    wt_put32(h + WT_AT_VERSION, WT_SHARD_VERSION);
    wt_put32(h + WT_AT_CODEC, w->opts.codec);
    wt_put32(h + WT_AT_SAMPLES, w->samples);
    wt_put32(h + WT_AT_FIELDS, w->n_fields);
    wt_put32(h + WT_AT_SHAPES, w->n_shapes);
    wt_put32(h + WT_AT_SUMS, (uint32_t)(w->section[WT_SEC_SUMS].len / 4));
    wt_put32(h + WT_AT_MULTIHOT, w->opts.n_multihot);
    wt_put32(h + WT_AT_TEXT_LEN, (uint32_t)w->section[WT_SEC_TEXT].len);
    wt_put64(h + WT_AT_TAR_SIZE, w->tar.len + WT_TAR_BLOCK + len + WT_TAR_END);
    wt_put64(h + WT_AT_MEMBER, w->tar.len);
    wt_put64(h + WT_AT_LEN, len);
    wt_put32(h + WT_AT_FRAMES, (uint32_t)(table->len / WT_SEEK_ENTRY));
    if (w->opts.codec == WT_CODEC_ZSTD)
        wt_put64(h + WT_AT_FRAMES_HASH, wt_hash64(table->data, table->len));
    uint64_t at = WT_INDEX_HEADER;
    for (int i = 0; i < WT_SECTIONS; i++) {
        wt_put32(h + WT_AT_SECTIONS + (size_t)i * 4, (uint32_t)at);
        at += wt_align8(w->section[i].len);
    }
}

/* The end of the tar: the index member and two zero blocks. */
static int build_tail(struct wt_shard_writer *w, const struct wt_bytes *table,
                      struct wt_bytes *tail) {
    if (fill_sections(w) < 0)
        return WT_ENOMEM;
    uint64_t len = WT_INDEX_HEADER + WT_INDEX_TRAILER;
    for (int i = 0; i < WT_SECTIONS; i++)
        len += wt_align8(w->section[i].len);
    len += wt_tar_pad(len);
    int rc = wt_bytes_zeros(tail, WT_TAR_BLOCK + len + WT_TAR_END);
    if (rc < 0)
        return rc;
    wt_tar_header(tail->data, WT_INDEX_MEMBER, len);
    uint8_t *payload = tail->data + WT_TAR_BLOCK;
    fill_header(w, table, payload, len);
    uint64_t at = WT_INDEX_HEADER;
    for (int i = 0; i < WT_SECTIONS; i++) {
        if (w->section[i].len)
            memcpy(payload + at, w->section[i].data, w->section[i].len);
        at += wt_align8(w->section[i].len);
    }
    uint8_t *trailer = payload + len - WT_INDEX_TRAILER;
    wt_put64(trailer + WT_AT_HASH, wt_hash64(payload, len - WT_INDEX_TRAILER));
    wt_put64(trailer + WT_AT_END_LEN, len);
    memcpy(trailer + WT_AT_END_MAGIC, WT_TRAILER_MAGIC, 8);
    return 0;
}

/* ---- the object ---- */

static int finish_zstd(struct wt_shard_writer *w, struct wt_shard_out *out, struct wt_err *err) {
    struct frames f = {0};
    struct wt_bytes tail = {0};
    int rc = compress_cuts(w, &f, err);
    out->index_off = f.out.len;
    if (rc == 0 && build_tail(w, &f.table, &tail) < 0)
        rc = wt_err_set(err, WT_ENOMEM, "no memory for the index of a shard");
    if (rc == 0)
        rc = compress(w, &f, tail.data, tail.len, err);
    if (rc == 0)
        rc = add_seek_table(&f, err);
    out->tar_size = w->tar.len + tail.len;
    wt_bytes_free(&f.table);
    wt_bytes_free(&tail);
    if (rc < 0) {
        wt_bytes_free(&f.out);
        return rc;
    }
    out->data = f.out.data;
    out->size = f.out.len;
    return 0;
}

static int finish_tar(struct wt_shard_writer *w, struct wt_shard_out *out, struct wt_err *err) {
    struct wt_bytes tail = {0}, none = {0};
    out->index_off = w->tar.len;
    int rc = build_tail(w, &none, &tail);
    if (rc == 0)
        rc = wt_bytes_add(&w->tar, tail.data, tail.len);
    wt_bytes_free(&tail);
    if (rc < 0)
        return wt_err_set(err, WT_ENOMEM, "no memory for the index of a shard");
    out->data = w->tar.data;
    out->size = out->tar_size = w->tar.len;
    w->tar = (struct wt_bytes){0};
    return 0;
}

int wt_shard_writer_finish(struct wt_shard_writer *w, struct wt_shard_out *out,
                           struct wt_err *err) {
    struct wt_shard_out made = {.samples = w->samples, .pixel_bytes = w->pixel_bytes};
    int rc;
    if (w->broken)
        rc = wt_err_set(err, WT_ENOMEM, "the shard ran out of memory at an earlier sample");
    else if (w->samples == 0)
        rc = wt_err_set(err, WT_EINVAL, "a shard of no samples");
    else if (w->opts.codec == WT_CODEC_ZSTD)
        rc = finish_zstd(w, &made, err);
    else
        rc = finish_tar(w, &made, err);
    wt_shard_writer_reset(w);
    if (rc < 0)
        return rc;
    made.hash = wt_hash(made.data, made.size);
    *out = made;
    return 0;
}

void wt_shard_out_free(struct wt_shard_out *out) {
    free(out->data);
    *out = (struct wt_shard_out){0};
}
