/* Errors, log lines, buffers and sizes: core/{err,log,mem,bytes}.h. */
#include "core/bytes.h"
#include "core/err.h"
#include "core/log.h"
#include "core/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void codes_have_names_and_blame(void **state) {
    (void)state;
    assert_string_equal(wt_err_name(WT_ECORRUPT), "CORRUPT");
    assert_string_equal(wt_err_text(WT_EFULL), "tier is full");
    assert_string_equal(wt_err_name(-9999), "UNKNOWN");
    assert_string_equal(wt_err_name(0), "OK");
    assert_int_equal(wt_err_blame(WT_EMISSING), WT_BLAME_OBJECT);
    assert_int_equal(wt_err_blame(WT_EDOWN), WT_BLAME_TIER);
    assert_int_equal(wt_err_blame(WT_EINVAL), WT_BLAME_CALLER);
    assert_int_equal(wt_err_blame(0), WT_BLAME_NONE);
}

static void messages_are_set_and_wrapped(void **state) {
    (void)state;
    struct wt_err err = {0};
    assert_int_equal(wt_err_wrap(&err, "nothing"), 0);
    assert_int_equal(wt_err_set(&err, WT_ECORRUPT, "block %d", 7), WT_ECORRUPT);
    assert_int_equal(wt_err_wrap(&err, "shard %s", "a"), WT_ECORRUPT);
    assert_string_equal(err.text, "shard a: block 7");
    assert_int_equal(wt_err_set(NULL, WT_EIO, "unseen"), WT_EIO);
    assert_int_equal(wt_err_wrap(NULL, "unseen"), 0);
}

static void long_messages_are_cut_visibly(void **state) {
    (void)state;
    struct wt_err err = {0};
    char text[2 * WT_ERR_TEXT];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    wt_err_set(&err, WT_EINVAL, "%s", text);
    assert_int_equal(strlen(err.text), WT_ERR_TEXT - 1);
    assert_string_equal(err.text + WT_ERR_TEXT - 4, "...");
    wt_err_wrap(&err, "before");
    assert_memory_equal(err.text, "before: xxx", 11);
    assert_string_equal(err.text + WT_ERR_TEXT - 4, "...");
}

static void errno_becomes_a_code(void **state) {
    (void)state;
    static const struct {
        int sys, code;
    } rows[] = {{ENOENT, WT_EMISSING}, {EEXIST, WT_EEXISTS},      {ENOSPC, WT_EFULL},
                {EACCES, WT_EDENIED},  {ETIMEDOUT, WT_ETIMEDOUT}, {EIO, WT_EIO},
                {ENOTCONN, WT_EDOWN},  {ENOMEM, WT_ENOMEM},       {ELOOP, WT_ESYSTEM}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wt_err err = {0};
        assert_int_equal(wt_err_sys(&err, rows[i].sys, "open x"), rows[i].code);
        assert_int_equal(err.sys, rows[i].sys);
        assert_memory_equal(err.text, "open x: ", 8);
    }
}

struct lines {
    int n;
    char last[1100];
};

static void keep_line(void *arg, enum wt_log_level level, const char *line) {
    struct lines *l = arg;
    (void)level;
    l->n++;
    strncpy(l->last, line, sizeof l->last - 1);
}

static void log_drops_what_is_above_its_level(void **state) {
    (void)state;
    struct lines seen = {0};
    struct wt_log log = {.fn = keep_line, .arg = &seen, .level = WT_LOG_WARN};
    wt_log(&log, WT_LOG_INFO, "no");
    wt_log(NULL, WT_LOG_ERROR, "no");
    assert_int_equal(seen.n, 0);
    wt_log(&log, WT_LOG_WARN, "yes %d", 1);
    assert_int_equal(seen.n, 1);
    assert_string_equal(seen.last, "yes 1");
    wt_log(&log, WT_LOG_ERROR, "%2000d", 1);
    assert_true(strlen(seen.last) < 1000);
    enum wt_log_level level = WT_LOG_ERROR;
    assert_int_equal(wt_log_level_parse("debug", &level), 0);
    assert_int_equal(level, WT_LOG_DEBUG);
    assert_int_equal(wt_log_level_parse("loud", &level), WT_EINVAL);
    assert_string_equal(wt_log_level_name(WT_LOG_INFO), "info");
}

