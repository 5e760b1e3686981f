/*
 * SIGKILL of the daemon at random points while it moves shards between RADOS, CephFS and Redis, and
 * two loaders read all the while.
 *
 * The loaders deliver what loaders on a plain folder do, to the byte, and never fail: neither a
 * kill nor the time without a daemon is theirs. After each kill every copy that is visible is whole
 * and cold has everything (fsck --data), no tier holds more than its capacity, gc finds what the
 * kill left behind and removes it. Then the daemon starts again on what it finds.
 * WAFERTIER_CRASH_ROUNDS sets the number of kills, WAFERTIER_TEST_SEED the points (the seed is
 * printed).
 */
#include "storm.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 5, KILL_WITHIN_MS = 1500, READY_MS = 20000, BATCH_MS = 20000 };
enum { WARM_MAX = 20 << 20, HOT_MAX = 10 << 20 }; /* of the configuration */

struct crash {
    struct storm *s;
    uint64_t left, hit; /* temporaries that kills left behind; rounds that left some */
    uint64_t moves;     /* copies that had ended before the kills */
    uint64_t warm, hot; /* the most bytes seen */
};

/* Lines of a gc's output that match; a gc that fails ends the test. */
static uint64_t gc(const struct crash *c, const char *options, const char *what) {
    const struct kit *k = c->s->kit;
    uint64_t n =
        kit_number("timeout 60 %s gc --config %s --young 0s %s >%s/gc.out 2>&1 || echo 999999\n"
                   "grep -c -E '%s' %s/gc.out",
                   WAFERTIER, k->conf, options, k->root, what, k->root);
    if (n >= 999999)
        storm_shell("cat %s/gc.out >&2; exit 1", k->root);
    return n;
}

/* ---- what must hold after a kill ---- */

static void check_readers(struct crash *c, unsigned batches) {
    storm_reader_advance(&c->s->reader, batches, BATCH_MS);
    storm_reader_advance(&c->s->second, batches, BATCH_MS);
}

static void check_copies(const struct crash *c) {
    const struct kit *k = c->s->kit;
    storm_shell("timeout 50 '%s' fsck --data --config '%s' >'%s/fsck.out' 2>&1 || { cat "
                "'%s/fsck.out' >&2; exit 1; }\ngrep -q 'all agrees' '%s/fsck.out'",
                WAFERTIER, k->conf, k->root, k->root, k->root);
}

static void check_gc(struct crash *c) {
    uint64_t left = gc(c, "--dry-run", "^(warm|hot) +temporary ");
    assert_int_equal(gc(c, "--dry-run", " unnamed | copy | retired "), 0);
    c->left += left;
    c->hit += left > 0;
    gc(c, "", "nothing");
    assert_int_equal(gc(c, "--dry-run", "^(warm|hot) "), 0);
    /* leases: of jobs of this test that were written, or were being written */
    assert_in_range(gc(c, "--dry-run", "^cold "), 0, 4);
}

/* Bytes of copies, when what kills left is gone. */
static void check_capacity(struct crash *c) {
    static const char sum[] =
        "local c,s=\\\"0\\\",0 repeat local r=redis.call(\\\"SCAN\\\",c,\\\"COUNT\\\",1000) c=r[1] "
        "for _,k in ipairs(r[2]) do local n=redis.pcall(\\\"STRLEN\\\",k) "
        "if type(n)==\\\"number\\\" then s=s+n end end until c==\\\"0\\\" return s";
    uint64_t warm = kit_number(
        "find '%s' -type f -printf '%%s\\n' | awk '{ n += $1 } END { print n + 0 }'", c->s->warm);
    uint64_t hot = kit_number("'%s/redis' cli '%s' eval \"%s\" 0", getenv("WT_TEST_SERVERS"),
                              c->s->redis, sum);
    c->warm = warm > c->warm ? warm : c->warm;
    c->hot = hot > c->hot ? hot : c->hot;
    assert_in_range(warm, 0, WARM_MAX);
    assert_in_range(hot, 0, HOT_MAX + (64 << 10)); /* headers of values, the sentinel */
}

