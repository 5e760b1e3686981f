/* Copies that are damaged, missing or gone; policies for bad samples; tiers that are away. */
#include "loader_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct kit_shape tar = {
    .samples = 160, .per_shard = 16, .h = 20, .w = 30, .codec = WT_CODEC_TAR};
static const struct kit_shape zst = {
    .samples = 160, .per_shard = 16, .h = 200, .w = 300, .codec = WT_CODEC_ZSTD};
static const struct kit_shape *const both[] = {&tar, &zst};

static struct kit_epoch read_all(const struct kit *k, const wl_options *o, wl_stats *stats) {
    wl_loader *l = kit_open(o);
    struct kit_epoch e = {.batch = o->batch};
    kit_read_epoch(k, l, &e);
    *stats = kit_stats(l);
    wl_close(l);
    return e;
}

/* The same, again when a tier above cold was passed over for some shard: on a machine that is busy
 * with other things its measured cost may call for that. reads: what the tier must have answered,
 * failures included. */
static struct kit_epoch read_from(const struct kit *k, const wl_options *o, wl_stats *stats,
                                  size_t tier, uint64_t reads) {
    for (int i = 0;; i++) {
        struct kit_epoch e = read_all(k, o, stats);
        if (i == 20 ||
            stats->tier[tier].reads + stats->tier[tier].failures + stats->tier[tier].misses ==
                reads)
            return e;
        kit_epoch_free(&e);
        usleep(100000);
    }
}

static wl_options pad_options(const struct kit *k) {
    wl_options o = kit_options(k);
    o.tail = WL_TAIL_PAD;
    o.epochs = 1;
    return o;
}

/* Off the middle of a sample's pixels in a plain tar; of some frame in a .tar.zst. */
static uint64_t inside(const struct kit *k, uint64_t shard) {
    struct wt_shard_rec rec;
    wt_dataset_rec(&k->ds, shard, &rec);
    return rec.codec == WT_CODEC_TAR ? 512 * 3 + 100 : rec.index_off / 2;
}

static void test_tiers_in_turn(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct kit k;
        kit_make(&k, both[i]);
        wl_options o = pad_options(&k);
        wl_stats s;
        struct kit_epoch cold = read_from(&k, &o, &s, 1, 10);
        assert_int_equal(s.tiers, 3);
        assert_string_equal(s.tier[0].name, "cold");
        assert_int_equal(s.tier[0].reads, 10);
        assert_int_equal(s.tier[0].bytes, k.ds.m.stored_bytes);
        assert_int_equal(s.tier[1].misses, 10);
        assert_true(s.tier[2].misses > 0);
        for (uint64_t n = 0; n < 10; n += 2)
            kit_copy(&k, n, 1);
        struct kit_epoch warm = read_from(&k, &o, &s, 1, 10);
        kit_same(&cold, &warm);
        assert_int_equal(s.tier[0].reads, 5);
        assert_int_equal(s.tier[1].reads, 5);
        kit_copy_all(&k, 2);
        struct kit_epoch hot = read_from(&k, &o, &s, 2, 10);
        kit_same(&cold, &hot);
        assert_int_equal(s.tier[2].reads, 10);
        assert_int_equal(s.tier[2].bytes, k.ds.m.stored_bytes);
        assert_int_equal(s.tier[0].reads + s.tier[1].reads, 0);
        kit_epoch_free(&cold);
        kit_epoch_free(&warm);
        kit_epoch_free(&hot);
        kit_free(&k);
    }
}

