/* What the loader reports to a daemon, and what it makes of the answers and of bad daemons. */
#include "control_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct kit_shape shape = {
    .samples = 240, .per_shard = 8, .h = 8, .w = 8, .codec = WT_CODEC_TAR};

static wl_options options(const struct kit *k) {
    wl_options o = kit_options(k);
    o.tail = WL_TAIL_PAD;
    o.lanes = 2;
    o.window = 1;
    o.epochs = 3;
    o.job = "training-7";
    return o;
}

static void test_what_is_reported(void **state) {
    (void)state;
    struct kit k;
    struct control s;
    kit_make(&k, &shape);
    control_start(&s, &k, CONTROL_NORMAL, 1);
    wl_options o = options(&k);
    wl_loader *l = kit_open(&o);
    struct kit_epoch e = {.batch = o.batch};
    control_wait(&s, 2);
    for (int i = 0; i < 3; i++)
        kit_read_epoch(&k, l, &e);
    uint64_t bytes = kit_bytes_read(l);
    wl_stats st = kit_stats(l);
    wl_close(l);
    assert_int_equal(s.registered, 1);
    assert_int_equal(s.deleted, 1);
    assert_int_equal(s.bad, 0);
    assert_int_equal(s.bytes, bytes); /* nothing is lost or told twice */
    assert_int_equal(s.ranges, st.tier[0].reads);
    assert_true(s.next > 0);
    assert_string_equal(json_string_value(json_object_get(s.job, "name")), "training-7");
    assert_string_equal(json_string_value(json_object_get(s.job, "dataset")), "wafers");
    assert_int_equal(json_integer_value(json_object_get(s.job, "generation")), 1);
    assert_string_equal(json_string_value(json_array_get(json_object_get(s.job, "tiers"), 2)),
                        "hot");
    const json_t *plan = json_object_get(s.job, "plan");
    assert_int_equal(json_integer_value(json_object_get(plan, "samples")), 240);
    assert_int_equal(json_integer_value(json_object_get(plan, "lanes")), 2);
    assert_string_equal(json_string_value(json_object_get(plan, "tail")), "pad");
    kit_epoch_free(&e);
    control_stop(&s);
    kit_free(&k);
}

/* A sample that is damaged in its cold copy is told once, however often it is met. */
static void test_bad_samples_are_told(void **state) {
    (void)state;
    struct kit k;
    struct control s;
    kit_make(&k, &shape);
    control_start(&s, &k, CONTROL_NORMAL, 1);
    kit_damage(&k, 2, 0, 512 + 128 + 8); /* in pixels */
    wl_options o = options(&k);
    o.bad = WL_BAD_MASK;
    o.bad_max = 20;
    wl_loader *l = kit_open(&o);
    struct kit_epoch e = {.batch = o.batch};
    for (int i = 0; i < 3; i++)
        kit_read_epoch(&k, l, &e);
    wl_bad_sample bad[8];
    size_t n = wl_quarantine(l, bad, 8);
    wl_close(l);
    assert_true(n >= 1 && n <= 8);
    assert_int_equal(bad[0].times, 3);
    assert_int_equal(s.bad_samples, n);
    assert_string_equal(s.bad_key, bad[0].key);
    kit_epoch_free(&e);
    control_stop(&s);
    kit_free(&k);
}

/* The daemon says: hot has them, warm does not. Then warm is not asked. Its tiers come in another
 * order than ours. */
static void test_hints_are_used(void **state) {
    (void)state;
    struct kit k;
    struct control s;
    kit_make(&k, &shape);
    kit_copy_all(&k, 1);
    control_start(&s, &k, CONTROL_NORMAL,
                  1); /* cold alone, it says: the warm copies are not seen */
    wl_options o = options(&k);
    o.epochs = 0;
    wl_loader *l = kit_open(&o);
    struct kit_epoch e = {.batch = o.batch};
    control_wait(&s, 3);
    uint64_t warm = kit_stats(l).tier[1].reads;
    for (int i = 0; i < 2; i++) {
        control_wait(&s, control_reports(&s) + 3);
        kit_read_epoch(&k, l, &e);
    }
    /* What was under way before the first answer, and what a new epoch forgets before the next
     * answer, may still go to warm. */
    wl_stats st = kit_stats(l);
    assert_true(st.tier[0].reads > st.tier[1].reads - warm);
    pthread_mutex_lock(&s.mutex);
    s.mask = 1 | 4; /* warm, in the server's order */
    pthread_mutex_unlock(&s.mutex);
    control_wait(&s, control_reports(&s) + 3);
    kit_read_epoch(&k, l, &e);
    assert_true(kit_stats(l).tier[1].reads > st.tier[1].reads);
    assert_int_equal(kit_stats(l).tier[0].misses, 0);
    wl_close(l);
    kit_epoch_free(&e);
    control_stop(&s);
    kit_free(&k);
}

static void test_forgetful_daemon(void **state) {
    (void)state;
    struct kit k;
    struct control s;
    kit_make(&k, &shape);
    control_start(&s, &k, CONTROL_FORGETFUL, 1);
    wl_options o = options(&k);
    wl_loader *l = kit_open(&o);
    struct kit_epoch e = {.batch = o.batch};
    kit_read_epoch(&k, l, &e);
    for (int i = 0; i < 100 && kit_stats(l).batches && control_reports(&s) < 8; i++)
        usleep(100000);
    wl_close(l);
    assert_true(s.registered >= 2);
    kit_epoch_free(&e);
    control_stop(&s);
    kit_free(&k);
}

/* A daemon that hangs, or talks nonsense, costs the data path nothing and closing little. */
static void test_useless_daemons(void **state) {
    (void)state;
    static const enum control_mode modes[] = {CONTROL_SILENT, CONTROL_NONSENSE};
    for (size_t i = 0; i < 2; i++) {
        struct kit k;
        struct control s;
        kit_make(&k, &shape);
        control_start(&s, &k, modes[i], 7);
        wl_options o = options(&k);
        wl_loader *l = kit_open(&o);
        struct kit_epoch e = {.batch = o.batch};
        kit_read_epoch(&k, l, &e);
        kit_all_once(&k, &e);
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        wl_close(l);
        clock_gettime(CLOCK_MONOTONIC, &b);
        assert_true(b.tv_sec - a.tv_sec <= 2);
        assert_int_equal(s.reports, 0);
        kit_epoch_free(&e);
        control_stop(&s);
        kit_free(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_reported), cmocka_unit_test(test_bad_samples_are_told),
        cmocka_unit_test(test_hints_are_used),   cmocka_unit_test(test_forgetful_daemon),
        cmocka_unit_test(test_useless_daemons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
