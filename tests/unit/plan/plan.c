/*
 * The plan as a pure function: every property that readers and the daemon stand on is checked over
 * many sizes.
 */
#include "core/plan.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wt_plan make(struct wt_plan_opts o) {
    struct wt_plan plan;
    struct wt_err err = {0};
    if (wt_plan_init(&plan, &o, &err) < 0)
        fail_msg("%s", err.text);
    return plan;
}

/* ---- permutation ---- */

static void perm_is_a_bijection(void **state) {
    (void)state;
    static const uint64_t sizes[] = {1,  2,  3,  4,   5,    7,    8,     9,
                                     63, 64, 65, 100, 1000, 4097, 65536, 100003};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        uint64_t n = sizes[s];
        struct wt_perm p = wt_perm_make(n, 42, s, 7);
        uint8_t *seen = calloc(n, 1);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t v = wt_perm_at(&p, i);
            assert_true(v < n);
            assert_int_equal(seen[v]++, 0);
            assert_int_equal(wt_perm_inverse(&p, v), i);
        }
        free(seen);
    }
}

static void perm_inverse_of_a_huge_domain(void **state) {
    (void)state;
    uint64_t n = (UINT64_C(1) << 47) + 12345;
    struct wt_perm p = wt_perm_make(n, 1, 2, 3);
    for (uint64_t i = 0; i < 10000; i++) {
        uint64_t v = wt_perm_at(&p, i * 977);
        assert_true(v < n);
        assert_int_equal(wt_perm_inverse(&p, v), i * 977);
    }
}

/* Over many keys, value i lands at each place equally often: chi-square with n-1 degrees of
 * freedom, 6 sigma. */
static void check_uniform(uint64_t n, uint64_t item) {
    enum { KEYS = 20000 };
    double *count = calloc(n, sizeof *count);
    for (uint64_t k = 0; k < KEYS; k++) {
        struct wt_perm p = wt_perm_make(n, k, 3, 1);
        count[wt_perm_at(&p, item)]++;
    }
    double chi = 0, expected = (double)KEYS / (double)n;
    for (uint64_t i = 0; i < n; i++)
        chi += (count[i] - expected) * (count[i] - expected) / expected;
    free(count);
    double dof = (double)n - 1;
    if (fabs(chi - dof) > 6 * sqrt(2 * dof))
        fail_msg("n=%llu item=%llu: chi-square %.1f for %.0f degrees", (unsigned long long)n,
                 (unsigned long long)item, chi, dof);
}

static void perm_is_uniform(void **state) {
    (void)state;
    static const uint64_t sizes[] = {2, 3, 4, 5, 8, 13, 17, 50, 200, 300, 1000};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        check_uniform(sizes[s], 0);
        check_uniform(sizes[s], sizes[s] - 1);
        check_uniform(sizes[s], sizes[s] / 2);
    }
}

/* Neighbours do not stay neighbours: the pair (p(0), p(1)) takes all ordered pairs equally often.
 */
static void perm_pairs_are_uniform(void **state) {
    (void)state;
    enum { N = 8, KEYS = 56000 };
    double count[N][N] = {{0}};
    for (uint64_t k = 0; k < KEYS; k++) {
        struct wt_perm p = wt_perm_make(N, 99, k, 5);
        count[wt_perm_at(&p, 0)][wt_perm_at(&p, 1)]++;
    }
    double chi = 0, expected = (double)KEYS / (N * (N - 1));
    for (size_t a = 0; a < N; a++)
        for (size_t b = 0; b < N; b++)
            if (a != b)
                chi += (count[a][b] - expected) * (count[a][b] - expected) / expected;
    double dof = N * (N - 1) - 1;
    assert_true(fabs(chi - dof) < 6 * sqrt(2 * dof));
}

/* ---- epochs, lanes, windows ---- */

