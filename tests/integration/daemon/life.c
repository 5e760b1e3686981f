/* The real wafertierd on file: tiers: shards that are read arrive in hot, bit-equal; state
 * survives; it reloads, stands by and stops. */
#include "kit.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { SHARDS = 24, SAMPLES = 40 };

static void read_shards_become_hot(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    kit_start(k);
    char id[64];
    snprintf(id, sizeof id, "%s", kit_register(k, "wafers"));
    json_t *o = kit_report(k, id, 0, 0, SHARDS / 2, "cold", size);
    assert_int_equal(kit_int(o, "residency.0.0"), 0);
    assert_int_equal(kit_int(o, "residency.0.1"), 1);
    json_decref(o);
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS / 2, 10000);
    assert_int_equal(kit_count_equal(k, k->hot, "wafers"), SHARDS / 2);
    o = kit_report(k, id, 1, 0, 3, "hot", size);
    assert_int_equal(kit_int(o, "residency.2.1"), 5);
    json_decref(o);

    o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
    assert_int_equal(kit_int(o, "reads.total"), SHARDS + 6);
    assert_int_equal(kit_int(o, "reads.hits"), 6);
    assert_int_equal(kit_int(o, "reads.misses"), SHARDS);
    assert_int_equal(kit_int(o, "reads.bytes"), (int64_t)(size * (SHARDS / 2 + 3)));
    assert_int_equal(kit_int(o, "tiers.2.reported.reads"), 6);
    assert_int_equal(kit_int(o, "tiers.0.reported.bytes"), (int64_t)(size * (SHARDS / 2)));
    assert_int_equal(kit_int(o, "tiers.0.shards"), SHARDS);
    assert_int_equal(kit_int(o, "tiers.2.used"), (int64_t)(size * (SHARDS / 2)));
    assert_int_equal(kit_int(o, "moves.done"), SHARDS / 2);
    assert_int_equal(kit_int(o, "moves.failed"), 0);
    assert_int_equal(kit_int(o, "jobs"), 1);
    json_decref(o);

    o = kit_call(k, "GET", "/v1/jobs", NULL, NULL);
    assert_int_equal(kit_int(o, "jobs.0.epoch"), 1);
    assert_int_equal(kit_int(o, "jobs.0.hits"), 6);
    json_decref(o);
    o = kit_call(k, "GET", "/v1/datasets", NULL, NULL);
    assert_int_equal(kit_int(o, "datasets.0.resident.hot"), SHARDS / 2);
    json_decref(o);
    char path[96];
    snprintf(path, sizeof path, "/v1/jobs/%s", id);
    json_decref(kit_call(k, "DELETE", path, NULL, NULL));
    int status;
    json_decref(kit_call(k, "DELETE", path, NULL, &status));
    assert_int_equal(status, 404);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
    assert_int_not_equal(access(k->sock, F_OK), 0);
}

static void a_small_hot_tier_overflows_and_keeps_its_set(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    char hot[32], warm[32];
    snprintf(hot, sizeof hot, "%llu", (unsigned long long)(size * 6));
    snprintf(warm, sizeof warm, "%llu", (unsigned long long)(size * 8));
    k->hot_capacity = hot;
    k->warm_capacity = warm;
    snprintf(k->extra, sizeof k->extra, "policy { min_stay = 0s  high = 100%%  low = 95%% }");
    kit_start(k);
    char id[64];
    snprintf(id, sizeof id, "%s", kit_register(k, "wafers"));
    json_decref(kit_report(k, id, 0, 0, SHARDS, "cold", size));
    kit_until(k, "/v1/stats", "tiers.2.shards", 6, 10000);
    kit_until(k, "/v1/stats", "tiers.1.shards", 8, 10000);
    json_t *o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
    int64_t moved = kit_int(o, "moves.done");
    json_decref(o);
    for (unsigned epoch = 1; epoch < 5;
         epoch++) { /* a loop larger than the tiers: nothing may churn */
        for (uint64_t s = 0; s < SHARDS; s += 6) {
            json_decref(kit_report(k, id, epoch, (s * 7 + epoch * 6) % SHARDS, 6, "cold", size));
            kit_sleep(70);
        }
    }
    kit_sleep(300);
    o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
    assert_int_equal(kit_int(o, "moves.done"), moved);
    assert_int_equal(kit_int(o, "tiers.2.shards"), 6);
    assert_int_equal(kit_int(o, "tiers.1.shards"), 8);
    json_decref(o);
    assert_int_equal(kit_count_equal(k, k->hot, "wafers"), 6);
    for (unsigned i = 0; i < 8; i++) /* one shard becomes much hotter: it displaces another */
        json_decref(kit_report(k, id, 5, SHARDS - 1, 1, "cold", size));
    kit_until(k, "/v1/stats", "moves.done", moved + 2, 10000);
    kit_sleep(300);
    assert_int_equal(kit_count(k->hot, "wafers"), 6);
    assert_int_equal(kit_stop(k, SIGINT, 5000), 0);

    kit_start(k); /* full tiers stay as they are over a restart */
    kit_until(k, "/v1/stats", "reconcile.confirmed", 14, 5000);
    kit_sleep(500);
    o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
    assert_int_equal(kit_int(o, "moves.done"), 0);
    assert_int_equal(kit_int(o, "tiers.2.shards"), 6);
    assert_int_equal(kit_int(o, "tiers.1.shards"), 8);
    json_decref(o);
}

