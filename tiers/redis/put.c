/*
 * Writing an object: PUT_OPEN asks whether there is room and whether the name is free, PUT_WRITE
 * SETs the chunks of a part under names that hold the attempt's token. What COMMIT and ABORT do:
 * commit.c.
 *
 * Failures: no room (by the server's maxmemory or the tier's capacity) is WT_EFULL with the
 * figures; chunks of removed objects that still wait for their readers are given up before that.
 * -OOM in the middle is WT_EFULL; the caller aborts.
 */
#include "tiers/redis/internal.h"

#include "core/bytes.h"
#include "core/mem.h"
#include "core/sum.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_COST = 256, HEAD_COST = 512 }; /* of a name and its entry in Redis, about */

void rds_put_free(struct rds *r, struct rds_put *put) {
    r->reserved -= put->reserved;
    r->open_bytes -= put->entered ? put->head.size : 0;
    wt_put_fini(&put->head);
    free(put->crc);
    free(put->small);
    free(put);
}

/* ---- PUT_OPEN ---- */

struct open_op {
    struct rds_op op;
    struct rds_survey survey;
    struct rds_waiter waiter;
};

static void cancel_open(struct rds_op *op) {
    struct open_op *o = (struct open_op *)op;
    rds_count_leave(op->r, &o->waiter);
    rds_op_end(op, WT_ECANCELED, NULL);
}

static int make_put(struct rds *r, const struct wt_req *req, struct rds_put **out,
                    struct wt_err *err) {
    struct rds_layout layout;
    if (rds_layout_make(req->size, WT_PART, RDS_CHUNK, &layout) < 0)
        return wt_err_set(err, WT_ERANGE, "%llu bytes are more than %d chunks",
                          (unsigned long long)req->size, RDS_CHUNKS_MAX);
    struct rds_put *put = calloc(1, sizeof *put);
    if (!put)
        return wt_err_set(err, WT_ENOMEM, "out of memory for a put");
    int rc = wt_put_init(&put->head, req->key, req->size, req->flags);
    if (rc < 0) {
        free(put);
        return wt_err_set(err, rc, "cannot begin a put of %llu bytes",
                          (unsigned long long)req->size);
    }
    put->layout = layout;
    put->token = rds_token_new(r);
    if (req->size <= RDS_INLINE)
        put->small = wt_calloc((size_t)req->size, 1);
    else
        put->crc = wt_calloc(layout.n_chunks, sizeof *put->crc);
    if (!put->small && !put->crc) {
        rds_put_free(r, put);
        return wt_err_set(err, WT_ENOMEM, "out of memory for a put");
    }
    put->reserved = req->size;
    put->entered = true;
    r->reserved += req->size;
    r->open_bytes += req->size;
    *out = put;
    return 0;
}

static uint64_t cost_of(uint64_t size) {
    return size + HEAD_COST + size / RDS_CHUNK * CHUNK_COST;
}

/* By the capacity that the tier was given. */
static int check_capacity(const struct rds *r, uint64_t size, struct wt_err *err) {
    uint64_t limit = wt_backend_opts(r->tier)->capacity, used = r->count.used;
    uint64_t left = used < limit ? limit - used : 0;
    left = r->open_bytes < left ? left - r->open_bytes : 0;
    if (!limit || size <= left)
        return 0;
    char a[WT_SIZE_TEXT], b[WT_SIZE_TEXT], c[WT_SIZE_TEXT], d[WT_SIZE_TEXT];
    return wt_err_set(err, WT_EFULL, "%s do not fit: %s of capacity %s are used, %s by open puts",
                      wt_size_format(size, a), wt_size_format(used, b), wt_size_format(limit, c),
                      wt_size_format(r->open_bytes, d));
}

/* By what the servers have. */
static int check_room(const struct rds *r, uint64_t room, uint64_t size, struct wt_err *err) {
    uint64_t left = r->reserved < room ? room - r->reserved : 0;
    if (room == UINT64_MAX || cost_of(size) <= left)
        return 0;
    char a[WT_SIZE_TEXT], b[WT_SIZE_TEXT], c[WT_SIZE_TEXT];
    return wt_err_set(
        err, WT_EFULL, "%s do not fit: maxmemory leaves room for %s, %s of it taken by open puts",
        wt_size_format(size, a), wt_size_format(room, b), wt_size_format(r->reserved, c));
}

static void end_open(struct open_op *o, int rc, struct wt_err *err) {
    struct wt_req *req = o->op.req;
    struct rds_put *put = NULL;
    if (rc == 0)
        rc = check_capacity(o->op.r, req->size, err);
    if (rc == 0)
        rc = make_put(o->op.r, req, &put, err);
    if (rc == 0)
        req->put = &put->head;
    rds_op_end(&o->op, rc, err);
}

static void on_open_counted(struct rds_waiter *w, int rc, const struct wt_err *why) {
    struct open_op *o = (struct open_op *)((char *)w - offsetof(struct open_op, waiter));
    struct wt_err err = {0};
    if (why)
        err = *why;
    end_open(o, rc, &err);
}

static void on_survey(struct rds_cmd *cmd);

