/* Folders of files as a source: order, keys, labels, orders of bytes and axes, bad files. */
#include "kit.h"

#include "tools/ingest/ingest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SEEN = 64 };

struct seen {
    size_t n;
    struct {
        char key[WT_KEY_MAX], json[512];
        int32_t label;
        struct wt_shape shape;
        uint64_t id, sum, first;
    } s[MAX_SEEN];
};

static int take(void *arg, const struct wt_sample_in *in, struct wt_err *err) {
    struct seen *seen = arg;
    uint64_t bytes;
    (void)err;
    assert_true(seen->n < MAX_SEEN);
    snprintf(seen->s[seen->n].key, WT_KEY_MAX, "%s", in->key);
    snprintf(seen->s[seen->n].json, 512, "%s", in->json);
    seen->s[seen->n].label = in->label;
    seen->s[seen->n].id = in->id;
    seen->s[seen->n].shape = in->tensors[0].shape;
    assert_true(wt_shape_bytes(&in->tensors[0].shape, &bytes));
    for (uint64_t b = 0; b < bytes; b++)
        seen->s[seen->n].sum += ((const uint8_t *)in->tensors[0].data)[b];
    seen->s[seen->n].first = ((const uint8_t *)in->tensors[0].data)[1];
    seen->n++;
    return 0;
}

static void note(void *arg, const char *line) {
    (void)line;
    ++*(int *)arg;
}

/* Reads all. opts->inputs may be NULL: the kit's "in". */
static int ingest(struct kit *k, struct wt_ingest_opts opts, struct seen *seen,
                  struct wt_ingest_report *report, struct wt_err *err) {
    struct wt_ingest *g = NULL;
    struct wt_image image = {0};
    char in[600];
    char *inputs[] = {in};
    snprintf(in, sizeof in, "%s/in", k->dir);
    if (!opts.inputs) {
        opts.inputs = inputs;
        opts.n_inputs = 1;
    }
    *seen = (struct seen){0};
    *err = (struct wt_err){0};
    int rc = wt_ingest_open(&opts, &g, err);
    if (rc == 0) {
        struct wt_source *src = wt_ingest_source(g);
        rc = src->ops->read(src, &image, 0, src->samples, take, seen, err);
        wt_ingest_report(g, report);
    }
    wt_ingest_close(g);
    wt_image_free(&image);
    return rc;
}

static void write_npy(struct kit *k, const char *name, const char *descr, bool fortran,
                      const char *shape, size_t bytes) {
    struct wt_bytes b = {0};
    uint8_t data[256];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)i;
    kit_npy(&b, descr, fortran, shape, data, bytes);
    kit_write(k, name, b.data, b.len);
    wt_bytes_free(&b);
}

