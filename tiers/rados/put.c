/*
 * Writing an object, first half: OPEN (is the name free, is there room?) and WRITE of parts: copied
 * and summed on a worker, then an async write. An object of up to RADOS_INLINE_MAX bytes is only
 * kept: it will be written with its head. commit.c has the second half. Failures: a part that was
 * not written, or may not have been, is removed with the others at the put's end.
 */
#include "tiers/rados/put.h"

#include "tiers/rados/list.h"

#include "core/mem.h"
#include "core/sum.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void rados_put_free(struct rados_client *c, struct rados_put *put) {
    c->putting -= put->base.size;
    wt_put_fini(&put->base);
    free(put->crc);
    free(put->data);
    free(put);
}

void rados_put_undo(struct rados_client *c, struct rados_put *put, struct rados_call *waiter) {
    uint64_t token = put->token;
    uint32_t tried = put->tried;
    char key[WT_KEY_SIZE];
    memcpy(key, put->base.key, sizeof key);
    rados_put_free(c, put);
    rados_sweep_begin(c, key, token, tried, waiter);
}

/* ---- open ---- */

struct open_call {
    struct rados_call call;
    struct rados_fetch fetch;
};

static int put_new(struct wt_req *req, struct rados_put **out) {
    struct rados_put *put = calloc(1, sizeof *put);
    int rc = put ? wt_put_init(&put->base, req->key, req->size, req->flags) : WT_ENOMEM;
    if (rc < 0) {
        free(put);
        return rc;
    }
    put->n_parts = rados_parts_of(req->size);
    if (put->n_parts)
        put->crc = wt_calloc(put->n_parts, sizeof *put->crc);
    else
        put->data = wt_calloc(1, (size_t)req->size + 1);
    if ((put->crc || put->data) &&
        getrandom(&put->token, sizeof put->token, 0) == (ssize_t)sizeof put->token) {
        *out = put;
        return 0;
    }
    rc = put->crc || put->data ? WT_ESYSTEM : WT_ENOMEM;
    wt_put_fini(&put->base);
    free(put->crc);
    free(put->data);
    free(put);
    return rc;
}

static int check_capacity(const struct rados_client *c, const struct wt_req *req,
                          struct wt_err *err) {
    uint64_t capacity = wt_backend_opts(c->tier)->capacity;
    uint64_t taken = c->stored + c->putting;
    if (!capacity || (taken <= capacity && req->size <= capacity - taken))
        return 0;
    return wt_err_set(err, WT_EFULL, "%llu bytes do not fit: %llu of the configured %llu are taken",
                      (unsigned long long)req->size, (unsigned long long)taken,
                      (unsigned long long)capacity);
}

static void open_counted(struct rados_call *call, int rc) {
    struct rados_put *put = NULL;
    if (rc == 0)
        rc = check_capacity(call->client, call->req, &call->req->err);
    if (rc == 0 && call->req->size > (uint64_t)RADOS_PARTS_MAX * RADOS_PART)
        rc = wt_err_set(&call->req->err, WT_ERANGE, "it is larger than 8 TiB");
    if (rc == 0)
        rc = put_new(call->req, &put);
    if (rc == 0) {
        call->client->putting += call->req->size;
        call->req->put = &put->base;
    }
    rados_call_end(call, rc);
}

static void open_now(struct rados_call *call, int rc) {
    if (rc == 0 && wt_backend_opts(call->client->tier)->capacity)
        rados_need_count(call, open_counted);
    else
        open_counted(call, rc);
}

static void open_fetched(struct rados_fetch *f) {
    struct rados_call *call = f->aio.call;
    struct wt_req *req = call->req;
    rados_head_unref(f->head);
    if (f->rc == WT_EMISSING) {
        rados_confirm_pool(call, open_now);
    } else if ((f->rc == 0 || wt_err_blame(f->rc) == WT_BLAME_OBJECT) &&
               (req->flags & WT_PUT_REPLACE)) {
        open_now(call, 0);
    } else if (f->rc == 0) {
        rados_call_end(call, wt_err_set(&req->err, WT_EEXISTS, "it exists already"));
    } else {
        req->err = f->err;
        rados_call_end(call, f->rc);
    }
}

