/*
 * Routes, rights, bodies, and life; see control.h. A route that answers later suspends its
 * connection; the answer (answer.c) resumes it, and MHD asks again.
 */
#include "daemon/control_internal.h"

#include "core/json.h"
#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BODY_MAX = 1 << 20, CONNECTIONS = 512, IDLE_S = 10 };

/* ---- routes ---- */

/* "/v1/jobs/{id}/progress" against a path; the part at {id} goes to id. */
static bool path_matches(const char *pattern, const char *path, char id[WT_CALL_ID]) {
    const char *hole = strstr(pattern, "{id}");
    if (!hole)
        return strcmp(pattern, path) == 0;
    size_t before = (size_t)(hole - pattern);
    if (strncmp(pattern, path, before) != 0)
        return false;
    size_t len = strcspn(path + before, "/");
    if (len == 0 || len >= WT_CALL_ID || strcmp(path + before + len, hole + 4) != 0)
        return false;
    memcpy(id, path + before, len);
    id[len] = '\0';
    return true;
}

static void find_route(struct pending *p, const char *method, const char *path) {
    const struct wt_control_opts *o = &p->side->control->o;
    bool path_known = false;
    for (size_t i = 0; i < o->n_routes && !p->route; i++) {
        const struct wt_route *r = &o->routes[i];
        if (!path_matches(r->path, path, p->id))
            continue;
        path_known = true;
        bool head = strcmp(method, "HEAD") == 0 && strcmp(r->method, "GET") == 0 &&
                    !(r->flags & WT_ROUTE_STREAM);
        if (head || strcmp(r->method, method) == 0)
            p->route = r;
    }
    if (!p->route && path_known)
        wt_pending_fail(p, MHD_HTTP_METHOD_NOT_ALLOWED, "INVAL",
                        "this path does not know that method");
    else if (!p->route)
        wt_pending_fail(
            p, MHD_HTTP_NOT_FOUND, "MISSING",
            "no such path; see GET /v1/stats, /v1/tiers, /v1/datasets, /v1/shards, /v1/jobs, "
            "/v1/moves, /v1/pins, /v1/quotas, /v1/warm, /v1/events, /metrics, /healthz");
}

static bool parse_body(struct pending *p) {
    if (strcmp(p->route->method, "POST") != 0)
        return true;
    struct wt_err err = {0};
    const char *text = p->body.len ? (const char *)p->body.data : "";
    int rc = wt_json_load(text, p->body.len, JSON_REJECT_DUPLICATES, &p->call.body, &err);
    if (rc == 0 && json_is_object(p->call.body))
        return true;
    if (rc == 0)
        wt_err_set(&err, WT_EINVAL, "the body must be a JSON object");
    else
        wt_err_wrap(&err, "the body");
    err.code = rc == WT_ENOMEM ? rc : WT_EINVAL;
    wt_call_fail(&p->call, &err);
    return false;
}

