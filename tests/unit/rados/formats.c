/* What the rados: backend does without a cluster: URLs, heads and names, the head cache, lock
 * messages, name sets. */
#include "core/sum.h"
#include "tiers/rados/cache.h"
#include "tiers/rados/head.h"
#include "tiers/rados/lock_wire.h"
#include "tiers/rados/names.h"
#include "tiers/rados/rados.h"
#include "tiers/rados/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- URLs ---- */

static void urls(void **state) {
    (void)state;
    struct rados_url u;
    struct wt_err err;
    assert_int_equal(rados_url_parse("rados://wafers-cold", &u, &err), 0);
    assert_string_equal(u.pool, "wafers-cold");
    assert_string_equal(u.nspace, "");
    assert_string_equal(u.id, "admin");
    assert_string_equal(u.cluster, "ceph");
    assert_string_equal(u.conf, "");
    assert_int_equal(
        rados_url_parse("rados://p/a%20b?conf=/e/c%3D1.conf&id=w&cluster=far&keyring=/k", &u, &err),
        0);
    assert_string_equal(u.nspace, "a b");
    assert_string_equal(u.conf, "/e/c=1.conf");
    assert_string_equal(u.id, "w");
    assert_string_equal(u.cluster, "far");
    assert_string_equal(u.keyring, "/k");
    assert_int_equal(rados_url_parse("rados://p/", &u, &err), 0);
    assert_string_equal(u.nspace, "");
}

static void bad_urls(void **state) {
    (void)state;
    static const char *const bad[] = {
        "rados:p",          "rados://",       "rados:///ns",      "rados://p?conf=",
        "rados://p?user=x", "rados://p?conf", "rados://p%41",     "rados://u:s@p",
        "rados://p/%01",    "rados://p/%zz",  "rados://p?id=%00", "rados://p?conf=%4",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct rados_url u = {.pool = "untouched"};
        struct wt_err err = {0};
        if (rados_url_parse(bad[i], &u, &err) != WT_EINVAL)
            fail_msg("%s is taken", bad[i]);
        assert_true(err.text[0] != '\0');
        assert_string_equal(u.pool, "untouched");
    }
    char longest[600];
    int n = snprintf(longest, sizeof longest, "rados://");
    memset(longest + n, 'p', 200);
    longest[n + 200] = '\0';
    struct rados_url u;
    assert_int_equal(rados_url_parse(longest, &u, NULL), WT_EINVAL);
}

/* ---- heads ---- */

static struct wt_bytes encoded(const struct rados_head *head) {
    struct wt_bytes b = {0};
    assert_int_equal(rados_head_encode(head, &b), 0);
    return b;
}

static void heads(void **state) {
    (void)state;
    uint32_t crc[3] = {1, 2, 0xffffffff};
    struct rados_head in = {.size = 2 * (uint64_t)RADOS_PART + 1,
                            .token = 0x123456789abcdef0,
                            .n_parts = 3,
                            .crc = crc};
    struct wt_bytes b = encoded(&in);
    struct rados_head *out, fixed;
    assert_int_equal(b.len, RADOS_HEAD_FIXED + 3 * 4 + 4);
    assert_int_equal(rados_head_decode(b.data, b.len, &out, NULL), 0);
    assert_int_equal(out->size, in.size);
    assert_true(out->token == in.token);
    assert_int_equal(out->n_parts, 3);
    assert_memory_equal(out->crc, crc, sizeof crc);
    assert_null(out->data);
    assert_int_equal(rados_head_peek(b.data, RADOS_HEAD_FIXED, &fixed, NULL), 0);
    assert_int_equal(fixed.length, b.len);
    assert_int_equal(rados_part_length(in.size, 0), RADOS_PART);
    assert_int_equal(rados_part_length(in.size, 2), 1);
    rados_head_unref(out);
    wt_bytes_free(&b);
    assert_int_equal(rados_parts_of(0), 0);
    assert_int_equal(rados_parts_of(RADOS_INLINE_MAX), 0);
    assert_int_equal(rados_parts_of(RADOS_INLINE_MAX + 1), 1);
    assert_int_equal(rados_parts_of((uint64_t)RADOS_PARTS_MAX * RADOS_PART), RADOS_PARTS_MAX);
}

static void inline_heads(void **state) {
    (void)state;
    uint8_t data[RADOS_INLINE_MAX];
    memset(data, 7, sizeof data);
    static const size_t sizes[] = {0, 1, 4096, RADOS_INLINE_MAX};
    for (size_t i = 0; i < 4; i++) {
        struct rados_head in = {.flags = RADOS_HEAD_INLINE | RADOS_HEAD_REPLACEABLE,
                                .size = sizes[i],
                                .token = i,
                                .data = data};
        struct wt_bytes b = encoded(&in);
        struct rados_head *out;
        assert_true(b.len <= RADOS_HEAD_READ);
        assert_int_equal(rados_head_decode(b.data, b.len, &out, NULL), 0);
        assert_int_equal(out->size, sizes[i]);
        assert_memory_equal(out->data, data, sizes[i]);
        rados_head_unref(out);
        wt_bytes_free(&b);
    }
}