static void folders_are_sorted_and_labelled(void **state) {
    struct kit *k = *state;
    struct seen seen;
    struct wt_ingest_report r;
    struct wt_err err;
    write_npy(k, "in/b/2.npy", "'|u1'", false, "(2, 3)", 6);
    write_npy(k, "in/b/10.npy", "'|u1'", true, "(2, 3)", 6);
    write_npy(k, "in/a/sub.x/1.v2.npy", "'>u2'", false, "(2, 2)", 8);
    write_npy(k, "in/top.npy", "'<f4'", false, "()", 4);
    write_npy(k, "in/.hidden/x.npy", "'|u1'", false, "(2, 3)", 6);
    write_npy(k, "in/b/.x.npy", "'|u1'", false, "(2, 3)", 6);
    kit_text(k, "in/b/readme.txt", "no image");
    if (ingest(k, (struct wt_ingest_opts){.labels = "folders", .lot = "LOT 7.1", .wafer = "W"},
               &seen, &r, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(seen.n, 4);
    assert_int_equal(r.ignored, 1);
    static const char *const keys[] = {"a~sub%2Ex~1%2Ev2", "b~10", "b~2", "top"};
    static const int32_t labels[] = {0, 1, 1, WT_UNLABELLED};
    for (size_t i = 0; i < 4; i++) {
        char want[WT_KEY_MAX];
        snprintf(want, sizeof want, "LOT%%207%%2E1/W/%s", keys[i]);
        assert_string_equal(seen.s[i].key, want);
        assert_int_equal(seen.s[i].label, labels[i]);
        assert_true(seen.s[i].id < UINT64_C(1) << 63);
    }
    assert_int_equal(seen.s[0].first, 0); /* 0x0001 little-endian: 1, 0 */
    assert_int_equal(seen.s[1].first, 2); /* columns first: 0 2 4 1 3 5 */
    assert_int_equal(seen.s[2].first, 1);
    assert_string_equal(seen.s[1].json, "{\"source\":\"b/10.npy\",\"label_source\":\"folder\"}");
    assert_string_equal(seen.s[3].json, "{\"source\":\"top.npy\"}");
    assert_int_equal(seen.s[3].shape.ndim, 0);
}

static void tables_give_labels_lots_and_metadata(void **state) {
    struct kit *k = *state;
    struct seen seen;
    struct wt_ingest_report r;
    struct wt_err err;
    write_npy(k, "in/1.npy", "'|u1'", false, "(2, 3)", 6);
    write_npy(k, "in/2.npy", "'|u1'", false, "(2, 3)", 6);
    write_npy(k, "in/3.npy", "'|u1'", false, "(2, 3)", 6);
    const char *csv =
        kit_text(k, "l.csv",
                 "\xef\xbb\xbf"
                 "label,die_x,file,lot\r\nscratch,4,1.npy,L9\r\n,5,2.npy,\r\nring,6,gone.npy,\r\n");
    assert_int_equal(ingest(k, (struct wt_ingest_opts){.labels = csv}, &seen, &r, &err), 0);
    assert_int_equal(seen.n, 3);
    assert_string_equal(seen.s[0].key, "L9/wafer0/1");
    assert_int_equal(seen.s[0].label, 0); /* "ring" has no file, so it is no class */
    assert_string_equal(seen.s[0].json,
                        "{\"source\":\"1.npy\",\"label_source\":\"csv\",\"die_x\":4}");
    assert_string_equal(seen.s[1].key, "lot0/wafer0/2");
    assert_int_equal(seen.s[1].label, WT_UNLABELLED);
    assert_int_equal(seen.s[2].label, WT_UNLABELLED);
    assert_int_equal(r.unlisted, 1);
    assert_int_equal(r.unused_rows, 1);
    assert_int_equal(ingest(k, (struct wt_ingest_opts){.labels = "nolabels"}, &seen, &r, &err),
                     WT_EMISSING);
    assert_non_null(strstr(err.text, "--labels nolabels"));
}

static void bad_files_end_it_or_are_left_out(void **state) {
    struct kit *k = *state;
    struct seen seen;
    struct wt_ingest_report r;
    struct wt_err err;
    int notes = 0;
    static const char *const bad[] = {"in/2-object.npy", "in/3-cut.npy", "in/4-text.npy",
                                      "in/5-empty.npy", "in/6-none.npy"};
    write_npy(k, "in/1.npy", "'|u1'", false, "(2, 3)", 6);
    write_npy(k, bad[0], "'|O'", false, "(2, 3)", 48);
    write_npy(k, bad[1], "'|u1'", false, "(2, 30)", 6);
    kit_text(k, bad[2], "this is text");
    kit_text(k, bad[3], "");
    write_npy(k, bad[4], "'|u1'", false, "(0, 3)", 0);
    assert_int_equal(symlink("nowhere", kit_path(k, "in/7-link.npy")), 0);
    write_npy(k, "in/9.npy", "'|u1'", false, "(2, 3)", 6);
    assert_int_equal(
        ingest(k, (struct wt_ingest_opts){.keep_going = true, .note = note, .arg = &notes}, &seen,
               &r, &err),
        0);
    assert_int_equal(seen.n, 2);
    assert_int_equal(r.bad, 6);
    assert_int_equal(notes, 6);
    assert_string_equal(seen.s[1].key, "lot0/wafer0/9");
    for (size_t i = 0; i < 5; i++) {
        assert_true(ingest(k, (struct wt_ingest_opts){0}, &seen, &r, &err) < 0);
        assert_non_null(strstr(err.text, bad[i]));
        assert_int_equal(remove(kit_path(k, bad[i])), 0);
    }
}

static void keys_are_unique_or_both_files_are_named(void **state) {
    struct kit *k = *state;
    struct seen seen;
    struct wt_ingest_report r;
    struct wt_err err;
    char one[600], two[600], long_name[300];
    char *inputs[] = {one, two};
    write_npy(k, "in/x/1.npy", "'|u1'", false, "(2, 3)", 6);
    write_npy(k, "other/x/1.npy", "'|u1'", false, "(2, 3)", 6);
    snprintf(one, sizeof one, "%s/in", k->dir);
    snprintf(two, sizeof two, "%s/other/", k->dir);
    struct wt_ingest_opts both = {.inputs = inputs, .n_inputs = 2};
    assert_int_equal(ingest(k, both, &seen, &r, &err), WT_EEXISTS);
    assert_non_null(strstr(err.text, "in/x/1.npy"));
    assert_non_null(strstr(err.text, "other/x/1.npy"));
    /* Names too long for a key keep their end and stay apart. */
    for (int i = 0; i < 2; i++) {
        snprintf(long_name, sizeof long_name, "in/%c%0150d-end.npy", 'a' + i, 1);
        write_npy(k, long_name, "'|u1'", false, "(2, 3)", 6);
    }
    assert_int_equal(ingest(k, (struct wt_ingest_opts){0}, &seen, &r, &err), 0);
    assert_int_equal(seen.n, 3);
    assert_true(strlen(seen.s[0].key) < WT_KEY_MAX);
    assert_non_null(strstr(seen.s[0].key, "01-end"));
    assert_string_not_equal(seen.s[0].key, seen.s[1].key);
}

static void files_that_change_are_told(void **state) {
    struct kit *k = *state;
    struct wt_ingest *g;
    struct wt_err err = {0};
    struct wt_image image = {0};
    struct seen seen = {0};
    write_npy(k, "in/1.npy", "'|u1'", false, "(2, 3)", 6);
    char in[600];
    char *inputs[] = {in};
    snprintf(in, sizeof in, "%s/in", k->dir);
    assert_int_equal(
        wt_ingest_open(&(struct wt_ingest_opts){.inputs = inputs, .n_inputs = 1}, &g, &err), 0);
    write_npy(k, "in/1.npy", "'|u1'", false, "(2, 4)", 8);
    struct wt_source *src = wt_ingest_source(g);
    assert_int_equal(src->ops->read(src, &image, 0, 1, take, &seen, &err), WT_ECHANGED);
    wt_ingest_close(g);
    wt_image_free(&image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(folders_are_sorted_and_labelled, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(tables_give_labels_lots_and_metadata, kit_setup,
                                        kit_teardown),
        cmocka_unit_test_setup_teardown(bad_files_end_it_or_are_left_out, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(keys_are_unique_or_both_files_are_named, kit_setup,
                                        kit_teardown),
        cmocka_unit_test_setup_teardown(files_that_change_are_told, kit_setup, kit_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
