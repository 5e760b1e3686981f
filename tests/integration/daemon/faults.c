/* The real wafertierd against damaged copies, missing objects, full and absent tiers, and hostile
 * clients. */
#include "kit.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

enum { SHARDS = 8, SAMPLES = 20 };

/* A byte in the middle of the n-th shard's file is changed. */
static void damage(const char *folder, int n) {
    kit_shell("f=$(find %s/wafers/shards -type f | sort | sed -n %dp); chmod u+w \"$f\"; printf "
              "'\\377\\001' | dd of=\"$f\" bs=1 seek=5000 conv=notrunc status=none",
              folder, n);
}

static void a_damaged_cold_copy_is_never_promoted(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    char cold[96];
    snprintf(cold, sizeof cold, "%s/cold", k->root);
    damage(cold, 3);
    kit_start(k);
    json_decref(kit_report(k, kit_register(k, "wafers"), 0, 0, SHARDS, "cold", size));
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS - 1, 10000);
    kit_until(k, "/v1/stats", "moves.failed", 1, 10000);
    json_t *o = kit_call(k, "GET", "/v1/moves", NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(o, "set_aside")), 1);
    assert_int_equal(kit_int(o, "set_aside.0.shard"), 2);
    const char *code = json_string_value(
        json_object_get(json_array_get(json_object_get(o, "set_aside"), 0), "code"));
    assert_string_equal(code, "CORRUPT");
    json_decref(o);
    assert_int_equal(kit_count(k->hot, "wafers"), SHARDS - 1);
    assert_int_equal(kit_count(cold, "wafers"),
                     SHARDS); /* the truth is never removed, damaged or not */
    kit_sleep(500);
    o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
    assert_int_equal(kit_int(o, "moves.failed"), 1); /* not retried for ever */
    json_decref(o);
}

static void a_damaged_warm_copy_is_replaced(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    char warm[96], one[32];
    snprintf(warm, sizeof warm, "%s/warm", k->root);
    snprintf(one, sizeof one, "%llu", (unsigned long long)size); /* room for nothing: high is 95% */
    k->hot_capacity = one;
    kit_start(k);
    char id[64];
    snprintf(id, sizeof id, "%s", kit_register(k, "wafers"));
    json_decref(kit_report(k, id, 0, 0, SHARDS, "cold", size));
    kit_until(k, "/v1/stats", "tiers.1.shards", SHARDS, 10000);
    assert_int_equal(kit_count(k->hot, "wafers"), 0);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
    for (int i = 1; i <= SHARDS; i++)
        damage(warm, i);
    k->hot_capacity = NULL;
    kit_start(k); /* hot has room now: whatever is read from warm is found out */
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS, 10000);
    assert_int_equal(kit_count_equal(k, k->hot, "wafers"), SHARDS);
}

/* What a job says of copies that it did not find, or found damaged. */
static void lost_copies_come_back(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    char path[96], id[64];
    kit_start(k);
    snprintf(id, sizeof id, "%s", kit_register(k, "wafers"));
    json_decref(kit_report(k, id, 0, 0, SHARDS, "cold", size));
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS, 10000);
    kit_shell("rm \"$(find %s/wafers/shards -type f | sort | head -n 1)\"", k->hot);
    damage(k->hot, 2); /* of what is left: shard 2 */
    assert_int_equal(kit_count_equal(k, k->hot, "wafers"), SHARDS - 2);
    snprintf(path, sizeof path, "/v1/jobs/%s/progress", id);
    json_decref(kit_call(k, "POST", path,
                         "{\"epoch\":0,\"step\":4,\"lost\":[[0,\"hot\",\"missing\"],"
                         "[2,\"hot\",\"damaged\"],[3,\"hot\",\"missing\"],"
                         "[3,\"cold\",\"damaged\"]]}",
                         NULL));
    uint64_t end = kit_now() + 15000;
    while (kit_count_equal(k, k->hot, "wafers") < SHARDS && kit_now() < end)
        kit_sleep(50);
    assert_int_equal(kit_count_equal(k, k->hot, "wafers"), SHARDS);
    json_t *o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
    assert_int_equal(kit_int(o, "reconcile.lost"), 1); /* the other one was there all the time */
    assert_int_equal(kit_int(o, "claims.right"), 1);
    assert_int_equal(kit_int(o, "claims.wrong"), 0);
    json_decref(o);
}

