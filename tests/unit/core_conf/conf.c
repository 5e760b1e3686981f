/* Configuration tables: values, errors with their place, printing that parses back, frozen options.
 */
#include "core/conf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct item {
    char title[64];
    char url[16];
    uint64_t size;
    bool fast;
};

struct target {
    int64_t count;
    double ratio;
    uint64_t wait;
    char word[12];
    uint64_t limit;
    bool flag;
    struct item item[3];
    size_t n_items;
};

#define AT(member) .offset = offsetof(struct target, member)
#define IN(member) .offset = offsetof(struct item, member)

static const struct wt_conf_opt opts[] = {
    {.name = "count",
     .type = WT_CONF_INT,
     AT(count),
     .def = "7",
     .min = 1,
     .max = 100,
     .unit = "things",
     .help = "how many",
     .reloadable = true},
    {.name = "ratio",
     .type = WT_CONF_REAL,
     AT(ratio),
     .def = "10%",
     .min = 0,
     .max = 1,
     .help = "a part of it"},
    {.name = "wait",
     .type = WT_CONF_TIME,
     AT(wait),
     .def = "1500ms",
     .min = 1,
     .max = 7 * 86400e3,
     .unit = "ms",
     .help = "how long, which is explained in a text that is long enough to need a second line of "
             "comment in the file"},
    {.name = "word", .type = WT_CONF_TEXT, AT(word), .size = 12, .def = "", .help = "a word"},
    {.section = "inner",
     .name = "limit",
     .type = WT_CONF_SIZE,
     AT(limit),
     .def = "64MiB",
     .min = 1,
     .max = 1e15,
     .unit = "bytes",
     .help = "a limit"},
    {.section = "inner",
     .name = "flag",
     .type = WT_CONF_BOOL,
     AT(flag),
     .def = "no",
     .help = "a switch"},
    {.section = "item", .name = "url", .type = WT_CONF_TEXT, IN(url), .size = 16, .help = "where"},
    {.section = "item",
     .name = "size",
     .type = WT_CONF_SIZE,
     IN(size),
     .def = "0",
     .unit = "bytes",
     .help = "how much",
     .reloadable = true},
    {.section = "item",
     .name = "fast",
     .type = WT_CONF_BOOL,
     IN(fast),
     .def = "false",
     .help = "quick"},
};
static const struct wt_conf_section sections[] = {
    {.name = "item",
     .array = offsetof(struct target, item),
     .count = offsetof(struct target, n_items),
     .element = sizeof(struct item),
     .max = 3,
     .title = offsetof(struct item, title),
     .help = "The items, the first one first."},
};
static const struct wt_conf_table table = {"test.conf", opts, sizeof opts / sizeof opts[0],
                                           sections,    1,    false};

static void parse_ok(const char *text, struct target *t) {
    struct wt_err err = {0};
    if (wt_conf_parse(&table, "f.conf", text, t, &err) != 0)
        fail_msg("%s", err.text);
}

/* Refused, the message holds all of `want` (ended by NULL), the target is untouched. */
static void parse_bad(const char *text, const char *const *want) {
    struct target t, before;
    memset(&t, 0x5a, sizeof t);
    before = t;
    struct wt_err err = {0};
    assert_int_equal(wt_conf_parse(&table, "f.conf", text, &t, &err), WT_EINVAL);
    assert_int_equal(err.code, WT_EINVAL);
    for (; *want; want++)
        if (!strstr(err.text, *want))
            fail_msg("'%s' lacks '%s'", err.text, *want);
    assert_memory_equal(&t, &before, sizeof t);
}
#define BAD(text, ...) parse_bad(text, (const char *const[]){__VA_ARGS__, NULL})

static void defaults(void **state) {
    (void)state;
    struct target t;
    memset(&t, 0xff, sizeof t);
    parse_ok("", &t);
    assert_int_equal(t.count, 7);
    assert_true(t.ratio > 0.0999 && t.ratio < 0.1001);
    assert_int_equal(t.wait, 1500);
    assert_string_equal(t.word, "");
    assert_int_equal(t.limit, 64 << 20);
    assert_false(t.flag);
    assert_int_equal(t.n_items, 0);
    for (size_t i = 0; i < sizeof t.item; i++)
        assert_int_equal(((unsigned char *)t.item)[i], 0);
}

