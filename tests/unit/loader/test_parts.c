/* Small parts: beliefs about copies and the choice among them, copies under way, the buffer pool,
 * the crew. */
#include "libloader/buffers.h"
#include "libloader/crew.h"
#include "libloader/moves.h"
#include "libloader/residency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- residency ---- */

static void test_beliefs(void **state) {
    (void)state;
    struct wt_residency r;
    assert_int_equal(wt_residency_init(&r, 10, false), 0);
    assert_int_equal(wt_residency_absent(&r, 3), 0);
    wt_residency_missed(&r, 3, 2);
    assert_int_equal(wt_residency_absent(&r, 3), 4);
    assert_int_equal(wt_residency_absent(&r, 4), 0);
    wt_residency_hint(&r, 3, 4 | 1, 7); /* hot has it, warm has not */
    assert_int_equal(wt_residency_absent(&r, 3), 2);
    wt_residency_hint(&r, 3, 0, 4); /* speaks of hot alone */
    assert_int_equal(wt_residency_absent(&r, 3), 6);
    wt_residency_hint(&r, 3, 0, 7); /* cold is never believed away */
    assert_int_equal(wt_residency_absent(&r, 3), 6);
    wt_residency_hint(&r, 99, 0, 7); /* out of range: ignored */
    wt_residency_forget(&r);
    assert_int_equal(wt_residency_absent(&r, 3), 0);
    wt_residency_free(&r);
}

static void test_pick(void **state) {
    (void)state;
    double equal[] = {100, 100, 100};
    assert_int_equal(wt_residency_pick(equal, 3, 0), 2);
    assert_int_equal(wt_residency_pick(equal, 3, 4), 1);
    assert_int_equal(wt_residency_pick(equal, 3, 6), 0);
    assert_int_equal(wt_residency_pick(equal, 3, 7), -1);
    double cheap_cold[] = {30, 900, 1500}; /* all hidden by prefetch */
    assert_int_equal(wt_residency_pick(cheap_cold, 3, 0), 2);
    double saturated[] = {1e5, 1.5e5, 9e6}; /* the hot tier's queue is long: spill */
    assert_int_equal(wt_residency_pick(saturated, 3, 0), 1);
    double down[] = {1e5, INFINITY, INFINITY};
    assert_int_equal(wt_residency_pick(down, 3, 0), 0);
    assert_int_equal(wt_residency_pick(down, 3, 1), 2); /* all down: one is asked all the same */
}

/* ---- copies under way ---- */

static void test_moves(void **state) {
    (void)state;
    struct wt_moves m;
    struct wt_coming c;
    wt_moves_init(&m);
    assert_false(wt_moves_find(&m, 1, &c));
    wt_moves_forget(&m, 1);
    for (uint64_t i = 0; i < 3; i++)
        wt_moves_tell(&m, &(struct wt_coming){.shard = i, .tier = 2, .end_ns = 100 + i});
    wt_moves_tell(&m, &(struct wt_coming){.shard = 1, .tier = 1, .end_ns = 7});
    assert_true(wt_moves_find(&m, 1, &c));
    assert_int_equal(c.tier, 1);
    assert_int_equal(c.end_ns, 7);
    wt_moves_forget(&m, 0);
    assert_false(wt_moves_find(&m, 0, &c));
    assert_true(wt_moves_find(&m, 2, &c));
    /* However many are told, the latest are known. */
    for (uint64_t i = 10; i < 10 + 3 * WT_COMING_MAX; i++) {
        wt_moves_tell(&m, &(struct wt_coming){.shard = i, .tier = 2});
        assert_true(wt_moves_find(&m, i, &c));
        if (i % 7 == 0)
            wt_moves_forget(&m, i - 3);
    }
    assert_in_range(m.n, 1, WT_COMING_MAX);
    wt_moves_free(&m);
}

static void test_sooner(void **state) {
    (void)state;
    struct wt_coming c = {.shard = 1, .tier = 2, .end_ns = 5000000};
    uint64_t look = 0, until = 0;
    /* 3 ms left, and 1 ms to read it: sooner than 5 ms, not than 4. */
    assert_true(wt_coming_sooner(&c, 2000000, 5000, 1000, &look, &until));
    assert_int_equal(look, 5000000);
    assert_int_equal(until, 2000000 + 4000000);
    assert_false(wt_coming_sooner(&c, 2000000, 4000, 1000, &look, &until));
    assert_true(wt_coming_sooner(&c, 6000000, 4000, 1000, &look, &until)); /* it should be there */
    assert_int_equal(look, 6000000);
    assert_false(wt_coming_sooner(&c, 6000000, 900, 1000, &look, &until));
    assert_false(wt_coming_sooner(&c, 6000000, INFINITY, 1000, &look, &until)); /* tiers are down */
    assert_false(wt_coming_sooner(&c, 6000000, 4000, INFINITY, &look, &until));
    assert_false(wt_coming_sooner(&c, 6000000, INFINITY, INFINITY, &look, &until));
}

