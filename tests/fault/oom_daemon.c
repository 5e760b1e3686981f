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
};

static bool is_json(const char *text) {
    json_t *json = json_loads(text, 0, NULL);
    bool yes = json_is_object(json);
    json_decref(json);
    return yes;
}

/* One request with the n-th allocation failing; was there one? */
static bool call(struct small_daemon *s, const struct request *r, uint64_t n) {
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
    if (!failed)
        assert_int_equal(a.status, r->status);
    return failed;
}

static void answers(void **state) {
    struct small_daemon *s = *state;
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        uint64_t n = 1;
        unsigned before = oom_descriptors();
        while (call(s, &requests[i], n)) {
            call(s, &requests[0], 0); /* it lives */
            if (n % 16 == 0)
                oom_check_leaks();
            assert_true(++n < MOST);
        }
        assert_true(n > 1);
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
