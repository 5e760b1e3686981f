/* The real wafertierd when its tiers change: other ones after a restart, one too small for a shard,
 * all of them full while a job reads. */
#include "kit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SHARDS = 8, SAMPLES = 20 };

static unsigned log_count(const struct kit *k, const char *text) {
    char line[2048];
    unsigned n = 0;
    FILE *f = fopen(k->log, "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        n += strstr(line, text) != NULL;
    fclose(f);
    return n;
}

static int64_t stat_of(struct kit *k, const char *where) {
    json_t *o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
    int64_t n = kit_int(o, where);
    json_decref(o);
    return n;
}

/* ---- another list of tiers after a restart ---- */

struct place {
    const char *name, *folder, *more; /* more: further options of the tier */
};

static void write_tiers(struct kit *k, const struct place *tier, size_t n) {
    FILE *f = fopen(k->conf, "we");
    assert_non_null(f);
    fprintf(f,
            "state_folder = \"%s/state\"\ncontrol = \"unix:%s\"\ntick = 100ms\nreport_interval = "
            "50ms\nsnapshot_interval = 1h\ntier cold { url = \"file://%s/cold\" }\n",
            k->root, k->sock, k->root);
    for (size_t i = 0; i < n; i++)
        fprintf(f, "tier %s { url = \"file://%s/%s\" %s }\n", tier[i].name, k->root, tier[i].folder,
                tier[i].more);
    assert_int_equal(fclose(f), 0);
}

static void start_with(struct kit *k, const struct place *tier, size_t n) {
    write_tiers(k, tier, n);
    k->pid = kit_spawn(k, k->log, NULL);
    for (uint64_t end = kit_now() + 10000;; kit_sleep(10)) {
        int fd = kit_connect(k);
        if (fd >= 0)
            close(fd);
        if (fd >= 0)
            break;
        assert_true(kit_now() < end);
    }
    kit_until(k, "/v1/stats", "shards", SHARDS, 10000);
    json_t *o = kit_call(k, "GET", "/v1/tiers", NULL, NULL);
    json_t *list = json_object_get(o, "tiers");
    assert_int_equal(json_array_size(list), n + 1);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(list, i + 1), "name")),
                            tier[i].name);
    json_decref(o);
}

static void stop(struct kit *k) {
    assert_int_equal(kit_stop(k, SIGTERM, 6000), 0);
    k->pid = 0;
}

static void warm(struct kit *k, const char *tier) {
    char body[96];
    snprintf(body, sizeof body, "{\"dataset\":\"wafers\",\"tier\":\"%s\"}", tier);
    json_decref(kit_call(k, "POST", "/v1/warm", body, NULL));
}

/* No listing: what the daemon knows of the tier then, it knows from its state. */
#define BLIND "filter = \"fault list=UNSUPPORTED\""

