/*
 * The ends of a put. COMMIT looks whether every chunk is there, then writes the header: SET NX, or
 * SET GET where it may replace (the chunks of the replaced attempt go when readers had time to
 * end). ABORT removes the chunks.
 *
 * Failures of COMMIT: chunks are gone (a restart, a flush, gc): WT_ECHANGED; the name is taken
 * (WT_EEXISTS); no room: the chunks are removed first, then the request ends. A connection lost
 * with the SET on its way: the header is read, its token tells whether it arrived. A deadline or
 * cancel with the SET on its way: a chore undoes it a little later (RDS_UNDO); a replacement cannot
 * be undone, and stays when it has happened.
 */
#include "tiers/redis/internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SETTLE_MS = RDS_ABANDON_MS + 500, READ_GRACE_MAX_MS = 10000 };

/* ---- what is left behind ---- */

static struct rds_chore *leave(struct rds *r, struct rds_put *put, enum rds_chore_kind kind,
                               uint64_t wait_ms) {
    struct rds_chore *c = NULL;
    if (put->stored || kind != RDS_UNLINK)
        c = rds_chore_add(r, kind, put->head.key, put->token, &put->layout, wait_ms);
    if (c && put->small)
        c->n_chunks = 0;
    rds_put_free(r, put);
    return c;
}

/* What was dropped on its way may still arrive. */
static uint64_t settle_ms(const struct rds_put *put) {
    return put->dirty ? SETTLE_MS : 0;
}

void rds_put_drop(struct wt_tier *tier, struct wt_put *put) {
    struct rds_put *p = (struct rds_put *)put;
    leave(wt_backend_state(tier), p, RDS_UNLINK, settle_ms(p));
}

void rds_retire(struct rds *r, const char *key, const redisReply *header, uint64_t but_token) {
    struct rds_head old;
    uint64_t grace = wt_tier_deadline(r->tier, 0);
    if (rds_head_peek(header->str, (size_t)header->len, &old, NULL) < 0 || old.token == but_token)
        return;
    rds_count_take(r, old.layout.size);
    if (old.flags & RDS_HEAD_INLINE)
        return;
    rds_chore_add(r, RDS_UNLINK, key, old.token, &old.layout,
                  grace < READ_GRACE_MAX_MS ? grace : READ_GRACE_MAX_MS);
}

/* ---- the end of a put, and of its request when its chunks are gone ---- */

struct end_op {
    struct rds_op op;
    struct rds_put *put; /* NULL: left behind already */
    struct rds_chore *chore;
    int rc; /* of the request, when the chore is done */
    struct wt_err err;
    /* COMMIT */
    uint32_t next;  /* chunk to look for */
    uint8_t *bytes; /* the header */
    size_t len;
    bool sent;
    bool checked; /* its fate was asked for once */
};

static bool replaces(const struct end_op *e) {
    return e->put->head.flags & WT_PUT_REPLACE;
}

static void finish(struct end_op *e) {
    struct wt_err err = e->err;
    free(e->bytes);
    rds_op_end(&e->op, e->rc, &err);
}

static void on_left(void *arg) {
    finish(arg);
}

/* Nobody can read the chunks: they go at once, and the request ends after that. */
static void leave_then_finish(struct end_op *e) {
    uint64_t wait_ms = settle_ms(e->put);
    struct rds_chore *chore = leave(e->op.r, e->put, RDS_UNLINK, wait_ms);
    e->put = NULL;
    if (!chore || wait_ms) { /* nothing to do, or later */
        finish(e);
        return;
    }
    e->chore = chore;
    chore->done = on_left;
    chore->arg = e;
}

static void cancel_end(struct rds_op *op) {
    struct end_op *e = (struct end_op *)op;
    if (e->chore)
        e->chore->done = NULL; /* it goes on alone */
    else if (e->sent)          /* it may have happened */
        leave(op->r, e->put, replaces(e) ? RDS_UNDO_UNLESS : RDS_UNDO, SETTLE_MS);
    else
        leave(op->r, e->put, RDS_UNLINK, settle_ms(e->put));
    e->rc = WT_ECANCELED;
    finish(e);
}

/* ---- COMMIT ---- */

static void end_commit(struct end_op *e, int rc, struct wt_err *err) {
    struct rds *r = e->op.r;
    rds_op_drop_all(&e->op);
    e->rc = rc;
    if (rc == 0) {
        rds_count_add(r, e->put->head.size);
        rds_put_free(r, e->put);
        finish(e);
        return;
    }
    if (err->code == 0)
        wt_err_set(err, rc, "%s", wt_err_text(rc));
    wt_err_wrap(err, "%s", e->put->head.key);
    e->err = *err;
    bool unsure = e->sent && rc != WT_EEXISTS && rc != WT_EFULL;
    if (unsure) {
        leave(r, e->put, replaces(e) ? RDS_UNDO_UNLESS : RDS_UNDO, SETTLE_MS);
        finish(e);
    } else {
        leave_then_finish(e);
    }
}

static int send_head(struct end_op *e);

