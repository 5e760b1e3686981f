/*
 * Copies are read in the background: what is damaged is made anew, the truth itself too where a
 * copy above it is whole; what is gone is noticed; and what cannot be mended is said and changes
 * nothing.
 */
#include "kit.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SHARDS = 6, SAMPLES = 20, WAIT_MS = 20000 };

/* All of it stands in hot, and nothing moves any more. */
static void fill_hot(struct kit *k, const char *scrub) {
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    snprintf(k->extra, sizeof k->extra, "policy { min_stay = 0s } scrub { %s every = 1s }", scrub);
    kit_start(k);
    json_decref(kit_report(k, kit_register(k, "wafers"), 0, 0, SHARDS, "cold", size));
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS, WAIT_MS);
}

static void change(const char *folder, int n, const char *how) {
    kit_shell("f=$(find %s/wafers/shards -type f | sort | sed -n %dp); chmod u+w \"$f\"; %s",
              folder, n, how);
}
static const char flip[] =
    "printf '\\377\\001' | dd of=\"$f\" bs=1 seek=5000 conv=notrunc status=none";

static uint64_t stat_of(struct kit *k, const char *name) {
    json_t *o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
    uint64_t n = (uint64_t)kit_int(o, name);
    json_decref(o);
    return n;
}

static void damaged_copies_are_made_anew(void **state) {
    struct kit *k = *state;
    fill_hot(k, "rate = 1GiB");
    change(k->hot, 2, flip);
    change(k->hot, 4, "truncate -s -100 \"$f\"");
    assert_int_equal(kit_count_equal(k, k->hot, "wafers"), SHARDS - 2);
    kit_until(k, "/v1/stats", "scrub.damaged", 2, WAIT_MS);
    uint64_t passes = stat_of(k, "scrub.passes");
    kit_until(k, "/v1/stats", "scrub.passes", (json_int_t)passes + 3, WAIT_MS);
    assert_int_equal(kit_count_equal(k, k->hot, "wafers"), SHARDS);
    assert_int_equal(stat_of(k, "scrub.damaged"), 2);
    assert_int_equal(stat_of(k, "scrub.cold_damaged"), 0);
    assert_int_equal(stat_of(k, "tiers.2.shards"), SHARDS);
}

static void a_copy_that_is_gone_is_noticed(void **state) {
    struct kit *k = *state;
    fill_hot(k, "rate = 1GiB");
    change(k->hot, 3, "rm -f \"$f\"");
    kit_until(k, "/v1/stats", "scrub.missing", 1, WAIT_MS);
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS,
              WAIT_MS); /* it is warm enough to come back */
    assert_int_equal(kit_count_equal(k, k->hot, "wafers"), SHARDS);
}

static void a_damaged_truth_is_made_anew(void **state) {
    struct kit *k = *state;
    char cold[96];
    fill_hot(k, "rate = 1GiB");
    snprintf(cold, sizeof cold, "%s/cold", k->root);
    kit_shell("cp -r %s/wafers %s/was", cold, k->root);
    change(cold, 3, flip);
    change(cold, 6, "truncate -s -100 \"$f\"");
    change(cold, 5, "rm -f \"$f\"");
    kit_until(k, "/v1/stats", "scrub.cold_repaired", 3, WAIT_MS);
    kit_shell("diff -r %s/wafers %s/was", cold, k->root);
    kit_shell("grep -q 'the cold copy is damaged; it is made anew' %s", k->log);
    assert_int_equal(stat_of(k, "scrub.cold_damaged"), 2);
    assert_int_equal(stat_of(k, "scrub.cold_missing"), 1);
    json_t *o = kit_call(k, "GET", "/v1/moves", NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(o, "set_aside")), 0);
    json_decref(o);
    uint64_t passes = stat_of(k, "scrub.passes");
    kit_until(k, "/v1/stats", "scrub.passes", (json_int_t)passes + 2, WAIT_MS);
    assert_int_equal(stat_of(k, "scrub.cold_damaged"), 2); /* and that was that */
}

/* Neither copy is whole: both stay, for people to save what can be saved. */
static void what_cannot_be_mended_is_told_and_kept(void **state) {
    struct kit *k = *state;
    char cold[96];
    fill_hot(k, "rate = 1GiB");
    snprintf(cold, sizeof cold, "%s/cold", k->root);
    change(k->hot, 3, flip);
    change(cold, 3, "printf 'x' | dd of=\"$f\" bs=1 seek=9000 conv=notrunc status=none");
    kit_until(k, "/v1/stats", "scrub.cold_damaged", 1, WAIT_MS);
    uint64_t passes = stat_of(k, "scrub.passes");
    kit_until(k, "/v1/stats", "scrub.passes", (json_int_t)passes + 3, WAIT_MS);
    assert_int_equal(kit_count(cold, "wafers"), SHARDS);
    assert_int_equal(kit_count(k->hot, "wafers"), SHARDS);
    assert_int_equal(stat_of(k, "scrub.cold_repaired"), 0);
    kit_shell("grep -q 'the cold copy is damaged' %s", k->log);
    json_t *o = kit_call(k, "GET", "/v1/moves", NULL, NULL);
    assert_true(json_array_size(json_object_get(o, "set_aside")) > 0);
    json_decref(o);
}

/* A daemon that always moves something comes round as well. */
static void a_busy_daemon_scrubs_too(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    snprintf(k->extra, sizeof k->extra,
             "policy { min_stay = 0s } mover { moves = 1 } "
             "scrub { rate = 1GiB min_rate = 100MiB every = 1s }");
    k->tier_extra = "filter = \"delay write=4s\"";
    kit_start(k);
    json_decref(kit_report(k, kit_register(k, "wafers"), 0, 0, SHARDS, "cold", size));
    kit_until(k, "/v1/stats", "moves.running", 1, WAIT_MS);
    kit_until(k, "/v1/stats", "scrub.copies", SHARDS, WAIT_MS);
    assert_true(stat_of(k, "moves.done") < SHARDS);
    assert_true(stat_of(k, "moves.running") + stat_of(k, "moves.queued") > 0);
}

static void none_with_rate_0(void **state) {
    struct kit *k = *state;
    fill_hot(k, "rate = 0");
    change(k->hot, 2, flip);
    kit_sleep(3000);
    assert_int_equal(stat_of(k, "scrub.bytes"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(damaged_copies_are_made_anew, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(a_copy_that_is_gone_is_noticed, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(a_damaged_truth_is_made_anew, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_mended_is_told_and_kept, kit_setup,
                                        kit_teardown),
        cmocka_unit_test_setup_teardown(a_busy_daemon_scrubs_too, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(none_with_rate_0, kit_setup, kit_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