static void state_survives(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    kit_start(k);
    json_decref(kit_report(k, kit_register(k, "wafers"), 0, 0, 10, "cold", size));
    kit_until(k, "/v1/stats", "tiers.2.shards", 10, 10000);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
    kit_start(k);
    kit_until(k, "/v1/stats", "tiers.2.shards", 10, 5000);
    kit_until(k, "/v1/stats", "reconcile.confirmed", 10, 5000);

    /* killed: the journal alone knows of the next moves */
    char id[64];
    snprintf(id, sizeof id, "%s", kit_register(k, "wafers"));
    json_decref(kit_report(k, id, 0, 10, 5, "cold", size));
    kit_until(k, "/v1/stats", "tiers.2.shards", 15, 10000);
    assert_int_equal(kit_stop(k, SIGKILL, 5000), 256 + SIGKILL);
    char command[256];
    snprintf(command, sizeof command,
             "cd %s/wafers/shards && rm -f $(find . -type f | sort | head -2)", k->hot);
    assert_int_equal(system(command), 0);
    kit_start(k); /* the socket that the killed one left is replaced */
    kit_until(k, "/v1/stats", "reconcile.lost", 2, 5000);
    kit_until(k, "/v1/stats", "reconcile.confirmed", 13, 5000);
    json_t *o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
    assert_int_equal(kit_int(o, "reconcile.found"), 0);
    json_decref(o);
    kit_until(k, "/v1/stats", "tiers.2.shards", 15, 5000); /* still hot: the lost ones come back */
    assert_int_equal(kit_count_equal(k, k->hot, "wafers"), 15);
    int status;
    char path[96];
    snprintf(path, sizeof path, "/v1/jobs/%s/progress", id);
    json_decref(kit_call(k, "POST", path, "{\"epoch\":0,\"step\":1}", &status));
    assert_int_equal(status, 404); /* jobs do not survive: they register again */

    /* without state the copies are looked for */
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
    snprintf(command, sizeof command, "rm -r %s/state", k->root);
    assert_int_equal(system(command), 0);
    kit_start(k);
    kit_until(k, "/v1/stats", "reconcile.found", 15, 5000);

    /* a damaged snapshot is set aside, the daemon goes on */
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
    snprintf(command, sizeof command,
             "printf x | dd of=%s/state/snapshot bs=1 seek=600 conv=notrunc status=none", k->root);
    assert_int_equal(system(command), 0);
    kit_start(k);
    kit_until(k, "/v1/stats", "reconcile.found", 15, 5000);
    assert_true(kit_log_has(k->log, "set aside as snapshot.damaged-1"));
}

