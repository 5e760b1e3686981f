/* The real wafertierd, steered by hand: pins, quotas, warm, evict, reload; what outranks what, what
 * survives a restart, what is refused. */
#include "kit.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SHARDS = 24, SAMPLES = 40 };

/* POST; the answer must have the status (and, for an error, the code). */
static json_t *post(struct kit *k, const char *path, int wanted, const char *code, const char *fmt,
                    ...) {
    char body[512];
    int status;
    va_list args;
    va_start(args, fmt);
    vsnprintf(body, sizeof body, fmt, args);
    va_end(args);
    json_t *o = kit_call(k, "POST", path, body, &status);
    const char *got = json_string_value(json_object_get(o, "code"));
    if (status != wanted || (code && (!got || strcmp(got, code) != 0)))
        fail_msg("%s %s: %d %s", path, body, status, got ? got : "");
    return o;
}

static const char *text(json_t *o, const char *name) {
    const char *t = json_string_value(json_object_get(o, name));
    return t ? t : "";
}

/* Waits until request `id` has ended; its state, checked. */
static json_t *ended(struct kit *k, const char *id, const char *state) {
    char path[64];
    snprintf(path, sizeof path, "/v1/%s/%s", id[0] == 'w' ? "warm" : "evict", id);
    for (uint64_t end = kit_now() + 15000; kit_now() < end; kit_sleep(20)) {
        json_t *o = kit_call(k, "GET", path, NULL, NULL);
        if (strcmp(text(o, "state"), "running") != 0) {
            if (strcmp(text(o, "state"), state) != 0)
                fail_msg("%s: %s, not %s", id, text(o, "state"), state);
            return o;
        }
        json_decref(o);
    }
    fail_msg("%s does not end", id);
    return NULL;
}

static json_t *asked(struct kit *k, json_t *o, const char *state) {
    char id[32];
    snprintf(id, sizeof id, "%s", text(o, "id"));
    json_decref(o);
    return ended(k, id, state);
}

