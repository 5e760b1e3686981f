/*
 * Reading configurations with libconfuse; see conf.h.
 *
 * Happy path: the table becomes libconfuse options, all of them strings; each value is checked by
 * its row the moment it is parsed, when file and line are known; when the whole file is good, the
 * target is filled, which cannot fail. Failures: WT_EINVAL with the first error; those of open and
 * read; the target is untouched then.
 */
#include "core/conf.h"

#include "core/conf_scan.h"
#include "core/conf_value.h"
#include "core/mem.h"

#include <confuse.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20, NAMES_MAX = 256 };

/* libconfuse's scanner keeps its state in static variables: one parse at a time in the process. */
static pthread_mutex_t scanner = PTHREAD_MUTEX_INITIALIZER;

/* An option of this name carries the parse's context through libconfuse, whose callbacks have no
 * argument of ours. No file can set it: a name has no space. */
#define CONTEXT " context"

struct parse {
    const struct wt_conf_table *table;
    const char *name; /* of the file, for messages */
    struct wt_err *err;
    bool failed;
};

static struct parse *context_of(const cfg_t *cfg) {
    const cfg_opt_t *o = cfg->opts;
    while (strcmp(o->name, CONTEXT) != 0)
        o++;
    return (struct parse *)(void *)o->simple_value.ptr;
}

static const char *section_of(const cfg_t *cfg) {
    return strcmp(cfg->name, "root") == 0 ? NULL : cfg->name;
}

/* The first error counts: libconfuse reports what follows from it as well. */
static void fail(const cfg_t *cfg, const char *text) {
    struct parse *p = context_of(cfg);
    if (p->failed)
        return;
    p->failed = true;
    wt_err_set(p->err, WT_EINVAL, "%s:%d: %s", p->name, cfg->line, text);
}

static void fail_unknown(const cfg_t *cfg, const char *word) {
    const char *names[NAMES_MAX];
    size_t n = 0;
    for (const cfg_opt_t *o = cfg->opts; o->name && n < NAMES_MAX; o++)
        if (strcmp(o->name, CONTEXT) != 0)
            names[n++] = o->name;
    const char *nearest = wt_nearest(word, names, n);
    char text[256];
    snprintf(text, sizeof text, "unknown option '%.80s'%s%s%s%s%s%s", word,
             section_of(cfg) ? " in section " : "", section_of(cfg) ? section_of(cfg) : "",
             nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "",
             nearest ? "" : "; --print-config shows all");
    fail(cfg, text);
}

static void on_error(cfg_t *cfg, const char *fmt, va_list args) {
    char text[256];
    vsnprintf(text, sizeof text, fmt, args);
    static const char unknown[] = "no such option '";
    char *end = strrchr(text, '\'');
    if (strncmp(text, unknown, sizeof unknown - 1) == 0 && end >= text + sizeof unknown - 1) {
        *end = '\0';
        fail_unknown(cfg, text + sizeof unknown - 1);
        return;
    }
    fail(cfg, text);
}

static const struct wt_conf_opt *row_of(const struct wt_conf_table *t, const char *section,
                                        const char *name) {
    for (size_t i = 0; i < t->n_opts; i++)
        if (wt_conf_same_section(t->opts[i].section, section) && strcmp(t->opts[i].name, name) == 0)
            return &t->opts[i];
    return NULL;
}

/* libconfuse calls it after each assignment. */
static int check_value(cfg_t *cfg, cfg_opt_t *opt) {
    const struct wt_conf_opt *row = row_of(context_of(cfg)->table, section_of(cfg), opt->name);
    const char *text = cfg_opt_getnstr(opt, cfg_opt_size(opt) - 1);
    struct wt_conf_value value;
    struct wt_err err = {0};
    if (row && text && wt_conf_value_parse(row, text, &value, &err) == 0)
        return 0;
    char line[WT_ERR_TEXT + 80];
    snprintf(line, sizeof line, "option '%s': %s", opt->name, row && text ? err.text : "no value");
    fail(cfg, line);
    return -1;
}

static const char *missing_option(const struct wt_conf_table *t, cfg_t *sec, const char *section) {
    for (size_t i = 0; i < t->n_opts; i++) {
        const struct wt_conf_opt *row = &t->opts[i];
        if (!row->def && wt_conf_same_section(row->section, section) &&
            cfg_size(sec, row->name) == 0)
            return row->name;
    }
    return NULL;
}

/* It stands in messages, file formats and JSON. */
static bool is_title(const char *title) {
    size_t n = 0;
    while (title[n] >= ' ' && title[n] <= '~')
        n++;
    return n > 0 && n < 64 && title[n] == '\0';
}

