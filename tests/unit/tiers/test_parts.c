/* The pure parts: circuit breaker, cost, deadline heap, URLs, keys. */
#include "kit.h"

#include "tiers/backend.h"
#include "tiers/breaker.h"
#include "tiers/cost.h"
#include "tiers/deadline.h"
#include "tiers/url.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- breaker ---- */

static void breaker_opens_and_closes(void **state) {
    (void)state;
    struct wt_breaker b = {0};
    assert_int_equal(wt_breaker_result(&b, WT_EIO, false), WT_BREAKER_STAYS);
    assert_int_equal(wt_breaker_result(&b, WT_ETIMEDOUT, false), WT_BREAKER_STAYS);
    assert_false(b.open);
    assert_int_equal(wt_breaker_result(&b, WT_EDOWN, false), WT_BREAKER_OPENS);
    assert_true(b.open);
    assert_int_equal(wt_breaker_result(&b, WT_EDOWN, true), WT_BREAKER_STAYS);
    assert_int_equal(wt_breaker_result(&b, 0, true), WT_BREAKER_CLOSES);
    assert_false(b.open);
    assert_int_equal(wt_breaker_result(&b, 0, false), WT_BREAKER_STAYS);
}

static void breaker_blames_the_right_ones(void **state) {
    (void)state;
    static const int harmless[] = {WT_EFULL,     WT_EDENIED, WT_ELOCKED,  WT_EMISSING,
                                   WT_ECORRUPT,  WT_EEXISTS, WT_EINVAL,   WT_ENOMEM,
                                   WT_ECANCELED, WT_EBUSY,   WT_ECHANGED, 42};
    struct wt_breaker b = {0};
    for (int round = 0; round < 10; round++)
        for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
            assert_int_equal(wt_breaker_result(&b, harmless[i], false), WT_BREAKER_STAYS);
    /* What proves that the tier answers ends a row of failures... */
    wt_breaker_result(&b, WT_EIO, false);
    wt_breaker_result(&b, WT_EIO, false);
    wt_breaker_result(&b, WT_EMISSING, false);
    assert_int_equal(wt_breaker_result(&b, WT_EIO, false), WT_BREAKER_STAYS);
    /* ...what the caller broke or canceled does not. */
    wt_breaker_result(&b, WT_ECANCELED, false);
    assert_int_equal(wt_breaker_result(&b, WT_EIO, false), WT_BREAKER_STAYS);
    wt_breaker_result(&b, WT_EINVAL, false);
    assert_int_equal(wt_breaker_result(&b, WT_EIO, false), WT_BREAKER_OPENS);
    /* Nor does it close an open one; FULL does: the tier answers. */
    assert_int_equal(wt_breaker_result(&b, WT_ECANCELED, false), WT_BREAKER_STAYS);
    assert_true(b.open);
    assert_int_equal(wt_breaker_result(&b, WT_EFULL, false), WT_BREAKER_CLOSES);
}

static void breaker_backs_off(void **state) {
    (void)state;
    struct wt_breaker b = {0};
    assert_int_equal(wt_breaker_trip(&b), WT_BREAKER_OPENS);
    assert_int_equal(wt_breaker_trip(&b), WT_BREAKER_STAYS);
    uint32_t last = 0;
    for (int i = 0; i < 20; i++) {
        uint32_t wait = wt_breaker_backoff(&b);
        assert_true(wait >= last && wait <= WT_BREAKER_BACKOFF_MAX_MS);
        last = wait;
    }
    assert_int_equal(last, WT_BREAKER_BACKOFF_MAX_MS);
    /* A probe's success alone does not forget it, a real one does. */
    wt_breaker_result(&b, 0, true);
    assert_int_equal(wt_breaker_backoff(&b), WT_BREAKER_BACKOFF_MAX_MS);
    wt_breaker_result(&b, 0, false);
    assert_int_equal(wt_breaker_backoff(&b), WT_BREAKER_BACKOFF_MS);
}

/* ---- cost ---- */

static const uint64_t second = 1000000000;