static void warm_brings_all_and_says_so_only_then(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    k->tier_extra = "filter = \"delay write=20ms\"";
    kit_start(k);
    json_t *o = post(k, "/v1/warm", 200, NULL, "{\"dataset\":\"wafers\",\"tier\":\"warm\"}");
    assert_string_equal(text(o, "state"), "running");
    assert_int_equal(kit_int(o, "shards.total"), SHARDS);
    assert_int_equal(kit_int(o, "bytes.total"), (int64_t)(SHARDS * size));
    char path[64];
    snprintf(path, sizeof path, "/v1/warm/%s", text(o, "id"));
    json_decref(o);
    int64_t last = 0;
    bool between = false;
    for (bool done = false; !done; kit_sleep(5)) { /* never says more than there is */
        o = kit_call(k, "GET", path, NULL, NULL);
        int64_t n = kit_int(o, "shards.done");
        char folder[96];
        snprintf(folder, sizeof folder, "%s/warm", k->root);
        uint64_t there = kit_count(folder, "wafers");
        assert_true(n >= last && (uint64_t)n <= there);
        assert_int_equal(kit_int(o, "bytes.done"), n * (int64_t)size);
        between = between || (n > 0 && n < SHARDS);
        done = strcmp(text(o, "state"), "running") != 0;
        if (done)
            assert_int_equal(there, SHARDS);
        last = n;
        json_decref(o);
    }
    assert_true(between);
    char folder[96];
    snprintf(folder, sizeof folder, "%s/warm", k->root);
    assert_int_equal(kit_count_equal(k, folder, "wafers"), SHARDS);

    /* a copy that is gone behind the daemon's back is found out, and made again */
    char command[300];
    snprintf(command, sizeof command, "rm $(find %s/warm/wafers/shards -type f | sort | head -3)",
             k->root);
    assert_int_equal(system(command), 0);
    json_decref(asked(
        k, post(k, "/v1/warm", 200, NULL, "{\"dataset\":\"wafers\",\"tier\":\"warm\"}"), "done"));
    assert_int_equal(kit_count_equal(k, folder, "wafers"), SHARDS);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

static void warm_fails_with_the_reason(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    char room[32], command[300];
    snprintf(room, sizeof room, "%llu", (unsigned long long)(size * 10));
    k->hot_capacity = room;
    snprintf(command, sizeof command,
             "f=$(find %s/cold/wafers/shards -type f | sort | sed -n 3p); chmod u+w $f; printf x | "
             "dd of=$f bs=1 seek=5000 conv=notrunc status=none",
             k->root);
    assert_int_equal(system(command), 0);
    kit_start(k);
    json_t *o = post(k, "/v1/warm", 507, "FULL", "{\"dataset\":\"wafers\",\"tier\":\"hot\"}");
    assert_non_null(strstr(text(o, "error"), "unpin"));
    json_decref(o);
    o = asked(k, post(k, "/v1/warm", 200, NULL, "{\"dataset\":\"wafers\",\"tier\":\"warm\"}"),
              "failed");
    assert_int_equal(kit_int(o, "shards.done"), SHARDS - 1);
    assert_int_equal(kit_int(o, "shards.failed"), 1);
    assert_int_equal(kit_int(o, "reasons.0.shards"), 1);
    assert_string_equal(text(json_array_get(json_object_get(o, "reasons"), 0), "code"), "CORRUPT");
    json_decref(o);
    json_decref(post(k, "/v1/warm", 404, "MISSING", "{\"dataset\":\"nothing\"}"));
    json_decref(post(k, "/v1/warm", 404, "MISSING", "{\"dataset\":\"wafers\",\"lot\":\"none\"}"));
    json_decref(post(k, "/v1/warm", 400, "INVAL", "{\"dataset\":\"wafers\",\"wafer\":\"w1\"}"));
    json_decref(post(k, "/v1/warm", 400, "INVAL", "{\"dataset\":\"wafers\",\"tier\":\"cold\"}"));
    json_decref(post(k, "/v1/warm", 400, "INVAL", "{\"dataset\":\"wafers\",\"tier\":\"attic\"}"));
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

static void warm_gives_up_when_nothing_comes_forward(void **state) {
    struct kit *k = *state;
    kit_pack(k, "wafers", 4, SAMPLES, 1, 1, 0);
    k->tier_extra = "filter = \"fault write=IO:1\"";
    snprintf(k->extra, sizeof k->extra, "mover { retries = 100 backoff = 1s backoff_max = 1s }");
    kit_write_conf(k);
    k->pid = kit_spawn(k, k->log, NULL);
    int fd;
    for (uint64_t end = kit_now() + 5000; (fd = kit_connect(k)) < 0; kit_sleep(10))
        assert_true(kit_now() < end);
    close(fd);
    kit_until(k, "/v1/stats", "shards", 4, 10000);
    json_t *o = asked(
        k, post(k, "/v1/warm", 200, NULL, "{\"dataset\":\"wafers\",\"patience_s\":0.5}"), "failed");
    assert_int_equal(kit_int(o, "shards.failed"), 4);
    json_decref(o);
    o = post(k, "/v1/warm", 200, NULL, "{\"dataset\":\"wafers\"}");
    char path[64];
    snprintf(path, sizeof path, "/v1/warm/%s", text(o, "id"));
    json_decref(o);
    o = kit_call(k, "DELETE", path, NULL, NULL);
    assert_string_equal(text(o, "state"), "canceled");
    json_decref(o);
    kit_stop(k, SIGTERM, 6000);
}

static void pins_outrank_and_survive(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    char room[32];
    snprintf(room, sizeof room, "%llu", (unsigned long long)(size * 6));
    k->hot_capacity = room;
    snprintf(k->extra, sizeof k->extra, "policy { min_stay = 0s  high = 100%%  low = 95%% }");
    kit_start(k);
    char id[64];
    snprintf(id, sizeof id, "%s", kit_register(k, "wafers"));
    for (unsigned i = 0; i < 4; i++) /* shards 0 to 5 are the hottest by far */
        json_decref(kit_report(k, id, i, 0, 6, "cold", size));
    kit_until(k, "/v1/stats", "tiers.2.shards", 6, 10000);
    json_t *o =
        post(k, "/v1/pin", 200, NULL, "{\"dataset\":\"wafers\",\"lot\":\"lot\",\"wafer\":\"w20\"}");
    assert_int_equal(kit_int(o, "shards"), 1);
    assert_string_equal(text(o, "tier"), "hot");
    json_decref(o);
    kit_until(k, "/v1/pins", "pins.0.resident", 1, 10000);
    kit_until(k, "/v1/stats", "tiers.2.shards", 6, 10000);
    assert_int_equal(kit_count(k->hot, "wafers"), 6);
    json_decref(post(k, "/v1/pin", 507, "FULL", "{\"dataset\":\"wafers\",\"tier\":\"hot\"}"));
    json_decref(post(k, "/v1/evict", 409, "EXISTS", "{\"dataset\":\"wafers\",\"tier\":\"hot\"}"));
    assert_int_equal(kit_stop(k, SIGKILL, 5000), 256 + SIGKILL); /* at once after the answers */

    kit_start(k);
    kit_until(k, "/v1/pins", "pins.0.resident", 1, 10000);
    snprintf(id, sizeof id, "%s", kit_register(k, "wafers"));
    for (unsigned i = 0; i < 6; i++)
        json_decref(kit_report(k, id, i, 6, 8, "cold", size)); /* others become hot */
    kit_until(k, "/v1/stats", "moves.done", 5, 10000);
    o = kit_call(k, "GET", "/v1/shards?dataset=wafers&wafer=w20&lot=lot", NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(o, "shards")), 1);
    assert_int_equal(kit_int(o, "shards.0.number"), 20);
    json_t *row = json_array_get(json_object_get(o, "shards"), 0);
    assert_int_equal(json_array_size(json_object_get(row, "pinned")), 1);
    assert_string_equal(json_string_value(json_array_get(json_object_get(row, "tiers"), 1)), "hot");
    json_decref(o);

    kit_pack(k, "wafers", SHARDS, SAMPLES, 2, 2, 0); /* a new generation is pinned likewise */
    json_decref(post(k, "/v1/datasets", 200, NULL, "{\"name\":\"wafers\"}"));
    kit_until(k, "/v1/pins", "pins.0.resident", 1, 15000);
    o = post(k, "/v1/unpin", 200, NULL, "{\"dataset\":\"wafers\"}");
    assert_int_equal(kit_int(o, "removed"), 1);
    json_decref(o);
    json_decref(post(k, "/v1/unpin", 404, "MISSING", "{\"dataset\":\"wafers\"}"));
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
    kit_start(k);
    o = kit_call(k, "GET", "/v1/pins", NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(o, "pins")), 0);
    json_decref(o);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

static void evict_takes_away_and_keeps_away(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    kit_start(k);
    char id[64], command[500];
    snprintf(id, sizeof id, "%s", kit_register(k, "wafers"));
    json_decref(kit_report(k, id, 0, 0, SHARDS, "cold", size));
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS, 10000);
    /* Neither copy of two shards can be trusted: what is left of them stays, and cannot be mended.
     * A third one is only missing in cold: it is put back before its copy goes. */
    snprintf(command, sizeof command,
             "rm $(find %s/cold/wafers/shards -type f | sort | head -3); for f in $(find "
             "%s/wafers/shards "
             "-type f | sort | head -2); do chmod u+w $f; printf x | dd of=$f bs=1 seek=3000 "
             "conv=notrunc status=none; done",
             k->root, k->hot);
    assert_int_equal(system(command), 0);
    json_t *o = asked(k, post(k, "/v1/evict", 200, NULL, "{\"dataset\":\"wafers\",\"hold_s\":2}"),
                      "failed");
    assert_int_equal(kit_int(o, "shards.failed"), 2); /* the last copies stay */
    assert_int_equal(kit_int(o, "shards.done"), SHARDS - 2);
    assert_string_equal(text(json_array_get(json_object_get(o, "reasons"), 0), "code"), "CORRUPT");
    json_decref(o);
    assert_int_equal(kit_count(k->hot, "wafers"), 2);
    json_decref(kit_report(k, id, 1, 4, 10, "cold", size));
    kit_sleep(1000);
    assert_int_equal(kit_count(k->hot, "wafers"), 2); /* barred, however hot */
    kit_sleep(1500);
    json_decref(kit_report(k, id, 2, 4, 10, "cold", size));
    kit_until(k, "/v1/stats", "tiers.2.shards", 12, 10000);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

static void quotas_limit_and_survive(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    kit_start(k);
    char id[64];
    snprintf(id, sizeof id, "%s", kit_register(k, "wafers"));
    json_decref(kit_report(k, id, 0, 0, SHARDS, "cold", size));
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS, 10000);
    json_t *o =
        post(k, "/v1/quota", 200, NULL, "{\"dataset\":\"wafers\",\"tier\":\"hot\",\"bytes\":%llu}",
             (unsigned long long)(size * 5 + size / 2));
    json_decref(o);
    for (uint64_t end = kit_now() + 10000; kit_count(k->hot, "wafers") != 5; kit_sleep(20))
        assert_true(kit_now() < end);
    for (unsigned i = 1; i < 5; i++)
        json_decref(kit_report(k, id, i, 0, SHARDS, "cold", size));
    kit_sleep(500);
    assert_int_equal(kit_count(k->hot, "wafers"), 5);
    assert_int_equal(kit_stop(k, SIGKILL, 5000), 256 + SIGKILL);
    kit_start(k);
    o = kit_call(k, "GET", "/v1/quotas", NULL, NULL);
    assert_int_equal(kit_int(o, "quotas.0.bytes"), (int64_t)(size * 5 + size / 2));
    json_decref(o);
    snprintf(id, sizeof id, "%s", kit_register(k, "wafers"));
    json_decref(kit_report(k, id, 0, 0, SHARDS, "cold", size));
    kit_sleep(500);
    assert_int_equal(kit_count(k->hot, "wafers"), 5);
    json_decref(
        post(k, "/v1/quota", 200, NULL, "{\"dataset\":\"wafers\",\"tier\":\"hot\",\"bytes\":0}"));
    json_decref(kit_report(k, id, 1, 0, SHARDS, "cold", size));
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS, 10000);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

