/*
 * Collecting samples into a tar and its index; see shard.h, and shard_finish.c for how the object
 * is made of them.
 *
 * Happy path of an added sample: checked as a whole, then its members are appended to the tar
 * (tensors in the order of field numbers, then .cls and .json) and its row to the sections of the
 * index. Failures: a sample that is refused leaves the writer as it was. Running out of memory
 * half-way leaves it broken: it then refuses everything until finish, which fails and empties it.
 */
#include "core/shard_writer.h"

#include "core/mem.h"
#include "core/shard_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sets ---- */

typedef bool (*same_fn)(const struct wt_shard_writer *w, uint32_t id, const void *what);

static bool set_find(const struct wt_shard_writer *w, const struct wt_set *set, uint64_t hash,
                     same_fn same, const void *what, uint32_t *id) {
    for (size_t i = hash; set->cap; i++) {
        const struct wt_slot *slot = &set->slot[i & (set->cap - 1)];
        if (slot->id_plus_1 == 0)
            return false;
        if (slot->hash == hash && same(w, slot->id_plus_1 - 1, what)) {
            *id = slot->id_plus_1 - 1;
            return true;
        }
    }
    return false;
}

static void set_put(struct wt_set *set, uint64_t hash, uint32_t id) {
    size_t i = hash;
    while (set->slot[i & (set->cap - 1)].id_plus_1)
        i++;
    set->slot[i & (set->cap - 1)] = (struct wt_slot){.hash = hash, .id_plus_1 = id + 1};
    set->used++;
}

static int set_add(struct wt_set *set, uint64_t hash, uint32_t id) {
    if (set->used >= set->cap / 2) {
        struct wt_set bigger = {.cap = set->cap ? set->cap * 2 : 64};
        bigger.slot = wt_calloc(bigger.cap, sizeof *bigger.slot);
        if (!bigger.slot)
            return WT_ENOMEM;
        for (size_t i = 0; i < set->cap; i++)
            if (set->slot[i].id_plus_1)
                set_put(&bigger, set->slot[i].hash, set->slot[i].id_plus_1 - 1);
        free(set->slot);
        *set = bigger;
    }
    set_put(set, hash, id);
    return 0;
}

static void set_clear(struct wt_set *set) {
    if (set->cap)
        memset(set->slot, 0, set->cap * sizeof *set->slot);
    set->used = 0;
}

static bool same_key(const struct wt_shard_writer *w, uint32_t id, const void *what) {
    uint32_t off = wt_get32(w->section[WT_SEC_KEY].data + (size_t)id * 4);
    return strcmp((const char *)w->section[WT_SEC_TEXT].data + off, what) == 0;
}

static bool same_shape(const struct wt_shard_writer *w, uint32_t id, const void *what) {
    const uint8_t *record = w->section[WT_SEC_SHAPES].data + (size_t)id * WT_SHAPE_RECORD;
    return memcmp(record, what, WT_SHAPE_RECORD) == 0;
}

/* ---- the tar ---- */

static int push_cut(struct wt_shard_writer *w, uint64_t off) {
    int rc = wt_bytes_add(&w->cuts, &off, sizeof off);
    if (rc == 0)
        w->last_cut = off;
    return rc;
}

int wt_shard_cut(struct wt_shard_writer *w, uint64_t off) {
    int rc = 0;
    while (rc == 0 && off - w->last_cut > 2 * WT_BLOCK_BYTES)
        rc = push_cut(w, w->last_cut + WT_BLOCK_BYTES);
    if (rc == 0 && off > w->last_cut)
        rc = push_cut(w, off);
    return rc;
}

static int add_header(struct wt_shard_writer *w, const char *key, const char *field,
                      const char *ext, uint64_t size) {
    char name[WT_TAR_NAME_WRITE];
    uint8_t header[WT_TAR_BLOCK];
    snprintf(name, sizeof name, "%s%s%s.%s", key, field[0] ? "." : "", field, ext);
    wt_tar_header(header, name, size);
    return wt_bytes_add(&w->tar, header, sizeof header);
}

static int add_text(struct wt_shard_writer *w, const char *key, const char *ext, const char *text) {
    size_t len = strlen(text);
    int rc = add_header(w, key, "", ext, len);
    if (rc == 0)
        rc = wt_bytes_add(&w->tar, text, len);
    return rc == 0 ? wt_bytes_zeros(&w->tar, wt_tar_pad(len)) : rc;
}