/* A job that calls whole copies damaged empties no tier, and is not believed for ever. */
static void a_liar_empties_no_tier(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    char path[96], body[512];
    kit_start(k);
    const char *id = kit_register(k, "wafers");
    snprintf(path, sizeof path, "/v1/jobs/%s/progress", id);
    json_decref(kit_report(k, id, 0, 0, SHARDS, "cold", size));
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS, 10000);
    size_t len = (size_t)snprintf(body, sizeof body, "{\"epoch\":0,\"step\":4,\"lost\":[");
    for (unsigned s = 0; s < SHARDS; s++)
        len += (size_t)snprintf(body + len, sizeof body - len, "%s[%u,\"hot\",\"damaged\"]",
                                s ? "," : "", s);
    snprintf(body + len, sizeof body - len, "]}");
    uint64_t end = kit_now() + 20000;
    int64_t ignored = 0;
    while (ignored < 10 && kit_now() < end) {
        json_decref(kit_call(k, "POST", path, body, NULL));
        kit_sleep(20);
        json_t *o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
        ignored = kit_int(o, "claims.ignored");
        assert_int_equal(kit_int(o, "claims.right"), 0);
        assert_int_equal(kit_int(o, "tiers.2.shards"), SHARDS);
        json_decref(o);
    }
    json_t *o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
    assert_true(ignored >= 10);
    assert_in_range(kit_int(o, "claims.wrong"), 8, 8 + 4); /* and those that were under way */
    assert_int_equal(kit_int(o, "moves.failed"), 0);
    json_decref(o);
    assert_int_equal(kit_count_equal(k, k->hot, "wafers"), SHARDS);
    assert_true(kit_log_has(k->log, "what it says of copies is ignored from now on"));
}

static void a_drop_needs_the_cold_copy(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    char room[32];
    snprintf(room, sizeof room, "%llu", (unsigned long long)(size * 2));
    k->warm_capacity = "4096";
    snprintf(k->extra, sizeof k->extra, "policy { min_stay = 0s }");
    kit_start(k);
    char id[64];
    snprintf(id, sizeof id, "%s", kit_register(k, "wafers"));
    json_decref(kit_report(k, id, 0, 0, SHARDS, "cold", size));
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS, 10000);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
    kit_shell(
        "cp -r %s/cold/wafers/shards %s/was; rm -f $(find %s/cold/wafers/shards -type f | sort | "
        "head -4)",
        k->root, k->root, k->root);
    k->hot_capacity = room; /* hot is far above its mark now */
    kit_start(k);
    /* Before any of these may leave hot, which holds the last copies, cold is made whole again. */
    kit_until(k, "/v1/stats", "scrub.cold_repaired", 1, 10000);
    kit_until(k, "/v1/stats", "moves.done", 3, 10000);
    kit_sleep(1000);
    kit_shell("for f in $(cd %s/was && find . -type f); do cmp -s %s/was/$f %s/wafers/shards/$f || "
              "cmp -s %s/was/$f %s/cold/wafers/shards/$f || exit 1; done",
              k->root, k->root, k->hot, k->root, k->root);
    json_t *o = kit_call(k, "GET", "/v1/moves", NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(o, "set_aside")), 0);
    json_decref(o);
}

static void a_tier_that_is_away(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    snprintf(k->extra, sizeof k->extra, "mover { backoff = 50ms }");
    kit_shell("mv %s %s.away", k->hot, k->hot);
    kit_write_conf(k);
    kit_shell("sed -i 's|%s\"|%s/below\"|' %s", k->hot, k->hot, k->conf);
    k->pid = kit_spawn(k, k->log, NULL);
    kit_wait_status(k, "degraded", 5000);
    json_decref(kit_report(k, kit_register(k, "wafers"), 0, 0, SHARDS, "cold", size));
    kit_until(k, "/v1/stats", "tiers.1.shards", 0, 5000);
    kit_shell("mv %s.away %s", k->hot, k->hot);
    kit_wait_status(k, "ok", 30000);
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS, 20000);
}

