/* Passwords, users and their rights; memory that is full. */
#include "redis_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void url_of(struct kit *k, const char *user, const char *password, char *url, size_t size) {
    snprintf(url, size, "redis://%s:%s@127.0.0.1:%u", user, password, kit_port(k, 0));
}

/* Whatever is printed, the password is not in it. */
static void check_silence(struct kit *k, const char *secret) {
    struct wt_tier_stats stats;
    wt_tier_stats(k->tier, &stats);
    assert_null(strstr(k->lines, secret));
    assert_null(strstr(stats.last_error, secret));
    assert_null(strstr(wt_tier_url(k->tier), secret));
}

static void wrong_password(struct kit *k) {
    char url[200];
    struct wt_err err;
    url_of(k, "daemon", "daemon-typo", url, sizeof url);
    kit_open(k, url);
    assert_int_equal(kit_get(k, "o", 10, &err), WT_EDOWN);
    assert_non_null(strstr(err.text, "refused user or password"));
    assert_true(wt_tier_is_down(k->tier));
    check_silence(k, "daemon-typo");
    /* Put right on the server: it comes back by itself. */
    kit_script(k, "cli", "acl setuser daemon '>daemon-typo'");
    kit_until_down(k, false);
    assert_int_equal(kit_put(k, "o", 100000), 0);
    check_silence(k, "daemon-typo");
}

/* While it is down the reason may change: the newest is told. */
static void down_for_another_reason(struct kit *k) {
    char url[200], line[200];
    struct wt_err err;
    url_of(k, "daemon", "daemon-secret", url, sizeof url);
    kit_open(k, url);
    assert_int_equal(kit_put(k, "o", 100000), 0);
    kit_script(k, "kill", "");
    kit_until_down(k, true);
    assert_int_equal(kit_get(k, "o", 100000, &err), WT_EDOWN);
    assert_null(strstr(err.text, "refused user or password"));
    snprintf(line, sizeof line, "sed -i s/daemon-secret/daemon-new/ %s/conf0", k->dir);
    assert_int_equal(system(line), 0);
    kit_script(k, "up", "");
    bool told = false;
    for (int i = 0; i < 500 && !told; i++) {
        assert_int_equal(kit_get(k, "o", 100000, &err), WT_EDOWN);
        told = strstr(err.text, "refused user or password") != NULL;
        kit_sleep(k, 20);
    }
    assert_true(told);
}

static void no_password(struct kit *k) {
    char url[200];
    struct wt_err err;
    snprintf(url, sizeof url, "redis://127.0.0.1:%u", kit_port(k, 0));
    kit_open(k, url);
    assert_int_equal(kit_get(k, "o", 10, &err), WT_EDOWN);
    assert_non_null(strstr(err.text, "give one in the url"));
}

static void password_sources(struct kit *k) {
    char url[300], path[100];
    snprintf(path, sizeof path, "%s/secret", k->dir);
    FILE *f = fopen(path, "w");
    fputs("daemon-secret\n", f);
    fclose(f);
    snprintf(url, sizeof url, "redis://daemon@127.0.0.1:%u?password_file=%s", kit_port(k, 0), path);
    kit_open(k, url);
    assert_int_equal(kit_put(k, "o", 100000), 0);
    kit_close(k);
    setenv("WT_TEST_REDIS_PASSWORD", "daemon-secret", 1);
    snprintf(url, sizeof url,
             "redis://127.0.0.1:%u?user=daemon&password_env=WT_TEST_REDIS_PASSWORD",
             kit_port(k, 0));
    kit_open(k, url);
    assert_int_equal(kit_get(k, "o", 100000, NULL), 0);
    check_silence(k, "daemon-secret");
}

static void rights_withdrawn(struct kit *k) {
    char url[200];
    struct wt_err err;
    url_of(k, "daemon", "daemon-secret", url, sizeof url);
    kit_open(k, url);
    assert_int_equal(kit_put(k, "o", 100000), 0);
    assert_int_equal(kit_get(k, "o", 100000, NULL), 0);
    kit_script(k, "cli", "acl setuser daemon -get");
    assert_int_equal(kit_get(k, "o", 100000, &err), WT_EDENIED);
    assert_non_null(strstr(err.text, "lacks a right"));
    kit_script(k, "cli", "acl setuser daemon +get -set");
    assert_int_equal(kit_get(k, "o", 100000, NULL), 0);
    assert_int_equal(kit_put(k, "p", 100000), WT_EDENIED);
    assert_int_equal(kit_stat(k, "p"), WT_EMISSING);
    assert_false(wt_tier_is_down(k->tier)); /* denied is not down */
    /* The user is deleted: its connections are cut, the tier is down and says why. */
    kit_script(k, "cli", "acl deluser daemon");
    kit_until_down(k, true);
    assert_int_equal(kit_get(k, "o", 100000, &err), WT_EDOWN);
    assert_non_null(strstr(err.text, "refused user or password"));
    kit_script(k, "cli", "acl setuser daemon on '>daemon-secret' '~wt:*' +@all");
    kit_until_down(k, false);
    assert_int_equal(kit_put(k, "p", 100000), 0);
}

