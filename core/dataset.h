/*
 * A data set as it lies in the cold tier:
 *
 *   <dataset>/manifest.json                           the only object that is replaced, atomically
 *   <dataset>/retired/<generation>.json               the manifests that it replaced, until gc
 *   <dataset>/idx/<32 hex>.idx                        shards.idx, in parts of at most 65536 records
 * of 64 bytes <dataset>/shards/<nnnn>/<nnnnnnnn>-<32 hex>.tar[.zst]   nnnn = number / 10000, so no
 * folder has more than 10,000
 *
 * Names carry the content hash, are never reused, and readers accept only what the manifest names
 * (with its hash).
 */
#ifndef WT_CORE_DATASET_H
#define WT_CORE_DATASET_H

#include "core/err.h"
#include "core/shard.h"
#include "core/sum.h"

#include <stdint.h>

/* Beside the data sets: the daemon's lock and its pins and quotas in the cold tier, probes of
 * `wafertier doctor` anywhere (then a process as in core/process.h, for gc). */
#define WT_LOCK_KEY      ".wafertierd.lock"
#define WT_RULES_KEY     ".wafertierd.rules"
#define WT_DOCTOR_PREFIX ".wafertier.doctor-"

enum {
    WT_MANIFEST_VERSION = 1,
    WT_DATASET_NAME = 64, /* with the NUL; [a-z0-9][a-z0-9._-]* */
    WT_HOME_NAME = 64,    /* with the NUL; the name of a tier */
    WT_OBJECT_NAME = 192, /* longest object name, with the NUL */
    WT_IDX_RECORD = 64,
    WT_IDX_PART = 65536, /* records in a part */
    WT_MANIFEST_MAX = 64 << 20,
};

struct wt_shard_rec { /* one record of shards.idx, decoded */
    struct wt_hash hash;
    uint64_t size, tar_size, index_off;
    uint64_t first; /* ordinal of its first sample in manifest order */
    uint32_t samples;
    enum wt_codec codec;
};

enum wt_label_kind { WT_LABEL_NONE, WT_LABEL_CLASS, WT_LABEL_MULTIHOT };

struct wt_field_info {
    char name[WT_FIELD_NAME];
    struct wt_shape shape; /* ndim UINT32_MAX: shapes differ between samples */
};

struct wt_idx_part {
    struct wt_hash hash;
    uint32_t records;
};

struct wt_manifest {
    char name[WT_DATASET_NAME];
    uint64_t generation;     /* 1, 2, ...: grows with each replacement */
    uint64_t created;        /* seconds since 1970 */
    char home[WT_HOME_NAME]; /* "": cold. Else the tier where its shards were landed: they are
                                there, and in cold perhaps, until the next generation */
    uint64_t shards, samples, stored_bytes, tar_bytes, pixel_bytes;
    uint64_t labelled; /* samples that have a label */
    uint32_t lots, wafers;
    enum wt_label_kind label_kind;
    char **classes;
    uint32_t n_classes;
    uint64_t *class_count; /* [n_classes] */
    struct wt_field_info field[WT_MAX_FIELDS];
    uint32_t n_fields;
    struct wt_idx_part *part;
    uint32_t n_parts;
};

/* text: as read, need not end in NUL. Everything is checked (types, ranges, totals); unknown
 * members are ignored, an unknown format version refused. Free with wt_manifest_free, also fine on
 * a zeroed one. */
int wt_manifest_parse(const char *text, size_t len, struct wt_manifest *m, struct wt_err *err);
/* Pretty JSON, ends in a newline; free(). NULL when out of memory. */
char *wt_manifest_format(const struct wt_manifest *m);
void wt_manifest_free(struct wt_manifest *m);
/* manifest_next.c: the next generation of the manifest, whose shards are all in cold now. Members
 * that this program does not know stay. free(). NULL: *err says why. */
char *wt_manifest_flushed(const char *text, size_t len, uint64_t now_s, struct wt_err *err);

int wt_dataset_name_check(const char *name, struct wt_err *err);
void wt_manifest_name(const char *dataset, char out[WT_OBJECT_NAME]);
void wt_retired_name(const char *dataset, uint64_t generation, char out[WT_OBJECT_NAME]);
void wt_idx_name(const char *dataset, struct wt_hash hash, char out[WT_OBJECT_NAME]);
void wt_shard_name(const char *dataset, uint64_t number, const struct wt_shard_rec *rec,
                   char out[WT_OBJECT_NAME]);
/* The inverse: 0 when `name` is a shard's object name, with data set, number and hash. */
int wt_shard_name_parse(const char *name, char dataset[WT_DATASET_NAME], uint64_t *number,
                        struct wt_hash *hash);
/* The same for a part of shards.idx, and for a retired manifest. */
int wt_idx_name_parse(const char *name, char dataset[WT_DATASET_NAME], struct wt_hash *hash);
int wt_retired_name_parse(const char *name, char dataset[WT_DATASET_NAME], uint64_t *generation);

void wt_shard_rec_encode(const struct wt_shard_rec *rec, uint8_t out[WT_IDX_RECORD]);
int wt_shard_rec_decode(const uint8_t in[WT_IDX_RECORD],
                        struct wt_shard_rec *rec); /* WT_ECORRUPT: nonsense values */

/* The whole shards.idx of one generation in memory: records kept encoded, 64 bytes a shard. */
struct wt_dataset {
    struct wt_manifest m;
    uint8_t *idx;  /* [m.shards][WT_IDX_RECORD] */
    uint64_t *cum; /* [m.shards + 1] ordinals: shard s holds samples [cum[s], cum[s+1]) */
};
/* parts[i]: the bytes of part i, lens[i]: their number. Checks hash, counts, ordinals, totals.
 * Takes m over on success (zeroed then). */
int wt_dataset_build(struct wt_manifest *m, const void *const *parts, const size_t *lens,
                     struct wt_dataset *out, struct wt_err *err);

/* The same part by part, so that no more than the parts at hand are in memory twice: begin; each
 * part once, in any order, several at a time on any threads; end (or abandon, also fine after a
 * failed begin). m must stay until then. */
struct wt_idx_sum { /* of a part: ordinals [first, end), bytes */
    uint64_t first, end, stored, tar;
};
struct wt_dataset_parts {
    const struct wt_manifest *m;
    struct wt_dataset d;
    struct wt_idx_sum *sum;
};
int wt_dataset_begin(const struct wt_manifest *m, struct wt_dataset_parts *p, struct wt_err *err);
int wt_dataset_part(struct wt_dataset_parts *p, uint32_t i, const void *data, size_t len,
                    struct wt_err *err);
/* m: the one of begin, taken over on success. p is empty then, also on failure. */
int wt_dataset_end(struct wt_dataset_parts *p, struct wt_manifest *m, struct wt_dataset *out,
                   struct wt_err *err);
void wt_dataset_abandon(struct wt_dataset_parts *p);

void wt_dataset_rec(const struct wt_dataset *d, uint64_t shard, struct wt_shard_rec *rec);
/* Which shard holds ordinal `sample` (< m.samples). O(log shards). */
uint64_t wt_dataset_find(const struct wt_dataset *d, uint64_t sample);
void wt_dataset_free(struct wt_dataset *d);

#endif
