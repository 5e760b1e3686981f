/* tar headers that we write, and archives of others: prefix, pax, GNU long names, base-256 sizes,
 * damage. */
#include "core/bytes.h"
#include "core/tar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void add(struct wt_bytes *b, const void *data, size_t len) {
    assert_int_equal(wt_bytes_add(b, data, len), 0);
}

static void pad(struct wt_bytes *b) {
    assert_int_equal(wt_bytes_zeros(b, wt_tar_pad(b->len)), 0);
}

static void fix_sum(uint8_t *h) {
    unsigned sum = 0;
    memset(h + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += h[i];
    snprintf((char *)h + 148, 8, "%06o", sum);
}

static void add_member(struct wt_bytes *b, const char *name, char type, const void *data,
                       size_t len) {
    uint8_t h[512];
    wt_tar_header(h, name, len);
    h[156] = (uint8_t)type;
    fix_sum(h);
    add(b, h, sizeof h);
    add(b, data, len);
    pad(b);
}

static void add_end(struct wt_bytes *b) {
    assert_int_equal(wt_bytes_zeros(b, WT_TAR_END), 0);
}

/* A pax record with its own length in front. */
static void pax_record(struct wt_bytes *b, const char *key, const char *value) {
    size_t rest = strlen(key) + strlen(value) + 3, len = rest;
    char text[6000];
    while (len != rest + (size_t)snprintf(NULL, 0, "%zu", len))
        len++;
    int n = snprintf(text, sizeof text, "%zu %s=%s\n", len, key, value);
    assert_int_equal((size_t)n, len);
    add(b, text, len);
}

static struct wt_tar_entry next(struct wt_tar_iter *it) {
    struct wt_tar_entry e = {0};
    struct wt_err err = {0};
    if (wt_tar_next(it, &e, &err) != 1)
        fail_msg("no entry: %s", err.text);
    return e;
}

static int fails_at(const struct wt_bytes *b) {
    struct wt_tar_iter it;
    struct wt_tar_entry e;
    wt_tar_iter_init(&it, b->data, b->len);
    for (;;) {
        int rc = wt_tar_next(&it, &e, NULL);
        if (rc != 1)
            return rc;
    }
}

static void own_members_read_back(void **state) {
    (void)state;
    struct wt_bytes b = {0};
    add_member(&b, "lot/w/s.npy", '0', "0123456789", 10);
    add_member(&b, "lot/w/s.cls", '0', "3", 1);
    add_end(&b);
    assert_memory_equal(b.data + 257, "ustar\00000", 8);
    assert_memory_equal(b.data + 136, "00000000000", 12);
    struct wt_tar_iter it;
    wt_tar_iter_init(&it, b.data, b.len);
    struct wt_tar_entry e = next(&it);
    assert_string_equal(e.name, "lot/w/s.npy");
    assert_int_equal(e.type, '0');
    assert_int_equal(e.data_off, 512);
    assert_int_equal(e.size, 10);
    e = next(&it);
    assert_string_equal(e.name, "lot/w/s.cls");
    assert_int_equal(e.header_off, 1024);
    assert_int_equal(wt_tar_next(&it, &e, NULL), 0);
    assert_int_equal(wt_tar_next(&it, &e, NULL), 0);
    wt_bytes_free(&b);
}

static void prefix_and_old_gnu(void **state) {
    (void)state;
    struct wt_bytes b = {0};
    uint8_t h[512];
    wt_tar_header(h, "file", 0);
    memcpy(h + 345, "a/long/way", 10);
    fix_sum(h);
    add(&b, h, 512);
    memcpy(h + 257, "ustar  ", 8); /* old GNU: that field holds something else */
    fix_sum(h);
    add(&b, h, 512);
    add_end(&b);
    struct wt_tar_iter it;
    wt_tar_iter_init(&it, b.data, b.len);
    assert_string_equal(next(&it).name, "a/long/way/file");
    assert_string_equal(next(&it).name, "file");
    wt_bytes_free(&b);
}

static void pax_path_and_size(void **state) {
    (void)state;
    struct wt_bytes b = {0}, x = {0};
    char path[3000];
    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    pax_record(&x, "mtime", "123.5");
    pax_record(&x, "path", path);
    pax_record(&x, "size", "700");
    add_member(&b, "././@PaxHeader", 'x', x.data, x.len);
    size_t at = b.len;
    add_member(&b, "short", '0', "", 0); /* says 0; pax says 700 */
    assert_int_equal(wt_bytes_zeros(&b, 1024), 0);
    add_member(&b, "after", '0', "z", 1);
    add_end(&b);
    struct wt_tar_iter it;
    wt_tar_iter_init(&it, b.data, b.len);
    struct wt_tar_entry e = next(&it);
    assert_string_equal(e.name, path);
    assert_int_equal(e.size, 700);
    assert_int_equal(e.header_off, 0);
    assert_int_equal(e.data_off, at + 512);
    e = next(&it);
    assert_string_equal(e.name, "after");
    assert_int_equal(e.size, 1);
    wt_bytes_free(&b);
    wt_bytes_free(&x);
}

static void gnu_long_name_and_base256(void **state) {
    (void)state;
    struct wt_bytes b = {0};
    char path[500];
    memset(path, 'g', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    add_member(&b, "././@LongLink", 'L', path, sizeof path);
    size_t at = b.len;
    add_member(&b, "short", '0', "12345", 5);
    memset(b.data + at + 124, 0, 12);
    b.data[at + 124] = 0x80;
    b.data[at + 135] = 5;
    fix_sum(b.data + at);
    add_member(&b, "folder/", '5', "", 0);
    add_end(&b);
    struct wt_tar_iter it;
    wt_tar_iter_init(&it, b.data, b.len);
    struct wt_tar_entry e = next(&it);
    assert_string_equal(e.name, path);
    assert_int_equal(e.size, 5);
    assert_int_equal(next(&it).type, '5');
    wt_bytes_free(&b);
}

static void large_sizes_are_written_base256(void **state) {
    (void)state;
    uint8_t h[512];
    wt_tar_header(h, "x", (UINT64_C(1) << 33) - 1);
    assert_memory_equal(h + 124, "77777777777", 12);
    wt_tar_header(h, "x", UINT64_C(1) << 33);
    assert_memory_equal(h + 124, "\x80\0\0\0\0\0\0\2\0\0\0\0", 12);
}

static void cuts_are_refused(void **state) {
    (void)state;
    struct wt_bytes b = {0};
    uint8_t data[1300] = {1};
    add_member(&b, "a", '0', data, sizeof data);
    add_member(&b, "b", '0', data, 700);
    size_t members = b.len;
    add_end(&b);
    for (size_t cut = 0; cut < members; cut++) {
        struct wt_bytes part = {.data = malloc(cut + 1), .len = cut};
        assert_non_null(part.data);
        memcpy(part.data, b.data, cut);
        assert_int_equal(fails_at(&part), WT_ECORRUPT);
        free(part.data);
    }
    assert_int_equal(fails_at(&b), 0);
    wt_bytes_free(&b);
}

static void flipped_header_bits_are_refused(void **state) {
    (void)state;
    struct wt_bytes b = {0};
    add_member(&b, "a/b.npy", '0', "hello", 5);
    add_end(&b);
    for (size_t i = 0; i < 512; i++) {
        for (int bit = 0; bit < 8; bit++) {
            b.data[i] ^= (uint8_t)(1 << bit);
            bool sum_itself = i >= 148 && i < 156; /* a space may become another blank */
            if (!sum_itself)
                assert_int_equal(fails_at(&b), WT_ECORRUPT);
            b.data[i] ^= (uint8_t)(1 << bit);
        }
    }
    wt_bytes_free(&b);
}

static void hostile_members_are_refused(void **state) {
    (void)state;
    static const char *const records[] = {"30 path=x\n",   "0 path=x\n",   "path=x\n",
                                          "9 path=x",      "11 nothing\n", "8 path=\n",
                                          "99999999999 x", "12 size=1x\n", "22 GNU.sparse.map=1\n"};
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        struct wt_bytes b = {0};
        add_member(&b, "pax", 'x', records[i], strlen(records[i]));
        add_member(&b, "a", '0', "x", 1);
        add_end(&b);
        assert_true(fails_at(&b) < 0);
        wt_bytes_free(&b);
    }
    struct wt_bytes b = {0};
    char path[WT_TAR_NAME + 10];
    memset(path, 'n', sizeof path);
    add_member(&b, "long", 'L', path, sizeof path);
    add_member(&b, "a", '0', "x", 1);
    add_end(&b);
    assert_int_equal(fails_at(&b), WT_EUNSUPPORTED);
    b.len = 0;
    add_member(&b, "sparse", 'S', "x", 1);
    add_end(&b);
    assert_int_equal(fails_at(&b), WT_EUNSUPPORTED);
    b.len = 0;
    add_member(&b, "negative", '0', "x", 1);
    memset(b.data + 124, 0xff, 12);
    fix_sum(b.data);
    add_end(&b);
    assert_int_equal(fails_at(&b), WT_ECORRUPT);
    memset(b.data + 124, 0xff, 12);
    b.data[124] = 0x80;
    fix_sum(b.data);
    assert_int_equal(fails_at(&b), WT_ECORRUPT);
    wt_bytes_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_members_read_back),
        cmocka_unit_test(prefix_and_old_gnu),
        cmocka_unit_test(pax_path_and_size),
        cmocka_unit_test(gnu_long_name_and_base256),
        cmocka_unit_test(large_sizes_are_written_base256),
        cmocka_unit_test(cuts_are_refused),
        cmocka_unit_test(flipped_header_bits_are_refused),
        cmocka_unit_test(hostile_members_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