static const struct wt_plan_opts cases[] = {
    {.samples = 1, .batch = 1, .tail = WT_TAIL_PAD},
    {.samples = 7, .batch = 8, .lanes = 8, .block = 2, .tail = WT_TAIL_PAD},
    {.samples = 100, .batch = 10, .block = 7, .tail = WT_TAIL_PAD},
    {.samples = 5703, .batch = 64, .block = 115, .tail = WT_TAIL_PAD},
    {.samples = 5703, .batch = 64, .block = 115, .lanes = 8, .window = 3, .tail = WT_TAIL_PAD},
    {.samples = 4096, .batch = 32, .block = 64, .lanes = 16, .window = 4, .tail = WT_TAIL_PAD},
    {.samples = 1000, .batch = 6, .block = 1, .lanes = 3, .window = 5, .tail = WT_TAIL_PAD},
    {.samples = 999, .batch = 16, .block = 5000, .tail = WT_TAIL_PAD},
    {.samples = 301, .batch = 16, .block = 100, .lanes = 16, .window = 2, .tail = WT_TAIL_PAD},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static void each_sample_once_in_every_epoch(void **state) {
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        struct wt_plan plan = make(cases[c]);
        uint8_t *seen = calloc(plan.o.samples, 1);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            memset(seen, 0, plan.o.samples);
            struct wt_epoch e = wt_plan_epoch(&plan, epoch);
            for (uint32_t l = 0; l < plan.o.lanes; l++) {
                uint64_t n = wt_plan_lane_samples(&plan, l);
                assert_true(n <= plan.steps * plan.lane_batch);
                for (uint64_t pos = 0; pos < n; pos++) {
                    uint64_t s = wt_epoch_sample(&e, l, pos);
                    assert_true(s < plan.o.samples);
                    assert_int_equal(seen[s]++, 0);
                }
            }
            for (uint64_t s = 0; s < plan.o.samples; s++)
                assert_int_equal(seen[s], 1);
        }
        free(seen);
    }
}

static void blocks_and_their_inverse(void **state) {
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        struct wt_plan plan = make(cases[c]);
        for (uint64_t epoch = 0; epoch < 4; epoch++) {
            struct wt_epoch e = wt_plan_epoch(&plan, epoch);
            assert_int_equal(wt_epoch_offset(&e, 0), 0);
            assert_int_equal(wt_epoch_offset(&e, plan.blocks), plan.o.samples);
            for (uint64_t i = 0; i < plan.blocks; i++) {
                uint64_t b = wt_epoch_block(&e, i);
                uint64_t size =
                    b == plan.blocks - 1 ? plan.o.samples - b * plan.o.block : plan.o.block;
                assert_int_equal(wt_epoch_when(&e, b), i);
                assert_int_equal(wt_epoch_offset(&e, i + 1) - wt_epoch_offset(&e, i), size);
                assert_int_equal(wt_epoch_index(&e, wt_epoch_offset(&e, i)), i);
                assert_int_equal(wt_epoch_index(&e, wt_epoch_offset(&e, i + 1) - 1), i);
            }
        }
    }
}

/* Pieces tile a lane, windows tile the pieces, and a block lies in one piece but where lanes meet.
 */
static void pieces_and_windows_tile_a_lane(void **state) {
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        struct wt_plan plan = make(cases[c]);
        struct wt_epoch e = wt_plan_epoch(&plan, 1);
        uint64_t all_pieces = 0;
        for (uint32_t l = 0; l < plan.o.lanes; l++) {
            uint64_t pieces = wt_epoch_pieces(&e, l), pos = 0;
            for (uint64_t j = 0; j < pieces; j++) {
                struct wt_piece p = wt_epoch_piece(&e, l, j);
                assert_int_equal(p.lane_pos, pos);
                assert_true(p.count > 0);
                assert_int_equal(p.first / plan.o.block, (p.first + p.count - 1) / plan.o.block);
                pos += p.count;
            }
            assert_int_equal(pos, wt_plan_lane_samples(&plan, l));
            all_pieces += pieces;
            uint64_t next = 0, at = 0;
            for (uint64_t w = 0; w < wt_epoch_windows(&e, l); w++) {
                struct wt_window win = wt_epoch_window(&e, l, w);
                assert_int_equal(win.piece_first, next);
                assert_int_equal(win.pos, at);
                assert_in_range(win.n_pieces, 1, plan.o.window);
                assert_int_equal(wt_epoch_window_of(&e, l, win.pos), w);
                assert_int_equal(wt_epoch_window_of(&e, l, win.pos + win.count - 1), w);
                next += win.n_pieces;
                at += win.count;
            }
            assert_int_equal(next, pieces);
            assert_int_equal(at, pos);
        }
        assert_in_range(all_pieces, plan.blocks, plan.blocks + plan.o.lanes - 1);
    }
}

