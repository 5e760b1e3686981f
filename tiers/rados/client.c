/*
 * The client: its connection, and the requests that wait for it.
 *
 * States: OFF -> CONNECTING (a worker; requests wait) -> ON -> DRAINING (all in flight is canceled)
 * -> OFF. Happy path: open starts to connect; when that is done the waiting requests begin.
 * Failures: nobody answers: they end with WT_EDOWN and the tier is down; each of the core's probes
 * then tries again. The pool is gone or the client is blocklisted: DRAINING, then down in the same
 * way. Close: what goes on behind the scenes has two seconds, then it is canceled; when nothing
 * flies the connection goes to a worker that shuts it down, then the pools close, then our handles.
 */
#include "tiers/rados/client.h"

#include "tiers/rados/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD_CACHE_BYTES = 4 << 20,
    BLOCKING_WORKERS = 4,
    WRITE_WORKERS = 2,
    CLOSE_GRACE_MS = 2000,
};

static void wait_in(struct call_list *list, struct rados_call *call) {
    call->next = NULL;
    call->prev = list->last;
    *(list->last ? &list->last->next : &list->first) = call;
    list->last = call;
    call->waits_in = list;
}

static void wait_no_more(struct rados_call *call) {
    struct call_list *list = call->waits_in;
    *(call->prev ? &call->prev->next : &list->first) = call->next;
    *(call->next ? &call->next->prev : &list->last) = call->prev;
    call->next = call->prev = NULL;
    call->waits_in = NULL;
}

static struct rados_call *next_of(struct call_list *list) {
    struct rados_call *call = list->first;
    if (call)
        wait_no_more(call);
    return call;
}

void rados_wait_count(struct rados_call *call, void (*then)(struct rados_call *call, int rc)) {
    call->then = then;
    wait_in(&call->client->wait_count, call);
}

struct rados_call *rados_waiting_count(struct rados_client *c) {
    return next_of(&c->wait_count);
}

/* ---- calls ---- */

static void connect_now(struct rados_client *c);

void rados_call_route(struct rados_call *call) {
    struct rados_client *c = call->client;
    if (c->state == RADOS_ON) {
        call->start(call);
        return;
    }
    if (c->state == RADOS_OFF && call->req->op == WT_OP_PROBE)
        connect_now(c);
    if (c->state != RADOS_CONNECTING) {
        rados_call_end(call, wt_err_set(&call->req->err, WT_EDOWN, "there is no connection"));
        return;
    }
    wait_in(&c->wait_conn, call);
}

struct rados_call *rados_call_make(struct wt_tier *tier, struct wt_req *req, size_t size,
                                   void (*start)(struct rados_call *call)) {
    struct rados_call *call = calloc(1, size);
    if (!call) {
        req->rc = WT_ENOMEM;
        wt_req_later(req);
        return NULL;
    }
    call->client = wt_backend_state(tier);
    call->req = req;
    call->start = start;
    req->priv[0] = call;
    return call;
}

void rados_call_new(struct wt_tier *tier, struct wt_req *req, size_t size,
                    void (*start)(struct rados_call *call)) {
    struct rados_call *call = rados_call_make(tier, req, size, start);
    if (call)
        rados_call_route(call);
}

void rados_call_end(struct rados_call *call, int rc) {
    struct wt_req *req = call->req;
    req->rc = rc;
    req->priv[0] = NULL;
    if (call->release)
        call->release(call);
    free(call);
    wt_req_later(req);
}

void rados_call_end_rados(struct rados_call *call, int rc, const char *what) {
    if (rc == -ECANCELED && !call->canceled)
        rc = wt_err_set(&call->req->err, WT_EDOWN, "%s: the connection was given up", what);
    else if (rc < 0)
        rc = rados_error(&call->req->err, rc, what);
    rados_call_end(call, rc < 0 ? rc : 0);
}

void rados_call_cancel(struct wt_tier *tier, struct wt_req *req) {
    struct rados_call *call = req->priv[0];
    struct rados_client *c = wt_backend_state(tier);
    call->canceled = true;
    if (call->waits_in) {
        wait_no_more(call);
        rados_call_end(call, WT_ECANCELED);
        return;
    }
    rados_aio_stop_all(c, call);
    if (call->cancel)
        call->cancel(call);
}

/* ---- connecting ---- */

struct connect_job {
    struct wt_job job;
    struct rados_client *client; /* on the loop only */
    struct rados_url url;
    struct rados_conn *conn;
    int rc;
    struct wt_err err;
};

static void connect_run(struct wt_job *job) {
    struct connect_job *j = (struct connect_job *)job;
    j->rc = rados_conn_open(&j->url, 0, &j->conn, &j->err);
}

