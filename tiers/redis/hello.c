/*
 * The greeting of a new connection: AUTH, SELECT, who are you (INFO), are you still what you were
 * (the sentinel). All are sent at once; when the last reply is there, the connection is ready.
 *
 * Failures: a refused AUTH or SELECT ends the connection. Its text is never repeated: it may
 * contain the password. INFO and the sentinel are for people who have the right: without it nothing
 * is lost but the early notice of a restart, a stale header is found out by its missing chunks
 * anyhow.
 */
#include "tiers/redis/internal.h"

#include <stdio.h>
#include <string.h>

enum greet_step { GREET_AUTH, GREET_SELECT, GREET_INFO, GREET_MARK_SET, GREET_MARK_GET };

static void refuse_auth(struct rds_conn *conn, const redisReply *reply) {
    struct wt_err seen;
    int code = WT_EDENIED;
    if (rds_reply_judge(reply->str, (size_t)reply->len, &seen) == RDS_PASSES ||
        strncmp(reply->str, "ERR max number of clients", 25) == 0)
        code = WT_EDOWN;
    if (code == WT_EDOWN)
        conn->doom = seen;
    else
        wt_err_set(&conn->doom, WT_EDENIED,
                   "Redis refused user or password: check them (ACL LIST on the server)");
}

static void on_info(struct rds_conn *conn, const redisReply *reply) {
    char run_id[48];
    struct wt_err seen;
    if (reply->type == REDIS_REPLY_STRING &&
        rds_info_text(reply->str, "run_id", run_id, sizeof run_id))
        rds_node_saw_run_id(conn->node, run_id);
    if (reply->type != REDIS_REPLY_ERROR || strncmp(reply->str, "NOPERM", 6) == 0)
        return;
    if (rds_reply_judge(reply->str, (size_t)reply->len, &seen) != RDS_PASSES)
        conn->doom = seen; /* NOAUTH, protected mode, too many clients */
}

static void ready(struct rds_conn *conn) {
    conn->state = CONN_READY;
    conn->ready_ms = rds_now(conn->node->r);
    uv_timer_stop(&conn->timer);
    rds_node_up(conn->node);
}

static void on_greet(struct rds_cmd *cmd) {
    struct rds_conn *conn = cmd->arg;
    const redisReply *reply = cmd->reply;
    if (!reply)
        return; /* the connection is going anyhow */
    switch ((enum greet_step)cmd->at) {
    case GREET_AUTH:
        if (reply->type == REDIS_REPLY_ERROR)
            refuse_auth(conn, reply);
        break;
    case GREET_SELECT:
        if (reply->type == REDIS_REPLY_ERROR)
            rds_reply_judge(reply->str, (size_t)reply->len, &conn->doom);
        break;
    case GREET_INFO:
        on_info(conn, reply);
        break;
    case GREET_MARK_SET: /* may be refused: a reader */
        break;
    case GREET_MARK_GET:
        rds_node_saw_mark(conn->node, reply);
        break;
    }
    if (--conn->greetings == 0 && !conn->doom.code)
        ready(conn);
}

static int greet(struct rds_conn *conn, enum greet_step step, int argc, const char *const *argv,
                 struct wt_err *err) {
    struct rds_cmd *cmd = rds_cmd_new(conn->node->r, argc, argv, NULL);
    if (!cmd)
        return wt_err_set(err, WT_ENOMEM, "out of memory for a command");
    cmd->greeting = true;
    cmd->done = on_greet;
    cmd->arg = conn;
    cmd->at = step;
    conn->greetings++;
    rds_conn_take(conn, cmd);
    return 0;
}

static int greet_mark(struct rds_conn *conn, struct wt_err *err) {
    struct rds *r = conn->node->r;
    char name[RDS_NAME_SIZE], value[24];
    int rc = 0;
    if (!rds_node_mark(conn->node, name))
        return 0;
    if (!wt_backend_opts(r->tier)->read_only) {
        snprintf(value, sizeof value, "%016llx", (unsigned long long)rds_token_new(r));
        rc = greet(conn, GREET_MARK_SET, 4, (const char *const[]){"SET", name, value, "NX"}, err);
    }
    return rc < 0 ? rc : greet(conn, GREET_MARK_GET, 2, (const char *const[]){"GET", name}, err);
}

int rds_conn_greet(struct rds_conn *conn, struct wt_err *err) {
    const struct rds_url *url = &conn->node->r->url;
    int rc = 0;
    if (url->user[0])
        rc = greet(conn, GREET_AUTH, 3, (const char *const[]){"AUTH", url->user, url->password},
                   err);
    else if (url->password[0])
        rc = greet(conn, GREET_AUTH, 2, (const char *const[]){"AUTH", url->password}, err);
    if (rc == 0 && url->db) {
        char db[16];
        snprintf(db, sizeof db, "%u", url->db);
        rc = greet(conn, GREET_SELECT, 2, (const char *const[]){"SELECT", db}, err);
    }
    if (rc == 0)
        rc = greet(conn, GREET_INFO, 2, (const char *const[]){"INFO", "server"}, err);
    return rc < 0 ? rc : greet_mark(conn, err);
}
