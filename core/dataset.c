/*
 * Names of a data set's objects, records of shards.idx, and the index of a whole generation in
 * memory; see dataset.h.
 *
 * Failures of wt_dataset_build: a part whose hash, length or records are wrong is WT_ECORRUPT and
 * is named; totals that differ from the manifest's too. The manifest stays the caller's then.
 */
#include "core/dataset.h"

#include "core/bytes.h"
#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARDS_IN_FOLDER = 10000 };

/* ---- names ---- */

int wt_dataset_name_check(const char *name, struct wt_err *err) {
    static const char first[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    static const char rest[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t len = strlen(name);
    if (len == 0 || len >= WT_DATASET_NAME || strspn(name, first) == 0 || strspn(name, rest) != len)
        return wt_err_set(err, WT_EINVAL,
                          "'%.80s' is no name of a data set: up to 63 of a-z 0-9 . _ -, beginning "
                          "with a letter or digit",
                          name);
    return 0;
}

void wt_manifest_name(const char *dataset, char out[WT_OBJECT_NAME]) {
    snprintf(out, WT_OBJECT_NAME, "%s/manifest.json", dataset);
}

void wt_retired_name(const char *dataset, uint64_t generation, char out[WT_OBJECT_NAME]) {
    snprintf(out, WT_OBJECT_NAME, "%s/retired/%llu.json", dataset, (unsigned long long)generation);
}

void wt_idx_name(const char *dataset, struct wt_hash hash, char out[WT_OBJECT_NAME]) {
    char hex[WT_HASH_HEX];
    wt_hash_hex(hash, hex);
    snprintf(out, WT_OBJECT_NAME, "%s/idx/%s.idx", dataset, hex);
}

static void shard_name(const char *dataset, uint64_t number, struct wt_hash hash,
                       enum wt_codec codec, char out[WT_OBJECT_NAME]) {
    char hex[WT_HASH_HEX];
    wt_hash_hex(hash, hex);
    snprintf(out, WT_OBJECT_NAME, "%s/shards/%04llu/%08llu-%s.tar%s", dataset,
             (unsigned long long)(number / SHARDS_IN_FOLDER), (unsigned long long)number, hex,
             codec == WT_CODEC_ZSTD ? ".zst" : "");
}

void wt_shard_name(const char *dataset, uint64_t number, const struct wt_shard_rec *rec,
                   char out[WT_OBJECT_NAME]) {
    shard_name(dataset, number, rec->hash, rec->codec, out);
}

/* The first part of a name, checked. */
static int take_set(const char *name, char dataset[WT_DATASET_NAME]) {
    const char *slash = strchr(name, '/');
    if (!slash || slash - name >= WT_DATASET_NAME)
        return WT_EINVAL;
    char set[WT_DATASET_NAME];
    snprintf(set, sizeof set, "%.*s", (int)(slash - name), name);
    if (wt_dataset_name_check(set, NULL) < 0)
        return WT_EINVAL;
    memcpy(dataset, set, sizeof set);
    return 0;
}

int wt_idx_name_parse(const char *name, char dataset[WT_DATASET_NAME], struct wt_hash *hash) {
    char set[WT_DATASET_NAME], hex[WT_HASH_HEX], again[WT_OBJECT_NAME];
    struct wt_hash h;
    const char *base = strrchr(name, '/');
    if (!base || strnlen(base + 1, 32) < 32 || take_set(name, set) < 0)
        return WT_EINVAL;
    snprintf(hex, sizeof hex, "%.32s", base + 1);
    if (wt_hash_parse(hex, &h) < 0)
        return WT_EINVAL;
    wt_idx_name(set, h, again);
    if (strcmp(again, name) != 0)
        return WT_EINVAL;
    memcpy(dataset, set, sizeof set);
    *hash = h;
    return 0;
}

int wt_retired_name_parse(const char *name, char dataset[WT_DATASET_NAME], uint64_t *generation) {
    char set[WT_DATASET_NAME], again[WT_OBJECT_NAME];
    const char *base = strrchr(name, '/');
    if (!base || take_set(name, set) < 0)
        return WT_EINVAL;
    uint64_t g = strtoull(base + 1, NULL, 10);
    wt_retired_name(set, g, again);
    if (strcmp(again, name) != 0)
        return WT_EINVAL;
    memcpy(dataset, set, sizeof set);
    *generation = g;
    return 0;
}

/* Takes the parts out, then makes the name of them again: only the one spelling is right. */
int wt_shard_name_parse(const char *name, char dataset[WT_DATASET_NAME], uint64_t *number,
                        struct wt_hash *hash) {
    char set[WT_DATASET_NAME], hex[WT_HASH_HEX], again[WT_OBJECT_NAME];
    const char *slash = strchr(name, '/'), *base = strrchr(name, '/');
    if (!slash || slash - name >= WT_DATASET_NAME)
        return WT_EINVAL;
    snprintf(set, sizeof set, "%.*s", (int)(slash - name), name);
    uint64_t n = 0;
    const char *p = base + 1;
    for (; *p >= '0' && *p <= '9' && p - base <= 19; p++)
        n = n * 10 + (uint64_t)(*p - '0');
    struct wt_hash h;
    if (*p != '-' || strnlen(p + 1, 32) < 32)
        return WT_EINVAL;
    snprintf(hex, sizeof hex, "%.32s", p + 1);
    if (wt_dataset_name_check(set, NULL) < 0 || wt_hash_parse(hex, &h) < 0)
        return WT_EINVAL;
    bool zstd = strcmp(p + 33, ".tar.zst") == 0;
    shard_name(set, n, h, zstd ? WT_CODEC_ZSTD : WT_CODEC_TAR, again);
    if (strcmp(again, name) != 0)
        return WT_EINVAL;
    memcpy(dataset, set, sizeof set);
    *number = n;
    *hash = h;
    return 0;
}

/* ---- records ---- */

enum {              /* where the fields of a record lie */
       AT_HASH = 0, /* big-endian, as it is printed */
       AT_SIZE = 16,
       AT_TAR_SIZE = 24,
       AT_INDEX_OFF = 32,
       AT_FIRST = 40,
       AT_SAMPLES = 48,
       AT_CODEC = 52,
       AT_ZERO = 56,
       AT_SUM = 60, /* crc32c of all before */
};

void wt_shard_rec_encode(const struct wt_shard_rec *rec, uint8_t out[WT_IDX_RECORD]) {
    memset(out, 0, WT_IDX_RECORD);
    wt_put64(out + AT_HASH, __builtin_bswap64(rec->hash.hi));
    wt_put64(out + AT_HASH + 8, __builtin_bswap64(rec->hash.lo));
    wt_put64(out + AT_SIZE, rec->size);
    wt_put64(out + AT_TAR_SIZE, rec->tar_size);
    wt_put64(out + AT_INDEX_OFF, rec->index_off);
    wt_put64(out + AT_FIRST, rec->first);
    wt_put32(out + AT_SAMPLES, rec->samples);
    wt_put32(out + AT_CODEC, rec->codec);
    wt_put32(out + AT_SUM, wt_crc32c(0, out, AT_SUM));
}

static void read_rec(const uint8_t *in, struct wt_shard_rec *rec) {
    *rec = (struct wt_shard_rec){
        .hash = {.hi = __builtin_bswap64(wt_get64(in + AT_HASH)),
                 .lo = __builtin_bswap64(wt_get64(in + AT_HASH + 8))},
        .size = wt_get64(in + AT_SIZE),
        .tar_size = wt_get64(in + AT_TAR_SIZE),
        .index_off = wt_get64(in + AT_INDEX_OFF),
        .first = wt_get64(in + AT_FIRST),
        .samples = wt_get32(in + AT_SAMPLES),
        .codec = (enum wt_codec)wt_get32(in + AT_CODEC),
    };
}

int wt_shard_rec_decode(const uint8_t in[WT_IDX_RECORD], struct wt_shard_rec *rec) {
    struct wt_shard_rec r;
    if (wt_get32(in + AT_SUM) != wt_crc32c(0, in, AT_SUM) || wt_get32(in + AT_ZERO) != 0 ||
        wt_get32(in + AT_CODEC) > WT_CODEC_ZSTD)
        return WT_ECORRUPT;
    read_rec(in, &r);
    if (r.samples == 0 || r.index_off == 0 || r.index_off >= r.size ||
        r.tar_size > WT_SHARD_MAX_DECODED || r.tar_size / 1024 < r.samples ||
        r.size > 2 * WT_SHARD_MAX_DECODED || r.first > UINT64_C(1) << 46)
        return WT_ECORRUPT;
    if (r.codec == WT_CODEC_TAR && r.size != r.tar_size)
        return WT_ECORRUPT;
    *rec = r;
    return 0;
}

/* ---- the whole index ---- */

static uint64_t count_records(const struct wt_manifest *m, uint32_t parts) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < parts; i++)
        n += m->part[i].records;
    return n;
}

