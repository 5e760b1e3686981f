/*
 * One value of a configuration: from text, to text, in and out of the target struct. For conf.c and
 * conf_print.c.
 *
 * Happy path: parse the text by the option's type, check the range, store. Failures: WT_EINVAL with
 * what was given and what is allowed.
 */
#ifndef WT_CORE_CONF_VALUE_H
#define WT_CORE_CONF_VALUE_H

#include "core/conf.h"

struct wt_conf_value {
    bool flag;        /* BOOL */
    int64_t integer;  /* INT */
    double real;      /* REAL */
    uint64_t natural; /* SIZE, TIME */
    const char *text; /* TEXT: the text that was parsed, not a copy */
};

int wt_conf_value_parse(const struct wt_conf_opt *opt, const char *text,
                        struct wt_conf_value *value, struct wt_err *err);
void wt_conf_value_store(const struct wt_conf_opt *opt, const struct wt_conf_value *value,
                         void *base);
/* As one would write it in a file, quotes included; parses back to the same value. */
void wt_conf_value_print(const struct wt_conf_opt *opt, const void *base, FILE *out);
void wt_conf_text_print(const char *text, FILE *out);
bool wt_conf_value_equal(const struct wt_conf_opt *opt, const void *a, const void *b);
/* "1 to 16", "at least 1", or "" when any value is allowed. */
enum { WT_CONF_RANGE = 96 };
const char *wt_conf_range(const struct wt_conf_opt *opt, char out[WT_CONF_RANGE]);

/* The titled section of that name, or NULL: top level or a plain section. */
const struct wt_conf_section *wt_conf_section(const struct wt_conf_table *table, const char *name);
/* Options [first, returned) of the table are those of opts[first].section. */
size_t wt_conf_group_end(const struct wt_conf_table *table, size_t first);
bool wt_conf_same_section(const char *a, const char *b);

#endif
