/* The order and content of batches: the same for any world, threads, codec and memory; resumable at
 * every step. */
#include "loader_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct kit_shape small = {
    .samples = 323, .per_shard = 16, .h = 12, .w = 10, .codec = WT_CODEC_TAR, .mask = true};
static const struct kit_shape small_zst = {
    .samples = 323, .per_shard = 16, .h = 12, .w = 10, .codec = WT_CODEC_ZSTD};
static const struct kit_shape large = {
    .samples = 43, .per_shard = 5, .h = 300, .w = 400, .codec = WT_CODEC_ZSTD};
static const struct kit_shape one_shard = {
    .samples = 9, .per_shard = 16, .h = 3, .w = 4, .codec = WT_CODEC_TAR};

/* Reads an epoch with `world` ranks, one after another; bytes gets what all of them read. */
static struct kit_epoch read_world(const struct kit *k, wl_options o, int world, uint64_t *bytes) {
    struct kit_epoch e = {.batch = o.batch};
    uint64_t sum = 0;
    for (o.rank = 0; o.rank < world; o.rank++) {
        o.world = world;
        o.epochs = 1;
        wl_loader *l = kit_open(&o);
        kit_read_epoch(k, l, &e);
        wl_batch *b;
        assert_int_equal(wl_next(l, NULL, 1000, &b), WL_END);
        assert_int_equal(wl_next(l, NULL, 1000, &b), WL_END);
        sum += kit_bytes_read(l);
        wl_close(l);
    }
    if (bytes)
        *bytes = sum;
    return e;
}

static void worlds_and_threads(const struct kit_shape *shape) {
    struct kit k;
    kit_make(&k, shape);
    wl_options o = kit_options(&k);
    o.tail = WL_TAIL_PAD;
    o.lanes = 8;
    uint64_t alone, split;
    struct kit_epoch one = read_world(&k, o, 1, &alone);
    kit_all_once(&k, &one);
    assert_int_equal(one.valid, shape->samples);
    static const int worlds[] = {2, 4, 8};
    for (size_t i = 0; i < 3; i++) {
        o.threads = (int)(1 + i * 3);
        struct kit_epoch many = read_world(&k, o, worlds[i], &split);
        kit_same(&one, &many);
        assert_int_equal(split, alone);
        kit_epoch_free(&many);
    }
    for (o.threads = 1; o.threads <= 8; o.threads++) {
        struct kit_epoch again = read_world(&k, o, 1, NULL);
        kit_same(&one, &again);
        kit_epoch_free(&again);
    }
    kit_epoch_free(&one);
    kit_free(&k);
}

static void test_tar(void **state) {
    (void)state;
    worlds_and_threads(&small);
}

static void test_zst(void **state) {
    (void)state;
    worlds_and_threads(&small_zst);
}

static void test_large_frames(void **state) {
    (void)state;
    worlds_and_threads(&large);
}

/* A world that does not divide the lanes: slices of lanes. */
static void test_slices(void **state) {
    (void)state;
    struct kit k;
    kit_make(&k, &small);
    wl_options o = kit_options(&k);
    o.tail = WL_TAIL_PAD;
    o.lanes = 2;
    struct kit_epoch one = read_world(&k, o, 1, NULL), three = read_world(&k, o, 3, NULL),
                     sixteen = read_world(&k, o, 16, NULL);
    kit_same(&one, &three);
    kit_same(&one, &sixteen);
    kit_epoch_free(&one);
    kit_epoch_free(&three);
    kit_epoch_free(&sixteen);
    kit_free(&k);
}

/* Blocks that are not shards, windows smaller than a batch, one lane, huge batches. */
static void test_odd_plans(void **state) {
    (void)state;
    static const struct {
        uint64_t batch, block;
        uint32_t lanes, window;
    } plans[] = {{16, 5, 4, 3},   {64, 3, 1, 1},  {100, 7, 2, 2}, {1, 0, 0, 0},
                 {400, 16, 4, 1}, {16, 50, 2, 2}, {323, 0, 0, 0}, {8, 1, 8, 1}};
    static const struct kit_shape *const shapes[] = {&small, &small_zst};
    for (size_t s = 0; s < 2; s++) {
        struct kit k;
        kit_make(&k, shapes[s]);
        for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
            wl_options o = kit_options(&k);
            o.tail = WL_TAIL_PAD;
            o.batch = plans[i].batch;
            o.block = plans[i].block;
            o.lanes = plans[i].lanes;
            o.window = plans[i].window;
            struct kit_epoch e = read_world(&k, o, 1, NULL);
            kit_all_once(&k, &e);
            kit_epoch_free(&e);
        }
        kit_free(&k);
    }
}

