/* CSV files, label tables and the numbering of classes. */
#include "kit.h"

#include "core/shard.h"
#include "tools/ingest/csv.h"
#include "tools/ingest/labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct wt_csv *parse(const char *text) {
    struct wt_csv *csv = NULL;
    struct wt_err err = {0};
    char *copy = strdup(text);
    assert_non_null(copy);
    if (wt_csv_parse("t.csv", copy, strlen(text), &csv, &err) < 0)
        fail_msg("%s", err.text);
    return csv;
}

static void rows_of_every_spelling(void **state) {
    (void)state;
    static const char *const texts[] = {
        "file,label\na.npy,x\nb c.npy,\"y, \"\"z\"\"\"\n",
        "\xef\xbb\xbf\146ile,label\r\na.npy,x\r\nb c.npy,\"y, \"\"z\"\"\"\r\n",
        "\n\nfile;label\n\na.npy;x\n\nb c.npy;\"y, \"\"z\"\"\"",
        "file\tlabel\na.npy\tx\n\"b c.npy\"\t\"y, \"\"z\"\"\"\n\n\n",
        "\"file\",\"label\"\n\"a.npy\",\"x\"\n\"b c.npy\",\"y, \"\"z\"\"\"",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct wt_csv *csv = parse(texts[i]);
        char *const *f;
        uint64_t line;
        assert_int_equal(wt_csv_columns(csv), 2);
        assert_int_equal(wt_csv_find(csv, "LABEL"), 1);
        assert_int_equal(wt_csv_next(csv, &f, &line, NULL), 1);
        assert_string_equal(f[0], "a.npy");
        assert_string_equal(f[1], "x");
        assert_int_equal(wt_csv_next(csv, &f, &line, NULL), 1);
        assert_string_equal(f[0], "b c.npy");
        assert_string_equal(f[1], "y, \"z\"");
        assert_int_equal(wt_csv_next(csv, &f, &line, NULL), 0);
        assert_int_equal(wt_csv_next(csv, &f, &line, NULL), 0);
        wt_csv_close(csv);
    }
}

static void lines_are_counted_through_quotes(void **state) {
    (void)state;
    struct wt_csv *csv = parse("a,b\n1,\"x\ny\nz\"\n2,\n3\n");
    char *const *f;
    uint64_t line;
    struct wt_err err = {0};
    assert_int_equal(wt_csv_next(csv, &f, &line, &err), 1);
    assert_int_equal(line, 2);
    assert_string_equal(f[1], "x\ny\nz");
    assert_int_equal(wt_csv_next(csv, &f, &line, &err), 1);
    assert_int_equal(line, 5);
    assert_string_equal(f[1], "");
    assert_int_equal(wt_csv_next(csv, &f, &line, &err), WT_EFORMAT);
    assert_non_null(strstr(err.text, "line 6 has 1 fields, the header has 2"));
    wt_csv_close(csv);
}

