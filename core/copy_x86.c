/* Stores past the cache: whole lines with AVX-512, which is the faster the more memory is contended
 * for; quarters of lines with SSE2, which every x86-64 has. See copy.h. */
#include "core/copy.h"

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

enum { LINE = 64 };

/* Both: to is aligned to lines, len is of whole lines. */
__attribute__((target("avx512f"))) static void lines_avx512(uint8_t *to, const uint8_t *from,
                                                            size_t len) {
    for (size_t i = 0; i < len; i += LINE)
        _mm512_stream_si512((void *)(to + i), _mm512_loadu_si512(from + i));
}

static void lines_sse2(uint8_t *to, const uint8_t *from, size_t len) {
    enum { QUARTER = LINE / 4 };
    for (size_t i = 0; i < len; i += QUARTER)
        _mm_stream_si128((__m128i *)(to + i), _mm_loadu_si128((const __m128i *)(from + i)));
}

void wt_copy_past(void *dst, const void *src, size_t len) {
    uint8_t *to = dst;
    const uint8_t *from = src;
    size_t head = (size_t)(-(uintptr_t)to % LINE);
    head = head < len ? head : len;
    size_t whole = (len - head) / LINE * LINE, tail = head + whole;
    memcpy(to, from, head);
    if (__builtin_cpu_supports("avx512f"))
        lines_avx512(to + head, from + head, whole);
    else
        lines_sse2(to + head, from + head, whole);
    memcpy(to + tail, from + tail, len - tail);
    _mm_sfence();
}
