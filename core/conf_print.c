/*
 * Writing a configuration, and what a reload may not change; see conf.h.
 *
 * Every option is printed with its help, range and default, then its value; in a repeated section
 * the comments stand in the first element only. Failures: those of the stream, which its owner
 * checks (ferror).
 */
#include "core/conf_value.h"

#include <ctype.h>
#include <string.h>

enum { WIDTH = 92 };

/* Comment lines of at most WIDTH columns. */
static void print_comment(FILE *out, const char *indent, const char *text) {
    size_t column = 0;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column && column + 1 + word > WIDTH) {
            fputc('\n', out);
            column = 0;
        }
        if (column == 0)
            column += (size_t)fprintf(out, "%s#", indent);
        fprintf(out, " %.*s", (int)word, text);
        column += 1 + word;
        text += word;
        text += strspn(text, " ");
    }
    if (column)
        fputc('\n', out);
}

/* Sizes and times carry their unit in the value. */
static bool shows_unit(const struct wt_conf_opt *opt) {
    return (opt->type == WT_CONF_INT || opt->type == WT_CONF_REAL) && opt->unit && opt->unit[0];
}

static void print_help(const struct wt_conf_opt *opt, const char *indent, FILE *out) {
    char range[WT_CONF_RANGE], line[1000];
    wt_conf_range(opt, range);
    bool unit = shows_unit(opt);
    snprintf(line, sizeof line, "%c%s.%s%s%s%s%s%s%s", toupper((unsigned char)opt->help[0]),
             opt->help[0] ? opt->help + 1 : "", unit ? " In " : "", unit ? opt->unit : "",
             range[0] ? (unit ? ", " : " From ") : "", range, unit || range[0] ? "." : "",
             opt->def ? " Default: " : " Must be given.",
             opt->def ? (opt->def[0] ? opt->def : "none") : "");
    print_comment(out, indent, line);
    if (!opt->reloadable)
        print_comment(out, indent, "Changing it needs a restart.");
}

static void print_default(const struct wt_conf_opt *opt, FILE *out) {
    if (opt->type == WT_CONF_TEXT || opt->type == WT_CONF_SIZE || opt->type == WT_CONF_TIME)
        wt_conf_text_print(opt->def, out);
    else
        fputs(opt->def, out);
}

/* base NULL: the default; an option that has none stands as a comment. */
static void print_opt(const struct wt_conf_opt *opt, const void *base, const char *indent,
                      FILE *out) {
    if (!base && !opt->def) {
        fprintf(out, "%s# %s = \"...\"\n", indent, opt->name);
        return;
    }
    fprintf(out, "%s%s = ", indent, opt->name);
    if (base)
        wt_conf_value_print(opt, base, out);
    else
        print_default(opt, out);
    fputc('\n', out);
}

static void print_group(const struct wt_conf_table *t, size_t first, const void *base,
                        const char *indent, bool help, FILE *out) {
    for (size_t i = first; i < wt_conf_group_end(t, first); i++) {
        if (help && i > first)
            fputc('\n', out);
        if (help)
            print_help(&t->opts[i], indent, out);
        print_opt(&t->opts[i], base, indent, out);
    }
}

static void print_elements(const struct wt_conf_table *t, const struct wt_conf_section *s,
                           size_t first, const void *target, FILE *out) {
    size_t count = 0;
    if (target)
        memcpy(&count, (const char *)target + s->count, sizeof count);
    if (s->help)
        print_comment(out, "", s->help);
    if (count == 0) { /* none: the options as comments, so that the file parses back */
        fprintf(out, "# %s \"NAME\" {\n", s->name);
        for (size_t i = first; i < wt_conf_group_end(t, first); i++) {
            print_help(&t->opts[i], "#  ", out);
            fprintf(out, "#   %s = %s\n", t->opts[i].name, t->opts[i].def ? t->opts[i].def : "...");
        }
        fputs("# }\n", out);
    }
    for (size_t k = 0; k < count; k++) {
        const char *element = (const char *)target + s->array + k * s->element;
        fprintf(out, "%s%s ", k ? "\n" : "", s->name);
        wt_conf_text_print(element + s->title, out);
        fputs(" {\n", out);
        print_group(t, first, element, "    ", k == 0, out);
        fputs("}\n", out);
    }
}