static void a_damaged_rules_file_is_set_aside(void **state) {
    struct kit *k = *state;
    kit_pack(k, "wafers", 4, SAMPLES, 1, 1, 0);
    kit_start(k);
    json_decref(post(k, "/v1/pin", 200, NULL, "{\"dataset\":\"wafers\",\"tier\":\"warm\"}"));
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
    char command[300];
    snprintf(command, sizeof command, "printf '{\"version\": 1, \"pins\": [7]' > %s/state/rules",
             k->root);
    assert_int_equal(system(command), 0);
    kit_start(k);
    assert_true(kit_log_has(k->log, "set aside as rules.damaged-1"));
    json_t *o = kit_call(k, "GET", "/v1/pins", NULL, NULL); /* from the cold tier */
    assert_int_equal(json_array_size(json_object_get(o, "pins")), 1);
    json_decref(o);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
    snprintf(command, sizeof command,
             "cd %s && printf '{\"version\": 1, \"pins\": [7]' | tee state/rules "
             "> cold/.wafertierd.rules",
             k->root);
    assert_int_equal(system(command), 0);
    kit_start(k);
    assert_true(kit_log_has(k->log, ".wafertierd.rules in tier cold"));
    o = kit_call(k, "GET", "/v1/pins", NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(o, "pins")), 0);
    json_decref(o);
    json_decref(post(k, "/v1/pin", 200, NULL, "{\"dataset\":\"wafers\",\"tier\":\"warm\"}"));
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

