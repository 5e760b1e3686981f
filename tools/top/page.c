/* Lines of a screen; see page.h. Columns of letters come from the C library's tables. */
#include "tools/top/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

void wt_page_begin(struct wt_page *f, unsigned columns, unsigned rows, bool utf8) {
    f->columns = columns < WT_PAGE_COLUMNS_MAX ? columns : WT_PAGE_COLUMNS_MAX;
    f->rows = rows < WT_PAGE_ROWS_MAX ? rows : WT_PAGE_ROWS_MAX;
    f->utf8 = utf8;
    f->n = 0;
    f->text.len = 0;
}

void wt_page_free(struct wt_page *f) {
    wt_bytes_free(&f->text);
    f->n = 0;
}

unsigned wt_page_left(const struct wt_page *f) {
    return f->rows - f->n;
}

/* The next letter of a text: how many bytes, and how many columns it takes on a screen (-1: it has
 * none, or it is no letter at all). */
static size_t next_letter(const struct wt_page *f, const char *text, int *columns) {
    unsigned char c = (unsigned char)*text;
    wchar_t wide;
    mbstate_t state = {0};
    *columns = c >= 0x20 && c < 0x7f ? 1 : -1;
    if (c < 0x80 || !f->utf8)
        return 1;
    size_t n = mbrtowc(&wide, text, strlen(text), &state);
    if (n == 0 || n > 8)
        return 1;
    *columns = wcwidth(wide);
    return n;
}

const char *wt_page_clean(const struct wt_page *f, const char *text, unsigned columns,
                          char out[WT_PAGE_TEXT]) {
    size_t used = 0;
    unsigned at = 0;
    while (*text && used + 8 < WT_PAGE_TEXT) {
        int wide;
        size_t n = next_letter(f, text, &wide);
        unsigned takes = wide < 0 ? 1 : (unsigned)wide;
        if (at + takes > columns)
            break;
        if (wide < 0)
            out[used++] = '?';
        else
            memcpy(out + used, text, n);
        used += wide < 0 ? 0 : n;
        at += takes;
        text += n;
    }
    while (at++ < columns && used + 1 < WT_PAGE_TEXT)
        out[used++] = ' ';
    out[used] = '\0';
    return out;
}

static bool is_mark(char c) {
    return c >= WT_MARK_OFF[0] && c <= WT_MARK_DIM[0];
}

/* Bytes of the line's part that fits the width. */
static size_t fitting(const struct wt_page *f, const char *line) {
    size_t at = 0;
    for (unsigned column = 0; line[at];) {
        int wide = 0;
        size_t n = is_mark(line[at]) ? 1 : next_letter(f, line + at, &wide);
        column += wide < 0 ? 1 : (unsigned)wide;
        if (column > f->columns)
            break;
        at += n;
    }
    return at;
}

void wt_page_line(struct wt_page *f, const char *fmt, ...) {
    char line[4 * WT_PAGE_COLUMNS_MAX];
    va_list args;
    if (f->n >= f->rows)
        return;
    va_start(args, fmt);
    if (vsnprintf(line, sizeof line, fmt, args) < 0)
        line[0] = '\0';
    va_end(args);
    f->at[f->n] = f->text.len;
    if (wt_bytes_add(&f->text, line, fitting(f, line)) < 0 || wt_bytes_add(&f->text, "", 1) < 0) {
        f->rows = f->n; /* no memory: the screen ends here */
        return;
    }
    f->n++;
}

/* Eighths of a column where letters for them are to be had. */
const char *wt_page_bar(const struct wt_page *f, double part, unsigned columns,
                        char out[WT_PAGE_TEXT]) {
    static const char *const eighth[] = {"·", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    unsigned full = (unsigned)(part * columns * 8 + 0.5);
    size_t used = 0;
    for (unsigned i = 0; i < columns && used + 8 < WT_PAGE_TEXT; i++) {
        unsigned rest = full > i * 8 ? full - i * 8 : 0;
        const char *letter = !f->utf8 ? (rest >= 4 ? "#" : ".") : rest >= 8 ? "█" : eighth[rest];
        size_t n = strlen(letter);
        memcpy(out + used, letter, n);
        used += n;
    }
    out[used] = '\0';
    return out;
}

int wt_page_encode(const char *line, bool marks, struct wt_bytes *out) {
    static const char *const codes[] = {"\033[0m",  "\033[7m",  "\033[1m",
                                        "\033[31m", "\033[33m", "\033[2m"};
    bool marked = false;
    int rc = 0;
    while (rc == 0 && *line) {
        size_t n = 0;
        while (line[n] && !is_mark(line[n]))
            n++;
        rc = wt_bytes_add(out, line, n);
        line += n;
        if (!*line || rc < 0)
            break;
        const char *code = codes[*line - WT_MARK_OFF[0]];
        marked = *line != WT_MARK_OFF[0];
        if (marks)
            rc = wt_bytes_add(out, code, strlen(code));
        line++;
    }
    if (rc == 0 && marked && marks)
        rc = wt_bytes_add(out, codes[0], strlen(codes[0]));
    return rc;
}