static void reload(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 10);
    kit_start(k);
    char id[64];
    snprintf(id, sizeof id, "%s", kit_register(k, "wafers"));
    json_decref(kit_report(k, id, 0, 0, SHARDS, "cold", size));
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS, 10000);
    snprintf(k->extra, sizeof k->extra, "policy { half_life = 9000s }");
    kit_write_conf(k);
    /* a new generation: the first ten shards are the same objects */
    kit_pack(k, "wafers", SHARDS + 2, SAMPLES, 2, 5, 10);
    kill(k->pid, SIGHUP);
    kit_until(k, "/v1/datasets", "datasets.1.generation", 2, 5000);
    json_t *o = kit_call(k, "GET", "/v1/datasets", NULL, NULL);
    assert_int_equal(kit_int(o, "datasets.1.resident.hot"), 10);
    assert_int_equal(kit_int(o, "datasets.0.resident.hot"),
                     SHARDS - 10); /* the job still reads it */
    json_decref(o);
    o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
    assert_true(json_number_value(json_object_get(o, "half_life_s")) > 8999);
    json_decref(o);
    o = kit_report(k, id, 0, 3, 1, "hot", size);
    assert_int_equal(kit_int(o, "residency.0.1"), 5);
    json_decref(o);
    char path[96];
    snprintf(path, sizeof path, "/v1/jobs/%s", id);
    json_decref(kit_call(k, "DELETE", path, NULL,
                         NULL)); /* the retired generation leaves the tiers and the catalog */
    kit_until(k, "/v1/datasets", "datasets.0.generation", 2, 10000);
    assert_int_equal(kit_count(k->hot, "wafers"), 10);
    assert_int_equal(kit_count(k->root, "cold/wafers/../wafers"), 2 * SHARDS + 2 - 10);

    snprintf(k->extra, sizeof k->extra, "lock_ttl = 77s policy { half_life = 1h }");
    kit_write_conf(k);
    kill(k->pid, SIGHUP);
    for (int i = 0; i < 100 && !kit_log_has(k->log, "lock_ttl"); i++)
        kit_sleep(20);
    assert_true(kit_log_has(k->log, "nothing was reloaded"));
    o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
    assert_true(json_number_value(json_object_get(o, "half_life_s")) > 8999);
    json_decref(o);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

static void a_second_daemon_stands_by(void **state) {
    struct kit *k = *state;
    kit_pack(k, "wafers", 3, SAMPLES, 1, 1, 0);
    snprintf(k->extra, sizeof k->extra, "lock_ttl = 600ms");
    kit_start(k);
    struct kit second = *k;
    char log[128];
    snprintf(second.sock, sizeof second.sock, "%s/second.sock", k->root);
    snprintf(second.conf, sizeof second.conf, "%s/second.conf", k->root);
    snprintf(log, sizeof log, "%s/log2", k->root);
    kit_write_conf(&second);
    second.pid = kit_spawn(&second, log, NULL);
    kit_wait_status(&second, "standby", 5000);
    kit_sleep(700);
    kit_wait_status(&second, "standby", 100);
    kit_wait_status(k, "ok", 100);
    char holder[32];
    snprintf(holder, sizeof holder, ":%d:", (int)k->pid);
    json_t *o = kit_call(&second, "GET", "/healthz", NULL, NULL);
    assert_non_null(strstr(json_string_value(json_object_get(o, "standby_reason")), holder));
    json_decref(o);
    int status;
    o = kit_call(&second, "POST", "/v1/datasets", "{\"name\":\"wafers\"}", &status);
    assert_int_equal(status, 503);
    assert_string_equal(json_string_value(json_object_get(o, "code")), "LOCKED");
    json_decref(o);
    json_decref(kit_call(&second, "POST", "/v1/pin", "{\"dataset\":\"wafers\"}", &status));
    assert_int_equal(status, 503);
    o = kit_call(&second, "GET", "/v1/pins", NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(o, "pins")), 0);
    json_decref(o);
    json_decref(kit_call(k, "POST", "/v1/pin", "{\"dataset\":\"wafers\"}", NULL));
    assert_int_equal(kit_stop(k, SIGKILL, 5000), 256 + SIGKILL);
    kit_wait_status(&second, "ok", 5000); /* takes over, the pins too */
    kit_until(&second, "/v1/pins", "pins.0.resident", 3, 10000);
    assert_int_equal(kit_stop(&second, SIGTERM, 5000), 0);
}

