/*
 * HTTP/1.1 and JSON on a Unix socket, on the daemon's loop.
 *
 * Happy path: a request comes in, its body (at most 1 MiB) is collected and parsed, the route's
 * function answers, at once or later. Failures are answers: {"error": text, "code": "INVAL"} with a
 * status that fits. A socket file that nobody listens on is replaced, a live one refused. At most
 * 64 connections, 10 s of silence each. Who may open the socket may read; changes are for root, the
 * daemon's own user and members of the socket's group.
 */
#ifndef WT_DAEMON_CONTROL_H
#define WT_DAEMON_CONTROL_H

#include "core/err.h"
#include "core/log.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

struct wt_call {    /* a request; lives until it is answered */
    json_t *body;   /* of POST: an object; else NULL */
    const char *id; /* what stands for {id} in the path, or NULL */
    void *priv;     /* the control's own */
};

/* Answers by wt_call_reply or wt_call_fail, before or after it returns. */
typedef void (*wt_route_fn)(void *arg, struct wt_call *call);

struct wt_route {
    const char *method, *path; /* "/v1/jobs/{id}/progress" */
    bool changes;              /* needs the rights to change things */
    wt_route_fn run;
};

struct wt_control_opts {
    const char *path;
    unsigned mode;
    const char *group; /* "": the daemon's own */
    const struct wt_route *routes;
    size_t n_routes;
    void *arg; /* of the routes' functions */
};

struct wt_control;
int wt_control_new(uv_loop_t *loop, const struct wt_control_opts *opts, const struct wt_log *log,
                   struct wt_control **out, struct wt_err *err);
/* Answers what is pending with 503, removes the socket; `stopped` is called on the loop; then free.
 */
void wt_control_stop(struct wt_control *c, void (*stopped)(void *arg), void *arg);
void wt_control_free(struct wt_control *c);

/* Takes over `reply`. */
void wt_call_reply(struct wt_call *call, unsigned status, json_t *reply);
/* The status follows from the code. */
void wt_call_fail(struct wt_call *call, const struct wt_err *err);

#endif
