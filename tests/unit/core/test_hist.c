/* Histogram of durations: buckets cover all, percentiles are upper bounds and close. */
#include "core/hist.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void every_duration_lies_in_its_bucket(void **state) {
    (void)state;
    for (uint64_t us = 0; us < UINT64_C(1) << 40; us = us < 100 ? us + 1 : us * 9 / 8) {
        struct wt_hist h = {0};
        wt_hist_add(&h, us);
        unsigned i = 0;
        while (!h.n[i])
            i++;
        assert_true(us <= wt_hist_bound(i));
        assert_true(i == 0 || us > wt_hist_bound(i - 1));
    }
    for (unsigned i = 1; i < WT_HIST_BUCKETS; i++)
        assert_true(wt_hist_bound(i) >= wt_hist_bound(i - 1));
    assert_true(wt_hist_bound(WT_HIST_BUCKETS - 1) == UINT64_MAX);
}

static void percentiles_are_upper_bounds(void **state) {
    (void)state;
    struct wt_hist h = {0};
    assert_int_equal(wt_hist_percentile(&h, 0.5), 0);
    for (uint64_t us = 1; us <= 10000; us++)
        wt_hist_add(&h, us);
    assert_int_equal(h.count, 10000);
    assert_int_equal(h.max_us, 10000);
    assert_in_range(wt_hist_percentile(&h, 0.5), 5000, 7500);
    assert_in_range(wt_hist_percentile(&h, 0.99), 9900, 10000);
    assert_int_equal(wt_hist_percentile(&h, 1), 10000);
    wt_hist_add(&h, UINT64_MAX);
    assert_true(wt_hist_percentile(&h, 1) == UINT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_duration_lies_in_its_bucket),
        cmocka_unit_test(percentiles_are_upper_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