static void values(void **state) {
    (void)state;
    struct target t;
    parse_ok("# comment\ncount = 100\nratio=0.25 // more\nwait = \"2h\"\nword = 'a b'\n"
             "inner { limit = 1.5GiB flag = true }\n"
             "item \"one\" { url = \"file:///x\" fast = on }\nitem two { url = y size = 3KB }\n",
             &t);
    assert_int_equal(t.count, 100);
    assert_true(t.ratio > 0.24 && t.ratio < 0.26);
    assert_int_equal(t.wait, 7200000);
    assert_string_equal(t.word, "a b");
    assert_int_equal(t.limit, UINT64_C(3) << 29);
    assert_true(t.flag);
    assert_int_equal(t.n_items, 2);
    assert_string_equal(t.item[0].title, "one");
    assert_string_equal(t.item[0].url, "file:///x");
    assert_true(t.item[0].fast);
    assert_string_equal(t.item[1].title, "two");
    assert_int_equal(t.item[1].size, 3000);
    assert_int_equal(t.item[2].title[0], 0);
}

static void errors_name_place_and_range(void **state) {
    (void)state;
    BAD("count = 1\n\ncount = 101\n", "f.conf:3:", "'count'", "'101'", "1 to 100");
    BAD("count = 0", "f.conf:1:", "1 to 100");
    BAD("count = 5x", "'5x' is no whole number");
    BAD("count = 99999999999999999999", "no whole number");
    BAD("count = 1.5", "no whole number");
    BAD("ratio = 2", "0 to 1");
    BAD("ratio = nan", "'nan'");
    BAD("wait = 8d", "1ms to 7d");
    BAD("wait = 3weeks", "unknown unit of time");
    BAD("wait = -1s", "no time");
    BAD("word = \"123456789012\"", "too long, at most 11");
    BAD("inner { limit = 12parsec }", "'limit'", "unknown unit");
    BAD("inner { limit = 9e30 }", "too large");
    BAD("inner { flag = perhaps }", "neither true nor false");
}

static void unknown_names_get_the_nearest(void **state) {
    (void)state;
    BAD("\ncuont = 3", "f.conf:2:", "unknown option 'cuont'", "did you mean 'count'?");
    BAD("item a { url = x\n sise = 3 }", "f.conf:2:", "'sise' in section item", "'size'");
    BAD("zebra_crossing = 3", "unknown option 'zebra_crossing'");
    BAD("itm a { url = x }", "'itm'", "'item'");
}

static void structure_is_checked(void **state) {
    (void)state;
    BAD("item a { size = 3 }", "f.conf:1:", "item \"a\"", "'url' must be given");
    BAD("item a { url = x }\nitem a { url = y }", "f.conf:2:", "duplicate");
    BAD("item a { url=x } item b { url=x } item c { url=x } item d { url=x }", "more than 3");
    BAD("item \"\" { url = x }", "1 to 63");
    BAD("item 1234567890123456789012345678901234567890123456789012345678901234 { url = x }",
        "1 to 63");
    BAD("item { url = x }", "f.conf:1:");
    BAD("count 3", "f.conf:1:");
    BAD("count = ", "f.conf:1:");
    BAD("\nitem a { url = x\n\n", "f.conf:2:", "section that begins here never ends");
    BAD("word = \"never ends", "f.conf:1:");
    struct target t; /* the scanner recovers from each of them */
    parse_ok("count = 3", &t);
    assert_int_equal(t.count, 3);
    BAD("/* never ends\n", "f.conf:1:", "comment");
    BAD("count = 3 }", "f.conf:1:", "closing brace");
    BAD("word = a\\b", "f.conf:1:", "backslash");
    BAD("a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{", "too deeply");
    parse_ok("count = 4", &t);
    assert_int_equal(t.count, 4);
}

