/* URL parsing; see url.h. The text is cut by its delimiters first, decoded afterwards. */
#include "tiers/url.h"

#include <stdio.h>
#include <string.h>

static int hex(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* [text, text + len) into out; 0 or WT_EINVAL. */
static int decode(const char *text, size_t len, char *out, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '%') {
            int high = len - i > 2 ? hex(text[i + 1]) : -1;
            int low = len - i > 2 ? hex(text[i + 2]) : -1;
            if (high < 0 || low < 0 || high + low == 0)
                return WT_EINVAL;
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (n + 1 >= size)
            return WT_EINVAL;
        out[n++] = c;
    }
    out[n] = '\0';
    return 0;
}

static int parse_param(const char *text, size_t len, struct wt_url_param *param) {
    const char *equals = memchr(text, '=', len);
    if (!equals || equals == text)
        return WT_EINVAL;
    size_t name = (size_t)(equals - text);
    if (decode(text, name, param->name, sizeof param->name) < 0)
        return WT_EINVAL;
    return decode(equals + 1, len - name - 1, param->value, sizeof param->value);
}

static int parse_params(const char *text, struct wt_url *url) {
    while (*text) {
        size_t n = strcspn(text, "&");
        if (url->n_params == WT_URL_PARAMS || parse_param(text, n, &url->param[url->n_params]) < 0)
            return WT_EINVAL;
        url->n_params++;
        text += n + (text[n] == '&');
    }
    return 0;
}

int wt_url_parse(const char *text, struct wt_url *url, struct wt_err *err) {
    const char *colon = strstr(text, "://");
    size_t scheme = colon ? (size_t)(colon - text) : 0;
    if (strlen(text) >= WT_URL_MAX || strchr(text, '#') || !scheme || scheme >= sizeof url->scheme)
        return wt_err_set(err, WT_EINVAL, "url \"%.200s\" is not SCHEME://[HOST]/PATH[?NAME=VALUE]",
                          text);
    struct wt_url u = {0};
    memcpy(u.scheme, text, scheme);
    const char *rest = colon + 3;
    size_t authority = strcspn(rest, "/?");
    memcpy(u.authority, rest, authority);
    const char *path = rest + authority;
    size_t n = strcspn(path, "?");
    if (decode(path, n, u.path, sizeof u.path) < 0)
        return wt_err_set(err, WT_EINVAL, "url \"%s\": its path is not well encoded", text);
    if (path[n] == '?' && parse_params(path + n + 1, &u) < 0)
        return wt_err_set(err, WT_EINVAL, "url \"%s\": what follows '?' is not NAME=VALUE[&...]",
                          text);
    *url = u;
    return 0;
}
