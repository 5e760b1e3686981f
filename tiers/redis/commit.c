/*
 * The ends of a put. COMMIT writes the header: SET NX, or SET GET where it may replace (the chunks of the
 * replaced attempt go when readers had time to end). ABORT removes the chunks.
 *
 * Failures of COMMIT: the name is taken (WT_EEXISTS), no room: the chunks are removed behind the scenes.
 * A connection lost with the SET on its way: the header is read, its token tells whether it arrived. A
 * deadline or cancel with the SET on its way: a chore undoes it a little later (RDS_UNDO); a replacement
 * cannot be undone, and stays when it has happened.
 */
#include "tiers/redis/internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SETTLE_MS = RDS_ABANDON_MS + 500, READ_GRACE_MAX_MS = 10000 };

/* ---- what is left behind ---- */

static void leave(struct rds *r, struct rds_put *put, enum rds_chore_kind kind, uint64_t wait_ms,
                  struct rds_chore **chore) {
    struct rds_chore *c = NULL;
    if (put->stored || kind != RDS_UNLINK)
        c = rds_chore_add(r, kind, put->head.key, put->token, &put->layout, wait_ms);
    if (c && put->small)
        c->n_chunks = 0;
    if (chore)
        *chore = c;
    rds_put_free(r, put);
}

static uint64_t settle_ms(const struct rds_put *put) {
    return put->dirty ? SETTLE_MS : 0;
}

void rds_put_drop(struct wt_tier *tier, struct wt_put *put) {
    struct rds_put *p = (struct rds_put *)put;
    leave(wt_backend_state(tier), p, RDS_UNLINK, settle_ms(p), NULL);
}

void rds_retire(struct rds *r, const char *key, const void *header, size_t len, uint64_t but_token) {
    struct rds_head old;
    uint64_t grace = wt_tier_deadline(r->tier, 0);
    if (rds_head_peek(header, len, &old, NULL) < 0 || old.token == but_token ||
        old.flags & RDS_HEAD_INLINE)
        return;
    rds_chore_add(r, RDS_UNLINK, key, old.token, &old.layout,
                  grace < READ_GRACE_MAX_MS ? grace : READ_GRACE_MAX_MS);
}

/* ---- COMMIT ---- */

struct commit_op {
    struct rds_op op;
    struct rds_put *put;
    uint8_t *bytes; /* the header */
    size_t len;
    bool sent;
    bool checked;   /* its fate was asked for once */
};

static bool replaces(const struct commit_op *c) {
    return c->put->head.flags & WT_PUT_REPLACE;
}

static void end_commit(struct commit_op *c, int rc, struct wt_err *err) {
    struct rds *r = c->op.r;
    free(c->bytes);
    if (rc < 0 && err && err->code)
        wt_err_wrap(err, "%s", c->put->head.key);
    if (rc == 0)
        rds_put_free(r, c->put);
    else if (rc == WT_EEXISTS || rc == WT_EFULL || rc == WT_EINVAL || !c->sent)
        leave(r, c->put, RDS_UNLINK, settle_ms(c->put), NULL);
    else /* it may have happened */
        leave(r, c->put, replaces(c) ? RDS_UNDO_UNLESS : RDS_UNDO, SETTLE_MS, NULL);
    rds_op_end(&c->op, rc, err);
}

static void cancel_commit(struct rds_op *op) {
    end_commit((struct commit_op *)op, WT_ECANCELED, NULL);
}

static int send_head(struct commit_op *c);

/* The SET was lost on its way: did it arrive? */
static void on_fate(struct rds_cmd *cmd) {
    struct commit_op *c = rds_op_replied(cmd);
    struct wt_err err = {0};
    struct rds_head head;
    int rc = rds_cmd_expect(cmd, REDIS_REPLY_STRING, &err);
    if (rc == 0 && cmd->reply->len == 0) {
        rc = send_head(c); /* no: again */
        if (rc == 0)
            return;
    } else if (rc == 0) {
        rc = rds_head_peek(cmd->reply->str, (size_t)cmd->reply->len, &head, &err);
        if (rc == 0 && head.token != c->put->token)
            rc = wt_err_set(&err, WT_EEXISTS, "the object exists already");
    }
    end_commit(c, rc, &err);
}

