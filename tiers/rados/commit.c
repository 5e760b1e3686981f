/*
 * Writing an object, second half: COMMIT (parts are there -> the head, created exclusively, makes
 * the object visible) or ABORT (parts are removed). Replacing writes the head anew, atomically,
 * then removes the old parts.
 *
 * Failures: a commit that is refused removes the parts, then ends. Parts that someone took away
 * meanwhile refuse it. One whose outcome is unknown (canceled, connection lost) is settled behind
 * the scenes: RADOS keeps the order of one client's ops on one object, so a read of the head after
 * it tells whether it came in; only if not are the parts removed: never a head without parts.
 */
#include "tiers/rados/put.h"

#include "core/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 16 };

struct end_call;

struct check_lane {
    struct rados_aio aio;
    uint32_t part;
    uint64_t size;
};

struct end_call {
    struct rados_call call;
    struct rados_put *put; /* until its parts are someone else's */
    struct rados_aio aio;
    struct rados_fetch fetch; /* of what is replaced */
    struct rados_head *old;
    struct check_lane lanes[LANES];
    uint32_t next_check, checking;
    int check_rc; /* librados' */
};

/* ---- settling a commit of unknown outcome ---- */

struct settle {
    struct rados_fetch fetch;
    struct rados_put *put;
};

static void settled(struct rados_fetch *f) {
    struct settle *s = (struct settle *)f;
    struct rados_client *c = f->aio.client;
    bool ours = f->rc == 0 && f->head->token == s->put->token;
    bool not_there = f->rc == WT_EMISSING || (f->rc == 0 && !ours);
    if (ours)
        c->stored += s->put->base.size;
    rados_head_unref(f->head);
    if (not_there)
        rados_put_undo(c, s->put, NULL);
    else
        rados_put_free(c, s->put);
    free(s);
}

static void settle(struct rados_client *c, struct rados_put *put) {
    struct settle *s = calloc(1, sizeof *s);
    if (!s) {
        rados_put_free(c, put);
        return;
    }
    s->put = put;
    s->fetch.done = settled;
    rados_fetch_begin(c, &s->fetch, NULL, put->base.key, LIBRADOS_OPERATION_ORDER_READS_WRITES);
}

/* ---- both: they end the put, also where they cannot begin ---- */

static void end_release(struct rados_call *call) {
    struct end_call *e = (struct end_call *)call;
    rados_head_unref(e->old);
    if (e->put)
        rados_put_undo(call->client, e->put, NULL);
}

static void end_put(struct wt_tier *tier, struct wt_req *req,
                    void (*start)(struct rados_call *call)) {
    struct end_call *e = (struct end_call *)rados_call_make(tier, req, sizeof *e, start);
    if (!e) {
        rados_put_drop(tier, req->put);
        return;
    }
    e->put = (struct rados_put *)req->put;
    e->call.release = end_release;
    rados_call_route(&e->call);
}

static struct rados_put *take_put(struct end_call *e) {
    struct rados_put *put = e->put;
    e->put = NULL;
    return put;
}

static void undo_cancel(struct rados_call *call) {
    rados_sweep_forget(call->client, call);
    rados_call_end(call, call->rc < 0 ? call->rc : WT_ECANCELED);
}

/* Nothing came of it: the parts go, then the call ends with rc. */
static void undo(struct end_call *e, int rc) {
    struct rados_call *call = &e->call;
    call->rc = rc;
    if (call->canceled) {
        rados_call_end(call, rc < 0 ? rc : WT_ECANCELED);
        return;
    }
    call->cancel = undo_cancel;
    rados_put_undo(call->client, take_put(e), call);
}

/* ---- commit ---- */

static int name_key(struct end_call *e, int rc) {
    wt_err_wrap(&e->call.req->err, "%s", e->put->base.key);
    return rc;
}

static void committed_cancel(struct rados_call *call) {
    rados_sweep_forget(call->client, call);
    rados_call_end(call, 0);
}

/* It ends when what it replaced is gone: then nobody reads that any more, from a cached head
 * either. */
static void committed(struct end_call *e) {
    struct rados_call *call = &e->call;
    struct rados_client *c = call->client;
    struct rados_put *put = take_put(e);
    const struct rados_head *old = e->old;
    char key[WT_KEY_SIZE];
    memcpy(key, put->base.key, sizeof key);
    c->stored += put->base.size;
    rados_put_free(c, put);
    if (!old) {
        rados_call_end(call, 0);
        return;
    }
    c->stored -= old->size < c->stored ? old->size : c->stored;
    call->cancel = committed_cancel;
    bool waits = !call->canceled;
    rados_sweep_begin(c, key, old->token, old->n_parts, waits ? call : NULL);
    if (!waits)
        rados_call_end(call, 0);
}

static bool is_refusal(int rc) {
    return rc == -EEXIST || rc == -EDQUOT || rc == -ENOSPC || rc == -EPERM || rc == -EACCES;
}

static void head_written(struct rados_aio *aio) {
    struct end_call *e = (struct end_call *)aio->call;
    struct rados_client *c = e->call.client;
    char what[WT_KEY_SIZE + 32];
    snprintf(what, sizeof what, "%s: writing its head", e->put->base.key);
    rados_cache_drop(c->cache, e->put->base.key);
    if (aio->rc == 0) {
        committed(e);
    } else if (is_refusal(aio->rc)) {
        undo(e, rados_error(&e->call.req->err, aio->rc, what));
    } else {
        settle(c, take_put(e));
        /* Writing creates: only the pool can be missing. */
        rados_call_end_rados(&e->call, aio->rc == -ENOENT ? -ENOTCONN : aio->rc, what);
    }
}