static void required_outside_sections(void **state) {
    (void)state;
    struct wt_conf_opt one[] = {{.section = "inner",
                                 .name = "word",
                                 .type = WT_CONF_TEXT,
                                 AT(word),
                                 .size = 12,
                                 .help = "a word"}};
    struct wt_conf_table must = {.what = "must.conf", .opts = one, .n_opts = 1};
    struct target t;
    struct wt_err err = {0};
    assert_int_equal(wt_conf_parse(&must, "m", "", &t, &err), WT_EINVAL);
    assert_non_null(strstr(err.text, "'inner.word' must be given"));
    assert_int_equal(wt_conf_parse(&must, "m", "inner { }", &t, &err), WT_EINVAL);
    assert_int_equal(wt_conf_parse(&must, "m", "inner { word = x }", &t, &err), 0);
    assert_string_equal(t.word, "x");
}

static void a_bad_table_is_said(void **state) {
    (void)state;
    struct wt_conf_opt one[] = {{.name = "count",
                                 .type = WT_CONF_INT,
                                 AT(count),
                                 .def = "0",
                                 .min = 1,
                                 .max = 2,
                                 .help = "x"}};
    struct wt_conf_table bad = {.what = "bad.conf", .opts = one, .n_opts = 1};
    struct target t;
    struct wt_err err = {0};
    assert_int_equal(wt_conf_parse(&bad, "m", "count = 1", &t, &err), WT_EINVAL);
    assert_non_null(strstr(err.text, "default of 'count'"));
}

static void unknown_can_be_ignored(void **state) {
    (void)state;
    struct wt_conf_table loose = table;
    loose.ignore_unknown = true;
    struct target t;
    struct wt_err err = {0};
    const char *text =
        "other = 3\nlist = {1, 2}\nstrange { a = 1 b { c = 2 } }\nodd \"title\" { x = 1 }\ncount = "
        "9\n"
        "item a { url = x unheard = of size = 5 }\ninner { what = ever limit = 2 }\n";
    if (wt_conf_parse(&loose, "f", text, &t, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(t.count, 9);
    assert_int_equal(t.item[0].size, 5);
    assert_int_equal(t.limit, 2);
    assert_int_equal(wt_conf_parse(&loose, "f", "count = 101", &t, &err), WT_EINVAL);
    assert_int_equal(t.count, 9);
}

static char *print(const void *target) {
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    wt_conf_print(&table, target, out);
    fclose(out);
    return text;
}

static void prints_and_parses_back(void **state) {
    (void)state;
    struct target a = {0}, b = {0};
    parse_ok("count = 3 ratio = 0.1 wait = 90s word = \"q\\\"$\\\\{x}\" inner { limit = 12345 flag "
             "= 1 } item 'a\"b' { url = '${HOME}' "
             "size = 1TiB }  item c { url = z fast = 1}",
             &a);
    char *text = print(&a);
    parse_ok(text, &b);
    assert_memory_equal(&a, &b, sizeof a);
    assert_string_equal(b.item[0].url, "${HOME}");
    assert_non_null(strstr(text, "wait = \"90s\""));
    assert_non_null(strstr(text, "\n# How many. In things, 1 to 100. Default: 7\n"));
    free(text);
    text = print(NULL);
    parse_ok(text, &b);
    parse_ok("", &a);
    assert_memory_equal(&a, &b, sizeof a);
    for (size_t i = 0; i < table.n_opts; i++)
        assert_non_null(strstr(text, table.opts[i].name));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        assert_true(strlen(line) <= 100);
    free(text);
}

static void frozen(void **state) {
    (void)state;
    struct target a, b;
    memset(&a, 0, sizeof a); /* the padding is compared as well */
    memset(&b, 0, sizeof b);
    struct wt_err err = {0};
    parse_ok("item a { url = x }", &a);
    parse_ok("count = 50 item a { url = x size = 12 }", &b);
    assert_int_equal(wt_conf_frozen(&table, &a, &b, &err), 0);
    parse_ok("ratio = 0.5 inner { flag = true } item a { url = y }", &b);
    assert_int_equal(wt_conf_frozen(&table, &a, &b, &err), WT_EINVAL);
    assert_string_equal(err.text, "ratio, inner.flag, item a.url");
    parse_ok("item b { url = x }", &b);
    assert_int_equal(wt_conf_frozen(&table, &a, &b, &err), WT_EINVAL);
    assert_string_equal(err.text, "item");
    parse_ok("", &b);
    assert_int_equal(wt_conf_frozen(&table, &a, &b, &err), WT_EINVAL);
}

static void files(void **state) {
    (void)state;
    char path[] = "/tmp/wt-conf-XXXXXX";
    struct target t;
    struct wt_err err = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "count = 42\n", 11), 11);
    assert_int_equal(wt_conf_load(&table, path, &t, &err), 0);
    assert_int_equal(t.count, 42);
    assert_int_equal(write(fd, "\0", 1), 1);
    assert_int_equal(wt_conf_load(&table, path, &t, &err), WT_EINVAL);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(ftruncate(fd, (1 << 20) + 1), 0);
    assert_int_equal(wt_conf_load(&table, path, &t, &err), WT_EINVAL);
    close(fd);
    unlink(path);
    assert_int_equal(wt_conf_load(&table, path, &t, &err), WT_EMISSING);
    assert_int_not_equal(wt_conf_load(&table, "/", &t, &err), 0);
    assert_int_equal(t.count, 42);
}

