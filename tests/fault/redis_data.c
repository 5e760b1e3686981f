/* Values damaged by hand; a proxy that cuts, delays, dribbles, never answers; a cluster that
 * changes. */
#include "redis_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void open_with(struct kit *k, const char *params) {
    char url[450];
    kit_url(k, url, 400);
    strcat(url, params);
    kit_open(k, url);
}

/* The name of chunk `n` of the only attempt at "o". */
static void chunk_name(struct kit *k, int n, char *name, size_t size) {
    char args[100];
    snprintf(args, sizeof args, "--raw keys 'wt:[0-9a-f]*:%d:o'", n);
    kit_ask(k, args, name, size);
    assert_true(strlen(name) > 20);
}

/* Fresh object, damage by `args` (%s: chunk 1), and what a read says then. */
static int damaged(struct kit *k, const char *args, struct wt_err *err) {
    char name[200], line[600];
    kit_remove(k, "o");
    kit_script(k, "flush", "");
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    assert_int_equal(kit_get(k, "o", KIT_OBJECT, NULL), 0);
    chunk_name(k, 1, name, sizeof name);
    snprintf(line, sizeof line, args, name);
    kit_script(k, "cli", line);
    int rc = kit_get(k, "o", KIT_OBJECT, err);
    assert_false(wt_tier_is_down(k->tier)); /* the object's fault, not the tier's */
    return rc;
}

static void damage_by_hand(struct kit *k) {
    struct wt_err err;
    open_with(k, "?verify=1");
    assert_int_equal(damaged(k, "set '%s' short", &err), WT_ECORRUPT);
    assert_non_null(strstr(err.text, "chunk 1 of 3 gives 5 bytes instead of 1044480"));
    assert_int_equal(damaged(k, "append '%s' more", &err), WT_ECORRUPT);
    assert_int_equal(damaged(k, "del '%s'", &err), WT_ECORRUPT);
    assert_non_null(strstr(err.text, "chunk 1 of 3 is missing"));
    assert_int_equal(damaged(k, "setrange '%s' 1000 X1X2X3", &err), WT_ECORRUPT);
    assert_non_null(strstr(err.text, "another sum"));
    assert_int_equal(
        damaged(k, "eval \"redis.call('del',KEYS[1]) redis.call('lpush',KEYS[1],'x')\" 1 '%s'",
                &err),
        WT_ECORRUPT);
    assert_int_equal(damaged(k, "eval \"redis.call('setrange','wt:{o}',9,'X')\" 0 '%s'", &err),
                     0); /* cached header */
    assert_int_equal(kit_stat(k, "o"), WT_ECORRUPT);
    kit_close(k);
    open_with(k, "");
    assert_int_equal(kit_get(k, "o", KIT_OBJECT, &err), WT_ECORRUPT);
    assert_non_null(strstr(err.text, "header is damaged"));
    /* A damaged object can be removed and put again. */
    assert_int_equal(kit_remove(k, "o"), 0);
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    assert_int_equal(kit_get(k, "o", KIT_OBJECT, NULL), 0);
}

/* A part of a chunk, by GETRANGE, from a chunk that is cut. */
static void damaged_range(struct kit *k) {
    struct wt_err err;
    uint8_t b[100];
    open_with(k, "");
    assert_int_equal(damaged(k, "set '%s' short", &err), WT_ECORRUPT);
    struct wt_req part = {
        .op = WT_OP_GET, .key = "o", .off = 1044480 + 500, .buf = b, .len = sizeof b};
    assert_int_equal(kit_do(k, &part), WT_ECORRUPT);
    struct wt_req other = {.op = WT_OP_GET, .key = "o", .off = 500, .buf = b, .len = sizeof b};
    assert_int_equal(kit_do(k, &other), 0);
}

/* A value planted where the header should be: much too long, or not ours. */
static void hostile_values(struct kit *k) {
    open_with(k, "");
    kit_script(k, "cli", "setrange 'wt:{big}' 100000000 x");
    kit_script(k, "cli", "set 'wt:{text}' hello");
    kit_script(k, "cli", "lpush 'wt:{list}' hello");
    struct wt_err err;
    assert_int_equal(kit_get(k, "text", 10, &err), WT_ECORRUPT);
    assert_int_equal(kit_get(k, "list", 10, &err), WT_ECORRUPT);
    assert_int_equal(kit_get(k, "big", 10, &err), WT_EDOWN); /* not read to its end */
    kit_until_down(k, false);
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    assert_int_equal(kit_get(k, "o", KIT_OBJECT, NULL), 0);
}