/* ---- buffers ---- */

struct purse {
    size_t left;
};

static int more(void *owner, size_t bytes) {
    struct purse *p = owner;
    if (bytes > p->left)
        return WT_ENOMEM;
    p->left -= bytes;
    return 0;
}

static void test_buffers(void **state) {
    (void)state;
    struct purse purse = {.left = 0};
    struct wt_buffers pool;
    struct wt_buffer *a, *b, *c;
    struct wt_err err = {0};
    wt_buffers_init(&pool, more, &purse);
    pool.limit = 15 << 20;
    assert_int_equal(wt_buffers_get(&pool, 1 << 20, &a, &err), 0);
    assert_int_equal(wt_buffers_get(&pool, 3 << 20, &b, &err), 0);
    memset(a->mem.ptr, 1, 1 << 20);
    memset(b->mem.ptr, 1, 3 << 20);
    void *first = a->mem.ptr;
    wt_buffers_put(&pool, a);
    assert_int_equal(wt_buffers_get(&pool, (1 << 20) - 70000, &a, &err),
                     0); /* nearly the same: reused */
    assert_ptr_equal(a->mem.ptr, first);
    wt_buffers_put(&pool, a);
    assert_int_equal(wt_buffers_get(&pool, 12 << 20, &c, &err), WT_ENOMEM);
    assert_non_null(strstr(err.text, "memory"));
    wt_buffers_put(&pool, b);
    assert_int_equal(wt_buffers_get(&pool, 12 << 20, &c, &err), 0); /* free ones made room */
    assert_true(pool.total <= pool.limit);
    purse.left = 64 << 20;
    assert_int_equal(wt_buffers_get(&pool, 20 << 20, &b, &err), 0); /* the owner gave more */
    assert_true(purse.left < 64 << 20);
    assert_int_equal(wt_buffers_get(&pool, SIZE_MAX, &a, &err), WT_ENOMEM);
    wt_buffers_put(&pool, b);
    wt_buffers_put(&pool, c);
    wt_buffers_put(&pool, NULL);
    wt_buffers_end(&pool);
}

/* ---- crew ---- */

struct job {
    struct wt_task task;
    _Atomic int *turn;
    int ran;
};

static void run_job(struct wt_task *task, struct wt_worker *worker) {
    struct job *j = (struct job *)task;
    assert_non_null(worker->decoder);
    j->ran = atomic_fetch_add(j->turn, 1) + 1;
}

static void run_gate(struct wt_task *task, struct wt_worker *worker) {
    (void)worker;
    struct job *j = (struct job *)task;
    while (!atomic_load(j->turn))
        usleep(1000);
}

static void test_crew_order(void **state) {
    (void)state;
    struct wt_crew *crew;
    struct wt_err err = {0};
    assert_int_equal(wt_crew_new(1, &crew, &err), 0);
    _Atomic int open = 0, turn = 0;
    struct job gate = {.task.run = run_gate, .turn = &open};
    static const uint64_t ranks[] = {WT_RANK_DECODE | 7, WT_RANK_DECODE | 2, WT_RANK_STAGE | 9,
                                     WT_RANK_DECODE | 2, WT_RANK_STAGE | 1};
    static const int expect[] = {5, 3, 2, 4, 1};
    struct job job[5];
    wt_crew_submit(crew, &gate.task);
    for (int i = 0; i < 5; i++) {
        job[i] = (struct job){.task = {.rank = ranks[i], .run = run_job}, .turn = &turn};
        wt_crew_submit(crew, &job[i].task);
    }
    atomic_store(&open, 1);
    wt_crew_free(crew); /* runs what is queued */
    for (int i = 0; i < 5; i++)
        assert_int_equal(job[i].ran, expect[i]);
    wt_crew_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beliefs), cmocka_unit_test(test_pick),
        cmocka_unit_test(test_moves),   cmocka_unit_test(test_sooner),
        cmocka_unit_test(test_buffers), cmocka_unit_test(test_crew_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
