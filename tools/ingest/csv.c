/* CSV files, unquoted in place; see csv.h. */
#include "tools/ingest/csv.h"

#include "core/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { COLUMNS_MAX = 1000 };
#define CSV_MAX (INT64_C(4) << 30)

struct wt_csv {
    char *text, *end; /* text[len] is NUL */
    char *next;
    uint64_t line; /* of next */
    char separator;
    char **header, **field;
    size_t columns;
    char name[]; /* for messages */
};

/* Ends the field that begins at p and unquotes it in place. *stop gets the byte that ended it ('\0'
 * at the end of the file); returns the byte after it, or NULL: a quote does not end. */
static char *take_field(struct wt_csv *csv, char *p, char **field, char *stop) {
    char *out = p;
    *field = p;
    bool quoted = *p == '"';
    if (quoted) {
        for (p++; p < csv->end && (*p != '"' || p[1] == '"'); p++) {
            csv->line += *p == '\n';
            p += *p == '"';
            *out++ = *p;
        }
        if (p >= csv->end)
            return NULL;
        p++;
    }
    const char *quotes_end = out; /* a CR in quotes is the field's own */
    while (p < csv->end && *p != csv->separator && *p != '\n')
        *out++ = *p++;
    *stop = p < csv->end ? *p : '\0';
    if (*stop != csv->separator && out > quotes_end && out[-1] == '\r')
        out--;
    char *after = p < csv->end ? p + 1 : p;
    *out = '\0';
    return after;
}

/* One row into csv->field; *n its fields, *line where it begins. 1, 0 at the end, or an error. */
static int take_row(struct wt_csv *csv, size_t *n, uint64_t *line, struct wt_err *err) {
    while (csv->next < csv->end &&
           (*csv->next == '\n' || (*csv->next == '\r' && csv->next[1] == '\n'))) {
        csv->line += *csv->next == '\n';
        csv->next++;
    }
    if (csv->next >= csv->end)
        return 0;
    *line = csv->line;
    char stop = csv->separator;
    for (*n = 0; stop == csv->separator; (*n)++) {
        if (*n == COLUMNS_MAX)
            return wt_err_set(err, WT_EFORMAT, "%s: line %" PRIu64 " has more than %d fields",
                              csv->name, *line, COLUMNS_MAX);
        csv->next = take_field(csv, csv->next, &csv->field[*n], &stop);
        if (!csv->next)
            return wt_err_set(err, WT_EFORMAT, "%s: the quote in line %" PRIu64 " does not end",
                              csv->name, *line);
    }
    csv->line += stop == '\n';
    return 1;
}

/* The first of , ; and tab that the first row has outside quotes. text: NUL-terminated. */
static char find_separator(const char *text) {
    static const char candidates[] = ",;\t";
    bool seen[sizeof candidates] = {false}, quoted = false;
    text += strspn(text, "\r\n");
    for (const char *p = text; *p && (quoted || *p != '\n'); p++) {
        const char *c = strchr(candidates, *p);
        bool begins = p == text || strchr(candidates, p[-1]);
        if (quoted && *p == '"' && p[1] == '"')
            p++;
        else if (*p == '"' && (quoted || begins))
            quoted = !quoted;
        else if (c && !quoted)
            seen[c - candidates] = true;
    }
    for (size_t i = 0; i + 1 < sizeof candidates; i++)
        if (seen[i])
            return candidates[i];
    return ',';
}

static int check_text(const struct wt_csv *csv, size_t len, struct wt_err *err) {
    const unsigned char *t = (const unsigned char *)csv->text;
    if (len >= 2 && ((t[0] == 0xff && t[1] == 0xfe) || (t[0] == 0xfe && t[1] == 0xff)))
        return wt_err_set(err, WT_EFORMAT, "%s: is UTF-16; save it as UTF-8", csv->name);
    if (memchr(t, 0, len))
        return wt_err_set(err, WT_EFORMAT, "%s: has NUL bytes: it is no text", csv->name);
    return 0;
}

