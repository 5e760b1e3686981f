/*
 * The Redis tier: open, close, the tables; see redis.h.
 *
 * Happy path: open reads the URL and begins to connect; nothing blocks. Commands are sent at the
 * loop's next turn (idle handle), what must wait has its time (timer). Close lets chores end for a
 * second, then closes every handle; the last one frees the tier's state. Failures: bad URLs,
 * certificates that cannot be read, passwords that are not there fail the open. A server that is
 * away is a tier that is down (node.c).
 */
#include "tiers/redis/redis.h"
#include "tiers/forms.h"
#include "tiers/redis/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { CLOSE_MS = 1000 };

uint64_t rds_now(const struct rds *r) {
    return uv_now(r->loop);
}

uint64_t rds_token_new(struct rds *r) {
    uint32_t noise = 0;
    if (getrandom(&noise, sizeof noise, GRND_NONBLOCK) != (ssize_t)sizeof noise)
        noise = (uint32_t)uv_hrtime() ^ (uint32_t)uv_os_getpid() << 16;
    noise += (uint32_t)++r->tokens;
    return (uint64_t)time(NULL) << 32 | noise;
}

/* ---- the loop's turns ---- */

static void on_idle(uv_idle_t *idle) {
    struct rds *r = idle->data;
    uv_idle_stop(idle);
    for (uint32_t i = 0; i < r->n_nodes; i++)
        rds_node_flush(r->node[i]);
}

void rds_kick(struct rds *r) {
    if (!r->closing)
        uv_idle_start(&r->idle, on_idle);
}

static void shut(struct rds *r);

static void on_timer(uv_timer_t *timer) {
    struct rds *r = timer->data;
    uint64_t now = rds_now(r);
    r->armed_ms = 0;
    if (r->close_by_ms && (!r->chores || now >= r->close_by_ms)) {
        shut(r);
        return;
    }
    uint64_t due[] = {rds_cmds_run_delayed(r, now), rds_chores_run(r, now), rds_map_run(r, now),
                      r->close_by_ms ? now + 5 : UINT64_MAX};
    for (size_t i = 0; i < sizeof due / sizeof due[0]; i++)
        if (due[i] != UINT64_MAX)
            rds_wake_at(r, due[i]);
}

void rds_wake_at(struct rds *r, uint64_t ms) {
    if (r->closing || (r->armed_ms && r->armed_ms <= ms))
        return;
    uint64_t now = rds_now(r);
    r->armed_ms = ms ? ms : 1;
    uv_timer_start(&r->timer, on_timer, ms > now ? ms - now : 0, 0);
}

/* ---- close ---- */

void rds_handle_closed(struct rds *r) {
    if (--r->handles)
        return;
    struct wt_tier *tier = r->tier;
    for (uint32_t i = 0; i < r->n_nodes; i++)
        rds_node_free(r->node[i]);
    rds_cache_clear(&r->cache);
    rds_tls_ctx_free(r->tls);
    explicit_bzero(r->url.password, sizeof r->url.password);
    free(r);
    wt_backend_closed(tier);
}

static void on_handle_closed(uv_handle_t *handle) {
    rds_handle_closed(handle->data);
}

static void fail_all(struct rds *r, struct rds_queue *q) {
    struct wt_err why;
    (void)r;
    wt_err_set(&why, WT_ECANCELED, "the tier is closing");
    rds_queue_fail(q, &why);
}

/* Nothing waits for an answer any more. */
static void shut(struct rds *r) {
    r->closing = true;
    rds_chores_free(r);
    rds_count_stop(r);
    if (r->map.cmd)
        rds_cmd_drop(r->map.cmd);
    r->map.cmd = NULL;
    fail_all(r, &r->waiting);
    fail_all(r, &r->delayed);
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        struct rds_node *node = r->node[i];
        for (int lane = 0; lane < RDS_LANES; lane++)
            fail_all(r, &node->lane[lane]);
        for (uint32_t k = 0; k < node->n_conns; k++)
            rds_conn_close(node->conn[k]);
    }
    uv_close((uv_handle_t *)&r->idle, on_handle_closed);
    uv_close((uv_handle_t *)&r->timer, on_handle_closed);
}

static void close_redis(struct wt_tier *tier) {
    struct rds *r = wt_backend_state(tier);
    r->close_by_ms = rds_now(r) + CLOSE_MS;
    for (struct rds_chore *c = r->chores; c; c = c->next)
        c->due_ms = 0;
    rds_wake_at(r, rds_now(r));
}