/* ---- a round ---- */

static void start(struct crash *c) {
    c->s->kit->pid = kit_spawn(c->s->kit, c->s->kit->log, NULL);
    kit_wait_status(c->s->kit, "ok", READY_MS);
}

static void kill_daemon(struct crash *c) {
    struct kit *k = c->s->kit;
    int status;
    usleep((useconds_t)storm_random(c->s, KILL_WITHIN_MS * 1000));
    json_t *o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
    c->moves += (uint64_t)kit_int(o, "moves.done");
    json_decref(o);
    usleep((useconds_t)storm_random(c->s, 50000));
    assert_int_equal(kill(k->pid, SIGKILL), 0);
    assert_int_equal(waitpid(k->pid, &status, 0), k->pid);
    k->pid = 0;
    assert_true(WIFSIGNALED(status)); /* it had not died by itself before */
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* So that there is something to move; and the daemon believes in copies that are gone. */
static void forget_something(const struct crash *c, uint64_t round) {
    if (round % 2 == 0)
        storm_redis(c->s, "flush", "");
    if (round % 3 == 0)
        storm_shell("rm -rf '%s/" STORM_SET "'", c->s->warm);
    if (round % 6 == 5)
        storm_shell("rm -rf '%s/state'", c->s->kit->root);
}

static void begin(struct crash *c, uint64_t rounds) {
    struct storm *s = c->s;
    s->random = storm_number("WAFERTIER_TEST_SEED", kit_now() % 1000000);
    print_message("%" PRIu64 " kills; WAFERTIER_TEST_SEED=%" PRIu64 "\n", rounds, s->random);
    storm_start(s);
    storm_write_confs(s, "1500ms");
    storm_make_data(s);
    start(c);
    storm_reader_start(&s->reader, s->loader_conf, s->plain_conf, 5);
    storm_reader_start(&c->s->second, s->loader_conf, s->plain_conf, 6);
    check_readers(c, 5);
}

static void finish(struct crash *c) {
    struct storm *s = c->s;
    start(c); /* and it works on */
    kit_until(s->kit, "/v1/stats", "moves.done", 5, READY_MS);
    check_readers(c, 10);
    storm_reader_stop(&c->s->second);
    storm_reader_stop(&s->reader);
    if (s->reader.failure[0] || c->s->second.failure[0])
        fail_msg("%s%s", s->reader.failure, c->s->second.failure);
    assert_int_equal(kit_stop(s->kit, SIGTERM, 15000), 0);
    check_copies(c);
    assert_int_equal(gc(c, "--dry-run", "^(warm|hot) "), 0); /* an orderly end leaves nothing */
}

static void killed_on_real_servers(void **state) {
    struct crash c = {.s = *state};
    uint64_t rounds = storm_number("WAFERTIER_CRASH_ROUNDS", ROUNDS);
    begin(&c, rounds);
    for (uint64_t round = 0; round < rounds; round++) {
        if (round > 0)
            start(&c);
        kill_daemon(&c);
        check_readers(&c, 2);
        check_copies(&c);
        check_gc(&c);
        check_capacity(&c);
        forget_something(&c, round);
        if (round % 20 == 19)
            print_message("%" PRIu64 " kills, %" PRIu64 " left something\n", round + 1, c.hit);
    }
    finish(&c);
    print_message("%" PRIu64 " moves had ended, %" PRIu64 " kills left %" PRIu64
                  " temporaries, all found and removed; at most %" PRIu64 " bytes on warm, %" PRIu64
                  " on hot; %llu and %llu batches, longest wait %" PRIu64 " ms\n",
                  c.moves, c.hit, c.left, c.warm, c.hot, (unsigned long long)c.s->reader.batches,
                  (unsigned long long)c.s->second.batches,
                  c.s->reader.longest_ms > c.s->second.longest_ms ? c.s->reader.longest_ms
                                                                  : c.s->second.longest_ms);
    assert_true(c.moves > rounds);
    assert_true(rounds < 20 || c.hit >= rounds / 10); /* else nothing was hit in its middle */
    c.s->well = true;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_on_real_servers, storm_setup, storm_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