/* Who is on the other side, for the socket: by the kernel; on TCP: by the token. */
static bool allowed(struct pending *p) {
    struct wt_control *c = p->side->control;
    if (p->side->remote) {
        const char *given = MHD_lookup_connection_value(p->connection, MHD_HEADER_KIND,
                                                        MHD_HTTP_HEADER_AUTHORIZATION);
        if (!wt_token_matches(c->token, given))
            wt_pending_fail(
                p, MHD_HTTP_UNAUTHORIZED, "DENIED",
                "this listener wants 'Authorization: Bearer <token>' with the daemon's token");
        else if (!(p->route->flags & WT_ROUTE_REMOTE))
            wt_pending_fail(
                p, MHD_HTTP_FORBIDDEN, "DENIED",
                "from another host only jobs are taken; use the control socket for this");
        return !p->answered;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(p->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (!(p->route->flags & WT_ROUTE_CHANGES) ||
        (info && wt_listen_may_change(&c->listen, info->connect_fd)))
        return true;
    wt_pending_fail(p, MHD_HTTP_FORBIDDEN, "DENIED",
                    "changes are for root, the daemon's user and members of the socket's group");
    return false;
}

static void run_route(struct pending *p) {
    p->began_ns = uv_hrtime();
    if (p->too_large)
        wt_pending_fail(p, MHD_HTTP_CONTENT_TOO_LARGE, "RANGE", "the body has more than 1 MiB");
    else if (p->no_memory)
        wt_pending_fail(p, MHD_HTTP_INTERNAL_SERVER_ERROR, "NOMEM", "no memory for the body");
    else if (p->side->control->stopping)
        wt_pending_fail(p, MHD_HTTP_SERVICE_UNAVAILABLE, "CANCELED", "the daemon is stopping");
    else if (parse_body(p)) {
        p->call.id = p->id[0] ? p->id : NULL;
        p->route->run(p->side->control->o.arg, &p->call);
    }
}

/* ---- what MHD calls ---- */

static void collect(struct pending *p, const char *data, size_t len) {
    p->received += len;
    if (p->received > BODY_MAX)
        p->too_large = true;
    else if (!p->answered && !p->no_memory) /* what is refused already is read, and forgotten */
        p->no_memory = wt_bytes_add(&p->body, data, len) < 0;
}

static struct pending *begin(struct side *side, struct MHD_Connection *connection,
                             const char *method, const char *path) {
    struct wt_control *c = side->control;
    struct pending *p = wt_calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->side = side;
    p->connection = connection;
    p->call.priv = p;
    p->next = c->first;
    p->prev = &c->first;
    if (c->first)
        c->first->prev = &p->next;
    c->first = p;
    find_route(p, method, path);
    const char *length =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (!p->answered)
        allowed(p);
    if (length && strtoull(length, NULL, 10) > BODY_MAX)
        p->too_large = true;
    if (p->too_large && !p->answered)
        wt_pending_fail(p, MHD_HTTP_CONTENT_TOO_LARGE, "RANGE", "the body has more than 1 MiB");
    return p;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **con) {
    struct pending *p = *con;
    (void)version;
    if (!p) {
        p = *con = begin(arg, connection, method, path);
        if (!p)
            return MHD_NO;
        /* A body that is not too large is read before the refusal goes out: who is still writing
         * would lose it. */
        return p->too_large ? wt_pending_send(p) : MHD_YES;
    }
    if (*len) {
        if (p->too_large)
            return MHD_NO; /* it announced no length and does not end */
        collect(p, data, *len);
        *len = 0;
        return MHD_YES;
    }
    if (!p->begun && !p->answered)
        run_route(p);
    p->begun = true;
    if (p->answered)
        return p->reply || p->text || p->stream.read ? wt_pending_send(p) : MHD_NO;
    p->suspended = true;
    MHD_suspend_connection(connection);
    return MHD_YES;
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **con,
                         enum MHD_RequestTerminationCode why) {
    struct pending *p = *con;
    (void)arg;
    (void)connection;
    (void)why;
    if (!p)
        return;
    *p->prev = p->next;
    if (p->next)
        p->next->prev = p->prev;
    if (p->stream.read) {
        p->side->control->streams--;
        p->stream.free(p->stream.arg);
    }
    json_decref(p->call.body);
    json_decref(p->reply);
    free(p->text);
    wt_bytes_free(&p->body);
    free(p);
    *con = NULL;
}

/* ---- life ---- */

static int start_side(struct wt_control *c, struct side *side, uv_loop_t *loop, const char *what,
                      int fd, const struct wt_pem *pem, struct wt_err *err) {
    side->control = c;
    snprintf(side->what, sizeof side->what, "%s", what);
    struct wt_server_opts o = {.what = side->what,
                               .fd = fd,
                               .cert = pem ? pem->cert : NULL,
                               .key = pem ? pem->key : NULL,
                               .connections = CONNECTIONS,
                               .idle_s = IDLE_S,
                               .request = on_request,
                               .completed = on_completed,
                               .arg = side};
    int rc = wt_server_start(&side->server, loop, &o, err);
    side->open = rc == 0;
    c->closing += side->open;
    return rc;
}

static int start_local(struct wt_control *c, uv_loop_t *loop, struct wt_err *err) {
    char what[160];
    int rc = wt_listen_open(&c->listen, c->path, c->o.mode, c->o.group, err);
    if (rc < 0)
        return rc;
    snprintf(what, sizeof what, "control socket %s", c->path);
    rc = start_side(c, &c->local, loop, what, c->listen.fd, NULL, err);
    if (rc < 0)
        unlink(c->path);
    return rc;
}

static int start_remote(struct wt_control *c, uv_loop_t *loop, struct wt_err *err) {
    struct wt_pem pem = {0};
    int fd = -1;
    int rc = wt_token_read(c->o.token_file, c->token, err);
    if (rc == 0)
        rc = wt_pem_read(c->o.cert_file, c->o.key_file, &pem, err);
    if (rc == 0)
        rc = wt_listen_tcp(c->o.address, &fd, err);
    c->remote.remote = true;
    if (rc == 0)
        rc = start_side(c, &c->remote, loop, c->o.address, fd, &pem, err);
    if (rc == 0)
        c->pem = wt_pem_hash(&pem);
    wt_pem_free(&pem);
    return rc < 0 ? wt_err_wrap(err, "listen") : 0;
}

int wt_control_new(uv_loop_t *loop, const struct wt_control_opts *opts, const struct wt_log *log,
                   struct wt_control **out, struct wt_err *err) {
    struct wt_control *c = wt_calloc(1, sizeof *c);
    if (!c)
        return wt_err_set(err, WT_ENOMEM, "control socket: out of memory");
    c->o = *opts;
    snprintf(c->path, sizeof c->path, "%s", opts->path);
    int rc = start_local(c, loop, err);
    if (rc < 0) {
        free(c);
        return rc;
    }
    *out = c; /* from here on it is stopped as a whole */
    if (opts->address[0])
        rc = start_remote(c, loop, err);
    if (rc == 0 && opts->address[0])
        wt_log(log, WT_LOG_INFO, "listening on %s for jobs of other hosts", opts->address);
    return rc;
}

/* The server goes on with the certificate that it has where nothing has changed. */
static int renew(struct wt_control *c, const struct wt_control_opts *opts, struct wt_err *err) {
    struct wt_pem pem = {0};
    int rc = wt_pem_read(opts->cert_file, opts->key_file, &pem, err);
    if (rc < 0)
        return rc;
    struct wt_hash hash = wt_pem_hash(&pem);
    if (!wt_hash_equal(hash, c->pem))
        rc = wt_server_renew(&c->remote.server, pem.cert, pem.key, err);
    if (rc == 0)
        c->pem = hash;
    wt_pem_free(&pem);
    return rc;
}

int wt_control_reload(struct wt_control *c, const struct wt_control_opts *opts,
                      struct wt_err *err) {
    char token[WT_TOKEN_MAX];
    if (!c->remote.open)
        return 0;
    int rc = wt_token_read(opts->token_file, token, err);
    if (rc == 0)
        rc = renew(c, opts, err);
    if (rc == 0)
        memcpy(c->token, token, sizeof token);
    explicit_bzero(token, sizeof token);
    return rc;
}

void wt_control_stats(const struct wt_control *c, struct wt_control_stats *out) {
    *out = (struct wt_control_stats){.requests = c->requests,
                                     .failed = c->failed,
                                     .connections = wt_server_connections(&c->local.server),
                                     .streams = c->streams,
                                     .latency = c->latency};
    if (c->remote.open)
        out->connections += wt_server_connections(&c->remote.server);
}

static void on_closed(void *arg) {
    struct wt_control *c = arg;
    if (--c->closing > 0)
        return;
    unlink(c->path);
    c->stopped(c->stopped_arg); /* may free c */
}

void wt_control_stop(struct wt_control *c, void (*stopped)(void *arg), void *arg) {
    c->stopping = true;
    c->stopped = stopped;
    c->stopped_arg = arg;
    for (struct pending *p = c->first; p; p = p->next)
        if (p->suspended && p->stream.read)
            wt_pending_resume(p);
        else if (p->suspended)
            wt_pending_fail(p, MHD_HTTP_SERVICE_UNAVAILABLE, "CANCELED", "the daemon is stopping");
    if (c->remote.open)
        wt_server_stop(&c->remote.server, on_closed, c);
    wt_server_stop(&c->local.server, on_closed, c);
}

void wt_control_free(struct wt_control *c) {
    free(c);
}
