/*
 * Faults under a rados: tier, on a real cluster: nothing hangs past its deadline by more than a
 * second, the error says what broke, nothing that was committed is lost, and the tier comes back by
 * itself.
 */
#include "rados_util.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 20 << 20 }; /* two parts and a half */

static void reads_well(struct fault *f, const char *key, const uint8_t *data, size_t len) {
    uint8_t *buf = malloc(len);
    size_t got = 0;
    fault_well(f, fault_get(f, key, 0, buf, len, &got));
    assert_int_equal(got, len);
    assert_memory_equal(buf, data, len);
    free(buf);
}

static bool blames_tier(int rc) {
    return rc == WT_EDOWN || rc == WT_ETIMEDOUT;
}

/* ---- OSD ---- */

static void osd_killed_in_reads(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 1), *buf = malloc(SIZE);
    size_t got;
    fault_well(f, fault_put(f, "a", data, SIZE));
    fault_daemon("kill", "osd.0");
    for (int i = 0; i < 4; i++)
        assert_true(blames_tier(fault_get(f, "a", 0, buf, SIZE, &got)));
    assert_true(wt_tier_is_down(f->tier));
    fault_daemon("up", "osd.0");
    fault_until_stat(f, "a", 0);
    assert_false(wt_tier_is_down(f->tier));
    reads_well(f, "a", data, SIZE);
    free(buf);
    free(data);
}

static void osd_stopped_in_reads(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 2), *buf = malloc(SIZE);
    size_t got;
    fault_well(f, fault_put(f, "a", data, SIZE));
    reads_well(f, "a", data, SIZE);
    fault_signal("osd.0", SIGSTOP);
    assert_int_equal(fault_get(f, "a", 0, buf, SIZE, &got), WT_ETIMEDOUT);
    /* It is ours again: the late answers must not arrive in it. */
    memset(buf, 0x5a, SIZE);
    fault_signal("osd.0", SIGCONT);
    fault_until_stat(f, "a", 0);
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(buf[i], 0x5a);
    reads_well(f, "a", data, SIZE);
    free(buf);
    free(data);
}

static void osd_killed_in_a_put(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 3);
    struct wt_req open = {.op = WT_OP_PUT_OPEN, .key = "p", .size = SIZE};
    fault_well(f, fault_do(f, &open));
    struct wt_req one = {.op = WT_OP_PUT_WRITE, .put = open.put, .src = data, .len = WT_PART};
    fault_well(f, fault_do(f, &one));
    fault_daemon("kill", "osd.0");
    struct wt_req two = {.op = WT_OP_PUT_WRITE,
                         .put = open.put,
                         .off = WT_PART,
                         .src = data + WT_PART,
                         .len = WT_PART};
    assert_int_equal(fault_do(f, &two), WT_ETIMEDOUT);
    struct wt_req end = {.op = WT_OP_PUT_ABORT, .put = open.put};
    fault_do(f, &end);
    fault_daemon("up", "osd.0");
    fault_until_stat(f, "p", WT_EMISSING);
    /* The abort went on behind the scenes. */
    for (int i = 0; i < 500 && fault_count(f) > 0; i++)
        fault_stat(f, "p");
    assert_int_equal(fault_count(f), 0);
    fault_well(f, fault_put(f, "p", data, SIZE));
    reads_well(f, "p", data, SIZE);
    free(data);
}