static void broken_tables_are_refused(void **state) {
    struct kit *k = *state;
    static const struct {
        const char *text;
        size_t len;
        const char *why;
    } bad[] = {
        {"", 0, "is empty"},
        {"\n\r\n", 3, "is empty"},
        {"\xff\xfe\146\0", 4, "UTF-16"},
        {"file,label\na\0b,c\n", 17, "NUL"},
        {"file,\"label\na,b\n", 16, "does not end"},
        {"path,label\na,b\n", 15, "no column 'file' among: path, label"},
        {"file,class\na,b\n", 15, "no column 'label' among: file, class"},
        {"file,label\na,1\n./a,2\n", 21, "line 2 and again in line 3"},
        {"file,label\n,1\n", 14, "line 2 names no file"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct wt_label_table *t = NULL;
        struct wt_err err = {0};
        const char *path = kit_write(k, "bad.csv", bad[i].text, bad[i].len);
        assert_int_equal(wt_label_table_open(path, NULL, &t, &err), WT_EFORMAT);
        assert_null(t);
        if (!strstr(err.text, bad[i].why))
            fail_msg("%zu: %s", i, err.text);
    }
    struct wt_label_table *t = NULL;
    assert_int_equal(wt_label_table_open(kit_path(k, "absent.csv"), NULL, &t, NULL), WT_EMISSING);
}

static void rows_are_found_by_path_then_by_name(void **state) {
    struct kit *k = *state;
    const char *path = kit_text(k, "l.csv",
                                "wafer,FILE,die_x,failure,lot,note\n"
                                "w1,.\\a\\x.npy,-3,Loc,L1,\"say \"\"hi\"\"\"\n"
                                "w2,y.npy,007,,L2,\n"
                                "w3,z.npy,1.5,Edge,,n\n");
    struct wt_label_table *t = NULL;
    struct wt_err err = {0};
    const struct wt_label_row *row;
    assert_int_equal(wt_label_table_open(path, "failure", &t, &err), 0);
    assert_int_equal(wt_label_table_take(t, "a/x.npy", &row, &err), 0);
    assert_string_equal(row->label, "Loc");
    assert_string_equal(row->lot, "L1");
    assert_string_equal(row->wafer, "w1");
    assert_string_equal(wt_label_table_meta(t, row), ",\"die_x\":-3,\"note\":\"say \\\"hi\\\"\"");
    assert_int_equal(wt_label_table_take(t, "deep/er/y.npy", &row, &err), 0);
    assert_string_equal(row->label, "");
    assert_string_equal(wt_label_table_meta(t, row), ",\"die_x\":\"007\"");
    assert_int_equal(wt_label_table_take(t, "nowhere.npy", &row, &err), 0);
    assert_null(row);
    assert_int_equal(wt_label_table_unused(t, &row), 1);
    assert_string_equal(row->file, "z.npy");
    /* One bare name for two files. */
    assert_int_equal(wt_label_table_take(t, "other/y.npy", &row, &err), WT_EINVAL);
    assert_non_null(strstr(err.text, "deep/er/y.npy and other/y.npy"));
    wt_label_table_close(t);
}

static void number(struct wt_classes *c, const char *const *texts, const char *order, int want,
                   struct wt_err *err) {
    *c = (struct wt_classes){0};
    *err = (struct wt_err){0};
    uint32_t id;
    for (; *texts; texts++)
        assert_int_equal(wt_names_add(&c->seen, *texts, &id), 0);
    int rc = wt_classes_number(c, order, err);
    if (rc != want)
        fail_msg("%d: %s", rc, err->text);
}

static void classes_are_numbered(void **state) {
    (void)state;
    struct wt_classes c;
    struct wt_err err;
    number(&c, (const char *const[]){"Loc", "Center", "None", NULL}, NULL, 0, &err);
    assert_int_equal(c.n, 3);
    assert_string_equal(c.name[0], "Center");
    assert_int_equal(c.number[0], 1);
    assert_int_equal(c.number[1], 0);
    wt_classes_free(&c);

    number(&c, (const char *const[]){"10", "2", "-1", NULL}, NULL, 0, &err);
    assert_int_equal(c.n, 11); /* numbers keep their value */
    assert_string_equal(c.name[10], "10");
    assert_int_equal(c.number[0], 10);
    assert_int_equal(c.number[1], 2);
    assert_int_equal(c.number[2], WT_UNLABELLED);
    wt_classes_free(&c);

    number(&c, (const char *const[]){"10", "two", NULL}, NULL, 0, &err);
    assert_int_equal(c.n, 2);
    assert_int_equal(c.number[0], 0);
    wt_classes_free(&c);

    number(&c, (const char *const[]){"good", "1", NULL}, "bad,good,ugly", 0, &err);
    assert_int_equal(c.n, 3);
    assert_int_equal(c.number[0], 1);
    assert_int_equal(c.number[1], 1);
    wt_classes_free(&c);

    number(&c, (const char *const[]){"god", NULL}, "bad,good", WT_EINVAL, &err);
    assert_non_null(strstr(err.text, "'good'"));
    wt_classes_free(&c);
    number(&c, (const char *const[]){"good", NULL}, "good,good", WT_EINVAL, &err);
    wt_classes_free(&c);
    number(&c, (const char *const[]){"caf\xe9", NULL}, NULL, WT_EINVAL, &err);
    wt_classes_free(&c);

    c = (struct wt_classes){0};
    assert_int_equal(wt_classes_multihot(&c, "a,b", 3, &err), WT_EINVAL);
    wt_classes_free(&c);
}

static void many_names_keep_their_numbers(void **state) {
    (void)state;
    struct wt_names names = {0};
    struct wt_idmap ids = {0};
    char text[32];
    uint32_t id;
    uint64_t old;
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "name-%u", i);
        assert_int_equal(wt_names_add(&names, text, &id), 0);
        assert_int_equal(id, i);
        assert_int_equal(wt_idmap_add(&ids, i * UINT64_C(1000003), i, &old), 0);
    }
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "name-%u", i);
        assert_int_equal(wt_names_find(&names, text), i);
        assert_string_equal(wt_names_get(&names, i), text);
        assert_int_equal(wt_idmap_add(&ids, i * UINT64_C(1000003), 1, &old), 1);
        assert_int_equal(old, i);
    }
    assert_int_equal(wt_names_find(&names, "name"), WT_NAME_NONE);
    wt_names_free(&names);
    wt_idmap_free(&ids);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_every_spelling),
        cmocka_unit_test(lines_are_counted_through_quotes),
        cmocka_unit_test_setup_teardown(broken_tables_are_refused, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(rows_are_found_by_path_then_by_name, kit_setup,
                                        kit_teardown),
        cmocka_unit_test(classes_are_numbered),
        cmocka_unit_test(many_names_keep_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
