/*
 * Thirty faults, one after the other and two at a time, under a loader on three real tiers (RADOS,
 * CephFS by ceph-fuse, Redis) while a daemon moves shards between them.
 *
 * The loader delivers every sample of every epoch once, in batches that are those of a loader
 * without faults, to the byte; the daemon lives and answers; nothing in cold is lost; when the last
 * fault is over all tiers are used again, without help. Every kind of fault comes at least once.
 * The order, the damage and how long each fault lasts come from a seed, which is printed;
 * WAFERTIER_FAULT_SEED replays it, WAFERTIER_FAULTS sets their number.
 */
#include "storm.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAULTS = 30, RECOVER_MS = 45000, ANSWER_MS = 4000 };

/* ---- the tiers ---- */

static wl_stats stats(const struct storm *s) {
    wl_stats st = {.size = sizeof st};
    assert_int_equal(wl_get_stats(s->reader.real, &st), WL_OK);
    return st;
}

/* All is used (again): shards come from warm and from hot. */
static void all_tiers_serve(struct storm *s) {
    wl_stats before = stats(s), now = before;
    uint64_t end = kit_now() + RECOVER_MS;
    kit_wait_status(s->kit, "ok", RECOVER_MS);
    while (kit_now() < end && (now.tier[1].reads == before.tier[1].reads ||
                               now.tier[2].reads == before.tier[2].reads)) {
        storm_reader_advance(&s->reader, 5, RECOVER_MS);
        now = stats(s);
    }
    for (size_t t = 1; t <= 2; t++)
        if (now.tier[t].reads == before.tier[t].reads || now.tier[t].down)
            fail_msg("%s is not used after %d ms", now.tier[t].name, RECOVER_MS);
}

/* ---- the sequence ---- */

/* Every kind once, in an order of the seed, then whatever it gives. */
static void draw(struct storm *s, size_t *order, size_t n) {
    for (size_t i = 0; i < n; i++)
        order[i] = i < storm_n_faults ? i : (size_t)storm_random(s, storm_n_faults);
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)storm_random(s, i), kept = order[i - 1];
        order[i - 1] = order[k];
        order[k] = kept;
    }
}

/* The daemon lives, and answers also now. */
static void ask_daemon(struct storm *s) {
    int status;
    assert_int_equal(waitpid(s->kit->pid, &status, WNOHANG), 0);
    uint64_t began = kit_now();
    json_decref(kit_call(s->kit, "GET", "/healthz", NULL, &status));
    uint64_t took = kit_now() - began;
    if (took > s->slowest_ms)
        s->slowest_ms = took;
    if (took > ANSWER_MS)
        fail_msg("the daemon took %" PRIu64 " ms to answer", took);
}

static void end_fault(struct storm *s, const struct storm_fault **f) {
    if (*f && (*f)->end)
        (*f)->end(s, *f);
    *f = NULL;
}

/* How long a fault lasts: longer than a deadline now and then. */
static unsigned lasts(struct storm *s) {
    return 200 + (unsigned)storm_random(s, storm_random(s, 3) ? 800 : 2500);
}

static void run_sequence(struct storm *s, size_t n) {
    const struct storm_fault *active[STORM_GROUPS] = {NULL};
    size_t *order = calloc(n, sizeof *order);
    assert_non_null(order);
    draw(s, order, n);
    for (size_t i = 0; i < n; i++) {
        const struct storm_fault *f = &storm_faults[order[i]];
        end_fault(s, &active[f->group]);
        if (!active[STORM_CEPH]) /* without it cold is away, and all may stand still */
            storm_reader_advance(&s->reader, 1, RECOVER_MS);
        print_message("%2zu %s\n", i + 1, f->name);
        f->begin(s, f);
        active[f->group] = f;
        kit_sleep(lasts(s));
        ask_daemon(s);
        if (storm_random(s, 3) || f->alone) { /* else it goes on while the next one begins */
            end_fault(s, &active[f->group]);
            if (!active[STORM_CEPH])
                storm_reader_advance(&s->reader, 3, RECOVER_MS);
        }
    }
    end_fault(s, &active[STORM_CEPH]);
    end_fault(s, &active[STORM_REDIS]);
    free(order);
}

static void report(struct storm *s) {
    wl_stats st = stats(s);
    json_t *o = kit_call(s->kit, "GET", "/v1/stats", NULL, NULL);
    print_message("%llu epochs, %llu batches, longest wait %" PRIu64 " ms; %" PRIu64 " retries; "
                  "the daemon: %" PRIi64 " moves, slowest answer %" PRIu64 " ms\n",
                  (unsigned long long)s->reader.epochs, (unsigned long long)s->reader.batches,
                  s->reader.longest_ms, st.retries, kit_int(o, "moves.done"), s->slowest_ms);
    for (size_t t = 0; t < st.tiers; t++)
        print_message("%-5s %6" PRIu64 " reads, %4" PRIu64 " misses, %4" PRIu64 " failures\n",
                      st.tier[t].name, st.tier[t].reads, st.tier[t].misses, st.tier[t].failures);
    json_decref(o);
}

static void thirty_faults(void **state) {
    struct storm *s = *state;
    uint64_t seed = storm_number("WAFERTIER_FAULT_SEED", kit_now() % 1000000);
    print_message("WAFERTIER_FAULT_SEED=%" PRIu64 "\n", seed);
    s->random = seed;
    storm_start(s);
    storm_write_confs(s, "6s");
    storm_make_data(s);
    s->kit->pid = kit_spawn(s->kit, s->kit->log, NULL);
    kit_wait_status(s->kit, "ok", 20000);
    storm_reader_start(&s->reader, s->loader_conf, s->plain_conf, 5);
    all_tiers_serve(s);
    run_sequence(s, (size_t)storm_number("WAFERTIER_FAULTS", FAULTS));
    all_tiers_serve(s);
    report(s);
    storm_reader_stop(&s->reader);
    if (s->reader.failure[0])
        fail_msg("%s", s->reader.failure);
    storm_shell("'%s' verify " STORM_SET " --config '%s' --quiet >&2", WAFERTIER, s->kit->conf);
    assert_int_equal(kit_stop(s->kit, SIGTERM, 15000), 0);
    s->well = true;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(thirty_faults, storm_setup, storm_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