/* Its outcome is unknown; it must be one of the two. */
static void osd_stopped_in_a_commit(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 4);
    struct wt_req open = {.op = WT_OP_PUT_OPEN, .key = "c", .size = SIZE};
    fault_well(f, fault_do(f, &open));
    for (size_t off = 0; off < SIZE; off += WT_PART) {
        struct wt_req part = {.op = WT_OP_PUT_WRITE,
                              .put = open.put,
                              .off = off,
                              .src = data + off,
                              .len = SIZE - off < WT_PART ? SIZE - off : (size_t)WT_PART};
        fault_well(f, fault_do(f, &part));
    }
    fault_signal("osd.0", SIGSTOP);
    struct wt_req end = {.op = WT_OP_PUT_COMMIT, .put = open.put, .timeout_ms = 500};
    assert_int_equal(fault_do(f, &end), WT_ETIMEDOUT);
    fault_signal("osd.0", SIGCONT);
    int rc = WT_EDOWN;
    for (int i = 0; i < 500 && blames_tier(rc); i++)
        rc = fault_stat(f, "c");
    if (rc == 0) {
        reads_well(f, "c", data, SIZE);
        assert_int_equal(fault_put(f, "c", data, SIZE), WT_EEXISTS);
    } else {
        assert_int_equal(rc, WT_EMISSING);
        for (int i = 0; i < 500 && fault_count(f) > 0; i++)
            fault_stat(f, "c");
        assert_int_equal(fault_count(f), 0);
        fault_well(f, fault_put(f, "c", data, SIZE));
    }
    free(data);
}

static void osd_restarted_under_load(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 5), *buf = malloc(SIZE);
    unsigned good = 0, bad = 0;
    size_t got;
    fault_well(f, fault_put(f, "a", data, SIZE));
    uint64_t begin = uv_hrtime();
    for (int i = 0; good < 40 && uv_hrtime() - begin < UINT64_C(40000000000); i++) {
        if (i == 10)
            fault_daemon("kill", "osd.0");
        if (i == 13)
            fault_daemon("up", "osd.0");
        int rc = fault_get(f, "a", 0, buf, SIZE, &got);
        assert_true(rc == 0 || blames_tier(rc));
        if (rc == 0)
            assert_memory_equal(buf, data, SIZE);
        good += rc == 0;
        bad += rc != 0;
        if (rc != 0)
            uv_sleep(50);
    }
    assert_true(bad > 0);
    assert_int_equal(good, 40);
    fault_until_stat(f, "a", 0);
    reads_well(f, "a", data, SIZE);
    free(buf);
    free(data);
}

static void closed_while_the_osd_is_stopped(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 6);
    struct wt_req open = {.op = WT_OP_PUT_OPEN, .key = "p", .size = SIZE};
    fault_well(f, fault_do(f, &open));
    struct wt_req one = {.op = WT_OP_PUT_WRITE, .put = open.put, .src = data, .len = WT_PART};
    fault_well(f, fault_do(f, &one));
    fault_signal("osd.0", SIGSTOP);
    fault_close(f); /* checks its time */
    fault_signal("osd.0", SIGCONT);
    fault_open(f);
    fault_until_stat(f, "p", WT_EMISSING);
    free(data);
}

/* ---- mon ---- */

static void mon_killed(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 7);
    fault_well(f, fault_put(f, "a", data, SIZE));
    fault_daemon("kill", "mon.a");
    /* What is connected needs no monitor. */
    for (int i = 0; i < 5; i++)
        reads_well(f, "a", data, SIZE);
    fault_well(f, fault_put(f, "b", data, SIZE));
    /* What is not is down, and comes back with it. */
    fault_close(f);
    fault_open(f);
    int rc = 0;
    for (int i = 0; i < 3; i++)
        rc = fault_stat(f, "a");
    assert_true(blames_tier(rc));
    assert_true(wt_tier_is_down(f->tier));
    fault_daemon("up", "mon.a");
    fault_until_stat(f, "b", 0);
    reads_well(f, "b", data, SIZE);
    free(data);
}

/* ---- pool ---- */

