/* The label table of a CSV; see labels.h. */
#include "tools/ingest/labels.h"

#include "core/mem.h"
#include "tools/ingest/csv.h"
#include "tools/ingest/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wt_label_table {
    struct wt_csv *csv;    /* owns the texts */
    struct wt_names files; /* number = row */
    struct wt_label_row *row;
    size_t rows, row_cap;
    struct wt_bytes meta;
    size_t file, label, lot, wafer; /* columns; SIZE_MAX: none */
    char path[];
};

static int missing_column(const struct wt_label_table *t, const char *column, const char *hint,
                          struct wt_err *err) {
    char list[200] = "";
    size_t at = 0;
    for (size_t i = 0; i < wt_csv_columns(t->csv) && at < sizeof list; i++) {
        int n =
            snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", wt_csv_column(t->csv, i));
        at += n > 0 ? (size_t)n : 0;
    }
    return wt_err_set(err, WT_EFORMAT, "%s: has no column '%s' among: %s%s", t->path, column, list,
                      hint);
}

static int find_columns(struct wt_label_table *t, const char *label_column, struct wt_err *err) {
    const char *label = label_column ? label_column : "label";
    t->file = wt_csv_find(t->csv, "file");
    t->label = wt_csv_find(t->csv, label);
    t->lot = wt_csv_find(t->csv, "lot");
    t->wafer = wt_csv_find(t->csv, "wafer");
    if (t->file == SIZE_MAX)
        return missing_column(t, "file", "", err);
    if (t->label == SIZE_MAX)
        return missing_column(t, label, " (name it with --label-column)", err);
    return 0;
}

/* Is the text a number as JSON writes them? */
static bool is_json_number(const char *s) {
    s += *s == '-';
    size_t whole = strspn(s, "0123456789");
    if (whole == 0 || whole > 18 || (s[0] == '0' && whole > 1))
        return false;
    s += whole;
    if (*s == '.') {
        size_t digits = strspn(++s, "0123456789");
        if (digits == 0 || digits > 18)
            return false;
        s += digits;
    }
    return *s == '\0';
}

static int add_meta(struct wt_label_table *t, char *const *fields, struct wt_label_row *row) {
    struct wt_bytes *m = &t->meta;
    row->meta = m->len;
    for (size_t i = 0; i < wt_csv_columns(t->csv); i++) {
        if (i == t->file || i == t->label || i == t->lot || i == t->wafer || !fields[i][0])
            continue;
        int rc = wt_bytes_add(m, ",", 1);
        if (rc == 0)
            rc = wt_json_text(m, wt_csv_column(t->csv, i));
        if (rc == 0)
            rc = wt_bytes_add(m, ":", 1);
        if (rc == 0)
            rc = is_json_number(fields[i]) ? wt_bytes_add(m, fields[i], strlen(fields[i]))
                                           : wt_json_text(m, fields[i]);
        if (rc < 0)
            return rc;
    }
    return wt_bytes_zeros(m, 1);
}

/* Paths as this program writes them: no "./" in front, slashes. */
static char *clean_path(char *file) {
    for (char *p = file; *p; p++)
        if (*p == '\\')
            *p = '/';
    while (strncmp(file, "./", 2) == 0)
        file += 2;
    return file;
}

static int add_row(struct wt_label_table *t, char *const *fields, uint64_t line,
                   struct wt_err *err) {
    char *file = clean_path(fields[t->file]);
    if (!file[0])
        return wt_err_set(err, WT_EFORMAT, "%s: line %" PRIu64 " names no file", t->path, line);
    uint32_t number;
    if (wt_names_add(&t->files, file, &number) < 0 ||
        wt_grow(&t->row, &t->row_cap, t->rows + 1, sizeof *t->row) < 0)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory", t->path);
    if (number < t->rows)
        return wt_err_set(err, WT_EFORMAT,
                          "%s: '%s' stands in line %" PRIu64 " and again in line %" PRIu64, t->path,
                          file, t->row[number].line, line);
    struct wt_label_row *row = &t->row[t->rows++];
    *row = (struct wt_label_row){.file = file,
                                 .label = fields[t->label],
                                 .lot = t->lot == SIZE_MAX ? NULL : fields[t->lot],
                                 .wafer = t->wafer == SIZE_MAX ? NULL : fields[t->wafer],
                                 .line = line};
    return add_meta(t, fields, row) < 0 ? wt_err_set(err, WT_ENOMEM, "%s: no memory", t->path) : 0;
}

int wt_label_table_open(const char *path, const char *label_column, struct wt_label_table **out,
                        struct wt_err *err) {
    struct wt_label_table *t = wt_calloc(1, sizeof *t + strlen(path) + 1);
    if (!t)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory", path);
    memcpy(t->path, path, strlen(path) + 1);
    int rc = wt_csv_open(path, &t->csv, err);
    if (rc == 0)
        rc = find_columns(t, label_column, err);
    char *const *fields;
    uint64_t line;
    while (rc == 0) {
        int more = wt_csv_next(t->csv, &fields, &line, err);
        if (more == 0)
            break;
        rc = more < 0 ? more : add_row(t, fields, line, err);
    }
    if (rc < 0)
        wt_label_table_close(t);
    else
        *out = t;
    return rc;
}

int wt_label_table_take(struct wt_label_table *t, const char *rel, const struct wt_label_row **row,
                        struct wt_err *err) {
    uint32_t number = wt_names_find(&t->files, rel);
    const char *slash = strrchr(rel, '/');
    if (number == WT_NAME_NONE && slash)
        number = wt_names_find(&t->files, slash + 1);
    *row = NULL;
    if (number == WT_NAME_NONE)
        return 0;
    struct wt_label_row *r = &t->row[number];
    if (r->taken)
        return wt_err_set(err, WT_EINVAL,
                          "%s: line %" PRIu64
                          " ('%s') fits two files, %s and %s; write their paths in the table",
                          t->path, r->line, r->file, r->taken, rel);
    r->taken = strdup(rel);
    if (!r->taken)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory", t->path);
    *row = r;
    return 0;
}

const char *wt_label_table_meta(const struct wt_label_table *t, const struct wt_label_row *row) {
    return (const char *)t->meta.data + row->meta;
}

uint64_t wt_label_table_unused(const struct wt_label_table *t, const struct wt_label_row **first) {
    uint64_t n = 0;
    for (size_t i = 0; i < t->rows; i++) {
        if (t->row[i].taken)
            continue;
        if (n++ == 0)
            *first = &t->row[i];
    }
    return n;
}

void wt_label_table_close(struct wt_label_table *t) {
    if (!t)
        return;
    for (size_t i = 0; i < t->rows; i++)
        free(t->row[i].taken);
    wt_csv_close(t->csv);
    wt_names_free(&t->files);
    free(t->row);
    wt_bytes_free(&t->meta);
    free(t);
}
