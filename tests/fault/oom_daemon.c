/*
 * Out of memory in the daemon while it answers: each request of the control protocol gets an answer
 * (its own, or an error in JSON) or a closed connection; the daemon goes on and answers the next
 * one.
 */
#include "oom.h"

#include "tests/fuzz/small_daemon.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 3000, CALL_MS = 10000 };

#define JOB                                                                                        \
    "{\"name\":\"train\",\"dataset\":\"wafers\",\"tiers\":[\"cold\",\"warm\",\"own\"],\"plan\":{"  \
    "\"version\":1,"                                                                               \
    "\"samples\":6,\"batch\":2}}"

static const struct request {
    const char *method, *path, *body;
    long status;
} requests[] = {
    {"GET", "/healthz", "", 200},
    {"GET", "/v1/stats", "", 200},
    {"GET", "/v1/tiers", "", 200},
    {"GET", "/v1/datasets", "", 200},
    {"GET", "/v1/jobs", "", 200},
    {"GET", "/v1/moves", "", 200},
    {"GET", "/v1/nothing", "", 404},
    {"POST", "/v1/datasets", "{\"name\":\"wafers\"}", 200},
    {"POST", "/v1/datasets", "{\"name\":\"others\"}", 404},
    {"POST", "/v1/datasets", "{\"name\":", 400},
    {"POST", "/v1/jobs", JOB, 200},
    {"POST", "/v1/jobs/$/progress",
     "{\"epoch\":0,\"step\":3,\"reads\":[[0,\"cold\",1,100],[1,\"own\",2,5]],\"next\":[1,0]}", 200},
    {"POST", "/v1/jobs/$/progress", "{\"epoch\":0,\"step\":3,\"reads\":[[9,\"cold\",1,100]]}", 400},
    {"DELETE", "/v1/jobs/$", "", 200},
    {"POST", "/v1/pin", "{\"dataset\":\"wafers\",\"tier\":\"warm\"}", 200},
    {"POST", "/v1/pin", "{\"dataset\":\"wafers\",\"lot\":\"nowhere\"}", 404},
    {"GET", "/v1/pins", "", 200},
    {"POST", "/v1/unpin", "{\"dataset\":\"others\"}", 404},
    {"POST", "/v1/quota", "{\"dataset\":\"wafers\",\"tier\":\"hot\",\"bytes\":1}", 200},
    {"GET", "/v1/quotas", "", 200},
    {"GET", "/v1/warm", "", 200},
    {"POST", "/v1/warm", "{\"dataset\":\"wafers\",\"tier\":\"warm\"}", 200},
    {"POST", "/v1/evict", "{\"dataset\":\"wafers\",\"tier\":\"warm\"}", 409},
    {"GET", "/v1/shards?dataset=wafers", "", 200},
    {"GET", "/metrics", "", 200},
    {"POST", "/v1/reload", "{}", 200},
};

static bool is_json(const char *text) {
    json_t *json = json_loads(text, 0, NULL);
    bool yes = json_is_object(json) || strncmp(text, "# HELP", 6) == 0; /* of /metrics */
    json_decref(json);
    return yes;
}

/* Does the answer show all that the right one shows? Numbers and the lists of moves change. */
static bool is_whole(const json_t *right, const json_t *got) {
    const char *key;
    json_t *value;
    bool whole = json_typeof(right) == json_typeof(got) || json_is_boolean(right);
    if (json_is_array(right)) {
        whole = whole && json_array_size(right) == json_array_size(got);
        for (size_t i = 0; whole && i < json_array_size(right); i++)
            whole = is_whole(json_array_get(right, i), json_array_get(got, i));
    }
    if (json_is_object(right) && whole)
        json_object_foreach((json_t *)(uintptr_t)right, key, value) {
            const json_t *same = json_object_get(got, key);
            bool moves =
                json_is_array(value) && strstr("running waiting recent set_aside moves", key);
            whole = whole && same && (moves || is_whole(value, same));
        }
    return whole;
}

static void check_whole(json_t **right, const struct small_answer *a, const struct request *r) {
    json_t *got = json_loads(a->body ? a->body : "", 0, NULL);
    if (!*right)
        *right = json_incref(got);
    else if (!is_whole(*right, got))
        fail_msg("%s %s: incomplete after %s failed: %s", r->method, r->path, oom_failed(),
                 a->body);
    json_decref(got);
}

/* One request with the n-th allocation failing; was there one? right: a good answer, from the first
 * call. */
static bool call(struct small_daemon *s, const struct request *r, uint64_t n, json_t **right) {
    struct small_answer a;
    small_daemon_job(s);
    small_daemon_prepare(s, r->method, r->path, r->body, strlen(r->body));
    oom_arm(n);
    small_daemon_exchange(s, CALL_MS, &a);
    bool failed = oom_disarm();
    if (!a.ended)
        fail_msg("%s %s: no answer after %s failed", r->method, r->path, oom_failed());
    if (a.status != 0 && a.status != r->status && a.status < 500)
        fail_msg("%s %s: %ld after %s failed: %s", r->method, r->path, a.status, oom_failed(),
                 a.text);
    if (a.status != 0 && !is_json(a.body ? a.body : ""))
        fail_msg("%s %s: no JSON after %s failed: %s", r->method, r->path, oom_failed(), a.text);
    if (a.status == r->status)
        check_whole(right, &a, r);
    if (!failed)
        assert_int_equal(a.status, r->status);
    return failed;
}

static void answers(void **state) {
    struct small_daemon *s = *state;
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        uint64_t n = 1;
        unsigned before = oom_descriptors();
        json_t *right = NULL, *health = NULL;
        call(s, &requests[i], 0, &right);
        while (call(s, &requests[i], n, &right)) {
            call(s, &requests[0], 0, &health); /* it lives */
            if (n % 16 == 0)
                oom_check_leaks();
            assert_true(++n < MOST);
        }
        json_decref(right);
        json_decref(health);
        assert_true(n > 1);
        for (int wait = 0; wait < 200 && oom_descriptors() > before + 2; wait++)
            usleep(10000); /* a move or a lease is being written */
        assert_in_range(oom_descriptors(), 0, before + 2);
        printf("%s %s: %llu allocations failed\n", requests[i].method, requests[i].path,
               (unsigned long long)n - 1);
    }
}

static int start(void **state) {
    static struct small_daemon s;
    small_daemon_start(&s);
    *state = &s;
    return 0;
}

static int stop(void **state) {
    small_daemon_stop(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(answers, start, stop)};
    oom_init();
    alarm(580);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
