/*
 * Layout, names and headers of objects in Redis; see head.h. What comes from a server is checked
 * before it is believed: sums first, then that the figures fit each other, then the allocation.
 */
#include "tiers/redis/head.h"

#include "core/bytes.h"
#include "core/mem.h"
#include "core/sum.h"

#include <stdio.h>
#include <stdlib.h>

#define HEAD_MAGIC UINT32_C(0x48525457) /* "WTRH" */
#define TMP_FOLDER ".wafertier.tmp/"

enum {
    HEAD_VERSION = 1,
    AT_MAGIC = 0,
    AT_VERSION = 4,
    AT_FLAGS = 6,
    AT_SIZE = 8,
    AT_TOKEN = 16,
    AT_MTIME = 24,
    AT_PART = 32,
    AT_CHUNK = 36,
    AT_CHUNKS = 40,
    AT_SUM = 44,
    SUM_SIZE = 4,
    CHUNK_MAX = 256 << 20,
};

/* ---- layout ---- */

static uint32_t chunks_per_part(const struct rds_layout *l) {
    return (l->part - 1) / l->chunk + 1;
}

int rds_layout_make(uint64_t size, uint32_t part, uint32_t chunk, struct rds_layout *out) {
    struct rds_layout l = {.size = size, .part = part, .chunk = chunk};
    uint64_t parts = size / part;
    if (parts > RDS_CHUNKS_MAX)
        return WT_ERANGE;
    uint64_t rest = size % part;
    uint64_t n = parts * chunks_per_part(&l) + rest / chunk + (rest % chunk != 0);
    if (n > RDS_CHUNKS_MAX)
        return WT_ERANGE;
    l.n_chunks = (uint32_t)n;
    *out = l;
    return 0;
}

uint32_t rds_layout_find(const struct rds_layout *l, uint64_t off) {
    return (uint32_t)(off / l->part) * chunks_per_part(l) + (uint32_t)(off % l->part) / l->chunk;
}

struct rds_extent rds_layout_chunk(const struct rds_layout *l, uint32_t chunk) {
    uint32_t per_part = chunks_per_part(l);
    uint64_t start = (uint64_t)(chunk / per_part) * l->part;
    uint64_t end = l->size - start < l->part ? l->size : start + l->part;
    uint64_t off = start + (uint64_t)(chunk % per_part) * l->chunk;
    uint64_t len = end - off < l->chunk ? end - off : l->chunk;
    return (struct rds_extent){.off = off, .len = (uint32_t)len};
}

/* ---- headers ---- */

static size_t tail_size(const struct rds_head *head) {
    return head->flags & RDS_HEAD_INLINE ? (size_t)head->layout.size
                                         : (size_t)head->layout.n_chunks * sizeof(uint32_t);
}

uint8_t *rds_head_encode(const struct rds_head *head, size_t *len) {
    size_t tail = tail_size(head);
    size_t total = RDS_HEAD_FIXED + tail + SUM_SIZE;
    uint8_t *b = malloc(total);
    if (!b)
        return NULL;
    wt_put32(b + AT_MAGIC, HEAD_MAGIC);
    wt_put16(b + AT_VERSION, HEAD_VERSION);
    wt_put16(b + AT_FLAGS, (uint16_t)head->flags);
    wt_put64(b + AT_SIZE, head->layout.size);
    wt_put64(b + AT_TOKEN, head->token);
    wt_put64(b + AT_MTIME, (uint64_t)head->mtime);
    wt_put32(b + AT_PART, head->layout.part);
    wt_put32(b + AT_CHUNK, head->layout.chunk);
    wt_put32(b + AT_CHUNKS, head->layout.n_chunks);
    wt_put32(b + AT_SUM, wt_crc32c(0, b, AT_SUM));
    const void *src = head->flags & RDS_HEAD_INLINE ? (const void *)head->data : head->crc;
    if (tail)
        memcpy(b + RDS_HEAD_FIXED, src, tail);
    wt_put32(b + RDS_HEAD_FIXED + tail, wt_crc32c(0, b, RDS_HEAD_FIXED + tail));
    *len = total;
    return b;
}

