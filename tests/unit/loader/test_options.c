/* Options by struct and by name, and rank and world from the environment. */
#include "libloader/env.h"
#include "libloader/errors.h"
#include "libloader/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <stdlib.h>
#include <string.h>

static wl_options valid(void) {
    wl_options o = WL_OPTIONS_INIT;
    o.dataset = "wafers";
    o.batch = 64;
    return o;
}

static void test_defaults(void **state) {
    (void)state;
    wl_options o = valid(), out;
    struct wt_err err = {0};
    assert_int_equal(wt_options_take(&o, &out, &err), 0);
    assert_int_equal(out.slots, 4);
    assert_int_equal(out.epochs, 1);
    assert_int_equal(out.timeout_ms, 60000);
    assert_int_equal(out.rank, -1);
}

static void test_refusals(void **state) {
    (void)state;
    struct {
        const char *name, *value, *word;
    } bad[] = {{"slots", "1", "slots"},           {"slots", "4000", "slots"},
               {"batch", "0", "batch"},           {"batch", "99999999999", "batch"},
               {"threads", "300", "threads"},     {"dataset", "", "dataset"},
               {"timeout_ms", "-1", "timeout_ms"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        wl_options o = valid(), out = {.size = 77};
        struct wt_err err = {0};
        assert_int_equal(wl_options_set(&o, bad[i].name, bad[i].value), WL_OK);
        assert_int_equal(wt_options_take(&o, &out, &err), WT_EINVAL);
        assert_non_null(strstr(err.text, bad[i].word));
        assert_int_equal(out.size, 77); /* untouched */
    }
    wl_options o = valid(), out;
    o.mode = (wl_mode)9;
    assert_int_equal(wt_options_take(&o, &out, NULL), WT_EINVAL);
    assert_int_equal(wt_options_take(NULL, &out, NULL), WT_EINVAL);
}

/* Programs built against other versions of the header. */
static void test_sizes(void **state) {
    (void)state;
    wl_options o = valid(), out;
    struct wt_err err = {0};
    o.size = 0;
    assert_int_equal(wt_options_take(&o, &out, &err), WT_EINVAL);
    assert_non_null(strstr(err.text, "_INIT"));
    o = valid();
    o.verify_every_read = 1;
    o.size = offsetof(wl_options, verify_every_read); /* older: does not know it */
    assert_int_equal(wt_options_take(&o, &out, &err), 0);
    assert_int_equal(out.verify_every_read, 0);
    struct {
        wl_options o;
        uint64_t later;
    } newer = {.o = valid()};
    newer.o.size = sizeof newer;
    assert_int_equal(wt_options_take(&newer.o, &out, &err), 0);
    newer.later = 1;
    assert_int_equal(wt_options_take(&newer.o, &out, &err), WT_EUNSUPPORTED);
    newer.o.size = SIZE_MAX;
    assert_int_equal(wt_options_take(&newer.o, &out, &err), WT_EINVAL);
}

/* A name that this program's struct has no room for is refused, and nothing is written behind it.
 */
static void test_set_beyond_the_struct(void **state) {
    (void)state;
    wl_options o = valid();
    o.size = offsetof(wl_options, verify_every_read);
    o.verify_every_read = 77;
    assert_int_equal(wl_options_set(&o, "verify_every_read", "1"), WL_ERROR_INVALID);
    assert_non_null(strstr(wl_last_error(NULL)->message, "newer"));
    assert_int_equal(o.verify_every_read, 77);
    assert_int_equal(wl_options_set(&o, "slots", "8"), WL_OK);
    assert_int_equal(o.slots, 8);
}

static void test_new(void **state) {
    (void)state;
    wl_options *o = wl_options_new(), out, plain = valid(), want;
    struct wt_err err = {0};
    assert_non_null(o);
    assert_int_equal(wl_options_set(o, "dataset", "wafers"), WL_OK);
    assert_int_equal(wl_options_set(o, "batch", "64"), WL_OK);
    assert_int_equal(wt_options_take(o, &out, &err), 0);
    assert_int_equal(wt_options_take(&plain, &want, &err), 0);
    assert_int_equal(out.size, want.size);
    assert_int_equal(out.rank, want.rank);
    assert_int_equal(out.slots, want.slots);
    wl_options_free(o);
    wl_options_free(NULL);
}

static void test_set(void **state) {
    (void)state;
    wl_options o = WL_OPTIONS_INIT;
    assert_int_equal(wl_options_set(&o, "batch", "256"), WL_OK);
    assert_int_equal(o.batch, 256);
    assert_int_equal(wl_options_set(&o, "memory", "1.5GiB"), WL_OK);
    assert_int_equal(o.memory, UINT64_C(3) << 29);
    assert_int_equal(wl_options_set(&o, "tail", "pad"), WL_OK);
    assert_int_equal(o.tail, WL_TAIL_PAD);
    assert_int_equal(wl_options_set(&o, "bad", "substitute"), WL_OK);
    assert_int_equal(o.bad, WL_BAD_SUBSTITUTE);
    assert_int_equal(wl_options_set(&o, "seed", "18446744073709551615"), WL_OK);
    assert_int_equal(o.seed, UINT64_MAX);
    assert_int_equal(wl_options_set(&o, "rank", "-1"), WL_OK);
    assert_int_equal(o.rank, -1);
    assert_int_equal(wl_options_set(&o, "dataset", "w"), WL_OK);
    assert_string_equal(o.dataset, "w");
}

static void test_set_refuses(void **state) {
    (void)state;
    wl_options o = WL_OPTIONS_INIT;
    static const char *const bad[][2] = {{"batch", "-3"},   {"batch", "12x"},
                                         {"batch", ""},     {"lanes", "4294967296"},
                                         {"tail", "maybe"}, {"memory", "lots"},
                                         {"rank", "-2"},    {"rank", "99999999999"},
                                         {"epochs", "1e3"}, {"seed", "18446744073709551616"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        wl_options before = o;
        assert_int_equal(wl_options_set(&o, bad[i][0], bad[i][1]), WL_ERROR_INVALID);
        assert_non_null(strstr(wl_last_error(NULL)->message, bad[i][0]));
        assert_memory_equal(&o, &before, sizeof o);
    }
    assert_int_equal(wl_options_set(&o, "batsh", "3"), WL_ERROR_INVALID);
    assert_non_null(strstr(wl_last_error(NULL)->message, "'batch'"));
    assert_int_equal(wl_options_set(&o, "tail", "pads"), WL_ERROR_INVALID);
    assert_non_null(strstr(wl_last_error(NULL)->message, "drop or pad"));
    assert_int_equal(wl_options_set(NULL, "tail", "pad"), WL_ERROR_INVALID);
}

static void clear_env(void) {
    static const char *const names[] = {
        "RANK",     "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
        "PMI_RANK", "PMI_SIZE",   "SLURM_PROCID",         "SLURM_NTASKS"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
}

static int ranks(int *rank, int *world, struct wt_err *err) {
    *rank = *world = -1;
    return wt_env_ranks(rank, world, err);
}

static void test_env(void **state) {
    (void)state;
    int r, w;
    struct wt_err err = {0};
    clear_env();
    assert_int_equal(ranks(&r, &w, &err), 0);
    assert_int_equal(r, 0);
    assert_int_equal(w, 1);
    setenv("SLURM_PROCID", "3", 1);
    setenv("SLURM_NTASKS", "8", 1);
    assert_int_equal(ranks(&r, &w, &err), 0);
    assert_int_equal(r * 100 + w, 308);
    setenv("RANK", "1", 1); /* incomplete: not a pair */
    assert_int_equal(ranks(&r, &w, &err), 0);
    assert_int_equal(r * 100 + w, 308);
    setenv("WORLD_SIZE", "2", 1);
    assert_int_equal(ranks(&r, &w, &err), 0);
    assert_int_equal(r * 100 + w, 102);
    r = 4;
    w = 5; /* options win */
    assert_int_equal(wt_env_ranks(&r, &w, &err), 0);
    assert_int_equal(r * 100 + w, 405);
    clear_env();
}

static void test_env_refuses(void **state) {
    (void)state;
    int r, w;
    struct wt_err err = {0};
    clear_env();
    setenv("RANK", "2", 1);
    setenv("WORLD_SIZE", "2", 1);
    assert_int_equal(ranks(&r, &w, &err), WT_EINVAL);
    setenv("RANK", "x", 1);
    assert_int_equal(ranks(&r, &w, &err), WT_EINVAL);
    assert_non_null(strstr(err.text, "RANK"));
    setenv("RANK", "0", 1);
    setenv("WORLD_SIZE", "0", 1);
    assert_int_equal(ranks(&r, &w, &err), WT_EINVAL);
    assert_non_null(strstr(err.text, "WORLD_SIZE"));
    clear_env();
    r = 0;
    w = -1;
    assert_int_equal(wt_env_ranks(&r, &w, &err), WT_EINVAL);
    r = 3;
    w = 3;
    assert_int_equal(wt_env_ranks(&r, &w, &err), WT_EINVAL);
}

static void test_errors(void **state) {
    (void)state;
    wl_error e;
    char longest[2000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(wt_error_set(&e, WL_ERROR_STORAGE, "%s", longest), WL_ERROR_STORAGE);
    assert_int_equal(strlen(e.message), sizeof e.message - 1);
    assert_int_equal(wt_error_code(WT_EDOWN), WL_ERROR_STORAGE);
    assert_int_equal(wt_error_code(WT_ECORRUPT), WL_ERROR_CORRUPT);
    assert_int_equal(wt_error_code(WT_EMISSING), WL_ERROR_NOT_FOUND);
    assert_string_equal(wl_result_name(WL_ERROR_EXHAUSTED), "WL_ERROR_EXHAUSTED");
    assert_string_equal(wl_result_name(12345), "unknown result");
    assert_string_equal(wl_version(), WAFERTIER_VERSION_STRING);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_set_beyond_the_struct),
        cmocka_unit_test(test_new),
        cmocka_unit_test(test_set_refuses),
        cmocka_unit_test(test_env),
        cmocka_unit_test(test_env_refuses),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