/* Files of leases on the data set. */
static int leases(struct kit *k) {
    char command[200];
    int n = -1;
    snprintf(command, sizeof command,
             "ls %s/cold/.wafertier.leases/wafers 2>/dev/null | grep -c '^1-'", k->root);
    FILE *f = popen(command, "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%d", &n), 1);
    pclose(f);
    return n;
}

static void registered_jobs_hold_a_lease(void **state) {
    struct kit *k = *state;
    kit_pack(k, "wafers", 4, SAMPLES, 1, 1, 0);
    snprintf(k->extra, sizeof k->extra, "job_expiry = 1s");
    kit_start(k);
    assert_int_equal(leases(k), 0);
    kit_register(k, "wafers");
    kit_register(k, "wafers");
    for (uint64_t end = kit_now() + 5000; leases(k) != 1; kit_sleep(20))
        assert_true(kit_now() < end);
    for (uint64_t end = kit_now() + 10000; leases(k) != 0; kit_sleep(20)) /* they expire */
        assert_true(kit_now() < end);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

/* Prefixes of names begin with the number, which leads straight to the shards. */
static void shards_by_prefix(void **state) {
    static const struct {
        const char *prefix;
        size_t n;
    } wanted[] = {{"0000000", 10},  {"0000001", 10},  {"0000002", 4}, {"00000011", 1},
                  {"00000024", 0},  {"00000003-", 1}, {"3", 0},       {"1", 0},
                  {"000000012", 0}, {"x", 0}};
    struct kit *k = *state;
    kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    kit_start(k);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        char path[100];
        snprintf(path, sizeof path, "/v1/shards?dataset=wafers&prefix=%s", wanted[i].prefix);
        json_t *o = kit_call(k, "GET", path, NULL, NULL);
        if (json_array_size(json_object_get(o, "shards")) != wanted[i].n)
            fail_msg("prefix %s: %zu shards, not %zu", wanted[i].prefix,
                     json_array_size(json_object_get(o, "shards")), wanted[i].n);
        assert_true(json_is_null(json_object_get(o, "next")));
        json_decref(o);
    }
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

/* Replaces in the configuration. */
static void edit(struct kit *k, const char *sed) {
    char command[400];
    snprintf(command, sizeof command, "sed -i '%s' %s", sed, k->conf);
    assert_int_equal(system(command), 0);
}

static void reload_changes_in_place_or_nothing(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    k->hot_capacity = "900MiB";
    snprintf(k->extra, sizeof k->extra, "policy { min_stay = 0s }");
    kit_start(k);
    char id[64], room[64];
    snprintf(id, sizeof id, "%s", kit_register(k, "wafers"));
    json_decref(kit_report(k, id, 0, 0, SHARDS, "cold", size));
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS, 10000);
    json_t *o = post(k, "/v1/reload", 200, NULL, "{}");
    assert_int_equal(json_array_size(json_object_get(o, "changed")), 0);
    json_decref(o);
    /* a restart is needed for one of two changes: neither is applied */
    edit(k, "s|900MiB|800MiB|; s|policy {|mover { moves = 2 } policy {|");
    o = post(k, "/v1/reload", 422, "UNSUPPORTED", "{}");
    assert_non_null(strstr(text(o, "error"), "mover.moves"));
    json_decref(o);
    o = kit_call(k, "GET", "/v1/tiers", NULL, NULL);
    assert_int_equal(kit_int(o, "tiers.2.capacity"), 900 << 20);
    json_decref(o);
    edit(k, "s|moves = 2|moves = many|");
    o = post(k, "/v1/reload", 400, "INVAL", "{}");
    assert_non_null(strstr(text(o, "error"), "daemon.conf"));
    json_decref(o);
    /* below what is used: it drains to its mark, and no further */
    snprintf(room, sizeof room, "s|800MiB|%llu|; s|mover { moves = many }||",
             (unsigned long long)(size * 10));
    edit(k, room);
    o = post(k, "/v1/reload", 200, NULL, "{}");
    assert_int_equal(json_array_size(json_object_get(o, "changed")), 1);
    assert_string_equal(json_string_value(json_array_get(json_object_get(o, "changed"), 0)),
                        "tier hot.capacity");
    json_decref(o);
    for (uint64_t end = kit_now() + 10000; kit_count(k->hot, "wafers") > 9; kit_sleep(20))
        assert_true(kit_now() < end);
    kit_sleep(300);
    assert_in_range(kit_count(k->hot, "wafers"), 8, 9);
    /* SIGHUP does the same */
    edit(k, "s|tick = 100ms|tick = 150ms|; s|interval = 50ms|interval = 60ms|");
    kill(k->pid, SIGHUP);
    for (uint64_t end = kit_now() + 5000; !kit_log_has(k->log, "2 options changed"); kit_sleep(20))
        assert_true(kit_now() < end);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        T(warm_brings_all_and_says_so_only_then),
        T(warm_fails_with_the_reason),
        T(warm_gives_up_when_nothing_comes_forward),
        T(pins_outrank_and_survive),
        T(evict_takes_away_and_keeps_away),
        T(quotas_limit_and_survive),
        T(a_damaged_rules_file_is_set_aside),
        T(registered_jobs_hold_a_lease),
        T(shards_by_prefix),
        T(reload_changes_in_place_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
