/* Samples on their way into a shard; see image.h. */
#include "tools/ingest/image.h"

#include "core/mem.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wt_image_reset(struct wt_image *image) {
    image->n_fields = 0;
    image->meta.len = 0;
}

int wt_image_add(struct wt_image *image, const char *name, const struct wt_shape *shape,
                 uint64_t max, uint8_t **data, struct wt_err *err) {
    uint64_t bytes;
    char text[128];
    if (!wt_shape_bytes(shape, &bytes) || bytes > (max ? max : WT_IMAGE_MAX))
        return wt_err_set(err, WT_ERANGE, "an image of %s is larger than allowed",
                          wt_shape_format(shape, text, sizeof text));
    if (image->n_fields == WT_MAX_FIELDS || strlen(name) >= WT_FIELD_NAME)
        return wt_err_set(err, WT_ERANGE,
                          "field '%s': a sample has at most %d, with names under %d bytes", name,
                          WT_MAX_FIELDS, WT_FIELD_NAME);
    struct wt_image_field *f = &image->field[image->n_fields];
    if (wt_grow(&f->data, &f->cap, bytes ? bytes : 1, 1) < 0)
        return wt_err_set(err, WT_ENOMEM, "no memory for an image of %s",
                          wt_shape_format(shape, text, sizeof text));
    snprintf(f->name, sizeof f->name, "%s", name);
    f->shape = *shape;
    image->n_fields++;
    *data = f->data;
    return 0;
}

/* Length of the UTF-8 sequence at p, 0 when it is none (overlong forms and surrogates included). */
static size_t utf8_len(const unsigned char *p) {
    if (p[0] < 0x80)
        return 1;
    size_t n = p[0] >= 0xf0 && p[0] <= 0xf4  ? 4
               : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
               : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
                                             : 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool too_high = (p[0] == 0xed && p[1] >= 0xa0) || (p[0] == 0xf4 && p[1] >= 0x90);
    return overlong || too_high ? 0 : n;
}

bool wt_utf8_valid(const char *text) {
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        size_t n = utf8_len(p);
        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

int wt_json_text(struct wt_bytes *out, const char *text) {
    int rc = wt_bytes_add(out, "\"", 1);
    for (const unsigned char *p = (const unsigned char *)text; *p && rc == 0;) {
        size_t n = utf8_len(p);
        char esc[8];
        if (n == 0)
            rc = wt_bytes_add(out, "\xef\xbf\xbd", 3);
        else if (*p == '"' || *p == '\\')
            rc = wt_bytes_add(out, (char[]){'\\', (char)*p}, 2);
        else if (*p < 0x20)
            rc = wt_bytes_add(out, esc, (size_t)snprintf(esc, sizeof esc, "\\u%04x", *p));
        else
            rc = wt_bytes_add(out, p, n);
        p += n ? n : 1;
    }
    return rc < 0 ? rc : wt_bytes_add(out, "\"", 1);
}

static int meta_name(struct wt_image *image, const char *name) {
    struct wt_bytes *meta = &image->meta;
    if (wt_bytes_add(meta, ",", 1) < 0 || wt_json_text(meta, name) < 0)
        return WT_ENOMEM;
    return wt_bytes_add(meta, ":", 1);
}

int wt_image_meta_int(struct wt_image *image, const char *name, int64_t value) {
    char text[32];
    int n = snprintf(text, sizeof text, "%lld", (long long)value);
    int rc = meta_name(image, name);
    return rc < 0 ? rc : wt_bytes_add(&image->meta, text, (size_t)n);
}

int wt_image_meta_text(struct wt_image *image, const char *name, const char *value) {
    int rc = meta_name(image, name);
    return rc < 0 ? rc : wt_json_text(&image->meta, value);
}

void wt_image_free(struct wt_image *image) {
    for (size_t i = 0; i < WT_MAX_FIELDS; i++)
        free(image->field[i].data);
    wt_bytes_free(&image->meta);
    wt_bytes_free(&image->scratch);
    *image = (struct wt_image){0};
}
