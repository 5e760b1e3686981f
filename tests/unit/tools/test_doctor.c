/* doctor's judgement, on figures and facts made up here; its questions are tested on real tiers by
 * tests/integration/doctor.sh and tests/servers/doctor.sh. */
#include "tests/unit/tools/kit.h"
#include "tools/doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    struct wt_doctor d;
    struct wt_tier_opts opts[3];
};

static int setup(void **state) {
    static const char *const names[] = {"cold", "warm", "hot"};
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->d.n_tiers = 3;
    for (size_t i = 0; i < 3; i++) {
        snprintf(f->opts[i].name, sizeof f->opts[i].name, "%s", names[i]);
        f->d.tier[i] = (struct wt_doctor_tier){
            .opts = &f->opts[i], .reads = 100, .median_us = 500, .read_rate = 500e6};
    }
    *state = f;
    return 0;
}

static int teardown(void **state) {
    free(*state);
    return 0;
}

static void speed(struct wt_doctor_tier *t, double median_us, double rate) {
    t->median_us = median_us;
    t->read_rate = rate;
}

static void faster_tiers_are_fine(void **state) {
    struct fixture *f = *state;
    speed(&f->d.tier[1], 300, 800e6);
    speed(&f->d.tier[2], 50, 3e9);
    wt_judge_order(&f->d);
    assert_int_equal(f->d.n_findings, 0);
}

static void slower_tiers_are_named(void **state) {
    struct fixture *f = *state;
    speed(&f->d.tier[1], 600, 430e6); /* 1.2 times as long */
    speed(&f->d.tier[2], 9000, 3e9);  /* a slow server with a wide line */
    wt_judge_order(&f->d);
    assert_int_equal(f->d.n_findings, 2);
    assert_int_equal(f->d.n_wrong, 1);
    assert_int_equal(f->d.finding[0].level, WT_DOCTOR_NOTE);
    assert_int_equal(f->d.finding[1].level, WT_DOCTOR_WRONG);
    assert_int_equal(f->d.finding[1].fault, WT_DOCTOR_NOT_FASTER);
    assert_string_equal(f->d.finding[1].where, "hot");
    assert_non_null(strstr(f->d.finding[1].what, "warm"));
}

/* One that was not measured is passed over: hot is compared with cold. */
static void gaps_are_passed_over(void **state) {
    struct fixture *f = *state;
    f->d.tier[1].reads = 0;
    speed(&f->d.tier[2], 5000, 100e6);
    wt_judge_order(&f->d);
    assert_int_equal(f->d.n_wrong, 1);
    assert_non_null(strstr(f->d.finding[0].what, "cold"));
}

static void one_disk_is_no_fault(void **state) {
    struct fixture *f = *state;
    f->d.tier[0].is_file = f->d.tier[1].is_file = true;
    speed(&f->d.tier[1], 5000, 100e6);
    speed(&f->d.tier[2], 50, 3e9);
    wt_judge_order(&f->d);
    assert_int_equal(f->d.n_wrong, 0);
    assert_int_equal(f->d.finding[0].fault, WT_DOCTOR_SAME_DEVICE);
}

static void give(struct wt_doctor_tier *t, const char *where, const char *name, const char *value) {
    struct wt_doctor_fact *fact = &t->fact[t->n_facts++];
    snprintf(fact->where, sizeof fact->where, "%s", where);
    snprintf(fact->name, sizeof fact->name, "%s", name);
    snprintf(fact->value, sizeof fact->value, "%s", value);
}

static void settings_of_redis(void **state) {
    struct fixture *f = *state;
    struct wt_doctor_tier *t = &f->d.tier[2];
    give(t, "", "server", "Redis 7.0.15");
    give(t, "", "maxmemory", "1000000");
    give(t, "", "maxmemory_policy", "noeviction");
    give(t, "", "clock_ms", "-1500");
    wt_judge_tier(&f->d, t);
    assert_int_equal(f->d.n_findings, 0);
    assert_true(f->d.host.clock_off_s > 1.4 && f->d.host.clock_off_s < 1.6);
    t->n_facts = 0;
    give(t, "10.0.0.2:7000", "maxmemory", "0");
    give(t, "10.0.0.2:7000", "maxmemory_policy", "volatile-ttl");
    give(t, "10.0.0.2:7000", "aof_enabled", "1");
    give(t, "10.0.0.2:7000", "clock_ms", "61000");
    wt_judge_tier(&f->d, t);
    assert_int_equal(f->d.n_findings, 4);
    assert_int_equal(f->d.n_wrong, 3); /* writing to a disk is a note */
    assert_int_equal(f->d.finding[0].fault, WT_DOCTOR_MAXMEMORY);
    assert_non_null(strstr(f->d.finding[0].what, "10.0.0.2:7000"));
    assert_int_equal(f->d.finding[1].fault, WT_DOCTOR_EVICTS);
    assert_int_equal(f->d.finding[2].fault, WT_DOCTOR_PERSISTS);
    assert_int_equal(f->d.finding[3].fault, WT_DOCTOR_CLOCK);
}

