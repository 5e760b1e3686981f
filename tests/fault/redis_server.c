/* Redis killed, restarted empty, loading, flushed under load; rights and passwords; memory. */
#include "redis_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void open_url(struct kit *k) {
    char url[400];
    kit_url(k, url, sizeof url);
    kit_open(k, url);
}

static void killed_under_load(struct kit *k) {
    open_url(k);
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    struct kit_reading *r = kit_reading_start(k, "o");
    kit_sleep(k, 200);
    assert_true(r->ok > 0);
    assert_int_equal(r->failed, 0);
    kit_script(k, "kill", "");
    kit_until_down(k, true);
    kit_sleep(k, 200);
    assert_int_equal(r->seen[-WT_EDOWN], r->failed);
    kit_script(k, "up", "");
    kit_until_down(k, false);
    kit_sleep(k, 200);
    /* It came back empty: missing is the answer now, and what it held must not be believed. */
    assert_int_equal(r->failed, r->seen[-WT_EDOWN] + r->seen[-WT_EMISSING]);
    assert_true(r->seen[-WT_EMISSING] > 0);
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    unsigned before = r->ok;
    kit_sleep(k, 300);
    assert_true(r->ok > before);
    kit_reading_stop(k, r);
}

static void restarted_while_idle(struct kit *k) {
    open_url(k);
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    assert_int_equal(kit_get(k, "o", KIT_OBJECT, NULL), 0);
    struct wt_req usage = {.op = WT_OP_USAGE};
    assert_int_equal(kit_do(k, &usage), 0);
    assert_int_equal(usage.used, KIT_OBJECT);
    kit_script(k, "kill", "");
    kit_script(k, "up", "");
    kit_sleep(k, 1500);
    kit_until_down(k, false);
    assert_int_equal(kit_get(k, "o", KIT_OBJECT, NULL), WT_EMISSING);
    assert_int_equal(kit_stat(k, "o"), WT_EMISSING);
    assert_non_null(strstr(k->lines, "was restarted"));
    assert_int_equal(kit_do(k, &usage), 0);
    assert_int_equal(usage.used, 0);
}

static void killed_under_a_put(struct kit *k) {
    open_url(k);
    struct wt_req open = {.op = WT_OP_PUT_OPEN, .key = "p", .size = 2 * WT_PART};
    assert_int_equal(kit_do(k, &open), 0);
    uint8_t *data = calloc(1, WT_PART);
    struct wt_req write = {.op = WT_OP_PUT_WRITE, .put = open.put, .src = data, .len = WT_PART};
    assert_int_equal(kit_do(k, &write), 0);
    kit_script(k, "kill", "");
    kit_script(k, "up", "");
    kit_sleep(k, 500);
    /* The second part goes to the restarted server: the first one is gone, so is the put. */
    kit_until_down(k, false);
    write.off = WT_PART;
    assert_int_equal(kit_do(k, &write), 0);
    struct wt_req commit = {.op = WT_OP_PUT_COMMIT, .put = open.put};
    assert_int_equal(kit_do(k, &commit), WT_ECHANGED);
    assert_non_null(strstr(commit.err.text, "gone before the commit"));
    assert_int_equal(kit_stat(k, "p"), WT_EMISSING);
    char keys[100];
    kit_ask(k, "dbsize", keys, sizeof keys);
    assert_string_equal(keys, "1"); /* the sentinel; no chunk is left */
    free(data);
}

static void loading(struct kit *k) {
    char line[400];
    open_url(k);
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    kit_script(k, "cli", "eval \"for i=1,4000 do redis.call('set','filler'..i,'x') end\" 0");
    kit_script(k, "cli", "save");
    kit_script(k, "kill", "");
    kit_until_down(k, true);
    /* 4000 keys at 1 ms each, and answers in between. */
    snprintf(
        line, sizeof line,
        "printf 'key-load-delay 1000\\nloading-process-events-interval-bytes 1024\\n' >>%s/conf0",
        k->dir);
    assert_int_equal(system(line), 0);
    kit_script_later(k, "up", "");
    uint64_t begin = uv_hrtime();
    bool seen = false;
    struct wt_err err;
    while (uv_hrtime() - begin < UINT64_C(30000000000)) {
        struct wt_req probe = {.op = WT_OP_PROBE};
        int rc = kit_do(k, &probe);
        seen |= rc == WT_EDOWN && strstr(probe.err.text, "loading its data set") != NULL;
        if (rc == 0)
            break;
        kit_sleep(k, 50);
    }
    assert_true(seen);
    kit_until_down(k, false);
    assert_int_equal(kit_get(k, "o", KIT_OBJECT, &err), 0); /* what was saved is there */
}