/* Another process replaces an object whose header we have in our cache. */
static void replaced_by_another(struct kit *k) {
    open_with(k, "");
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    assert_int_equal(kit_get(k, "o", KIT_OBJECT, NULL), 0);
    struct wt_tier *first = k->tier;
    open_with(k, "");
    struct wt_tier *second = k->tier;
    assert_int_equal(kit_remove(k, "o"), 0);
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    kit_close(k); /* its close removes the old chunks at once */
    k->tier = first;
    (void)second;
    assert_int_equal(kit_get(k, "o", KIT_OBJECT, NULL), 0);
}

const struct kit_test kit_data_tests[] = {
    {"values damaged by hand", damage_by_hand},
    {"a range of a damaged chunk", damaged_range},
    {"values that are not ours", hostile_values},
    {"replaced by another process", replaced_by_another},
    {NULL, NULL},
};

/* ---- proxy ---- */

static void open_proxy(struct kit *k, const char *params) {
    char url[200];
    k->proxy = proxy_start(kit_port(k, 0));
    assert_non_null(k->proxy);
    snprintf(url, sizeof url, "redis://127.0.0.1:%u%s", proxy_port(k->proxy), params);
    kit_open(k, url);
}

/* A read with a short deadline into poisoned memory that must stay as it is afterwards. */
static int short_read(struct kit *k, uint32_t timeout_ms) {
    uint8_t *buf = malloc(KIT_OBJECT), *want = malloc(KIT_OBJECT);
    struct wt_req req = {
        .op = WT_OP_GET, .key = "o", .buf = buf, .len = KIT_OBJECT, .timeout_ms = timeout_ms};
    uint64_t begin = uv_hrtime();
    int rc = kit_do(k, &req);
    assert_true(uv_hrtime() - begin < (timeout_ms + UINT64_C(1000)) * 1000000);
    if (rc == 0) {
        kit_fill(want, KIT_OBJECT, "o");
        assert_memory_equal(buf, want, KIT_OBJECT);
    }
    memset(buf, 0x77, KIT_OBJECT);
    kit_sleep(k, 300);
    for (size_t i = 0; i < KIT_OBJECT; i++)
        if (buf[i] != 0x77)
            fail_msg("byte %zu was written after the completion", i);
    free(buf);
    free(want);
    return rc;
}

static void recovers(struct kit *k) {
    proxy_set(k->proxy, PROXY_PASS, 0);
    kit_until_down(k, false);
    int rc = WT_EDOWN;
    for (int i = 0; i < 30 && rc != 0; i++) {
        rc = kit_get(k, "o", KIT_OBJECT, NULL);
        kit_sleep(k, 100);
    }
    assert_int_equal(rc, 0);
}

static void cut(struct kit *k) {
    static const uint64_t after[] = {1, 5, 100, 3000, 70000, 1044480, 1044600, 2500000};
    open_proxy(k, "");
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++) {
        proxy_set(k->proxy, PROXY_CUT, after[i]);
        int rc = short_read(k, 1500);
        assert_true(rc == 0 || rc == WT_EDOWN || rc == WT_ETIMEDOUT);
        recovers(k);
    }
}

static void never_answers(struct kit *k) {
    open_proxy(k, "");
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    proxy_set(k->proxy, PROXY_MUTE, 0);
    for (int i = 0; i < 3; i++) {
        int rc = short_read(k, 400);
        assert_true(rc == WT_ETIMEDOUT || rc == WT_EDOWN);
    }
    kit_until_down(k, true);
    recovers(k);
}

static void dribbles(struct kit *k) {
    open_proxy(k, "");
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    proxy_set(k->proxy, PROXY_DRIBBLE, 0);
    int rc = short_read(k, 500);
    assert_int_equal(rc, WT_ETIMEDOUT);
    /* Small answers come, if slowly: a byte at a time is an answer. */
    assert_int_equal(kit_stat(k, "o"), 0);
    recovers(k);
}

static void delays(struct kit *k) {
    open_proxy(k, "");
    assert_int_equal(kit_put(k, "o", 2000000), 0);
    proxy_set(k->proxy, PROXY_DELAY, 30);
    assert_int_equal(kit_stat(k, "o"), 0);
    assert_int_equal(kit_put(k, "p", 2000000), 0);
    proxy_set(k->proxy, PROXY_PASS, 0);
    assert_int_equal(kit_get(k, "p", 2000000, NULL), 0);
}

