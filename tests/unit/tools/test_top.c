/* What top draws: lines that fit, text from outside that cannot steer a terminal, rates, and any
 * answer, also one that lacks everything. */
#include "tools/top/draw.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

static const char stats_before[] =
    "{\"version\":\"0.1.0\",\"uptime_s\":10,\"active\":true,\"jobs\":1,\"datasets\":1,\"shards\":"
    "50,"
    "\"reads\":{\"total\":100,\"hits\":50,\"bytes\":1000},"
    "\"moves\":{\"running\":1,\"queued\":2,\"done\":10,\"bytes\":1000,\"from_cold\":1000},"
    "\"tiers\":[{\"name\":\"cold\",\"used\":100,\"capacity\":0,\"reported\":{\"bytes\":0}},"
    "{\"name\":\"hot\",\"used\":50,\"capacity\":100,\"bytes_written\":0}]}";
static const char stats_now[] =
    "{\"version\":\"0.1.0\",\"uptime_s\":12,\"active\":true,\"jobs\":1,\"datasets\":1,\"shards\":"
    "50,"
    "\"reads\":{\"total\":300,\"hits\":200,\"bytes\":2098152},"
    "\"moves\":{\"running\":1,\"queued\":2,\"done\":20,\"bytes\":1000,\"from_cold\":2098152},"
    "\"tiers\":[{\"name\":\"cold\",\"used\":100,\"capacity\":0,\"reported\":{\"bytes\":2097152}},"
    "{\"name\":\"hot\",\"used\":75,\"capacity\":100,\"bytes_written\":2097152,\"down\":true,"
    "\"last_error\":\"gone \\u001b[2J away\"}]}";
static const char jobs_before[] = "{\"jobs\":[{\"id\":\"j1\",\"stall_s\":1,\"bytes\":0}]}";
static const char jobs_now[] =
    "{\"jobs\":[{\"id\":\"j1\",\"name\":\"n\\u00e4me\\u001b]0;x\\u0007\",\"dataset\":\"wafers\","
    "\"epoch\":3,\"step\":7,\"bytes\":2097152,\"reads\":4,\"hits\":3,\"cold_ratio\":1.25,"
    "\"order\":\"known\",\"stall_s\":1.5,\"blame\":\"fetch\",\"blame_tier\":\"cold\"}]}";
static const char moves_now[] =
    "{\"running\":[{\"dataset\":\"wafers\",\"shard\":7,\"size\":1000,\"done\":500,\"from\":"
    "\"cold\","
    "\"to\":\"hot\",\"ms\":1500}],\"recent\":[{\"dataset\":\"wafers\",\"shard\":8,\"drop\":\"hot\","
    "\"text\":\"it is full\"}],\"set_aside\":[]}";

static json_t *json(const char *text) {
    json_t *o = json_loads(text, 0, NULL);
    assert_non_null(o);
    return o;
}

/* Two answers, two seconds apart. */
static void fill(struct wt_top_screen *s) {
    struct wt_top_answer before = {
        .stats = json(stats_before), .jobs = json(jobs_before), .moves = json("{}"), .at = 100};
    struct wt_top_answer now = {
        .stats = json(stats_now), .jobs = json(jobs_now), .moves = json(moves_now), .at = 102};
    *s = (struct wt_top_screen){0};
    wt_top_screen_take(s, &before);
    wt_top_screen_take(s, &now);
    assert_null(now.stats);
}

static void draw(const struct wt_top_screen *s, struct wt_page *page, unsigned columns,
                 unsigned rows) {
    wt_page_begin(page, columns, rows, true);
    wt_top_draw(s, page);
}

/* The whole page as text without marks. */
static char *text_of(const struct wt_page *page) {
    struct wt_bytes all = {0};
    for (unsigned row = 0; row < page->n; row++) {
        assert_int_equal(wt_page_encode(wt_page_at(page, row), false, &all), 0);
        assert_int_equal(wt_bytes_add(&all, "\n", 1), 0);
    }
    assert_int_equal(wt_bytes_add(&all, "", 1), 0);
    return (char *)all.data;
}

static void assert_shows(const struct wt_page *page, const char *what) {
    char *text = text_of(page);
    if (!strstr(text, what))
        fail_msg("no '%s' in:\n%s", what, text);
    free(text);
}

static void test_rates(void **state) {
    struct wt_top_screen s;
    struct wt_page page = {0};
    (void)state;
    fill(&s);
    draw(&s, &page, 140, 30);
    assert_shows(&page, "jobs read 100 ranges/s, 1.0 MiB/s, 75.0% above cold (66.7% since the");
    assert_shows(&page, "out of cold 2.0 MiB/s, of it copies 1.0 MiB/s");
    assert_shows(&page, "hot      DOWN ");
    assert_shows(&page, " 75%");
    assert_shows(&page, "gone ?[2J away");
    assert_shows(&page, "cold     → hot");
    assert_shows(&page, "50%");
    assert_shows(&page, "it is full");
    assert_shows(&page, "näme?]0;x?");
    assert_shows(&page, " 75.0%   1.25 known      25.0% fetch: cold");
    wt_page_free(&page);
    wt_top_screen_free(&s);
}