static int read_header(struct wt_csv *csv, struct wt_err *err) {
    csv->field = wt_calloc(COLUMNS_MAX, sizeof *csv->field);
    csv->header = wt_calloc(COLUMNS_MAX, sizeof *csv->header);
    if (!csv->field || !csv->header)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory", csv->name);
    uint64_t line;
    int rc = take_row(csv, &csv->columns, &line, err);
    if (rc == 0)
        return wt_err_set(err, WT_EFORMAT, "%s: is empty; its first line has to name the columns",
                          csv->name);
    if (rc < 0)
        return rc;
    memcpy(csv->header, csv->field, csv->columns * sizeof *csv->field);
    return 0;
}

int wt_csv_parse(const char *name, char *text, size_t len, struct wt_csv **out,
                 struct wt_err *err) {
    struct wt_csv *csv = wt_calloc(1, sizeof *csv + strlen(name) + 1);
    char *grown = realloc(text, len + 1);
    if (!csv || !grown) {
        free(csv);
        free(grown ? grown : text);
        return wt_err_set(err, WT_ENOMEM, "%s: no memory", name);
    }
    memcpy(csv->name, name, strlen(name) + 1);
    grown[len] = '\0';
    csv->text = grown;
    csv->end = grown + len;
    bool bom = len >= 3 && memcmp(grown, "\xef\xbb\xbf", 3) == 0;
    csv->next = grown + (bom ? 3 : 0);
    csv->line = 1;
    csv->separator = find_separator(csv->next);
    int rc = check_text(csv, len, err);
    if (rc == 0)
        rc = read_header(csv, err);
    if (rc < 0)
        wt_csv_close(csv);
    else
        *out = csv;
    return rc;
}

int wt_csv_open(const char *path, struct wt_csv **out, struct wt_err *err) {
    FILE *f = fopen(path, "rbe");
    if (!f)
        return wt_err_sys(err, errno, "%s: cannot be opened", path);
    struct stat st;
    int rc = 0;
    char *text = NULL;
    size_t len = 0;
    if (fstat(fileno(f), &st) < 0)
        rc = wt_err_sys(err, errno, "%s: cannot be examined", path);
    else if (!S_ISREG(st.st_mode) || st.st_size > CSV_MAX)
        rc = wt_err_set(err, WT_EFORMAT, "%s: is no regular file of less than 4 GiB", path);
    else if (!(text = malloc((size_t)st.st_size + 1)))
        rc = wt_err_set(err, WT_ENOMEM, "%s: no memory", path);
    if (rc == 0) {
        len = fread(text, 1, (size_t)st.st_size, f);
        if (ferror(f))
            rc = wt_err_sys(err, errno, "%s: cannot be read", path);
    }
    fclose(f);
    if (rc < 0) {
        free(text);
        return rc;
    }
    return wt_csv_parse(path, text, len, out, err);
}

size_t wt_csv_columns(const struct wt_csv *csv) {
    return csv->columns;
}

const char *wt_csv_column(const struct wt_csv *csv, size_t i) {
    return csv->header[i];
}

size_t wt_csv_find(const struct wt_csv *csv, const char *column) {
    for (size_t i = 0; i < csv->columns; i++)
        if (strcasecmp(csv->header[i], column) == 0)
            return i;
    return SIZE_MAX;
}

int wt_csv_next(struct wt_csv *csv, char *const **fields, uint64_t *line, struct wt_err *err) {
    size_t n;
    int rc = take_row(csv, &n, line, err);
    if (rc <= 0)
        return rc;
    if (n != csv->columns)
        return wt_err_set(err, WT_EFORMAT,
                          "%s: line %" PRIu64 " has %zu fields, the header has %zu", csv->name,
                          *line, n, csv->columns);
    *fields = csv->field;
    return 1;
}

void wt_csv_close(struct wt_csv *csv) {
    if (!csv)
        return;
    free(csv->text);
    free(csv->header);
    free(csv->field);
    free(csv);
}
