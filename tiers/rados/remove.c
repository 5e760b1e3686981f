/*
 * REMOVE: the head is read (which parts are there?), removed (nobody finds the object any more),
 * then its parts; the request ends after the last of them. Readers under way find parts missing and
 * read the head again. A head that cannot be understood is removed all the same; its parts are then
 * gc's. The name of a single part, as LIST shows orphans, removes that. Failures: canceled after
 * the head is gone: the parts are still removed behind the scenes.
 */
#include "tiers/rados/internal.h"

#include <errno.h>

struct remove_call {
    struct rados_call call;
    struct rados_aio aio;
    struct rados_fetch fetch;
    struct rados_head *head;
};

static void remove_release(struct rados_call *call) {
    rados_head_unref(((struct remove_call *)call)->head);
}

static void missing(struct rados_call *call, int rc) {
    if (rc == 0)
        rc = wt_err_set(&call->req->err, WT_EMISSING, "there is no such object");
    rados_call_end(call, rc);
}

static void sweep_cancel(struct rados_call *call) {
    rados_sweep_forget(call->client, call);
    rados_call_end(call, WT_ECANCELED);
}

static void remove_parts(struct rados_call *call, const struct rados_head *head) {
    struct rados_client *c = call->client;
    bool waits = !call->canceled;
    call->cancel = sweep_cancel;
    rados_sweep_begin(c, call->req->key, head->token, head->n_parts, waits ? call : NULL);
    if (!waits)
        rados_call_end(call, WT_ECANCELED);
}

static void removed(struct rados_aio *aio) {
    struct rados_call *call = aio->call;
    struct rados_client *c = call->client;
    const struct rados_head *head = ((struct remove_call *)call)->head;
    rados_cache_drop(c->cache, call->req->key);
    if (aio->rc == -ENOENT) {
        rados_confirm_pool(call, missing);
    } else if (aio->rc < 0) {
        rados_call_end_rados(call, aio->rc, "removing it");
    } else if (!head) {
        rados_call_end(call, 0);
    } else {
        c->stored -= head->size < c->stored ? head->size : c->stored;
        remove_parts(call, head);
    }
}

static void remove_go(struct rados_aio *aio) {
    rados_aio_fly_write_op(aio, rados_remove_op(), aio->call->req->key);
}

static void remove_now(struct remove_call *r) {
    r->aio = (struct rados_aio){.call = &r->call, .go = remove_go, .end = removed};
    rados_aio_begin(r->call.client, &r->aio);
}

static void fetched(struct rados_fetch *f) {
    struct remove_call *r = (struct remove_call *)f->aio.call;
    r->head = f->head;
    if (f->rc == WT_EMISSING) {
        rados_confirm_pool(&r->call, missing);
    } else if (f->rc == 0 || f->rc == WT_ECORRUPT) {
        remove_now(r);
    } else {
        r->call.req->err = f->err;
        rados_call_end(&r->call, f->rc);
    }
}

static void remove_start(struct rados_call *call) {
    struct remove_call *r = (struct remove_call *)call;
    size_t len;
    uint64_t token;
    call->release = remove_release;
    if (rados_name_kind(call->req->key, &len, &token) != RADOS_NAME_HEAD) {
        remove_now(r);
        return;
    }
    r->fetch.done = fetched;
    rados_fetch_begin(call->client, &r->fetch, call, call->req->key, 0);
}

void rados_op_remove(struct wt_tier *tier, struct wt_req *req) {
    rados_call_new(tier, req, sizeof(struct remove_call), remove_start);
}
