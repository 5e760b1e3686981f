/*
 * SIGKILL of a loader's process, and leases: what a job reads stays while the job lives, and goes
 * when it was killed. WAFERTIER_CRASH_ROUNDS sets the number of kills, WAFERTIER_TEST_SEED the
 * points (the seed is printed).
 */
#include "tests/integration/daemon/kit.h"

#include <wafertier/loader.h>

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SHARDS = 12, SAMPLES = 40, SALT = 1, ROUNDS = 20 };

static uint64_t gc(const struct kit *k, const char *options, const char *what) {
    return kit_number(
        "timeout 60 %s gc --config %s %s >%s/gc.out 2>&1 || echo 999999; grep -c -E '%s' "
        "%s/gc.out",
        WAFERTIER, k->conf, options, k->root, what, k->root);
}

static uint64_t leases(const struct kit *k) {
    return kit_number("find %s/cold/.wafertier.leases -type f 2>/dev/null | wc -l", k->root);
}

static void until_leases(const struct kit *k, uint64_t n) {
    uint64_t end = kit_now() + 10000;
    while (leases(k) != n) {
        if (kit_now() > end)
            fail_msg("%llu leases, not %llu", (unsigned long long)leases(k), (unsigned long long)n);
        kit_sleep(10);
    }
}

static void write_conf(const struct kit *k, const char *lease) {
    FILE *f = fopen(k->conf, "we");
    assert_non_null(f);
    fprintf(f,
            "lease = %s\ntier cold { url = \"file://%s/cold\" }\n"
            "tier warm { url = \"file://%s/warm\" }\ntier hot { url = \"file://%s\" }\n",
            lease, k->root, k->root, k->hot);
    assert_int_equal(fclose(f), 0);
}

static int make(void **state) {
    int rc = kit_setup(state);
    if (rc == 0)
        write_conf(*state, "10min");
    return rc;
}

static wl_options options(const struct kit *k) {
    wl_options o = WL_OPTIONS_INIT;
    o.config = k->conf;
    o.dataset = "wafers";
    o.batch = 32;
    o.mode = WL_MODE_EVAL;
    o.rank = 0;
    o.world = 1;
    o.threads = 2;
    o.memory = 64 << 20;
    return o;
}

/* One epoch; how many samples were wrong, or -1 for an error. */
static long read_epoch(wl_loader *l, bool compare) {
    long wrong = 0, at = 0;
    wl_batch *b;
    int rc;
    uint8_t want[KIT_SIDE * KIT_SIDE];
    while ((rc = wl_next(l, NULL, 20000, &b)) == WL_OK) {
        const uint8_t *valid = wl_batch_tensor(b, "valid")->data;
        const uint8_t *image = wl_batch_tensor(b, "image")->data;
        for (uint64_t row = 0; compare && row < wl_batch_size(b); row++) {
            if (!valid[row])
                continue;
            kit_image((uint64_t)at / SAMPLES, (uint32_t)(at % SAMPLES), SALT, want);
            wrong += memcmp(image + row * sizeof want, want, sizeof want) != 0;
            at++;
        }
        wl_batch_release(b, NULL);
    }
    return rc == WL_END_OF_EPOCH && (!compare || at == SHARDS * SAMPLES) ? wrong : -1;
}

/* ---- a reader as a process of its own: this program, with a configuration as its argument ---- */

struct reader {
    pid_t pid;
    int go, said; /* our ends of the pipes to its input and from its output */
};

/* Says 'o' when it is open, and for each byte that it gets reads an epoch: 'y', or 'n'. */
static int reader_main(struct kit *k) {
    wl_options o = options(k);
    wl_loader *l;
    alarm(60);
    char c = wl_open(NULL, &o, &l) < 0 ? 'x' : 'o';
    if (write(1, &c, 1) != 1 || c == 'x')
        return 1;
    while (read(0, &c, 1) == 1) {
        c = read_epoch(l, false) == 0 ? 'y' : 'n';
        if (write(1, &c, 1) != 1)
            return 1;
    }
    wl_close(l);
    return 0;
}