/* Every bit, every length: never believed. */
static void damaged_heads(void **state) {
    (void)state;
    uint32_t crc[2] = {3, 4};
    struct rados_head in = {.size = RADOS_PART + 5, .token = 9, .n_parts = 2, .crc = crc};
    struct wt_bytes b = encoded(&in);
    struct rados_head *out;
    for (size_t bit = 0; bit < b.len * 8; bit++) {
        b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(rados_head_decode(b.data, b.len, &out, NULL), WT_ECORRUPT);
        b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t len = 0; len < b.len; len++) {
        uint8_t *cut = malloc(len + 1); /* its own block: a read behind it is seen */
        memcpy(cut, b.data, len);
        assert_int_equal(rados_head_decode(cut, len, &out, NULL), WT_ECORRUPT);
        free(cut);
    }
    wt_bytes_free(&b);
}

/* Sums that are right over fields that are not. */
static void hostile_heads(void **state) {
    (void)state;
    static const struct {
        size_t at;
        uint64_t value;
        int rc;
    } rows[] = {
        {8, 2, WT_EFORMAT},
        {12, 4, WT_ECORRUPT},
        {12, 1, WT_ECORRUPT},
        {16, UINT64_MAX, WT_ECORRUPT},
        {16, 1, WT_ECORRUPT},
        {24, 4096, WT_ECORRUPT},
        {28, 1, WT_ECORRUPT},
        {28, UINT32_MAX, WT_ECORRUPT},
        {40, UINT32_MAX, WT_ECORRUPT},
        {40, 0, WT_ECORRUPT},
    };
    uint32_t crc[2] = {3, 4};
    struct rados_head in = {.size = RADOS_PART + 5, .token = 9, .n_parts = 2, .crc = crc};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wt_bytes b = encoded(&in);
        struct rados_head *out;
        if (rows[i].at == 16)
            wt_put64(b.data + 16, rows[i].value);
        else
            wt_put32(b.data + rows[i].at, (uint32_t)rows[i].value);
        wt_put32(b.data + 44, wt_crc32c(0, b.data, 44));
        wt_put32(b.data + b.len - 4, wt_crc32c(0, b.data, b.len - 4));
        assert_int_equal(rados_head_decode(b.data, b.len, &out, NULL), rows[i].rc);
        wt_bytes_free(&b);
    }
}

static void names_of_objects(void **state) {
    (void)state;
    char name[RADOS_OID_SIZE], key[256];
    size_t len = 0;
    uint64_t token = 0;
    memset(key, 'k', 255);
    key[255] = '\0';
    rados_part_name(name, key, UINT64_MAX, UINT32_MAX);
    assert_int_equal(rados_name_kind(name, &len, &token), RADOS_NAME_PART);
    assert_int_equal(len, 255);
    assert_true(token == UINT64_MAX);
    rados_part_name(name, "a@b/c", 1, 0);
    assert_string_equal(name, "a@b/c@0000000000000001.0");
    assert_int_equal(rados_name_kind(name, &len, &token), RADOS_NAME_PART);
    assert_int_equal(len, 5);
    rados_lock_name(name, "d");
    assert_int_equal(rados_name_kind(name, &len, &token), RADOS_NAME_LOCK);
    static const char *const heads[] = {"a",
                                        "a@b",
                                        "@lock",
                                        "a@0000000000000001",
                                        "a@0000000000000001.",
                                        "a@000000000000001.1",
                                        "a@0000000000000001.1x",
                                        "a@000000000000000G.1",
                                        "a@0000000000000001.12345678901",
                                        "a@lock2"};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        assert_int_equal(rados_name_kind(heads[i], &len, &token), RADOS_NAME_HEAD);
}

/* ---- cache ---- */

static struct rados_head *some_head(uint64_t token, uint32_t flags) {
    struct rados_head *h = calloc(1, sizeof *h);
    h->refs = 1;
    h->token = token;
    h->flags = flags;
    h->length = 100;
    return h;
}

static void caching(void **state) {
    (void)state;
    struct rados_cache *cache = rados_cache_new(100 * 400);
    struct rados_head *one = some_head(1, 0), *two = some_head(2, 0),
                      *inside = some_head(3, RADOS_HEAD_INLINE);
    assert_null(rados_cache_get(cache, "a"));
    rados_cache_put(cache, "a", one);
    rados_cache_put(cache, "i", inside);
    assert_null(rados_cache_get(cache, "i"));
    struct rados_head *got = rados_cache_get(cache, "a");
    assert_ptr_equal(got, one);
    rados_cache_put(cache, "a", two);
    assert_int_equal(got->token, 1); /* still ours */
    rados_head_unref(got);
    got = rados_cache_get(cache, "a");
    assert_ptr_equal(got, two);
    rados_head_unref(got);
    /* Bounded; what is used stays. */
    for (unsigned i = 0; i < 5000; i++) {
        char key[20];
        snprintf(key, sizeof key, "key%u", i);
        rados_cache_put(cache, key, one);
        rados_head_unref(rados_cache_get(cache, "a"));
    }
    assert_true(one->refs < 200);
    got = rados_cache_get(cache, "a");
    assert_ptr_equal(got, two);
    rados_head_unref(got);
    assert_null(rados_cache_get(cache, "key10"));
    rados_cache_drop(cache, "a");
    rados_cache_drop(cache, "a");
    assert_null(rados_cache_get(cache, "a"));
    rados_cache_free(cache);
    assert_int_equal(one->refs, 1);
    rados_head_unref(one);
    rados_head_unref(two);
    rados_head_unref(inside);
}