/* ... and after each section. */
static int check_section(cfg_t *cfg, cfg_opt_t *opt) {
    const struct wt_conf_table *t = context_of(cfg)->table;
    const struct wt_conf_section *s = wt_conf_section(t, opt->name);
    cfg_t *sec = cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1);
    char line[256] = "";
    const char *missing = missing_option(t, sec, opt->name);
    if (missing)
        snprintf(line, sizeof line, "section %s \"%.63s\": option '%s' must be given", opt->name,
                 s ? cfg_title(sec) : "", missing);
    else if (s && cfg_opt_size(opt) > s->max)
        snprintf(line, sizeof line, "more than %zu sections '%s'", s->max, s->name);
    else if (s && !is_title(cfg_title(sec)))
        snprintf(line, sizeof line, "section %s: its name must have 1 to 63 letters (ASCII)",
                 s->name);
    if (!line[0])
        return 0;
    fail(cfg, line);
    return -1;
}

static cfg_opt_t context_option(struct parse *p) {
    cfg_opt_t o = {.name = CONTEXT, .type = CFGT_PTR, .flags = CFGF_NODEFAULT};
    o.simple_value.ptr = (void **)(void *)p;
    return o;
}

/* Options of one section into out[], ended by CFG_END. */
static size_t group_options(const struct wt_conf_table *t, size_t first, struct parse *p,
                            cfg_opt_t *out) {
    size_t n = 0;
    out[n++] = context_option(p);
    for (size_t i = first; i < wt_conf_group_end(t, first); i++)
        out[n++] = (cfg_opt_t)CFG_STR(t->opts[i].name, NULL, CFGF_NODEFAULT);
    for (size_t i = 1; i < n; i++)
        out[i].validcb = check_value;
    out[n++] = (cfg_opt_t)CFG_END();
    return n;
}

static cfg_opt_t section_option(const struct wt_conf_table *t, const char *name, cfg_opt_t *subs) {
    cfg_flag_t flags = CFGF_NODEFAULT;
    if (wt_conf_section(t, name))
        flags |= CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES;
    cfg_opt_t o = CFG_SEC(name, subs, flags);
    o.validcb = check_section;
    return o;
}

/* One allocation: the root's options, then those of each section. libconfuse copies them in
 * cfg_init. */
static cfg_opt_t *build_options(const struct wt_conf_table *t, struct parse *p) {
    size_t groups = 0;
    for (size_t i = 0; i < t->n_opts; i = wt_conf_group_end(t, i))
        groups++;
    size_t root_room = 2 + t->n_opts + groups;
    cfg_opt_t *all = wt_calloc(root_room + t->n_opts + 2 * groups, sizeof *all);
    if (!all)
        return NULL;
    cfg_opt_t *sub = all + root_room;
    size_t n = 0;
    all[n++] = context_option(p);
    for (size_t i = 0; i < t->n_opts; i = wt_conf_group_end(t, i)) {
        const char *section = t->opts[i].section;
        size_t used = group_options(t, i, p, sub);
        if (section) {
            all[n++] = section_option(t, section, sub);
            sub += used;
            continue;
        }
        for (size_t k = 1; k + 1 < used; k++) /* top level: without context and end */
            all[n++] = sub[k];
    }
    all[n] = (cfg_opt_t)CFG_END();
    return all;
}

static void fill_group(const struct wt_conf_table *t, size_t first, cfg_t *cfg, void *base) {
    for (size_t i = first; i < wt_conf_group_end(t, first); i++) {
        const struct wt_conf_opt *row = &t->opts[i];
        unsigned n = cfg ? cfg_size(cfg, row->name) : 0;
        const char *text = n ? cfg_getnstr(cfg, row->name, n - 1) : row->def;
        struct wt_conf_value value = {.text = ""};
        if (text) /* both were parsed before */
            wt_conf_value_parse(row, text, &value, NULL);
        wt_conf_value_store(row, &value, base);
    }
}

static void fill_elements(const struct wt_conf_table *t, const struct wt_conf_section *s,
                          size_t first, cfg_t *root, void *target) {
    size_t count = cfg_size(root, s->name);
    memset((char *)target + s->array, 0, s->max * s->element);
    for (size_t k = 0; k < count; k++) {
        cfg_t *sec = cfg_getnsec(root, s->name, (unsigned)k);
        char *element = (char *)target + s->array + k * s->element;
        fill_group(t, first, sec, element);
        snprintf(element + s->title, 64, "%s", cfg_title(sec));
    }
    memcpy((char *)target + s->count, &count, sizeof count);
}

static void fill(const struct wt_conf_table *t, cfg_t *root, void *target) {
    for (size_t i = 0; i < t->n_opts; i = wt_conf_group_end(t, i)) {
        const char *name = t->opts[i].section;
        const struct wt_conf_section *s = wt_conf_section(t, name);
        if (s)
            fill_elements(t, s, i, root, target);
        else if (!name)
            fill_group(t, i, root, target);
        else
            fill_group(t, i, cfg_size(root, name) ? cfg_getsec(root, name) : NULL, target);
    }
}

