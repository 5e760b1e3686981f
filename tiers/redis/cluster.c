/*
 * Which server of a cluster has which slot.
 *
 * Happy path: the first ready server is asked (CLUSTER SLOTS), its answer becomes the map, commands
 * that waited for it go their way. MOVED corrects one slot at once and asks for a new map; so does
 * a server that cannot be reached. Failures: an answer that does not fit is ignored, another server
 * is asked ASK_EVERY_MS later.
 */
#include "tiers/redis/internal.h"

#include <stdio.h>
#include <string.h>

enum { ASK_EVERY_MS = 100, ASK_FOR_MS = 2000 };

void rds_map_want(struct rds *r) {
    if (r->map.wanted || !r->url.cluster)
        return;
    r->map.wanted = true;
    uint64_t next = r->map.asked_ms + ASK_EVERY_MS, now = rds_now(r);
    rds_wake_at(r, next > now ? next : now);
}

static bool is_int(const redisReply *e, long long max) {
    return e->type == REDIS_REPLY_INTEGER && e->integer >= 0 && e->integer <= max;
}

/* [first, last, [host, port, ...], replicas...]; who: the server that was asked. */
static struct rds_node *parse_range(struct rds *r, const redisReply *e,
                                    const struct rds_node *who) {
    if (e->type != REDIS_REPLY_ARRAY || e->elements < 3 || !is_int(e->element[0], RDS_SLOTS - 1) ||
        !is_int(e->element[1], RDS_SLOTS - 1) || e->element[2]->type != REDIS_REPLY_ARRAY ||
        e->element[2]->elements < 2 || !is_int(e->element[2]->element[1], 65535))
        return NULL;
    const redisReply *host = e->element[2]->element[0];
    struct rds_addr addr = {.port = (uint16_t)e->element[2]->element[1]->integer};
    struct rds_node *node;
    bool named = host->type == REDIS_REPLY_STRING && host->len > 0;
    /* An empty name: the one that we asked. */
    snprintf(addr.host, sizeof addr.host, "%s", named ? host->str : who->addr.host);
    return rds_node_find(r, &addr, &node) == 0 ? node : NULL;
}

static int apply(struct rds *r, const redisReply *reply, const struct rds_node *who) {
    struct rds_node **of = r->map.next;
    size_t covered = 0;
    memset(of, 0, sizeof r->map.next);
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *e = reply->element[i];
        struct rds_node *node = parse_range(r, e, who);
        if (!node)
            continue;
        for (long long s = e->element[0]->integer; s <= e->element[1]->integer; s++, covered++)
            of[s] = node;
    }
    if (covered == 0)
        return WT_EIO;
    /* A slot without server: asked of anyone, who says CLUSTERDOWN or where it is. */
    struct rds_node *some = NULL;
    for (size_t s = 0; s < RDS_SLOTS && !some; s++)
        some = of[s];
    for (uint32_t i = 0; i < r->n_nodes; i++)
        r->node[i]->slots = 0;
    for (size_t s = 0; s < RDS_SLOTS; s++) {
        if (of[s])
            of[s]->slots++;
        else
            of[s] = some;
    }
    memcpy(r->map.of, of, sizeof r->map.of);
    r->map.known = true;
    return 0;
}

/* Commands that wait for the map can go, or learn why there is none. */
static void release_waiting(struct rds *r, const struct wt_err *why) {
    struct rds_queue waiting = {0};
    if (why) {
        rds_queue_fail(&r->waiting, why);
        return;
    }
    rds_queue_move(&r->waiting, &waiting);
    while (waiting.first) {
        struct rds_cmd *first = waiting.first;
        rds_queue_remove(first);
        rds_cmd_route(first);
    }
}

static void on_slots(struct rds_cmd *cmd) {
    struct rds *r = cmd->arg;
    r->map.cmd = NULL;
    struct wt_err why;
    int rc = rds_cmd_expect(cmd, REDIS_REPLY_ARRAY, &why);
    if (rc == 0 && apply(r, cmd->reply, cmd->fixed) == 0) {
        release_waiting(r, NULL);
        return;
    }
    if (rc == 0)
        wt_err_set(&why, WT_EDOWN, "%s: the cluster has no slots yet", cmd->fixed->name);
    rds_map_want(r);
    if (!r->map.known)
        release_waiting(r, &why);
}

/* In turn, so that a server with nonsense to say does not hold us up. */
static struct rds_node *next_ready(struct rds *r) {
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        struct rds_node *node = r->node[r->map.turn++ % r->n_nodes];
        if (rds_node_ready(node))
            return node;
    }
    return NULL;
}

static bool ask(struct rds *r) {
    struct rds_node *node = next_ready(r);
    struct rds_cmd *cmd =
        node ? rds_cmd_new(r, 2, (const char *const[]){"CLUSTER", "SLOTS"}, NULL) : NULL;
    if (!cmd)
        return false;
    cmd->fixed = node;
    cmd->once = true;
    cmd->done = on_slots;
    cmd->arg = r;
    r->map.cmd = cmd;
    rds_cmd_submit(cmd);
    return true;
}

uint64_t rds_map_run(struct rds *r, uint64_t now) {
    struct rds_map *m = &r->map;
    if (r->closing)
        return UINT64_MAX;
    if (m->cmd && now < m->asked_ms + ASK_FOR_MS)
        return m->asked_ms + ASK_FOR_MS;
    if (m->cmd) { /* this one does not answer */
        rds_cmd_drop(m->cmd);
        m->cmd = NULL;
        m->wanted = true;
    }
    if (!m->wanted)
        return UINT64_MAX;
    if (now < m->asked_ms + ASK_EVERY_MS)
        return m->asked_ms + ASK_EVERY_MS;
    m->asked_ms = now;
    m->wanted = !ask(r);
    return now + (m->wanted ? ASK_EVERY_MS : ASK_FOR_MS);
}
