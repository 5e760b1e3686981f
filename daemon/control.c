/*
 * libmicrohttpd on a uv loop; see control.h.
 *
 * MHD polls its sockets with an epoll descriptor of its own; a uv_poll on that descriptor calls
 * MHD_run, a timer honours MHD_get_timeout. A route that answers later suspends its connection; the
 * answer resumes it, and MHD asks again.
 */
#include "daemon/control.h"

#include "core/bytes.h"
#include "core/json.h"
#include "core/mem.h"
#include "daemon/listen.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BODY_MAX = 1 << 20, CONNECTIONS = 64, IDLE_S = 10, ID_MAX = 64 };

struct pending { /* what stands behind a wt_call */
    struct wt_call call;
    struct wt_control *control;
    struct MHD_Connection *connection;
    struct pending *next, **prev; /* of those that are not answered */
    const struct wt_route *route;
    char id[ID_MAX];
    struct wt_bytes body;
    bool too_large, no_memory, begun, running, suspended, answered;
    unsigned status;
    json_t *reply;
};

struct wt_control {
    uv_poll_t poll;
    uv_timer_t timer;
    unsigned open; /* handles */
    struct MHD_Daemon *mhd;
    struct wt_listen listen;
    struct wt_control_opts o;
    char path[108];
    const struct wt_log *log;
    struct pending *first;
    bool stopping, again;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

/* ---- answers ---- */

static unsigned status_of(int code) {
    switch (code) {
    case WT_EMISSING:
        return MHD_HTTP_NOT_FOUND;
    case WT_EINVAL:
    case WT_ERANGE:
    case WT_EFORMAT:
        return MHD_HTTP_BAD_REQUEST;
    case WT_EDENIED:
        return MHD_HTTP_FORBIDDEN;
    case WT_EBUSY:
        return MHD_HTTP_TOO_MANY_REQUESTS;
    case WT_ELOCKED:
    case WT_ECANCELED:
    case WT_EDOWN:
    case WT_ETIMEDOUT:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    default:
        return MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
}

static json_t *error_json(const char *code, const char *text) {
    return json_pack("{s:o, s:s}", "error", wt_json_string(text), "code", code);
}

static enum MHD_Result send_json(struct pending *p) {
    size_t len;
    char *text = wt_json_dump(p->reply, JSON_COMPACT, &len);
    json_decref(p->reply);
    p->reply = NULL;
    struct MHD_Response *r =
        text ? MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE) : NULL;
    if (!r) {
        free(text);
        return MHD_NO;
    }
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    enum MHD_Result result = MHD_queue_response(p->connection, p->status, r);
    MHD_destroy_response(r);
    return result;
}

static void kick(struct wt_control *c);

void wt_call_reply(struct wt_call *call, unsigned status, json_t *reply) {
    struct pending *p = call->priv;
    if (p->answered) {
        json_decref(reply);
        return;
    }
    p->answered = true;
    p->status = reply ? status : MHD_HTTP_INTERNAL_SERVER_ERROR;
    p->reply = reply ? reply : error_json("NOMEM", "out of memory");
    if (p->suspended) {
        p->suspended = false;
        MHD_resume_connection(p->connection);
        kick(p->control);
    }
}

void wt_call_fail(struct wt_call *call, const struct wt_err *err) {
    wt_call_reply(call, status_of(err->code), error_json(wt_err_name(err->code), err->text));
}

static void fail(struct pending *p, unsigned status, const char *code, const char *text) {
    wt_call_reply(&p->call, status, error_json(code, text));
}

/* ---- routes ---- */

/* "/v1/jobs/{id}/progress" against a path; the part at {id} goes to id. */
static bool path_matches(const char *pattern, const char *path, char id[ID_MAX]) {
    const char *hole = strstr(pattern, "{id}");
    if (!hole)
        return strcmp(pattern, path) == 0;
    size_t before = (size_t)(hole - pattern);
    if (strncmp(pattern, path, before) != 0)
        return false;
    size_t len = strcspn(path + before, "/");
    if (len == 0 || len >= ID_MAX || strcmp(path + before + len, hole + 4) != 0)
        return false;
    memcpy(id, path + before, len);
    id[len] = '\0';
    return true;
}

static void find_route(struct pending *p, const char *method, const char *path) {
    const struct wt_control_opts *o = &p->control->o;
    bool path_known = false;
    for (size_t i = 0; i < o->n_routes && !p->route; i++) {
        if (!path_matches(o->routes[i].path, path, p->id))
            continue;
        path_known = true;
        bool head = strcmp(method, "HEAD") == 0 && strcmp(o->routes[i].method, "GET") == 0;
        if (head || strcmp(o->routes[i].method, method) == 0)
            p->route = &o->routes[i];
    }
    if (!p->route && path_known)
        fail(p, MHD_HTTP_METHOD_NOT_ALLOWED, "INVAL", "this path does not know that method");
    else if (!p->route)
        fail(p, MHD_HTTP_NOT_FOUND, "MISSING",
             "no such path; see GET /v1/stats, /v1/tiers, /v1/datasets, /v1/jobs, /v1/moves, "
             "/healthz");
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

static bool allowed(struct pending *p) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(p->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (!p->route->changes || (info && wt_listen_may_change(&p->control->listen, info->connect_fd)))
        return true;
    fail(p, MHD_HTTP_FORBIDDEN, "DENIED",
         "changes are for root, the daemon's user and members of the socket's group");
    return false;
}

static void run_route(struct pending *p) {
    p->running = true;
    if (p->too_large)
        fail(p, MHD_HTTP_CONTENT_TOO_LARGE, "RANGE", "the body has more than 1 MiB");
    else if (p->no_memory)
        fail(p, MHD_HTTP_INTERNAL_SERVER_ERROR, "NOMEM", "no memory for the body");
    else if (p->control->stopping)
        fail(p, MHD_HTTP_SERVICE_UNAVAILABLE, "CANCELED", "the daemon is stopping");
    else if (allowed(p) && parse_body(p)) {
        p->call.id = p->id[0] ? p->id : NULL;
        p->route->run(p->control->o.arg, &p->call);
    }
    p->running = false;
}

/* ---- what MHD calls ---- */

static void collect(struct pending *p, const char *data, size_t len) {
    if (p->body.len + len > BODY_MAX)
        p->too_large = true;
    else if (!p->no_memory)
        p->no_memory = wt_bytes_add(&p->body, data, len) < 0;
}

static struct pending *begin(struct wt_control *c, struct MHD_Connection *connection,
                             const char *method, const char *path) {
    struct pending *p = wt_calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->control = c;
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
    if (!p->answered && length && strtoull(length, NULL, 10) > BODY_MAX)
        fail(p, MHD_HTTP_CONTENT_TOO_LARGE, "RANGE", "the body has more than 1 MiB");
    return p;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **con) {
    struct wt_control *c = arg;
    struct pending *p = *con;
    (void)version;
    if (!p) {
        p = *con = begin(c, connection, method, path);
        if (!p)
            return MHD_NO;
        return p->answered ? send_json(p) : MHD_YES;
    }
    if (*len) {
        if (p->too_large)
            return MHD_NO; /* it announced no length and does not end */
        collect(p, data, *len);
        *len = 0;
        return MHD_YES;
    }
    if (!p->begun) {
        p->begun = true;
        run_route(p);
    }
    if (p->answered)
        return p->reply ? send_json(p) : MHD_NO;
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
    json_decref(p->call.body);
    json_decref(p->reply);
    wt_bytes_free(&p->body);
    free(p);
    *con = NULL;
}

/* At the connection limit MHD stops listening, and begins again in the run *after* the one in which
 * a connection went. */
static void on_connection(void *arg, struct MHD_Connection *connection, void **con,
                          enum MHD_ConnectionNotificationCode what) {
    struct wt_control *c = arg;
    (void)connection;
    (void)con;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED)
        c->again = true;
}

/* ---- on the loop ---- */

static void on_timer(uv_timer_t *timer);

static void run(struct wt_control *c) {
    MHD_UNSIGNED_LONG_LONG ms = 0;
    c->again = false;
    MHD_run(c->mhd);
    if (c->again)
        uv_timer_start(&c->timer, on_timer, 0, 0);
    else if (MHD_get_timeout(c->mhd, &ms) == MHD_YES)
        uv_timer_start(&c->timer, on_timer, ms, 0);
    else
        uv_timer_stop(&c->timer);
}

static void on_timer(uv_timer_t *timer) {
    run(timer->data);
}

static void on_poll(uv_poll_t *poll, int status, int events) {
    (void)status;
    (void)events;
    run(poll->data);
}

/* An answer resumed a connection: MHD must look at it soon, but not inside of itself. */
static void kick(struct wt_control *c) {
    if (!c->stopping)
        uv_timer_start(&c->timer, on_timer, 0, 0);
}

static struct MHD_Daemon *start_mhd(struct wt_control *c) {
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, c,
                            MHD_OPTION_LISTEN_SOCKET, c->listen.fd, MHD_OPTION_CONNECTION_LIMIT,
                            (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)64 << 10,
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, c,
                            MHD_OPTION_NOTIFY_COMPLETED, on_completed, c, MHD_OPTION_END);
}