static void a_window_is_shuffled_inside_itself(void **state) {
    (void)state;
    struct wt_plan plan = make(
        (struct wt_plan_opts){.samples = 4096, .batch = 32, .block = 64, .lanes = 4, .window = 4});
    struct wt_epoch e = wt_plan_epoch(&plan, 0);
    uint64_t moved = 0;
    for (uint32_t l = 0; l < 4; l++) {
        for (uint64_t w = 0; w < wt_epoch_windows(&e, l); w++) {
            struct wt_window win = wt_epoch_window(&e, l, w);
            for (uint64_t pos = win.pos; pos < win.pos + win.count; pos++) {
                uint64_t source = wt_window_source(&win, pos);
                assert_in_range(source, win.pos, win.pos + win.count - 1);
                moved += source != pos;
            }
        }
    }
    assert_true(moved > 4000);
}

static void orders_differ_by_seed_and_epoch(void **state) {
    (void)state;
    struct wt_plan a =
        make((struct wt_plan_opts){.samples = 1000, .batch = 10, .block = 10, .seed = 1});
    struct wt_plan b =
        make((struct wt_plan_opts){.samples = 1000, .batch = 10, .block = 10, .seed = 2});
    struct wt_epoch a0 = wt_plan_epoch(&a, 0), a1 = wt_plan_epoch(&a, 1), b0 = wt_plan_epoch(&b, 0);
    uint64_t same_epoch = 0, same_seed = 0, n = wt_plan_lane_samples(&a, 0);
    for (uint64_t pos = 0; pos < n; pos++) {
        uint64_t s = wt_epoch_sample(&a0, 0, pos);
        same_epoch += s == wt_epoch_sample(&a1, 0, pos);
        same_seed += s == wt_epoch_sample(&b0, 0, pos);
    }
    assert_true(same_epoch < n / 10 + 5);
    assert_true(same_seed < n / 10 + 5);
}

static void eval_is_manifest_order(void **state) {
    (void)state;
    struct wt_plan plan = make((struct wt_plan_opts){.samples = 103,
                                                     .batch = 8,
                                                     .block = 10,
                                                     .lanes = 4,
                                                     .mode = WT_PLAN_EVAL,
                                                     .tail = WT_TAIL_DROP,
                                                     .seed = 9});
    assert_int_equal(plan.o.lanes, 1);
    assert_int_equal(plan.steps, 13);
    struct wt_epoch e = wt_plan_epoch(&plan, 5);
    for (uint64_t pos = 0; pos < 103; pos++)
        assert_int_equal(wt_epoch_sample(&e, 0, pos), pos);
}

static void steps_and_tails(void **state) {
    (void)state;
    struct wt_plan_opts o = {.samples = 5703, .batch = 64, .block = 115, .lanes = 8};
    struct wt_plan drop = make(o);
    o.tail = WT_TAIL_PAD;
    struct wt_plan pad = make(o);
    assert_int_equal(drop.steps, 89);
    assert_int_equal(pad.steps, 90);
    for (uint32_t l = 0; l < 8; l++) {
        assert_true(wt_plan_lane_samples(&drop, l) >= drop.steps * drop.lane_batch);
        assert_true(wt_plan_lane_samples(&pad, l) <= pad.steps * pad.lane_batch);
    }
}