/* A copy that comes between two epochs is used in the second; one that goes is not missed. */
static void test_copies_come_and_go(void **state) {
    (void)state;
    struct kit k;
    kit_make(&k, &tar);
    wl_options o = pad_options(&k);
    o.epochs = 4;
    o.lanes = 1;
    o.window = 1;
    wl_loader *l = kit_open(&o);
    struct kit_epoch e = {.batch = o.batch};
    kit_read_epoch(&k, l, &e);
    kit_copy_all(&k, 2);
    kit_read_epoch(&k, l, &e);
    uint64_t before = kit_stats(l).tier[2].reads;
    kit_read_epoch(&k, l, &e);
    assert_true(kit_stats(l).tier[2].reads > before);
    for (uint64_t s = 0; s < 10; s++)
        kit_remove(&k, s, 2);
    kit_read_epoch(&k, l, &e);
    assert_int_equal(e.valid, 4 * tar.samples);
    wl_close(l);
    kit_epoch_free(&e);
    kit_free(&k);
}

static void test_damaged_hot_copy(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (unsigned tier = 1; tier <= 2; tier++) {
            struct kit k;
            kit_make(&k, both[i]);
            wl_options o = pad_options(&k);
            kit_copy_all(&k, tier);
            kit_damage(&k, 3, tier, inside(&k, 3));
            kit_cut(&k, 4, tier, 1000);
            kit_cut(&k, 5, tier, 0);
            wl_stats s;
            struct kit_epoch e = read_from(&k, &o, &s, tier, 10);
            kit_all_once(&k, &e);
            assert_int_equal(s.tier[tier].failures, 3);
            assert_int_equal(s.tier[tier].reads, 7);
            assert_int_equal(s.tier[0].reads, 3);
            assert_int_equal(s.bad_samples, 0);
            kit_epoch_free(&e);
            kit_free(&k);
        }
    }
}

/* Reads to the end or to an error. */
static int drain(wl_loader *l) {
    wl_batch *b;
    int rc;
    while ((rc = wl_next(l, NULL, 20000, &b)) == WL_OK || rc == WL_END_OF_EPOCH)
        if (rc == WL_OK)
            wl_batch_release(b, NULL);
    return rc;
}

static void test_damaged_cold_copy_fails(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct kit k;
        kit_make(&k, both[i]);
        wl_options o = pad_options(&k);
        kit_damage(&k, 7, 0, inside(&k, 7));
        wl_loader *l = kit_open(&o);
        assert_int_equal(drain(l), WL_ERROR_CORRUPT);
        const wl_error *e = wl_last_error(l);
        char name[WT_OBJECT_NAME];
        kit_shard_name(&k, 7, name);
        assert_string_equal(e->shard, name);
        unsigned lot, wafer, sample;
        assert_int_equal(sscanf(e->key, "lot%u/w%u/s%u", &lot, &wafer, &sample), 3);
        assert_int_equal(sample / 16, 7);
        assert_non_null(strstr(e->message, e->key));
        wl_batch *b;
        assert_int_equal(wl_next(l, NULL, 0, &b), WL_ERROR_CORRUPT); /* sticky */
        wl_close(l);
        /* A good copy elsewhere is taken instead. */
        struct kit fresh = k;
        kit_damage(&fresh, 7, 0, inside(&k, 7)); /* flips back */
        kit_copy(&fresh, 7, 1);
        kit_damage(&fresh, 7, 0, inside(&k, 7));
        wl_stats s;
        struct kit_epoch all = read_all(&k, &o, &s);
        kit_all_once(&k, &all);
        kit_epoch_free(&all);
        kit_free(&k);
    }
}

static void test_mask(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct kit k;
        kit_make(&k, both[i]);
        wl_options o = pad_options(&k);
        o.bad = WL_BAD_MASK;
        o.bad_max = 20;
        kit_damage(&k, 7, 0, inside(&k, 7));
        kit_copy(&k, 7, 2); /* damaged just so: does not help */
        wl_stats s;
        struct kit_epoch e = read_all(&k, &o, &s);
        assert_true(s.bad_samples >= 1 && s.bad_samples <= 3);
        assert_int_equal(e.valid, k.shape.samples - s.bad_samples);
        for (uint64_t row = 0; row < e.steps * e.batch; row++)
            assert_true(e.id[row] == 0 || e.id[row] >= 1000);
        kit_epoch_free(&e);
        /* Its index too: all 16 are masked. */
        kit_cut(&k, 7, 0, 600);
        kit_remove(&k, 7, 2);
        e = read_all(&k, &o, &s);
        assert_int_equal(s.bad_samples, 16);
        assert_int_equal(e.valid, k.shape.samples - 16);
        kit_epoch_free(&e);
        /* More than allowed. */
        o.bad_max = 10;
        wl_loader *l = kit_open(&o);
        assert_int_equal(drain(l), WL_ERROR_CORRUPT);
        assert_non_null(strstr(wl_last_error(l)->message, "bad_max"));
        wl_close(l);
        kit_free(&k);
    }
}

