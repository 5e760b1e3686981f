/*
 * A reader waits for a copy under way only where that ends sooner than its own read, and needs
 * neither the copy nor the daemon: copies that end, end late, stand still, fail, lie about
 * themselves, and a daemon that goes while it is waited for. The cold tier is slow here.
 */
#include "control_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SHARDS = 20, HOT = 2 };

static const struct kit_shape shape = {
    .samples = SHARDS * 8, .per_shard = 8, .h = 8, .w = 8, .codec = WT_CODEC_TAR};

/* What the daemon tells from its first answer on, and what becomes of it: the copies come one after
 * the other, in the order in which the job needs them. */
struct story {
    const struct kit *k;
    uint64_t first_ms, step_ms;   /* when they are said to be there: the first one, and each next */
    uint64_t late_ms;             /* how much later they are */
    bool never;                   /* ... they are not */
    uint64_t telling_ms;          /* told of for so long; 0: as long as they are not there */
    const char *rows;             /* told instead */
    uint64_t began, said[SHARDS]; /* ms; 0: not told yet */
    unsigned n;
    bool there[SHARDS];
};

static uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void make_copies(struct story *s, uint64_t now) {
    for (uint64_t i = 0; i < SHARDS; i++) {
        if (!s->said[i] || s->there[i] || s->never || now < s->said[i] + s->late_ms)
            continue;
        kit_copy(s->k, i, HOT);
        s->there[i] = true;
    }
}

static json_t *moves(void *arg, const json_t *next) {
    struct story *s = arg;
    uint64_t now = now_ms();
    json_t *rows = s->rows ? json_loads(s->rows, 0, NULL) : json_array();
    s->began = s->began ? s->began : now;
    make_copies(s, now);
    for (size_t i = 0; i < json_array_size(next) && !s->rows; i++) {
        uint64_t shard = (uint64_t)json_integer_value(json_array_get(next, i)),
                 *said = &s->said[shard];
        if (*said == 0)
            *said = s->began + s->first_ms + s->n++ * s->step_ms;
        if (!s->there[shard] && !(s->telling_ms && now > s->began + s->telling_ms))
            json_array_append_new(rows, json_pack("[I, s, I]", (json_int_t)shard, "hot",
                                                  (json_int_t)(*said > now ? *said - now : 0)));
    }
    return rows;
}

struct scene {
    struct kit k;
    struct control c;
    struct story s;
    wl_options o;
    wl_loader *l;
};

static void begin(struct scene *x, unsigned cold_ms) {
    kit_make(&x->k, &shape);
    FILE *f = fopen(x->k.config, "w");
    assert_non_null(f);
    fprintf(
        f,
        "tier \"cold\" { url = \"file://%s/cold\" read_only = true filter = \"delay read=%ums\" }\n"
        "tier \"warm\" { url = \"file://%s/warm\" read_only = true }\n"
        "tier \"hot\" { url = \"file://%s/hot\" read_only = true }\n",
        x->k.root, cold_ms, x->k.root, x->k.hot);
    assert_int_equal(fclose(f), 0);
    control_start(&x->c, &x->k, CONTROL_NORMAL, 1);
    x->s.k = &x->k;
    x->c.arg = &x->s;
    x->c.hot = x->s.there;
    x->c.moves = moves;
    x->o = kit_options(&x->k);
    x->o.batch = 8;
    x->o.lanes = 1;
    x->o.window = 1;
    x->o.epochs = 1;
    x->o.timeout_ms = 20000;
    x->l = kit_open(&x->o);
    control_wait(&x->c, 2);
}

/* All samples come once, and right, whatever was told. */
static wl_stats read_all(struct scene *x) {
    struct kit_epoch e = {.batch = x->o.batch};
    kit_read_epoch(&x->k, x->l, &e);
    kit_all_once(&x->k, &e);
    kit_epoch_free(&e);
    wl_stats st = kit_stats(x->l);
    assert_int_equal(st.tier[0].reads + st.tier[1].reads + st.tier[2].reads, SHARDS);
    print_message("%llu reads of cold, %llu of hot; %llu waits, %llu of them met\n",
                  (unsigned long long)st.tier[0].reads, (unsigned long long)st.tier[2].reads,
                  (unsigned long long)st.waits, (unsigned long long)st.waits_met);
    return st;
}

static void end(struct scene *x) {
    wl_close(x->l);
    control_stop(&x->c);
    kit_free(&x->k);
}

/* Nothing but what was begun before the first answer is read from cold. */
static void test_copy_that_ends(void **state) {
    (void)state;
    struct scene x = {.s = {.first_ms = 500, .step_ms = 60}};
    begin(&x, 400);
    wl_stats st = read_all(&x);
    assert_in_range(st.tier[0].reads, 1, 6);
    assert_true(st.waits >= SHARDS / 3);
    assert_int_equal(st.waits_met, st.waits);
    end(&x);
}