static void ranks_tile_the_batch(void **state) {
    (void)state;
    struct wt_plan plan =
        make((struct wt_plan_opts){.samples = 1000, .batch = 48, .block = 10, .lanes = 8});
    for (uint32_t world = 1; world <= 48; world++) {
        uint64_t next = 0;
        for (uint32_t r = 0; r < world; r++) {
            uint64_t first, count;
            wt_plan_rank(&plan, r, world, &first, &count);
            assert_int_equal(first, next);
            assert_true(count > 0);
            if (8 % world == 0)
                assert_int_equal(first % plan.lane_batch, 0);
            next += count;
        }
        assert_int_equal(next, 48);
    }
}

static void bad_options_are_refused(void **state) {
    (void)state;
    static const struct wt_plan_opts bad[] = {
        {.samples = 0, .batch = 1},
        {.samples = 10, .batch = 0},
        {.samples = 10, .batch = 9, .lanes = 2},
        {.samples = 10, .batch = 11},
        {.samples = UINT64_MAX, .batch = 1},
        {.samples = 10, .batch = UINT64_MAX},
        {.samples = 10, .batch = 65536, .lanes = 65536, .tail = WT_TAIL_PAD},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct wt_plan plan;
        struct wt_err err = {0};
        assert_int_equal(wt_plan_init(&plan, &bad[i], &err), WT_EINVAL);
        assert_true(strlen(err.text) > 10);
    }
}

static void defaults_shrink_for_small_data(void **state) {
    (void)state;
    struct wt_plan plan = make((struct wt_plan_opts){.samples = 20, .batch = 16, .block = 10});
    assert_int_equal(plan.o.lanes, 1);
    assert_int_equal(plan.o.window, 1);
    plan = make(
        (struct wt_plan_opts){.samples = 100000, .batch = 48, .block = 10, .block_bytes = 1 << 20});
    assert_int_equal(plan.o.lanes, 16);
    assert_int_equal(plan.o.window, 8);
    plan = make((struct wt_plan_opts){
        .samples = 100000, .batch = 64, .block = 10, .block_bytes = 64 << 20});
    assert_int_equal(plan.o.window, 1);
}

/* A saved position means the same sample in every release with this plan version: these numbers
 * never change. */
static void version_1_is_frozen(void **state) {
    (void)state;
    assert_int_equal(WT_PLAN_VERSION, 1);
    struct wt_plan plan = make((struct wt_plan_opts){
        .samples = 1003, .batch = 12, .block = 10, .lanes = 4, .window = 3, .seed = 7});
    uint64_t hash = 0;
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        struct wt_epoch e = wt_plan_epoch(&plan, epoch);
        for (uint32_t l = 0; l < 4; l++)
            for (uint64_t pos = 0; pos < wt_plan_lane_samples(&plan, l); pos++)
                hash = hash * 1000003 + wt_epoch_sample(&e, l, pos);
    }
    assert_int_equal(hash, UINT64_C(0xbdcb7f8afd855a6e));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(perm_is_a_bijection),
        cmocka_unit_test(perm_inverse_of_a_huge_domain),
        cmocka_unit_test(perm_is_uniform),
        cmocka_unit_test(perm_pairs_are_uniform),
        cmocka_unit_test(each_sample_once_in_every_epoch),
        cmocka_unit_test(blocks_and_their_inverse),
        cmocka_unit_test(pieces_and_windows_tile_a_lane),
        cmocka_unit_test(a_window_is_shuffled_inside_itself),
        cmocka_unit_test(orders_differ_by_seed_and_epoch),
        cmocka_unit_test(eval_is_manifest_order),
        cmocka_unit_test(steps_and_tails),
        cmocka_unit_test(ranks_tile_the_batch),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(defaults_shrink_for_small_data),
        cmocka_unit_test(version_1_is_frozen),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