/* Substitutes are the same for every world and thread count, and come from the good samples. */
static void test_substitute(void **state) {
    (void)state;
    struct kit k;
    kit_make(&k, &tar);
    wl_options o = pad_options(&k);
    o.bad = WL_BAD_SUBSTITUTE;
    o.bad_max = 20;
    o.lanes = 4;
    o.window = 2;
    kit_damage(&k, 2, 0, inside(&k, 2));
    wl_stats s;
    struct kit_epoch one = read_all(&k, &o, &s), four = {.batch = o.batch};
    assert_int_equal(s.bad_samples, 1);
    assert_int_equal(one.valid, tar.samples);
    unsigned seen[160] = {0}, twice = 0, missing = 0;
    for (uint64_t i = 0; i < one.steps * one.batch; i++)
        if (one.id[i])
            seen[one.id[i] - 1000]++;
    for (unsigned i = 0; i < 160; i++) {
        twice += seen[i] == 2;
        missing += seen[i] == 0;
    }
    assert_int_equal(twice, 1);
    assert_int_equal(missing, 1);
    o.world = 4;
    for (o.rank = 0; o.rank < 4; o.rank++) {
        o.threads = 1 + o.rank;
        wl_loader *l = kit_open(&o);
        kit_read_epoch(&k, l, &four);
        wl_close(l);
    }
    kit_same(&one, &four);
    kit_epoch_free(&one);
    kit_epoch_free(&four);
    kit_free(&k);
}

/* What was bad is on a list, and the row tells what it replaced. */
static void test_quarantine(void **state) {
    (void)state;
    struct kit k;
    kit_make(&k, &tar);
    wl_options o = pad_options(&k);
    o.bad = WL_BAD_SUBSTITUTE;
    o.epochs = 2;
    kit_damage(&k, 2, 0, inside(&k, 2));
    wl_loader *l = kit_open(&o);
    wl_bad_sample bad[2] = {0};
    assert_int_equal(wl_quarantine(l, bad, 2), 0);
    wl_batch *b;
    char wanted[96] = "";
    unsigned other = 0;
    for (int rc; (rc = wl_next(l, NULL, 20000, &b)) != WL_END;) {
        assert_true(rc >= 0);
        for (uint64_t i = 0; rc == WL_OK && i < wl_batch_size(b); i++) {
            if (strcmp(wl_batch_key(b, i), wl_batch_wanted_key(b, i)) == 0)
                continue;
            other++;
            if (wanted[0])
                assert_string_equal(wl_batch_wanted_key(b, i), wanted);
            snprintf(wanted, sizeof wanted, "%s", wl_batch_wanted_key(b, i));
        }
        if (rc == WL_OK)
            wl_batch_release(b, NULL);
    }
    assert_int_equal(other, 2);
    assert_int_equal(wl_quarantine(l, bad, 2), 1);
    assert_string_equal(bad[0].key, wanted);
    assert_non_null(strstr(bad[0].shard, "/"));
    assert_int_equal(bad[0].epoch, 0);
    assert_int_equal(bad[0].times, 2);
    assert_int_equal(wl_quarantine(l, NULL, 0), 1);
    char text[16384];
    assert_int_equal(wl_stats_json(l, text, sizeof text, NULL), WL_OK);
    assert_non_null(strstr(text, wanted));
    wl_close(l);
    kit_free(&k);
}