static void pool_removed(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 8), *buf = malloc(SIZE);
    size_t got;
    fault_well(f, fault_put(f, "a", data, SIZE));
    reads_well(f, "a", data, SIZE);
    fault_mon(f, NULL,
              "{\"prefix\":\"osd pool delete\",\"pool\":\"%s\",\"pool2\":\"%s\","
              "\"yes_i_really_really_mean_it\":true}",
              f->pool, f->pool);
    /* As soon as the OSD knows it, and not "missing": nobody may take the data set for deleted. */
    int failures = 0;
    for (int i = 0; i < 1000 && failures < 5; i++) {
        int rc = fault_get(f, "a", 0, buf, SIZE, &got);
        assert_true(blames_tier(rc) || (rc == 0 && failures == 0));
        failures += rc != 0;
    }
    assert_int_equal(failures, 5);
    assert_true(blames_tier(fault_put(f, "b", data, SIZE)));
    assert_true(wt_tier_is_down(f->tier));
    rados_ioctx_destroy(f->io);
    fault_mon(
        f, NULL,
        "{\"prefix\":\"osd pool create\",\"pool\":\"%s\",\"pg_num\":4,\"pgp_num\":4,\"size\":1}",
        f->pool);
    assert_int_equal(rados_ioctx_create(f->ceph, f->pool, &f->io), 0);
    fault_until_stat(f, "a", WT_EMISSING);
    fault_well(f, fault_put(f, "a", data, SIZE));
    reads_well(f, "a", data, SIZE);
    free(buf);
    free(data);
}

static int put_numbered(struct fault *f, const uint8_t *data, int i) {
    char key[32];
    snprintf(key, sizeof key, "q/%d", i);
    return fault_put(f, key, data, WT_PART);
}

/* Only the manager's figures tell the monitors that a quota is reached. */
static void pool_at_its_quota(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(WT_PART, 9);
    fault_daemon("up", "mgr.x");
    fault_mon(f, NULL,
              "{\"prefix\":\"osd pool "
              "set-quota\",\"pool\":\"%s\",\"field\":\"max_bytes\",\"val\":\"16777216\"}",
              f->pool);
    int rc = 0, n = 0;
    uint64_t begin = uv_hrtime();
    while (rc == 0 && uv_hrtime() - begin < UINT64_C(60000000000)) {
        rc = put_numbered(f, data, n++);
        uv_sleep(100);
    }
    assert_int_equal(rc, WT_EFULL);
    for (int i = 0; i < 5; i++)
        assert_int_equal(put_numbered(f, data, 1000 + i), WT_EFULL);
    assert_false(wt_tier_is_down(f->tier)); /* full is not down */
    reads_well(f, "q/0", data, WT_PART);
    /* Room can be made. */
    fault_well(f, fault_remove(f, "q/0"));
    assert_int_equal(fault_stat(f, "q/0"), WT_EMISSING);
    fault_mon(
        f, NULL,
        "{\"prefix\":\"osd pool set-quota\",\"pool\":\"%s\",\"field\":\"max_bytes\",\"val\":\"0\"}",
        f->pool);
    begin = uv_hrtime();
    while ((rc = put_numbered(f, data, 2000)) == WT_EFULL &&
           uv_hrtime() - begin < UINT64_C(60000000000))
        uv_sleep(100);
    assert_int_equal(rc, 0);
    free(data);
}

/* ---- objects damaged by hand ---- */

