/*
 * The look before the parse; see conf_scan.h.
 *
 * Happy path: tokens (word, quoted text, one of ={}()+,) drive a state that knows where a statement
 * begins, so that a brace is either a section's or a list's. Failures: WT_EINVAL with the line
 * where the open thing began.
 */
#include "core/conf_scan.h"

#include <string.h>

enum { DEPTH_MAX = 16 };

enum expect {
    EXPECT_NAME,  /* of an option or a section */
    EXPECT_TITLE, /* or "=" or "{" */
    EXPECT_BRACE,
    EXPECT_VALUE,
};

struct level {
    size_t start; /* of the section's name */
    int line;     /* of its brace */
    bool skip;    /* blanked when it ends */
};

struct scan {
    const struct wt_conf_table *table;
    const char *file;
    char *text;
    size_t len, at;
    int line;
    enum expect expect;
    size_t name, name_len; /* the statement's first word */
    bool list;             /* inside `= { ... }` */
    struct level level[DEPTH_MAX];
    size_t depth;
    struct wt_err *err;
};

static int refuse(const struct scan *s, int line, const char *what) {
    return wt_err_set(s->err, WT_EINVAL, "%s:%d: %s", s->file, line, what);
}

static bool starts(const struct scan *s, const char *what) {
    size_t n = strlen(what);
    return s->len - s->at >= n && memcmp(s->text + s->at, what, n) == 0;
}

static void step(struct scan *s) {
    s->line += s->text[s->at] == '\n';
    s->at++;
}

static int skip_comment(struct scan *s) {
    int line = s->line;
    if (!starts(s, "/*")) {
        while (s->at < s->len && s->text[s->at] != '\n')
            step(s);
        return 0;
    }
    while (s->at < s->len && !starts(s, "*/"))
        step(s);
    if (s->at == s->len)
        return refuse(s, line, "the comment that begins here never ends");
    s->at += 2;
    return 0;
}

static int skip_quoted(struct scan *s) {
    char quote = s->text[s->at];
    int line = s->line;
    step(s);
    while (s->at < s->len && s->text[s->at] != quote) {
        if (s->text[s->at] == '\\' && s->at + 1 < s->len)
            step(s);
        step(s);
    }
    if (s->at == s->len)
        return refuse(s, line, "the quoted text that begins here never ends");
    step(s);
    return 0;
}

static int skip_word(struct scan *s) {
    while (s->at < s->len && !strchr(" \t\r\n\"'#{}()=+,", s->text[s->at])) {
        if (s->text[s->at] == '\\')
            return refuse(s, s->line, "a backslash stands only in quotes");
        bool variable = starts(s, "${");
        while (variable && s->at < s->len && s->text[s->at] != '}')
            step(s);
        if (s->at < s->len)
            step(s);
    }
    return 0;
}

static bool known_section(const struct scan *s) {
    const char *name = s->text + s->name;
    for (size_t i = 0; i < s->table->n_opts; i++) {
        const char *section = s->table->opts[i].section;
        if (section && strlen(section) == s->name_len && memcmp(section, name, s->name_len) == 0)
            return true;
    }
    return false;
}

static int open_brace(struct scan *s) {
    if (s->expect == EXPECT_VALUE) {
        s->list = true;
        return 0;
    }
    if (s->depth == DEPTH_MAX)
        return refuse(s, s->line, "sections are nested too deeply");
    bool known = s->depth == 0 && s->expect != EXPECT_NAME && known_section(s);
    s->level[s->depth++] = (struct level){
        .start = s->name, .line = s->line, .skip = s->table->ignore_unknown && !known};
    s->expect = EXPECT_NAME;
    return 0;
}

static int close_brace(struct scan *s) {
    s->expect = EXPECT_NAME;
    if (s->list) {
        s->list = false;
        return 0;
    }
    if (s->depth == 0)
        return refuse(s, s->line, "unexpected closing brace");
    const struct level *l = &s->level[--s->depth];
    for (size_t i = l->start; l->skip && i <= s->at; i++)
        if (s->text[i] != '\n')
            s->text[i] = ' ';
    return 0;
}

static void word_done(struct scan *s, size_t start) {
    if (s->list)
        return;
    switch (s->expect) {
    case EXPECT_NAME:
        s->name = start;
        s->name_len = s->at - start;
        s->expect = EXPECT_TITLE;
        break;
    case EXPECT_TITLE:
        s->expect = EXPECT_BRACE;
        break;
    case EXPECT_BRACE:
    case EXPECT_VALUE:
        s->expect = EXPECT_NAME;
        break;
    }
}

static int punctuation(struct scan *s) {
    char c = s->text[s->at];
    int rc = c == '{' ? open_brace(s) : c == '}' ? close_brace(s) : 0;
    if (c == '=')
        s->expect = EXPECT_VALUE;
    step(s);
    return rc;
}

static int token(struct scan *s) {
    char c = s->text[s->at];
    if (strchr(" \t\r\n", c)) {
        step(s);
        return 0;
    }
    if (c == '#' || starts(s, "//") || starts(s, "/*"))
        return skip_comment(s);
    if (strchr("={}()+,", c))
        return punctuation(s);
    size_t start = s->at;
    int rc = c == '"' || c == '\'' ? skip_quoted(s) : skip_word(s);
    word_done(s, start);
    return rc;
}

int wt_conf_scan(const struct wt_conf_table *table, const char *name, char *text, size_t len,
                 struct wt_err *err) {
    struct scan s = {.table = table, .file = name, .text = text, .len = len, .line = 1, .err = err};
    while (s.at < s.len) {
        int rc = token(&s);
        if (rc < 0)
            return rc;
    }
    if (s.depth)
        return refuse(&s, s.level[s.depth - 1].line, "the section that begins here never ends");
    return 0;
}
