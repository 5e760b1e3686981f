/*
 * The text of a tier's `filter` option: "throttle rate=50MiB; delay read=2ms write=1ms..5ms".
 * Filters are divided by ';', words by blanks; each word after the first is NAME=VALUE.
 */
#ifndef WT_TIERS_FILTER_PARAMS_H
#define WT_TIERS_FILTER_PARAMS_H

#include "tiers/tier.h"

enum { WT_FILTER_PARAMS = 24, WT_FILTER_TEXT = 256 };

struct wt_filter_param {
    const char *name, *value;
};
struct wt_filter_params { /* of one filter */
    char text[WT_FILTER_TEXT];
    const char *filter;
    struct wt_filter_param param[WT_FILTER_PARAMS];
    size_t n;
};

/* Cuts the next filter off *text (which moves on). 1: there is one, 0: no more, or WT_EINVAL. */
int wt_filter_params_next(const char **text, struct wt_filter_params *out, struct wt_err *err);

/* The op that a parameter's name stands for: "read" is WT_OP_GET, "write" WT_OP_PUT_WRITE, ...
 * WT_OP_COUNT: none. */
enum wt_op wt_filter_op(const char *name);
/* The names of all those, for wt_filter_ops.params. */
#define WT_FILTER_OP_NAMES                                                                         \
    "read", "write", "stat", "open", "commit", "abort", "remove", "list", "usage", "probe",        \
        "lock", "unlock"

/* A whole number; 0 or WT_EINVAL naming the parameter. */
int wt_filter_number(const struct wt_filter_param *p, uint64_t *out, struct wt_err *err);

/* Random, but the same for the same seed, stream and count. */
uint64_t wt_filter_random(uint64_t seed, uint64_t stream, uint64_t count);

#endif
