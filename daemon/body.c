/* See body.h. */
#include "daemon/body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

json_t *wt_body_number(uint64_t v) {
    return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
}

int wt_body_u64(const json_t *body, const char *name, bool needed, uint64_t *out,
                struct wt_err *err) {
    const json_t *v = json_object_get(body, name);
    if (!v && !needed)
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return wt_err_set(err, WT_EINVAL, "'%s' must be a whole number, not negative", name);
    *out = (uint64_t)json_integer_value(v);
    return 0;
}

int wt_body_seconds(const json_t *body, const char *name, double *out, struct wt_err *err) {
    const json_t *v = json_object_get(body, name);
    if (!v)
        return 0;
    if (!json_is_number(v) || !(json_number_value(v) >= 0 && json_number_value(v) <= 1e9))
        return wt_err_set(err, WT_EINVAL, "'%s' must be a number of seconds, not negative", name);
    *out = json_number_value(v);
    return 0;
}

static int copy(const char *name, const char *text, char *out, size_t size, struct wt_err *err) {
    if (!text || !text[0] || strlen(text) >= size)
        return wt_err_set(err, WT_EINVAL, "'%s' must be a text of 1 to %zu bytes", name, size - 1);
    memcpy(out, text, strlen(text) + 1);
    return 0;
}

int wt_body_text(const json_t *body, const char *name, char *out, size_t size, struct wt_err *err) {
    return copy(name, json_string_value(json_object_get(body, name)), out, size, err);
}

int wt_body_option(const json_t *body, const char *name, char *out, size_t size,
                   struct wt_err *err) {
    const json_t *v = json_object_get(body, name);
    out[0] = '\0';
    if (!v || json_is_null(v) || (json_is_string(v) && json_string_length(v) == 0))
        return 0;
    return copy(name, json_string_value(v), out, size, err);
}

int wt_query_u64(const struct wt_call *call, const char *name, uint64_t *out, struct wt_err *err) {
    const char *text = wt_call_query(call, name);
    char *end;
    if (!text)
        return 0;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || v > INT64_MAX)
        return wt_err_set(err, WT_EINVAL, "'%s' must be a whole number, not negative", name);
    *out = v;
    return 0;
}

int wt_query_text(const struct wt_call *call, const char *name, char *out, size_t size,
                  struct wt_err *err) {
    const char *text = wt_call_query(call, name);
    out[0] = '\0';
    return text && text[0] ? copy(name, text, out, size, err) : 0;
}
