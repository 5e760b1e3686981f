/*
 * SIGKILL of the daemon in the middle of moves, at random points, again and again.
 *
 * After each kill: every copy that is visible is whole, every sample reads back equal through a
 * loader that uses all tiers, `gc --dry-run` finds what the kill left behind, and nothing else, and
 * `gc` removes it. Then the daemon starts again on what it finds. WAFERTIER_CRASH_ROUNDS sets the
 * number of kills, WAFERTIER_TEST_SEED the points (the seed is printed).
 */
#include "tests/integration/daemon/kit.h"

#include <wafertier/loader.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SHARDS = 16, SAMPLES = 40, SALT = 1, ROUNDS = 50, READY_MS = 10000, KILL_WITHIN_MS = 120 };

struct crash {
    struct kit *k;
    uint64_t seed, size;
    uint64_t left; /* temporaries that kills left behind, over all rounds */
    uint64_t copies;
};

static uint64_t random_below(struct crash *c, uint64_t n) {
    c->seed ^= c->seed << 13;
    c->seed ^= c->seed >> 7;
    c->seed ^= c->seed << 17;
    return c->seed % n;
}

static uint64_t temporaries(const struct crash *c) {
    return kit_number(
        "find %s/cold/.wafertier.tmp %s/warm/.wafertier.tmp %s/.wafertier.tmp -type f "
        "2>/dev/null | wc -l",
        c->k->root, c->k->root, c->k->hot);
}

static uint64_t gc(const struct crash *c, const char *options, const char *what) {
    return kit_number(
        "timeout 60 %s gc --config %s %s >%s/gc.out 2>&1 || echo 999999; grep -c -E '%s' "
        "%s/gc.out",
        WAFERTIER, c->k->conf, options, c->k->root, what, c->k->root);
}

/* ---- what must hold after a kill ---- */

static void check_copies(struct crash *c) {
    char cold[96], warm[96];
    snprintf(cold, sizeof cold, "%s/cold", c->k->root);
    snprintf(warm, sizeof warm, "%s/warm", c->k->root);
    assert_int_equal(kit_count(cold, "wafers"), SHARDS);
    assert_int_equal(kit_count_equal(c->k, warm, "wafers"), kit_count(warm, "wafers"));
    assert_int_equal(kit_count_equal(c->k, c->k->hot, "wafers"), kit_count(c->k->hot, "wafers"));
    c->copies += kit_count(warm, "wafers") + kit_count(c->k->hot, "wafers");
}

static void check_batch(const wl_batch *b, uint64_t *next) {
    const uint8_t *valid = wl_batch_tensor(b, "valid")->data;
    const uint8_t *image = wl_batch_tensor(b, "image")->data;
    const uint64_t *id = wl_batch_tensor(b, "sample_id")->data;
    uint8_t want[KIT_SIDE * KIT_SIDE];
    for (uint64_t row = 0; row < wl_batch_size(b); row++) {
        if (!valid[row])
            continue;
        assert_int_equal(id[row], *next);
        kit_image(*next / SAMPLES, (uint32_t)(*next % SAMPLES), SALT, want);
        assert_memory_equal(image + row * sizeof want, want, sizeof want);
        ++*next;
    }
}

static void check_samples(struct crash *c) {
    wl_options o = WL_OPTIONS_INIT;
    wl_loader *l;
    wl_batch *b;
    o.config = c->k->conf;
    o.dataset = "wafers";
    o.batch = 64;
    o.epochs = 1;
    o.mode = WL_MODE_EVAL;
    o.rank = 0;
    o.world = 1;
    o.threads = 2;
    o.memory = 64 << 20;
    if (wl_open(NULL, &o, &l) < 0)
        fail_msg("%s", wl_last_error(NULL)->message);
    uint64_t next = 0;
    int rc;
    while ((rc = wl_next(l, NULL, 20000, &b)) == WL_OK) {
        check_batch(b, &next);
        wl_batch_release(b, NULL);
    }
    if (rc != WL_END_OF_EPOCH)
        fail_msg("%s: %s", wl_result_name(rc), wl_last_error(l)->message);
    assert_int_equal(next, SHARDS * SAMPLES);
    wl_close(l);
}

