/* The control socket as the tools use it; see daemon.h. */
#include "tools/daemon.h"

#include "core/http.h"
#include "core/json.h"
#include "core/mem.h"
#include "tools/target.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A first look into a data set's wafers makes the daemon read the index of each shard. */
enum { TIMEOUT_MS = 10000, LONG_MS = 600000, SILENCE_MS = 30000 };

/* ---- where it listens ---- */

/* "unix:/PATH" from what was typed, which may be a relative path; a host's address as it is. */
static int address_of(const char *given, char *out, size_t size, struct wt_err *err) {
    if (strncmp(given, "https://", 8) == 0 && strlen(given) < size) {
        snprintf(out, size, "%s", given);
        return 0;
    }
    const char *path = strncmp(given, "unix:", 5) == 0 ? given + 5 : given;
    char full[PATH_MAX];
    if (!realpath(path, full))
        return wt_err_sys(err, errno, "%s: no daemon listens there", path);
    int n = snprintf(out, size, "unix:%s", full);
    return n > 0 && (size_t)n < size ? 0 : wt_err_set(err, WT_EINVAL, "%s: is too long", full);
}

static int choose(const struct wt_daemon_opts *opts, struct wt_client_conf *conf,
                  struct wt_daemon_link *link, struct wt_err *err) {
    char address[sizeof conf->control];
    bool host = opts->control && strncmp(opts->control, "https://", 8) == 0;
    /* A host's token and authority stand in the configuration, whatever was typed. */
    int rc = !opts->control || host ? wt_target_config(opts->config, conf, err) : 0;
    if (rc == 0 && opts->control) {
        rc = address_of(opts->control, address, sizeof address, err);
        link->lost = rc == WT_EMISSING;
        if (rc == 0)
            snprintf(conf->control, sizeof conf->control, "%s", address);
    } else if (rc == 0 && !conf->control[0]) {
        rc = wt_err_set(err, WT_EINVAL,
                        "the configuration names no control socket; give --control unix:/PATH");
    }
    return rc;
}

int wt_daemon_open(const struct wt_daemon_opts *opts, struct wt_daemon_link *link,
                   struct wt_err *err) {
    *link = (struct wt_daemon_link){0};
    struct wt_client_conf *conf = wt_calloc(1, sizeof *conf);
    if (!conf)
        return wt_err_set(err, WT_ENOMEM, "no memory for the configuration");
    int rc = choose(opts, conf, link, err);
    if (rc == 0)
        rc = wt_http_open(&(struct wt_http_where){.address = conf->control,
                                                  .token_file = conf->control_token_file,
                                                  .ca = conf->control_ca},
                          &link->http, err);
    free(conf);
    return rc;
}

void wt_daemon_close(struct wt_daemon_link *link) {
    wt_http_free(link->http);
    link->http = NULL;
}

/* ---- requests ---- */

static int refused(long status, const char *text, size_t len, struct wt_err *err) {
    json_t *root = NULL;
    wt_json_load(text, len, 0, &root, NULL);
    const char *why = json_string_value(json_object_get(root, "error"));
    int code = status == 404 ? WT_EMISSING : WT_EINVAL;
    if (why)
        wt_err_set(err, code, "%s", why);
    else
        wt_err_set(err, code, "the daemon answered with status %ld", status);
    json_decref(root);
    return code;
}

static int parse(const char *text, size_t len, json_t **reply, struct wt_err *err) {
    json_t *root = NULL;
    int rc = wt_json_load(text, len, 0, &root, err);
    if (rc < 0)
        return wt_err_wrap(err, "the daemon's answer");
    if (!json_is_object(root)) {
        json_decref(root);
        return wt_err_set(err, WT_EFORMAT, "the daemon's answer is no JSON object");
    }
    *reply = root;
    return 0;
}

static int exchange(struct wt_daemon_link *link, const char *method, const char *path,
                    const char *body, json_t **reply, struct wt_err *err) {
    char *text = NULL;
    size_t len = 0;
    long status = 0;
    unsigned timeout = link->patient || body ? LONG_MS : TIMEOUT_MS;
    int rc = wt_http_call(link->http, method, path, body, timeout, &status, &text, &len, err);
    link->lost = rc < 0;
    if (rc < 0)
        return rc;
    if (status < 200 || status > 299)
        rc = refused(status, text, len, err);
    else if (reply)
        rc = parse(text, len, reply, err);
    free(text);
    return rc;
}

