/* Fuzz: CSV files. Rows that were read, written again with every field quoted, read back the same;
 * the same bytes as a table of labels. */
#include "tools/ingest/csv.h"

#include "core/bytes.h"
#include "tools/ingest/labels.h"

#include "fuzz.h"

#include <stdlib.h>
#include <unistd.h>

static void put_row(struct wt_bytes *out, char *const *field, size_t n) {
    for (size_t i = 0; i < n; i++) {
        FUZZ_CHECK(wt_bytes_add(out, i ? ",\"" : "\"", i ? 2 : 1) == 0);
        for (const char *p = field[i]; *p; p++) {
            FUZZ_CHECK(wt_bytes_add(out, p, 1) == 0);
            if (*p == '"')
                FUZZ_CHECK(wt_bytes_add(out, p, 1) == 0);
        }
        FUZZ_CHECK(wt_bytes_add(out, "\"", 1) == 0);
    }
    FUZZ_CHECK(wt_bytes_add(out, "\n", 1) == 0);
}

static void put_header(const struct wt_csv *csv, struct wt_bytes *out) {
    size_t n = wt_csv_columns(csv);
    char **name = fuzz_alloc(n * sizeof *name);
    for (size_t i = 0; i < n; i++) {
        name[i] = (char *)(uintptr_t)wt_csv_column(csv, i);
        FUZZ_CHECK(wt_csv_find(csv, name[i]) <= i);
    }
    put_row(out, name, n);
    free(name);
}

/* All rows with every field quoted; false when the text is refused somewhere. */
static bool rewrite(const void *text, size_t size, struct wt_bytes *out) {
    struct wt_csv *csv = NULL;
    struct wt_err err = {0};
    int rc = wt_csv_parse("fuzz.csv", fuzz_copy(text, size), size, &csv, &err);
    if (rc < 0) {
        FUZZ_CHECK(rc == err.code && err.text[0]);
        return false;
    }
    char *const *field;
    uint64_t line, before = 0;
    put_header(csv, out);
    while ((rc = wt_csv_next(csv, &field, &line, &err)) == 1) {
        FUZZ_CHECK(line > before);
        before = line;
        put_row(out, field, wt_csv_columns(csv));
    }
    FUZZ_CHECK(rc == 0 || (rc == err.code && err.text[0]));
    wt_csv_close(csv);
    return rc == 0;
}

static void as_labels(const uint8_t *data, size_t size) {
    char path[FUZZ_PATH];
    struct wt_label_table *t = NULL;
    struct wt_err err = {0};
    int fd = fuzz_file(data, size, path);
    if (wt_label_table_open(path, NULL, &t, &err) == 0) {
        const struct wt_label_row *row = NULL;
        if (wt_label_table_take(t, "folder/a.png", &row, &err) == 0 && row)
            FUZZ_CHECK(wt_label_table_meta(t, row) && row->label);
        wt_label_table_unused(t, &row);
        wt_label_table_close(t);
    } else {
        FUZZ_CHECK(err.code < 0 && err.text[0]);
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct wt_bytes once = {0}, twice = {0};
    if (rewrite(data, size, &once)) {
        FUZZ_CHECK(rewrite(once.data, once.len, &twice));
        FUZZ_CHECK(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
    }
    wt_bytes_free(&once);
    wt_bytes_free(&twice);
    as_labels(data, size);
    return 0;
}