static void memory_is_mapped_and_zero(void **state) {
    (void)state;
    struct wt_err err = {0};
    static const size_t sizes[] = {1, 5000, 2 << 20, (5 << 20) + 3};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct wt_mem mem;
        assert_int_equal(wt_mem_map(&mem, sizes[i], &err), 0);
        assert_int_equal(mem.size, sizes[i]);
        unsigned char *p = mem.ptr;
        for (size_t k = 0; k < sizes[i]; k += 777)
            assert_int_equal(p[k], 0);
        memset(p, 0xa5, sizes[i]);
        wt_mem_unmap(&mem);
        assert_null(mem.ptr);
        wt_mem_unmap(&mem);
    }
    struct wt_mem none = {0};
    assert_int_equal(wt_mem_map(&none, 0, &err), 0);
    assert_null(none.ptr);
    assert_int_equal(wt_mem_map(&none, SIZE_MAX - 10, &err), WT_ENOMEM);
}

static void arrays_grow_and_refuse_overflow(void **state) {
    (void)state;
    int *array = NULL;
    size_t cap = 0;
    assert_int_equal(wt_grow(&array, &cap, 3, sizeof *array), 0);
    assert_true(cap >= 3);
    array[2] = 42;
    assert_int_equal(wt_grow(&array, &cap, 1000, sizeof *array), 0);
    assert_int_equal(array[2], 42);
    size_t before = cap;
    assert_int_equal(wt_grow(&array, &cap, SIZE_MAX / 2, sizeof *array), WT_ENOMEM);
    assert_int_equal(cap, before);
    free(array);
}

static void bytes_grow(void **state) {
    (void)state;
    struct wt_bytes b = {0};
    assert_int_equal(wt_bytes_add(&b, "abc", 3), 0);
    assert_int_equal(wt_bytes_zeros(&b, 5), 0);
    assert_int_equal(wt_bytes_add(&b, NULL, 0), 0);
    assert_int_equal(b.len, 8);
    assert_memory_equal(b.data, "abc\0\0\0\0\0", 8);
    assert_int_equal(wt_bytes_add(&b, "x", SIZE_MAX), WT_ENOMEM);
    assert_int_equal(b.len, 8);
    wt_bytes_free(&b);
    assert_null(b.data);
}

static void sizes_are_read_and_written(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"512", 512},           {"64KiB", 65536},
                {"1.5GiB", 1610612736}, {"10TB", 10000000000000},
                {"2 MiB", 2 << 20},     {"3m", 3 << 20}};
    struct wt_err err = {0};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t bytes = 0;
        assert_int_equal(wt_size_parse(good[i].text, &bytes, &err), 0);
        assert_int_equal(bytes, good[i].bytes);
    }
    static const char *const bad[] = {"", "MiB", "-1", "5 parsec", "1e40", "nan", "12KiBx"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t bytes = 77;
        assert_int_equal(wt_size_parse(bad[i], &bytes, &err), WT_EINVAL);
        assert_int_equal(bytes, 77);
    }
    char text[WT_SIZE_TEXT];
    assert_string_equal(wt_size_format(64 << 20, text), "64.0 MiB");
    assert_string_equal(wt_size_format(1023, text), "1023 B");
    assert_string_equal(wt_size_format(UINT64_MAX, text), "16.0 EiB");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_names_and_blame),
        cmocka_unit_test(messages_are_set_and_wrapped),
        cmocka_unit_test(long_messages_are_cut_visibly),
        cmocka_unit_test(errno_becomes_a_code),
        cmocka_unit_test(log_drops_what_is_above_its_level),
        cmocka_unit_test(memory_is_mapped_and_zero),
        cmocka_unit_test(arrays_grow_and_refuse_overflow),
        cmocka_unit_test(bytes_grow),
        cmocka_unit_test(sizes_are_read_and_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
