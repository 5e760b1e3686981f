/*
 * What follows a manifest without a new pack; see dataset.h.
 *
 * Happy path: the text is checked as any manifest is, then changed as JSON, so that members of
 * later versions stay as they are. Failures: those of the check; WT_EINVAL: it has no home but
 * cold.
 */
#include "core/dataset.h"

#include "core/json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static int check(const char *text, size_t len, uint64_t *generation, struct wt_err *err) {
    struct wt_manifest m = {0};
    int rc = wt_manifest_parse(text, len, &m, err);
    if (rc == 0 && !m.home[0])
        rc = wt_err_set(err, WT_EINVAL, "manifest: data set '%s' is in cold already", m.name);
    *generation = m.generation;
    wt_manifest_free(&m);
    return rc;
}

char *wt_manifest_flushed(const char *text, size_t len, uint64_t now_s, struct wt_err *err) {
    uint64_t generation;
    json_t *root = NULL;
    if (check(text, len, &generation, err) < 0 ||
        wt_json_load(text, len, JSON_REJECT_DUPLICATES, &root, err) < 0)
        return NULL;
    json_object_del(root, "home");
    wt_json_put(&root, "generation", json_integer((json_int_t)generation + 1));
    wt_json_put(&root, "created", json_integer((json_int_t)now_s));
    size_t size;
    char *next = root ? wt_json_dump(root, JSON_INDENT(2), &size) : NULL;
    json_decref(root);
    if (!next)
        wt_err_set(err, WT_ENOMEM, "no memory for the manifest");
    return next;
}