static void capacity_and_room(void **state) {
    struct fixture *f = *state;
    struct wt_doctor_tier *t = &f->d.tier[1];
    t->is_file = t->usage_known = true;
    t->used = 100;
    t->capacity = f->opts[1].capacity = 1000;
    t->place.available = 900;
    wt_judge_tier(&f->d, t);
    t->place.available = UINT64_MAX; /* a file system that cannot tell */
    wt_judge_tier(&f->d, t);
    assert_int_equal(f->d.n_findings, 0);
    t->place.available = 899;
    wt_judge_tier(&f->d, t);
    assert_int_equal(f->d.n_findings, 1);
    assert_int_equal(f->d.finding[0].fault, WT_DOCTOR_CAPACITY);
}

static void every_fault_has_advice(void **state) {
    (void)state;
    static const enum wt_doctor_fault all[] = {
#define X(id, name) WT_DOCTOR_##id,
        WT_DOCTOR_FAULTS(X)
#undef X
    };
    static const char *const schemes[] = {NULL,     "file",       "rados",        "redis",
                                          "rediss", "redis+unix", "redis+cluster"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (size_t k = 0; k < sizeof schemes / sizeof schemes[0]; k++) {
            /* Rights are given in other ways for each. */
            bool other = all[i] == WT_DOCTOR_DENIED && !schemes[k];
            if (!other && !wt_doctor_advice(all[i], schemes[k])[0])
                fail_msg("no advice for %s", wt_doctor_fault_name(all[i]));
        }
}

static void findings_are_bounded(void **state) {
    struct fixture *f = *state;
    for (size_t i = 0; i < WT_DOCTOR_FINDINGS + 10; i++)
        wt_doctor_find(&f->d, WT_DOCTOR_WRONG, WT_DOCTOR_FAILS, "cold", "file", "%s", "it fails");
    assert_int_equal(f->d.n_findings, WT_DOCTOR_FINDINGS);
    assert_int_equal(f->d.n_wrong, WT_DOCTOR_FINDINGS + 10);
    json_t *root = wt_doctor_json(&f->d);
    assert_non_null(root);
    assert_false(json_is_true(json_object_get(root, "ok")));
    assert_int_equal(json_array_size(json_object_get(root, "findings")), WT_DOCTOR_FINDINGS);
    json_decref(root);
}

static void places(void **state) {
    (void)state;
    char dir[] = "/tmp/wt-place-XXXXXX", path[64];
    struct wt_place p;
    assert_non_null(mkdtemp(dir));
    wt_place_look(dir, 5000, &p);
    assert_int_equal(p.state, WT_PLACE_FOLDER);
    assert_true(p.writable && !p.mount_read_only && p.owner == geteuid() && p.total > 0);
    snprintf(path, sizeof path, "%s/none", dir);
    wt_place_look(path, 5000, &p);
    assert_int_equal(p.state, WT_PLACE_MISSING);
    assert_int_not_equal(access(path, F_OK), 0); /* it makes nothing */
    snprintf(path, sizeof path, "%s/file", dir);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fclose(file);
    wt_place_look(path, 5000, &p);
    assert_int_equal(p.state, WT_PLACE_NO_FOLDER);
    unlink(path);
    rmdir(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(faster_tiers_are_fine, setup, teardown),
        cmocka_unit_test_setup_teardown(slower_tiers_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(gaps_are_passed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(one_disk_is_no_fault, setup, teardown),
        cmocka_unit_test_setup_teardown(settings_of_redis, setup, teardown),
        cmocka_unit_test_setup_teardown(capacity_and_room, setup, teardown),
        cmocka_unit_test(every_fault_has_advice),
        cmocka_unit_test_setup_teardown(findings_are_bounded, setup, teardown),
        cmocka_unit_test(places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