int rds_head_peek(const void *bytes, size_t len, struct rds_head *out, struct wt_err *err) {
    const uint8_t *b = bytes;
    if (len < RDS_HEAD_FIXED)
        return wt_err_set(err, WT_ECORRUPT, "the header has %zu bytes only", len);
    if (wt_get32(b + AT_MAGIC) != HEAD_MAGIC || wt_get32(b + AT_SUM) != wt_crc32c(0, b, AT_SUM))
        return wt_err_set(err, WT_ECORRUPT, "the header is damaged (magic or sum)");
    if (wt_get16(b + AT_VERSION) != HEAD_VERSION)
        return wt_err_set(err, WT_EFORMAT, "the header has version %u; this build knows %d",
                          wt_get16(b + AT_VERSION), HEAD_VERSION);
    struct rds_head h = {
        .flags = wt_get16(b + AT_FLAGS),
        .token = wt_get64(b + AT_TOKEN),
        .mtime = (int64_t)wt_get64(b + AT_MTIME),
    };
    uint64_t size = wt_get64(b + AT_SIZE);
    uint32_t part = wt_get32(b + AT_PART), chunk = wt_get32(b + AT_CHUNK);
    if (part == 0 || chunk == 0 || chunk > part || chunk > CHUNK_MAX ||
        rds_layout_make(size, part, chunk, &h.layout) < 0 ||
        h.layout.n_chunks != wt_get32(b + AT_CHUNKS) ||
        ((h.flags & RDS_HEAD_INLINE) && size > RDS_INLINE))
        return wt_err_set(err, WT_ECORRUPT, "the header's figures do not fit each other");
    *out = h;
    return 0;
}

int rds_head_decode(const void *bytes, size_t len, struct rds_head **out, struct wt_err *err) {
    const uint8_t *b = bytes;
    struct rds_head fixed;
    int rc = rds_head_peek(bytes, len, &fixed, err);
    if (rc < 0)
        return rc;
    size_t tail = tail_size(&fixed);
    if (len != RDS_HEAD_FIXED + tail + SUM_SIZE)
        return wt_err_set(err, WT_ECORRUPT, "the header has %zu bytes, not %zu", len,
                          RDS_HEAD_FIXED + tail + SUM_SIZE);
    if (wt_get32(b + len - SUM_SIZE) != wt_crc32c(0, b, len - SUM_SIZE))
        return wt_err_set(err, WT_ECORRUPT, "the header is damaged (sum)");
    struct rds_head *head = malloc(sizeof *head + tail);
    if (!head)
        return wt_err_set(err, WT_ENOMEM, "out of memory for a header");
    *head = fixed;
    head->refs = 1;
    memcpy(head->tail, b + RDS_HEAD_FIXED, tail);
    if (fixed.flags & RDS_HEAD_INLINE)
        head->data = (const uint8_t *)head->tail;
    else
        head->crc = (const uint32_t *)(const void *)head->tail;
    *out = head;
    return 0;
}

struct rds_head *rds_head_ref(struct rds_head *head) {
    head->refs++;
    return head;
}

void rds_head_unref(struct rds_head *head) {
    if (head && --head->refs == 0)
        free(head);
}

/* ---- names ---- */

void rds_name_head(char out[RDS_NAME_SIZE], const char *key) {
    snprintf(out, RDS_NAME_SIZE, "wt:{%s}", key);
}

void rds_name_chunk(char out[RDS_NAME_SIZE], uint64_t token, uint32_t chunk, const char *key) {
    snprintf(out, RDS_NAME_SIZE, "wt:%016llx:%u:%s", (unsigned long long)token, chunk, key);
}

static int take_key(const char *from, size_t len, char key[WT_KEY_SIZE]) {
    if (len == 0 || len >= WT_KEY_SIZE || memchr(from, '\0', len))
        return WT_EINVAL;
    memcpy(key, from, len);
    key[len] = '\0';
    return wt_key_check(key, NULL);
}

int rds_name_parse_head(const char *name, size_t len, char key[WT_KEY_SIZE]) {
    if (len < 6 || memcmp(name, "wt:{", 4) != 0 || name[len - 1] != '}')
        return WT_EINVAL;
    return take_key(name + 4, len - 5, key);
}

