/*
 * Sums: crc32c for ranges of data (checked once for each time bytes enter memory), XXH3-128 as the
 * content hash in object names, XXH3-64 for small metadata.
 *
 * crc32c: polynomial 0x1EDC6F41 (Castagnoli), reflected, as in RFC 3720 appendix B.4;
 * crc32c("123456789") = 0xE3069283. Uses AVX-512 or SSE4.2 where the processor has it, a table
 * elsewhere.
 */
#ifndef WT_CORE_SUM_H
#define WT_CORE_SUM_H

#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 at the start) over `len` bytes. */
uint32_t wt_crc32c(uint32_t crc, const void *data, size_t len);
/* The same, and copies them to dst on the way. */
uint32_t wt_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len);
/* The table path alone, the same sums on any processor. */
uint32_t wt_crc32c_portable(uint32_t crc, const void *data, size_t len);

struct wt_hash { /* XXH3-128, canonical: hi first when printed */
    uint64_t hi, lo;
};

struct wt_hash wt_hash(const void *data, size_t len);
uint64_t wt_hash64(const void *data, size_t len);

/* Streaming XXH3. new: NULL when out of memory. free(NULL) is fine. */
struct wt_hasher;
struct wt_hasher *wt_hasher_new(void);
void wt_hasher_reset(struct wt_hasher *h);
void wt_hasher_add(struct wt_hasher *h, const void *data, size_t len);
struct wt_hash wt_hasher_end(const struct wt_hasher *h);
uint64_t wt_hasher_end64(const struct wt_hasher *h); /* as wt_hash64 */
void wt_hasher_free(struct wt_hasher *h);

enum { WT_HASH_HEX = 33 };
/* 32 lower-case hex digits and a NUL. */
void wt_hash_hex(struct wt_hash hash, char out[WT_HASH_HEX]);
/* Exactly 32 hex digits; 0 or WT_EINVAL. */
int wt_hash_parse(const char *hex, struct wt_hash *hash);
static inline int wt_hash_equal(struct wt_hash a, struct wt_hash b) {
    return a.hi == b.hi && a.lo == b.lo;
}

#endif