static void test_drop_loses_less_than_a_batch(void **state) {
    (void)state;
    struct kit k;
    kit_make(&k, &small);
    wl_options o = kit_options(&k);
    struct kit_epoch e = read_world(&k, o, 1, NULL);
    assert_int_equal(e.valid, e.steps * o.batch);
    assert_true(small.samples - e.valid < o.batch);
    kit_epoch_free(&e);
    kit_free(&k);
}

static void test_epochs_differ(void **state) {
    (void)state;
    struct kit k;
    kit_make(&k, &small);
    wl_options o = kit_options(&k);
    o.tail = WL_TAIL_PAD;
    o.epochs = 3;
    wl_loader *l = kit_open(&o);
    struct kit_epoch e[3] = {{.batch = o.batch}, {.batch = o.batch}, {.batch = o.batch}};
    for (int i = 0; i < 3; i++) {
        kit_read_epoch(&k, l, &e[i]);
        kit_all_once(&k, &e[i]);
    }
    wl_batch *b;
    assert_int_equal(wl_next(l, NULL, 0, &b), WL_END);
    assert_memory_not_equal(e[0].id, e[1].id, e[0].steps * o.batch * sizeof *e[0].id);
    assert_memory_not_equal(e[1].id, e[2].id, e[0].steps * o.batch * sizeof *e[0].id);
    wl_close(l);
    o.seed = 9;
    struct kit_epoch other = read_world(&k, o, 1, NULL);
    assert_memory_not_equal(e[0].id, other.id, e[0].steps * o.batch * sizeof *e[0].id);
    kit_epoch_free(&other);
    for (int i = 0; i < 3; i++)
        kit_epoch_free(&e[i]);
    kit_free(&k);
}

static void test_eval(void **state) {
    (void)state;
    struct kit k;
    kit_make(&k, &small_zst);
    wl_options o = kit_options(&k);
    o.mode = WL_MODE_EVAL;
    struct kit_epoch one = read_world(&k, o, 1, NULL), four = read_world(&k, o, 4, NULL);
    for (uint64_t i = 0; i < one.steps * one.batch; i++)
        assert_int_equal(one.id[i], i < small_zst.samples ? 1000 + i : 0);
    kit_same(&one, &four);
    kit_epoch_free(&one);
    kit_epoch_free(&four);
    kit_free(&k);
}

static void test_tiny(void **state) {
    (void)state;
    struct kit k;
    kit_make(&k, &one_shard);
    wl_options o = kit_options(&k);
    wl_loader *l;
    assert_int_equal(wl_open(NULL, &o, &l), WL_ERROR_INVALID); /* 9 samples, batch 16, drop */
    assert_non_null(strstr(wl_last_error(NULL)->message, "pad"));
    o.tail = WL_TAIL_PAD;
    struct kit_epoch e = read_world(&k, o, 1, NULL), ranks = read_world(&k, o, 16, NULL);
    kit_all_once(&k, &e);
    kit_same(&e, &ranks);
    kit_epoch_free(&e);
    kit_epoch_free(&ranks);
    kit_free(&k);
}

/* ---- memory ---- */