void wt_conf_print(const struct wt_conf_table *table, const void *target, FILE *out) {
    fprintf(out, "# %s\n", table->what);
    for (size_t i = 0; i < table->n_opts; i = wt_conf_group_end(table, i)) {
        const char *name = table->opts[i].section;
        const struct wt_conf_section *titled = wt_conf_section(table, name);
        fputc('\n', out);
        if (titled) {
            print_elements(table, titled, i, target, out);
        } else if (name) {
            fprintf(out, "%s {\n", name);
            print_group(table, i, target, "    ", true, out);
            fputs("}\n", out);
        } else {
            print_group(table, i, target, "", true, out);
        }
    }
}

/* ---- what differs ---- */

struct compare {
    const struct wt_conf_table *table;
    bool reloadable; /* those that are, or those that are not */
    wt_conf_name_fn each;
    void *arg;
};

static void tell(const struct compare *c, const char *section, const char *title,
                 const char *name) {
    char text[160];
    snprintf(text, sizeof text, "%s%s%s%s%s", section ? section : "", title ? " " : "",
             title ? title : "", section ? "." : "", name);
    c->each(c->arg, text);
}

static void compare_group(const struct compare *c, size_t first, const char *title, const void *a,
                          const void *b) {
    for (size_t i = first; i < wt_conf_group_end(c->table, first); i++) {
        const struct wt_conf_opt *opt = &c->table->opts[i];
        if (opt->reloadable == c->reloadable && !wt_conf_value_equal(opt, a, b))
            tell(c, opt->section, title, opt->name);
    }
}

/* Elements are matched by their place: adding, removing, renaming or reordering them is frozen as a
 * whole. */
static void compare_elements(const struct compare *c, const struct wt_conf_section *s, size_t first,
                             const void *a, const void *b) {
    size_t na, nb;
    memcpy(&na, (const char *)a + s->count, sizeof na);
    memcpy(&nb, (const char *)b + s->count, sizeof nb);
    bool same = na == nb;
    for (size_t k = 0; same && k < na; k++) {
        size_t at = s->array + k * s->element + s->title;
        same = strcmp((const char *)a + at, (const char *)b + at) == 0;
    }
    if (!same && !c->reloadable)
        tell(c, NULL, NULL, s->name);
    for (size_t k = 0; same && k < na; k++) {
        size_t at = s->array + k * s->element;
        compare_group(c, first, (const char *)a + at + s->title, (const char *)a + at,
                      (const char *)b + at);
    }
}

static void compare(const struct compare *c, const void *a, const void *b) {
    for (size_t i = 0; i < c->table->n_opts; i = wt_conf_group_end(c->table, i)) {
        const struct wt_conf_section *s = wt_conf_section(c->table, c->table->opts[i].section);
        if (s)
            compare_elements(c, s, i, a, b);
        else
            compare_group(c, i, NULL, a, b);
    }
}

void wt_conf_changed(const struct wt_conf_table *table, const void *a, const void *b,
                     wt_conf_name_fn each, void *arg) {
    compare(&(struct compare){.table = table, .reloadable = true, .each = each, .arg = arg}, a, b);
}

struct names { /* comma-separated, cut by the error's own bound */
    char text[256];
    size_t len;
};

static void add_name(void *arg, const char *name) {
    struct names *n = arg;
    int w = snprintf(n->text + n->len, sizeof n->text - n->len, "%s%s", n->len ? ", " : "", name);
    n->len += w > 0 ? (size_t)w : 0;
    if (n->len >= sizeof n->text)
        n->len = sizeof n->text - 1;
}

int wt_conf_frozen(const struct wt_conf_table *table, const void *a, const void *b,
                   struct wt_err *err) {
    struct names names = {0};
    compare(&(struct compare){.table = table, .each = add_name, .arg = &names}, a, b);
    return names.len ? wt_err_set(err, WT_EINVAL, "%s", names.text) : 0;
}
