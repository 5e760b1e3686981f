/* Saved positions: round trip, every damage refused, every difference named. */
#include "libloader/state.h"

#include <wafertier/loader.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <stdlib.h>
#include <string.h>

static struct wt_state sample(void) {
    return (struct wt_state){.dataset = "wafers-2026",
                             .generation = 3,
                             .idx = {1, 2},
                             .seed = 42,
                             .epoch = 7,
                             .done = 1234,
                             .samples = 99999,
                             .block = 64,
                             .lanes = 8,
                             .window = 4,
                             .tail = 1,
                             .mode = 0,
                             .plan_version = 1};
}

static size_t encode(const struct wt_state *s, char *buf, size_t size) {
    struct wt_err err = {0};
    size_t len = 0;
    assert_int_equal(wt_state_encode(s, buf, size, &len, &err), 0);
    return len;
}

static void test_round_trip(void **state) {
    (void)state;
    char buf[WL_STATE_MAX];
    struct wt_state s = sample(), back;
    memset(s.dataset, 'a', sizeof s.dataset - 1); /* the longest name fits as well */
    size_t len = encode(&s, buf, sizeof buf);
    assert_int_equal(wt_state_decode(buf, len, &back, NULL), 0);
    assert_string_equal(back.dataset, s.dataset);
    assert_int_equal(back.done, s.done);
    assert_int_equal(back.seed, s.seed);
    assert_int_equal(back.window, s.window);
    assert_int_equal(wt_state_match(&back, &s, NULL), 0);
    assert_int_equal(wt_state_encode(&s, buf, len - 1, &len, NULL), WT_ERANGE);
}

static void test_damage(void **state) {
    (void)state;
    char buf[WL_STATE_MAX];
    struct wt_state s = sample(), back;
    size_t len = encode(&s, buf, sizeof buf);
    for (size_t i = 0; i < len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            buf[i] = (char)(buf[i] ^ (1 << bit));
            assert_int_equal(wt_state_decode(buf, len, &back, NULL), WT_ECORRUPT);
            buf[i] = (char)(buf[i] ^ (1 << bit));
        }
        /* Cut, in memory of just that size, so that reading on would be seen. */
        char *cut = malloc(i ? i : 1);
        assert_non_null(cut);
        memcpy(cut, buf, i);
        assert_int_equal(wt_state_decode(cut, i, &back, NULL), WT_ECORRUPT);
        free(cut);
    }
    assert_int_equal(wt_state_decode(buf, len, &back, NULL), 0);
}

static void test_match_names_the_difference(void **state) {
    (void)state;
    struct wt_state mine = sample(), s;
    struct wt_err err = {0};
#define DIFFERS(member, value, word)                                                               \
    s = mine;                                                                                      \
    s.member = value;                                                                              \
    assert_int_equal(wt_state_match(&s, &mine, &err), WT_EINVAL);                                  \
    assert_non_null(strstr(err.text, word))
    DIFFERS(generation, 4, "generation");
    DIFFERS(seed, 1, "seed");
    DIFFERS(samples, 5, "samples");
    DIFFERS(tail, 0, "tail");
    DIFFERS(mode, 1, "mode");
    DIFFERS(plan_version, 2, "plan version");
    DIFFERS(block, 32, "block");
    DIFFERS(lanes, 4, "lanes");
    DIFFERS(window, 2, "window");
    DIFFERS(idx.lo, 9, "shards.idx");
    s = mine;
    strcpy(s.dataset, "other");
    assert_int_equal(wt_state_match(&s, &mine, &err), WT_EINVAL);
    assert_non_null(strstr(err.text, "other"));
    s = mine;
    s.epoch = 9;
    s.done = 1;
    mine.lanes = mine.window = 0;
    mine.block = 0; /* left open: taken from the state */
    assert_int_equal(wt_state_match(&s, &mine, &err), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_match_names_the_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