static void refuses(struct kit *k) {
    open_proxy(k, "");
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    proxy_set(k->proxy, PROXY_REFUSE, 0);
    kit_until_down(k, true);
    assert_int_equal(short_read(k, 500), WT_EDOWN);
    recovers(k);
}

/* Puts, commits and removals against a proxy that loses answers: never a wrong object. */
static void lost_answers(struct kit *k) {
    char key[20];
    open_proxy(k, "");
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    unsigned put = 0;
    for (int i = 0; i < 30; i++) {
        snprintf(key, sizeof key, "k%d", i);
        /* In the greeting, in PUT_OPEN (INFO is 5 KB), in the writes and the commit. */
        proxy_set(k->proxy, PROXY_CUT,
                  i % 3 ? 4800 + (uint64_t)(i * 61) % 1200 : 1 + (uint64_t)i % 10);
        int rc = kit_put(k, key, i % 2 ? 200000 : 1000);
        proxy_set(k->proxy, PROXY_PASS, 0);
        kit_until_down(k, false);
        int seen = WT_EDOWN;
        for (int n = 0; n < 50 && seen == WT_EDOWN; n++) {
            seen = kit_get(k, key, i % 2 ? 200000 : 1000, NULL);
            kit_sleep(k, 20);
        }
        put += rc == 0;
        if (rc == 0)
            assert_int_equal(seen, 0);
        else
            assert_true(seen == WT_EMISSING || seen == 0 || seen == WT_ECHANGED);
    }
    print_message("%u of 30 puts went through\n", put);
    assert_true(put > 0 && put < 30);
    kit_sleep(k, 2500); /* what was unsure is undone by now: whole or not there */
    for (int i = 0; i < 30; i++) {
        snprintf(key, sizeof key, "k%d", i);
        int rc = kit_get(k, key, i % 2 ? 200000 : 1000, NULL);
        assert_true(rc == 0 || rc == WT_EMISSING);
    }
}

/* GET and GETRANGE that the server has taken. */
static long taken(const struct kit *k) {
    char out[64];
    kit_ask(k,
            "info commandstats | awk -F'[=,]' '/^cmdstat_(get|getrange):/ { n += $2 } END { print "
            "n + 0 }'",
            out, sizeof out);
    return strtol(out, NULL, 10);
}

static void on_late(struct wt_req *req) {
    assert_true(req->rc == WT_ETIMEDOUT || req->rc == WT_EDOWN);
    *(bool *)req->arg = true;
}

/* On one connection: as many chunks are asked for before the first one came as `depth` says. While
 * answers take a second, the head is asked for in the first and chunks in the next. */
static void several_in_flight(struct kit *k) {
    enum { SECOND = 1000, WHOLE = 8 << 20 };
    static const char *const params[] = {"?connections=1&depth=1", "?connections=1",
                                         "?connections=1&depth=4"};
    static const long want[] = {1, 2, 4};
    uint8_t *buf = malloc(WHOLE);
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        open_proxy(k, params[i]);
        assert_int_equal(i ? kit_stat(k, "whole") : kit_put(k, "whole", WHOLE), 0);
        kit_close(k); /* what it knows of the head is forgotten */
        char url[200];
        snprintf(url, sizeof url, "redis://127.0.0.1:%u%s", proxy_port(k->proxy), params[i]);
        kit_open(k, url);
        kit_until_down(k, false);
        assert_int_equal(kit_stat(k, "none"), WT_EMISSING); /* connected */
        proxy_set(k->proxy, PROXY_DELAY, SECOND);
        bool over = false;
        struct wt_req req = {.op = WT_OP_GET,
                             .key = "whole",
                             .buf = buf,
                             .len = WHOLE,
                             .timeout_ms = 1800,
                             .done = on_late,
                             .arg = &over};
        assert_int_equal(wt_tier_submit(k->tier, &req), 0);
        kit_sleep(k, SECOND / 2);
        long before = taken(k);
        kit_sleep(k, SECOND);
        assert_int_equal(taken(k) - before, want[i]);
        kit_sleep(k, 2 * SECOND);
        assert_true(over);
        proxy_set(k->proxy, PROXY_PASS, 0);
        kit_close(k);
        proxy_stop(k->proxy);
        k->proxy = NULL;
    }
    free(buf);
}

const struct kit_test kit_proxy_tests[] = {
    {"cuts after N bytes", cut},
    {"never answers", never_answers},
    {"dribbles", dribbles},
    {"delays", delays},
    {"several GETs in flight", several_in_flight},
    {"refuses", refuses},
    {"loses answers to puts", lost_answers},
    {NULL, NULL},
};
