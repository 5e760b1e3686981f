/*
 * HTTP/1.1 and JSON on the daemon's loop: on a Unix socket, and where it is asked for on TCP with
 * TLS.
 *
 * Happy path: a request comes in, its body (at most 1 MiB) is collected and parsed, the route's
 * function answers, at once or later, or streams. Failures are answers: {"error": text, "code":
 * "INVAL"} with a status that fits. A socket file that nobody listens on is replaced, a live one
 * refused. At most 512 connections, 32 of them streams, 10 s of silence each. Who may open the
 * socket may read; changes are for root, the daemon's own user and members of the socket's group.
 * On TCP a token is needed, and only routes marked so answer.
 */
#ifndef WT_DAEMON_CONTROL_H
#define WT_DAEMON_CONTROL_H

#include "core/err.h"
#include "core/hist.h"
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

/* Answers by wt_call_reply or another of them, before or after it returns. */
typedef void (*wt_route_fn)(void *arg, struct wt_call *call);

enum {                       /* flags of a route */
       WT_ROUTE_CHANGES = 1, /* needs the rights to change things */
       WT_ROUTE_REMOTE = 2,  /* answers on TCP too */
       WT_ROUTE_STREAM = 4,
};
struct wt_route {
    const char *method, *path; /* "/v1/jobs/{id}/progress" */
    unsigned flags;
    wt_route_fn run;
};

struct wt_control_opts {
    const char *path;
    unsigned mode;
    const char *group; /* "": the daemon's own */
    const struct wt_route *routes;
    size_t n_routes;
    void *arg; /* of the routes' functions */
    /* on TCP: */
    const char *address; /* "HOST:PORT"; "": not */
    const char *cert_file, *key_file, *token_file;
};

struct wt_control;
int wt_control_new(uv_loop_t *loop, const struct wt_control_opts *opts, const struct wt_log *log,
                   struct wt_control **out, struct wt_err *err);
/* Reads token, certificate and key again: for those who connect from now on. On failure all stay
 * as they were. */
int wt_control_reload(struct wt_control *c, const struct wt_control_opts *opts, struct wt_err *err);
/* Answers what is pending with 503, ends streams, removes the socket; `stopped` is called on the
 * loop; then free. */
void wt_control_stop(struct wt_control *c, void (*stopped)(void *arg), void *arg);
void wt_control_free(struct wt_control *c);

struct wt_control_stats {
    uint64_t requests, failed;
    unsigned connections, streams;
    struct wt_hist latency; /* from the end of a request to its answer */
};
void wt_control_stats(const struct wt_control *c, struct wt_control_stats *out);

/* The value of ?name=..., or NULL. Valid until the answer. */
const char *wt_call_query(const struct wt_call *call, const char *name);
/* Takes over `reply`. */
void wt_call_reply(struct wt_call *call, unsigned status, json_t *reply);
/* Takes over `text` (malloc); NULL: out of memory. `type`: a constant. */
void wt_call_text(struct wt_call *call, const char *type, char *text, size_t len);
/* The status follows from the code. */
void wt_call_fail(struct wt_call *call, const struct wt_err *err);

struct wt_stream {
    /* Fills buf; 0: nothing now, wt_stream_wake comes later; -1: it is over. */
    ssize_t (*read)(void *arg, char *buf, size_t size);
    void (*free)(void *arg); /* the reader is gone, or was refused */
    void *arg;
};
/* Answers with a stream; the handle is for wt_stream_wake until free is called. NULL: there are too
 * many, the call was answered so and free was called. */
void *wt_call_stream(struct wt_call *call, const char *type, const struct wt_stream *stream);
void wt_stream_wake(void *handle);

#endif
