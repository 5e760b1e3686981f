/* Values of a configuration and names near a word; see conf_value.h and conf.h. */
#include "core/conf_value.h"

#include "core/bytes.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct time_unit {
    const char *name;
    uint64_t ms;
};

/* Largest first: printing takes the first that divides the value. */
static const struct time_unit time_units[] = {
    {"d", 86400000}, {"h", 3600000}, {"min", 60000}, {"s", 1000}, {"ms", 1},
};
enum { TIME_UNITS = sizeof time_units / sizeof time_units[0] };

int wt_time_parse(const char *text, uint64_t *ms, struct wt_err *err) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || !isfinite(value) || value < 0)
        return wt_err_set(err, WT_EINVAL, "'%s' is no time (write 500ms, 10s, 5min, 2h, 7d)", text);
    while (*end == ' ')
        end++;
    double scale = *end ? 0 : 1000;
    for (size_t i = 0; i < TIME_UNITS && scale == 0; i++)
        if (strcmp(end, time_units[i].name) == 0)
            scale = (double)time_units[i].ms;
    if (scale == 0)
        return wt_err_set(err, WT_EINVAL, "'%s': unknown unit of time (ms, s, min, h, d)", text);
    double total = round(value * scale);
    if (total >= 0x1p53)
        return wt_err_set(err, WT_EINVAL, "'%s' is too long a time", text);
    *ms = (uint64_t)total;
    return 0;
}

static int parse_bool(const char *text, bool *out, struct wt_err *err) {
    static const char *const yes[] = {"true", "yes", "on", "1"};
    static const char *const no[] = {"false", "no", "off", "0"};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
            *out = strcasecmp(text, yes[i]) == 0;
            return 0;
        }
    }
    return wt_err_set(err, WT_EINVAL, "'%s' is neither true nor false", text);
}

static int parse_int(const char *text, int64_t *out, struct wt_err *err) {
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno)
        return wt_err_set(err, WT_EINVAL, "'%s' is no whole number", text);
    *out = v;
    return 0;
}

static int parse_real(const char *text, double *out, struct wt_err *err) {
    char *end;
    double v = strtod(text, &end);
    bool percent = end != text && *end == '%';
    if (percent)
        end++;
    if (end == text || *end || !isfinite(v))
        return wt_err_set(err, WT_EINVAL, "'%s' is no number", text);
    *out = percent ? v / 100 : v;
    return 0;
}

static int parse_text(const struct wt_conf_opt *opt, const char *text, struct wt_conf_value *v,
                      struct wt_err *err) {
    if (strlen(text) >= opt->size)
        return wt_err_set(err, WT_EINVAL, "text of %zu bytes is too long, at most %zu",
                          strlen(text), opt->size - 1);
    v->text = text;
    return 0;
}

static int check_range(const struct wt_conf_opt *opt, double v, const char *text,
                       struct wt_err *err) {
    char range[WT_CONF_RANGE];
    if ((opt->min == 0 && opt->max == 0) || (v >= opt->min && v <= opt->max))
        return 0;
    return wt_err_set(err, WT_EINVAL, "'%s' is out of range, allowed is %s", text,
                      wt_conf_range(opt, range));
}

int wt_conf_value_parse(const struct wt_conf_opt *opt, const char *text,
                        struct wt_conf_value *value, struct wt_err *err) {
    struct wt_conf_value v = {0};
    int rc = WT_EINVAL;
    double number = 0;
    switch (opt->type) {
    case WT_CONF_BOOL:
        rc = parse_bool(text, &v.flag, err);
        break;
    case WT_CONF_INT:
        rc = parse_int(text, &v.integer, err);
        number = (double)v.integer;
        break;
    case WT_CONF_REAL:
        rc = parse_real(text, &v.real, err);
        number = v.real;
        break;
    case WT_CONF_SIZE:
        rc = wt_size_parse(text, &v.natural, err);
        number = (double)v.natural;
        break;
    case WT_CONF_TIME:
        rc = wt_time_parse(text, &v.natural, err);
        number = (double)v.natural;
        break;
    case WT_CONF_TEXT:
        rc = parse_text(opt, text, &v, err);
        break;
    }
    if (rc == 0 && opt->type != WT_CONF_BOOL && opt->type != WT_CONF_TEXT)
        rc = check_range(opt, number, text, err);
    if (rc == 0)
        *value = v;
    return rc;
}

void wt_conf_value_store(const struct wt_conf_opt *opt, const struct wt_conf_value *value,
                         void *base) {
    char *at = (char *)base + opt->offset;
    switch (opt->type) {
    case WT_CONF_BOOL:
        memcpy(at, &value->flag, sizeof value->flag);
        break;
    case WT_CONF_INT:
        memcpy(at, &value->integer, sizeof value->integer);
        break;
    case WT_CONF_REAL:
        memcpy(at, &value->real, sizeof value->real);
        break;
    case WT_CONF_SIZE:
    case WT_CONF_TIME:
        memcpy(at, &value->natural, sizeof value->natural);
        break;
    case WT_CONF_TEXT:
        memset(at, 0, opt->size);
        memcpy(at, value->text, strlen(value->text)); /* parse_text checked the size */
        break;
    }
}

