/*
 * The life of a command: made, routed to a server, sent, replied to, ended; and what happens to it
 * when a server says "not now" or "not here".
 *
 * Happy path: rds_cmd_submit puts it in a lane of its server; the loop's next turn sends it
 * (node.c); its reply ends it. Failures: MOVED and ASK lead to another server (RDS_REDIRECTS times
 * at most); LOADING and the like are tried again after 10, 20, 40... ms until RDS_RETRY_MS are
 * over; all else ends it.
 */
#include "tiers/redis/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_WAIT_MS = 10, MAX_WAIT_MS = 200 };

/* ---- queues ---- */

void rds_queue_add(struct rds_queue *q, struct rds_cmd *cmd) {
    cmd->queue = q;
    cmd->next = NULL;
    cmd->prev = q->last;
    if (q->last)
        q->last->next = cmd;
    else
        q->first = cmd;
    q->last = cmd;
    q->count++;
}

void rds_queue_push(struct rds_queue *q, struct rds_cmd *cmd) {
    cmd->queue = q;
    cmd->prev = NULL;
    cmd->next = q->first;
    if (q->first)
        q->first->prev = cmd;
    else
        q->last = cmd;
    q->first = cmd;
    q->count++;
}

void rds_queue_remove(struct rds_cmd *cmd) {
    struct rds_queue *q = cmd->queue;
    if (!q)
        return;
    if (cmd->prev)
        cmd->prev->next = cmd->next;
    else
        q->first = cmd->next;
    if (cmd->next)
        cmd->next->prev = cmd->prev;
    else
        q->last = cmd->prev;
    q->count--;
    cmd->queue = NULL;
    cmd->next = cmd->prev = NULL;
}

void rds_queue_move(struct rds_queue *from, struct rds_queue *to) {
    while (from->first) {
        struct rds_cmd *cmd = from->first;
        rds_queue_remove(cmd);
        rds_queue_add(to, cmd);
    }
}

/* Callbacks may drop others of the queue, and submit new ones: those stay. */
void rds_queue_fail(struct rds_queue *q, const struct wt_err *why) {
    struct rds_queue all = {0};
    rds_queue_move(q, &all);
    while (all.first)
        rds_cmd_fail(all.first, why);
}

/* ---- making ---- */

static struct rds_cmd *new_cmd(struct rds *r) {
    struct rds_cmd *cmd = calloc(1, sizeof *cmd);
    if (cmd)
        cmd->r = r;
    return cmd;
}

struct rds_cmd *rds_cmd_new(struct rds *r, int argc, const char *const *argv, const size_t *lens) {
    struct rds_cmd *cmd = new_cmd(r);
    if (!cmd)
        return NULL;
    const char **args = (const char **)argv; /* hiredis does not change them */
    int len = redisFormatCommandArgv(&cmd->text, argc, args, lens);
    if (len < 0) {
        free(cmd);
        return NULL;
    }
    cmd->text_len = (size_t)len;
    if (r->url.cluster && argc > 1)
        cmd->slot = rds_slot(argv[1], lens ? lens[1] : strlen(argv[1]));
    return cmd;
}

struct rds_cmd *rds_cmd_key(struct rds *r, const char *verb, const char *name) {
    return rds_cmd_new(r, 2, (const char *const[]){verb, name}, NULL);
}

struct rds_cmd *rds_cmd_any(struct rds *r) {
    return rds_cmd_key(r, "GET", "wt:!mark:{0}");
}

struct rds_cmd *rds_cmd_set(struct rds *r, const char *name, const void *body, size_t len) {
    struct rds_cmd *cmd = new_cmd(r);
    size_t room = strlen(name) + 80;
    char *text = malloc(room);
    if (!cmd || !text) {
        free(cmd);
        free(text);
        return NULL;
    }
    int n =
        snprintf(text, room, "*3\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$%zu\r\n", strlen(name), name, len);
    cmd->text = text;
    cmd->text_len = (size_t)n;
    cmd->body = body;
    cmd->body_len = len;
    cmd->lane = RDS_BULK;
    if (r->url.cluster)
        cmd->slot = rds_slot(name, strlen(name));
    return cmd;
}

struct rds_cmd *rds_cmd_read(struct rds *r, const char *name, uint32_t off, size_t len, bool whole,
                             void *sink) {
    struct rds_cmd *cmd;
    if (whole) {
        cmd = rds_cmd_key(r, "GET", name);
    } else {
        char from[16], to[32];
        snprintf(from, sizeof from, "%u", off);
        snprintf(to, sizeof to, "%zu", off + len - 1);
        cmd = rds_cmd_new(r, 4, (const char *const[]){"GETRANGE", name, from, to}, NULL);
    }
    if (!cmd)
        return NULL;
    cmd->lane = RDS_BULK;
    cmd->reads_body = true;
    cmd->sink = sink;
    cmd->sink_len = len;
    return cmd;
}

void rds_cmd_free(struct rds_cmd *cmd) {
    if (cmd->text)
        explicit_bzero(cmd->text, cmd->text_len); /* AUTH has the password */
    free(cmd->text);
    free(cmd->body_copy);
    if (cmd->reply)
        freeReplyObject(cmd->reply);
    free(cmd);
}

/* ---- routing ---- */

