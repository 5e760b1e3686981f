/*
 * Reads. STAT asks for the header. GET takes the header (from the cache, where it was seen lately),
 * then its chunks, up to RDS_WINDOW at a time, straight into the caller's buffer; a part of a chunk
 * by GETRANGE.
 *
 * Happy path: header known -> chunks -> done. Failures: a chunk that is missing, of another length
 * or whose sum differs sends us back to the header, asked anew: it is gone (MISSING, or CHANGED
 * when the read had begun with a fresh one), another attempt has replaced the object (start over,
 * once; then CHANGED), or it is the same one, and the object is damaged (CORRUPT). Chunks of two
 * attempts never mix: the attempt's token is in their names.
 */
#include "tiers/redis/internal.h"

#include "core/sum.h"

#include <stdio.h>
#include <string.h>

enum { RESTARTS_MAX = 2 };

struct get_op {
    struct rds_op op;
    struct rds_head *head;
    bool fresh;          /* the header was read for this request */
    bool doubt;          /* a chunk was not as the header says */
    struct wt_err fault; /* what was wrong with it */
    uint32_t restarts;
    uint32_t next, end; /* chunks to ask for */
    uint64_t off, stop; /* the range, inside the object */
};

static int start_chunks(struct get_op *g, struct wt_err *err);

static void end_get(struct get_op *g, int rc, const struct wt_err *err) {
    if (rc < 0)
        g->op.req->got = 0;
    rds_head_unref(g->head);
    rds_op_end(&g->op, rc, err);
}

static void cancel_get(struct rds_op *op) {
    struct get_op *g = (struct get_op *)op;
    end_get(g, WT_ECANCELED, NULL);
}

/* ---- the header ---- */

static int read_head(struct rds_cmd *cmd, struct rds_head **head, struct wt_err *err) {
    int rc = rds_cmd_expect(cmd, REDIS_REPLY_STRING, err);
    return rc < 0 ? rc : rds_head_decode(cmd->reply->str, (size_t)cmd->reply->len, head, err);
}

static struct rds_cmd *ask_head(struct rds *r, const char *key) {
    char name[RDS_NAME_SIZE];
    rds_name_head(name, key);
    return rds_cmd_key(r, "GET", name);
}

/* A chunk was not there, and the header has been read again: what does it mean? */
static int resolve_doubt(struct get_op *g, const struct rds_head *now, struct wt_err *err) {
    const char *key = g->op.req->key;
    if (now && g->head && now->token == g->head->token) {
        *err = g->fault;
        return WT_ECORRUPT;
    }
    rds_cache_drop(&g->op.r->cache, key);
    if (!now && !g->fresh)
        return wt_err_set(err, WT_EMISSING, "no such object");
    if (!now || ++g->restarts > RESTARTS_MAX)
        return wt_err_set(err, WT_ECHANGED, "the object was %s while it was read",
                          now ? "replaced" : "removed");
    return 0;
}

static void on_head(struct rds_cmd *cmd) {
    struct get_op *g = rds_op_replied(cmd);
    struct rds_head *head = NULL;
    struct wt_err err = {0};
    int rc = read_head(cmd, &head, &err);
    if (g->doubt && (rc == 0 || rc == WT_EMISSING))
        rc = resolve_doubt(g, head, &err);
    if (rc < 0) {
        rds_head_unref(head);
        end_get(g, rc, &err);
        return;
    }
    rds_head_unref(g->head);
    g->head = head;
    g->fresh = true;
    g->doubt = false;
    rds_cache_put(&g->op.r->cache, g->op.req->key, head);
    rc = start_chunks(g, &err);
    if (rc < 0)
        end_get(g, rc, &err);
}

static int fetch_head(struct get_op *g, struct wt_err *err) {
    int rc = rds_op_issue(&g->op, ask_head(g->op.r, g->op.req->key), on_head);
    return rc < 0 ? wt_err_set(err, rc, "out of memory for a command") : 0;
}

/* ---- chunks ---- */

struct piece { /* of a chunk */
    uint32_t off;
    size_t len;
    uint8_t *to;
    bool whole;
};

static struct piece piece_of(const struct get_op *g, uint32_t chunk) {
    struct rds_extent x = rds_layout_chunk(&g->head->layout, chunk);
    uint64_t from = g->off > x.off ? g->off : x.off;
    uint64_t to = g->stop < x.off + x.len ? g->stop : x.off + x.len;
    return (struct piece){
        .off = (uint32_t)(from - x.off),
        .len = (size_t)(to - from),
        .to = (uint8_t *)g->op.req->buf + (from - g->off),
        .whole = to - from == x.len,
    };
}