int wt_dataset_begin(const struct wt_manifest *m, struct wt_dataset_parts *p, struct wt_err *err) {
    *p = (struct wt_dataset_parts){.m = m};
    if (count_records(m, m->n_parts) != m->shards || m->shards > SIZE_MAX / WT_IDX_RECORD)
        return wt_err_set(err, WT_EINVAL, "data set '%s': its parts do not make up its shards",
                          m->name);
    p->d.idx = malloc(m->shards * WT_IDX_RECORD);
    p->d.cum = malloc((m->shards + 1) * sizeof *p->d.cum);
    p->sum = wt_calloc(m->n_parts, sizeof *p->sum);
    if (p->d.idx && p->d.cum && p->sum)
        return 0;
    wt_dataset_abandon(p);
    return wt_err_set(err, WT_ENOMEM, "no memory for %llu records of shards.idx",
                      (unsigned long long)m->shards);
}

void wt_dataset_abandon(struct wt_dataset_parts *p) {
    wt_dataset_free(&p->d);
    free(p->sum);
    *p = (struct wt_dataset_parts){0};
}

static int bad_record(const char *name, uint32_t record, struct wt_err *err) {
    return wt_err_set(err, WT_ECORRUPT, "%s: record %u makes no sense", name, record);
}

int wt_dataset_part(struct wt_dataset_parts *p, uint32_t i, const void *data, size_t len,
                    struct wt_err *err) {
    const struct wt_idx_part *part = &p->m->part[i];
    uint64_t shard = count_records(p->m, i);
    struct wt_idx_sum sum = {0};
    char name[WT_OBJECT_NAME];
    wt_idx_name(p->m->name, part->hash, name);
    if (len != (size_t)part->records * WT_IDX_RECORD)
        return wt_err_set(err, WT_ECORRUPT, "%s has %zu bytes, its %u records need %zu", name, len,
                          part->records, (size_t)part->records * WT_IDX_RECORD);
    if (!wt_hash_equal(wt_hash(data, len), part->hash))
        return wt_err_set(err, WT_ECORRUPT, "%s does not have the hash that the manifest names",
                          name);
    memcpy(p->d.idx + shard * WT_IDX_RECORD, data, len);
    const uint8_t *in = data;
    for (uint32_t k = 0; k < part->records; k++, in += WT_IDX_RECORD) {
        struct wt_shard_rec rec;
        if (wt_shard_rec_decode(in, &rec) < 0 || (k && rec.first != sum.end))
            return bad_record(name, k, err);
        sum.first = k ? sum.first : rec.first;
        sum.end = rec.first + rec.samples; /* < 2^46 + 2^32, or the next record is refused */
        sum.stored += rec.size;
        sum.tar += rec.tar_size;
        p->d.cum[shard++] = rec.first;
    }
    p->sum[i] = sum;
    return 0;
}