static void reader_start(const struct kit *k, struct reader *r) {
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    r->pid = fork();
    assert_true(r->pid >= 0);
    if (r->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execl("/proc/self/exe", "reader", k->conf, NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    r->go = in[1];
    r->said = out[0];
}

static char reader_hear(const struct reader *r) {
    char c = '-';
    if (read(r->said, &c, 1) != 1)
        return '-';
    return c;
}

static void reader_tell(const struct reader *r) {
    assert_int_equal(write(r->go, "e", 1), 1);
}

/* SIGKILL, or 0: the end of its input. */
static void reader_end(struct reader *r, int sig) {
    int status;
    if (sig)
        kill(r->pid, sig);
    close(r->go);
    assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
    close(r->said);
    if (sig)
        assert_true(WIFSIGNALED(status));
    else
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- tests ---- */

static void killed_readers_leave_all_as_it_was(void **state) {
    struct kit *k = *state;
    uint64_t rounds = kit_setting("WAFERTIER_CRASH_ROUNDS", ROUNDS);
    uint64_t seed = kit_setting("WAFERTIER_TEST_SEED", kit_now());
    print_message("%llu kills; WAFERTIER_TEST_SEED=%llu\n", (unsigned long long)rounds,
                  (unsigned long long)seed);
    srandom((unsigned)seed);
    kit_pack(k, "wafers", SHARDS, SAMPLES, 1, SALT, 0);
    kit_number("cp -r %s/cold/wafers %s/ && echo 0", k->root, k->hot);
    uint64_t found = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        struct reader r;
        reader_start(k, &r);
        if (round % 2) {
            assert_int_equal(reader_hear(&r), 'o');
            reader_tell(&r);
        }
        if (round % 4 == 1)
            until_leases(k, 1);
        usleep((useconds_t)(random() % 30000));
        reader_end(&r, SIGKILL);
        uint64_t left = leases(k);
        found += left;
        assert_int_equal(gc(k, "--dry-run", " lease "), left);
        gc(k, "", "nothing");
        assert_int_equal(leases(k), 0);
        assert_int_equal(gc(k, "--dry-run --young 0s --grace 0s", "^0 orphans"), 1);
        assert_int_equal(kit_count_equal(k, k->hot, "wafers"), SHARDS);
    }
    assert_true(found >= rounds / 4);
    wl_options o = options(k);
    wl_loader *l;
    assert_int_equal(wl_open(NULL, &o, &l), WL_OK);
    assert_int_equal(read_epoch(l, true), 0);
    wl_close(l);
}

static void pack_with(const struct kit *k, int seed, const char *more) {
    kit_number("timeout 60 %s gen --dataset wafers --samples 400 --shard-size 64KiB --seed %d --to "
               "%s/cold --quiet %s && echo 0",
               WAFERTIER, seed, k->root, more);
}

static uint64_t shards(const struct kit *k) {
    return kit_number("find %s/cold/wafers/shards -type f | wc -l", k->root);
}

static void what_a_job_reads_stays_until_it_ends(void **state) {
    struct kit *k = *state;
    struct reader r, late;
    pack_with(k, 1, "");
    uint64_t old = shards(k);
    reader_start(k, &r);
    assert_int_equal(reader_hear(&r), 'o');
    until_leases(k, 1);
    pack_with(k, 2, "--replace");
    uint64_t both = shards(k);
    assert_true(both > old);
    assert_int_equal(gc(k, "--grace 0s --young 0s", "^0 orphans"), 1);
    reader_tell(&r);
    assert_int_equal(reader_hear(&r), 'y'); /* it has them all */
    reader_start(k, &late);
    assert_int_equal(reader_hear(&late), 'o');
    until_leases(k, 2);
    reader_end(&r, SIGKILL);
    gc(k, "", "nothing");
    assert_int_equal(shards(k), both);                                    /* the grace time */
    assert_int_equal(gc(k, "--dry-run --grace 0s", "retired "), old + 2); /* index, manifest */
    assert_int_equal(shards(k), both);
    gc(k, "--grace 0s", "nothing");
    assert_int_equal(shards(k), both - old);
    assert_int_equal(leases(k), 1);
    assert_int_equal(kit_number("ls %s/cold/wafers/retired | wc -l", k->root), 0);
    reader_tell(&late);
    assert_int_equal(reader_hear(&late), 'y');
    reader_end(&late, 0);
    assert_int_equal(leases(k), 0);
}

/* The job's generation was replaced by a program that keeps no retired manifest. */
static void a_generation_without_manifest_stays_as_well(void **state) {
    struct kit *k = *state;
    struct reader r;
    kit_pack(k, "wafers", SHARDS, SAMPLES, 1, SALT, 0);
    reader_start(k, &r);
    assert_int_equal(reader_hear(&r), 'o');
    until_leases(k, 1);
    kit_pack(k, "wafers", SHARDS, SAMPLES, 2, SALT + 1, 0);
    assert_int_equal(gc(k, "--grace 0s --young 0s", "^0 orphans"), 1);
    reader_tell(&r);
    assert_int_equal(reader_hear(&r), 'y');
    reader_end(&r, SIGKILL);
    assert_int_equal(gc(k, "--young 0s", "unnamed "), SHARDS + 1);
    assert_int_equal(shards(k), SHARDS);
}

static time_t lease_time(const struct kit *k, char key[200]) {
    char command[300];
    struct stat st;
    snprintf(command, sizeof command, "find %s/cold/.wafertier.leases -type f", k->root);
    FILE *f = popen(command, "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%199s", key), 1);
    pclose(f);
    assert_int_equal(stat(key, &st), 0);
    return st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
}

static void leases_are_renewed_and_given_back(void **state) {
    struct kit *k = *state;
    wl_options o = options(k);
    wl_loader *l;
    char key[200], again[200];
    kit_pack(k, "wafers", SHARDS, SAMPLES, 1, SALT, 0);
    write_conf(k, "600ms");
    assert_int_equal(wl_open(NULL, &o, &l), WL_OK);
    until_leases(k, 1);
    time_t first = lease_time(k, key), last = first;
    for (int i = 0; i < 100 && last < first + 500; i++) {
        kit_sleep(50);
        last = lease_time(k, again);
    }
    assert_true(last >= first + 500);
    assert_string_equal(key, again);
    uint64_t began = kit_now();
    wl_close(l);
    assert_true(kit_now() - began < 1000);
    assert_int_equal(leases(k), 0);
    write_conf(k, "0s");
    assert_int_equal(wl_open(NULL, &o, &l), WL_OK);
    assert_int_equal(read_epoch(l, true), 0);
    assert_int_equal(leases(k), 0);
    wl_close(l);
}

int main(int argc, char **argv) {
    if (argc == 2) {
        struct kit k = {0};
        snprintf(k.conf, sizeof k.conf, "%s", argv[1]);
        return reader_main(&k);
    }
#define T(name) cmocka_unit_test_setup_teardown(name, make, kit_teardown)
    const struct CMUnitTest tests[] = {
        T(killed_readers_leave_all_as_it_was),
        T(what_a_job_reads_stays_until_it_ends),
        T(a_generation_without_manifest_stays_as_well),
        T(leases_are_renewed_and_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
