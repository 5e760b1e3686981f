/*
 * REMOVE: GETDEL takes the header, in one step, so nobody finds the object any more; its chunks go
 * when readers under way had time to end. A key of the form that LIST gives to orphans removes that
 * chunk. Failures: nothing there is WT_EMISSING. A connection lost on the way is WT_EDOWN: it may
 * have happened.
 */
#include "tiers/redis/internal.h"

static void cancel_remove(struct rds_op *op) {
    rds_op_end(op, WT_ECANCELED, NULL);
}

static void on_taken(struct rds_cmd *cmd) {
    struct rds_op *op = rds_op_replied(cmd);
    struct wt_err err = {0};
    int rc = rds_cmd_expect(cmd, REDIS_REPLY_STRING, &err);
    rds_cache_drop(&op->r->cache, op->req->key);
    if (rc == 0)
        rds_retire(op->r, op->req->key, cmd->reply, 0);
    rds_op_end(op, rc, &err);
}

static void on_chunk_gone(struct rds_cmd *cmd) {
    struct rds_op *op = rds_op_replied(cmd);
    struct wt_err err = {0};
    int rc = rds_cmd_expect(cmd, REDIS_REPLY_INTEGER, &err);
    if (rc == 0 && cmd->reply->integer == 0)
        rc = WT_EMISSING;
    rds_op_end(op, rc, &err);
}

void rds_op_remove(struct wt_tier *tier, struct wt_req *req) {
    struct rds *r = wt_backend_state(tier);
    struct rds_op *op = rds_op_new(r, req, sizeof *op, cancel_remove);
    if (!op)
        return;
    char name[RDS_NAME_SIZE];
    uint64_t token;
    uint32_t chunk;
    const char *key;
    struct rds_cmd *cmd;
    int rc;
    if (rds_orphan_parse(req->key, &token, &chunk, &key) == 0) {
        rds_name_chunk(name, token, chunk, key);
        rc = rds_op_issue(op, rds_cmd_key(r, "UNLINK", name), on_chunk_gone);
    } else {
        rds_name_head(name, req->key);
        cmd = rds_cmd_key(r, "GETDEL", name);
        if (cmd)
            cmd->once = true;
        rc = rds_op_issue(op, cmd, on_taken);
    }
    if (rc < 0)
        rds_op_end(op, rc, NULL);
}
