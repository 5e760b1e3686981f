/*
 * LOCK and UNLOCK on the object "KEY@lock", by the OSD's own lock class: exclusive, with an expiry
 * by the OSD's clock; the owner's name is the cookie, so that others can be told who holds it.
 *
 * Happy path: lock (the same connection with the same owner renews), later unlock; what is still
 * held at the close is let go of. Failures: it is held: get_info names the holder: WT_ELOCKED. A
 * lock that this tier took over a connection that was lost is broken and taken anew. A holder that
 * died is forgotten by the OSD when its time is over.
 */
#include "tiers/rados/lock.h"

#include "tiers/rados/lock_wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { INFO_SIZE = 4096 };

/* A lock that this tier has, or had over an earlier connection. */
struct rados_held {
    struct rados_held *next;
    uint64_t instance;
    char key[WT_KEY_SIZE], owner[128];
};

struct lock_call {
    struct rados_call call;
    struct rados_aio aio;
    struct wt_bytes args;
    const char *method;
    char oid[RADOS_OID_SIZE];
    char info[INFO_SIZE];
    size_t info_len;
    struct rados_locker locker;
    bool broken; /* an old lock of ours, once */
};

static struct rados_held **find_held(struct rados_client *c, const char *key) {
    struct rados_held **at = &c->held;
    while (*at && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    return at;
}

static void forget(struct rados_client *c, const char *key) {
    struct rados_held **at = find_held(c, key), *held = *at;
    if (held) {
        *at = held->next;
        free(held);
    }
}

/* Without memory it is not let go of at the close, and expires. */
static void remember(struct rados_client *c, const struct wt_req *req) {
    forget(c, req->key);
    struct rados_held *held = calloc(1, sizeof *held);
    if (!held)
        return;
    snprintf(held->key, sizeof held->key, "%s", req->key);
    snprintf(held->owner, sizeof held->owner, "%s", req->owner);
    held->instance = rados_get_instance_id(c->conn->cluster);
    held->next = c->held;
    c->held = held;
}

/* ---- steps ---- */

static void lock_release(struct rados_call *call) {
    wt_bytes_free(&((struct lock_call *)call)->args);
}

static void write_go(struct rados_aio *aio) {
    struct lock_call *l = (struct lock_call *)aio->call;
    rados_write_op_t op = rados_create_write_op();
    if (op)
        rados_write_op_exec(op, "lock", l->method, (const char *)l->args.data, l->args.len, NULL);
    rados_aio_fly_write_op(aio, op, l->oid);
}

static void read_go(struct rados_aio *aio) {
    struct lock_call *l = (struct lock_call *)aio->call;
    rados_read_op_t op = rados_create_read_op();
    if (op)
        rados_read_op_exec_user_buf(op, "lock", l->method, (const char *)l->args.data, l->args.len,
                                    l->info, sizeof l->info, &l->info_len, NULL);
    rados_aio_fly_read_op(aio, op, l->oid, LIBRADOS_OPERATION_ORDER_READS_WRITES);
}

/* l->args are filled (rc == 0): the next step. */
static void step(struct lock_call *l, int rc, const char *method, void (*go)(struct rados_aio *),
                 void (*end)(struct rados_aio *)) {
    if (rc < 0) {
        rados_call_end(&l->call, rc);
        return;
    }
    l->method = method;
    l->aio = (struct rados_aio){.call = &l->call, .go = go, .end = end};
    rados_aio_begin(l->call.client, &l->aio);
}

static struct wt_bytes *fresh(struct lock_call *l) {
    l->args.len = 0;
    return &l->args;
}

static void ask_holder(struct lock_call *l);

/* ---- lock ---- */

static void locked(struct rados_aio *aio) {
    struct lock_call *l = (struct lock_call *)aio->call;
    if (aio->rc == -EBUSY || aio->rc == -EEXIST) {
        ask_holder(l);
        return;
    }
    if (aio->rc == 0 && l->call.client->conn)
        remember(l->call.client, l->call.req);
    rados_call_end_rados(&l->call, aio->rc, "locking");
}

static void lock_now(struct lock_call *l) {
    const struct wt_req *req = l->call.req;
    step(l, rados_lock_args(fresh(l), req->owner, req->ttl_ms), "lock", write_go, locked);
}

static void broke(struct rados_aio *aio) {
    struct lock_call *l = (struct lock_call *)aio->call;
    if (aio->rc < 0 && aio->rc != -ENOENT)
        rados_call_end_rados(&l->call, aio->rc, "breaking a lock of our own");
    else if (l->call.req->op == WT_OP_LOCK)
        lock_now(l);
    else
        rados_call_end(&l->call, 0);
}

/* ---- who holds it? ---- */

static int held_by(const struct lock_call *l, struct wt_err *err) {
    int64_t left = (int64_t)l->locker.expires - (int64_t)time(NULL);
    if (l->locker.expires)
        return wt_err_set(err, WT_ELOCKED, "held by %s, for %lld s more unless renewed",
                          l->locker.owner, (long long)(left > 0 ? left : 0));
    return wt_err_set(err, WT_ELOCKED, "held by %s", l->locker.owner);
}

/* Did this tier take it, over a connection that it lost? */
static bool is_old_of_ours(const struct lock_call *l) {
    const struct rados_held *held = *find_held(l->call.client, l->call.req->key);
    return held && held->instance == l->locker.entity &&
           strcmp(held->owner, l->locker.owner) == 0 &&
           strcmp(held->owner, l->call.req->owner) == 0;
}

static void told(struct rados_aio *aio) {
    struct lock_call *l = (struct lock_call *)aio->call;
    struct wt_req *req = l->call.req;
    bool held = false, is_lock = req->op == WT_OP_LOCK;
    if (aio->rc < 0 && aio->rc != -ENOENT) {
        rados_call_end_rados(&l->call, aio->rc, "asking who holds it");
    } else if (aio->rc >= 0 && rados_lock_info(l->info, l->info_len, &l->locker, &held) < 0) {
        rados_call_end(&l->call,
                       wt_err_set(&req->err, WT_EIO, "the OSD's answer on its lock is odd"));
    } else if (!held) {
        int rc = is_lock ? wt_err_set(&req->err, WT_ELOCKED, "another owner has just let it go")
                         : wt_err_set(&req->err, WT_EMISSING, "this lock is not held");
        rados_call_end(&l->call, rc);
    } else if (is_old_of_ours(l) && !l->broken) {
        l->broken = true;
        step(l, rados_break_args(fresh(l), &l->locker), "break_lock", write_go, broke);
    } else {
        rados_call_end(&l->call, held_by(l, &req->err));
    }
}

static void ask_holder(struct lock_call *l) {
    step(l, rados_lock_info_args(fresh(l)), "get_info", read_go, told);
}

/* ---- unlock ---- */

static void unlocked(struct rados_aio *aio) {
    struct lock_call *l = (struct lock_call *)aio->call;
    if (aio->rc == -ENOENT) {
        ask_holder(l);
        return;
    }
    if (aio->rc == 0)
        forget(l->call.client, l->call.req->key);
    rados_call_end_rados(&l->call, aio->rc, "unlocking");
}

static void lock_start(struct rados_call *call) {
    struct lock_call *l = (struct lock_call *)call;
    call->release = lock_release;
    rados_lock_name(l->oid, call->req->key);
    if (call->req->op == WT_OP_LOCK)
        lock_now(l);
    else
        step(l, rados_unlock_args(fresh(l), call->req->owner), "unlock", write_go, unlocked);
}

void rados_op_lock(struct wt_tier *tier, struct wt_req *req) {
    rados_call_new(tier, req, sizeof(struct lock_call), lock_start);
}

void rados_op_unlock(struct wt_tier *tier, struct wt_req *req) {
    rados_call_new(tier, req, sizeof(struct lock_call), lock_start);
}

/* ---- at the close ---- */

struct letting_go {
    struct rados_aio aio;
    struct rados_held *held;
};

static void let_go_begin(struct rados_aio *aio) {
    const struct letting_go *g = (struct letting_go *)aio;
    char oid[RADOS_OID_SIZE];
    struct wt_bytes args = {0};
    rados_write_op_t op = NULL;
    rados_lock_name(oid, g->held->key);
    if (rados_unlock_args(&args, g->held->owner) == 0)
        op = rados_create_write_op();
    if (op)
        rados_write_op_exec(op, "lock", "unlock", (const char *)args.data, args.len, NULL);
    wt_bytes_free(&args);
    rados_aio_fly_write_op(aio, op, oid);
}

static void let_go_end(struct rados_aio *aio) {
    struct letting_go *g = (struct letting_go *)aio;
    free(g->held); /* what was not let go of expires */
    free(g);
}

void rados_locks_let_go(struct rados_client *c) {
    while (c->held) {
        struct rados_held *held = c->held;
        struct letting_go *g = calloc(1, sizeof *g);
        c->held = held->next;
        if (!g) {
            free(held);
            continue;
        }
        g->held = held;
        g->aio = (struct rados_aio){.go = let_go_begin, .end = let_go_end};
        rados_aio_begin(c, &g->aio);
    }
}
