/*
 * Requests: what all ops share. An op owns at most RDS_WINDOW commands; its request ends once, by
 * rds_op_end, always through wt_req_later, so that no callback runs inside another one's loop.
 */
#include "tiers/redis/internal.h"

#include <stdlib.h>
#include <string.h>

void *rds_op_new(struct rds *r, struct wt_req *req, size_t size, void (*cancel)(struct rds_op *)) {
    struct rds_op *op = calloc(1, size);
    if (!op) {
        req->priv[0] = NULL;
        req->rc = WT_ENOMEM;
        wt_req_later(req);
        return NULL;
    }
    op->r = r;
    op->req = req;
    op->cancel = cancel;
    req->priv[0] = op;
    return op;
}

int rds_op_issue(struct rds_op *op, struct rds_cmd *cmd, void (*done)(struct rds_cmd *cmd)) {
    if (!cmd)
        return WT_ENOMEM;
    uint32_t i = 0;
    while (op->cmd[i])
        i++;
    op->cmd[i] = cmd;
    op->busy++;
    cmd->done = done;
    cmd->arg = op;
    rds_cmd_submit(cmd);
    return 0;
}

void *rds_op_replied(struct rds_cmd *cmd) {
    struct rds_op *op = cmd->arg;
    for (uint32_t i = 0; i < RDS_WINDOW; i++)
        if (op->cmd[i] == cmd)
            op->cmd[i] = NULL;
    op->busy--;
    return op;
}

void rds_op_drop_all(struct rds_op *op) {
    for (uint32_t i = 0; i < RDS_WINDOW; i++) {
        if (!op->cmd[i])
            continue;
        rds_cmd_drop(op->cmd[i]);
        op->cmd[i] = NULL;
    }
    op->busy = 0;
}

void rds_op_end(struct rds_op *op, int rc, const struct wt_err *err) {
    struct wt_req *req = op->req;
    rds_op_drop_all(op);
    free(op);
    if (!req)
        return;
    req->priv[0] = NULL;
    req->rc = rc;
    if (rc < 0 && err && err->code)
        req->err = *err;
    wt_req_later(req);
}

int rds_cmd_expect(struct rds_cmd *cmd, int type, struct wt_err *err) {
    if (cmd->rc < 0) {
        *err = cmd->err;
        return cmd->rc;
    }
    const redisReply *reply = cmd->reply;
    if (reply && reply->type == REDIS_REPLY_NIL && type == REDIS_REPLY_STRING)
        return wt_err_set(err, WT_EMISSING, "no such object");
    if (!reply || reply->type != type)
        return wt_err_set(err, WT_EIO, "Redis answers with something unexpected");
    return 0;
}