/* The rules of tests/servers/redis are those of the operations page: exactly enough. */
static void loader_reads_only(struct kit *k) {
    char url[200];
    struct wt_err err;
    url_of(k, "daemon", "daemon-secret", url, sizeof url);
    kit_open(k, url);
    assert_int_equal(kit_put(k, "o", KIT_OBJECT), 0);
    kit_close(k);
    url_of(k, "loader", "loader-secret", url, sizeof url);
    kit_open(k, url);
    assert_int_equal(kit_get(k, "o", KIT_OBJECT, &err), 0);
    assert_int_equal(kit_stat(k, "o"), 0);
    uint8_t b[1000], want[1000];
    uint8_t *all = malloc(KIT_OBJECT);
    kit_fill(all, KIT_OBJECT, "o");
    memcpy(want, all + 1234567, sizeof want);
    free(all);
    struct wt_req part = {.op = WT_OP_GET, .key = "o", .off = 1234567, .buf = b, .len = sizeof b};
    assert_int_equal(kit_do(k, &part), 0);
    assert_memory_equal(b, want, sizeof want);
    struct wt_req probe = {.op = WT_OP_PROBE};
    assert_int_equal(kit_do(k, &probe), 0);
    assert_int_equal(kit_put(k, "p", 100), WT_EDENIED);
    assert_int_equal(kit_remove(k, "o"), WT_EDENIED);
    assert_int_equal(kit_stat(k, "o"), 0);
}

static void other_keys_are_safe(struct kit *k) {
    char text[100];
    kit_script(k, "cli", "set else value");
    char url[200];
    url_of(k, "daemon", "daemon-secret", url, sizeof url);
    kit_open(k, url);
    assert_int_equal(kit_put(k, "o", 100000), 0);
    assert_int_equal(kit_remove(k, "o"), 0);
    kit_close(k);
    kit_ask(k, "get else", text, sizeof text);
    assert_string_equal(text, "value");
}

const struct kit_test kit_rights_tests[] = {
    {"wrong password", wrong_password},
    {"down for another reason", down_for_another_reason},
    {"no password", no_password},
    {"password from file and environment", password_sources},
    {"rights withdrawn", rights_withdrawn},
    {"a loader's least rights", loader_reads_only},
    {"what others keep there stays", other_keys_are_safe},
    {NULL, NULL},
};

/* ---- memory ---- */

static void open_url(struct kit *k) {
    char url[400];
    kit_url(k, url, sizeof url);
    kit_open(k, url);
}

static void oom_under_a_put(struct kit *k) {
    open_url(k);
    uint8_t *data = calloc(1, WT_PART);
    struct wt_req open = {.op = WT_OP_PUT_OPEN, .key = "p", .size = 2 * WT_PART};
    assert_int_equal(kit_do(k, &open), 0);
    struct wt_req write = {.op = WT_OP_PUT_WRITE, .put = open.put, .src = data, .len = WT_PART};
    assert_int_equal(kit_do(k, &write), 0);
    /* Somebody else fills the server. */
    kit_script(k, "cli", "setrange filler 36000000 x");
    write.off = WT_PART;
    assert_int_equal(kit_do(k, &write), WT_EFULL);
    assert_non_null(strstr(write.err.text, "maxmemory"));
    struct wt_req abort = {.op = WT_OP_PUT_ABORT, .put = open.put};
    assert_int_equal(kit_do(k, &abort), 0);
    kit_sleep(k, 2500); /* writes that were on their way had time to arrive, and are removed too */
    assert_false(wt_tier_is_down(k->tier)); /* full is not down */
    char keys[100];
    kit_ask(k, "dbsize", keys, sizeof keys);
    assert_string_equal(keys, "2"); /* filler and sentinel */
    assert_int_equal(kit_put(k, "p", 2 * WT_PART), WT_EFULL);
    kit_script(k, "cli", "del filler");
    assert_int_equal(kit_put(k, "p", 2 * WT_PART), 0);
    assert_int_equal(kit_get(k, "p", 2 * WT_PART, NULL), 0);
    free(data);
}

/* What the tier believes to fit does fit; and removals make room at once when it is needed. */
static void fill_and_empty(struct kit *k) {
    enum { OBJECT = 5000000 };
    char key[20];
    struct wt_err err;
    open_url(k);
    int n = 0, rc = 0;
    while (n < 100 && rc == 0) {
        snprintf(key, sizeof key, "o%d", n);
        rc = kit_put(k, key, OBJECT);
        n += rc == 0;
    }
    assert_int_equal(rc, WT_EFULL);
    assert_true(n >= 5);
    struct wt_req usage = {.op = WT_OP_USAGE};
    assert_int_equal(kit_do(k, &usage), 0);
    assert_int_equal(usage.used, (uint64_t)n * OBJECT);
    assert_true(usage.capacity >= usage.used && usage.capacity < 48000000);
    for (int i = 0; i < 20;
         i++) { /* the chunks of the removed one must go now, not in ten seconds */
        snprintf(key, sizeof key, "o%d", i % n);
        assert_int_equal(kit_remove(k, key), 0);
        assert_int_equal(kit_put(k, key, OBJECT), 0);
        assert_int_equal(kit_get(k, key, OBJECT, &err), 0);
    }
}

static void eviction_is_told(struct kit *k) {
    kit_script(k, "cli", "config set maxmemory-policy allkeys-lru");
    open_url(k);
    assert_int_equal(kit_put(k, "o", 100), 0);
    assert_non_null(strstr(k->lines, "set it to noeviction"));
}

const struct kit_test kit_memory_tests[] = {
    {"out of memory under a put", oom_under_a_put},
    {"full, and room again at once", fill_and_empty},
    {"a policy that evicts is told", eviction_is_told},
    {NULL, NULL},
};
