/*
 * URLs of tiers: SCHEME://[AUTHORITY]/PATH[?NAME=VALUE[&...]], percent-decoded. A NUL, also a
 * decoded one, a fragment and anything too long are WT_EINVAL.
 */
#ifndef WT_TIERS_URL_H
#define WT_TIERS_URL_H

#include "core/err.h"

#include <stddef.h>

enum { WT_URL_MAX = 512, WT_URL_PARAMS = 8 };

struct wt_url {
    char scheme[16];
    char authority[WT_URL_MAX]; /* as written */
    char path[WT_URL_MAX];      /* decoded, with its first '/' */
    size_t n_params;
    struct wt_url_param {
        char name[32];
        char value[WT_URL_MAX];
    } param[WT_URL_PARAMS];
};

int wt_url_parse(const char *text, struct wt_url *url, struct wt_err *err);

#endif
