/*
 * The servers, configurations and data of the storm, and its end: nothing that was begun is left,
 * whatever the test came to.
 */
#include "storm.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

uint64_t storm_number(const char *name, uint64_t otherwise) {
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

void storm_start(struct storm *s) {
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

void storm_write_confs(struct storm *s, const char *lock_ttl) {
    FILE *f = fopen(s->kit->conf, "we");
    assert_non_null(f);
    fprintf(f,
            "state_folder = \"%s/state\"\ntick = 200ms\nreport_interval = 100ms\n"
            "lock_ttl = %s\nmover { backoff = 200ms backoff_max = 2s }\n",
            s->kit->root, lock_ttl);
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

void storm_make_data(const struct storm *s) {
    storm_shell("for to in --config='%s' --to='%s'; do\n"
                "%s gen --dataset " STORM_SET " $to --kind sem --shape 128x128 --samples 2560 "
                "--shard-size 1280KiB --seed 1 --quiet 2>/dev/null\ndone",
                s->kit->conf, s->plain, WAFERTIER);
}

int storm_setup(void **state) {
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

int storm_teardown(void **state) {
    struct storm *s = *state;
    end_processes(s);
    calm_down(s);
    if (!s->well)
        storm_shell("tail -n 40 '%s' >&2; true", s->kit->log);
    storm_reader_stop(&s->reader);
    storm_reader_stop(&s->second);
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