static void damaged(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 10), *buf = malloc(SIZE), bit[1];
    char part[300];
    size_t got;
    for (int way = 0; way < 5; way++) {
        char key[32];
        snprintf(key, sizeof key, "d%d", way);
        fault_well(f, fault_put(f, key, data, SIZE));
        if (way % 2)
            reads_well(f, key, data, SIZE); /* its head is cached */
        fault_part(f, key, part);
        if (way == 0) {
            assert_int_equal(rados_trunc(f->io, part, 1000), 0);
        } else if (way == 1) {
            assert_int_equal(rados_read(f->io, part, (char *)bit, 1, 12345), 1);
            bit[0] ^= 4;
            assert_int_equal(rados_write(f->io, part, (char *)bit, 1, 12345), 0);
        } else if (way == 2) {
            assert_int_equal(rados_remove(f->io, part), 0);
        } else if (way == 3) {
            fault_close(f); /* no cached head: that is what is damaged now */
            fault_open(f);
            assert_int_equal(rados_read(f->io, key, (char *)bit, 1, 50), 1);
            bit[0] ^= 1;
            assert_int_equal(rados_write(f->io, key, (char *)bit, 1, 50), 0);
        } else {
            assert_int_equal(rados_trunc(f->io, key, 20), 0);
        }
        for (int i = 0; i < 4; i++)
            assert_int_equal(fault_get(f, key, 0, buf, SIZE, &got), WT_ECORRUPT);
        /* The tier is well, and so are the parts that are. */
        assert_false(wt_tier_is_down(f->tier));
        if (way < 3) {
            fault_well(f, fault_get(f, key, WT_PART, buf, SIZE, &got));
            assert_int_equal(got, SIZE - WT_PART);
            assert_memory_equal(buf, data + WT_PART, got);
        }
        /* It can be removed and put again. */
        fault_well(f, fault_remove(f, key));
        fault_well(f, fault_put(f, key, data, SIZE));
        reads_well(f, key, data, SIZE);
    }
    free(buf);
    free(data);
}

/* Another client replaces what this one has cached. */
static void changed_behind_its_back(void **state) {
    struct fault *f = *state;
    struct wt_tier *other;
    struct wt_err err;
    uint8_t *one = fault_bytes(SIZE, 11), *two = fault_bytes(SIZE + 5, 12);
    assert_int_equal(wt_sync_open(f->sync, &f->opts, &other, &err), 0);
    fault_well(f, fault_put(f, "x", one, SIZE));
    reads_well(f, "x", one, SIZE);
    assert_int_equal(wt_sync_remove(f->sync, other, "x", &err), 0);
    uint8_t b[10];
    size_t got;
    assert_int_equal(fault_get(f, "x", 0, b, 10, &got), WT_EMISSING);
    assert_int_equal(wt_sync_write(f->sync, other, "x", one, SIZE, 0, &err), 0);
    reads_well(f, "x", one, SIZE);
    assert_int_equal(wt_sync_remove(f->sync, other, "x", &err), 0);
    assert_int_equal(wt_sync_write(f->sync, other, "x", two, SIZE + 5, 0, &err), 0);
    reads_well(f, "x", two, SIZE + 5);
    assert_int_equal(wt_sync_write(f->sync, other, "x", one, SIZE, WT_PUT_REPLACE, &err), 0);
    reads_well(f, "x", one, SIZE);
    assert_int_equal(fault_count(f), 4); /* head and three parts, nothing old */
    free(one);
    free(two);
}

/* ---- rights ---- */

static void open_as(struct fault *f, const char *name, const char *caps) {
    char keyring[320];
    const char *folder = getenv("WT_TEST_CEPH");
    char *key = NULL;
    fault_mon(f, NULL, "{\"prefix\":\"auth rm\",\"entity\":\"client.%s\"}", name);
    fault_mon(
        f, &key,
        "{\"prefix\":\"auth get-or-create\",\"entity\":\"client.%s\",\"caps\":[\"mon\",\"allow r\","
        "\"osd\",\"%s\"],\"format\":\"plain\"}",
        name, caps);
    snprintf(keyring, sizeof keyring, "%s/%s.keyring", folder, name);
    FILE *out = fopen(keyring, "w");
    assert_non_null(out);
    fputs(key, out);
    fclose(out);
    free(key);
    fault_close(f);
    int n = snprintf(f->opts.url, sizeof f->opts.url, "rados://%s?conf=%s&id=%s&keyring=%s",
                     f->pool, f->conf, name, keyring);
    assert_true(n > 0 && (size_t)n < sizeof f->opts.url);
    fault_open(f);
}

static int count_entries(void *arg, const struct wt_entry *entry) {
    (void)entry;
    ++*(int *)arg;
    return 0;
}