/* The SET was lost on its way: did it arrive? */
static void on_fate(struct rds_cmd *cmd) {
    struct end_op *e = rds_op_replied(cmd);
    struct wt_err err = {0};
    struct rds_head head;
    int rc = rds_cmd_expect(cmd, REDIS_REPLY_STRING, &err);
    if (rc == 0 && cmd->reply->len == 0) {
        rc = send_head(e); /* no: again */
        if (rc == 0)
            return;
    } else if (rc == 0) {
        rc = rds_head_peek(cmd->reply->str, (size_t)cmd->reply->len, &head, &err);
        if (rc == 0 && head.token != e->put->token)
            rc = wt_err_set(&err, WT_EEXISTS, "the object exists already");
    }
    end_commit(e, rc, &err);
}

static void on_head_set(struct rds_cmd *cmd) {
    struct end_op *e = rds_op_replied(cmd);
    struct rds *r = e->op.r;
    const char *key = e->put->head.key;
    const redisReply *reply = cmd->reply;
    struct wt_err err = cmd->err;
    int rc = cmd->rc;
    if (rc == WT_EDOWN && !replaces(e) && !e->checked) {
        e->checked = true;
        rc = rds_op_issue(&e->op, rds_cmd_peek(r, key), on_fate);
        if (rc == 0)
            return;
    }
    if (rc == 0 && !replaces(e) && reply->type == REDIS_REPLY_NIL)
        rc = wt_err_set(&err, WT_EEXISTS, "the object exists already");
    if (rc == 0 && replaces(e) && reply->type == REDIS_REPLY_STRING)
        rds_retire(r, key, reply, e->put->token);
    if (rc == WT_EFULL)
        rds_chores_hurry(r);
    rds_cache_drop(&r->cache, key);
    end_commit(e, rc, &err);
}

static int send_head(struct end_op *e) {
    char name[RDS_NAME_SIZE];
    rds_name_head(name, e->put->head.key);
    const char *argv[] = {"SET", name, (const char *)e->bytes, replaces(e) ? "GET" : "NX"};
    const size_t lens[] = {3, strlen(name), e->len, replaces(e) ? 3 : 2};
    struct rds_cmd *cmd = rds_cmd_new(e->op.r, 4, argv, lens);
    if (!cmd)
        return WT_ENOMEM;
    cmd->once = !replaces(e);
    e->sent = true;
    return rds_op_issue(&e->op, cmd, on_head_set);
}

static int encode_head(struct end_op *e) {
    const struct rds_put *put = e->put;
    struct rds_head head = {
        .flags = (put->small ? RDS_HEAD_INLINE : 0u) | (replaces(e) ? RDS_HEAD_REPLACEABLE : 0u),
        .layout = put->layout,
        .token = put->token,
        .mtime = (int64_t)time(NULL),
        .data = put->small,
        .crc = put->crc,
    };
    e->bytes = rds_head_encode(&head, &e->len);
    return e->bytes ? 0 : WT_ENOMEM;
}

static int look_for_chunks(struct end_op *e);

static void on_length(struct rds_cmd *cmd) {
    struct end_op *e = rds_op_replied(cmd);
    struct wt_err err = {0};
    int rc = rds_cmd_expect(cmd, REDIS_REPLY_INTEGER, &err);
    uint32_t want = rds_layout_chunk(&e->put->layout, cmd->at).len;
    if (rc == 0 && cmd->reply->integer != want)
        rc = wt_err_set(&err, WT_ECHANGED,
                        "chunk %u is gone before the commit (a restart, a flush?)", cmd->at);
    if (rc == 0)
        rc = look_for_chunks(e);
    if (rc < 0)
        end_commit(e, rc, &err);
}

/* When all are there, the header goes. */
static int look_for_chunks(struct end_op *e) {
    const struct rds_put *put = e->put;
    while (!put->small && e->next < put->layout.n_chunks && e->op.busy < RDS_WINDOW) {
        char name[RDS_NAME_SIZE];
        rds_name_chunk(name, put->token, e->next, put->head.key);
        struct rds_cmd *cmd = rds_cmd_key(e->op.r, "STRLEN", name);
        if (cmd)
            cmd->at = e->next;
        int rc = rds_op_issue(&e->op, cmd, on_length);
        if (rc < 0)
            return rc;
        e->next++;
    }
    return e->op.busy ? 0 : send_head(e);
}

void rds_op_put_commit(struct wt_tier *tier, struct wt_req *req) {
    struct rds *r = wt_backend_state(tier);
    struct rds_put *put = (struct rds_put *)req->put;
    struct wt_err err = {0};
    struct end_op *e = rds_op_new(r, req, sizeof *e, cancel_end);
    if (!e) {
        leave(r, put, RDS_UNLINK, settle_ms(put));
        return;
    }
    e->put = put;
    int rc = wt_put_check(&put->head, &err);
    if (rc == 0)
        rc = encode_head(e);
    if (rc == 0)
        rc = look_for_chunks(e);
    if (rc < 0)
        end_commit(e, rc, &err);
}

/* ---- ABORT ---- */

void rds_op_put_abort(struct wt_tier *tier, struct wt_req *req) {
    struct rds *r = wt_backend_state(tier);
    struct rds_put *put = (struct rds_put *)req->put;
    struct end_op *e = rds_op_new(r, req, sizeof *e, cancel_end);
    if (!e) {
        leave(r, put, RDS_UNLINK, settle_ms(put));
        return;
    }
    e->put = put;
    leave_then_finish(e);
}