static void test_missing_everywhere(void **state) {
    (void)state;
    struct kit k;
    kit_make(&k, &tar);
    wl_options o = pad_options(&k);
    kit_copy(&k, 4, 1);
    kit_remove(&k, 4, 0);
    wl_stats s;
    struct kit_epoch e = read_all(&k, &o, &s); /* the warm copy serves */
    kit_all_once(&k, &e);
    kit_epoch_free(&e);
    kit_remove(&k, 4, 1);
    wl_loader *l = kit_open(&o);
    assert_int_equal(drain(l), WL_ERROR_NOT_FOUND);
    char name[WT_OBJECT_NAME];
    kit_shard_name(&k, 4, name);
    assert_string_equal(wl_last_error(l)->shard, name);
    wl_close(l);
    kit_free(&k);
}

/* ---- tiers away ---- */

/* Its files first: the tier holds the folder open, and what is in it would still be found. */
static void move_cold(const struct kit *k, bool away) {
    char files[160], parked[160], here[160], there[160];
    snprintf(files, sizeof files, "%s/cold/wafers", k->root);
    snprintf(parked, sizeof parked, "%s/parked", k->root);
    snprintf(here, sizeof here, "%s/cold", k->root);
    snprintf(there, sizeof there, "%s/gone", k->root);
    if (away)
        assert_int_equal(rename(files, parked) + rename(here, there), 0);
    else
        assert_int_equal(rename(there, here) + rename(parked, files), 0);
}

static void *bring_back(void *arg) {
    usleep(700000);
    move_cold(arg, false);
    return NULL;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void test_cold_away(void **state) {
    (void)state;
    struct kit k;
    kit_make(&k, &tar);
    wl_options o = pad_options(&k);
    o.timeout_ms = 1500;
    o.lanes = 1;
    o.window = 1;
    wl_loader *l = kit_open(&o);
    wl_batch *b;
    assert_int_equal(wl_next(l, NULL, 20000, &b), WL_OK);
    wl_batch_release(b, NULL);
    move_cold(&k, true);
    double began = now();
    assert_int_equal(drain(l), WL_ERROR_STORAGE);
    assert_true(now() - began > 0.7 && now() - began < 10);
    assert_non_null(strstr(wl_last_error(l)->message, "cold"));
    move_cold(&k, false);
    wl_close(l);
    /* Back in time: nobody notices but the counter. */
    l = kit_open(&o);
    struct kit_epoch e = {.batch = o.batch};
    move_cold(&k, true);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, bring_back, &k), 0);
    kit_read_epoch(&k, l, &e);
    kit_all_once(&k, &e);
    assert_true(kit_stats(l).retries > 0);
    pthread_join(thread, NULL);
    wl_close(l);
    kit_epoch_free(&e);
    kit_free(&k);
}

static void test_open_waits_for_cold(void **state) {
    (void)state;
    struct kit k;
    kit_make(&k, &tar);
    wl_options o = pad_options(&k);
    move_cold(&k, true);
    o.timeout_ms = 300;
    wl_loader *l;
    assert_int_equal(wl_open(NULL, &o, &l), WL_ERROR_STORAGE);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, bring_back, &k), 0);
    o.timeout_ms = 20000;
    l = kit_open(&o);
    struct kit_epoch e = {.batch = o.batch};
    kit_read_epoch(&k, l, &e);
    kit_all_once(&k, &e);
    kit_epoch_free(&e);
    wl_close(l);
    pthread_join(thread, NULL);
    kit_free(&k);
}