static void the_tiers_change_between_runs(void **state) {
    struct kit *k = *state;
    kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    kit_shell("mkdir %s/hot %s/mid", k->root, k->root);
    const struct place first[] = {{"warm", "warm", ""}, {"hot", "hot", ""}};
    start_with(k, first, 2);
    warm(k, "warm");
    warm(k, "hot");
    kit_until(k, "/v1/stats", "tiers.1.shards", SHARDS, 10000);
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS, 10000);
    json_decref(kit_call(k, "POST", "/v1/pin", "{\"dataset\":\"wafers\",\"tier\":\"hot\"}", NULL));
    json_decref(kit_call(k, "POST", "/v1/pin", "{\"dataset\":\"wafers\",\"tier\":\"warm\"}", NULL));
    stop(k);

    /* one is gone: the other keeps its copies and its pin, under another number */
    const struct place less[] = {{"hot", "hot", BLIND}};
    start_with(k, less, 1);
    kit_until(k, "/v1/stats", "tiers.1.shards", SHARDS, 10000);
    kit_until(k, "/v1/stats", "reconcile.confirmed", SHARDS, 10000);
    json_t *o = kit_call(k, "GET", "/v1/pins", NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(o, "pins")), 1);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(json_object_get(o, "pins"), 0), "tier")),
        "hot");
    json_decref(o);
    stop(k);

    /* it is back, above the other one: found by looking, while the state of hot is kept */
    const struct place turned[] = {{"hot", "hot", BLIND}, {"warm", "warm", ""}};
    start_with(k, turned, 2);
    kit_until(k, "/v1/stats", "tiers.1.shards", SHARDS, 10000);
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS, 10000);
    assert_int_equal(stat_of(k, "reconcile.found"), SHARDS);
    stop(k);

    /* another name is another tier, though it has the same place; one more between them */
    const struct place renamed[] = {
        {"warm", "warm", BLIND}, {"mid", "mid", BLIND}, {"fast", "hot", BLIND}};
    start_with(k, renamed, 3);
    kit_until(k, "/v1/stats", "tiers.1.shards", SHARDS, 10000);
    kit_until(k, "/v1/stats", "reconcile.confirmed", SHARDS, 10000);
    kit_sleep(500);
    assert_int_equal(stat_of(k, "tiers.2.shards"), 0);
    assert_int_equal(stat_of(k, "tiers.3.shards"), 0);
    stop(k);
    const struct place seeing[] = {
        {"warm", "warm", BLIND}, {"mid", "mid", ""}, {"fast", "hot", ""}};
    start_with(k, seeing, 3);
    kit_until(k, "/v1/stats", "tiers.3.shards", SHARDS, 10000);
    assert_int_equal(stat_of(k, "tiers.1.shards"), SHARDS);
    assert_int_equal(stat_of(k, "tiers.2.shards"), 0);
    assert_int_equal(stat_of(k, "moves.bytes"), 0); /* nothing was copied for all of that */
    stop(k);
    assert_false(kit_log_has(k->log, "damaged"));
}

/* ---- less than a shard ---- */

static void reload_with(struct kit *k, const char *edit) {
    kit_shell("sed -i '%s' %s", edit, k->conf);
    json_decref(kit_call(k, "POST", "/v1/reload", "{}", NULL));
}

static void a_tier_below_one_shard_is_left_alone(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    char room[32], edit[128], id[64];
    snprintf(room, sizeof room, "%llu", (unsigned long long)(size / 2));
    k->hot_capacity = room;
    snprintf(k->extra, sizeof k->extra, "policy { min_stay = 0s }");
    kit_start(k);
    snprintf(id, sizeof id, "%s", kit_register(k, "wafers"));
    json_decref(kit_report(k, id, 0, 0, SHARDS, "cold", size));
    kit_until(k, "/v1/stats", "tiers.1.shards", SHARDS, 10000); /* the next one down has them */
    kit_sleep(500);
    int64_t passes = stat_of(k, "policy_passes"), moves = stat_of(k, "moves.done");
    kit_sleep(2000); /* twenty ticks: nothing turns round and round */
    assert_in_range(stat_of(k, "policy_passes"), passes, passes + 25);
    assert_int_equal(stat_of(k, "moves.done"), moves);
    assert_int_equal(stat_of(k, "moves.failed") + stat_of(k, "moves.refused"), 0);
    assert_int_equal(kit_count(k->hot, "wafers"), 0);
    assert_int_equal(log_count(k, "which is less than a shard"), 1);
    int status;
    json_t *o =
        kit_call(k, "POST", "/v1/warm", "{\"dataset\":\"wafers\",\"tier\":\"hot\"}", &status);
    assert_int_equal(status, 507);
    json_decref(o);

    /* enough for all, then again for none: it fills and it empties, and says so once more */
    snprintf(edit, sizeof edit, "s|\"%s\"|\"64MiB\"|", room);
    reload_with(k, edit);
    json_decref(kit_report(k, id, 1, 0, SHARDS, "warm", size));
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS, 10000);
    kit_sleep(500); /* a tick has seen it */
    snprintf(edit, sizeof edit, "s|\"64MiB\"|\"%s\"|", room);
    reload_with(k, edit);
    for (uint64_t end = kit_now() + 10000; kit_count(k->hot, "wafers"); kit_sleep(20))
        assert_true(kit_now() < end);
    kit_sleep(500);
    assert_int_equal(log_count(k, "which is less than a shard"), 2);
    json_decref(kit_report(k, id, 2, 0, SHARDS, "cold", size)); /* and is served all the same */
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
    k->pid = 0;
}

/* ---- all of them full ---- */

