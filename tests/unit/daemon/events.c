/* The ring of events: readers follow, fall behind, end. */
#include "daemon/events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct bed {
    uv_loop_t loop;
    struct wt_events *e;
    unsigned wakes;
};

static void nothing(void *arg) {
    (void)arg;
}

static void wake(void *arg) {
    struct bed *b = arg;
    b->wakes++;
}

static int set_up(void **state) {
    struct bed *b = calloc(1, sizeof *b);
    assert_non_null(b);
    assert_int_equal(uv_loop_init(&b->loop), 0);
    b->e = wt_events_new(&b->loop);
    assert_non_null(b->e);
    *state = b;
    return 0;
}

static int tear_down(void **state) {
    struct bed *b = *state;
    wt_events_stop(b->e, "over", nothing, NULL);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    wt_events_free(b->e);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    free(b);
    return 0;
}

static void add(struct bed *b, int n) {
    for (int i = 0; i < n; i++)
        wt_events_add(b->e, "test", json_pack("{s:i}", "n", i));
}

/* The next line, read in pieces of `piece` bytes; NULL: none now, or the end. */
static json_t *next(struct wt_events_reader *r, size_t piece) {
    static char line[1024];
    size_t have = 0;
    char buf[64];
    ssize_t n;
    while ((n = wt_events_read(r, buf, piece)) > 0) {
        assert_true(have + (size_t)n < sizeof line);
        memcpy(line + have, buf, (size_t)n);
        have += (size_t)n;
        if (line[have - 1] == '\n')
            break;
    }
    if (have == 0)
        return NULL;
    json_t *o = json_loadb(line, have, 0, NULL);
    assert_non_null(o);
    return o;
}

static void is(json_t *o, const char *kind, int id) {
    assert_non_null(o);
    assert_string_equal(json_string_value(json_object_get(o, "kind")), kind);
    assert_int_equal(json_integer_value(json_object_get(o, "id")), id);
    assert_true(json_real_value(json_object_get(o, "time")) > 1e9);
    json_decref(o);
}

static void readers_follow(void **state) {
    struct bed *b = *state;
    add(b, 2);
    struct wt_events_reader *all = wt_events_follow(b->e, 0),
                            *fresh = wt_events_follow(b->e, WT_EVENTS_NEW);
    wt_events_on_news(all, wake, b);
    assert_null(next(fresh, 1));
    is(next(all, 1), "test", 1);
    is(next(all, 1), "test", 2);
    assert_null(next(all, 1));
    add(b, 1);
    assert_int_equal(b->wakes, 1);
    is(next(all, 1), "test", 3);
    is(next(fresh, 1), "test", 3);
    struct wt_events_reader *later = wt_events_follow(b->e, 2);
    is(next(later, 1), "test", 3);
    wt_events_leave(later);
    wt_events_leave(fresh);
    wt_events_leave(all);
}

static void who_falls_behind_is_told(void **state) {
    struct bed *b = *state;
    struct wt_events_reader *slow = wt_events_follow(b->e, 0);
    add(b, 1);
    is(next(slow, 1), "test", 1);
    add(b, WT_EVENTS_KEPT + 1);
    is(next(slow, 1), "end", 0);
    char c;
    assert_int_equal(wt_events_read(slow, &c, 1), -1);
    wt_events_leave(slow);
    struct wt_events_reader *late = wt_events_follow(b->e, 0);
    json_t *o = next(late, 1);
    assert_int_equal(json_integer_value(json_object_get(o, "events")), 2);
    is(o, "lost", 0);
    is(next(late, 1), "test", 3);
    wt_events_leave(late);
}

static void silence_is_broken(void **state) {
    struct bed *b = *state;
    struct wt_events_reader *r = wt_events_follow(b->e, 0);
    wt_events_on_news(r, wake, b);
    while (b->wakes == 0) /* ten seconds */
        uv_run(&b->loop, UV_RUN_ONCE);
    is(next(r, 1), "alive", 0);
    assert_null(next(r, 1));
    wt_events_leave(r);
}

static void the_end_comes_last(void **state) {
    struct bed *b = *state;
    struct wt_events_reader *r = wt_events_follow(b->e, 0);
    add(b, 1);
    wt_events_stop(b->e, "over", nothing, NULL);
    is(next(r, 1), "test", 1);
    is(next(r, 1), "end", 0);
    char c;
    assert_int_equal(wt_events_read(r, &c, 1), -1);
    assert_null(wt_events_follow(b->e, 0));
    wt_events_leave(r);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    wt_events_free(b->e);
    b->e = wt_events_new(&b->loop); /* for the tear-down */
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(readers_follow), T(who_falls_behind_is_told),
                                       T(silence_is_broken), T(the_end_comes_last)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
