/* crc32c (all ways of computing it) against known vectors and the definition; hashes and their
 * text. */
#include "core/copy.h"
#include "core/err.h"
#include "core/sum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef uint32_t (*crc_fn)(uint32_t crc, const void *data, size_t len);

/* Bit by bit, from the polynomial. */
static uint32_t crc_by_definition(uint32_t crc, const void *data, size_t len) {
    const uint8_t *p = data;
    crc = ~crc;
    while (len--) {
        crc ^= *p++;
        for (int i = 0; i < 8; i++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* RFC 3720, appendix B.4. */
static void known_vectors(void **state) {
    (void)state;
    const crc_fn both[] = {wt_crc32c, wt_crc32c_portable};
    for (int i = 0; i < 2; i++) {
        uint8_t block[32];
        assert_int_equal(both[i](0, "123456789", 9), 0xe3069283);
        memset(block, 0, 32);
        assert_int_equal(both[i](0, block, 32), 0x8a9136aa);
        memset(block, 0xff, 32);
        assert_int_equal(both[i](0, block, 32), 0x62a8ab43);
        for (uint8_t k = 0; k < 32; k++)
            block[k] = k;
        assert_int_equal(both[i](0, block, 32), 0x46dd794e);
        assert_int_equal(both[i](0, block, 0), 0);
    }
}

static void any_length_and_alignment(void **state) {
    (void)state;
    enum { N = 20000 };
    uint8_t *data = malloc(N);
    assert_non_null(data);
    srand(1);
    for (int i = 0; i < N; i++)
        data[i] = (uint8_t)rand();
    for (size_t len = 0; len < N; len += len < 1600 ? 1 : 397) {
        size_t off = len % 9;
        if (off + len > N)
            break;
        uint32_t want = crc_by_definition(5, data + off, len);
        assert_int_equal(wt_crc32c(5, data + off, len), want);
        assert_int_equal(wt_crc32c_portable(5, data + off, len), want);
    }
    free(data);
}

/* With and without a place in the cache, aligned and not; nothing beyond is touched. */
static void copies_on_the_way(void **state) {
    (void)state;
    enum { N = 300000, AROUND = 64 };
    uint8_t *src = malloc(N + AROUND), *dst = aligned_alloc(64, N / 64 * 64 + 4 * AROUND);
    assert_non_null(src);
    assert_non_null(dst);
    for (size_t i = 0; i < N + AROUND; i++)
        src[i] = (uint8_t)(i * 2654435761u >> 13);
    static const size_t lens[] = {0,    1,     63,    255,   256,   257,
                                  2704, 16400, 65535, 65536, 65599, 299999};
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        for (size_t off = 0; off < AROUND; off += 13) {
            uint8_t *to = dst + AROUND + off;
            memset(dst, 0xa5, lens[i] + 3 * AROUND);
            uint32_t crc = wt_crc32c_copy(9, to, src + off, lens[i]);
            assert_int_equal(crc, wt_crc32c_portable(9, src + off, lens[i]));
            assert_memory_equal(to, src + off, lens[i]);
            assert_int_equal(to[-1], 0xa5);
            assert_int_equal(to[lens[i]], 0xa5);
            memset(to, 0, lens[i]);
            wt_copy_past(to, src + off, lens[i]);
            assert_memory_equal(to, src + off, lens[i]);
            assert_int_equal(to[-1], 0xa5);
            assert_int_equal(to[lens[i]], 0xa5);
        }
    }
    free(src);
    free(dst);
}

static void crc_continues(void **state) {
    (void)state;
    uint8_t data[10000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 31 >> 3);
    uint32_t whole = wt_crc32c(0, data, sizeof data);
    for (size_t cut = 0; cut <= sizeof data; cut += 333)
        assert_int_equal(wt_crc32c(wt_crc32c(0, data, cut), data + cut, sizeof data - cut), whole);
    data[7777] ^= 1;
    assert_int_not_equal(wt_crc32c(0, data, sizeof data), whole);
}

static void hash_is_xxh3(void **state) {
    (void)state;
    char hex[WT_HASH_HEX];
    wt_hash_hex(wt_hash("", 0), hex); /* as `xxhsum -H2` prints it for no input */
    assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
    assert_int_equal(wt_hash64("", 0), 0x2d06800538d394c2);
}

static void streaming_equals_one_shot(void **state) {
    (void)state;
    uint8_t data[5000];
    memset(data, 7, sizeof data);
    struct wt_hasher *h = wt_hasher_new();
    assert_non_null(h);
    for (size_t at = 0; at < sizeof data; at += 250)
        wt_hasher_add(h, data + at, 250);
    wt_hasher_add(h, NULL, 0);
    assert_true(wt_hash_equal(wt_hasher_end(h), wt_hash(data, sizeof data)));
    wt_hasher_reset(h);
    assert_true(wt_hash_equal(wt_hasher_end(h), wt_hash("", 0)));
    assert_false(wt_hash_equal(wt_hasher_end(h), wt_hash(data, sizeof data)));
    wt_hasher_free(h);
    wt_hasher_free(NULL);
}

static void hex_goes_there_and_back(void **state) {
    (void)state;
    struct wt_hash hash = {.hi = 0x0123456789abcdef, .lo = 0xfedcba9876543210}, back;
    char hex[WT_HASH_HEX];
    wt_hash_hex(hash, hex);
    assert_string_equal(hex, "0123456789abcdeffedcba9876543210");
    assert_int_equal(wt_hash_parse(hex, &back), 0);
    assert_true(wt_hash_equal(hash, back));
    assert_int_equal(wt_hash_parse("0123456789ABCDEFfedcba9876543210", &back), 0);
    static const char *const bad[] = {"", "0123", "0123456789abcdeffedcba987654321",
                                      "0123456789abcdeffedcba98765432100",
                                      "0123456789abcdegfedcba9876543210"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(wt_hash_parse(bad[i], &back), WT_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_vectors),
        cmocka_unit_test(any_length_and_alignment),
        cmocka_unit_test(copies_on_the_way),
        cmocka_unit_test(crc_continues),
        cmocka_unit_test(hash_is_xxh3),
        cmocka_unit_test(streaming_equals_one_shot),
        cmocka_unit_test(hex_goes_there_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