static void on_head_set(struct rds_cmd *cmd) {
    struct commit_op *c = rds_op_replied(cmd);
    struct rds *r = c->op.r;
    const redisReply *reply = cmd->reply;
    struct wt_err err = cmd->err;
    int rc = cmd->rc;
    if (rc == WT_EDOWN && !replaces(c) && !c->checked) {
        c->checked = true;
        rc = rds_op_issue(&c->op, rds_cmd_peek(r, c->put->head.key), on_fate);
        if (rc == 0)
            return;
    }
    bool old = reply && replaces(c) && reply->type == REDIS_REPLY_STRING;
    if (rc == 0 && !replaces(c) && reply->type == REDIS_REPLY_NIL)
        rc = wt_err_set(&err, WT_EEXISTS, "the object exists already");
    if (rc == 0 && old)
        rds_retire(r, c->put->head.key, reply->str, (size_t)reply->len, c->put->token);
    if (rc == WT_EFULL)
        rds_chores_hurry(r);
    rds_cache_drop(&r->cache, c->put->head.key);
    end_commit(c, rc, &err);
}

static int send_head(struct commit_op *c) {
    char name[RDS_NAME_SIZE];
    rds_name_head(name, c->put->head.key);
    const char *argv[] = {"SET", name, (const char *)c->bytes, replaces(c) ? "GET" : "NX"};
    const size_t lens[] = {3, strlen(name), c->len, replaces(c) ? 3 : 2};
    struct rds_cmd *cmd = rds_cmd_new(c->op.r, 4, argv, lens);
    if (!cmd)
        return WT_ENOMEM;
    cmd->once = !replaces(c);
    c->sent = true;
    return rds_op_issue(&c->op, cmd, on_head_set);
}

static int encode_head(struct commit_op *c) {
    const struct rds_put *put = c->put;
    struct rds_head head = {
        .flags = (put->small ? RDS_HEAD_INLINE : 0u) | (replaces(c) ? RDS_HEAD_REPLACEABLE : 0u),
        .layout = put->layout,
        .token = put->token,
        .mtime = (int64_t)time(NULL),
        .data = put->small,
        .crc = put->crc,
    };
    c->bytes = rds_head_encode(&head, &c->len);
    return c->bytes ? 0 : WT_ENOMEM;
}

void rds_op_put_commit(struct wt_tier *tier, struct wt_req *req) {
    struct rds *r = wt_backend_state(tier);
    struct rds_put *put = (struct rds_put *)req->put;
    struct wt_err err = {0};
    struct commit_op *c = rds_op_new(r, req, sizeof *c, cancel_commit);
    if (!c) {
        leave(r, put, RDS_UNLINK, settle_ms(put), NULL);
        return;
    }
    c->put = put;
    int rc = wt_put_check(&put->head, &err);
    if (rc == 0)
        rc = encode_head(c);
    if (rc == 0)
        rc = send_head(c);
    if (rc < 0)
        end_commit(c, rc, &err);
}

/* ---- ABORT ---- */

struct abort_op {
    struct rds_op op;
    struct rds_chore *chore;
};

static void on_aborted(void *arg) {
    struct abort_op *a = arg;
    rds_op_end(&a->op, 0, NULL);
}

static void cancel_abort(struct rds_op *op) {
    struct abort_op *a = (struct abort_op *)op;
    a->chore->done = NULL; /* it goes on alone */
    rds_op_end(op, WT_ECANCELED, NULL);
}

void rds_op_put_abort(struct wt_tier *tier, struct wt_req *req) {
    struct rds *r = wt_backend_state(tier);
    struct rds_put *put = (struct rds_put *)req->put;
    uint64_t wait_ms = settle_ms(put);
    struct abort_op *a = rds_op_new(r, req, sizeof *a, cancel_abort);
    struct rds_chore *chore;
    leave(r, put, RDS_UNLINK, wait_ms, &chore);
    if (!a)
        return;
    if (!chore || wait_ms) { /* nothing to do, or later */
        rds_op_end(&a->op, 0, NULL);
        return;
    }
    a->chore = chore;
    chore->done = on_aborted;
    chore->arg = a;
}