/* Each block of whole rows gets a sum (.tar) or, in a tensor that is large enough, a frame
 * (.tar.zst). */
static int add_blocks(struct wt_shard_writer *w, const struct wt_tensor *t, uint64_t bytes,
                      uint32_t rows) {
    uint64_t off = w->tar.len;
    uint64_t block = wt_block_bytes(&t->shape, bytes, rows);
    bool framed = w->opts.codec == WT_CODEC_ZSTD && bytes >= WT_OWN_FRAMES;
    int rc = framed ? wt_shard_cut(w, off) : 0;
    if (rc == 0)
        rc = wt_bytes_add(&w->tar, t->data, bytes);
    for (uint64_t at = 0; rc == 0 && at < bytes; at += block) {
        uint64_t len = bytes - at < block ? bytes - at : block;
        if (w->opts.codec == WT_CODEC_TAR) {
            uint32_t sum = wt_crc32c(0, (const uint8_t *)t->data + at, len);
            rc = wt_bytes_add(&w->section[WT_SEC_SUMS], &sum, sizeof sum);
        } else if (framed) {
            rc = push_cut(w, off + at + len);
        }
    }
    return rc;
}

static int shape_id(struct wt_shard_writer *w, const struct wt_shape *s, uint32_t rows,
                    uint32_t *id) {
    uint8_t record[WT_SHAPE_RECORD] = {0};
    wt_put32(record, s->dtype);
    wt_put32(record + 4, s->ndim);
    for (uint32_t i = 0; i < s->ndim; i++)
        wt_put32(record + 8 + (size_t)i * 4, s->dim[i]);
    wt_put32(record + 40, rows);
    uint64_t hash = wt_hash64(record, sizeof record);
    if (set_find(w, &w->shapes, hash, same_shape, record, id))
        return 0;
    *id = w->n_shapes;
    int rc = wt_bytes_add(&w->section[WT_SEC_SHAPES], record, sizeof record);
    if (rc == 0)
        rc = set_add(&w->shapes, hash, w->n_shapes);
    if (rc == 0)
        w->n_shapes++;
    return rc;
}

static uint32_t rows_per_block(const struct wt_shape *s, uint64_t bytes) {
    uint64_t row = wt_row_bytes(s, bytes);
    return row == 0 || row > WT_BLOCK_BYTES ? 1 : (uint32_t)(WT_BLOCK_BYTES / row);
}

static int add_tensor(struct wt_shard_writer *w, const char *key, uint32_t field,
                      const struct wt_tensor *t) {
    char npy[WT_NPY_WRITE_MAX];
    size_t npy_len = wt_npy_write(&t->shape, npy);
    uint64_t bytes = 0;
    wt_shape_bytes(&t->shape, &bytes);
    uint32_t rows = rows_per_block(&t->shape, bytes);
    struct wt_placed placed = {.sample = w->samples, .field = field};
    int rc = add_header(w, key, t->name, "npy", npy_len + bytes);
    if (rc == 0)
        rc = wt_bytes_add(&w->tar, npy, npy_len);
    if (rc == 0)
        rc = shape_id(w, &t->shape, rows, &placed.shape);
    placed.off = w->tar.len;
    if (rc == 0)
        rc = wt_bytes_add(&w->placed, &placed, sizeof placed);
    if (rc == 0)
        rc = add_blocks(w, t, bytes, rows);
    if (rc == 0)
        rc = wt_bytes_zeros(&w->tar, wt_tar_pad(npy_len + bytes));
    w->pixel_bytes += bytes;
    return rc;
}

/* ---- the sample ---- */

static uint32_t field_number(const struct wt_shard_writer *w, const char *name) {
    uint32_t f = 0;
    while (f < w->n_fields && strcmp(w->field[f], name) != 0)
        f++;
    return f;
}

static int add_members(struct wt_shard_writer *w, const struct wt_sample_in *s) {
    const struct wt_tensor *by_field[WT_MAX_FIELDS] = {NULL};
    for (size_t i = 0; i < s->n_tensors; i++) {
        uint32_t f = field_number(w, s->tensors[i].name);
        if (f == w->n_fields)
            snprintf(w->field[w->n_fields++], WT_FIELD_NAME, "%s", s->tensors[i].name);
        by_field[f] = &s->tensors[i];
    }
    int rc = 0;
    for (uint32_t f = 0; rc == 0 && f < w->n_fields; f++)
        if (by_field[f])
            rc = add_tensor(w, s->key, f, by_field[f]);
    if (rc == 0 && w->opts.sidecars && w->opts.n_multihot == 0 && s->label != WT_UNLABELLED) {
        char text[16];
        snprintf(text, sizeof text, "%d", s->label);
        rc = add_text(w, s->key, "cls", text);
    }
    if (rc == 0 && w->opts.sidecars && s->json)
        rc = add_text(w, s->key, "json", s->json);
    return rc;
}

