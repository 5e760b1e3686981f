/* Which shards hold which wafers, from the shards' indices; and selections. */
#include "daemon/survey.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A shard with a sample of each key. */
static void add(struct wt_survey *s, uint64_t shard, const char *const *keys) {
    struct wt_shard_writer *w;
    struct wt_shard_out out;
    struct wt_shard_index x;
    struct wt_err err = {0};
    uint8_t pixel = 7;
    assert_int_equal(wt_shard_writer_new(&(struct wt_shard_opts){0}, &w, &err), 0);
    for (uint64_t i = 0; keys[i]; i++) {
        struct wt_tensor t = {
            .name = "", .shape = {.dtype = WT_DTYPE_U8, .ndim = 1, .dim = {1}}, .data = &pixel};
        struct wt_sample_in in = {
            .key = keys[i], .id = i, .label = WT_UNLABELLED, .tensors = &t, .n_tensors = 1};
        if (wt_shard_writer_add(w, &in, &err) < 0)
            fail_msg("%s", err.text);
    }
    assert_int_equal(wt_shard_writer_finish(w, &out, &err), 0);
    assert_int_equal(wt_shard_index_parse(out.data + out.index_off, out.size - out.index_off,
                                          out.index_off, out.size, WT_CODEC_TAR, &x, &err),
                     0);
    assert_int_equal(wt_survey_add(s, shard, &x), 0);
    wt_shard_index_free(&x);
    wt_shard_out_free(&out);
    wt_shard_writer_free(w);
}

/* "0-2 5" against what is found. */
static void expect(const struct wt_survey *s, const char *lot, const char *wafer,
                   const char *wanted) {
    struct wt_selection found = {0};
    char text[256] = "";
    int rc = wt_survey_find(s, lot, wafer, &found);
    if (rc < 0)
        snprintf(text, sizeof text, "%d", rc);
    for (size_t i = 0; i < found.n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%llu-%llu", i ? " " : "",
                 (unsigned long long)found.range[i].first,
                 (unsigned long long)found.range[i].end - 1);
    if (strcmp(text, wanted) != 0)
        fail_msg("%s/%s: '%s', not '%s'", lot, wafer, text, wanted);
    wt_selection_free(&found);
}

static void lots_and_wafers(void **state) {
    (void)state;
    struct wt_survey *s = wt_survey_new();
    add(s, 0, (const char *const[]){"L1/w1/a", "L1/w1/b", NULL});
    add(s, 1, (const char *const[]){"L1/w1/c", "L1/w2/a", "L1/w1/d", NULL});
    add(s, 2, (const char *const[]){"L1/w2/b", NULL});
    add(s, 3, (const char *const[]){"L10/w1/a", NULL});
    add(s, 4, (const char *const[]){"L%2E/w1/a", "L2/w10/a", NULL});
    add(s, 5, (const char *const[]){"L1/w1/e", "L2/w1/a", NULL});
    expect(s, "L1", "", "0-2 5-5");
    expect(s, "L1", "w1", "0-1 5-5");
    expect(s, "L1", "w2", "1-2");
    expect(s, "L10", "", "3-3");
    expect(s, "L2", "w1", "5-5"); /* not w10 */
    expect(s, "L2", "", "4-5");
    expect(s, "L.", "", "4-4"); /* as people write it, and as it stands in keys */
    expect(s, "L%2E", "w1", "4-4");
    expect(s, "L", "", "-1");
    expect(s, "L1", "w3", "-1");
    expect(s, "L1", "w", "-1");
    wt_survey_free(s);
}

static void selections(void **state) {
    (void)state;
    struct wt_selection s = {0};
    uint64_t k = UINT64_MAX;
    assert_false(wt_selection_next(&s, &k));
    assert_int_equal(wt_selection_add(&s, 2, 4), 0);
    assert_int_equal(wt_selection_add(&s, 7, 8), 0);
    uint64_t wanted[] = {2, 3, 7};
    for (int i = 0; i < 3; i++) {
        assert_true(wt_selection_next(&s, &k));
        assert_int_equal(k, wanted[i]);
        assert_true(wt_selection_has(&s, k));
    }
    assert_false(wt_selection_next(&s, &k));
    k = 4;
    assert_true(wt_selection_next(&s, &k));
    assert_int_equal(k, 7);
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(wt_selection_has(&s, i), i == 2 || i == 3 || i == 7);
    wt_selection_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lots_and_wafers),
                                       cmocka_unit_test(selections)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