/* A default that its own row refuses is a mistake in the table; said at once, not when the option
 * is left out one day. */
static int check_table(const struct wt_conf_table *t, struct wt_err *err) {
    for (size_t i = 0; i < t->n_opts; i++) {
        struct wt_conf_value value;
        if (t->opts[i].def && wt_conf_value_parse(&t->opts[i], t->opts[i].def, &value, err) < 0)
            return wt_err_wrap(err, "%s: default of '%s'", t->what, t->opts[i].name);
    }
    return 0;
}

/* Required options outside repeated sections: nothing in the file may have opened their section. */
static int check_required(const struct wt_conf_table *t, cfg_t *root, const char *name,
                          struct wt_err *err) {
    for (size_t i = 0; i < t->n_opts; i++) {
        const struct wt_conf_opt *row = &t->opts[i];
        if (row->def || wt_conf_section(t, row->section))
            continue;
        cfg_t *at = !row->section                  ? root
                    : cfg_size(root, row->section) ? cfg_getsec(root, row->section)
                                                   : NULL;
        if (!at || cfg_size(at, row->name) == 0)
            return wt_err_set(err, WT_EINVAL, "%s: option '%s%s%s' must be given", name,
                              row->section ? row->section : "", row->section ? "." : "", row->name);
    }
    return 0;
}

static int parse_stream(const struct wt_conf_table *t, struct parse *p, cfg_opt_t *opts, FILE *in,
                        void *target) {
    cfg_t *root = cfg_init(opts, t->ignore_unknown ? CFGF_IGNORE_UNKNOWN : CFGF_NONE);
    if (!root)
        return wt_err_set(p->err, WT_ENOMEM, "%s: out of memory", p->name);
    root->filename = strdup(p->name);
    cfg_set_error_function(root, on_error);
    int rc = cfg_parse_fp(root, in) == CFG_SUCCESS && !p->failed ? 0 : WT_EINVAL;
    if (rc < 0 && !p->failed)
        wt_err_set(p->err, WT_EINVAL, "%s: cannot be parsed", p->name);
    if (rc == 0)
        rc = check_required(t, root, p->name, p->err);
    if (rc == 0)
        fill(t, root, target);
    cfg_free(root);
    return rc;
}

/* text is the caller's copy: the scan may blank parts of it. */
static int parse_text(const struct wt_conf_table *t, const char *name, char *text, size_t len,
                      void *target, struct wt_err *err) {
    struct wt_err local = {0};
    struct parse p = {.table = t, .name = name, .err = err ? err : &local};
    int rc = check_table(t, p.err);
    if (rc == 0 && memchr(text, '\0', len))
        rc = wt_err_set(p.err, WT_EINVAL, "%s: is no text file (it holds NUL bytes)", name);
    if (rc == 0)
        rc = wt_conf_scan(t, name, text, len, p.err);
    if (rc < 0)
        return rc;
    cfg_opt_t *opts = build_options(t, &p);
    FILE *in = len ? fmemopen(text, len, "r") : fopen("/dev/null", "re");
    if (!opts || !in) {
        rc = wt_err_set(p.err, WT_ENOMEM, "%s: out of memory", name);
    } else {
        pthread_mutex_lock(&scanner);
        rc = parse_stream(t, &p, opts, in, target);
        pthread_mutex_unlock(&scanner);
    }
    if (in)
        fclose(in);
    free(opts);
    return rc;
}

int wt_conf_parse(const struct wt_conf_table *table, const char *name, const char *text,
                  void *target, struct wt_err *err) {
    char *copy = strdup(text);
    if (!copy)
        return wt_err_set(err, WT_ENOMEM, "%s: out of memory", name);
    int rc = parse_text(table, name, copy, strlen(copy), target, err);
    free(copy);
    return rc;
}

static int read_all(int fd, const char *path, char *buf, size_t *len, struct wt_err *err) {
    *len = 0;
    while (*len <= FILE_MAX) {
        ssize_t n = read(fd, buf + *len, FILE_MAX + 1 - *len);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return wt_err_sys(err, errno, "%s: cannot be read", path);
        *len += n > 0 ? (size_t)n : 0;
    }
    return wt_err_set(err, WT_EINVAL, "%s: larger than 1 MiB is no configuration", path);
}

int wt_conf_load(const struct wt_conf_table *table, const char *path, void *target,
                 struct wt_err *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return wt_err_sys(err, errno, "%s: cannot be opened", path);
    size_t len = 0;
    char *buf = malloc(FILE_MAX + 1);
    int rc = buf ? read_all(fd, path, buf, &len, err)
                 : wt_err_set(err, WT_ENOMEM, "%s: out of memory", path);
    close(fd);
    if (rc == 0)
        rc = parse_text(table, path, buf, len, target, err);
    free(buf);
    return rc;
}
