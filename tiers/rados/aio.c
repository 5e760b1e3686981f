/*
 * librados operations, and their way back to the loop.
 *
 * Happy path: begin -> room -> go() -> librados -> its callback on a thread of its own: check(),
 * then the list of ended ones -> uv_async -> end() on the loop. Failures: an op that cannot be
 * submitted, or is stopped while it waits, takes the same way back. Stopping one that flies is
 * rados_aio_cancel: its callback still comes, and only that ends it, because until then librados
 * may write to its buffer.
 */
#include "tiers/rados/internal.h"

#include <errno.h>

enum {
    FLY_BYTES = 128 << 20, /* librados holds a copy of each of them */
    FLY_OPS = 256,
};

static void add(struct aio_list *list, struct rados_aio *aio) {
    aio->next = NULL;
    aio->prev = list->last;
    *(list->last ? &list->last->next : &list->first) = aio;
    list->last = aio;
}

static void take(struct aio_list *list, struct rados_aio *aio) {
    *(aio->prev ? &aio->prev->next : &list->first) = aio->next;
    *(aio->next ? &aio->next->prev : &list->last) = aio->prev;
    aio->next = aio->prev = NULL;
}

/* ---- begin ---- */

/* Heads, probes and locks (bytes 0) never wait behind data. */
static bool room(const struct rados_client *c, uint64_t bytes) {
    if (bytes == 0 || c->n_flying == 0)
        return true;
    return c->n_flying < FLY_OPS && c->flying_bytes + bytes <= FLY_BYTES;
}

static void go(struct rados_aio *aio) {
    struct rados_client *c = aio->client;
    aio->place = RADOS_AIO_PREPARES;
    add(&c->flying, aio);
    c->n_flying++;
    c->flying_bytes += aio->bytes;
    aio->go(aio);
}

void rados_aio_begin(struct rados_client *c, struct rados_aio *aio) {
    aio->client = c;
    aio->completion = NULL;
    aio->read_op = NULL;
    aio->write_op = NULL;
    aio->rc = 0;
    aio->canceled = false;
    bool on = c->state == RADOS_ON && !c->stopping;
    if (on && (!aio->bytes || (!c->waiting.first && room(c, aio->bytes)))) {
        go(aio);
        return;
    }
    aio->place = RADOS_AIO_WAITS;
    add(&c->waiting, aio);
    if (!on)
        rados_aio_fail(aio, -ECANCELED);
}

static void start_waiting(struct rados_client *c) {
    struct rados_aio *aio;
    while ((aio = c->waiting.first) && room(c, aio->bytes)) {
        take(&c->waiting, aio);
        go(aio);
    }
}

/* ---- the way back ---- */

/* Any thread. Sends inside the lock: when the loop has seen the last aio, nobody uses the handle
 * any more. */
static void push_ended(struct rados_aio *aio) {
    struct rados_client *c = aio->client;
    pthread_mutex_lock(&c->lock);
    aio->ended_next = NULL;
    *(c->ended_last ? &c->ended_last->ended_next : &c->ended_first) = aio;
    c->ended_last = aio;
    uv_async_send(&c->async);
    pthread_mutex_unlock(&c->lock);
}

void rados_aio_fail(struct rados_aio *aio, int rc) {
    struct rados_client *c = aio->client;
    if (aio->place == RADOS_AIO_WAITS) { /* so that all that end leave the same list */
        take(&c->waiting, aio);
        add(&c->flying, aio);
        c->n_flying++;
        c->flying_bytes += aio->bytes;
    }
    aio->place = RADOS_AIO_ENDED;
    aio->rc = rc;
    push_ended(aio);
}

static void on_complete(rados_completion_t completion, void *arg) {
    struct rados_aio *aio = arg;
    atomic_load_explicit(&aio->given, memory_order_acquire);
    aio->rc = rados_aio_get_return_value(completion);
    if (aio->rc >= 0 && aio->check)
        aio->check(aio);
    push_ended(aio);
}