/* The rights that the operations page names are enough, and no more than enough. */
static void least_rights(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 13);
    struct wt_err err;
    char caps[200];
    snprintf(caps, sizeof caps, "allow rwx pool=%s", f->pool);
    open_as(f, "wt-daemon", caps);
    fault_well(f, fault_put(f, "a", data, SIZE));
    struct wt_req lock = {.op = WT_OP_LOCK, .key = "l", .owner = "me", .ttl_ms = 5000};
    fault_well(f, fault_do(f, &lock));
    fault_well(f, fault_remove(f, "a"));
    fault_well(f, fault_put(f, "a", data, SIZE));
    struct wt_req usage = {.op = WT_OP_USAGE};
    fault_well(f, fault_do(f, &usage));

    snprintf(caps, sizeof caps, "allow r pool=%s", f->pool);
    open_as(f, "wt-loader", caps);
    reads_well(f, "a", data, SIZE);
    int n = 0;
    assert_int_equal(wt_sync_list(f->sync, f->tier, "", 0, count_entries, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_int_equal(fault_put(f, "b", data, SIZE), WT_EDENIED);
    assert_int_equal(fault_remove(f, "a"), WT_EDENIED);
    struct wt_req again = {.op = WT_OP_LOCK, .key = "l", .owner = "me", .ttl_ms = 5000};
    assert_int_equal(fault_do(f, &again), WT_EDENIED);
    assert_false(wt_tier_is_down(f->tier));

    /* A key that is not known: down, and the reason says so. */
    fault_mon(f, NULL, "{\"prefix\":\"auth rm\",\"entity\":\"client.wt-loader\"}");
    fault_close(f);
    fault_open(f);
    struct wt_req stat = {.op = WT_OP_STAT, .key = "a"};
    assert_true(blames_tier(fault_do(f, &stat)));
    fault_mon(f, NULL, "{\"prefix\":\"auth rm\",\"entity\":\"client.wt-daemon\"}");
    free(data);
}

/* ---- locks ---- */

static void a_lock_expires(void **state) {
    struct fault *f = *state;
    struct wt_tier *other;
    struct wt_err err;
    assert_int_equal(wt_sync_open(f->sync, &f->opts, &other, &err), 0);
    struct wt_req one = {.op = WT_OP_LOCK, .key = "l", .owner = "one", .ttl_ms = 1500};
    struct wt_req two = {.op = WT_OP_LOCK, .key = "l", .owner = "two", .ttl_ms = 1500};
    assert_int_equal(wt_sync_do(f->sync, f->tier, &one), 0);
    for (int i = 0; i < 3; i++) { /* renewed beyond its first time */
        assert_int_equal(wt_sync_do(f->sync, other, &two), WT_ELOCKED);
        uv_sleep(800);
        assert_int_equal(wt_sync_do(f->sync, f->tier, &one), 0);
    }
    uint64_t begin = uv_hrtime();
    while (wt_sync_do(f->sync, other, &two) == WT_ELOCKED)
        uv_sleep(20);
    uint64_t ms = (uv_hrtime() - begin) / 1000000;
    assert_true(ms > 1000 && ms < 3000);
    assert_int_equal(wt_sync_do(f->sync, f->tier, &one), WT_ELOCKED);
    assert_non_null(strstr(one.err.text, "two"));
}

int main(void) {
#define T(test) cmocka_unit_test_setup_teardown(test, fault_setup, fault_teardown)
    const struct CMUnitTest tests[] = {
        T(osd_killed_in_reads),
        T(osd_stopped_in_reads),
        T(osd_killed_in_a_put),
        T(osd_stopped_in_a_commit),
        T(osd_restarted_under_load),
        T(closed_while_the_osd_is_stopped),
        T(mon_killed),
        T(pool_removed),
        T(pool_at_its_quota),
        T(damaged),
        T(changed_behind_its_back),
        T(least_rights),
        T(a_lock_expires),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
