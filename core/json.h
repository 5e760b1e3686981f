/*
 * JSON from outside, with "out of memory" told apart from "this is no JSON": the first is nobody's
 * fault and passes, the second condemns what was read. And JSON written whole or not at all.
 */
#ifndef WT_CORE_JSON_H
#define WT_CORE_JSON_H

#include "core/err.h"

#include <stddef.h>

struct json_t; /* of jansson.h */

/* json_loadb. WT_ENOMEM, or WT_EFORMAT with line, column and reason. */
int wt_json_load(const char *text, size_t len, size_t flags, struct json_t **out,
                 struct wt_err *err);
/* The text with a newline and a NUL after it, free(); *len counts the newline. NULL: no memory. */
char *wt_json_dump(const struct json_t *root, size_t flags, size_t *len);

/* A text from anywhere: bytes outside ASCII become '?' where they are no UTF-8 (a name from a file
 * system, a message that was cut in the middle of a letter). NULL: no memory. */
struct json_t *wt_json_string(const char *text);

/* Appends or sets item, taking it over. Without memory (or with item NULL) *list and *object are
 * freed and NULL afterwards, so that nothing is ever shown in part: json_pack refuses a NULL. */
void wt_json_push(struct json_t **list, struct json_t *item);
void wt_json_put(struct json_t **object, const char *key, struct json_t *item);

#endif
