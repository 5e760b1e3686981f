/* Heat: adds reads, halves with time, cannot be made to overflow. */
#include "daemon/heat.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void near(double a, double b) {
    if (fabs(a - b) > 1e-5 * (1 + fabs(b)))
        fail_msg("%g is not %g", a, b);
}

static void reads_add_up(void **state) {
    (void)state;
    float heat = 0;
    uint32_t then = 0;
    wt_heat_add(&heat, &then, 1000, 60, 50, 100);
    near(heat, 0.5);
    assert_int_equal(then, 1000);
    wt_heat_add(&heat, &then, 1000, 60, 50, 100);
    near(heat, 1);
    wt_heat_add(&heat, &then, 1060, 60, 100, 100); /* the first read counts half now */
    near(heat, 1.5);
}

static void it_halves(void **state) {
    (void)state;
    near(wt_heat_at(8, 100, 100, 10), 8);
    near(wt_heat_at(8, 100, 110, 10), 4);
    near(wt_heat_at(8, 100, 130, 10), 1);
    near(wt_heat_at(8, 100, 105, 10), 8 / sqrt(2));
    assert_true(wt_heat_at(8, 100, 4000000000u, 10) <= 0);
}

static void odd_input(void **state) {
    (void)state;
    near(wt_heat_at(8, 100, 50, 10), 8); /* the clock went back */
    float heat = 1;
    uint32_t then = 100;
    wt_heat_add(&heat, &then, 50, 10, 10, 10);
    near(heat, 2);
    assert_int_equal(then, 100);
    wt_heat_add(&heat, &then, 100, 10, 10, 0);
    near(heat, 2);
    for (int i = 0; i < 100; i++)
        wt_heat_add(&heat, &then, 100, 10, UINT64_MAX, 1);
    assert_true(isfinite(heat));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads_add_up), cmocka_unit_test(it_halves),
                                       cmocka_unit_test(odd_input)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