static void cost_learns(void **state) {
    (void)state;
    struct wt_cost c;
    wt_cost_init(&c, 200);
    assert_true(fabs(wt_cost_of(&c, 0, 0, 8, second) - 200) < 1e-6);
    /* A tier of 1 ms and 100 MB/s. */
    uint64_t now = 10 * second;
    for (int i = 0; i < 200; i++) {
        wt_cost_sample(&c, 8 << 20, 1000 + (8 << 20) / 100.0, now);
        wt_cost_sample(&c, 4096, 1000 + 4096 / 100.0, now);
        now += 1000;
    }
    double got = wt_cost_of(&c, 8 << 20, 0, 8, now);
    double want = 1000 + (8 << 20) / 100.0;
    assert_true(fabs(got - want) / want < 0.05);
    assert_true(fabs(wt_cost_of(&c, 0, 0, 8, now) - 1000) < 50);
    /* With a queue before it. */
    assert_true(fabs(wt_cost_of(&c, 1 << 20, 16, 8, now) / wt_cost_of(&c, 1 << 20, 0, 8, now) - 3) <
                1e-6);
}

static void cost_forgets(void **state) {
    (void)state;
    struct wt_cost c;
    wt_cost_init(&c, 100);
    wt_cost_failed(&c, 10e6, second);
    assert_true(wt_cost_of(&c, 0, 0, 1, second) > 9e6);
    double half = wt_cost_of(&c, 0, 0, 1, second + WT_COST_HALF_LIFE_S * second);
    assert_true(fabs(half - (100 + (10e6 - 100) / 2)) < 1);
    assert_true(wt_cost_of(&c, 0, 0, 1, second + 1000 * second) < 200);
    /* A clock that steps back does no harm. */
    assert_true(wt_cost_of(&c, 0, 0, 0, 0) > 9e6);
    /* What was forgotten does not come back with the next good read. */
    wt_cost_sample(&c, 4096, 100, second + 1000 * second);
    assert_true(wt_cost_of(&c, 0, 0, 1, second + 1000 * second) < 200);
}

/* Whole objects alone are read: they tell that the latency is less than it was taken for. */
static void cost_of_large_reads(void **state) {
    (void)state;
    struct wt_cost c;
    wt_cost_init(&c, 100);
    wt_cost_failed(&c, 1e6, second);
    for (int i = 0; i < 40; i++)
        wt_cost_sample(&c, 8 << 20, 10000, second);
    assert_true(wt_cost_of(&c, 0, 0, 1, second) < 20000);
}

static void cost_stays_sane(void **state) {
    (void)state;
    struct wt_cost c;
    wt_cost_init(&c, 1000);
    /* Faster than the prior says is possible: never nothing, never negative. */
    for (uint64_t i = 1; i < 1000; i++) {
        wt_cost_sample(&c, 64 << 20, 1, i);
        wt_cost_sample(&c, 1, 0.5, i);
        wt_cost_sample(&c, 64 << 20, 0, i);
        double cost = wt_cost_of(&c, 1 << 20, 0, 1, i);
        assert_true(cost > 0 && isfinite(cost));
    }
}

/* ---- deadlines ---- */

static void deadlines_in_order(void **state) {
    (void)state;
    enum { N = 2000 };
    struct wt_deadlines d = {0};
    struct wt_req *req = calloc(N, sizeof *req);
    assert_null(wt_deadlines_first(&d));
    unsigned seed = 1;
    for (int i = 0; i < N; i++) {
        req[i].deadline_ns = (uint64_t)rand_r(&seed) % 500;
        assert_int_equal(wt_deadlines_add(&d, &req[i]), 0);
    }
    for (int i = 0; i < N; i += 3)
        wt_deadlines_remove(&d, &req[i]);
    for (int i = 1; i < N; i += 3) {
        req[i].deadline_ns = (uint64_t)rand_r(&seed) % 5000;
        wt_deadlines_moved(&d, &req[i]);
    }
    uint64_t last = 0;
    size_t n = 0;
    struct wt_req *first;
    while ((first = wt_deadlines_first(&d))) {
        assert_true(first->deadline_ns >= last);
        last = first->deadline_ns;
        wt_deadlines_remove(&d, first);
        n++;
    }
    assert_int_equal(n, N - (N + 2) / 3);
    wt_deadlines_free(&d);
    free(req);
}

/* ---- URLs and keys ---- */