int wt_control_new(uv_loop_t *loop, const struct wt_control_opts *opts, const struct wt_log *log,
                   struct wt_control **out, struct wt_err *err) {
    struct wt_control *c = wt_calloc(1, sizeof *c);
    if (!c)
        return wt_err_set(err, WT_ENOMEM, "control socket: out of memory");
    c->o = *opts;
    c->log = log;
    snprintf(c->path, sizeof c->path, "%s", opts->path);
    c->o.path = c->path;
    int rc = wt_listen_open(&c->listen, c->path, opts->mode, opts->group, err);
    if (rc < 0) {
        free(c);
        return rc;
    }
    c->mhd = start_mhd(c);
    const union MHD_DaemonInfo *info =
        c->mhd ? MHD_get_daemon_info(c->mhd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info || uv_poll_init(loop, &c->poll, info->epoll_fd) < 0) {
        if (c->mhd)
            MHD_stop_daemon(c->mhd); /* closes the socket */
        unlink(c->path);
        free(c);
        return wt_err_set(err, WT_ESYSTEM, "control socket %s: the HTTP server does not start",
                          opts->path);
    }
    uv_timer_init(loop, &c->timer);
    c->poll.data = c->timer.data = c;
    c->open = 2;
    uv_poll_start(&c->poll, UV_READABLE, on_poll);
    *out = c;
    return 0;
}

static void on_closed(uv_handle_t *h) {
    struct wt_control *c = h->data;
    if (--c->open > 0)
        return;
    MHD_stop_daemon(c->mhd);
    unlink(c->path);
    if (c->stopped)
        c->stopped(c->stopped_arg); /* may free c */
}

void wt_control_stop(struct wt_control *c, void (*stopped)(void *arg), void *arg) {
    c->stopping = true;
    c->stopped = stopped;
    c->stopped_arg = arg;
    for (struct pending *p = c->first; p; p = p->next)
        if (p->suspended)
            fail(p, MHD_HTTP_SERVICE_UNAVAILABLE, "CANCELED", "the daemon is stopping");
    MHD_run(c->mhd); /* MHD must not be stopped with suspended connections; this also sends the
                        answers */
    MHD_run(c->mhd);
    uv_poll_stop(&c->poll);
    uv_close((uv_handle_t *)&c->poll, on_closed);
    uv_close((uv_handle_t *)&c->timer, on_closed);
}

void wt_control_free(struct wt_control *c) {
    free(c);
}
