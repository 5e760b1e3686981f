/* The table of paths: who may do what. What is added to it without thought fails here. */
#include "daemon/routes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Nothing changes without rights; what only looks needs none. */
static void what_changes_needs_rights(void **state) {
    (void)state;
    for (size_t i = 0; i < wt_daemon_n_routes; i++) {
        const struct wt_route *r = &wt_daemon_routes[i];
        bool looks = strcmp(r->method, "GET") == 0;
        if (looks != !(r->flags & WT_ROUTE_CHANGES))
            fail_msg("%s %s", r->method, r->path);
    }
}

/* Other hosts may look, and register, report and end jobs. */
static void other_hosts_steer_nothing(void **state) {
    (void)state;
    unsigned jobs = 0;
    for (size_t i = 0; i < wt_daemon_n_routes; i++) {
        const struct wt_route *r = &wt_daemon_routes[i];
        bool job = strncmp(r->path, "/v1/jobs", 8) == 0;
        jobs += job && (r->flags & WT_ROUTE_CHANGES);
        if ((r->flags & WT_ROUTE_REMOTE) && (r->flags & WT_ROUTE_CHANGES) && !job)
            fail_msg("%s %s", r->method, r->path);
    }
    assert_int_equal(jobs, 3);
}

static void no_path_twice(void **state) {
    (void)state;
    for (size_t i = 0; i < wt_daemon_n_routes; i++)
        for (size_t k = 0; k < i; k++)
            assert_false(strcmp(wt_daemon_routes[i].method, wt_daemon_routes[k].method) == 0 &&
                         strcmp(wt_daemon_routes[i].path, wt_daemon_routes[k].path) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_changes_needs_rights),
                                       cmocka_unit_test(other_hosts_steer_nothing),
                                       cmocka_unit_test(no_path_twice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