/* All servers have told. */
static void decide(struct open_op *o) {
    struct rds *r = o->op.r;
    struct wt_err err = {0};
    int rc = check_room(r, o->survey.room, o->op.req->size, &err);
    if (rc < 0 && rds_chores_hurry(r)) { /* they go before their time; then ask again */
        o->survey = (struct rds_survey){0};
        rc = rds_survey_ask(&o->op, &o->survey, on_survey);
        if (rc > 0)
            return;
    }
    if (rc == 0 && wt_backend_opts(r->tier)->capacity)
        rc = rds_count_want(r, &o->waiter);
    if (rc <= 0)
        end_open(o, rc, &err);
}

static void on_survey(struct rds_cmd *cmd) {
    struct open_op *o = rds_op_replied(cmd);
    struct wt_err err = {0};
    int rc = rds_survey_add(o->op.r, &o->survey, cmd, &err);
    if (rc == 0)
        rc = rds_survey_ask(&o->op, &o->survey, on_survey);
    if (rc < 0)
        rds_op_end(&o->op, rc, &err);
    else if (rc == 0)
        decide(o);
}

static void on_exists(struct rds_cmd *cmd) {
    struct open_op *o = rds_op_replied(cmd);
    struct wt_err err = {0};
    int rc = rds_cmd_expect(cmd, REDIS_REPLY_INTEGER, &err);
    if (rc == 0 && cmd->reply->integer && !(o->op.req->flags & WT_PUT_REPLACE))
        rc = wt_err_set(&err, WT_EEXISTS, "the object exists already");
    if (rc == 0)
        rc = rds_survey_ask(&o->op, &o->survey, on_survey);
    if (rc <= 0)
        rds_op_end(&o->op, rc < 0 ? rc : WT_EDOWN, &err);
}

void rds_op_put_open(struct wt_tier *tier, struct wt_req *req) {
    struct rds *r = wt_backend_state(tier);
    char name[RDS_NAME_SIZE];
    struct open_op *o = rds_op_new(r, req, sizeof *o, cancel_open);
    if (!o)
        return;
    o->waiter.ready = on_open_counted;
    rds_name_head(name, req->key);
    if (rds_op_issue(&o->op, rds_cmd_key(r, "EXISTS", name), on_exists) < 0)
        rds_op_end(&o->op, WT_ENOMEM, NULL);
}

/* ---- PUT_WRITE ---- */

struct write_op {
    struct rds_op op;
    struct rds_put *put;
    uint32_t next, end;
};

static void end_write(struct write_op *w, int rc, struct wt_err *err) {
    if (w->op.busy)
        w->put->dirty = true;
    if (rc < 0 && err && err->code)
        wt_err_wrap(err, "%s", w->put->head.key);
    rds_op_end(&w->op, rc, err);
}

static void cancel_write(struct rds_op *op) {
    end_write((struct write_op *)op, WT_ECANCELED, NULL);
}

static int issue_writes(struct write_op *w);

static void on_written(struct rds_cmd *cmd) {
    struct write_op *w = rds_op_replied(cmd);
    struct rds_put *put = w->put;
    struct wt_err err = {0};
    int rc = rds_cmd_expect(cmd, REDIS_REPLY_STATUS, &err);
    if (rc == 0) {
        uint32_t len = rds_layout_chunk(&put->layout, cmd->at).len;
        put->reserved -= len;
        w->op.r->reserved -= len;
        rc = issue_writes(w);
    } else if (rc == WT_EFULL) {
        rds_chores_hurry(w->op.r); /* so that the next attempt finds room */
    } else {
        put->dirty = true; /* who knows whether it arrived */
    }
    if (rc < 0 || w->op.busy == 0)
        end_write(w, rc, &err);
}

static int issue_writes(struct write_op *w) {
    struct rds_put *put = w->put;
    const struct wt_req *req = w->op.req;
    while (w->next < w->end && w->op.busy < RDS_WINDOW) {
        struct rds_extent x = rds_layout_chunk(&put->layout, w->next);
        const uint8_t *src = (const uint8_t *)req->src + (x.off - req->off);
        char name[RDS_NAME_SIZE];
        rds_name_chunk(name, put->token, w->next, put->head.key);
        put->crc[w->next] = wt_crc32c(0, src, x.len);
        put->stored = true;
        struct rds_cmd *cmd = rds_cmd_set(w->op.r, name, src, x.len);
        if (cmd)
            cmd->at = w->next;
        int rc = rds_op_issue(&w->op, cmd, on_written);
        if (rc < 0)
            return rc;
        w->next++;
    }
    return 0;
}

void rds_op_put_write(struct wt_tier *tier, struct wt_req *req) {
    struct rds *r = wt_backend_state(tier);
    struct rds_put *put = (struct rds_put *)req->put;
    if (put->small) {
        memcpy(put->small + req->off, req->src, req->len);
        req->priv[0] = NULL;
        req->rc = 0;
        wt_req_later(req);
        return;
    }
    struct write_op *w = rds_op_new(r, req, sizeof *w, cancel_write);
    if (!w)
        return;
    w->put = put;
    w->next = rds_layout_find(&put->layout, req->off);
    w->end = rds_layout_find(&put->layout, req->off + req->len - 1) + 1;
    int rc = issue_writes(w);
    if (rc < 0)
        end_write(w, rc, NULL);
}