static void connect_discard(struct wt_job *job) {
    struct connect_job *j = (struct connect_job *)job;
    rados_conn_unref(j->conn);
    free(j);
}

static void connected(struct rados_client *c, struct rados_conn *conn) {
    c->state = RADOS_ON;
    c->conn = conn;
    struct rados_call *call;
    while ((call = next_of(&c->wait_conn)))
        call->start(call);
}

static void not_connected(struct rados_client *c, const struct wt_err *why) {
    struct rados_call *call;
    c->state = RADOS_OFF;
    while ((call = next_of(&c->wait_conn))) {
        call->req->err = *why;
        rados_call_end(call, WT_EDOWN);
    }
    if (!c->closing)
        wt_backend_down(c->tier, why);
}

static void drop_conn(struct rados_client *c, struct rados_conn *conn);

static void connect_done(struct wt_job *job) {
    struct connect_job *j = (struct connect_job *)job;
    struct rados_client *c = j->client;
    if (j->rc < 0 || c->closing) {
        if (j->conn)
            drop_conn(c, j->conn);
        not_connected(c, &j->err);
    } else {
        connected(c, j->conn);
    }
    free(j);
    rados_client_step(c);
}

static void connect_now(struct rados_client *c) {
    struct wt_err err = {0};
    struct connect_job *j = calloc(1, sizeof *j);
    int rc = j ? 0 : wt_err_set(&err, WT_ENOMEM, "out of memory for a connection");
    if (j) {
        j->job =
            (struct wt_job){.run = connect_run, .done = connect_done, .discard = connect_discard};
        j->client = c;
        j->url = c->url;
        rc = wt_pool_submit(c->pool, &j->job, &err);
    }
    if (rc == 0) {
        c->state = RADOS_CONNECTING;
    } else {
        free(j);
        wt_backend_down(c->tier, &err);
    }
}

/* ---- letting go of a connection: it blocks, so a worker does it ---- */

struct drop_job {
    struct wt_job job;
    struct rados_conn *conn;
};

static void drop_run(struct wt_job *job) {
    struct drop_job *j = (struct drop_job *)job;
    rados_conn_unref(j->conn);
}

static void drop_free(struct wt_job *job) {
    free(job);
}

static void drop_conn(struct rados_client *c, struct rados_conn *conn) {
    struct drop_job *j = calloc(1, sizeof *j);
    struct wt_err err;
    if (j) {
        j->job = (struct wt_job){.run = drop_run, .done = drop_free, .discard = drop_free};
        j->conn = conn;
        if (wt_pool_submit(c->pool, &j->job, &err) == 0)
            return;
        free(j);
    }
    wt_log(c->log, WT_LOG_WARN, "tier %s: no thread to end a connection: it stays open",
           wt_tier_name(c->tier));
}

void rados_client_lost(struct rados_client *c, const struct wt_err *why) {
    if (c->state != RADOS_ON)
        return;
    c->state = RADOS_DRAINING;
    rados_aio_stop_all(c, NULL);
    if (!c->closing)
        wt_backend_down(c->tier, why);
}

/* ---- is the pool still there? ---- */

struct pool_job {
    struct wt_job job;
    struct rados_client *client; /* on the loop only */
    struct rados_conn *conn;
    struct rados_url url;
    int rc;
    struct wt_err err;
};

static void pool_run(struct wt_job *job) {
    struct pool_job *j = (struct pool_job *)job;
    j->rc = rados_conn_check_pool(j->conn, &j->url, &j->err);
    rados_conn_unref(j->conn);
}

static void tell_pool(struct rados_client *c, int rc, const struct wt_err *err) {
    struct rados_call *call;
    while ((call = next_of(&c->wait_pool))) {
        if (rc < 0)
            call->req->err = *err;
        call->then(call, rc);
    }
}

static void pool_done(struct wt_job *job) {
    struct pool_job *j = (struct pool_job *)job;
    struct rados_client *c = j->client;
    c->checking_pool = false;
    if (j->rc == WT_EDOWN)
        rados_client_lost(c, &j->err);
    tell_pool(c, j->rc, &j->err);
    free(j);
    rados_client_step(c);
}

static int check_pool(struct rados_client *c, struct wt_err *err) {
    struct pool_job *j = calloc(1, sizeof *j);
    if (!j)
        return wt_err_set(err, WT_ENOMEM, "out of memory to ask for the pool");
    j->job = (struct wt_job){.run = pool_run, .done = pool_done, .discard = drop_free};
    j->client = c;
    j->conn = c->conn;
    j->url = c->url;
    rados_conn_ref(j->conn);
    int rc = wt_pool_submit(c->pool, &j->job, err);
    c->checking_pool = rc == 0;
    if (rc < 0) {
        atomic_fetch_sub(&j->conn->refs, 1); /* the client has one as well */
        free(j);
    }
    return rc;
}

