/* The control socket as the tools use it; see daemon.h. */
#include "tools/daemon.h"

#include "core/dataset.h"
#include "core/http.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 10000 };

static int call(const char *control, const char *method, const char *path, const char *body,
                char **reply, struct wt_err *err) {
    struct wt_http *http;
    long status = 0;
    size_t len;
    int rc = wt_http_new(control, &http, err);
    if (rc < 0)
        return rc;
    rc = wt_http_call(http, method, path, body, TIMEOUT_MS, &status, reply, &len, err);
    wt_http_free(http);
    if (rc < 0 || (status >= 200 && status < 300))
        return rc;
    json_t *root = json_loads(*reply, 0, NULL);
    const char *text = json_string_value(json_object_get(root, "error"));
    wt_err_set(err, WT_EINVAL, "the daemon answered %ld%s%s", status, text ? ": " : "",
               text ? text : "");
    json_decref(root);
    free(*reply);
    return WT_EINVAL;
}

void wt_daemon_announce(const struct wt_verb *verb, const char *control, const char *dataset) {
    char body[WT_DATASET_NAME + 32];
    char *reply = NULL;
    struct wt_err err = {0};
    if (!control[0])
        return;
    snprintf(body, sizeof body, "{\"name\":\"%s\"}", dataset); /* such names need no escapes */
    if (call(control, "POST", "/v1/datasets", body, &reply, &err) < 0)
        fprintf(stderr, "wafertier %s: note: the daemon does not know of '%s' yet: %s\n",
                verb->name, dataset, err.text);
    else
        free(reply);
}

int wt_daemon_get(const char *control, const char *path, char **reply, struct wt_err *err) {
    return call(control, "GET", path, NULL, reply, err);
}
