/*
 * Between control.c (requests) and answer.c (their answers).
 */
#ifndef WT_DAEMON_CONTROL_INTERNAL_H
#define WT_DAEMON_CONTROL_INTERNAL_H

#include "core/bytes.h"
#include "core/sum.h"
#include "daemon/control.h"
#include "daemon/listen.h"
#include "daemon/remote.h"
#include "daemon/server.h"

enum { WT_CALL_ID = 64 };

struct pending { /* what stands behind a wt_call */
    struct wt_call call;
    struct side *side;
    struct MHD_Connection *connection;
    struct pending *next, **prev; /* of those that are not completed */
    const struct wt_route *route;
    char id[WT_CALL_ID];
    struct wt_bytes body;
    uint64_t received; /* of the body */
    bool too_large, no_memory, begun, suspended, answered;
    unsigned status;
    json_t *reply;
    char *text; /* instead of a reply */
    size_t text_len;
    const char *type;
    struct wt_stream stream; /* instead of both, where read is set */
    uint64_t began_ns;
};

struct side { /* a listening socket */
    struct wt_control *control;
    struct wt_server server;
    bool remote, open;
    char what[300]; /* for messages */
};

struct wt_control {
    struct side local, remote;
    struct wt_listen listen;
    struct wt_control_opts o;
    char path[108];
    char token[WT_TOKEN_MAX];
    struct wt_hash pem; /* of certificate and key */
    struct pending *first;
    bool stopping;
    uint64_t requests, failed;
    unsigned streams, closing;
    struct wt_hist latency;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

/* The answer as it stands in p, to MHD. */
enum MHD_Result wt_pending_send(struct pending *p);
void wt_pending_resume(struct pending *p);
void wt_pending_fail(struct pending *p, unsigned status, const char *code, const char *text);

#endif