/* ---- locks ---- */

/* What an OSD of Ceph 16.2.15 answered to rados_lock_exclusive()'s owner "one", client.55054. */
static const uint8_t answer[] = {
    0x01, 0x01, 0x54, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x01, 0x10, 0x00, 0x00,
    0x00, 0x08, 0x0e, 0xd7, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x6f,
    0x6e, 0x65, 0x01, 0x01, 0x2f, 0x00, 0x00, 0x00, 0xa2, 0x0c, 0x0d, 0x6b, 0xb6, 0x5e, 0xfd,
    0x15, 0x01, 0x01, 0x01, 0x1c, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0xef, 0x93, 0xc0,
    0xe9, 0x10, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x7f, 0x00, 0x00, 0x01, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00};

static void lock_answers(void **state) {
    (void)state;
    struct rados_locker locker;
    bool held = false;
    assert_int_equal(rados_lock_info(answer, sizeof answer, &locker, &held), 0);
    assert_true(held);
    assert_string_equal(locker.owner, "one");
    assert_int_equal(locker.entity, 55054);
    assert_int_equal(locker.entity_type, 8);
    assert_int_equal(locker.expires, 0x6b0d0ca2);
    for (size_t len = 0; len < sizeof answer; len++) {
        uint8_t *cut = malloc(len + 1);
        memcpy(cut, answer, len);
        assert_int_equal(rados_lock_info(cut, len, &locker, &held), WT_ECORRUPT);
        free(cut);
    }
    static const uint8_t nobody[] = {1, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    assert_int_equal(rados_lock_info(nobody, sizeof nobody, &locker, &held), 0);
    assert_false(held);
}

static void lock_arguments(void **state) {
    (void)state;
    static const uint8_t want[] = {
        1, 1, 42,  0,   0, 0, 9, 0, 0, 0, 'w', 'a', 'f', 'e', 'r', 't', 'i', 'e',  'r',  1,    2, 0,
        0, 0, 'm', 'e', 0, 0, 0, 0, 0, 0, 0,   0,   1,   0,   0,   0,   0,   0x65, 0xcd, 0x1d, 1};
    struct wt_bytes b = {0};
    assert_int_equal(rados_lock_args(&b, "me", 1500), 0);
    assert_int_equal(b.len, sizeof want);
    wt_put32(b.data + 2, 42); /* its length is checked below */
    assert_memory_equal(b.data, want, sizeof want);
    b.len = 0;
    assert_int_equal(rados_unlock_args(&b, "me"), 0);
    assert_int_equal(b.len, 2 + 4 + 4 + 9 + 4 + 2);
    assert_int_equal(wt_get32(b.data + 2), b.len - 6);
    wt_bytes_free(&b);
}

/* ---- sets of names ---- */

static void name_sets(void **state) {
    (void)state;
    struct rados_names set = {0};
    char name[20];
    for (int round = 0; round < 2; round++)
        for (unsigned i = 0; i < 10000; i++) {
            int n = snprintf(name, sizeof name, "f%u/", i);
            assert_int_equal(rados_names_add(&set, name, (size_t)n), round == 0);
        }
    assert_int_equal(set.count, 10000);
    set.count = RADOS_NAMES_MAX;
    assert_int_equal(rados_names_add(&set, "more", 4), WT_ERANGE);
    rados_names_free(&set);
    rados_names_free(&set);
}

/* ---- a tier without its cluster ---- */

static void bad_options(void **state) {
    (void)state;
    uv_loop_t loop;
    struct wt_tier *tier = NULL;
    struct wt_err err = {0};
    struct wt_tier_opts opts = {.name = "cold", .url = "rados://p?conf=/nowhere/ceph.conf"};
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(wt_tier_open(&loop, &opts, NULL, &tier, &err), WT_EINVAL);
    assert_non_null(strstr(err.text, "/nowhere/ceph.conf"));
    assert_null(tier);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls),
        cmocka_unit_test(bad_urls),
        cmocka_unit_test(heads),
        cmocka_unit_test(inline_heads),
        cmocka_unit_test(damaged_heads),
        cmocka_unit_test(hostile_heads),
        cmocka_unit_test(names_of_objects),
        cmocka_unit_test(caching),
        cmocka_unit_test(lock_answers),
        cmocka_unit_test(lock_arguments),
        cmocka_unit_test(name_sets),
        cmocka_unit_test(bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
