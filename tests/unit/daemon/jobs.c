/* Jobs: ids, epochs and their length, expiry, tiers by name. */
#include "daemon/jobs.h"
#include "sets.h"

static struct wt_job *add(struct wt_jobs *jobs, struct wt_catalog_set *set, uint64_t now) {
    struct wt_job_opts o = {.name = "n", .tier = {"cold", "ram"}, .n_tiers = 2};
    struct wt_job *job;
    struct wt_err err = {0};
    assert_int_equal(wt_jobs_add(jobs, &o, set, now, &job, &err), 0);
    return job;
}

static void count_gone(void *arg, const struct wt_job *job) {
    assert_true(strlen(job->id) > 0);
    ++*(unsigned *)arg;
}

static void life(void **state) {
    (void)state;
    struct wt_catalog_set set = {0};
    struct wt_jobs *jobs = wt_jobs_new();
    struct wt_job *a = add(jobs, &set, 1000), *b = add(jobs, &set, 2000);
    assert_int_equal(set.jobs, 2);
    assert_string_not_equal(a->id, b->id);
    assert_ptr_equal(wt_jobs_find(jobs, a->id), a);
    assert_null(wt_jobs_find(jobs, "j1"));
    wt_job_report(b, 0, 5, 9000);
    unsigned gone = 0;
    wt_jobs_expire(jobs, 10999, 10000, count_gone, &gone);
    assert_int_equal(gone, 0);
    wt_jobs_expire(jobs, 11000, 10000, count_gone, &gone);
    assert_int_equal(gone, 1);
    assert_int_equal(wt_jobs_count(jobs), 1);
    assert_int_equal(set.jobs, 1);
    wt_jobs_free(jobs);
    assert_int_equal(set.jobs, 0);
}

static void epochs(void **state) {
    (void)state;
    struct wt_catalog_set set = {0};
    struct wt_jobs *jobs = wt_jobs_new();
    assert_int_equal(wt_jobs_longest_epoch(jobs, 5000), 0);
    struct wt_job *a = add(jobs, &set, 1000);
    assert_int_equal(wt_jobs_longest_epoch(jobs, 4000), 3000); /* the running one counts */
    wt_job_report(a, 1, 0, 9000);
    assert_int_equal(wt_jobs_longest_epoch(jobs, 9500), 8000);
    wt_job_report(a, 1, 7, 9600);
    assert_int_equal(a->step, 7);
    wt_job_report(a, 4, 0, 9000 + 36000); /* three in one go */
    assert_int_equal(wt_jobs_longest_epoch(jobs, 45001), 12000);
    wt_job_report(a, 2, 0, 200000); /* it went back: that was no epoch */
    assert_int_equal(a->longest_ms, 12000);
    wt_jobs_free(jobs);
}

static void tiers_by_name(void **state) {
    (void)state;
    struct wt_catalog_set set = {0};
    struct wt_jobs *jobs = wt_jobs_new();
    struct wt_job *a = add(jobs, &set, 0);
    struct wt_tier_opts tiers[2] = {{.name = "cold"}, {.name = "hot"}};
    int tier;
    bool hit;
    assert_int_equal(wt_job_tier(a, tiers, 2, "hot", &tier, &hit), 0);
    assert_int_equal(tier, 1);
    assert_true(hit);
    assert_int_equal(wt_job_tier(a, tiers, 2, "cold", &tier, &hit), 0);
    assert_int_equal(tier, 0);
    assert_false(hit);
    assert_int_equal(wt_job_tier(a, tiers, 2, "ram", &tier, &hit), 0);
    assert_int_equal(tier, -1);
    assert_true(hit);
    assert_int_equal(wt_job_tier(a, tiers, 2, "attic", &tier, &hit), WT_EMISSING);
    wt_job_read(a, &(struct wt_read){.tier = 1, .hit = true, .ranges = 3, .bytes = 30});
    wt_job_read(a, &(struct wt_read){.tier = 0, .ranges = 2, .bytes = 20});
    wt_job_read(a, &(struct wt_read){.tier = -1, .hit = true, .ranges = 1, .bytes = 10});
    assert_int_equal(a->reads, 6);
    assert_int_equal(a->hits, 4);
    assert_int_equal(a->tier_bytes[1], 30);
    assert_int_equal(a->other_bytes, 10);
    wt_jobs_free(jobs);
}

static void bounded(void **state) {
    (void)state;
    struct wt_catalog_set set = {0};
    struct wt_jobs *jobs = wt_jobs_new();
    for (int i = 0; i < WT_JOBS_MAX; i++)
        add(jobs, &set, 0);
    struct wt_job_opts o = {.name = "one too many"};
    struct wt_job *job;
    struct wt_err err = {0};
    assert_int_equal(wt_jobs_add(jobs, &o, &set, 0, &job, &err), WT_EBUSY);
    wt_jobs_free(jobs);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(life), cmocka_unit_test(epochs),
                                       cmocka_unit_test(tiers_by_name), cmocka_unit_test(bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