static int check_chunk(const struct get_op *g, const struct rds_cmd *cmd, struct wt_err *err) {
    uint32_t n = cmd->at, total = g->head->layout.n_chunks;
    struct piece p = piece_of(g, n);
    if (cmd->nil || (cmd->body_seen == 0 && !p.whole))
        return wt_err_set(err, WT_ECORRUPT, "chunk %u of %u is missing", n, total);
    if (cmd->body_seen != p.len)
        return wt_err_set(err, WT_ECORRUPT, "chunk %u of %u gives %zu bytes instead of %zu", n,
                          total, cmd->body_seen, p.len);
    if (p.whole && g->op.r->url.verify && wt_crc32c(0, p.to, p.len) != g->head->crc[n])
        return wt_err_set(err, WT_ECORRUPT,
                          "chunk %u of %u has another sum than it was written with", n, total);
    return 0;
}

static int issue_chunks(struct get_op *g);

static void on_chunk(struct rds_cmd *cmd) {
    struct get_op *g = rds_op_replied(cmd);
    struct wt_err err = {0};
    int rc = cmd->rc;
    if (rc < 0)
        err = cmd->err;
    else
        rc = check_chunk(g, cmd, &err);
    if (rc == WT_ECORRUPT) {
        rds_op_drop_all(&g->op);
        g->doubt = true;
        g->fault = err;
        rc = fetch_head(g, &err);
        if (rc == 0)
            return;
    }
    if (rc == 0)
        rc = issue_chunks(g);
    if (rc < 0 || g->op.busy == 0)
        end_get(g, rc, &err);
}

static int issue_chunks(struct get_op *g) {
    while (g->next < g->end && g->op.busy < RDS_WINDOW) {
        char name[RDS_NAME_SIZE];
        struct piece p = piece_of(g, g->next);
        rds_name_chunk(name, g->head->token, g->next, g->op.req->key);
        struct rds_cmd *cmd = rds_cmd_read(g->op.r, name, p.off, p.len, p.whole, p.to);
        if (cmd)
            cmd->at = g->next;
        int rc = rds_op_issue(&g->op, cmd, on_chunk);
        if (rc < 0)
            return rc;
        g->next++;
    }
    return 0;
}

/* The header is known: the range becomes chunks, or is there already. May end the op. */
static int start_chunks(struct get_op *g, struct wt_err *err) {
    struct wt_req *req = g->op.req;
    const struct rds_layout *l = &g->head->layout;
    g->off = req->off < l->size ? req->off : l->size;
    g->stop = req->len < l->size - g->off ? g->off + req->len : l->size;
    req->got = (size_t)(g->stop - g->off);
    if (req->got && g->head->flags & RDS_HEAD_INLINE)
        memcpy(req->buf, g->head->data + g->off, req->got);
    if (req->got == 0 || g->head->flags & RDS_HEAD_INLINE) {
        end_get(g, 0, NULL);
        return 0;
    }
    g->next = rds_layout_find(l, g->off);
    g->end = rds_layout_find(l, g->stop - 1) + 1;
    int rc = issue_chunks(g);
    return rc < 0 ? wt_err_set(err, rc, "out of memory for a command") : 0;
}

void rds_op_get(struct wt_tier *tier, struct wt_req *req) {
    struct rds *r = wt_backend_state(tier);
    struct get_op *g = rds_op_new(r, req, sizeof *g, cancel_get);
    struct wt_err err = {0};
    if (!g)
        return;
    g->head = rds_cache_get(&r->cache, req->key);
    int rc = g->head ? start_chunks(g, &err) : fetch_head(g, &err);
    if (rc < 0)
        end_get(g, rc, &err);
}

/* ---- STAT ---- */

static void cancel_stat(struct rds_op *op) {
    rds_op_end(op, WT_ECANCELED, NULL);
}

static void on_stat(struct rds_cmd *cmd) {
    struct rds_op *op = rds_op_replied(cmd);
    struct rds_head head;
    struct wt_err err = {0};
    int rc = rds_cmd_expect(cmd, REDIS_REPLY_STRING, &err);
    if (rc == 0 && cmd->reply->len == 0) /* GETRANGE gives "" for what is not there */
        rc = wt_err_set(&err, WT_EMISSING, "no such object");
    if (rc == 0)
        rc = rds_head_peek(cmd->reply->str, (size_t)cmd->reply->len, &head, &err);
    if (rc == 0)
        op->req->size = head.layout.size;
    if (rc == WT_EMISSING)
        rds_cache_drop(&op->r->cache, op->req->key);
    rds_op_end(op, rc, &err);
}

struct rds_cmd *rds_cmd_peek(struct rds *r, const char *key) {
    char name[RDS_NAME_SIZE], last[16];
    rds_name_head(name, key);
    snprintf(last, sizeof last, "%d", RDS_HEAD_FIXED - 1);
    return rds_cmd_new(r, 4, (const char *const[]){"GETRANGE", name, "0", last}, NULL);
}

void rds_op_stat(struct wt_tier *tier, struct wt_req *req) {
    struct rds *r = wt_backend_state(tier);
    struct rds_op *op = rds_op_new(r, req, sizeof *op, cancel_stat);
    if (op && rds_op_issue(op, rds_cmd_peek(r, req->key), on_stat) < 0)
        rds_op_end(op, WT_ENOMEM, NULL);
}
