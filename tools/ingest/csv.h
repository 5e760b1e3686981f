/*
 * Tables as text (RFC 4180): quotes, doubled quotes, line breaks in quotes, LF or CRLF, a UTF-8
 * byte order mark. The separator is what the first line has: comma, semicolon or tab.
 *
 * Happy path: open reads the file and its first row, the header; next gives row after row; fields
 * live until close. Failures: UTF-16 and NUL bytes, a quote that never ends, a row with another
 * number of fields: errors with the line.
 */
#ifndef WT_TOOLS_INGEST_CSV_H
#define WT_TOOLS_INGEST_CSV_H

#include "core/err.h"

#include <stddef.h>
#include <stdint.h>

struct wt_csv;
int wt_csv_open(const char *path, struct wt_csv **out, struct wt_err *err);
/* From memory that the caller gave to malloc, taken over by this call; `name` stands in errors. */
int wt_csv_parse(const char *name, char *text, size_t len, struct wt_csv **out, struct wt_err *err);
size_t wt_csv_columns(const struct wt_csv *csv);
const char *wt_csv_column(const struct wt_csv *csv, size_t i);
/* By name without regard to case; SIZE_MAX: none. */
size_t wt_csv_find(const struct wt_csv *csv, const char *column);
/* 1: a row, (*fields)[0 .. columns) valid until the next call, the texts until close; 0: the end;
 * negative: an error. */
int wt_csv_next(struct wt_csv *csv, char *const **fields, uint64_t *line, struct wt_err *err);
void wt_csv_close(struct wt_csv *csv);

#endif