/* Each part begins where the one before it ends, and all together are what the manifest says. */
static int check_sums(const struct wt_dataset_parts *p, struct wt_err *err) {
    const struct wt_manifest *m = p->m;
    struct wt_idx_sum all = {0};
    for (uint32_t i = 0; i < m->n_parts; i++) {
        char name[WT_OBJECT_NAME];
        if (m->part[i].records == 0)
            continue;
        wt_idx_name(m->name, m->part[i].hash, name);
        if (p->sum[i].first != all.end)
            return bad_record(name, 0, err);
        all.end = p->sum[i].end;
        all.stored += p->sum[i].stored;
        all.tar += p->sum[i].tar;
    }
    p->d.cum[m->shards] = all.end;
    if (all.end != m->samples || all.stored != m->stored_bytes || all.tar != m->tar_bytes)
        return wt_err_set(err, WT_ECORRUPT,
                          "data set '%s': the totals of shards.idx differ from the manifest's",
                          m->name);
    return 0;
}

int wt_dataset_end(struct wt_dataset_parts *p, struct wt_manifest *m, struct wt_dataset *out,
                   struct wt_err *err) {
    int rc = check_sums(p, err);
    if (rc < 0) {
        wt_dataset_abandon(p);
        return rc;
    }
    *out = p->d;
    out->m = *m;
    *m = (struct wt_manifest){0};
    free(p->sum);
    *p = (struct wt_dataset_parts){0};
    return 0;
}

int wt_dataset_build(struct wt_manifest *m, const void *const *parts, const size_t *lens,
                     struct wt_dataset *out, struct wt_err *err) {
    struct wt_dataset_parts p;
    int rc = wt_dataset_begin(m, &p, err);
    for (uint32_t i = 0; rc == 0 && i < m->n_parts; i++)
        rc = wt_dataset_part(&p, i, parts[i], lens[i], err);
    if (rc < 0) {
        wt_dataset_abandon(&p);
        return rc;
    }
    return wt_dataset_end(&p, m, out, err);
}

void wt_dataset_rec(const struct wt_dataset *d, uint64_t shard, struct wt_shard_rec *rec) {
    read_rec(d->idx + shard * WT_IDX_RECORD, rec);
}

uint64_t wt_dataset_find(const struct wt_dataset *d, uint64_t sample) {
    uint64_t low = 0, high = d->m.shards; /* cum[low] <= sample < cum[high] */
    while (high - low > 1) {
        uint64_t mid = low + (high - low) / 2;
        if (d->cum[mid] <= sample)
            low = mid;
        else
            high = mid;
    }
    return low;
}

void wt_dataset_free(struct wt_dataset *d) {
    wt_manifest_free(&d->m);
    free(d->idx);
    free(d->cum);
    *d = (struct wt_dataset){0};
}