static void open_start(struct rados_call *call) {
    struct open_call *o = (struct open_call *)call;
    size_t len;
    uint64_t token;
    if (rados_name_kind(call->req->key, &len, &token) != RADOS_NAME_HEAD) {
        rados_call_end(call,
                       wt_err_set(&call->req->err, WT_EINVAL,
                                  "names that end in @lock or like a part are reserved here"));
        return;
    }
    o->fetch.done = open_fetched;
    rados_fetch_begin(call->client, &o->fetch, call, call->req->key, 0);
}

void rados_op_put_open(struct wt_tier *tier, struct wt_req *req) {
    rados_call_new(tier, req, sizeof(struct open_call), open_start);
}

/* ---- write ---- */

struct write_call {
    struct rados_call call;
    struct rados_aio aio;
    struct wt_job job; /* copies and sums */
    rados_write_op_t op;
    uint32_t n, crc;
};

static struct write_call *of_job(struct wt_job *job) {
    return (struct write_call *)((char *)job - offsetof(struct write_call, job));
}

static struct write_call *of_aio(struct rados_aio *aio) {
    return (struct write_call *)((char *)aio - offsetof(struct write_call, aio));
}

static void copy_run(struct wt_job *job) {
    struct write_call *w = of_job(job);
    const struct wt_req *req = w->call.req;
    w->crc = wt_crc32c(0, req->src, req->len);
    w->op = rados_create_write_op();
    if (w->op)
        rados_write_op_write_full(w->op, req->src, req->len);
}

static void copy_done(struct wt_job *job) {
    struct write_call *w = of_job(job);
    const struct rados_put *put = (struct rados_put *)w->call.req->put;
    char oid[RADOS_OID_SIZE];
    rados_part_name(oid, put->base.key, put->token, w->n);
    rados_aio_fly_write_op(&w->aio, w->op, oid);
}

/* The pool closes after the last request: no job is ever left to itself. */
static void copy_discard(struct wt_job *job) {
    (void)job;
}

static void write_go(struct rados_aio *aio) {
    struct write_call *w = of_aio(aio);
    struct rados_put *put = (struct rados_put *)w->call.req->put;
    if (put->tried <= w->n)
        put->tried = w->n + 1;
    w->job = (struct wt_job){.run = copy_run, .done = copy_done, .discard = copy_discard};
    if (wt_pool_submit(aio->client->writers, &w->job, &w->call.req->err) < 0)
        rados_aio_fail(aio, -EAGAIN);
}

static void write_end(struct rados_aio *aio) {
    struct write_call *w = of_aio(aio);
    struct rados_put *put = (struct rados_put *)w->call.req->put;
    if (aio->rc == 0)
        put->crc[w->n] = w->crc;
    if (aio->rc != -ENOENT) {
        char what[WT_KEY_SIZE + 32];
        snprintf(what, sizeof what, "%s: writing part %u", put->base.key, w->n);
        rados_call_end_rados(&w->call, aio->rc, what);
        return;
    }
    /* Writing creates: only the pool can be missing. */
    rados_call_end(&w->call, wt_err_set(&w->call.req->err, WT_EDOWN, "pool \"%s\" is gone",
                                        w->call.client->url.pool));
}

static void write_start(struct rados_call *call) {
    struct write_call *w = (struct write_call *)call;
    struct wt_req *req = call->req;
    struct rados_put *put = (struct rados_put *)req->put;
    if (put->data) {
        memcpy(put->data + req->off, req->src, req->len);
        rados_call_end(call, 0);
        return;
    }
    w->n = (uint32_t)(req->off / RADOS_PART);
    w->aio = (struct rados_aio){.call = call, .go = write_go, .end = write_end, .bytes = req->len};
    rados_aio_begin(call->client, &w->aio);
}

void rados_op_put_write(struct wt_tier *tier, struct wt_req *req) {
    rados_call_new(tier, req, sizeof(struct write_call), write_start);
}
