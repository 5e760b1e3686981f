/*
 * crc32c with SSE4.2: the crc32 instruction takes three cycles but one can start in each, so three
 * neighbouring stretches are summed at once and joined by a carry-less multiplication.
 *
 * Joining: crc(A B) = crc(A) * x^(8 |B|) + crc(B) mod P. In reflected form a carry-less product of
 * two 32-bit values, given to the crc32 instruction, comes out multiplied by x^33 mod P; so the
 * factor for a shift by n bytes is x^(8n - 33) mod P. A processor without both instructions takes
 * the tables; one with AVX-512 does long ranges in crc32c_fold.c.
 */
#include "core/bytes.h"
#include "core/crc32c.h"
#include "core/sum.h"

#include <nmmintrin.h>
#include <wmmintrin.h>

#define X86_CRC __attribute__((target("sse4.2,pclmul")))

struct stretch {
    size_t len;              /* of one of three neighbours, a multiple of 8 */
    uint32_t by_two, by_one; /* factors for shifts by 2 * len and by len bytes */
};

X86_CRC static uint64_t shift(uint64_t crc, uint32_t factor) {
    __m128i a = _mm_cvtsi64_si128((long long)crc);
    __m128i b = _mm_cvtsi32_si128((int)factor);
    __m128i product = _mm_clmulepi64_si128(a, b, 0);
    return _mm_crc32_u64(0, (unsigned long long)_mm_cvtsi128_si64(product));
}

X86_CRC static uint64_t three(uint64_t crc, const uint8_t *p, const struct stretch *s) {
    const uint8_t *q = p + s->len, *r = q + s->len;
    uint64_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < s->len; i += 8) {
        a = _mm_crc32_u64(a, wt_get64(p + i));
        b = _mm_crc32_u64(b, wt_get64(q + i));
        c = _mm_crc32_u64(c, wt_get64(r + i));
    }
    return shift(a, s->by_two) ^ shift(b, s->by_one) ^ c;
}

X86_CRC static uint32_t crc_sse42(uint32_t crc, const uint8_t *p, size_t len) {
    static const struct stretch stretches[] = {
        {2048, 0x82f89c77, 0xa51b6135},
        {512, 0x170076fa, 0xdd7e3b0c},
        {128, 0xb9e02b86, 0x0d3b6092},
    };
    uint64_t c = (uint32_t)~crc;
    for (size_t i = 0; i < sizeof stretches / sizeof stretches[0]; i++) {
        size_t all = 3 * stretches[i].len;
        for (; len >= all; len -= all, p += all)
            c = three(c, p, &stretches[i]);
    }
    for (; len >= 8; len -= 8, p += 8)
        c = _mm_crc32_u64(c, wt_get64(p));
    uint32_t rest = (uint32_t)c;
    for (; len; len--, p++)
        rest = _mm_crc32_u8(rest, *p);
    return ~rest;
}

uint32_t wt_crc32c(uint32_t crc, const void *data, size_t len) {
    size_t done = wt_crc32c_fold_usable(len) ? wt_crc32c_fold(&crc, data, NULL, len) : 0;
    const uint8_t *rest = (const uint8_t *)data + done;
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"))
        return crc_sse42(crc, rest, len - done);
    return wt_crc32c_portable(crc, rest, len - done);
}

uint32_t wt_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len) {
    size_t done = wt_crc32c_fold_usable(len) ? wt_crc32c_fold(&crc, src, dst, len) : 0;
    return wt_crc32c_pieces(crc, (uint8_t *)dst + done, (const uint8_t *)src + done, len - done);
}
