/*
 * Answers: JSON, text or a stream; see control.h. A stream that has nothing to say suspends its
 * connection until it is woken.
 */
#include "daemon/control_internal.h"

#include "core/json.h"

#include <stdlib.h>

enum {
    STREAMS = 32,
    STREAM_IDLE_S = 60, /* its reader may pause as long before the rest is lost to it */
    BLOCK = 16 << 10,   /* of a stream */
};

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
    case WT_EEXISTS:
    case WT_ECHANGED:
        return MHD_HTTP_CONFLICT;
    case WT_EUNSUPPORTED:
        return MHD_HTTP_UNPROCESSABLE_CONTENT;
    case WT_EBUSY:
        return MHD_HTTP_TOO_MANY_REQUESTS;
    case WT_EFULL:
        return MHD_HTTP_INSUFFICIENT_STORAGE;
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

static ssize_t on_stream(void *arg, uint64_t at, char *buf, size_t size) {
    struct pending *p = arg;
    (void)at;
    ssize_t n = p->stream.read(p->stream.arg, buf, size);
    if (n < 0)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == 0 && !p->suspended) {
        p->suspended = true;
        MHD_suspend_connection(p->connection);
    }
    return n;
}

static struct MHD_Response *make_response(struct pending *p) {
    if (p->stream.read) {
        MHD_set_connection_option(p->connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                  (unsigned)STREAM_IDLE_S);
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, on_stream, p, NULL);
    }
    if (!p->text)
        p->text = wt_json_dump(p->reply, JSON_COMPACT, &p->text_len);
    struct MHD_Response *r =
        p->text ? MHD_create_response_from_buffer(p->text_len, p->text, MHD_RESPMEM_MUST_FREE)
                : NULL;
    if (!r)
        free(p->text);
    p->text = NULL;
    return r;
}

enum MHD_Result wt_pending_send(struct pending *p) {
    struct MHD_Response *r = make_response(p);
    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, p->type);
    if (p->status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    enum MHD_Result result = MHD_queue_response(p->connection, p->status, r);
    MHD_destroy_response(r);
    return result;
}

void wt_pending_resume(struct pending *p) {
    if (!p->suspended)
        return;
    p->suspended = false;
    MHD_resume_connection(p->connection);
    wt_server_kick(&p->side->server);
}

/* The answer stands in p. */
static void answered(struct pending *p, unsigned status, const char *type) {
    struct wt_control *c = p->side->control;
    p->answered = true;
    p->status = status;
    p->type = type;
    c->requests++;
    c->failed += status >= 400;
    if (p->began_ns)
        wt_hist_add(&c->latency, (uv_hrtime() - p->began_ns) / 1000);
    wt_pending_resume(p);
}

void wt_call_reply(struct wt_call *call, unsigned status, json_t *reply) {
    struct pending *p = call->priv;
    if (p->answered) {
        json_decref(reply);
        return;
    }
    p->reply = reply ? reply : error_json("NOMEM", "out of memory");
    answered(p, reply ? status : MHD_HTTP_INTERNAL_SERVER_ERROR, "application/json");
}

void wt_call_text(struct wt_call *call, const char *type, char *text, size_t len) {
    struct pending *p = call->priv;
    if (!text || p->answered) {
        free(text);
        wt_call_reply(call, 0, NULL);
        return;
    }
    p->text = text;
    p->text_len = len;
    answered(p, MHD_HTTP_OK, type);
}

void wt_call_fail(struct wt_call *call, const struct wt_err *err) {
    wt_call_reply(call, status_of(err->code), error_json(wt_err_name(err->code), err->text));
}

void wt_pending_fail(struct pending *p, unsigned status, const char *code, const char *text) {
    wt_call_reply(&p->call, status, error_json(code, text));
}

void *wt_call_stream(struct wt_call *call, const char *type, const struct wt_stream *stream) {
    struct pending *p = call->priv;
    struct wt_control *c = p->side->control;
    if (c->streams >= STREAMS) {
        wt_pending_fail(p, MHD_HTTP_TOO_MANY_REQUESTS, "BUSY",
                        "32 readers follow events already; try later");
        stream->free(stream->arg);
        return NULL;
    }
    c->streams++;
    p->stream = *stream;
    answered(p, MHD_HTTP_OK, type);
    return p;
}

void wt_stream_wake(void *handle) {
    wt_pending_resume(handle);
}

const char *wt_call_query(const struct wt_call *call, const char *name) {
    const struct pending *p = call->priv;
    return MHD_lookup_connection_value(p->connection, MHD_GET_ARGUMENT_KIND, name);
}