/* They come later than they were said to: still sooner than a read of cold. */
static void test_copy_that_is_late(void **state) {
    (void)state;
    struct scene x = {.s = {.first_ms = 500, .step_ms = 60, .late_ms = 80}};
    begin(&x, 500);
    wl_stats st = read_all(&x);
    assert_in_range(st.tier[0].reads, 1, 6);
    assert_true(st.waits >= SHARDS / 3);
    assert_int_equal(st.waits_met, st.waits);
    end(&x);
}

/* A read of cold takes 40 ms, the copy much longer: nobody waits for it. */
static void test_copy_that_is_not_sooner(void **state) {
    (void)state;
    struct scene x = {.s = {.first_ms = 5000, .never = true}};
    begin(&x, 40);
    wl_stats st = read_all(&x);
    assert_int_equal(st.tier[0].reads, SHARDS);
    assert_int_equal(st.waits, 0);
    end(&x);
}

/* Told on and on as almost there, or for a while; it never comes. Waiting at most doubles a read.
 */
static void test_copy_that_never_comes(void **state) {
    (void)state;
    static const uint64_t telling[] = {0, 300};
    uint64_t bound = 0;
    for (size_t i = 0; i < 3; i++) {
        struct scene x = {
            .s = {.first_ms = 200, .never = true, .telling_ms = i ? telling[i - 1] : 0}};
        uint64_t began = now_ms();
        if (i == 0)
            x.s.rows = "[]";
        begin(&x, 150);
        wl_stats st = read_all(&x);
        uint64_t took = now_ms() - began;
        assert_int_equal(st.tier[0].reads, SHARDS);
        assert_int_equal(st.waits_met, 0);
        if (i == 0) {
            assert_int_equal(st.waits, 0);
            bound = 2 * took + 1500;
        } else {
            assert_true(st.waits > 0);
            assert_true(took < bound);
        }
        end(&x);
    }
}

/* The daemon is gone, with the copies that it had begun. */
static void test_daemon_that_goes(void **state) {
    (void)state;
    struct scene x = {.s = {.first_ms = 400, .step_ms = 20, .never = true}};
    wl_batch *b;
    int rc, n = 0;
    begin(&x, 250);
    while ((rc = wl_next(x.l, NULL, 20000, &b)) == WL_OK) {
        kit_check_batch(&x.k, b);
        wl_batch_release(b, NULL);
        if (++n == 3)
            control_stop(&x.c);
    }
    assert_int_equal(rc, WL_END_OF_EPOCH);
    assert_int_equal(n, SHARDS);
    wl_stats st = kit_stats(x.l);
    assert_true(st.waits > 0);
    assert_int_equal(st.tier[0].reads, SHARDS);
    wl_close(x.l);
    kit_free(&x.k);
}

/* Nonsense is left out, and what sounds right costs one look each. */
static void test_answers_that_lie(void **state) {
    (void)state;
    static const char *const lies[] = {
        "[[0, \"hot\", -5], [1, \"hot\", 1e300], [2, \"hot\", \"soon\"], [3, \"cold\", 1], "
        "[4, \"tepid\", 1], [99999, \"hot\", 1], [-1, \"hot\", 1], [5, 7, 1], [6], [], 7, null, "
        "{}, \"x\", [\"a\", \"hot\", 1], [8, \"hot\"], [9, \"hot\", 9223372036854775807]]",
        "{\"0\": 1}",
    };
    for (size_t i = 0; i < 3; i++) {
        struct scene x = {.s = {.rows = i < 2 ? lies[i] : NULL, .never = true}};
        begin(&x, 60);
        wl_stats st = read_all(&x);
        assert_int_equal(st.tier[0].reads, SHARDS);
        assert_int_equal(st.waits_met, 0);
        assert_true(i < 2 ? st.waits == 0 : st.waits > 0);
        end(&x);
    }
}

static void test_close_while_waiting(void **state) {
    (void)state;
    struct scene x = {.s = {.first_ms = 1850, .never = true}};
    wl_batch *b;
    begin(&x, 1000);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(wl_next(x.l, NULL, 30000, &b), WL_OK);
        wl_batch_release(b, NULL);
        if (kit_stats(x.l).waits)
            break;
    }
    assert_true(kit_stats(x.l).waits > 0);
    uint64_t began = now_ms();
    wl_close(x.l);
    uint64_t took = now_ms() - began;
    print_message("closed within %llu ms\n", (unsigned long long)took);
    assert_true(took < 600);
    control_stop(&x.c);
    kit_free(&x.k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy_that_ends),
        cmocka_unit_test(test_copy_that_is_late),
        cmocka_unit_test(test_copy_that_is_not_sooner),
        cmocka_unit_test(test_copy_that_never_comes),
        cmocka_unit_test(test_daemon_that_goes),
        cmocka_unit_test(test_answers_that_lie),
        cmocka_unit_test(test_close_while_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