static void ranged(const struct kit_shape *shape) {
    struct kit k;
    kit_make(&k, shape);
    wl_options o = kit_options(&k);
    o.tail = WL_TAIL_PAD;
    o.epochs = 1;
    struct kit_epoch whole = read_world(&k, o, 1, NULL);
    /* The least that works: what the error says. */
    wl_loader *l;
    o.memory = 4096;
    assert_int_equal(wl_open(NULL, &o, &l), WL_ERROR_MEMORY);
    unsigned long long need = 0;
    assert_int_equal(sscanf(strstr(wl_last_error(NULL)->message, "needs "), "needs %llu", &need),
                     1);
    o.memory = need;
    l = kit_open(&o);
    wl_info info;
    wl_get_info(l, &info);
    assert_int_equal(info.ranged, 1);
    assert_true(info.memory <= need);
    struct kit_epoch e = {.batch = o.batch};
    kit_read_epoch(&k, l, &e);
    kit_same(&whole, &e);
    wl_close(l);
    kit_epoch_free(&e);
    kit_epoch_free(&whole);
    kit_free(&k);
}

static void test_ranged_tar(void **state) {
    (void)state;
    struct kit_shape s = {
        .samples = 200, .per_shard = 25, .h = 200, .w = 200, .codec = WT_CODEC_TAR};
    ranged(&s);
}

static void test_ranged_zst(void **state) {
    (void)state;
    struct kit_shape s = {
        .samples = 240, .per_shard = 30, .h = 200, .w = 200, .codec = WT_CODEC_ZSTD};
    ranged(&s);
}

/* ---- resume ---- */

static void read_rest(const struct kit *k, wl_loader *l, const struct kit_epoch *want, int rank,
                      int world, uint64_t step) {
    uint64_t rows = want->batch / (uint64_t)world;
    wl_batch *b;
    int rc;
    while ((rc = wl_next(l, NULL, 20000, &b)) == WL_OK) {
        assert_int_equal(wl_batch_step(b), step);
        kit_check_batch(k, b);
        const uint64_t *id = wl_batch_tensor(b, "sample_id")->data;
        for (uint64_t r = 0; r < rows; r++)
            assert_int_equal(id[r], want->id[step * want->batch + (uint64_t)rank * rows + r]);
        wl_batch_release(b, NULL);
        step++;
    }
    if (rc < 0)
        fail_msg("%s", wl_last_error(l)->message);
    assert_int_equal(rc, WL_END_OF_EPOCH);
    assert_int_equal(step, want->steps);
}

static void test_resume_everywhere(void **state) {
    (void)state;
    struct kit k;
    kit_make(&k, &small);
    wl_options o = kit_options(&k);
    o.tail = WL_TAIL_PAD;
    o.lanes = 8;
    o.epochs = 2;
    struct kit_epoch want[2] = {{.batch = o.batch}, {.batch = o.batch}};
    wl_loader *whole = kit_open(&o);
    kit_read_epoch(&k, whole, &want[0]);
    kit_read_epoch(&k, whole, &want[1]);
    wl_close(whole);
    wl_loader *l = kit_open(&o);
    for (uint64_t step = 0; step <= want[0].steps; step++) {
        char blob[WL_STATE_MAX];
        size_t len;
        assert_int_equal(wl_state_save(l, blob, sizeof blob, &len), WL_OK);
        wl_options other = kit_options(&k);
        other.tail = WL_TAIL_PAD; /* lanes come from the state */
        other.epochs = 2;
        other.world = step % 3 == 0 ? 1 : step % 3 == 1 ? 2 : 8;
        other.rank = (int)(step % (uint64_t)other.world);
        wl_loader *resumed = kit_open(&other);
        if (wl_state_load(resumed, blob, len) < 0)
            fail_msg("%s", wl_last_error(resumed)->message);
        read_rest(&k, resumed, &want[0], other.rank, other.world, step);
        if (step % 7 == 0)
            read_rest(&k, resumed, &want[1], other.rank, other.world, 0);
        wl_close(resumed);
        if (step < want[0].steps) {
            wl_batch *b;
            char after[WL_STATE_MAX];
            size_t after_len;
            assert_int_equal(wl_next(l, NULL, 20000, &b), WL_OK);
            assert_int_equal(wl_batch_state(b, after, sizeof after, &after_len), WL_OK);
            assert_int_equal(wl_state_save(l, blob, sizeof blob, &len), WL_OK);
            assert_int_equal(len, after_len);
            assert_memory_equal(blob, after, len);
            wl_batch_release(b, NULL);
        }
    }
    wl_close(l);
    kit_epoch_free(&want[0]);
    kit_epoch_free(&want[1]);
    kit_free(&k);
}