static struct rados_aio *pop_all(struct rados_client *c) {
    pthread_mutex_lock(&c->lock);
    struct rados_aio *first = c->ended_first;
    c->ended_first = c->ended_last = NULL;
    pthread_mutex_unlock(&c->lock);
    return first;
}

static void land(struct rados_aio *aio) {
    struct rados_client *c = aio->client;
    take(&c->flying, aio);
    c->n_flying--;
    c->flying_bytes -= aio->bytes;
    aio->place = RADOS_AIO_IDLE;
    if (aio->completion)
        rados_aio_release(aio->completion);
    if (aio->read_op)
        rados_release_read_op(aio->read_op);
    if (aio->write_op)
        rados_release_write_op(aio->write_op);
}

void rados_aio_on_async(uv_async_t *async) {
    struct rados_client *c = async->data;
    struct rados_aio *next;
    for (struct rados_aio *aio = pop_all(c); aio; aio = next) {
        next = aio->ended_next;
        land(aio);
        if (aio->rc == -ESHUTDOWN) {
            struct wt_err why;
            rados_error(&why, aio->rc, "an operation");
            rados_client_lost(c, &why);
        }
        aio->end(aio);
    }
    start_waiting(c);
    rados_client_step(c);
}

/* ---- into librados ---- */

static bool ready(struct rados_aio *aio) {
    if (aio->canceled) {
        rados_aio_fail(aio, -ECANCELED);
        return false;
    }
    int rc = rados_aio_create_completion2(aio, on_complete, &aio->completion);
    if (rc < 0) {
        aio->completion = NULL;
        rados_aio_fail(aio, rc);
        return false;
    }
    aio->place = RADOS_AIO_FLIES;
    atomic_store_explicit(&aio->given, true, memory_order_release);
    return true;
}

static void submitted(struct rados_aio *aio, int rc) {
    if (rc < 0)
        rados_aio_fail(aio, rc);
}

void rados_aio_fly_read(struct rados_aio *aio, const char *oid, void *buf, size_t len,
                        uint64_t off) {
    if (ready(aio))
        submitted(aio, rados_aio_read(aio->client->conn->io, oid, aio->completion, buf, len, off));
}

void rados_aio_fly_stat(struct rados_aio *aio, const char *oid, uint64_t *size) {
    if (ready(aio))
        submitted(aio, rados_aio_stat(aio->client->conn->io, oid, aio->completion, size, NULL));
}

void rados_aio_fly_read_op(struct rados_aio *aio, rados_read_op_t op, const char *oid, int flags) {
    aio->read_op = op;
    if (!op)
        rados_aio_fail(aio, -ENOMEM);
    else if (ready(aio))
        submitted(
            aio, rados_aio_read_op_operate(op, aio->client->conn->io, aio->completion, oid, flags));
}

void rados_aio_fly_write_op(struct rados_aio *aio, rados_write_op_t op, const char *oid) {
    aio->write_op = op;
    if (!op)
        rados_aio_fail(aio, -ENOMEM);
    else if (ready(aio)) /* without FULL_TRY a full pool holds a write for ever */
        submitted(aio, rados_aio_write_op_operate(op, aio->client->conn->io, aio->completion, oid,
                                                  NULL, LIBRADOS_OPERATION_FULL_TRY));
}

/* ---- stopping ---- */

void rados_aio_stop(struct rados_aio *aio) {
    if (aio->canceled)
        return;
    aio->canceled = true;
    if (aio->place == RADOS_AIO_WAITS)
        rados_aio_fail(aio, -ECANCELED);
    else if (aio->place == RADOS_AIO_FLIES)
        rados_aio_cancel(aio->client->conn->io, aio->completion);
}

static void stop_in(struct aio_list *list, const struct rados_call *call) {
    struct rados_aio *next;
    for (struct rados_aio *aio = list->first; aio; aio = next) {
        next = aio->next;
        if (!call || aio->call == call)
            rados_aio_stop(aio);
    }
}

void rados_aio_stop_all(struct rados_client *c, const struct rados_call *call) {
    stop_in(&c->flying, call);
    stop_in(&c->waiting, call);
}