void rados_confirm_pool(struct rados_call *call, void (*then)(struct rados_call *call, int rc)) {
    struct rados_client *c = call->client;
    int rc = 0;
    if (call->canceled) {
        rados_call_end(call, WT_ECANCELED);
        return;
    }
    if (c->state != RADOS_ON)
        rc = wt_err_set(&call->req->err, WT_EDOWN, "the connection was given up");
    else if (!c->checking_pool)
        rc = check_pool(c, &call->req->err);
    if (rc < 0 || !c->checking_pool) {
        then(call, rc);
        return;
    }
    call->then = then;
    wait_in(&c->wait_pool, call);
}

/* ---- open, step, close ---- */

static void on_handle_closed(uv_handle_t *handle) {
    struct rados_client *c = handle->data;
    struct wt_tier *tier = c->tier;
    if (--c->handles)
        return;
    rados_cache_free(c->cache);
    pthread_mutex_destroy(&c->lock);
    free(c);
    if (tier)
        wt_backend_closed(tier);
}

static void close_handles(struct rados_client *c) {
    uv_close((uv_handle_t *)&c->async, on_handle_closed);
    uv_close((uv_handle_t *)&c->grace, on_handle_closed);
}

static void on_pool_closed(void *arg) {
    struct rados_client *c = arg;
    if (--c->pools_open == 0)
        close_handles(c);
}

/* The client goes with the last of what it opened. */
static void close_all(struct rados_client *c) {
    c->gone = true;
    if (!c->pools_open)
        close_handles(c);
    if (c->writers)
        wt_pool_close(c->writers, on_pool_closed, c);
    if (c->pool)
        wt_pool_close(c->pool, on_pool_closed, c);
}

static void on_stuck(void *arg, int delta) {
    struct rados_client *c = arg;
    if (!c->closing)
        wt_backend_stuck(c->tier, delta);
}

static int make_pools(struct rados_client *c, struct wt_err *err) {
    uv_loop_t *loop = wt_backend_loop(c->tier);
    struct wt_pool_opts blocking = {BLOCKING_WORKERS, WT_STUCK_MAX, on_stuck, c};
    struct wt_pool_opts writing = {WRITE_WORKERS, 0, NULL, NULL};
    int rc = wt_pool_new(loop, &blocking, &c->pool, err);
    c->pools_open += rc == 0;
    if (rc == 0) {
        rc = wt_pool_new(loop, &writing, &c->writers, err);
        c->pools_open += rc == 0;
    }
    return rc;
}

static int make_client(struct wt_tier *tier, const struct rados_url *url, struct rados_client **out,
                       struct wt_err *err) {
    struct rados_client *c = calloc(1, sizeof *c);
    struct rados_cache *cache = c ? rados_cache_new(HEAD_CACHE_BYTES) : NULL;
    int rc =
        cache ? uv_async_init(wt_backend_loop(tier), &c->async, rados_aio_on_async) : UV_ENOMEM;
    if (rc < 0) {
        rados_cache_free(cache);
        free(c);
        return wt_err_sys(err, -rc, "no client can be made");
    }
    uv_timer_init(wt_backend_loop(tier), &c->grace);
    c->async.data = c->grace.data = c;
    c->handles = 2;
    c->tier = tier;
    c->url = *url;
    c->log = wt_backend_log(tier);
    c->cache = cache;
    pthread_mutex_init(&c->lock, NULL);
    *out = c;
    return 0;
}

int rados_client_open(struct wt_tier *tier, const struct rados_url *url, struct wt_err *err) {
    struct rados_client *c = NULL;
    int rc = make_client(tier, url, &c, err);
    if (rc < 0)
        return rc;
    rc = make_pools(c, err);
    if (rc < 0) {
        c->tier = NULL; /* there will be none to tell of the close */
        close_all(c);
        return rc;
    }
    wt_backend_set(tier, c);
    connect_now(c);
    return 0;
}

void rados_client_step(struct rados_client *c) {
    if (c->n_flying || c->waiting.first)
        return;
    if (c->conn && (c->state == RADOS_DRAINING || c->closing)) {
        drop_conn(c, c->conn);
        c->conn = NULL;
        rados_cache_clear(c->cache);
        c->state = RADOS_OFF;
    }
    if (c->closing && !c->gone)
        close_all(c);
}

static void on_grace(uv_timer_t *timer) {
    struct rados_client *c = timer->data;
    c->stopping = true;
    rados_aio_stop_all(c, NULL);
}

void rados_client_close(struct wt_tier *tier) {
    struct rados_client *c = wt_backend_state(tier);
    c->closing = true;
    rados_locks_let_go(c);
    uv_timer_start(&c->grace, on_grace, CLOSE_GRACE_MS, 0);
    rados_client_step(c);
}