int wt_daemon_call(struct wt_daemon_link *link, const char *method, const char *path, json_t *body,
                   json_t **reply, struct wt_err *err) {
    bool post = strcmp(method, "POST") == 0;
    char *text = post && body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    if (post && !text)
        return wt_err_set(err, WT_ENOMEM, "no memory for the request");
    int rc = exchange(link, method, path, text, reply, err);
    free(text);
    return rc;
}

/* ---- a stream ---- */

struct lines {
    int (*line)(void *arg, const char *text);
    void *arg;
    struct wt_bytes rest;
};

static int on_piece(void *arg, const char *data, size_t len) {
    struct lines *l = arg;
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < len;) {
        const char *end = memchr(data + at, '\n', len - at);
        size_t n = end ? (size_t)(end - data) - at : len - at;
        rc = wt_bytes_add(&l->rest, data + at, n);
        at += n + (end ? 1 : 0);
        if (rc < 0 || !end)
            continue;
        rc = wt_bytes_add(&l->rest, "", 1);
        if (rc == 0)
            rc = l->line(l->arg, (const char *)l->rest.data);
        l->rest.len = 0;
    }
    return rc;
}

int wt_daemon_stream(struct wt_daemon_link *link, const char *path,
                     int (*line)(void *arg, const char *text), void *arg, struct wt_err *err) {
    struct lines l = {.line = line, .arg = arg};
    char *refusal = NULL;
    long status = 0;
    int rc = wt_http_stream(link->http, path, SILENCE_MS, on_piece, &l, &status, &refusal, err);
    link->lost = rc < 0 && rc != WT_ECANCELED;
    if (refusal)
        rc = refused(status, refusal, strlen(refusal), err);
    free(refusal);
    wt_bytes_free(&l.rest);
    return rc;
}

/* ---- what most verbs do ---- */

int wt_daemon_fail(const struct wt_verb *verb, const struct wt_daemon_link *link,
                   const struct wt_err *err) {
    int code = wt_verb_fail(verb, err);
    return link->lost && code == WT_EXIT_FAILED ? WT_EXIT_NO_DAEMON : code;
}

int wt_daemon_run(const struct wt_verb *verb, const struct wt_daemon_opts *opts, const char *method,
                  const char *path, json_t *body, bool as_json, void (*show)(const json_t *reply)) {
    struct wt_daemon_link link;
    struct wt_err err = {0};
    json_t *reply = NULL;
    int rc = wt_daemon_open(opts, &link, &err);
    if (rc == 0)
        rc = wt_daemon_call(&link, method, path, body, &reply, &err);
    else
        json_decref(body);
    wt_daemon_close(&link);
    if (rc < 0)
        return wt_daemon_fail(verb, &link, &err);
    if (show && !as_json)
        show(reply);
    else if (json_dumpf(reply, stdout, JSON_INDENT(2)) == 0)
        putchar('\n');
    json_decref(reply);
    return WT_EXIT_OK;
}

const struct wt_arg wt_daemon_show_args[WT_DAEMON_SHOW_ARGS] = {
    WT_DAEMON_ARGS(struct wt_daemon_show, daemon),
    WT_DAEMON_JSON_ARG(struct wt_daemon_show, json),
};

int wt_daemon_show(const struct wt_verb *verb, int argc, char **argv, const char *method,
                   const char *path, void (*show)(const json_t *reply)) {
    struct wt_daemon_show a = {0};
    struct wt_operands operands;
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n)
        return wt_verb_usage(verb, "it takes options only");
    json_t *body = strcmp(method, "POST") == 0 ? json_object() : NULL;
    return wt_daemon_run(verb, &a.daemon, method, path, body, a.json, show);
}

void wt_daemon_announce(const struct wt_verb *verb, const char *control, const char *dataset) {
    struct wt_daemon_opts opts = {.control = control};
    struct wt_daemon_link link;
    struct wt_err err = {0};
    if (!control[0])
        return;
    int rc = wt_daemon_open(&opts, &link, &err);
    if (rc == 0)
        rc = wt_daemon_call(&link, "POST", "/v1/datasets", json_pack("{s:s}", "name", dataset),
                            NULL, &err);
    wt_daemon_close(&link);
    if (rc < 0)
        fprintf(stderr, "wafertier %s: note: the daemon does not know of '%s' yet: %s\n",
                verb->name, dataset, err.text);
}
