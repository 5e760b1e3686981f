/* Reading the JSON bodies and the query of requests; errors say what was given and what is wanted.
 */
#ifndef WT_DAEMON_BODY_H
#define WT_DAEMON_BODY_H

#include "core/err.h"
#include "daemon/control.h"

#include <jansson.h>
#include <stdint.h>

enum { WT_HTTP_OK = 200 };

/* jansson has signed integers: what is larger is INT64_MAX. */
json_t *wt_body_number(uint64_t v);

/* Not needed and not there: *out stays. */
int wt_body_u64(const json_t *body, const char *name, bool needed, uint64_t *out,
                struct wt_err *err);
int wt_body_seconds(const json_t *body, const char *name, double *out, struct wt_err *err);
int wt_body_text(const json_t *body, const char *name, char *out, size_t size, struct wt_err *err);
/* The same, but it may be missing, null or "": *out is "" then. */
int wt_body_option(const json_t *body, const char *name, char *out, size_t size,
                   struct wt_err *err);
/* ?name=..., a number; *out stays when it is not there. */
int wt_query_u64(const struct wt_call *call, const char *name, uint64_t *out, struct wt_err *err);
int wt_query_text(const struct wt_call *call, const char *name, char *out, size_t size,
                  struct wt_err *err);

#endif
