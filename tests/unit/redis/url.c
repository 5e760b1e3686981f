/* The URLs of the Redis backend: what is taken, what is refused, and that no message shows a
 * password. */
#include "tiers/redis/url.h"

/* cmocka needs these before it. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rds_url parse(const char *text) {
    struct rds_url u;
    struct wt_err err;
    if (rds_url_parse(text, &u, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return u;
}

static void plain(void **state) {
    (void)state;
    struct rds_url u = parse("redis://hot.example");
    assert_string_equal(u.seed[0].host, "hot.example");
    assert_int_equal(u.seed[0].port, 6379);
    assert_int_equal(u.n_seeds, 1);
    assert_int_equal(u.connections, 2);
    assert_int_equal(u.depth, 2);
    assert_false(u.tls || u.cluster || u.verify);
    assert_true(u.tls_verify);
    assert_string_equal(u.shown, "redis://hot.example:6379");
    u = parse("redis://10.0.0.7:7000/3?connections=5&depth=4&verify=1");
    assert_int_equal(u.seed[0].port, 7000);
    assert_int_equal(u.db, 3);
    assert_int_equal(u.connections, 5);
    assert_int_equal(u.depth, 4);
    assert_true(u.verify);
    assert_string_equal(u.shown, "redis://10.0.0.7:7000/3");
    u = parse("redis://[2001:db8::1]:7001");
    assert_string_equal(u.seed[0].host, "2001:db8::1");
    assert_int_equal(u.seed[0].port, 7001);
    assert_string_equal(u.shown, "redis://[2001:db8::1]:7001");
}

static void secrets(void **state) {
    (void)state;
    struct rds_url u = parse("redis://me:p%40ss%2fw%3Ard@h:1");
    assert_string_equal(u.user, "me");
    assert_string_equal(u.password, "p@ss/w:rd");
    assert_string_equal(u.shown, "redis://me@h:1");
    u = parse("redis://:only@h");
    assert_string_equal(u.user, "");
    assert_string_equal(u.password, "only");
    assert_string_equal(u.shown, "redis://h:6379");
    char path[] = "/tmp/wt-url-XXXXXX", text[100];
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "from-file\r\nrest", 15), 15);
    snprintf(text, sizeof text, "redis://me@h?password_file=%s", path);
    u = parse(text);
    assert_string_equal(u.password, "from-file");
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(rds_url_parse(text, &u, NULL), WT_EINVAL);
    close(fd);
    unlink(path);
    assert_int_equal(rds_url_parse(text, &u, NULL), WT_EINVAL);
    setenv("WT_TEST_SECRET", "from-env", 1);
    assert_string_equal(parse("redis://h?password_env=WT_TEST_SECRET").password, "from-env");
    unsetenv("WT_TEST_SECRET");
    assert_int_equal(rds_url_parse("redis://h?password_env=WT_TEST_SECRET", &u, NULL), WT_EINVAL);
}

static void other_forms(void **state) {
    (void)state;
    struct rds_url u = parse("redis+unix:///run/redis/s%20ock?db=2");
    assert_string_equal(u.seed[0].host, "/run/redis/s ock");
    assert_int_equal(u.seed[0].port, 0);
    assert_int_equal(u.db, 2);
    u = parse("rediss://h:1?cacert=/c&cert=/a&key=/b");
    assert_true(u.tls && u.tls_verify);
    assert_string_equal(u.cacert, "/c");
    assert_false(parse("rediss://h?tls_verify=0").tls_verify);
    u = parse("redis+cluster://a:1,b,[::1]:3");
    assert_true(u.cluster && !u.tls);
    assert_int_equal(u.n_seeds, 3);
    assert_int_equal(u.seed[1].port, 6379);
    assert_string_equal(u.seed[2].host, "::1");
    assert_string_equal(u.shown, "redis+cluster://a:1,b:6379,[::1]:3");
    assert_true(parse("redis+cluster://a?tls=1&cacert=/c").tls);
}

static void refused(void **state) {
    (void)state;
    static const char *const urls[] = {
        "redis:/h",
        "http://h",
        "redis://",
        "redis://:0",
        "redis://h:0",
        "redis://h:65536",
        "redis://h:12x",
        "redis://h:",
        "redis://[::1",
        "redis://[::1]x",
        "redis://a,b",
        "redis://h/x",
        "redis://h/99999",
        "redis://h?connections=0",
        "redis://h?connections=33",
        "redis://h?depth=99999999999999999999",
        "redis://h?conections=2",
        "redis://h?connections",
        "redis://h?tls=1",
        "redis://h?cacert=/c",
        "redis://h?tls_verify=0",
        "rediss://h?cert=/a",
        "redis://user@h",
        "redis+unix://relative",
        "redis+unix:///s?tls=1",
        "redis+cluster://a/1",
        "redis+cluster://a,,b",
        "redis://u:p%4@h",
        "redis://u:p%00@h",
        "redis://h?verify=2",
        NULL,
    };
    for (size_t i = 0; urls[i]; i++) {
        struct rds_url u = {.db = 77};
        struct wt_err err = {0};
        if (rds_url_parse(urls[i], &u, &err) != WT_EINVAL)
            fail_msg("taken: %s", urls[i]);
        assert_true(strlen(err.text) > 10);
        assert_int_equal(u.db, 77); /* untouched */
    }
}

/* Whatever is wrong with a URL, what may be a password is not repeated. */
static void silent(void **state) {
    (void)state;
    static const char *const urls[] = {
        "redis://u:hunter2@h:x",   "redis://u:hunter2@",       "redis://u:hunter2@h?conections=2",
        "redis://u:a/hunter2@h",   "redis://u:a?hunter2@h",    "redis://u:hunter2%zz@h",
        "redis+foo://u:hunter2@h", "redis://u:a?db=hunter2@h", NULL,
    };
    for (size_t i = 0; urls[i]; i++) {
        struct rds_url u;
        struct wt_err err = {0};
        assert_int_equal(rds_url_parse(urls[i], &u, &err), WT_EINVAL);
        if (strstr(err.text, "hunter2"))
            fail_msg("%s", err.text);
    }
    char big[2000];
    memset(big, 'p', sizeof big);
    memcpy(big, "redis://u:", 10);
    memcpy(big + 1500, "@h", 3);
    struct rds_url u;
    assert_int_equal(rds_url_parse(big, &u, NULL), WT_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),   cmocka_unit_test(secrets), cmocka_unit_test(other_forms),
        cmocka_unit_test(refused), cmocka_unit_test(silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