static struct rds_node *server_of(struct rds_cmd *cmd) {
    if (cmd->fixed)
        return cmd->fixed;
    if (cmd->target)
        return cmd->target;
    struct rds *r = cmd->r;
    return r->url.cluster ? (r->map.known ? r->map.of[cmd->slot] : NULL) : r->node[0];
}

void rds_cmd_route(struct rds_cmd *cmd) {
    struct rds *r = cmd->r;
    struct rds_node *node = server_of(cmd);
    if (node) {
        rds_queue_add(&node->lane[cmd->lane], cmd);
        rds_kick(r);
    } else {
        rds_queue_add(&r->waiting, cmd);
        rds_map_want(r);
    }
}

void rds_cmd_submit(struct rds_cmd *cmd) {
    cmd->give_up_ms = rds_now(cmd->r) + RDS_RETRY_MS;
    rds_cmd_route(cmd);
}

void rds_cmd_drop(struct rds_cmd *cmd) {
    cmd->done = NULL;
    cmd->sink = NULL;
    if (cmd->conn && rds_conn_keeps(cmd->conn, cmd))
        return;
    rds_queue_remove(cmd);
    rds_cmd_free(cmd);
}

/* ---- ends ---- */

void rds_cmd_end(struct rds_cmd *cmd) {
    rds_queue_remove(cmd);
    cmd->conn = NULL;
    if (cmd->done)
        cmd->done(cmd);
    rds_cmd_free(cmd);
}

void rds_cmd_fail(struct rds_cmd *cmd, const struct wt_err *why) {
    cmd->err = *why;
    cmd->rc = why->code;
    rds_cmd_end(cmd);
}

void rds_cmd_rewind(struct rds_cmd *cmd) {
    rds_queue_remove(cmd);
    cmd->conn = NULL;
    cmd->target = NULL;
    cmd->asking = false;
    cmd->skip = 0;
    cmd->nil = false;
    cmd->body_seen = 0;
    if (cmd->reply)
        freeReplyObject(cmd->reply);
    cmd->reply = NULL;
}

void rds_cmd_retry(struct rds_cmd *cmd, const struct wt_err *why) {
    uint64_t now = rds_now(cmd->r);
    if (!cmd->done || cmd->r->closing || now >= cmd->give_up_ms) {
        rds_cmd_fail(cmd, why);
        return;
    }
    rds_cmd_rewind(cmd);
    cmd->wait_ms = !cmd->wait_ms                    ? FIRST_WAIT_MS
                   : cmd->wait_ms * 2 < MAX_WAIT_MS ? cmd->wait_ms * 2
                                                    : MAX_WAIT_MS;
    cmd->due_ms = now + cmd->wait_ms;
    rds_queue_add(&cmd->r->delayed, cmd);
    rds_wake_at(cmd->r, cmd->due_ms);
}

uint64_t rds_cmds_run_delayed(struct rds *r, uint64_t now) {
    uint64_t next = UINT64_MAX;
    struct rds_cmd *following;
    for (struct rds_cmd *cmd = r->delayed.first; cmd; cmd = following) {
        following = cmd->next;
        if (cmd->due_ms <= now) {
            rds_queue_remove(cmd);
            rds_cmd_route(cmd);
        } else if (cmd->due_ms < next) {
            next = cmd->due_ms;
        }
    }
    return next;
}

/* ---- replies ---- */

static void redirect(struct rds_cmd *cmd, bool ask, const struct wt_err *why) {
    struct rds *r = cmd->r;
    uint16_t slot;
    struct rds_addr to;
    struct rds_node *node;
    bool good = r->url.cluster && !cmd->fixed && cmd->redirects++ < RDS_REDIRECTS &&
                rds_reply_redirect(cmd->reply->str, &slot, &to) == 0;
    if (good && !to.host[0] && cmd->conn)
        snprintf(to.host, sizeof to.host, "%s", cmd->conn->node->addr.host);
    if (!good || rds_node_find(r, &to, &node) < 0) {
        struct wt_err err = *why;
        rds_map_want(r);
        if (!r->url.cluster)
            wt_err_set(&err, WT_EDOWN, "this server is part of a cluster: write redis+cluster://");
        rds_cmd_fail(cmd, &err);
        return;
    }
    if (!ask) {
        r->map.of[slot] = node;
        rds_map_want(r);
    }
    rds_cmd_rewind(cmd);
    cmd->target = ask ? node : NULL;
    cmd->asking = ask;
    rds_cmd_route(cmd);
}

void rds_cmd_replied(struct rds_cmd *cmd) {
    const redisReply *reply = cmd->reply;
    if (!reply || reply->type != REDIS_REPLY_ERROR || cmd->greeting || !cmd->done) {
        rds_cmd_end(cmd);
        return;
    }
    struct wt_err why;
    enum rds_verdict verdict = rds_reply_judge(reply->str, (size_t)reply->len, &why);
    switch (verdict) {
    case RDS_MOVED:
    case RDS_ASK:
        redirect(cmd, verdict == RDS_ASK, &why);
        break;
    case RDS_PASSES:
        if (cmd->r->url.cluster)
            rds_map_want(cmd->r);
        rds_cmd_retry(cmd, &why);
        break;
    default:
        rds_cmd_fail(cmd, &why);
        break;
    }
}