static void hostile_text_is_survived(void **state) {
    (void)state;
    const char seed[] =
        "count = 3 word = \"a\\\"${x}\" inner { limit = 5 } item \"t\" { url = 'x' } # c\n/* d */";
    char text[sizeof seed];
    struct target t;
    struct wt_err err;
    for (size_t i = 0; i + 1 < sizeof seed;
         i++) { /* cut everywhere, and every byte replaced by those that mean something */
        memcpy(text, seed, sizeof seed);
        text[i] = '\0';
        wt_conf_parse(&table, "f", text, &t, &err);
        for (const char *c = "{}()=\"'\\$,+#/*\n\x01\xff"; *c; c++) {
            memcpy(text, seed, sizeof seed);
            text[i] = *c;
            wt_conf_parse(&table, "f", text, &t, &err);
        }
    }
    parse_ok("count = 6", &t);
    assert_int_equal(t.count, 6);
}

static void times(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t ms;
    } good[] = {{"500ms", 500},  {"10s", 10000},    {"5min", 300000},
                {"2h", 7200000}, {"7d", 604800000}, {"3", 3000},
                {"0.5", 500},    {"1 s", 1000},     {"0", 0}};
    uint64_t ms;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(wt_time_parse(good[i].text, &ms, NULL), 0);
        assert_int_equal(ms, good[i].ms);
    }
    static const char *const bad[] = {"", "s", "-1", "1e300", "5m", "5 apples", "inf", "nan"};
    ms = 99;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(wt_time_parse(bad[i], &ms, NULL), WT_EINVAL);
    assert_int_equal(ms, 99);
}

static void nearest(void **state) {
    (void)state;
    static const char *const names[] = {"capacity", "depth", "timeout", "url"};
    assert_string_equal(wt_nearest("capasity", names, 4), "capacity");
    assert_string_equal(wt_nearest("dpeth", names, 4), "depth");
    assert_string_equal(wt_nearest("urls", names, 4), "url");
    assert_null(wt_nearest("zzzzzz", names, 4));
    assert_null(wt_nearest("x", names, 0));
    char longest[100];
    memset(longest, 'a', 99);
    longest[99] = '\0';
    assert_null(wt_nearest(longest, names, 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(values),
        cmocka_unit_test(errors_name_place_and_range),
        cmocka_unit_test(unknown_names_get_the_nearest),
        cmocka_unit_test(structure_is_checked),
        cmocka_unit_test(required_outside_sections),
        cmocka_unit_test(a_bad_table_is_said),
        cmocka_unit_test(unknown_can_be_ignored),
        cmocka_unit_test(prints_and_parses_back),
        cmocka_unit_test(frozen),
        cmocka_unit_test(files),
        cmocka_unit_test(hostile_text_is_survived),
        cmocka_unit_test(times),
        cmocka_unit_test(nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
