/* Reading the daemon's answers; see daemon.h. */
#include "tools/daemon.h"

#include <inttypes.h>
#include <string.h>

const json_t *wt_view(const json_t *o, const char *path) {
    char name[64];
    while (o) {
        size_t n = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)n, path);
        o = json_object_get(o, name);
        if (!path[n])
            break;
        path += n + 1;
    }
    return o;
}

uint64_t wt_view_count(const json_t *o, const char *path) {
    json_int_t v = json_integer_value(wt_view(o, path));
    return v > 0 ? (uint64_t)v : 0;
}

double wt_view_real(const json_t *o, const char *path) {
    return json_number_value(wt_view(o, path));
}

bool wt_view_true(const json_t *o, const char *path) {
    return json_is_true(wt_view(o, path));
}

const char *wt_view_text(const json_t *o, const char *path) {
    const char *text = json_string_value(wt_view(o, path));
    return text ? text : "";
}

const char *wt_view_size(const json_t *o, const char *path, char out[WT_SIZE_TEXT]) {
    return wt_size_format(wt_view_count(o, path), out);
}

const char *wt_view_span(double seconds, char out[WT_SPAN_TEXT]) {
    uint64_t s = seconds > 0 && seconds < 1e15 ? (uint64_t)(seconds + 0.5) : 0;
    if (seconds < 59.95)
        snprintf(out, WT_SPAN_TEXT, "%.1f s", seconds > 0 ? seconds : 0);
    else if (s < 3600)
        snprintf(out, WT_SPAN_TEXT, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
    else if (s < 86400)
        snprintf(out, WT_SPAN_TEXT, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
    else
        snprintf(out, WT_SPAN_TEXT, "%" PRIu64 " d %" PRIu64 " h", s / 86400, s / 3600 % 24);
    return out;
}
