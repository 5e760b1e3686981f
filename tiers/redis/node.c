/*
 * A server: its connections, the lanes of commands that wait for one, and what tells a restart or a
 * FLUSHALL. Happy path: commands enter a lane; rds_node_flush gives them to the ready connection
 * with the least to do, small ones first. Failures: when no connection is ready and an attempt has
 * failed, the lanes fail at once (in a cluster: are tried again, the slots may have moved), until
 * one is ready again.
 */
#include "tiers/redis/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool same_addr(const struct rds_addr *a, const struct rds_addr *b) {
    return a->port == b->port && strcasecmp(a->host, b->host) == 0;
}

static void make_name(struct rds_node *node) {
    const struct rds_addr *a = &node->addr;
    if (!a->port)
        snprintf(node->name, sizeof node->name, "%s", a->host);
    else
        snprintf(node->name, sizeof node->name, strchr(a->host, ':') ? "[%s]:%u" : "%s:%u", a->host,
                 a->port);
}

static bool has_work(const struct rds_node *node) {
    return node->lane[RDS_SMALL].first || node->lane[RDS_BULK].first;
}

static struct rds_node *new_node(struct rds *r, const struct rds_addr *addr) {
    struct rds_node *node = calloc(1, sizeof *node);
    if (!node)
        return NULL;
    node->r = r;
    node->addr = *addr;
    make_name(node);
    while (node->n_conns < r->url.connections) {
        struct rds_conn *conn = rds_conn_new(node);
        if (!conn)
            break;
        node->conn[node->n_conns++] = conn;
    }
    if (node->n_conns == 0) {
        free(node);
        return NULL;
    }
    return node;
}

/* A server of the past that nothing refers to; clusters change over the months. */
static struct rds_node *find_unused(const struct rds *r) {
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        struct rds_node *node = r->node[i];
        bool used = node->seed || node->slots || has_work(node) || rds_node_trying(node);
        for (size_t s = 0; s < RDS_SLOTS && !used; s++)
            used = r->map.of[s] == node || r->map.next[s] == node;
        if (!used)
            return node;
    }
    return NULL;
}

static int reuse(struct rds *r, const struct rds_addr *addr, struct rds_node **out) {
    struct rds_node *node = r->closing ? NULL : find_unused(r);
    if (!node)
        return WT_ERANGE;
    node->addr = *addr;
    make_name(node);
    node->down = false;
    node->run_id[0] = node->mark[0] = '\0';
    rds_node_hurry(node);
    *out = node;
    return 0;
}

int rds_node_find(struct rds *r, const struct rds_addr *addr, struct rds_node **out) {
    for (uint32_t i = 0; i < r->n_nodes; i++)
        if (same_addr(&r->node[i]->addr, addr)) {
            *out = r->node[i];
            rds_node_hurry(*out);
            return 0;
        }
    if (r->n_nodes == RDS_NODES_MAX || r->closing)
        return reuse(r, addr, out);
    struct rds_node *node = new_node(r, addr);
    if (!node)
        return WT_ENOMEM;
    r->node[r->n_nodes++] = node;
    *out = node;
    rds_node_hurry(node);
    return 0;
}

void rds_node_free(struct rds_node *node) {
    for (uint32_t i = 0; i < node->n_conns; i++)
        free(node->conn[i]);
    free(node);
}

bool rds_node_ready(const struct rds_node *node) {
    for (uint32_t i = 0; i < node->n_conns; i++)
        if (node->conn[i]->state == CONN_READY)
            return true;
    return false;
}

bool rds_node_trying(const struct rds_node *node) {
    for (uint32_t i = 0; i < node->n_conns; i++)
        if (node->conn[i]->state != CONN_IDLE)
            return true;
    return false;
}

void rds_node_hurry(struct rds_node *node) {
    for (uint32_t i = 0; i < node->n_conns; i++)
        if (node->conn[i]->state == CONN_IDLE)
            rds_conn_start(node->conn[i]);
}

/* ---- sending ---- */

static struct rds_conn *pick(const struct rds_node *node, enum rds_lane lane) {
    struct rds_conn *best = NULL;
    for (uint32_t i = 0; i < node->n_conns; i++) {
        struct rds_conn *c = node->conn[i];
        if (c->state != CONN_READY || c->sent.count >= RDS_PIPELINE)
            continue;
        if (lane == RDS_BULK && c->bulks >= node->r->url.depth)
            continue;
        if (!best || c->bulks < best->bulks ||
            (c->bulks == best->bulks && c->sent.count < best->sent.count))
            best = c;
    }
    return best;
}

static void assign(struct rds_node *node, enum rds_lane lane) {
    struct rds_conn *conn;
    while (node->lane[lane].first && (conn = pick(node, lane))) {
        struct rds_cmd *cmd = node->lane[lane].first;
        rds_queue_remove(cmd);
        rds_conn_take(conn, cmd);
    }
}