static int add_string(struct wt_shard_writer *w, enum wt_section offsets, const char *text) {
    struct wt_bytes *all = &w->section[WT_SEC_TEXT];
    int rc = all->len == 0 ? wt_bytes_zeros(all, 1) : 0; /* offset 0: no text */
    uint32_t off = text ? (uint32_t)all->len : 0;
    if (rc == 0 && text)
        rc = wt_bytes_add(all, text, strlen(text) + 1);
    return rc == 0 ? wt_bytes_add(&w->section[offsets], &off, sizeof off) : rc;
}

static int add_multihot(struct wt_shard_writer *w, const uint8_t *values) {
    struct wt_bytes *bits = &w->section[WT_SEC_MULTIHOT];
    size_t first = bits->len;
    int rc = wt_bytes_zeros(bits, (w->opts.n_multihot + 7) / 8);
    for (uint32_t c = 0; rc == 0 && values && c < w->opts.n_multihot; c++)
        bits->data[first + c / 8] |= (uint8_t)(values[c] << c % 8);
    return rc;
}

static int add_row(struct wt_shard_writer *w, const struct wt_sample_in *s, uint64_t start) {
    int32_t label = s->label;
    if (w->opts.n_multihot)
        label = s->multihot ? 0 : WT_UNLABELLED;
    int rc = wt_bytes_add(&w->section[WT_SEC_ID], &s->id, sizeof s->id);
    if (rc == 0)
        rc = wt_bytes_add(&w->section[WT_SEC_START], &start, sizeof start);
    if (rc == 0)
        rc = wt_bytes_add(&w->section[WT_SEC_LABEL], &label, sizeof label);
    if (rc == 0)
        rc = add_multihot(w, s->multihot);
    if (rc == 0)
        rc = add_string(w, WT_SEC_KEY, s->key);
    if (rc == 0)
        rc = add_string(w, WT_SEC_JSON, s->json);
    if (rc == 0)
        rc = set_add(&w->keys, wt_hash64(s->key, strlen(s->key)), w->samples);
    return rc;
}

/* What the sample needs at most, against what a shard may hold. */
static int check_room(const struct wt_shard_writer *w, const struct wt_sample_in *s,
                      struct wt_err *err) {
    uint32_t id, n_new = 0;
    if (set_find(w, &w->keys, wt_hash64(s->key, strlen(s->key)), same_key, s->key, &id))
        return wt_err_set(err, WT_EINVAL, "sample '%s': its key is in the shard already", s->key);
    uint64_t json_len = s->json ? strlen(s->json) : 0;
    uint64_t tar = w->tar.len + json_len + 4 * WT_TAR_BLOCK;
    uint64_t index = json_len + WT_KEY_MAX + 64 + w->opts.n_multihot / 8 + WT_MAX_FIELDS * 64;
    for (size_t i = 0; i < s->n_tensors; i++) {
        uint64_t bytes = 0;
        wt_shape_bytes(&s->tensors[i].shape, &bytes);
        tar += bytes + 3 * WT_TAR_BLOCK;
        index += bytes / (WT_BLOCK_BYTES / 2) * 4 + 8;
        n_new += field_number(w, s->tensors[i].name) == w->n_fields;
    }
    if (w->n_fields + n_new > WT_MAX_FIELDS)
        return wt_err_set(err, WT_EINVAL, "sample '%s': more than %d fields in a shard", s->key,
                          WT_MAX_FIELDS);
    for (int i = 0; i < WT_SECTIONS; i++)
        index += w->section[i].len;
    index += (uint64_t)(w->samples + 1) * (w->n_fields + n_new) * 12;
    if (index > WT_INDEX_MAX - 4096 || tar > WT_SHARD_MAX_DECODED - WT_INDEX_MAX - 4096)
        return wt_err_set(err, WT_ERANGE, "sample '%s' does not fit: the shard is full, end it",
                          s->key);
    return 0;
}