void wt_conf_text_print(const char *text, FILE *out) {
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '\n') {
            fputs("\\n", out);
            continue;
        }
        if (strchr("\"\\$", *text)) /* libconfuse replaces ${NAME} in quotes */
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void print_size(uint64_t v, FILE *out) {
    static const char *const names[] = {"", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t i = 0;
    while (v && v % 1024 == 0 && i + 1 < sizeof names / sizeof names[0]) {
        v /= 1024;
        i++;
    }
    fprintf(out, "\"%" PRIu64 "%s\"", v, names[i]);
}

static void print_time(uint64_t v, FILE *out) {
    for (size_t i = 0; i < TIME_UNITS; i++) {
        if (v % time_units[i].ms || (v == 0 && time_units[i].ms != 1000))
            continue;
        fprintf(out, "\"%" PRIu64 "%s\"", v / time_units[i].ms, time_units[i].name);
        return;
    }
}

static struct wt_conf_value fetch(const struct wt_conf_opt *opt, const void *base) {
    const char *at = (const char *)base + opt->offset;
    struct wt_conf_value v = {0};
    switch (opt->type) {
    case WT_CONF_BOOL:
        memcpy(&v.flag, at, sizeof v.flag);
        break;
    case WT_CONF_INT:
        memcpy(&v.integer, at, sizeof v.integer);
        break;
    case WT_CONF_REAL:
        memcpy(&v.real, at, sizeof v.real);
        break;
    case WT_CONF_SIZE:
    case WT_CONF_TIME:
        memcpy(&v.natural, at, sizeof v.natural);
        break;
    case WT_CONF_TEXT:
        v.text = at;
        break;
    }
    return v;
}

/* The shortest decimal that reads back as the same double. */
static void print_real(double v, FILE *out) {
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) >= v && strtod(text, NULL) <= v)
            break;
    }
    fputs(text, out);
}

void wt_conf_value_print(const struct wt_conf_opt *opt, const void *base, FILE *out) {
    struct wt_conf_value v = fetch(opt, base);
    switch (opt->type) {
    case WT_CONF_BOOL:
        fputs(v.flag ? "true" : "false", out);
        break;
    case WT_CONF_INT:
        fprintf(out, "%" PRId64, v.integer);
        break;
    case WT_CONF_REAL:
        print_real(v.real, out);
        break;
    case WT_CONF_SIZE:
        print_size(v.natural, out);
        break;
    case WT_CONF_TIME:
        print_time(v.natural, out);
        break;
    case WT_CONF_TEXT:
        wt_conf_text_print(v.text, out);
        break;
    }
}

bool wt_conf_value_equal(const struct wt_conf_opt *opt, const void *a, const void *b) {
    struct wt_conf_value x = fetch(opt, a), y = fetch(opt, b);
    if (opt->type == WT_CONF_TEXT)
        return strcmp(x.text, y.text) == 0;
    bool same_real = !(x.real < y.real) && !(x.real > y.real);
    return x.flag == y.flag && x.integer == y.integer && same_real && x.natural == y.natural;
}

static void bound_text(const struct wt_conf_opt *opt, double v, char *out, size_t size) {
    if (opt->type == WT_CONF_SIZE) {
        wt_size_format((uint64_t)v, out);
        return;
    }
    if (opt->type != WT_CONF_TIME) {
        snprintf(out, size, "%.15g", v);
        return;
    }
    size_t i = 0;
    uint64_t ms = (uint64_t)v;
    while (i + 1 < TIME_UNITS && (ms % time_units[i].ms || ms == 0))
        i++;
    snprintf(out, size, "%" PRIu64 "%s", ms / time_units[i].ms, time_units[i].name);
}

const char *wt_conf_range(const struct wt_conf_opt *opt, char out[WT_CONF_RANGE]) {
    char low[WT_SIZE_TEXT], high[WT_SIZE_TEXT];
    out[0] = '\0';
    if (opt->min == 0 && opt->max == 0)
        return out;
    bound_text(opt, opt->min, low, sizeof low);
    bound_text(opt, opt->max, high, sizeof high);
    snprintf(out, WT_CONF_RANGE, "%s to %s", low, high);
    return out;
}

const struct wt_conf_section *wt_conf_section(const struct wt_conf_table *table, const char *name) {
    for (size_t i = 0; name && i < table->n_sections; i++)
        if (strcmp(table->sections[i].name, name) == 0)
            return &table->sections[i];
    return NULL;
}

bool wt_conf_same_section(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

size_t wt_conf_group_end(const struct wt_conf_table *table, size_t first) {
    size_t i = first;
    while (i < table->n_opts &&
           wt_conf_same_section(table->opts[i].section, table->opts[first].section))
        i++;
    return i;
}

/* Edit distance (Levenshtein) of words under 64 letters, one row at a time. */
static size_t distance(const char *a, const char *b) {
    size_t row[64], na = strlen(a), nb = strlen(b);
    if (na >= 64 || nb >= 64)
        return SIZE_MAX;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t cost = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            if (row[j] + 1 < cost)
                cost = row[j] + 1;
            if (row[j - 1] + 1 < cost)
                cost = row[j - 1] + 1;
            row[j] = cost;
        }
    }
    return row[nb];
}

const char *wt_nearest(const char *word, const char *const *names, size_t n) {
    const char *best = NULL;
    size_t best_distance = 1 + strlen(word) / 3;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(word, names[i]);
        if (d < best_distance || (d == best_distance && !best)) {
            best = names[i];
            best_distance = d;
        }
    }
    return best;
}
