/*
 * PROBE and USAGE.
 *
 * PROBE asks for an object that is not there: "no such object" from a pool that exists is the good
 * answer. USAGE with a configured capacity: what lies in the namespace, counted once. Without: asks
 * the monitors (`ceph df detail`) on a worker: bytes stored in the pool; its quota, or what is
 * stored and can still be. Without a manager they know nothing: then what this client put, without
 * a limit.
 */
#include "tiers/rados/list.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* ---- probe ---- */

struct probe_call {
    struct rados_call call;
    struct rados_aio aio;
};

static void probe_pool(struct rados_call *call, int rc) {
    rados_call_end(call, rc);
}

static void probe_end(struct rados_aio *aio) {
    struct rados_call *call = aio->call;
    if (aio->rc == -ENOENT)
        rados_confirm_pool(call, probe_pool);
    else
        rados_call_end_rados(call, aio->rc, "probing");
}

static void probe_go(struct rados_aio *aio) {
    rados_aio_fly_stat(aio, "@probe", NULL); /* no key begins so */
}

static void probe_start(struct rados_call *call) {
    struct probe_call *p = (struct probe_call *)call;
    p->aio = (struct rados_aio){.call = call, .go = probe_go, .end = probe_end};
    rados_aio_begin(call->client, &p->aio);
}

void rados_op_probe(struct wt_tier *tier, struct wt_req *req) {
    rados_call_new(tier, req, sizeof(struct probe_call), probe_start);
}

/* ---- usage ---- */

struct usage_job {
    struct wt_job job;
    struct rados_call *call; /* on the loop only; NULL: nobody waits any more */
    struct rados_conn *conn;
    char pool[RADOS_NAME_SIZE];
    uint64_t stored, available, quota;
    int rc;
    struct wt_err err;
};

struct usage_call {
    struct rados_call call;
    struct usage_job *job;
};

static uint64_t number(const json_t *object, const char *name) {
    json_int_t v = json_integer_value(json_object_get(object, name));
    return v > 0 ? (uint64_t)v : 0;
}

/* A pool that they do not name yet has no figures. */
static void read_df(struct usage_job *j, const char *text, size_t len) {
    json_t *df = json_loadb(text, len, 0, NULL), *pool;
    size_t i;
    json_array_foreach(json_object_get(df, "pools"), i, pool) {
        const char *name = json_string_value(json_object_get(pool, "name"));
        if (!name || strcmp(name, j->pool) != 0)
            continue;
        const json_t *stats = json_object_get(pool, "stats");
        j->stored = number(stats, "stored");
        j->available = number(stats, "max_avail");
        j->quota = number(stats, "quota_bytes");
    }
    json_decref(df);
}

static void usage_run(struct wt_job *job) {
    struct usage_job *j = (struct usage_job *)job;
    static const char *const df = "{\"prefix\":\"df\",\"detail\":\"detail\",\"format\":\"json\"}";
    const char *cmd[] = {df};
    char *out = NULL, *status = NULL;
    size_t out_len = 0, status_len = 0;
    int rc =
        rados_mon_command(j->conn->cluster, cmd, 1, "", 0, &out, &out_len, &status, &status_len);
    if (rc < 0)
        j->rc = rados_error(&j->err, rc, "asking the monitors (ceph df)");
    else
        read_df(j, out, out_len);
    rados_buffer_free(out);
    rados_buffer_free(status);
    rados_conn_unref(j->conn);
}

static void usage_free(struct wt_job *job) {
    free(job);
}

/* The pool's figures are not those of a namespace in it. */
static void usage_counted(struct rados_call *call, int rc) {
    call->req->used = call->client->stored;
    rados_call_end(call, rc);
}

static void usage_done(struct wt_job *job) {
    struct usage_job *j = (struct usage_job *)job;
    struct rados_call *call = j->call;
    struct wt_req *req = call->req;
    const struct rados_client *c = call->client;
    call->cancel = NULL;
    req->used = j->stored > c->stored ? j->stored : c->stored;
    req->capacity = j->quota ? j->quota : j->available ? j->stored + j->available : 0;
    req->err = j->err;
    int rc = j->rc;
    free(j);
    if (rc == 0 && c->url.nspace[0] && !call->canceled)
        rados_need_count(call, usage_counted);
    else
        rados_call_end(call, call->canceled && rc == 0 ? WT_ECANCELED : rc);
}

static void usage_cancel(struct rados_call *call) {
    struct usage_job *j = ((struct usage_call *)call)->job;
    enum wt_abandon how = wt_job_abandon(&j->job);
    if (how == WT_ABANDON_ENDED)
        return; /* usage_done comes */
    if (how == WT_ABANDON_DROPPED) {
        atomic_fetch_sub(&j->conn->refs, 1); /* the client has one as well */
        free(j);
    }
    rados_call_end(call, WT_ECANCELED);
}

static void ask_monitors(struct rados_call *call) {
    struct usage_job *j = calloc(1, sizeof *j);
    if (!j) {
        rados_call_end(call, WT_ENOMEM);
        return;
    }
    j->job = (struct wt_job){.run = usage_run, .done = usage_done, .discard = usage_free};
    j->call = call;
    j->conn = call->client->conn;
    memcpy(j->pool, call->client->url.pool, sizeof j->pool);
    rados_conn_ref(j->conn);
    int rc = wt_pool_submit(call->client->pool, &j->job, &call->req->err);
    if (rc < 0) {
        atomic_fetch_sub(&j->conn->refs, 1);
        free(j);
        rados_call_end(call, rc);
        return;
    }
    ((struct usage_call *)call)->job = j;
    call->cancel = usage_cancel;
}

static void usage_start(struct rados_call *call) {
    call->req->capacity = wt_backend_opts(call->client->tier)->capacity;
    if (call->req->capacity)
        rados_need_count(call, usage_counted);
    else
        ask_monitors(call);
}

void rados_op_usage(struct wt_tier *tier, struct wt_req *req) {
    rados_call_new(tier, req, sizeof(struct usage_call), usage_start);
}