/* ---- open ---- */

static void init_handles(struct rds *r) {
    /* Neither can fail. */
    uv_idle_init(r->loop, &r->idle);
    uv_timer_init(r->loop, &r->timer);
    r->idle.data = r->timer.data = r;
    r->handles = 2;
}

static int prepare(struct rds *r, const char *url, struct wt_err *err) {
    int rc = rds_url_parse(url, &r->url, err);
    if (rc == 0 && r->url.tls)
        rc = rds_tls_ctx_new(&r->url, &r->tls, err);
    return rc;
}

static int open_redis(struct wt_tier *tier, const char *url, struct wt_err *err) {
    struct rds *r = calloc(1, sizeof *r);
    if (!r)
        return wt_err_set(err, WT_ENOMEM, "out of memory for a redis tier");
    r->tier = tier;
    r->loop = wt_backend_loop(tier);
    r->log = wt_backend_log(tier);
    int rc = prepare(r, url, err);
    if (rc < 0) {
        free(r);
        return rc;
    }
    wt_backend_set(tier, r);
    wt_backend_url(tier, r->url.shown);
    if (!r->url.tls_verify)
        wt_log(r->log, WT_LOG_WARN, "redis %s: tls_verify=0: any certificate is accepted",
               r->url.shown);
    init_handles(r);
    uv_update_time(r->loop);
    for (size_t i = 0; i < r->url.n_seeds; i++) {
        struct rds_node *node;
        if (rds_node_find(r, &r->url.seed[i], &node) == 0)
            node->seed = true;
    }
    if (r->url.cluster)
        rds_map_want(r);
    return 0;
}

static unsigned caps_of(const struct wt_tier *tier) {
    return WT_CAP_VOLATILE | (wt_backend_opts(tier)->read_only ? 0 : WT_CAP_WRITE);
}

static void cancel_redis(struct wt_tier *tier, struct wt_req *req) {
    (void)tier;
    struct rds_op *op = req->priv[0];
    if (op)
        op->cancel(op);
}

/* What may vanish at a restart cannot keep a lock. */
static void op_lock(struct wt_tier *tier, struct wt_req *req) {
    (void)tier;
    req->priv[0] = NULL;
    req->rc = wt_err_set(&req->err, WT_EUNSUPPORTED,
                         "Redis forgets at a restart: it cannot keep a lock; the cold tier does");
    wt_req_later(req);
}

#define REDIS_BACKEND(scheme_, help_, prior_)                                                      \
    {                                                                                              \
        .scheme = scheme_, .help = help_, .depth = 16, .prior_us = prior_, .open = open_redis,     \
        .close = close_redis, .caps = caps_of, .cancel = cancel_redis, .drop = rds_put_drop,       \
        .describe = rds_describe,                                                                  \
        .op = {                                                                                    \
            [WT_OP_STAT] = rds_op_stat,                                                            \
            [WT_OP_GET] = rds_op_get,                                                              \
            [WT_OP_PUT_OPEN] = rds_op_put_open,                                                    \
            [WT_OP_PUT_WRITE] = rds_op_put_write,                                                  \
            [WT_OP_PUT_COMMIT] = rds_op_put_commit,                                                \
            [WT_OP_PUT_ABORT] = rds_op_put_abort,                                                  \
            [WT_OP_REMOVE] = rds_op_remove,                                                        \
            [WT_OP_LIST] = rds_op_list,                                                            \
            [WT_OP_USAGE] = rds_op_usage,                                                          \
            [WT_OP_PROBE] = rds_op_probe,                                                          \
            [WT_OP_LOCK] = op_lock,                                                                \
            [WT_OP_UNLOCK] = op_lock,                                                              \
        },                                                                                         \
    }

const struct wt_backend wt_backend_redis = REDIS_BACKEND("redis", WT_FORM_REDIS, 200);
const struct wt_backend wt_backend_rediss = REDIS_BACKEND("rediss", WT_FORM_REDISS, 300);
const struct wt_backend wt_backend_redis_unix =
    REDIS_BACKEND("redis+unix", WT_FORM_REDIS_UNIX, 100);
const struct wt_backend wt_backend_redis_cluster =
    REDIS_BACKEND("redis+cluster", WT_FORM_REDIS_CLUSTER, 200);