/* Only this process and its children see what is mounted, and it goes with them. */
static bool mount_small(struct kit *k) {
    char folder[96];
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return false;
    const char *const names[] = {"warm", "hot"};
    kit_shell("mkdir -p %s/hot", k->root);
    for (size_t i = 0; i < 2; i++) {
        snprintf(folder, sizeof folder, "%s/%s", k->root, names[i]);
        if (mount("tmpfs", folder, "tmpfs", 0, "size=4m,mode=0755") < 0)
            return false;
        kit_shell(
            "dd if=/dev/zero of=%s/stranger bs=4096 status=none 2>&- || true; truncate -s -8192 "
            "%s/stranger",
            folder, folder);
    }
    return true;
}

/* Reads all of it `epochs` times; until it ends by itself. */
static void read_all(struct kit *k, const char *epochs, unsigned ms) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char out[96];
        snprintf(out, sizeof out, "%s/job", k->root);
        int fd = open(out, O_WRONLY | O_CREAT | O_APPEND, 0644);
        dup2(fd, 1);
        dup2(fd, 2);
        execl(PACED, "paced", k->conf, "wafers", "1", epochs, "8", "5", (char *)NULL);
        _exit(127);
    }
    int status = kit_wait_exit(pid, ms);
    if (status != 0)
        kit_shell("cat %s/job; echo; echo 'the job ended with %d'; false", k->root, status);
}

/* By hand: others' bytes cannot be pushed out, so it gives up, and says why. */
static void warm_fails_for_room(struct kit *k) {
    const char *body = "{\"dataset\":\"wafers\",\"tier\":\"hot\",\"patience_s\":1}";
    char path[64];
    json_t *o = kit_call(k, "POST", "/v1/warm", body, NULL);
    snprintf(path, sizeof path, "/v1/warm/%s", json_string_value(json_object_get(o, "id")));
    json_decref(o);
    for (uint64_t end = kit_now() + 10000;; kit_sleep(50)) {
        o = kit_call(k, "GET", path, NULL, NULL);
        if (strcmp(json_string_value(json_object_get(o, "state")), "running") != 0)
            break;
        json_decref(o);
        assert_true(kit_now() < end);
    }
    assert_string_equal(json_string_value(json_object_get(o, "state")), "failed");
    assert_int_equal(kit_int(o, "shards.done"), 0);
    json_t *why = json_array_get(json_object_get(o, "reasons"), 0);
    if (strcmp(json_string_value(json_object_get(why, "code")), "FULL") != 0)
        fail_msg("%s", json_dumps(o, 0));
    json_decref(o);
}

static void every_tier_is_full(void **state) {
    struct kit *k = *state;
    if (geteuid() != 0 || !mount_small(k)) {
        print_message("SKIPPED: small file systems cannot be mounted here: %s\n", strerror(errno));
        skip();
    }
    kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    const struct place both[] = {{"warm", "warm", ""}, {"hot", "hot", ""}};
    start_with(k, both, 2);
    read_all(k, "3", 20000); /* from cold, and nothing waits */
    kit_shell("grep -q 'epoch 2 cold [1-9]' %s/job", k->root);
    assert_int_equal(stat_of(k, "tiers.1.shards") + stat_of(k, "tiers.2.shards"), 0);
    assert_true(stat_of(k, "reads.misses") > 0 && stat_of(k, "reads.hits") == 0);
    warm_fails_for_room(k);
    kit_shell("rm %s/hot/stranger", k->root);
    read_all(k, "2", 20000);
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS, 40000); /* as soon as it is asked again */
    kit_shell("rm %s/job", k->root);
    read_all(k, "2", 20000);
    kit_shell("grep -q 'epoch 1 cold 0 ' %s/job", k->root);
    stop(k);
}

/* Its folders cannot be removed before. */
static int unmount_and_teardown(void **state) {
    struct kit *k = *state;
    char folder[96];
    const char *const names[] = {"warm", "hot"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(folder, sizeof folder, "%s/%s", k->root, names[i]);
        umount2(folder, MNT_DETACH);
    }
    return kit_teardown(state);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        T(the_tiers_change_between_runs),
        T(a_tier_below_one_shard_is_left_alone),
        /* last: from then on it is in a mount namespace of its own */
        cmocka_unit_test_setup_teardown(every_tier_is_full, kit_setup, unmount_and_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
