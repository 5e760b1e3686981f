/*
 * An HTTP server (libmicrohttpd) on a uv loop: one listening socket, with or without TLS.
 *
 * MHD polls its sockets with an epoll descriptor of its own; a uv_poll on that descriptor calls
 * MHD_run, a timer honours MHD_get_timeout. Happy path: start; the handler's functions are called
 * on the loop; stop. A certificate is an MHD daemon's for good: renew starts another one on the
 * same socket, and the older one ends when its last connection does. Failures: at start and renew,
 * with what is wrong; later those of one connection, which MHD closes.
 */
#ifndef WT_DAEMON_SERVER_H
#define WT_DAEMON_SERVER_H

#include "core/err.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <uv.h>

struct wt_server_opts {
    const char *what;       /* for messages */
    int fd;                 /* listens; the server's from now on, also on failure */
    const char *cert, *key; /* PEM; NULL: no TLS */
    unsigned connections, idle_s;
    MHD_AccessHandlerCallback request;
    MHD_RequestCompletedCallback completed;
    void *arg; /* of both */
};

struct wt_server_engine;

struct wt_server {
    uv_loop_t *loop;
    struct wt_server_opts o;
    int fd;
    struct wt_server_engine *first; /* takes connections; those behind it end theirs */
    bool stopping;
    void (*closed)(void *arg);
    void *closed_arg;
};

int wt_server_start(struct wt_server *s, uv_loop_t *loop, const struct wt_server_opts *opts,
                    struct wt_err *err);
/* Later connections get this certificate. Failures leave all as it is; WT_EBUSY: several older ones
 * have connections still. */
int wt_server_renew(struct wt_server *s, const char *cert, const char *key, struct wt_err *err);
/* A connection was resumed: it is looked at soon, but not inside of MHD. */
void wt_server_kick(struct wt_server *s);
unsigned wt_server_connections(const struct wt_server *s);
/* No connection may be suspended any more. Sends what is ready to be sent; `closed` is called on
 * the loop when all is closed. */
void wt_server_stop(struct wt_server *s, void (*closed)(void *arg), void *arg);

#endif
