/*
 * USAGE and PROBE: questions to every server.
 *
 * Happy path: a first command by key makes sure that the slots of a cluster are known; then each
 * server with slots is asked. USAGE: the bytes of all objects (list.c), and what more there is room
 * for. Room is what the server with the least of it, for its share of the slots, lets in: maxmemory
 * less 5%, less what its clients have in flight (replies count as used memory). Failures: a server
 * that does not answer is an error; one that refuses INFO (no right) leaves us blind, and its own
 * -OOM is then the only limit.
 */
#include "tiers/redis/internal.h"

#include <string.h>

enum { SPARE_PERCENT = 5 };

/* ---- the survey ---- */

static bool has_data(const struct rds *r, const struct rds_node *node) {
    return r->url.cluster ? node->slots > 0 : true;
}

static int ask_all(struct rds_op *op, uint32_t *next,
                   struct rds_cmd *(*make)(struct rds_node *node),
                   void (*done)(struct rds_cmd *cmd)) {
    struct rds *r = op->r;
    for (; *next < r->n_nodes && op->busy < RDS_WINDOW; ++*next) {
        struct rds_node *node = r->node[*next];
        if (!has_data(r, node))
            continue;
        struct rds_cmd *cmd = make(node);
        if (cmd)
            cmd->fixed = node;
        int rc = rds_op_issue(op, cmd, done);
        if (rc < 0)
            return rc;
        rds_node_hurry(node);
    }
    return op->busy > 0;
}

static struct rds_cmd *make_info(struct rds_node *node) {
    return rds_cmd_new(node->r, 1, (const char *const[]){"INFO"}, NULL);
}

int rds_survey_ask(struct rds_op *op, struct rds_survey *s, void (*done)(struct rds_cmd *cmd)) {
    if (s->next_node == 0)
        s->room = UINT64_MAX;
    return ask_all(op, &s->next_node, make_info, done);
}

static void check_policy(struct rds *r, const struct rds_node *node, const char *info) {
    char policy[32];
    if (r->warned_policy || !rds_info_text(info, "maxmemory_policy", policy, sizeof policy) ||
        strcmp(policy, "noeviction") == 0)
        return;
    r->warned_policy = true;
    wt_log(r->log, WT_LOG_WARN,
           "redis %s: maxmemory-policy is %s: parts of objects will vanish; set it to noeviction",
           node->name, policy);
}

/* What still goes into this server, as bytes of objects that spread over all. */
static uint64_t room_of(const struct rds *r, const struct rds_node *node, uint64_t used,
                        uint64_t max, uint64_t clients) {
    uint64_t flight = clients * r->url.depth * RDS_CHUNK;
    uint64_t limit = max - max / 100 * SPARE_PERCENT;
    limit = flight < limit ? limit - flight : 0;
    uint64_t room = used < limit ? limit - used : 0;
    if (!r->url.cluster || node->slots == 0)
        return room;
    return room / node->slots * RDS_SLOTS;
}

int rds_survey_add(struct rds *r, struct rds_survey *s, struct rds_cmd *cmd, struct wt_err *err) {
    int rc = rds_cmd_expect(cmd, REDIS_REPLY_STRING, err);
    if (rc == WT_EDENIED) {
        s->blind = true;
        return 0;
    }
    if (rc < 0)
        return rc;
    const char *info = cmd->reply->str;
    uint64_t used = 0, max = 0, clients = 0;
    if (!rds_info_number(info, "used_memory", &used))
        return wt_err_set(err, WT_EIO, "%s: INFO does not tell used_memory", cmd->fixed->name);
    rds_info_number(info, "maxmemory", &max);
    rds_info_number(info, "connected_clients", &clients);
    check_policy(r, cmd->fixed, info);
    rds_about_note(&cmd->fixed->about, info);
    uint64_t room = max ? room_of(r, cmd->fixed, used, max, clients) : UINT64_MAX;
    if (room < s->room)
        s->room = room;
    return 0;
}

/* ---- USAGE ---- */

struct usage_op {
    struct rds_op op;
    struct rds_survey survey;
    struct rds_waiter waiter;
};

static void cancel_usage(struct rds_op *op) {
    struct usage_op *u = (struct usage_op *)op;
    rds_count_leave(op->r, &u->waiter);
    rds_op_end(op, WT_ECANCELED, NULL);
}

