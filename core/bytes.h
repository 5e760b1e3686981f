/*
 * Little-endian integers at any alignment, and sizes for people ("64MiB").
 */
#ifndef WT_CORE_BYTES_H
#define WT_CORE_BYTES_H

#include "core/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "wafertier runs on little-endian machines");

static inline uint16_t wt_get16(const void *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline uint32_t wt_get32(const void *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline uint64_t wt_get64(const void *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline void wt_put16(void *p, uint16_t v) {
    memcpy(p, &v, sizeof v);
}
static inline void wt_put32(void *p, uint32_t v) {
    memcpy(p, &v, sizeof v);
}
static inline void wt_put64(void *p, uint64_t v) {
    memcpy(p, &v, sizeof v);
}

/* "512", "64KiB", "1.5GiB", "10TB" (KB, MB... are powers of 1000; KiB, K powers of 1024). 0 or
 * WT_EINVAL. */
int wt_size_parse(const char *text, uint64_t *bytes, struct wt_err *err);
enum { WT_SIZE_TEXT = 24 };
/* "64.0 MiB"; returns out. */
const char *wt_size_format(uint64_t bytes, char out[WT_SIZE_TEXT]);

/* A growing byte buffer for metadata (never the data path). Zero-initialise; free with
 * wt_bytes_free. */
struct wt_bytes {
    uint8_t *data;
    size_t len, cap;
};
int wt_bytes_add(struct wt_bytes *b, const void *data, size_t len); /* 0 or WT_ENOMEM */
int wt_bytes_zeros(struct wt_bytes *b, size_t len);
void wt_bytes_free(struct wt_bytes *b);

#endif