/* Another batch: the lanes go on at the very same samples. */
static void test_resume_with_another_batch(void **state) {
    (void)state;
    struct kit k;
    kit_make(&k, &small);
    wl_options o = kit_options(&k);
    o.tail = WL_TAIL_PAD;
    o.lanes = 4;
    o.epochs = 1;
    struct kit_epoch want = read_world(&k, o, 1, NULL);
    for (uint64_t at = 1; at < want.steps; at += 3) {
        wl_loader *l = kit_open(&o);
        wl_batch *b;
        char blob[WL_STATE_MAX];
        size_t len;
        for (uint64_t i = 0; i < at; i++) {
            assert_int_equal(wl_next(l, NULL, 20000, &b), WL_OK);
            wl_batch_release(b, NULL);
        }
        assert_int_equal(wl_state_save(l, blob, sizeof blob, &len), WL_OK);
        wl_close(l);
        wl_options other = o;
        other.batch = 24; /* 6 a lane instead of 4 */
        l = kit_open(&other);
        assert_int_equal(wl_state_load(l, blob, len), WL_OK);
        uint64_t lane_pos = at * 4;
        int rc;
        while ((rc = wl_next(l, NULL, 20000, &b)) == WL_OK) {
            const uint64_t *id = wl_batch_tensor(b, "sample_id")->data;
            for (uint64_t lane = 0; lane < 4; lane++) {
                for (uint64_t i = 0; i < 6; i++) {
                    uint64_t pos = lane_pos + i, step = pos / 4;
                    uint64_t expect =
                        step < want.steps ? want.id[step * 16 + lane * 4 + pos % 4] : 0;
                    assert_int_equal(id[lane * 6 + i], expect);
                }
            }
            lane_pos += 6;
            wl_batch_release(b, NULL);
        }
        assert_int_equal(rc, WL_END_OF_EPOCH);
        assert_true(lane_pos >= (small.samples + 3) / 4);
        wl_close(l);
    }
    kit_epoch_free(&want);
    kit_free(&k);
}

static void test_state_refused(void **state) {
    (void)state;
    struct kit k;
    kit_make(&k, &small);
    wl_options o = kit_options(&k);
    o.lanes = 4;
    wl_loader *l = kit_open(&o);
    char blob[WL_STATE_MAX];
    size_t len;
    assert_int_equal(wl_state_save(l, blob, sizeof blob, &len), WL_OK);
    wl_close(l);
    static const struct {
        const char *name, *value, *word;
    } changes[] = {{"seed", "5", "seed"},   {"tail", "pad", "tail"}, {"mode", "eval", "mode"},
                   {"lanes", "8", "lanes"}, {"block", "3", "block"}, {"window", "1", "window"},
                   {"batch", "18", "lanes"}};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        wl_options other = o;
        other.lanes = 0;
        assert_int_equal(wl_options_set(&other, changes[i].name, changes[i].value), WL_OK);
        l = kit_open(&other);
        assert_int_equal(wl_state_load(l, blob, len), WL_ERROR_STATE);
        assert_non_null(strstr(wl_last_error(l)->message, changes[i].word));
        wl_batch *b; /* a refused state changes nothing */
        assert_int_equal(wl_next(l, NULL, 20000, &b), WL_OK);
        wl_batch_release(b, NULL);
        assert_int_equal(wl_state_load(l, blob, len), WL_ERROR_INVALID); /* too late */
        wl_close(l);
    }
    kit_free(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tar),
        cmocka_unit_test(test_zst),
        cmocka_unit_test(test_large_frames),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_odd_plans),
        cmocka_unit_test(test_drop_loses_less_than_a_batch),
        cmocka_unit_test(test_epochs_differ),
        cmocka_unit_test(test_eval),
        cmocka_unit_test(test_tiny),
        cmocka_unit_test(test_ranged_tar),
        cmocka_unit_test(test_ranged_zst),
        cmocka_unit_test(test_resume_everywhere),
        cmocka_unit_test(test_resume_with_another_batch),
        cmocka_unit_test(test_state_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