static void test_wrong_names(void **state) {
    (void)state;
    struct kit k;
    kit_make(&k, &tar);
    wl_options o = pad_options(&k);
    wl_loader *l;
    o.dataset = "nothere";
    assert_int_equal(wl_open(NULL, &o, &l), WL_ERROR_NOT_FOUND);
    assert_non_null(strstr(wl_last_error(NULL)->message, "nothere"));
    o.dataset = "../wafers";
    assert_int_equal(wl_open(NULL, &o, &l), WL_ERROR_INVALID);
    o.dataset = "wafers";
    o.generation = 7;
    assert_int_equal(wl_open(NULL, &o, &l), WL_ERROR_NOT_FOUND);
    o.generation = 1;
    o.fields = "image,depth";
    assert_int_equal(wl_open(NULL, &o, &l), WL_ERROR_INVALID);
    assert_non_null(strstr(wl_last_error(NULL)->message, "depth"));
    o.fields = NULL;
    o.world = 32;
    o.rank = 0;
    assert_int_equal(wl_open(NULL, &o, &l), WL_ERROR_INVALID); /* batch 16 */
    o.world = 1;
    o.config = "/nonexistent/loader.conf";
    assert_int_equal(wl_open(NULL, &o, &l), WL_ERROR_NOT_FOUND);
    kit_free(&k);
}

static void test_fields_that_differ(void **state) {
    (void)state;
    struct kit k;
    struct kit_shape s = tar;
    s.mask = s.ragged = true;
    kit_make(&k, &s);
    wl_options o = pad_options(&k);
    wl_loader *l;
    assert_int_equal(wl_open(NULL, &o, &l), WL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(wl_last_error(NULL)->message, "mask"));
    o.fields = "image";
    wl_stats st;
    struct kit_epoch e = read_all(&k, &o, &st);
    kit_all_once(&k, &e);
    kit_epoch_free(&e);
    kit_free(&k);
    s = tar;
    s.odd_one = 33;
    kit_make(&k, &s);
    o = pad_options(&k);
    l = kit_open(&o);
    assert_int_equal(drain(l), WL_ERROR_UNSUPPORTED);
    assert_string_equal(wl_last_error(l)->key, "lot0/w3/s000033");
    wl_close(l);
    kit_free(&k);
}

/* Bytes that rot in a mapping after they were checked: seen with verify_every_read. */
static void test_verify_every_read(void **state) {
    (void)state;
    struct kit k;
    kit_make(&k, &tar);
    kit_copy_all(&k, 2);
    char text[700]; /* safe maps are not changed by who writes to the file */
    snprintf(text, sizeof text,
             "tier \"cold\" { url = \"file://%s/cold\" }\n"
             "tier \"warm\" { url = \"file://%s/warm\" }\n"
             "tier \"hot\" { url = \"file://%s/hot?map=always\" }\n",
             k.root, k.root, k.hot);
    assert_int_equal(unlink(k.config), 0);
    kit_config(&k, text);
    wl_options o = pad_options(&k);
    o.epochs = 0;
    o.verify_every_read = 1;
    wl_loader *l = kit_open(&o);
    struct kit_epoch e = {.batch = o.batch};
    kit_read_epoch(&k, l, &e);
    kit_epoch_free(&e);
    for (uint64_t s = 0; s < 10; s++)
        kit_damage(&k, s, 2, inside(&k, s));
    wl_batch *b;
    int rc = WL_OK;
    for (int i = 0; i < 100 && rc >= 0; i++) {
        rc = wl_next(l, NULL, 20000, &b);
        if (rc == WL_OK)
            wl_batch_release(b, NULL);
    }
    assert_int_equal(rc, WL_ERROR_CORRUPT);
    wl_close(l);
    kit_free(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiers_in_turn),
        cmocka_unit_test(test_copies_come_and_go),
        cmocka_unit_test(test_damaged_hot_copy),
        cmocka_unit_test(test_damaged_cold_copy_fails),
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_substitute),
        cmocka_unit_test(test_quarantine),
        cmocka_unit_test(test_missing_everywhere),
        cmocka_unit_test(test_cold_away),
        cmocka_unit_test(test_open_waits_for_cold),
        cmocka_unit_test(test_wrong_names),
        cmocka_unit_test(test_fields_that_differ),
        cmocka_unit_test(test_verify_every_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