/* A second daemon with a folder of its own knows what was decided at the first one. */
static void pins_and_quotas_follow_the_lock(void **state) {
    struct kit *k = *state;
    kit_pack(k, "wafers", 3, SAMPLES, 1, 1, 0);
    snprintf(k->extra, sizeof k->extra, "lock_ttl = 600ms");
    kit_start(k);
    struct kit second = *k;
    char log[128], command[400];
    snprintf(second.sock, sizeof second.sock, "%s/second.sock", k->root);
    snprintf(second.conf, sizeof second.conf, "%s/second.conf", k->root);
    snprintf(log, sizeof log, "%s/log2", k->root);
    kit_write_conf(&second);
    snprintf(command, sizeof command, "sed -i 's#/state\"#/state2\"#' %s && grep -q state2 %s",
             second.conf, second.conf);
    assert_int_equal(system(command), 0);
    json_decref(kit_call(k, "POST", "/v1/pin", "{\"dataset\":\"wafers\",\"tier\":\"warm\"}", NULL));
    json_decref(kit_call(k, "POST", "/v1/quota", "{\"dataset\":\"other\",\"bytes\":7}", NULL));
    second.pid = kit_spawn(&second, log, NULL);
    kit_wait_status(&second, "standby", 5000);
    json_decref(kit_call(k, "POST", "/v1/pin", "{\"dataset\":\"wafers\",\"tier\":\"hot\"}", NULL));
    assert_int_equal(kit_stop(k, SIGKILL, 5000), 256 + SIGKILL);
    kit_wait_status(&second, "ok", 5000);
    json_t *o = kit_call(&second, "GET", "/v1/pins", NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(o, "pins")), 2);
    json_decref(o);
    o = kit_call(&second, "GET", "/v1/quotas", NULL, NULL);
    assert_int_equal(kit_int(o, "quotas.0.bytes"), 7);
    json_decref(o);
    /* And back: what was taken away there is not there any more for the first one, whose own file
     * still has it. */
    json_decref(
        kit_call(&second, "POST", "/v1/unpin", "{\"dataset\":\"wafers\",\"tier\":\"hot\"}", NULL));
    assert_int_equal(kit_stop(&second, SIGTERM, 5000), 0);
    kit_start(k);
    o = kit_call(k, "GET", "/v1/pins", NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(o, "pins")), 1);
    json_decref(o);
    kit_until(k, "/v1/pins", "pins.0.resident", 3, 10000);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

static void command_line(void **state) {
    struct kit *k = *state;
    kit_write_conf(k);
    const char *check[] = {"wafertierd", "--check-config", "-c", k->conf, NULL};
    assert_int_equal(kit_wait_exit(kit_spawn(k, k->log, check), 5000), 0);
    const char *version[] = {"wafertierd", "--version", NULL};
    assert_int_equal(kit_wait_exit(kit_spawn(k, k->log, version), 5000), 0);
    const char *wrong[] = {"wafertierd", "--colour", NULL};
    assert_int_equal(kit_wait_exit(kit_spawn(k, k->log, wrong), 5000), 2);
    const char *extra[] = {"wafertierd", "more", NULL};
    assert_int_equal(kit_wait_exit(kit_spawn(k, k->log, extra), 5000), 2);
    const char *missing[] = {"wafertierd", "-c", "/nonexistent/x.conf", NULL};
    assert_int_equal(kit_wait_exit(kit_spawn(k, k->log, missing), 5000), 2);
    assert_true(kit_log_has(k->log, "/nonexistent/x.conf"));
    snprintf(k->extra, sizeof k->extra, "tikc = 1s");
    kit_write_conf(k);
    assert_int_equal(kit_wait_exit(kit_spawn(k, k->log, check), 5000), 2);
    assert_true(kit_log_has(k->log, "did you mean 'tick'"));
}

static void stop_with_moves_under_way(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", 60, 600, 1, 1, 0); /* 150 MiB */
    kit_start(k);
    json_decref(kit_report(k, kit_register(k, "wafers"), 0, 0, 60, "cold", size));
    kit_until(k, "/v1/stats", "moves.done", 3, 10000);
    uint64_t worst = 0;
    for (int i = 0; i < 10; i++) {
        uint64_t t = kit_now();
        json_decref(kit_call(k, "GET", "/v1/stats", NULL, NULL));
        t = kit_now() - t;
        worst = t > worst ? t : worst;
    }
    print_message("slowest of 10 statistics while moves ran: %llu ms\n", (unsigned long long)worst);
    assert_true(worst < 200);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
    uint64_t there = kit_count(k->hot, "wafers");
    assert_int_equal(kit_count_equal(k, k->hot, "wafers"), there); /* whole or not at all */
    kit_start(k);
    kit_until(k, "/v1/stats", "reconcile.confirmed", (int64_t)there, 5000);
    kit_until(k, "/v1/stats", "tiers.2.shards", 60,
              20000); /* heat was kept: it goes on by itself */
    assert_int_equal(kit_count_equal(k, k->hot, "wafers"), 60);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        T(command_line),
        T(read_shards_become_hot),
        T(a_small_hot_tier_overflows_and_keeps_its_set),
        T(state_survives),
        T(reload),
        T(a_second_daemon_stands_by),
        T(pins_and_quotas_follow_the_lock),
        T(stop_with_moves_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