static size_t columns_of(const char *line) {
    wchar_t wide[2 * WT_PAGE_COLUMNS_MAX];
    struct wt_bytes plain = {0};
    assert_int_equal(wt_page_encode(line, false, &plain), 0);
    assert_int_equal(wt_bytes_add(&plain, "", 1), 0);
    size_t n = mbstowcs(wide, (const char *)plain.data, 2 * WT_PAGE_COLUMNS_MAX);
    assert_true(n != (size_t)-1);
    wt_bytes_free(&plain);
    int columns = wcswidth(wide, n);
    assert_true(columns >= 0); /* no control character is in it */
    return (size_t)columns;
}

static void test_every_size(void **state) {
    struct wt_top_screen s;
    struct wt_page page = {0};
    (void)state;
    fill(&s);
    for (unsigned columns = 1; columns <= 150; columns += columns < 100 ? 7 : 1)
        for (unsigned rows = 1; rows <= 40; rows++) {
            draw(&s, &page, columns, rows);
            assert_int_equal(page.n, rows); /* the last line tells how to leave */
            assert_non_null(strchr(wt_page_at(&page, rows - 1), 'q'));
            for (unsigned row = 0; row < page.n; row++)
                assert_true(columns_of(wt_page_at(&page, row)) <= columns);
        }
    wt_page_free(&page);
    wt_top_screen_free(&s);
}

/* A daemon that was restarted counts anew; one that answers nonsense is shown as far as it goes. */
static void test_odd_answers(void **state) {
    static const char *const odd[] = {
        "{}", "{\"tiers\":7,\"moves\":[],\"reads\":\"x\"}",
        "{\"tiers\":[null,{\"name\":5,\"capacity\":-1,\"used\":1e300,\"latency_us\":-1}]}"};
    struct wt_page page = {0};
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        struct wt_top_screen s = {0};
        struct wt_top_answer a = {.stats = json(odd[i]),
                                  .jobs = json("{\"jobs\":[1,{}]}"),
                                  .moves = json(odd[i]),
                                  .at = 1};
        wt_top_screen_take(&s, &a);
        draw(&s, &page, 100, 20);
        assert_int_equal(page.n, 20);
        wt_top_screen_free(&s);
    }
    struct wt_top_screen s = {0};
    struct wt_top_answer later = {
        .stats = json(stats_now), .jobs = json("{}"), .moves = json("{}"), .at = 1};
    struct wt_top_answer anew = {
        .stats = json(stats_before), .jobs = json("{}"), .moves = json("{}"), .at = 2};
    wt_top_screen_take(&s, &later);
    wt_top_screen_take(&s, &anew);
    draw(&s, &page, 120, 20);
    assert_shows(&page, "jobs read 0 ranges/s, 0 B/s");
    wt_top_screen_free(&s);
    wt_page_free(&page);
}

/* Before the first answer, and when there is none any more. */
static void test_errors(void **state) {
    struct wt_top_screen s = {0};
    struct wt_page page = {0};
    struct wt_top_answer failed = {.error = "nobody listens"};
    (void)state;
    draw(&s, &page, 80, 10);
    assert_shows(&page, "asking the daemon");
    wt_top_screen_take(&s, &failed);
    draw(&s, &page, 80, 10);
    assert_shows(&page, "trying again: nobody listens");
    fill(&s);
    failed = (struct wt_top_answer){.error = "it hangs"};
    wt_top_screen_take(&s, &failed);
    draw(&s, &page, 80, 30);
    assert_shows(&page, "trying again: it hangs");
    assert_shows(&page, "TIER"); /* what was known last stays */
    wt_page_free(&page);
    wt_top_screen_free(&s);
}

static void test_clean(void **state) {
    struct wt_page page = {0};
    char out[WT_PAGE_TEXT];
    (void)state;
    wt_page_begin(&page, 80, 24, true);
    assert_string_equal(wt_page_clean(&page, "abc", 5, out), "abc  ");
    assert_string_equal(wt_page_clean(&page, "abcdef", 3, out), "abc");
    assert_string_equal(wt_page_clean(&page, "a\tb\x1b\x7f", 5, out), "a?b??");
    assert_string_equal(wt_page_clean(&page, "wäfer", 3, out), "wäf");
    assert_string_equal(wt_page_clean(&page, "晶圆", 3, out), "晶 "); /* two columns each */
    assert_string_equal(wt_page_clean(&page, "\xff\xc3", 3, out), "?? ");
    assert_string_equal(wt_page_clean(&page,
                                      "\xc2\x9b"
                                      "31m",
                                      4, out),
                        "?31m"); /* a C1 control */
    page.utf8 = false;
    assert_string_equal(wt_page_clean(&page, "wä", 3, out), "w??");
    assert_string_equal(wt_page_bar(&page, 0.5, 4, out), "##..");
    page.utf8 = true;
    assert_string_equal(wt_page_bar(&page, 1.0 / 16, 2, out), "▏·");
    assert_string_equal(wt_page_bar(&page, 7, 2, out), "██");
    assert_string_equal(wt_page_bar(&page, -1, 2, out), "··");
    wt_page_free(&page);
}

static int utf8(void **state) {
    (void)state;
    return setlocale(LC_CTYPE, "C.UTF-8") ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rates),
                                       cmocka_unit_test(test_every_size),
                                       cmocka_unit_test(test_odd_answers),
                                       cmocka_unit_test(test_errors), cmocka_unit_test(test_clean)};
    return cmocka_run_group_tests(tests, utf8, NULL);
}