static bool has_large(const struct wt_sample_in *s) {
    for (size_t i = 0; i < s->n_tensors; i++) {
        uint64_t bytes = 0;
        if (wt_shape_bytes(&s->tensors[i].shape, &bytes) && bytes >= WT_OWN_FRAMES)
            return true;
    }
    return false;
}

/* Samples with frames of their own share none with their neighbours; small ones do, up to
 * WT_SMALL_FRAME. */
static int add_checked(struct wt_shard_writer *w, const struct wt_sample_in *s) {
    uint64_t start = w->tar.len;
    bool zstd = w->opts.codec == WT_CODEC_ZSTD, large = has_large(s);
    int rc = zstd && large ? wt_shard_cut(w, start) : 0;
    if (rc == 0)
        rc = add_members(w, s);
    if (rc == 0)
        rc = add_row(w, s, start);
    if (rc == 0 && zstd && (large || w->tar.len - w->last_cut >= WT_SMALL_FRAME))
        rc = wt_shard_cut(w, w->tar.len);
    if (rc == 0)
        w->samples++;
    return rc;
}

int wt_shard_writer_add(struct wt_shard_writer *w, const struct wt_sample_in *sample,
                        struct wt_err *err) {
    if (w->broken)
        return wt_err_set(err, WT_ENOMEM, "the shard ran out of memory at an earlier sample");
    int rc = wt_sample_check(sample, &w->opts, err);
    if (rc == 0)
        rc = check_room(w, sample, err);
    if (rc < 0)
        return rc;
    rc = add_checked(w, sample);
    if (rc == 0)
        return 0;
    w->broken = true;
    return wt_err_set(err, rc, "sample '%s': no memory for a shard of %zu bytes", sample->key,
                      w->tar.len);
}

/* ---- the writer ---- */

static int make_zstd(struct wt_shard_writer *w, struct wt_err *err) {
    int level = w->opts.level ? w->opts.level : 3;
    w->zstd = ZSTD_createCCtx();
    if (!w->zstd)
        return wt_err_set(err, WT_ENOMEM, "no memory for a zstd context");
    ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_contentSizeFlag, 1);
    ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_checksumFlag, 1);
    return 0;
}

int wt_shard_writer_new(const struct wt_shard_opts *opts, struct wt_shard_writer **out,
                        struct wt_err *err) {
    if (opts->codec != WT_CODEC_TAR && opts->codec != WT_CODEC_ZSTD)
        return wt_err_set(err, WT_EINVAL, "shard codec %d is not known", (int)opts->codec);
    if (opts->level < ZSTD_minCLevel() || opts->level > ZSTD_maxCLevel())
        return wt_err_set(err, WT_EINVAL, "zstd level %d is not in 1..%d", opts->level,
                          ZSTD_maxCLevel());
    if (opts->n_multihot > WT_MAX_CLASSES)
        return wt_err_set(err, WT_EINVAL, "%u classes, the limit is %d", opts->n_multihot,
                          WT_MAX_CLASSES);
    struct wt_shard_writer *w = wt_calloc(1, sizeof *w);
    if (!w)
        return wt_err_set(err, WT_ENOMEM, "no memory for a shard writer");
    w->opts = *opts;
    int rc = opts->codec == WT_CODEC_ZSTD ? make_zstd(w, err) : 0;
    if (rc < 0) {
        wt_shard_writer_free(w);
        return rc;
    }
    *out = w;
    return 0;
}

uint64_t wt_shard_writer_tar_bytes(const struct wt_shard_writer *w) {
    return w->tar.len;
}

uint32_t wt_shard_writer_samples(const struct wt_shard_writer *w) {
    return w->samples;
}

void wt_shard_writer_reset(struct wt_shard_writer *w) {
    w->broken = false;
    w->samples = w->n_fields = w->n_shapes = 0;
    w->pixel_bytes = w->last_cut = 0;
    w->tar.len = w->cuts.len = w->placed.len = 0;
    for (int i = 0; i < WT_SECTIONS; i++)
        w->section[i].len = 0;
    set_clear(&w->keys);
    set_clear(&w->shapes);
}

void wt_shard_writer_free(struct wt_shard_writer *w) {
    if (!w)
        return;
    ZSTD_freeCCtx(w->zstd);
    wt_bytes_free(&w->tar);
    wt_bytes_free(&w->cuts);
    wt_bytes_free(&w->placed);
    for (int i = 0; i < WT_SECTIONS; i++)
        wt_bytes_free(&w->section[i]);
    free(w->keys.slot);
    free(w->shapes.slot);
    free(w);
}
