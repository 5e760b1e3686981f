/*
 * A small HTTP client (libcurl) for the daemon's control socket, or its listener on another host:
 * blocking, for a thread that may block (tools, the loader's reporter thread), never for a loop.
 */
#ifndef WT_CORE_HTTP_H
#define WT_CORE_HTTP_H

#include "core/err.h"

#include <stddef.h>

struct wt_http; /* one connection, kept alive; one thread at a time */

/* address: "unix:/run/wafertier/control.sock". No I/O yet. */
int wt_http_new(const char *address, struct wt_http **out, struct wt_err *err);
struct wt_http_where {
    const char *address;    /* also "https://HOST:PORT", then: */
    const char *token_file; /* its first line goes along */
    const char *ca;         /* PEM; NULL or "": the system's authorities */
};
int wt_http_open(const struct wt_http_where *where, struct wt_http **out, struct wt_err *err);
void wt_http_free(struct wt_http *h);

/* body NULL: no body. *status gets the HTTP status; *reply the body (NUL-terminated, free(); at
 * most 64 MiB). 0 when an answer came, whatever its status; WT_EDOWN: nobody listens, WT_EDENIED:
 * the socket's rights, WT_ETIMEDOUT. */
int wt_http_call(struct wt_http *h, const char *method, const char *path, const char *body,
                 unsigned timeout_ms, long *status, char **reply, size_t *reply_len,
                 struct wt_err *err);
/* GET of a body that may have no end: `piece` gets it as it comes; non-zero from it ends the call
 * with that code. Nothing at all for silence_ms: WT_ETIMEDOUT. 0: the server ended it. The body of
 * an answer that is no success goes to *refusal instead (free(); NULL with a success). */
int wt_http_stream(struct wt_http *h, const char *path, unsigned silence_ms,
                   int (*piece)(void *arg, const char *data, size_t len), void *arg, long *status,
                   char **refusal, struct wt_err *err);
/* Makes a pending and any later call of another thread fail with WT_ECANCELED soon (within 100 ms).
 */
void wt_http_abort(struct wt_http *h);

#endif
