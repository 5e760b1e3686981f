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

/* ---- tools ---- */

/* splitmix64 */
uint64_t storm_random(struct storm *s, uint64_t below) {
    uint64_t z = s->random += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (z ^ (z >> 31)) % below;
}

void storm_shell(const char *format, ...) {
    char script[2000];
    va_list args;
    va_start(args, format);
    vsnprintf(script, sizeof script, format, args);
    va_end(args);
    FILE *f = popen("timeout 60 bash -e -s >/dev/null", "we");
    assert_non_null(f);
    fputs(script, f);
    int rc = pclose(f);
    if (rc != 0)
        fail_msg("status %d of: %s", rc, script);
}

void storm_redis(const struct storm *s, const char *verb, const char *args) {
    storm_shell("'%s/redis' %s '%s' %s", getenv("WT_TEST_SERVERS"), verb, s->redis, args);
}

static uint64_t number_from(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* ---- set-up ---- */

static unsigned redis_port(const struct storm *s) {
    char path[200];
    unsigned port = 0;
    snprintf(path, sizeof path, "%s/port0", s->redis);
    FILE *f = fopen(path, "re");
    if (!f || fscanf(f, "%u", &port) != 1)
        fail_msg("no port in %s", path);
    fclose(f);
    return port;
}

static void start_servers(struct storm *s) {
    const char *folder = getenv("WT_TEST_CEPH"), *mount = getenv("WT_TEST_CEPHFS");
    if (!folder || !mount || !getenv("WT_TEST_SERVERS"))
        fail_msg("WT_TEST_CEPH, WT_TEST_CEPHFS and WT_TEST_SERVERS are not set");
    snprintf(s->ceph.conf, sizeof s->ceph.conf, "%s/ceph.conf", folder);
    snprintf(s->ceph.pool, sizeof s->ceph.pool, "storm-%d", (int)getpid());
    snprintf(s->mount_dir, sizeof s->mount_dir, "%s", mount);
    snprintf(s->warm, sizeof s->warm, "%s/storm-%d", mount, (int)getpid());
    snprintf(s->plain, sizeof s->plain, "%s/cold", s->kit->root);
    snprintf(s->redis, sizeof s->redis, "%s/redis", s->kit->root);
    fault_daemon("up", "");
    fault_daemon("up", "mgr.x"); /* without its figures no quota is reached */
    fault_connect(&s->ceph);
    storm_shell("mkdir -p '%s'", s->warm);
    storm_redis(s, "start", "acl");
    storm_redis(s, "cli", "config set maxmemory 256mb");
    s->proxy = proxy_start((uint16_t)redis_port(s));
    assert_non_null(s->proxy);
}

/* Short deadlines and pauses, so that much happens in little time. For the loader cold is
 * slow, as it is where tiers are worth while: on this one machine it would leave warm aside. A
 * quarter of the data set fits in hot, half of it in warm. */
static void write_tiers(const struct storm *s, FILE *f, const char *cold_filter) {
    fprintf(f,
            "control = \"unix:%s\"\n"
            "tier cold { url = \"rados://%s?conf=%s\" timeout = 1500ms filter = \"%s\" }\n"
            "tier warm { url = \"file://%s\" timeout = 1500ms capacity = \"20MiB\" }\n"
            "tier hot { url = \"redis://daemon:daemon-secret@127.0.0.1:%u\" timeout = 1500ms "
            "capacity = \"10MiB\" }\n",
            s->kit->sock, s->ceph.pool, s->ceph.conf, cold_filter, s->warm, proxy_port(s->proxy));
}

static void write_confs(struct storm *s) {
    FILE *f = fopen(s->kit->conf, "we");
    assert_non_null(f);
    fprintf(f,
            "state_folder = \"%s/state\"\ntick = 200ms\nreport_interval = 100ms\n"
            "lock_ttl = 6s\nmover { backoff = 200ms backoff_max = 2s }\n",
            s->kit->root);
    write_tiers(s, f, "");
    assert_int_equal(fclose(f), 0);
    snprintf(s->loader_conf, sizeof s->loader_conf, "%s/loader.conf", s->kit->root);
    f = fopen(s->loader_conf, "we");
    assert_non_null(f);
    fprintf(f, "lease = 6s\n");
    write_tiers(s, f, "delay read=40ms");
    assert_int_equal(fclose(f), 0);
    snprintf(s->plain_conf, sizeof s->plain_conf, "%s/plain.conf", s->kit->root);
    f = fopen(s->plain_conf, "we");
    assert_non_null(f);
    fprintf(f, "control = \"\"\ntier cold { url = \"file://%s\" }\n", s->plain);
    assert_int_equal(fclose(f), 0);
}

static void make_data(const struct storm *s) {
    storm_shell("for to in --config='%s' --to='%s'; do\n"
                "%s gen --dataset " STORM_SET " $to --kind sem --shape 128x128 --samples 2560 "
                "--shard-size 1280KiB --seed 1 --quiet 2>/dev/null\ndone",
                s->kit->conf, s->plain, WAFERTIER);
}

static int setup(void **state) {
    struct storm *s = calloc(1, sizeof *s);
    assert_non_null(s);
    assert_int_equal(kit_setup((void **)&s->kit), 0);
    *state = s;
    return 0;
}

/* Ours, before anything that may fail: none is left behind. */
static void end_processes(struct storm *s) {
    char command[300];
    if (s->fuse_stopped > 0) /* before anything that starts a program */
        kill(s->fuse_stopped, SIGCONT);
    if (s->kit->pid > 0) {
        kill(s->kit->pid, SIGKILL);
        waitpid(s->kit->pid, NULL, 0);
        s->kit->pid = 0;
    }
    snprintf(command, sizeof command, "timeout 60 '%s/redis' wipe '%s'", getenv("WT_TEST_SERVERS"),
             s->redis);
    if (s->redis[0] && system(command) != 0)
        print_message("failed: %s\n", command);
}

/* Also after a failure in the middle of a fault. */
static void calm_down(struct storm *s) {
    storm_shell("for p in osd.0 mon.a mds.a; do pid=$('%s/ceph' pid '%s' $p 2>/dev/null) && kill "
                "-CONT $pid; done; true",
                getenv("WT_TEST_SERVERS"), getenv("WT_TEST_CEPH"));
    fault_daemon("up", "");
    storm_shell("mountpoint -q '%s' || { '%s/cephfs' umount '%s'; '%s/cephfs' mount '%s' '%s'; }",
                s->mount_dir, getenv("WT_TEST_SERVERS"), s->mount_dir, getenv("WT_TEST_SERVERS"),
                getenv("WT_TEST_CEPH"), s->mount_dir);
    for (size_t i = 0; i < storm_n_faults; i++)
        if (strstr(storm_faults[i].name, "quota"))
            storm_faults[i].end(s, &storm_faults[i]);
}

static int teardown(void **state) {
    struct storm *s = *state;
    end_processes(s);
    calm_down(s);
    if (!s->well)
        storm_shell("tail -n 40 '%s' >&2; true", s->kit->log);
    storm_reader_stop(&s->reader);
    proxy_stop(s->proxy);
    kit_teardown((void **)&s->kit);
    storm_shell("rm -rf '%s'", s->warm);
    fault_mon(&s->ceph, NULL,
              "{\"prefix\":\"osd pool delete\",\"pool\":\"%s\",\"pool2\":\"%s\","
              "\"yes_i_really_really_mean_it\":true}",
              s->ceph.pool, s->ceph.pool);
    fault_disconnect(&s->ceph);
    free(s->saved);
    free(s);
    return 0;
}

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
    uint64_t seed = number_from("WAFERTIER_FAULT_SEED", kit_now() % 1000000);
    print_message("WAFERTIER_FAULT_SEED=%" PRIu64 "\n", seed);
    s->random = seed;
    start_servers(s);
    write_confs(s);
    make_data(s);
    s->kit->pid = kit_spawn(s->kit, s->kit->log, NULL);
    kit_wait_status(s->kit, "ok", 20000);
    storm_reader_start(&s->reader, s->loader_conf, s->plain_conf);
    all_tiers_serve(s);
    run_sequence(s, (size_t)number_from("WAFERTIER_FAULTS", FAULTS));
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
        cmocka_unit_test_setup_teardown(thirty_faults, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
