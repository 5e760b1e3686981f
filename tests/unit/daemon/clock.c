/* The daemon's calendar when the machine's clocks jump; heat and jobs by it. */
#include "daemon/clock.h"

#include "daemon/heat.h"
#include "daemon/jobs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static uint64_t mono_ns;

static uint64_t monotonic(void) {
    return mono_ns;
}

static void it_runs_by_the_monotonic_clock(void **state) {
    (void)state;
    struct wt_clock c;
    mono_ns = UINT64_C(5000000000);
    wt_clock_start(&c, 1700000000, monotonic);
    assert_int_equal(wt_clock_now(&c), 1700000000);
    mono_ns += UINT64_C(61999999999);
    assert_int_equal(wt_clock_now(&c), 1700000061);
    mono_ns += UINT64_C(86400) * 365 * 1000000000;
    assert_int_equal(wt_clock_now(&c), 1700000062 - 1 + 86400 * 365);
    assert_int_equal(wt_clock_past(&c, 1700000000), 1700000000);
    assert_int_equal(wt_clock_past(&c, UINT32_MAX), wt_clock_now(&c));
}

static void not_started_it_is_the_machines(void **state) {
    (void)state;
    struct wt_clock c = {0};
    time_t before = time(NULL);
    uint32_t now = wt_clock_now(&c);
    assert_true(now >= (uint32_t)before && now <= (uint32_t)time(NULL));
}

/* Somebody sets the machine's clock by ten years, there and back: heat decays by what passed. */
static void heat_does_not_jump(void **state) {
    (void)state;
    struct wt_clock c;
    float heat = 0;
    uint32_t then = 0;
    mono_ns = 0;
    wt_clock_start(&c, 1700000000, monotonic);
    wt_heat_add(&heat, &then, wt_clock_now(&c), 60, 100, 100);
    mono_ns += UINT64_C(60000000000); /* whatever CLOCK_REALTIME did meanwhile */
    assert_true(fabs(wt_heat_at(heat, then, wt_clock_now(&c), 60) - 0.5) < 1e-6);
    /* What a run with its clock ahead left: as of now, and from now on it decays. */
    then = wt_clock_past(&c, 2000000000);
    mono_ns += UINT64_C(60000000000);
    assert_true(fabs(wt_heat_at(1, then, wt_clock_now(&c), 60) - 0.5) < 1e-6);
}

static void count_gone(void *arg, const struct wt_job *job) {
    (void)job;
    ++*(unsigned *)arg;
}

static void jobs_survive_jumps(void **state) {
    (void)state;
    struct wt_catalog_set set = {0};
    struct wt_jobs *jobs = wt_jobs_new();
    struct wt_job *job;
    struct wt_job_opts opts = {.name = "a", .epoch = 1};
    unsigned gone = 0;
    assert_int_equal(wt_jobs_add(jobs, &opts, &set, 100000, &job, NULL), 0);
    wt_jobs_expire(jobs, 40000, 30000, count_gone, &gone); /* back */
    assert_int_equal(gone, 0);
    assert_int_equal(wt_jobs_longest_epoch(jobs, 40000), 0);
    wt_job_report(job, 2, 0, 50000);
    assert_int_equal(wt_jobs_longest_epoch(jobs, 50000), 0);
    wt_job_report(job, 3, 0, 59000);
    assert_int_equal(wt_jobs_longest_epoch(jobs, 59000), 9000);
    wt_jobs_expire(jobs, 88999, 30000, count_gone, &gone);
    assert_int_equal(gone, 0);
    wt_jobs_expire(jobs, UINT64_MAX, 30000, count_gone, &gone); /* far ahead */
    assert_int_equal(gone, 1);
    assert_int_equal(set.jobs, 0);
    wt_jobs_free(jobs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_runs_by_the_monotonic_clock),
        cmocka_unit_test(not_started_it_is_the_machines),
        cmocka_unit_test(heat_does_not_jump),
        cmocka_unit_test(jobs_survive_jumps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
