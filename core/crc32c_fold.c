/*
 * crc32c by carry-less multiplication in registers of 64 bytes (AVX-512 and VPCLMULQDQ): faster
 * than memory, so that a sum costs next to nothing where the bytes are copied anyhow. See crc32c.h.
 *
 * Folding, after Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ": a
 * register that lies d bits before another has, modulo P, the same effect as its two halves times
 * x^(d+32) and x^(d-32) in that other's place (both constants reflected and shifted by one). Four
 * registers run side by side; at the end they are folded into one, that one into 16 bytes, and
 * these are summed by the crc32 instruction.
 */
#include "core/copy.h"
#include "core/crc32c.h"

#include <immintrin.h>
#include <stdbool.h>

#define FOLD static inline __attribute__((always_inline, target("avx512f,vpclmulqdq,sse4.2")))

enum { LINE = 64, STRIDE = 4 * LINE };

struct factors { /* for a distance in bits */
    uint64_t low, high;
};
static const struct factors by_2048 = {0xdcb17aa4, 0xb9e02b86}, by_512 = {0x740eef02, 0x9e4addf8},
                            by_128 = {0xf20c0dfe, 0x14cd00bd6};

FOLD __m512i four(const struct factors *f) {
    return _mm512_broadcast_i32x4(_mm_set_epi64x((long long)f->high, (long long)f->low));
}

FOLD __m512i fold(__m512i x, __m512i factors, __m512i next) {
    __m512i low = _mm512_clmulepi64_epi128(x, factors, 0x00);
    __m512i high = _mm512_clmulepi64_epi128(x, factors, 0x11);
    return _mm512_ternarylogic_epi64(low, high, next, 0x96);
}

enum store { NOWHERE, CACHED, PAST /* the cache: dst is aligned to lines */ };

/* The next 64 bytes, on their way to dst where there is one. */
FOLD __m512i take(const uint8_t *src, uint8_t *dst, enum store store) {
    __m512i x = _mm512_loadu_si512(src);
    if (store == CACHED)
        _mm512_storeu_si512(dst, x);
    else if (store == PAST)
        _mm512_stream_si512((void *)dst, x);
    return x;
}

FOLD uint64_t sum_16(__m128i x) {
    uint64_t crc = _mm_crc32_u64(0, (unsigned long long)_mm_cvtsi128_si64(x));
    return _mm_crc32_u64(crc, (unsigned long long)_mm_extract_epi64(x, 1));
}

FOLD uint32_t sum_64(__m512i x) {
    __m512i factors = four(&by_128);
    __m512i sum = _mm512_maskz_expand_epi64(0x03, x); /* the first 16 bytes */
    x = _mm512_alignr_epi64(x, x, 2);
    for (int i = 0; i < 3; i++, x = _mm512_alignr_epi64(x, x, 2))
        sum = fold(sum, factors, x);
    return (uint32_t)sum_16(_mm512_castsi512_si128(sum));
}

/* Whole lines of at least STRIDE bytes; crc without the inversions. The four registers have names,
 * since a compiler that keeps an array of them in memory loses all that they gain. */
FOLD uint32_t fold_lines(uint32_t crc, const uint8_t *p, uint8_t *dst, size_t len,
                         enum store store) {
    const __m512i far = four(&by_2048), near = four(&by_512);
    const size_t step = store == NOWHERE ? 0 : LINE;
    const uint8_t *end = p + len;
    __m512i a = take(p, dst, store), b = take(p + LINE, dst + step, store);
    __m512i c = take(p + 2 * LINE, dst + 2 * step, store),
            d = take(p + 3 * LINE, dst + 3 * step, store);
    a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
    for (p += STRIDE, dst += 4 * step; end - p >= STRIDE; p += STRIDE, dst += 4 * step) {
        a = fold(a, far, take(p, dst, store));
        b = fold(b, far, take(p + LINE, dst + step, store));
        c = fold(c, far, take(p + 2 * LINE, dst + 2 * step, store));
        d = fold(d, far, take(p + 3 * LINE, dst + 3 * step, store));
    }
    d = fold(fold(fold(a, near, b), near, c), near, d);
    for (; p < end; p += LINE, dst += step)
        d = fold(d, near, take(p, dst, store));
    return sum_64(d);
}

bool wt_crc32c_fold_usable(size_t len) {
    return len >= STRIDE && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("sse4.2");
}

__attribute__((target("avx512f,vpclmulqdq,sse4.2"))) size_t
wt_crc32c_fold(uint32_t *crc, const void *src, void *dst, size_t len) {
    size_t whole = len / LINE * LINE;
    uint32_t sum = ~*crc;
    if (!dst) {
        uint8_t nothing;
        sum = fold_lines(sum, src, &nothing, whole, NOWHERE);
    } else if (len < WT_COPY_PAST || (uintptr_t)dst % LINE != 0) {
        sum = fold_lines(sum, src, dst, whole, CACHED);
    } else {
        sum = fold_lines(sum, src, dst, whole, PAST);
        _mm_sfence();
    }
    *crc = ~sum;
    return whole;
}