static void flushed_under_load(struct kit *k) {
    open_url(k);
    struct kit_reading *r = NULL;
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    r = kit_reading_start(k, "o");
    for (int i = 0; i < 20; i++) {
        kit_sleep(k, 30);
        kit_script(k, "flush", "");
        kit_sleep(k, 30);
        int rc = kit_put(k, "o", KIT_OBJECT);
        assert_true(rc == 0);
    }
    unsigned before = r->ok;
    kit_sleep(k, 200);
    assert_true(r->ok > before);
    /* Whole, missing, or changed while it was read; never damaged, and the tier is not to blame. */
    assert_true(r->seen[-WT_EMISSING] > 0);
    assert_int_equal(r->failed, r->seen[-WT_EMISSING] + r->seen[-WT_ECHANGED]);
    assert_false(wt_tier_is_down(k->tier));
    kit_reading_stop(k, r);
    struct wt_req usage = {.op = WT_OP_USAGE};
    assert_int_equal(kit_do(k, &usage), 0);
    kit_sleep(k, 50);
    kit_script(k, "flush", "");
    assert_int_equal(kit_do(k, &usage), 0); /* notices it */
    assert_int_equal(usage.used, 0);
    assert_non_null(strstr(k->lines, "was flushed"));
}

/* Connections that are killed one by one cost a second attempt, no error. */
static void connections_killed(struct kit *k) {
    open_url(k);
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    kit_sleep(k, 1200); /* a good life, so that they come back at once */
    struct kit_reading *r = kit_reading_start(k, "o");
    for (int i = 0; i < 3; i++) {
        kit_script(k, "cli", "client kill type normal");
        kit_sleep(k, 1300);
    }
    assert_int_equal(r->failed, 0);
    assert_true(r->ok > 0);
    kit_reading_stop(k, r);
}

static void too_many_clients(struct kit *k) {
    struct wt_err err;
    kit_script(k, "cli", "config set maxclients 1");
    char url[400];
    kit_url(k, url, sizeof url);
    snprintf(url + strlen(url), sizeof url - strlen(url), "?connections=4");
    kit_open(k, url);
    /* One connection is enough. */
    int rc = WT_EDOWN;
    for (int i = 0; i < 100 && rc != 0; i++) {
        rc = kit_put(k, "o", 100000);
        kit_sleep(k, 20);
    }
    assert_int_equal(rc, 0);
    assert_int_equal(kit_get(k, "o", 100000, &err), 0);
    assert_non_null(strstr(k->lines, "raise maxclients"));
}

/* Somebody made a replica of it: reads go on, and who writes is told. */
static void read_only_replica(struct kit *k) {
    open_url(k);
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    kit_script(k, "cli", "replicaof 127.0.0.1 1");
    assert_int_equal(kit_get(k, "o", KIT_OBJECT, NULL), 0);
    struct wt_req remove = {.op = WT_OP_REMOVE, .key = "o"};
    assert_int_equal(kit_do(k, &remove), WT_EDENIED);
    assert_non_null(strstr(remove.err.text, "read-only replica"));
    assert_int_equal(kit_put(k, "p", KIT_OBJECT), WT_EDENIED);
    assert_false(wt_tier_is_down(k->tier));
    kit_script(k, "cli", "replicaof no one");
    assert_int_equal(kit_put(k, "p", KIT_OBJECT), 0);
    assert_int_equal(kit_get(k, "p", KIT_OBJECT, NULL), 0);
}

const struct kit_test kit_server_tests[] = {
    {"killed under load, and back", killed_under_load},
    {"restarted empty while idle", restarted_while_idle},
    {"killed under a put", killed_under_a_put},
    {"loading", loading},
    {"FLUSHALL under load", flushed_under_load},
    {"connections killed", connections_killed},
    {"too many clients", too_many_clients},
    {"a read-only replica", read_only_replica},
    {NULL, NULL},
};