static void check_gc(struct crash *c) {
    uint64_t left = temporaries(c), copies = kit_number("find %s/cold/wafers %s/warm %s -type f "
                                                        "-not -path '*/.wafertier*' | wc -l",
                                                        c->k->root, c->k->root, c->k->hot);
    c->left += left;
    uint64_t cold =
        kit_number("find %s/cold/.wafertier.tmp -type f 2>/dev/null | wc -l", c->k->root);
    assert_int_equal(gc(c, "--dry-run", "^(warm|hot) +temporary "), left - cold);
    assert_int_equal(gc(c, "--dry-run", " unnamed | copy | retired "), 0);
    /* the lease of the jobs that were registered, and one that was being written */
    assert_in_range(gc(c, "--dry-run", "^cold +(temporary|lease) "), 0, 2);
    assert_int_equal(temporaries(c), left);
    gc(c, "", "nothing");
    assert_int_equal(temporaries(c), 0);
    assert_int_equal(gc(c, "--dry-run --grace 0s --young 0s", "^0 orphans"), 1);
    assert_int_equal(
        kit_number("find %s/cold/wafers %s/warm %s -type f -not -path '*/.wafertier*' | wc -l",
                   c->k->root, c->k->root, c->k->hot),
        copies);
}

/* ---- a round ---- */

static void start(struct crash *c) {
    c->k->pid = kit_spawn(c->k, c->k->log, NULL);
    kit_wait_status(c->k, "ok", READY_MS);
}

/* Other halves of the data set become hot in turn, so that copies come and go. */
static void make_moves(struct crash *c, uint64_t round) {
    uint64_t first = round % 2 ? 0 : SHARDS / 2;
    json_decref(kit_report(c->k, kit_register(c->k, "wafers"), (unsigned)round, first, SHARDS / 2,
                           "cold", c->size * (1 + round * 2)));
}

static void kill_within(struct crash *c, uint64_t ms) {
    int status;
    usleep((useconds_t)random_below(c, ms * 1000));
    assert_int_equal(kill(c->k->pid, SIGKILL), 0);
    assert_int_equal(waitpid(c->k->pid, &status, 0), c->k->pid);
    c->k->pid = 0;
    assert_true(WIFSIGNALED(status)); /* it had not died by itself before */
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void forget_something(struct crash *c, uint64_t round) {
    if (round % 6 == 5)
        kit_number("rm -rf %s/state; echo 0", c->k->root);
    if (round % 4 == 3)
        kit_number("rm -rf %s/wafers; echo 0", c->k->hot);
    if (round % 4 == 1)
        kit_number("rm -rf %s/warm/wafers; echo 0", c->k->root);
}

static void killed_in_the_middle_of_moves(void **state) {
    struct crash c = {.k = *state};
    char hot[32];
    uint64_t rounds = kit_setting("WAFERTIER_CRASH_ROUNDS", ROUNDS);
    c.seed = kit_setting("WAFERTIER_TEST_SEED", kit_now() * 1000003) | 1;
    print_message("%llu kills; WAFERTIER_TEST_SEED=%llu\n", (unsigned long long)rounds,
                  (unsigned long long)c.seed);
    c.size = kit_pack(c.k, "wafers", SHARDS, SAMPLES, 1, SALT, 0);
    snprintf(hot, sizeof hot, "%llu", (unsigned long long)(c.size * SHARDS / 2));
    c.k->hot_capacity = hot;
    c.k->tier_extra = "filter = \"delay open=0ms..4ms write=0ms..8ms commit=0ms..4ms seed=1\"";
    snprintf(c.k->extra, sizeof c.k->extra, "policy { min_stay = 0s }");
    kit_write_conf(c.k);
    for (uint64_t round = 0; round < rounds; round++) {
        start(&c);
        make_moves(&c, round);
        kill_within(&c, KILL_WITHIN_MS);
        check_copies(&c);
        check_samples(&c);
        check_gc(&c);
        forget_something(&c, round);
    }
    print_message("%llu temporaries were left and removed, %llu copies seen whole\n",
                  (unsigned long long)c.left, (unsigned long long)c.copies);
    assert_true(c.left >= rounds / 10); /* else nothing was hit in its middle */
    assert_true(c.copies >= rounds / 2);
    start(&c); /* and it works on */
    make_moves(&c, rounds);
    kit_until(c.k, "/v1/stats", "tiers.2.shards", SHARDS / 4, 20000);
    json_t *o = kit_call(c.k, "GET", "/v1/stats", NULL, NULL);
    assert_int_equal(kit_int(o, "moves.failed"), 0);
    json_decref(o);
    assert_int_equal(kit_stop(c.k, SIGTERM, 5000), 0);
    check_copies(&c);
    assert_int_equal(temporaries(&c), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_in_the_middle_of_moves, kit_setup, kit_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