static void fail_lanes(struct rds_node *node) {
    struct rds_queue all = {0};
    for (int lane = 0; lane < RDS_LANES; lane++)
        rds_queue_move(&node->lane[lane], &all);
    while (all.first) {
        struct rds_cmd *cmd = all.first;
        if (node->r->url.cluster && !cmd->fixed)
            rds_cmd_retry(cmd, &node->why);
        else
            rds_cmd_fail(cmd, &node->why);
    }
}

bool rds_node_wanted(const struct rds_node *node) {
    const struct rds *r = node->r;
    return !r->url.cluster || !r->map.known || node->slots || has_work(node);
}

void rds_node_flush(struct rds_node *node) {
    if (node->down && !rds_node_trying(node)) {
        fail_lanes(node);
        return;
    }
    if (has_work(node) && !rds_node_trying(node))
        rds_node_hurry(node); /* one that was not wanted for a while */
    assign(node, RDS_SMALL);
    assign(node, RDS_BULK);
    for (uint32_t i = 0; i < node->n_conns; i++) {
        struct rds_conn *conn = node->conn[i];
        struct wt_err why;
        if (conn->state != CONN_READY || !conn->writing)
            continue;
        if (rds_conn_write(conn, &why) < 0)
            rds_conn_lost(conn, &why);
        else
            rds_conn_poll(conn);
    }
}

/* ---- up and down ---- */

void rds_node_up(struct rds_node *node) {
    node->down = false;
    rds_kick(node->r);
}

static bool any_alive(const struct rds *r) {
    for (uint32_t i = 0; i < r->n_nodes; i++)
        if (rds_node_ready(r->node[i]) || rds_node_trying(r->node[i]))
            return true;
    return false;
}

void rds_node_failed(struct rds_node *node, const struct wt_err *why) {
    struct rds *r = node->r;
    if (rds_node_ready(node) || rds_node_trying(node))
        return;
    bool news = !node->down;
    node->down = true;
    node->why = *why;
    if (r->url.cluster && r->map.known)
        rds_map_want(r);
    if (!any_alive(r)) {
        if (news && !r->closing)
            wt_backend_down(r->tier, why);
        rds_queue_fail(&r->waiting, why);
    }
    rds_kick(r);
}

/* ---- restarts and flushes ---- */

bool rds_node_mark(const struct rds_node *node, char out[RDS_NAME_SIZE]) {
    const struct rds *r = node->r;
    for (unsigned tag = 0; tag < 65536; tag++) {
        int n = snprintf(out, RDS_NAME_SIZE, "wt:!mark:{%u}", tag);
        if (!r->url.cluster)
            return true;
        if (!r->map.known || node->slots == 0)
            return false;
        if (r->map.of[rds_slot(out, (size_t)n)] == node)
            return true;
    }
    return false;
}

static void contents_gone(struct rds_node *node, const char *how) {
    rds_cache_clear(&node->r->cache);
    rds_count_forget(node->r);
    wt_backend_lost(node->r->tier);
    wt_log(node->r->log, WT_LOG_WARN, "redis %s %s: what it held may be gone", node->name, how);
}

void rds_node_saw_run_id(struct rds_node *node, const char *run_id) {
    if (node->run_id[0] && strcmp(node->run_id, run_id) != 0)
        contents_gone(node, "was restarted");
    snprintf(node->run_id, sizeof node->run_id, "%s", run_id);
}

static void on_mark_set(struct rds_cmd *cmd) {
    struct rds_node *node = cmd->arg;
    if (cmd->rc == 0 && cmd->reply->type == REDIS_REPLY_STATUS)
        memcpy(node->mark, node->new_mark, sizeof node->mark);
}

/* After a flush there is none: a new one, by whoever has the right. */
static void renew_mark(struct rds_node *node) {
    char name[RDS_NAME_SIZE];
    if (wt_backend_opts(node->r->tier)->read_only || !rds_node_mark(node, name))
        return;
    snprintf(node->new_mark, sizeof node->new_mark, "%016llx",
             (unsigned long long)rds_token_new(node->r));
    const char *argv[] = {"SET", name, node->new_mark, "NX"};
    struct rds_cmd *cmd = rds_cmd_new(node->r, 4, argv, NULL);
    if (!cmd)
        return;
    cmd->fixed = node;
    cmd->done = on_mark_set;
    cmd->arg = node;
    rds_cmd_submit(cmd);
}

void rds_node_saw_mark(struct rds_node *node, const redisReply *reply) {
    char mark[sizeof node->mark] = "";
    if (reply->type == REDIS_REPLY_STRING)
        snprintf(mark, sizeof mark, "%.*s", (int)reply->len, reply->str);
    else if (reply->type != REDIS_REPLY_NIL)
        return;
    if (node->mark[0] && strcmp(node->mark, mark) != 0)
        contents_gone(node, "was flushed");
    memcpy(node->mark, mark, sizeof mark);
    if (!mark[0])
        renew_mark(node);
}