static void wrong_requests_are_answered(void **state) {
    struct kit *k = *state;
    kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    kit_start(k);
    static const struct {
        const char *method, *path, *body;
        int status;
        const char *code;
    } bad[] = {
        {"GET", "/", NULL, 404, "MISSING"},
        {"GET", "/v1/statsx", NULL, 404, "MISSING"},
        {"PUT", "/v1/stats", "x", 405, "INVAL"},
        {"DELETE", "/v1/jobs/", NULL, 404, "MISSING"},
        {"DELETE", "/v1/jobs/j1-00", NULL, 404, "MISSING"},
        {"POST", "/v1/jobs", "", 400, "INVAL"},
        {"POST", "/v1/jobs", "[]", 400, "INVAL"},
        {"POST", "/v1/jobs", "{", 400, "INVAL"},
        {"POST", "/v1/jobs", "{\"name\":\"a\",\"name\":\"b\"}", 400, "INVAL"},
        {"POST", "/v1/jobs", "{\"name\":\"a\",\"dataset\":\"wafers\",\"tiers\":[]}", 400, "INVAL"},
        {"POST", "/v1/jobs", "{\"name\":\"a\",\"dataset\":\"wafers\",\"tiers\":[1]}", 400, "INVAL"},
        {"POST", "/v1/jobs", "{\"name\":\"a\",\"dataset\":\"../x\",\"tiers\":[\"cold\"]}", 400,
         "INVAL"},
        {"POST", "/v1/jobs", "{\"name\":\"a\",\"dataset\":\"nothing\",\"tiers\":[\"cold\"]}", 404,
         "MISSING"},
        {"POST", "/v1/jobs",
         "{\"name\":\"a\",\"dataset\":\"wafers\",\"generation\":9,\"tiers\":[\"cold\"]}", 404,
         "MISSING"},
        {"POST", "/v1/jobs",
         "{\"name\":\"a\",\"dataset\":\"wafers\",\"generation\":-1,\"tiers\":[\"cold\"]}", 400,
         "INVAL"},
        {"POST", "/v1/jobs",
         "{\"name\":\"a\",\"dataset\":\"wafers\",\"tiers\":[\"cold\"],\"plan\":{\"version\":-1}}",
         400, "INVAL"},
        {"POST", "/v1/datasets", "{}", 400, "INVAL"},
        {"POST", "/v1/datasets", "{\"name\":\"nothing\"}", 404, "MISSING"},
        {"POST", "/v1/jobs/j0/progress", "{\"epoch\":0,\"step\":0}", 404, "MISSING"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int status;
        json_t *o = kit_call(k, bad[i].method, bad[i].path, bad[i].body, &status);
        const char *code = json_string_value(json_object_get(o, "code"));
        if (status != bad[i].status || !code || strcmp(code, bad[i].code) != 0)
            fail_msg("%s %s %s: %d %s", bad[i].method, bad[i].path, bad[i].body ? bad[i].body : "",
                     status, code ? code : "-");
        assert_true(json_string_length(json_object_get(o, "error")) > 0);
        json_decref(o);
    }
    char path[96];
    snprintf(path, sizeof path, "/v1/jobs/%s/progress", kit_register(k, "wafers"));
    static const char *const reports[] = {
        "{\"step\":0}",
        "{\"epoch\":0,\"step\":0,\"reads\":{}}",
        "{\"epoch\":0,\"step\":0,\"reads\":[[8,\"cold\",1,1]]}",
        "{\"epoch\":0,\"step\":0,\"reads\":[[-1,\"cold\",1,1]]}",
        "{\"epoch\":0,\"step\":0,\"reads\":[[0,\"cold\",-1,1]]}",
        "{\"epoch\":0,\"step\":0,\"reads\":[[0,\"attic\",1,1]]}",
        "{\"epoch\":0,\"step\":0,\"reads\":[[0,\"cold\",1,1,1]]}",
        "{\"epoch\":0,\"step\":0,\"reads\":[[0,\"cold\",1,1],[0,\"cold\",1]]}",
        "{\"epoch\":0,\"step\":0,\"lost\":{}}",
        "{\"epoch\":0,\"step\":0,\"lost\":[[8,\"hot\",\"missing\"]]}",
        "{\"epoch\":0,\"step\":0,\"lost\":[[0,\"attic\",\"missing\"]]}",
        "{\"epoch\":0,\"step\":0,\"lost\":[[0,\"hot\",\"stolen\"]]}",
        "{\"epoch\":0,\"step\":0,\"bad\":[\"shard\"]}",
        "{\"epoch\":0,\"step\":0,\"bad\":[[\"shard\",7]]}",
        "{\"epoch\":0,\"step\":0,\"next\":[8]}",
        "{\"epoch\":0,\"step\":0,\"next\":[\"a\"]}",
    };
    for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++) {
        int status;
        json_decref(kit_call(k, "POST", path, reports[i], &status));
        assert_int_equal(status, 400);
    }
    json_t *o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
    assert_int_equal(kit_int(o, "reads.total"), 0); /* nothing was half counted */
    json_decref(o);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

static void hostile_clients_are_bounded(void **state) {
    struct kit *k = *state;
    kit_pack(k, "wafers", 2, SAMPLES, 1, 1, 0);
    kit_start(k);
    static char answer[65536];
    /* announced as a gigabyte: refused before it is read */
    const char *huge = "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n{";
    kit_raw(k, huge, strlen(huge), answer, sizeof answer, 3000);
    assert_non_null(strstr(answer, "413"));
    /* chunks without end */
    size_t len = 3 << 20;
    char *chunks = malloc(len);
    assert_non_null(chunks);
    size_t at = (size_t)sprintf(
        chunks, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (at + 5000 < len) {
        at += (size_t)sprintf(chunks + at, "1000\r\n");
        memset(chunks + at, 'a', 4096);
        at += 4096;
        at += (size_t)sprintf(chunks + at, "\r\n");
    }
    kit_raw(k, chunks, at, answer, sizeof answer, 3000);
    free(chunks);
    const char *const junk[] = {"\r\n\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
                                "\x16\x03\x01\x02",
                                "GET /v1/stats HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n"};
    for (size_t i = 0; i < sizeof junk / sizeof junk[0]; i++)
        kit_raw(k, junk[i], strlen(junk[i]), answer, sizeof answer, 300);
    /* 200 connections that say nothing: others are served when they are gone, at the latest after
     * their 10 s */
    int fd[200];
    for (int i = 0; i < 200; i++)
        fd[i] = kit_connect_now(k);
    kit_sleep(100);
    for (int i = 0; i < 200; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    kit_wait_status(k, "ok", 12000);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

static void rights(void **state) {
    struct kit *k = *state;
    if (geteuid() != 0) {
        print_message("SKIPPED: only root can become somebody else\n");
        skip();
    }
    kit_pack(k, "wafers", 2, SAMPLES, 1, 1, 0);
    snprintf(k->extra, sizeof k->extra, "control_mode = \"0666\" control_group = \"daemon\"");
    kit_start(k);
    kit_shell("chmod 755 %s", k->root);
    struct stat st;
    assert_int_equal(stat(k->sock, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0666);
    assert_int_equal(st.st_gid, 1);
    int status;
    assert_int_equal(setegid(65534), 0);
    assert_int_equal(seteuid(65534), 0);
    json_decref(kit_call(k, "GET", "/v1/stats", NULL, NULL));
    static const char *const steering[] = {"/v1/datasets", "/v1/pin",   "/v1/unpin", "/v1/quota",
                                           "/v1/warm",     "/v1/evict", "/v1/reload"};
    for (size_t i = 0; i < sizeof steering / sizeof steering[0]; i++) {
        json_decref(kit_call(k, "POST", steering[i], "{\"name\":\"wafers\",\"dataset\":\"wafers\"}",
                             &status));
        assert_int_equal(status, 403);
    }
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(setegid(1), 0); /* a member of the group */
    assert_int_equal(seteuid(65534), 0);
    json_decref(kit_call(k, "POST", "/v1/datasets", "{\"name\":\"wafers\"}", &status));
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(setegid(0), 0);
    assert_int_equal(status, 200);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

static void a_live_socket_is_refused(void **state) {
    struct kit *k = *state;
    kit_start(k);
    char log[96];
    snprintf(log, sizeof log, "%s/log2", k->root);
    assert_int_equal(kit_wait_exit(kit_spawn(k, log, NULL), 5000), 1);
    assert_true(kit_log_has(log, "another daemon listens there"));
    kit_wait_status(k, "ok", 1000);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
    kit_shell("echo precious > %s", k->sock);
    assert_int_equal(kit_wait_exit(kit_spawn(k, log, NULL), 5000), 1);
    assert_true(kit_log_has(log, "a file that is no socket"));
    assert_true(kit_log_has(k->sock, "precious"));
}

static void jobs_expire(void **state) {
    struct kit *k = *state;
    kit_pack(k, "wafers", 2, SAMPLES, 1, 1, 0);
    snprintf(k->extra, sizeof k->extra, "job_expiry = 300ms");
    kit_start(k);
    kit_register(k, "wafers");
    kit_until(k, "/v1/stats", "jobs_expired", 1, 5000);
    json_t *o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
    assert_int_equal(kit_int(o, "jobs"), 0);
    json_decref(o);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        T(a_damaged_cold_copy_is_never_promoted),
        T(a_damaged_warm_copy_is_replaced),
        T(lost_copies_come_back),
        T(a_liar_empties_no_tier),
        T(a_drop_needs_the_cold_copy),
        T(a_tier_that_is_away),
        T(wrong_requests_are_answered),
        T(hostile_clients_are_bounded),
        T(rights),
        T(a_live_socket_is_refused),
        T(jobs_expire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
