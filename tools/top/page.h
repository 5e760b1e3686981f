/*
 * A screen as lines of text, without any terminal: what `wafertier top` draws into. Lines are cut
 * at the width; what does not fit the height is left out. Text from outside goes through
 * wt_page_clean, so that no name can steer a terminal.
 */
#ifndef WT_TOOLS_TOP_PAGE_H
#define WT_TOOLS_TOP_PAGE_H

#include "core/bytes.h"

#include <stdbool.h>

/* Marks in a line; they take no column. Each holds until WT_MARK_OFF or the line's end. */
#define WT_MARK_OFF  "\001"
#define WT_MARK_HEAD "\002" /* reversed */
#define WT_MARK_BOLD "\003"
#define WT_MARK_BAD  "\004" /* red */
#define WT_MARK_WARN "\005" /* yellow */
#define WT_MARK_DIM  "\006"

enum { WT_PAGE_COLUMNS_MAX = 400, WT_PAGE_ROWS_MAX = 200, WT_PAGE_TEXT = 256 };

struct wt_page {
    unsigned columns, rows;
    bool utf8; /* else ASCII alone */
    unsigned n;
    struct wt_bytes text;        /* the lines, NUL-terminated, with marks */
    size_t at[WT_PAGE_ROWS_MAX]; /* where each begins */
};
void wt_page_begin(struct wt_page *f, unsigned columns, unsigned rows, bool utf8);
void wt_page_free(struct wt_page *f);
unsigned wt_page_left(const struct wt_page *f); /* lines that still fit */
/* Without memory the line is empty. */
void wt_page_line(struct wt_page *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline const char *wt_page_at(const struct wt_page *f, unsigned row) {
    return row < f->n ? (const char *)f->text.data + f->at[row] : "";
}

/* Text from outside, padded with blanks or cut to `columns`; returns out. */
const char *wt_page_clean(const struct wt_page *f, const char *text, unsigned columns,
                          char out[WT_PAGE_TEXT]);
/* A bar of `columns`; returns out. */
const char *wt_page_bar(const struct wt_page *f, double part, unsigned columns,
                        char out[WT_PAGE_TEXT]);
/* A line's marks as escape sequences (or as nothing); appended to out. */
int wt_page_encode(const char *line, bool marks, struct wt_bytes *out);

#endif