/* 16 hex digits, `sep`, a number, `end`; returns what follows, or NULL. */
static const char *parse_token(const char *p, size_t len, char sep, char end, uint64_t *token,
                               uint32_t *chunk) {
    static const char digits[] = "0123456789abcdef";
    uint64_t t = 0, n = 0;
    if (len < 19 || p[16] != sep)
        return NULL;
    for (size_t i = 0; i < 16; i++) {
        const char *d = p[i] ? strchr(digits, p[i]) : NULL;
        if (!d)
            return NULL;
        t = t << 4 | (uint64_t)(d - digits);
    }
    const char *q = p + 17, *stop = p + len;
    for (; q < stop && *q >= '0' && *q <= '9' && n <= RDS_CHUNKS_MAX; q++)
        n = n * 10 + (uint64_t)(*q - '0');
    if (q == p + 17 || q == stop || *q != end || n >= RDS_CHUNKS_MAX)
        return NULL;
    *token = t;
    *chunk = (uint32_t)n;
    return q + 1;
}

int rds_name_parse_chunk(const char *name, size_t len, uint64_t *token, uint32_t *chunk,
                         char key[WT_KEY_SIZE]) {
    if (len < 3 || memcmp(name, "wt:", 3) != 0)
        return WT_EINVAL;
    const char *rest = parse_token(name + 3, len - 3, ':', ':', token, chunk);
    return rest ? take_key(rest, len - (size_t)(rest - name), key) : WT_EINVAL;
}

int rds_orphan_key(char out[WT_KEY_SIZE], uint64_t token, uint32_t chunk, const char *key) {
    int n = snprintf(out, WT_KEY_SIZE, TMP_FOLDER "%016llx.%u/%s", (unsigned long long)token, chunk,
                     key);
    return n < WT_KEY_SIZE ? 0 : WT_ERANGE;
}

int rds_orphan_parse(const char *orphan, uint64_t *token, uint32_t *chunk, const char **key) {
    size_t skip = sizeof TMP_FOLDER - 1;
    if (strncmp(orphan, TMP_FOLDER, skip) != 0)
        return WT_EINVAL;
    const char *rest = parse_token(orphan + skip, strlen(orphan + skip), '.', '/', token, chunk);
    if (!rest)
        return WT_EINVAL;
    *key = rest;
    return 0;
}

static uint16_t crc16(const char *p, size_t len) { /* XMODEM */
    uint16_t crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc = (uint16_t)(crc ^ ((uint16_t)(uint8_t)p[i] << 8));
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? (uint16_t)(crc << 1) ^ 0x1021 : crc << 1);
    }
    return crc;
}

uint16_t rds_slot(const char *name, size_t len) {
    const char *open = memchr(name, '{', len);
    if (open) {
        const char *from = open + 1;
        const char *close = memchr(from, '}', len - (size_t)(from - name));
        if (close && close > from)
            return crc16(from, (size_t)(close - from)) % 16384;
    }
    return crc16(name, len) % 16384;
}

/* ---- cache ---- */

static struct rds_cached *place_of(struct rds_cache *c, const char *key) {
    return &c->at[wt_hash64(key, strlen(key)) % RDS_CACHE_SIZE];
}

struct rds_head *rds_cache_get(struct rds_cache *c, const char *key) {
    struct rds_cached *p = place_of(c, key);
    return p->head && strcmp(p->key, key) == 0 ? rds_head_ref(p->head) : NULL;
}

void rds_cache_put(struct rds_cache *c, const char *key, struct rds_head *head) {
    if (head->flags & (RDS_HEAD_INLINE | RDS_HEAD_REPLACEABLE))
        return;
    struct rds_cached *p = place_of(c, key);
    rds_head_unref(p->head);
    p->head = rds_head_ref(head);
    snprintf(p->key, sizeof p->key, "%s", key);
}

void rds_cache_drop(struct rds_cache *c, const char *key) {
    struct rds_cached *p = place_of(c, key);
    if (p->head && strcmp(p->key, key) == 0) {
        rds_head_unref(p->head);
        p->head = NULL;
    }
}

void rds_cache_clear(struct rds_cache *c) {
    for (size_t i = 0; i < RDS_CACHE_SIZE; i++) {
        rds_head_unref(c->at[i].head);
        c->at[i].head = NULL;
    }
}
