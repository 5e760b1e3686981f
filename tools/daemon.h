/*
 * Talking to wafertierd over its control socket (docs/control-api.md), for the verbs that steer and
 * show it, and for those that can do without it.
 *
 * Happy path: open finds the socket, by --control or by the configuration; each call is one request
 * and its JSON answer. Failures: nobody listens, no right, no answer in time: the verb ends with 3
 * (no daemon answers) or 1; the daemon refuses: its own words, which say what to do.
 */
#ifndef WT_TOOLS_DAEMON_H
#define WT_TOOLS_DAEMON_H

#include "core/bytes.h"
#include "core/dataset.h"
#include "tools/verb.h"

#include <jansson.h>
#include <stdbool.h>

struct wt_daemon_opts {
    const char *control; /* "unix:/PATH" or a path; NULL: by the configuration */
    const char *config;  /* NULL: $WAFERTIER_CONFIG, else the installed one */
};

struct wt_daemon_link {
    struct wt_http *http;
    bool lost;    /* the last call had no answer at all, so not even a refusal */
    bool patient; /* set by the caller: its answers may take minutes, as those to a POST may */
};
int wt_daemon_open(const struct wt_daemon_opts *opts, struct wt_daemon_link *link,
                   struct wt_err *err);
void wt_daemon_close(struct wt_daemon_link *link);

/* body: taken over, NULL with GET and DELETE. *reply (json_decref; NULL: not wanted) is an object.
 * A refusal keeps the daemon's words; 404 is WT_EMISSING, all others WT_EINVAL. */
int wt_daemon_call(struct wt_daemon_link *link, const char *method, const char *path, json_t *body,
                   json_t **reply, struct wt_err *err);
/* A stream of lines, each given to `line` without its newline until that returns non-zero or the
 * stream ends; a silence of 30 s is an error. */
int wt_daemon_stream(struct wt_daemon_link *link, const char *path,
                     int (*line)(void *arg, const char *text), void *arg, struct wt_err *err);
/* The message, and the exit code that fits. */
int wt_daemon_fail(const struct wt_verb *verb, const struct wt_daemon_link *link,
                   const struct wt_err *err);
/* open, one call, print or show, close: what most verbs do. show NULL or `as_json`: the answer as
 * it is. Takes the body over. Returns an exit code. */
int wt_daemon_run(const struct wt_verb *verb, const struct wt_daemon_opts *opts, const char *method,
                  const char *path, json_t *body, bool as_json, void (*show)(const json_t *reply));

/* A verb without operands that makes one request and shows the answer, or prints it with --json. */
struct wt_daemon_show {
    struct wt_daemon_opts daemon;
    bool json;
};
enum { WT_DAEMON_SHOW_ARGS = 3 };
extern const struct wt_arg wt_daemon_show_args[WT_DAEMON_SHOW_ARGS];
int wt_daemon_show(const struct wt_verb *verb, int argc, char **argv, const char *method,
                   const char *path, void (*show)(const json_t *reply));

/* Tells the daemon that a data set was written; control "": there is none. A failure is a note on
 * stderr. */
void wt_daemon_announce(const struct wt_verb *verb, const char *control, const char *dataset);

/* ---- reading answers: what is missing or of another type is 0 or "" ---- */
/* path: "moves.running" looks into objects. */
const json_t *wt_view(const json_t *o, const char *path);
uint64_t wt_view_count(const json_t *o, const char *path);
double wt_view_real(const json_t *o, const char *path);
bool wt_view_true(const json_t *o, const char *path);
const char *wt_view_text(const json_t *o, const char *path);
const char *wt_view_size(const json_t *o, const char *path, char out[WT_SIZE_TEXT]);
/* "3.2 s", "4 min 10 s", "2 h 5 min", "3 d 4 h"; returns out. */
enum { WT_SPAN_TEXT = 32 };
const char *wt_view_span(double seconds, char out[WT_SPAN_TEXT]);

/* Options that these verbs share: the last one with WT_DAEMON_JSON_ARG. */
#define WT_DAEMON_ARGS(struct_type, member)                                                        \
    {.name = "control",                                                                            \
     .letter = 's',                                                                                \
     .type = WT_ARG_TEXT,                                                                          \
     .offset = offsetof(struct_type, member.control),                                              \
     .value = "ADDRESS",                                                                           \
     .help = "the daemon's socket, unix:/PATH or a path"},                                         \
    {                                                                                              \
        .name = "config", .letter = 'c', .type = WT_ARG_TEXT,                                      \
        .offset = offsetof(struct_type, member.config), .value = "FILE",                           \
        .help = "take the socket from this configuration; without it and without a socket: "       \
                "$WAFERTIER_CONFIG, else the installed one"                                        \
    }
#define WT_DAEMON_JSON_ARG(struct_type, member)                                                    \
    {                                                                                              \
        .name = "json", .type = WT_ARG_FLAG, .offset = offsetof(struct_type, member),              \
        .help = "the daemon's answer as it is"                                                     \
    }

#endif