static rados_write_op_t head_op(const struct rados_put *put) {
    struct wt_bytes bytes = {0};
    bool replace = (put->base.flags & WT_PUT_REPLACE) != 0;
    unsigned flags = (put->data ? RADOS_HEAD_INLINE : 0u) | (replace ? RADOS_HEAD_REPLACEABLE : 0u);
    struct rados_head head = {.flags = flags,
                              .size = put->base.size,
                              .token = put->token,
                              .n_parts = put->n_parts,
                              .crc = put->crc,
                              .data = put->data};
    rados_write_op_t op = NULL;
    if (rados_head_encode(&head, &bytes) == 0)
        op = rados_create_write_op();
    if (op && !replace)
        rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
    if (op)
        rados_write_op_write_full(op, (const char *)bytes.data, bytes.len);
    wt_bytes_free(&bytes);
    return op;
}

static void head_go(struct rados_aio *aio) {
    const struct end_call *e = (struct end_call *)aio->call;
    rados_aio_fly_write_op(aio, head_op(e->put), e->put->base.key);
}

static void write_head(struct end_call *e) {
    e->aio = (struct rados_aio){.call = &e->call, .go = head_go, .end = head_written};
    rados_aio_begin(e->call.client, &e->aio);
}

static void old_fetched(struct rados_fetch *f) {
    struct end_call *e = (struct end_call *)f->aio.call;
    e->old = f->head;
    if (f->rc == 0 || wt_err_blame(f->rc) == WT_BLAME_OBJECT) {
        write_head(e);
        return;
    }
    e->call.req->err = f->err;
    undo(e, name_key(e, f->rc));
}

static void parts_are_there(struct end_call *e) {
    if (e->put->base.flags & WT_PUT_REPLACE) {
        e->fetch.done = old_fetched;
        rados_fetch_begin(e->call.client, &e->fetch, &e->call, e->put->base.key, 0);
    } else {
        write_head(e);
    }
}

/* ---- commit: are all parts there? ---- */

static void lane_go(struct rados_aio *aio) {
    struct check_lane *lane = (struct check_lane *)aio;
    const struct end_call *e = (struct end_call *)aio->call;
    char oid[RADOS_OID_SIZE];
    rados_part_name(oid, e->put->base.key, e->put->token, lane->part);
    rados_aio_fly_stat(aio, oid, &lane->size);
}

static void lane_next(struct end_call *e, struct check_lane *lane) {
    lane->part = e->next_check++;
    e->checking++;
    rados_aio_begin(e->call.client, &lane->aio);
}

static void parts_checked(struct end_call *e) {
    struct wt_err *err = &e->call.req->err;
    if (e->check_rc == 0) {
        parts_are_there(e);
    } else if (e->check_rc == -ENOENT) {
        undo(e, wt_err_set(err, WT_ECHANGED, "%s: someone removed parts of it before its commit",
                           e->put->base.key));
    } else if (e->check_rc == -ECANCELED && !e->call.canceled) {
        rados_call_end(&e->call, wt_err_set(err, WT_EDOWN, "%s: the connection was given up",
                                            e->put->base.key));
    } else {
        undo(e, name_key(e, rados_error(err, e->check_rc, "checking its parts")));
    }
}

static void lane_end(struct rados_aio *aio) {
    struct check_lane *lane = (struct check_lane *)aio;
    struct end_call *e = (struct end_call *)aio->call;
    e->checking--;
    int rc = aio->rc;
    if (rc == 0 && lane->size != rados_part_length(e->put->base.size, lane->part))
        rc = -ENOENT;
    if (rc < 0 && e->check_rc == 0)
        e->check_rc = rc;
    if (e->check_rc == 0 && e->next_check < e->put->n_parts)
        lane_next(e, lane);
    else if (e->checking == 0)
        parts_checked(e);
}

static void commit_start(struct rados_call *call) {
    struct end_call *e = (struct end_call *)call;
    int rc = wt_put_check(&e->put->base, &call->req->err);
    if (rc < 0) {
        undo(e, name_key(e, rc));
        return;
    }
    if (e->put->n_parts == 0) {
        parts_are_there(e);
        return;
    }
    for (uint32_t i = 0, n = e->put->n_parts; i < LANES && i < n; i++) {
        e->lanes[i].aio = (struct rados_aio){.call = call, .go = lane_go, .end = lane_end};
        lane_next(e, &e->lanes[i]);
    }
}

void rados_op_put_commit(struct wt_tier *tier, struct wt_req *req) {
    end_put(tier, req, commit_start);
}

/* ---- abort ---- */

static void abort_start(struct rados_call *call) {
    undo((struct end_call *)call, 0);
}

void rados_op_put_abort(struct wt_tier *tier, struct wt_req *req) {
    end_put(tier, req, abort_start);
}

void rados_put_drop(struct wt_tier *tier, struct wt_put *put) {
    rados_put_undo(wt_backend_state(tier), (struct rados_put *)put, NULL);
}
