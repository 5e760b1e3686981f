/* crc32c by tables, on any processor: eight bytes a step; see sum.h. */
#include "core/crc32c.h"
#include "core/bytes.h"
#include "core/crc32c_table.h"
#include "core/sum.h"

#include <string.h>

static uint32_t step8(uint32_t crc, const uint8_t *p) {
    const uint32_t(*t)[256] = wt_crc32c_table;
    uint64_t v = wt_get64(p) ^ crc;
    return t[7][v & 255] ^ t[6][v >> 8 & 255] ^ t[5][v >> 16 & 255] ^ t[4][v >> 24 & 255] ^
           t[3][v >> 32 & 255] ^ t[2][v >> 40 & 255] ^ t[1][v >> 48 & 255] ^ t[0][v >> 56];
}

uint32_t wt_crc32c_portable(uint32_t crc, const void *data, size_t len) {
    const uint8_t *p = data;
    crc = ~crc;
    for (; len >= 8; len -= 8, p += 8)
        crc = step8(crc, p);
    for (; len; len--, p++)
        crc = crc >> 8 ^ wt_crc32c_table[0][(crc ^ *p) & 255];
    return ~crc;
}

/* In pieces that stay in the first-level cache between the two passes. */
uint32_t wt_crc32c_pieces(uint32_t crc, void *dst, const void *src, size_t len) {
    enum { PIECE = 16 << 10 };
    for (size_t at = 0; at < len; at += PIECE) {
        size_t n = len - at < PIECE ? len - at : (size_t)PIECE;
        crc = wt_crc32c(crc, (const uint8_t *)src + at, n);
        memcpy((uint8_t *)dst + at, (const uint8_t *)src + at, n);
    }
    return crc;
}