static void end_usage(struct usage_op *u, int rc, const struct wt_err *err) {
    struct rds *r = u->op.r;
    uint64_t limit = wt_backend_opts(r->tier)->capacity;
    if (rc == 0) {
        uint64_t used = r->count.used, room = u->survey.room;
        if (room < UINT64_MAX - used && (!limit || used + room < limit))
            limit = used + room;
        u->op.req->used = used;
        u->op.req->capacity = limit;
    }
    rds_op_end(&u->op, rc, err);
}

static void on_usage_counted(struct rds_waiter *w, int rc, const struct wt_err *err) {
    struct usage_op *u = (struct usage_op *)((char *)w - offsetof(struct usage_op, waiter));
    end_usage(u, rc, err);
}

static void go_on_usage(struct usage_op *u, int rc, struct wt_err *err);

static void on_usage(struct rds_cmd *cmd) {
    struct usage_op *u = rds_op_replied(cmd);
    struct wt_err err = {0};
    go_on_usage(u, rds_survey_add(u->op.r, &u->survey, cmd, &err), &err);
}

static void go_on_usage(struct usage_op *u, int rc, struct wt_err *err) {
    if (rc == 0)
        rc = rds_survey_ask(&u->op, &u->survey, on_usage);
    if (rc > 0)
        return;
    if (rc == 0 && u->survey.blind)
        rc = wt_err_set(err, WT_EDENIED, "this user may not INFO: add +info to its ACL rules");
    if (rc == 0)
        rc = rds_count_want(u->op.r, &u->waiter);
    if (rc <= 0)
        end_usage(u, rc, err);
}

static void on_slots_known(struct rds_cmd *cmd) {
    struct usage_op *u = rds_op_replied(cmd);
    struct wt_err err = cmd->err;
    if (cmd->rc == 0 && !u->op.r->url.cluster) /* it was the sentinel */
        rds_node_saw_mark(u->op.r->node[0], cmd->reply);
    go_on_usage(u, cmd->rc, &err);
}

void rds_op_usage(struct wt_tier *tier, struct wt_req *req) {
    struct rds *r = wt_backend_state(tier);
    struct usage_op *u = rds_op_new(r, req, sizeof *u, cancel_usage);
    if (!u)
        return;
    u->waiter.ready = on_usage_counted;
    if (rds_op_issue(&u->op, rds_cmd_any(r), on_slots_known) < 0)
        rds_op_end(&u->op, WT_ENOMEM, NULL);
}

/* ---- PROBE ---- */

struct probe_op {
    struct rds_op op;
    uint32_t next_node;
};

static void cancel_probe(struct rds_op *op) {
    rds_op_end(op, WT_ECANCELED, NULL);
}

static struct rds_cmd *make_mark(struct rds_node *node) {
    char name[RDS_NAME_SIZE];
    if (!rds_node_mark(node, name))
        return rds_cmd_any(node->r);
    return rds_cmd_key(node->r, "GET", name);
}

static void go_on_probe(struct probe_op *p, int rc, const struct wt_err *err);

static void on_mark(struct rds_cmd *cmd) {
    struct probe_op *p = rds_op_replied(cmd);
    if (cmd->rc == 0 && cmd->reply)
        rds_node_saw_mark(cmd->fixed, cmd->reply);
    go_on_probe(p, cmd->rc, &cmd->err);
}

static void go_on_probe(struct probe_op *p, int rc, const struct wt_err *err) {
    if (rc == 0)
        rc = ask_all(&p->op, &p->next_node, make_mark, on_mark);
    if (rc <= 0)
        rds_op_end(&p->op, rc, err);
}

static void on_probe_key(struct rds_cmd *cmd) {
    struct probe_op *p = rds_op_replied(cmd);
    go_on_probe(p, cmd->rc, &cmd->err);
}

/* A probe does not wait for the next attempt to connect: it makes it. */
void rds_op_probe(struct wt_tier *tier, struct wt_req *req) {
    struct rds *r = wt_backend_state(tier);
    struct probe_op *p = rds_op_new(r, req, sizeof *p, cancel_probe);
    if (!p)
        return;
    for (uint32_t i = 0; i < r->n_nodes; i++)
        if (rds_node_wanted(r->node[i]))
            rds_node_hurry(r->node[i]);
    if (rds_op_issue(&p->op, rds_cmd_any(r), on_probe_key) < 0)
        rds_op_end(&p->op, WT_ENOMEM, NULL);
}
