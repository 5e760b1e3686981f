/*
 * LIST, and the count of what is stored that a configured capacity needs.
 *
 * Happy path of a LIST: a worker walks, gathers entries in batches of bounded size, and waits while
 * the loop hands one to on_entry: a slow caller slows the walk. A count is such a walk that only
 * adds up. Failures: canceled: the request ends at once, the worker soon after; its results go
 * nowhere.
 */
#include "tiers/rados/list.h"

#include "tiers/rados/walk.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH_ENTRIES = 256, BATCH_TEXT = 32 << 10 };

struct list_job {
    struct wt_job job;
    struct rados_client *client; /* on the loop only */
    struct rados_call *call;     /* on the loop only; NULL: a count, or nobody waits any more */
    struct rados_walk walk;
    int ended_by; /* what on_entry gave; written by the loop while the worker waits */
    int rc;
    struct wt_err err;
    uint64_t stored;
    size_t n, text_len;
    struct wt_entry entry[BATCH_ENTRIES];
    char text[BATCH_TEXT];
};

static bool stopped(void *arg) {
    return wt_job_stopped(&((struct list_job *)arg)->job);
}

static void job_free(struct wt_job *job) {
    free(job);
}

static void walk_run(struct wt_job *job) {
    struct list_job *j = (struct list_job *)job;
    j->rc = rados_walk(&j->walk, &j->err);
}

static struct list_job *job_new(struct rados_client *c,
                                int (*each)(void *, const struct wt_entry *)) {
    struct list_job *j = calloc(1, sizeof *j);
    if (!j)
        return NULL;
    j->client = c;
    j->walk.url = c->url;
    j->walk.stopped = stopped;
    j->walk.each = each;
    j->walk.arg = j;
    return j;
}

/* ---- list ---- */

struct list_call {
    struct rados_call call;
    struct list_job *job;
};

/* On the loop, while the worker waits. */
static void hand_out(struct wt_job *job) {
    struct list_job *j = (struct list_job *)job;
    if (j->call)
        wt_req_alive(j->call->req);
    /* on_entry may cancel the request, which takes the call from the job; the worker goes on then.
     */
    int rc = 0;
    for (size_t i = 0; i < j->n && rc == 0 && j->call; i++)
        rc = j->call->req->on_entry(j->call->req, &j->entry[i]);
    if (j->call)
        j->ended_by = rc;
}

/* On the worker. 0, or what ends the walk. */
static int flush(struct list_job *j) {
    if (j->n && !wt_job_progress(&j->job))
        return WT_ECANCELED;
    j->n = j->text_len = 0;
    return j->ended_by;
}

static int gather(void *arg, const struct wt_entry *entry) {
    struct list_job *j = arg;
    size_t len = strlen(entry->key) + 1;
    if (j->n == BATCH_ENTRIES || j->text_len + len > sizeof j->text) {
        int rc = flush(j);
        if (rc)
            return rc;
    }
    char *key = j->text + j->text_len;
    memcpy(key, entry->key, len);
    j->text_len += len;
    j->entry[j->n] = *entry;
    j->entry[j->n++].key = key;
    return 0;
}

static void list_run(struct wt_job *job) {
    struct list_job *j = (struct list_job *)job;
    int rc = rados_walk(&j->walk, &j->err);
    j->rc = rc ? rc : flush(j);
}

static void list_done(struct wt_job *job) {
    struct list_job *j = (struct list_job *)job;
    struct rados_call *call = j->call;
    if (call) {
        call->req->err = j->err;
        rados_call_end(call, j->rc);
    }
    free(j);
}

static void list_cancel(struct rados_call *call) {
    struct list_job *j = ((struct list_call *)call)->job;
    j->call = NULL;
    if (wt_job_abandon(&j->job) == WT_ABANDON_DROPPED)
        free(j);
    rados_call_end(call, WT_ECANCELED);
}

static void list_start(struct rados_call *call) {
    const struct wt_req *req = call->req;
    struct list_job *j = job_new(call->client, gather);
    if (!j) {
        rados_call_end(call, WT_ENOMEM);
        return;
    }
    j->job = (struct wt_job){
        .run = list_run, .progress = hand_out, .done = list_done, .discard = job_free};
    j->call = call;
    memcpy(j->walk.prefix, req->key, strlen(req->key) + 1);
    j->walk.flags = req->flags;
    int rc = wt_pool_submit(call->client->pool, &j->job, &call->req->err);
    if (rc < 0) {
        free(j);
        rados_call_end(call, rc);
        return;
    }
    ((struct list_call *)call)->job = j;
    call->cancel = list_cancel;
}

void rados_op_list(struct wt_tier *tier, struct wt_req *req) {
    rados_call_new(tier, req, sizeof(struct list_call), list_start);
}

/* ---- counting what is stored ---- */

static int add_up(void *arg, const struct wt_entry *entry) {
    ((struct list_job *)arg)->stored += entry->size;
    return 0;
}

static void tell_counted(struct rados_client *c, int rc, const struct wt_err *err) {
    struct rados_call *call;
    while ((call = rados_waiting_count(c))) {
        if (rc < 0)
            call->req->err = *err;
        call->then(call, rc);
    }
}

static void count_done(struct wt_job *job) {
    struct list_job *j = (struct list_job *)job;
    struct rados_client *c = j->client;
    c->counting = false;
    c->counted = j->rc == 0;
    if (c->counted)
        c->stored += j->stored;
    tell_counted(c, j->rc, &j->err);
    free(j);
    rados_client_step(c);
}

static int start_count(struct rados_client *c, struct wt_err *err) {
    struct list_job *j = job_new(c, add_up);
    if (!j)
        return wt_err_set(err, WT_ENOMEM, "out of memory to count what is stored");
    j->job = (struct wt_job){.run = walk_run, .done = count_done, .discard = job_free};
    int rc = wt_pool_submit(c->pool, &j->job, err);
    c->counting = rc == 0;
    if (rc < 0)
        free(j);
    else
        c->stored = 0; /* what was put so far will be counted */
    return rc;
}

void rados_need_count(struct rados_call *call, void (*then)(struct rados_call *call, int rc)) {
    struct rados_client *c = call->client;
    int rc = c->counted || c->counting ? 0 : start_count(c, &call->req->err);
    if (rc < 0 || c->counted)
        then(call, rc);
    else
        rados_wait_count(call, then);
}
