/*
 * How objects lie in Redis. Pure.
 *
 *   wt:{KEY}              the header, written last: an object exists when it does
 *   wt:TOKEN:N:KEY        chunk N of the attempt TOKEN (16 hex digits) to write KEY
 *   wt:!mark:{TAG}        the sentinel of a server: a random text, gone after a FLUSHALL
 *
 * A part of WT_PART bytes is cut in chunks of RDS_CHUNK (1 MiB - 4 KiB: just below an allocator
 * class; 1 MiB exactly would waste a quarter) and a last, shorter one, so chunks never cross parts.
 * In a cluster the whole name of a chunk is hashed, so they spread over the servers. Objects of up
 * to RDS_INLINE bytes lie inside their header: the manifest is replaced by one SET.
 *
 * A header, little-endian: magic, version, flags, size, token, time, part, chunk, chunks, crc32c of
 * these 44 bytes; then a crc32c for each chunk, or the inline data; then the crc32c of all before
 * it.
 */
#ifndef WT_TIERS_REDIS_HEAD_H
#define WT_TIERS_REDIS_HEAD_H

#include "tiers/tier.h"

enum {
    RDS_CHUNK = (1 << 20) - 4096,
    RDS_INLINE = 64 << 10,
    RDS_CHUNKS_MAX = 1 << 20,
    RDS_HEAD_FIXED = 48,
    RDS_NAME_SIZE = WT_KEY_SIZE + 40, /* names of headers and chunks */
    RDS_CACHE_SIZE = 512,
};

/* flags of a header */
enum {
    RDS_HEAD_INLINE = 1,
    RDS_HEAD_REPLACEABLE = 2, /* put with WT_PUT_REPLACE: never cached */
};

struct rds_layout { /* how bytes are cut */
    uint64_t size;
    uint32_t part, chunk, n_chunks;
};

/* 0, or WT_ERANGE for more chunks than RDS_CHUNKS_MAX. */
int rds_layout_make(uint64_t size, uint32_t part, uint32_t chunk, struct rds_layout *out);
uint32_t rds_layout_find(const struct rds_layout *l, uint64_t off); /* off < size */
struct rds_extent {
    uint64_t off;
    uint32_t len;
};
struct rds_extent rds_layout_chunk(const struct rds_layout *l, uint32_t chunk);

struct rds_head { /* reference-counted: a cache and readers share it; one thread */
    unsigned refs;
    unsigned flags;
    struct rds_layout layout;
    uint64_t token;
    int64_t mtime;
    const uint8_t *data; /* inline: layout.size bytes */
    const uint32_t *crc; /* else: layout.n_chunks */
    uint64_t tail[];     /* what these two point to */
};

/* The bytes of a header (free()); data: inline, crc: else. NULL: out of memory. */
uint8_t *rds_head_encode(const struct rds_head *head, size_t *len);
/* WT_ECORRUPT says what is wrong. *out has one reference. */
int rds_head_decode(const void *bytes, size_t len, struct rds_head **out, struct wt_err *err);
/* The first RDS_HEAD_FIXED bytes alone; the pointers of *out are NULL. */
int rds_head_peek(const void *bytes, size_t len, struct rds_head *out, struct wt_err *err);
struct rds_head *rds_head_ref(struct rds_head *head);
void rds_head_unref(struct rds_head *head); /* NULL is fine */

void rds_name_head(char out[RDS_NAME_SIZE], const char *key);
void rds_name_chunk(char out[RDS_NAME_SIZE], uint64_t token, uint32_t chunk, const char *key);
/* The KEY in the name of a header; 0 or WT_EINVAL. */
int rds_name_parse_head(const char *name, size_t len, char key[WT_KEY_SIZE]);
int rds_name_parse_chunk(const char *name, size_t len, uint64_t *token, uint32_t *chunk,
                         char key[WT_KEY_SIZE]);

/* A chunk without header, as LIST names it and REMOVE takes it: ".wafertier.tmp/TOKEN.N/KEY".
 * WT_ERANGE: longer than a key may be. */
int rds_orphan_key(char out[WT_KEY_SIZE], uint64_t token, uint32_t chunk, const char *key);
int rds_orphan_parse(const char *orphan, uint64_t *token, uint32_t *chunk, const char **key);
/* Tokens begin with the second in which they were made. */
static inline int64_t rds_token_time(uint64_t token) {
    return (int64_t)(token >> 32);
}

/* The hash slot of a name in a cluster (CRC16 of what stands in the first {...}, or of all). */
uint16_t rds_slot(const char *name, size_t len);

/* Headers seen lately: one place for each hash of a key. */
struct rds_cache {
    struct rds_cached {
        char key[WT_KEY_SIZE];
        struct rds_head *head;
    } at[RDS_CACHE_SIZE];
};
struct rds_head *rds_cache_get(struct rds_cache *c, const char *key); /* a reference, or NULL */
void rds_cache_put(struct rds_cache *c, const char *key, struct rds_head *head);
void rds_cache_drop(struct rds_cache *c, const char *key);
void rds_cache_clear(struct rds_cache *c);

#endif
