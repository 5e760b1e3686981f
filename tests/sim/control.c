/*
 * In the place of daemon/control.c: a call goes to its route by a letter, without HTTP.
 *
 * Happy path: sim_call posts it, the route answers at once or later, `answered` is told. Failures:
 * no such route: the simulator is wrong; a daemon that stops answers 503, one that died nothing
 * (0).
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_call {
    struct wt_call call;
    struct sim_call *next;
    struct sim_process *process;
    char method[8], path[128], id[WT_JOB_ID];
    void (*answered)(void *arg, const struct sim_answer *a); /* NULL: told */
    void *arg;
};

struct wt_control {
    struct wt_control_opts o;
    struct sim_process *process;
    struct sim_call *first;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

int wt_control_new(uv_loop_t *loop, const struct wt_control_opts *opts, const struct wt_log *log,
                   struct wt_control **out, struct wt_err *err) {
    struct wt_control *c = calloc(1, sizeof *c);
    (void)log;
    if (!c)
        return wt_err_set(err, WT_ENOMEM, "out of memory");
    c->o = *opts;
    c->process = ((struct sim_loop *)loop->data)->process;
    c->process->control = c;
    *out = c;
    return 0;
}

static void tell(struct sim_call *c, unsigned status, json_t *body) {
    void (*answered)(void *arg, const struct sim_answer *a) = c->answered;
    c->answered = NULL;
    if (answered)
        answered(c->arg, &(struct sim_answer){status, body});
    json_decref(body);
}

void wt_call_reply(struct wt_call *call, unsigned status, json_t *reply) {
    tell(call->priv, status, reply);
}

void wt_call_fail(struct wt_call *call, const struct wt_err *err) {
    unsigned status = err->code == WT_EMISSING ? 404 : 400;
    tell(call->priv, status, json_pack("{s:s}", "error", err->text));
}

/* Nobody asks for these here: metrics, events, queries, tokens. */

void wt_call_text(struct wt_call *call, const char *type, char *text, size_t len) {
    (void)type;
    (void)len;
    free(text);
    tell(call->priv, 200, NULL);
}

void *wt_call_stream(struct wt_call *call, const char *type, const struct wt_stream *stream) {
    (void)type;
    stream->free(stream->arg);
    tell(call->priv, 503, NULL);
    return NULL;
}

void wt_stream_wake(void *handle) {
    (void)handle;
}

const char *wt_call_query(const struct wt_call *call, const char *name) {
    (void)call;
    (void)name;
    return NULL;
}

int wt_control_reload(struct wt_control *c, const struct wt_control_opts *opts,
                      struct wt_err *err) {
    (void)c;
    (void)opts;
    (void)err;
    return 0;
}

void wt_control_stats(const struct wt_control *c, struct wt_control_stats *out) {
    (void)c;
    *out = (struct wt_control_stats){0};
}

void sim_control_lost(struct sim_process *p) {
    for (struct sim_call *c = p->control ? p->control->first : NULL; c; c = c->next)
        tell(c, 0, NULL);
}

static void control_stopped(void *arg) {
    struct wt_control *c = arg;
    c->stopped(c->stopped_arg);
}

void wt_control_stop(struct wt_control *c, void (*stopped)(void *arg), void *arg) {
    for (struct sim_call *i = c->first; i; i = i->next)
        tell(i, 503, NULL);
    c->stopped = stopped;
    c->stopped_arg = arg;
    sim_loop_post(&c->process->loop, control_stopped, c);
}

void wt_control_free(struct wt_control *c) {
    while (c && c->first) {
        struct sim_call *call = c->first;
        c->first = call->next;
        json_decref(call->call.body);
        free(call);
    }
    free(c);
}

static bool fits(const char *pattern, const char *path, char id[WT_JOB_ID]) {
    const char *hole = strstr(pattern, "{id}");
    size_t before = hole ? (size_t)(hole - pattern) : 0;
    if (!hole)
        return strcmp(pattern, path) == 0;
    if (strncmp(pattern, path, before) != 0)
        return false;
    size_t len = strcspn(path + before, "/");
    if (len == 0 || len >= WT_JOB_ID || strcmp(path + before + len, hole + 4) != 0)
        return false;
    snprintf(id, WT_JOB_ID, "%.*s", (int)len, path + before);
    return true;
}

static void deliver(void *arg) {
    struct sim_call *c = arg;
    const struct wt_control_opts *o = &c->process->control->o;
    if (!c->answered) /* told already: it stops, or has died */
        return;
    for (size_t i = 0; i < o->n_routes; i++) {
        if (strcmp(o->routes[i].method, c->method) != 0 || !fits(o->routes[i].path, c->path, c->id))
            continue;
        c->call.id = c->id;
        o->routes[i].run(o->arg, &c->call);
        return;
    }
    sim_break(c->process->w, "no route for %s %s", c->method, c->path);
}

void sim_call(struct sim_process *p, const char *method, const char *path, json_t *body,
              void (*answered)(void *arg, const struct sim_answer *a), void *arg) {
    struct sim_call *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    *c = (struct sim_call){
        .process = p, .answered = answered, .arg = arg, .next = p->control->first};
    c->call.body = body;
    c->call.priv = c;
    snprintf(c->method, sizeof c->method, "%s", method);
    snprintf(c->path, sizeof c->path, "%s", path);
    p->control->first = c;
    sim_loop_post(&p->loop, deliver, c);
}
