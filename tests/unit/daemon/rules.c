/* Pins and quotas as a file: there and back, damaged, of other tiers, of another version. */
#include "daemon/rules_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct wt_tier_opts tiers[] = {{.name = "cold"}, {.name = "warm"}, {.name = "hot"}};

static char *example(size_t *len) {
    struct wt_rule_list list = {0};
    struct wt_pin *p = wt_rule_list_add_pin(&list);
    assert_non_null(p);
    *p = (struct wt_pin){
        .selector = {.dataset = "a", .lot = "L1", .wafer = "w\"1"}, .tier = 2, .time = 1234567890};
    p = wt_rule_list_add_pin(&list);
    assert_non_null(p);
    *p = (struct wt_pin){.selector = {.dataset = "b"}, .tier = 1};
    assert_int_equal(
        wt_rule_list_add_quota(
            &list, &(struct wt_quota){.dataset = "a", .tier = 2, .bytes = UINT64_C(1) << 50}),
        0);
    char *text = wt_rules_format(&list, tiers, len);
    assert_non_null(text);
    wt_rule_list_free(&list);
    return text;
}

static void there_and_back(void **state) {
    (void)state;
    size_t len, dropped;
    struct wt_rule_list list;
    struct wt_err err = {0};
    char *text = example(&len);
    assert_int_equal(wt_rules_parse(text, len, tiers, 3, &list, &dropped, &err), 0);
    assert_int_equal(dropped, 0);
    assert_int_equal(list.n_pins, 2);
    assert_string_equal(list.pin[0]->selector.wafer, "w\"1");
    assert_int_equal(list.pin[0]->tier, 2);
    assert_int_equal(list.pin[0]->time, 1234567890);
    assert_string_equal(list.pin[1]->selector.lot, "");
    assert_int_equal(list.n_quotas, 1);
    assert_true(list.quota[0].bytes == UINT64_C(1) << 50);
    wt_rule_list_free(&list);
    /* the tier hot is no more: what was said of it goes, the rest stays */
    assert_int_equal(wt_rules_parse(text, len, tiers, 2, &list, &dropped, &err), 0);
    assert_int_equal(dropped, 2);
    assert_int_equal(list.n_pins, 1);
    assert_string_equal(list.pin[0]->selector.dataset, "b");
    wt_rule_list_free(&list);
    free(text);
}

/* Cut anywhere, it is refused as a whole; what is left of the list is empty. */
static void damaged(void **state) {
    (void)state;
    size_t len, dropped;
    struct wt_rule_list list;
    char *text = example(&len);
    for (size_t cut = 0; cut + 1 < len; cut++) {
        struct wt_err err = {0};
        if (wt_rules_parse(text, cut, tiers, 3, &list, &dropped, &err) == 0)
            fail_msg("cut at %zu of %zu it was taken", cut, len);
        assert_true(err.text[0]);
        assert_null(list.pin);
        assert_null(list.quota);
    }
    static const char *const wrong[] = {
        "{}",
        "[]",
        "{\"version\": 2, \"pins\": [], \"quotas\": []}",
        "{\"version\": 1, \"pins\": [{}], \"quotas\": []}",
        "{\"version\": 1, \"pins\": [], \"quotas\": [{\"dataset\": \"a\", \"tier\": \"hot\", "
        "\"bytes\": -1}]}",
        "{\"version\": 1, \"pins\": {}, \"quotas\": []}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct wt_err err = {0};
        assert_true(wt_rules_parse(wrong[i], strlen(wrong[i]), tiers, 3, &list, &dropped, &err) <
                    0);
        assert_true(err.text[0]);
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back), cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
