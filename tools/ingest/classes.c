/* Numbering classes; see labels.h. */
#include "core/conf.h"
#include "core/mem.h"
#include "core/shard.h"
#include "tools/ingest/image.h"
#include "tools/ingest/labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLASS_NAME_MAX = 255 };

static bool whole_number(const char *text, long *value) {
    char *end;
    errno = 0;
    *value = strtol(text, &end, 10);
    return end != text && !*end && errno == 0 && text[0] != ' ' && text[0] != '+';
}

static bool printable(const char *name) {
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        if (*p < ' ' || *p == 127)
            return false;
    return wt_utf8_valid(name);
}

static int add_class(struct wt_classes *c, const char *name, struct wt_err *err) {
    if (strlen(name) > CLASS_NAME_MAX || !printable(name))
        return wt_err_set(err, WT_EINVAL,
                          "'%.60s' is no name for a class: at most %d bytes of printable UTF-8",
                          name, CLASS_NAME_MAX);
    if (c->n == WT_MAX_CLASSES)
        return wt_err_set(err, WT_ERANGE, "more than %d classes", WT_MAX_CLASSES);
    char *copy = strdup(name);
    char **grown = copy ? realloc(c->name, (c->n + 1) * sizeof *c->name) : NULL;
    if (!grown) {
        free(copy);
        return wt_err_set(err, WT_ENOMEM, "no memory for class names");
    }
    c->name = grown;
    c->name[c->n++] = copy;
    return 0;
}

/* "a,b,c" -> c->name. */
static int take_order(struct wt_classes *c, const char *order, struct wt_err *err) {
    char *copy = strdup(order), *rest = copy, *one;
    if (!copy)
        return wt_err_set(err, WT_ENOMEM, "no memory for class names");
    int rc = 0;
    while (rc == 0 && (one = strsep(&rest, ",")) != NULL) {
        if (!one[0])
            rc = wt_err_set(err, WT_EINVAL, "--classes %s: has an empty name", order);
        for (uint32_t i = 0; rc == 0 && i < c->n; i++)
            if (strcmp(c->name[i], one) == 0)
                rc = wt_err_set(err, WT_EINVAL, "--classes %s: names '%s' twice", order, one);
        if (rc == 0)
            rc = add_class(c, one, err);
    }
    free(copy);
    return rc;
}

static int number_by_order(struct wt_classes *c, struct wt_err *err) {
    for (uint32_t i = 0; i < c->seen.n; i++) {
        const char *text = wt_names_get(&c->seen, i);
        long value;
        uint32_t at = 0;
        while (at < c->n && strcmp(c->name[at], text) != 0)
            at++;
        if (at < c->n) {
            c->number[i] = (int32_t)at;
        } else if (whole_number(text, &value) && value >= -1 && value < (long)c->n) {
            c->number[i] = value < 0 ? WT_UNLABELLED : (int32_t)value;
        } else {
            const char *near = wt_nearest(text, (const char *const *)c->name, c->n);
            return wt_err_set(err, WT_EINVAL, "label '%s' is none of --classes%s%s%s", text,
                              near ? "; the nearest is '" : "", near ? near : "", near ? "'" : "");
        }
    }
    return 0;
}

/* All labels are whole numbers: they keep their value. False: some are not. */
static bool all_numbers(const struct wt_classes *c, long *max) {
    *max = -1;
    for (uint32_t i = 0; i < c->seen.n; i++) {
        long value;
        if (!whole_number(wt_names_get(&c->seen, i), &value) || value < -1 ||
            value >= WT_MAX_CLASSES)
            return false;
        *max = value > *max ? value : *max;
    }
    return true;
}

static int number_by_value(struct wt_classes *c, long max, struct wt_err *err) {
    int rc = 0;
    for (long v = 0; rc == 0 && v <= max; v++) {
        char text[24];
        snprintf(text, sizeof text, "%ld", v);
        rc = add_class(c, text, err);
    }
    for (uint32_t i = 0; rc == 0 && i < c->seen.n; i++) {
        long value;
        whole_number(wt_names_get(&c->seen, i), &value);
        c->number[i] = value < 0 ? WT_UNLABELLED : (int32_t)value;
    }
    return rc;
}

struct named {
    const char *text;
    uint32_t seen;
};

static int by_text(const void *a, const void *b) {
    const struct named *x = a, *y = b;
    return strcmp(x->text, y->text);
}

static int number_by_text(struct wt_classes *c, struct wt_err *err) {
    struct named *all = wt_calloc(c->seen.n, sizeof *all);
    if (!all)
        return wt_err_set(err, WT_ENOMEM, "no memory for class names");
    for (uint32_t i = 0; i < c->seen.n; i++)
        all[i] = (struct named){.text = wt_names_get(&c->seen, i), .seen = i};
    qsort(all, c->seen.n, sizeof *all, by_text);
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < c->seen.n; i++) {
        c->number[all[i].seen] = (int32_t)i;
        rc = add_class(c, all[i].text, err);
    }
    free(all);
    return rc;
}

int wt_classes_number(struct wt_classes *c, const char *order, struct wt_err *err) {
    long max;
    c->number = wt_calloc(c->seen.n, sizeof *c->number);
    if (!c->number)
        return wt_err_set(err, WT_ENOMEM, "no memory for class names");
    if (order) {
        int rc = take_order(c, order, err);
        return rc < 0 ? rc : number_by_order(c, err);
    }
    return all_numbers(c, &max) ? number_by_value(c, max, err) : number_by_text(c, err);
}

int wt_classes_multihot(struct wt_classes *c, const char *order, uint32_t n, struct wt_err *err) {
    if (order) {
        int rc = take_order(c, order, err);
        if (rc == 0 && c->n != n)
            rc = wt_err_set(err, WT_EINVAL,
                            "--classes names %u classes, the labels have %u columns", c->n, n);
        return rc;
    }
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        char text[24];
        snprintf(text, sizeof text, "%u", i);
        rc = add_class(c, text, err);
    }
    return rc;
}

void wt_classes_free(struct wt_classes *c) {
    for (uint32_t i = 0; i < c->n; i++)
        free(c->name[i]);
    free(c->name);
    free(c->number);
    wt_names_free(&c->seen);
    *c = (struct wt_classes){0};
}