static void urls(void **state) {
    (void)state;
    struct wt_url u;
    struct wt_err err;
    assert_int_equal(wt_url_parse("file:///srv/a%20b%2fc?bounce=1", &u, &err), 0);
    assert_string_equal(u.scheme, "file");
    assert_string_equal(u.authority, "");
    assert_string_equal(u.path, "/srv/a b/c");
    assert_int_equal(u.n_params, 1);
    assert_string_equal(u.param[0].name, "bounce");
    assert_string_equal(u.param[0].value, "1");
    assert_int_equal(wt_url_parse("rados://pool?conf=%2Fetc%2fceph.conf&user=a%26b", &u, &err), 0);
    assert_string_equal(u.authority, "pool");
    assert_string_equal(u.path, "");
    assert_int_equal(u.n_params, 2);
    assert_string_equal(u.param[0].value, "/etc/ceph.conf");
    assert_string_equal(u.param[1].value, "a&b");
    assert_int_equal(wt_url_parse("redis://host:6379", &u, &err), 0);
    assert_string_equal(u.authority, "host:6379");
    static const char *const bad[] = {"",
                                      "file",
                                      "file:/x",
                                      "://x",
                                      "file:///a%",
                                      "file:///a%2",
                                      "file:///a%zz",
                                      "file:///a%00b",
                                      "file:///a#b",
                                      "file:///a?",
                                      "file:///a?x",
                                      "file:///a?=1",
                                      "averyveryverylongscheme:///a",
                                      "f://?a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1",
                                      NULL};
    for (size_t i = 0; bad[i]; i++) {
        bool only_question = strcmp(bad[i], "file:///a?") == 0;
        assert_int_equal(wt_url_parse(bad[i], &u, &err), only_question ? 0 : WT_EINVAL);
    }
    char longest[2 * WT_URL_MAX];
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "file:///", 8);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(wt_url_parse(longest, &u, &err), WT_EINVAL);
}

static void schemes_and_urls_of_tiers(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "srv/x",
                                      "http://x/y",
                                      "file://",
                                      "file:///",
                                      "file:////",
                                      "file://h/x",
                                      "file:///x?mmap=1",
                                      "file:///x?bounce=2",
                                      "file:///x?mount=1",
                                      NULL};
    uv_loop_t loop;
    uv_loop_init(&loop);
    for (size_t i = 0; bad[i]; i++) {
        struct wt_tier_opts opts = {.name = "t"};
        strcpy(opts.url, bad[i]);
        struct wt_tier *tier = NULL;
        struct wt_err err = {0};
        assert_int_equal(wt_tier_open(&loop, &opts, NULL, &tier, &err), WT_EINVAL);
        assert_null(tier);
        assert_non_null(strstr(err.text, "tier t"));
    }
    struct wt_tier_opts deep = {.name = "t", .url = "file:///tmp/x", .depth = 5000};
    struct wt_tier *tier = NULL;
    assert_int_equal(wt_tier_open(&loop, &deep, NULL, &tier, NULL), WT_EINVAL);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void keys(void **state) {
    (void)state;
    assert_int_equal(wt_key_check("wafers/shards/0000/00000000-ab.tar.zst", NULL), 0);
    assert_int_equal(wt_key_check(".wafertierd.lock", NULL), 0);
    assert_int_equal(wt_key_check("a/...", NULL), 0);
    struct wt_err err;
    assert_int_equal(wt_key_check("a/../b", &err), WT_EINVAL);
    assert_non_null(strstr(err.text, "a/../b"));
    assert_int_equal(wt_key_check(NULL, NULL), WT_EINVAL);
    assert_int_equal(wt_key_check("", NULL), WT_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(breaker_opens_and_closes),
        cmocka_unit_test(breaker_blames_the_right_ones),
        cmocka_unit_test(breaker_backs_off),
        cmocka_unit_test(cost_learns),
        cmocka_unit_test(cost_forgets),
        cmocka_unit_test(cost_of_large_reads),
        cmocka_unit_test(cost_stays_sane),
        cmocka_unit_test(deadlines_in_order),
        cmocka_unit_test(urls),
        cmocka_unit_test(schemes_and_urls_of_tiers),
        cmocka_unit_test(keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
