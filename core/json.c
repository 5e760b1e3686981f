/*
 * See json.h.
 *
 * jansson does not look whether its scanner's buffer and its writer's buffer could grow: without
 * memory a text loses letters and no error comes. So what is read is read twice and compared, and
 * what is written goes to a buffer whose size is known. Only metadata comes this way.
 */
#include "core/json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int wt_json_load(const char *text, size_t len, size_t flags, struct json_t **out,
                 struct wt_err *err) {
    json_error_t why, again;
    json_t *root = json_loadb(text, len, flags, &why), *twin = json_loadb(text, len, flags, &again);
    int rc = 0;
    if (root ? !json_equal(root, twin) : twin || !why.text[0] || strcmp(why.text, again.text) != 0)
        rc = wt_err_set(err, WT_ENOMEM, "no memory for JSON of %zu bytes", len);
    else if (!root)
        rc = wt_err_set(err, WT_EFORMAT, "no JSON: line %d, column %d: %.150s", why.line,
                        why.column, why.text);
    json_decref(twin);
    if (rc < 0)
        json_decref(root);
    else
        *out = root;
    return rc;
}

char *wt_json_dump(const struct json_t *root, size_t flags, size_t *len) {
    size_t size = json_dumpb(root, NULL, 0, flags);
    char *text = size ? malloc(size + 2) : NULL;
    if (!text || json_dumpb(root, text, size, flags) != size) {
        free(text);
        return NULL;
    }
    memcpy(text + size, "\n", 2);
    *len = size + 1;
    return text;
}

struct json_t *wt_json_string(const char *text) {
    json_t *string = json_string(text);
    char *ascii = string ? NULL : strdup(text);
    for (char *p = ascii; p && *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    if (ascii)
        string = json_string(ascii);
    free(ascii);
    return string;
}

void wt_json_push(struct json_t **list, struct json_t *item) {
    if (json_array_append_new(*list, item) == 0)
        return;
    json_decref(*list);
    *list = NULL;
}

void wt_json_put(struct json_t **object, const char *key, struct json_t *item) {
    if (json_object_set_new(*object, key, item) == 0)
        return;
    json_decref(*object);
    *object = NULL;
}
