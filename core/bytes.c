/* Sizes for people and growing byte buffers; see bytes.h. */
#include "core/bytes.h"

#include "core/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

struct unit {
    const char *name;
    double scale;
};

static const struct unit units[] = {
    {"", 1},         {"B", 1},     {"K", 0x1p10}, {"KiB", 0x1p10}, {"KB", 1e3},  {"M", 0x1p20},
    {"MiB", 0x1p20}, {"MB", 1e6},  {"G", 0x1p30}, {"GiB", 0x1p30}, {"GB", 1e9},  {"T", 0x1p40},
    {"TiB", 0x1p40}, {"TB", 1e12}, {"P", 0x1p50}, {"PiB", 0x1p50}, {"PB", 1e15},
};

int wt_size_parse(const char *text, uint64_t *bytes, struct wt_err *err) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || !isfinite(value) || value < 0)
        return wt_err_set(err, WT_EINVAL, "'%s' is no size (write 512, 64MiB, 1.5GiB)", text);
    while (*end == ' ')
        end++;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcasecmp(end, units[i].name) != 0)
            continue;
        double total = value * units[i].scale;
        if (total >= 0x1p63)
            return wt_err_set(err, WT_EINVAL, "'%s' is too large a size", text);
        *bytes = (uint64_t)total;
        return 0;
    }
    return wt_err_set(err, WT_EINVAL, "'%s': unknown unit (KiB, MiB, GiB, TiB, KB, MB...)", text);
}

const char *wt_size_format(uint64_t bytes, char out[WT_SIZE_TEXT]) {
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t i = 0;
    double value = (double)bytes;
    while (value >= 1024 && i + 1 < sizeof names / sizeof names[0]) {
        value /= 1024;
        i++;
    }
    snprintf(out, WT_SIZE_TEXT, i == 0 ? "%.0f %s" : "%.1f %s", value, names[i]);
    return out;
}

int wt_bytes_add(struct wt_bytes *b, const void *data, size_t len) {
    if (len > SIZE_MAX - b->len || wt_grow(&b->data, &b->cap, b->len + len, 1) < 0)
        return WT_ENOMEM;
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    return 0;
}

int wt_bytes_zeros(struct wt_bytes *b, size_t len) {
    if (len > SIZE_MAX - b->len || wt_grow(&b->data, &b->cap, b->len + len, 1) < 0)
        return WT_ENOMEM;
    if (len)
        memset(b->data + b->len, 0, len);
    b->len += len;
    return 0;
}

void wt_bytes_free(struct wt_bytes *b) {
    free(b->data);
    *b = (struct wt_bytes){0};
}
