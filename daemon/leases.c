/*
 * See leases.h. One lease is worked on at a time:
 *
 *   idle -> OPEN -> WRITE -> COMMIT -> idle
 *             any failure -> ABORT -> idle
 *   idle -> REMOVE -> idle
 */
#include "daemon/leases.h"

#include "core/lease.h"
#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RENEW_MS = WT_LEASE_LIFE_S * 1000 / 3, AGAIN_MS = 60000 };

struct held {
    struct held *next;
    struct wt_lease lease;
    uint64_t due_ms; /* to be written, or tried again */
    bool there;      /* it may stand in the tier */
    bool leaving;    /* no job reads it any more */
};

struct wt_leases {
    uv_loop_t *loop;
    struct wt_tier *cold;
    const struct wt_catalog *catalog;
    const struct wt_log *log;
    struct held *first;
    struct held *at; /* being worked on */
    struct wt_req req;
    struct wt_put *put;
    char key[WT_LEASE_KEY];
    char *text;
    struct wt_err err; /* of this attempt */
    bool told, stopping;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

struct wt_leases *wt_leases_new(uv_loop_t *loop, struct wt_tier *cold,
                                const struct wt_catalog *catalog, const struct wt_log *log) {
    struct wt_leases *ls = wt_calloc(1, sizeof *ls);
    if (ls)
        *ls = (struct wt_leases){.loop = loop, .cold = cold, .catalog = catalog, .log = log};
    return ls;
}

void wt_leases_free(struct wt_leases *ls) {
    while (ls && ls->first) {
        struct held *h = ls->first;
        ls->first = h->next;
        free(h);
    }
    free(ls);
}

size_t wt_leases_count(const struct wt_leases *ls) {
    size_t n = 0;
    for (const struct held *h = ls->first; h; h = h->next)
        n += h->there;
    return n;
}

/* ---- one at a time ---- */

static void idle(struct wt_leases *ls) {
    free(ls->text);
    ls->text = NULL;
    ls->at = NULL;
    if (ls->stopping && ls->stopped) {
        void (*stopped)(void *arg) = ls->stopped;
        ls->stopped = NULL;
        stopped(ls->stopped_arg); /* may free ls */
    }
}

static void failed(struct wt_leases *ls) {
    if (!ls->told && !ls->stopping)
        wt_log(ls->log, WT_LOG_WARN,
               "no lease on data set %s for the jobs that read it: %s; should it be replaced, its "
               "shards stay for gc's grace time only",
               ls->at->lease.dataset, ls->err.text);
    ls->told = true;
    ls->at->due_ms = uv_now(ls->loop) + AGAIN_MS;
    idle(ls);
}

static void submit(struct wt_leases *ls, struct wt_req req, void (*done)(struct wt_req *req)) {
    ls->req = req;
    ls->req.key = ls->key;
    ls->req.done = done;
    ls->req.arg = ls;
    int rc = wt_tier_submit(ls->cold, &ls->req);
    if (rc == 0)
        return;
    ls->req.rc = rc;
    if (!ls->req.err.code)
        wt_err_set(&ls->req.err, rc, "%s: %s", ls->key, wt_err_text(rc));
    done(&ls->req);
}

static void on_aborted(struct wt_req *req) {
    failed(req->arg);
}

/* true: the step failed, and the attempt is being ended. */
static bool went_wrong(struct wt_leases *ls, const struct wt_req *req) {
    if (req->rc == 0 && !ls->stopping)
        return false;
    ls->err = req->err;
    if (req->rc == 0)
        wt_err_set(&ls->err, WT_ECANCELED, "the daemon is stopping");
    if (ls->put)
        submit(ls, (struct wt_req){.op = WT_OP_PUT_ABORT, .put = ls->put}, on_aborted);
    else
        failed(ls);
    return true;
}

static void on_committed(struct wt_req *req) {
    struct wt_leases *ls = req->arg;
    ls->at->there = true;
    ls->at->due_ms = uv_now(ls->loop) + RENEW_MS;
    if (req->rc == 0) {
        ls->told = false;
        idle(ls);
        return;
    }
    ls->err = req->err;
    failed(ls);
}

static void on_written(struct wt_req *req) {
    struct wt_leases *ls = req->arg;
    if (!went_wrong(ls, req))
        submit(ls, (struct wt_req){.op = WT_OP_PUT_COMMIT, .put = ls->put}, on_committed);
}

static void on_opened(struct wt_req *req) {
    struct wt_leases *ls = req->arg;
    ls->put = req->rc == 0 ? req->put : NULL;
    if (!went_wrong(ls, req))
        submit(ls,
               (struct wt_req){
                   .op = WT_OP_PUT_WRITE, .put = ls->put, .src = ls->text, .len = strlen(ls->text)},
               on_written);
}

static void on_removed(struct wt_req *req) {
    struct wt_leases *ls = req->arg;
    struct held **at = &ls->first;
    bool gone = req->rc == 0 || req->rc == WT_EMISSING;
    ls->at->due_ms = uv_now(ls->loop) + AGAIN_MS;
    while (gone && *at != ls->at)
        at = &(*at)->next;
    if (gone) {
        *at = ls->at->next;
        free(ls->at);
    }
    idle(ls);
}

static void begin(struct wt_leases *ls, struct held *h, bool wanted) {
    size_t len;
    ls->at = h;
    ls->put = NULL;
    ls->err = (struct wt_err){0};
    wt_lease_key(&h->lease, ls->key);
    if (!wanted) {
        submit(ls, (struct wt_req){.op = WT_OP_REMOVE}, on_removed);
        return;
    }
    ls->text = wt_lease_format(&h->lease, &len);
    if (ls->text)
        submit(ls, (struct wt_req){.op = WT_OP_PUT_OPEN, .size = len, .flags = WT_PUT_REPLACE},
               on_opened);
    else
        ls->at = NULL; /* no memory: the next tick tries again */
}

/* ---- which ---- */

static const struct wt_catalog_set *set_of(const struct wt_leases *ls, const struct held *h) {
    return wt_catalog_find(ls->catalog, h->lease.dataset, h->lease.generation);
}

static void add_new(struct wt_leases *ls) {
    for (size_t i = 0; i < ls->catalog->n_sets; i++) {
        const struct wt_catalog_set *set = ls->catalog->set[i];
        struct held *h = ls->first;
        while (h && set_of(ls, h) != set)
            h = h->next;
        if (set->jobs == 0 || h || !(h = wt_calloc(1, sizeof *h)))
            continue;
        wt_lease_init(&h->lease, WT_LEASE_JOB, set->d.m.name, set->d.m.generation,
                      "jobs registered at wafertierd", WT_LEASE_LIFE_S);
        h->next = ls->first;
        ls->first = h;
    }
}

void wt_leases_look(struct wt_leases *ls) {
    uint64_t now = uv_now(ls->loop);
    add_new(ls);
    for (struct held *h = ls->first; h && !ls->at && !ls->stopping; h = h->next) {
        const struct wt_catalog_set *set = set_of(ls, h);
        bool wanted = set && set->jobs;
        if (h->leaving == wanted) {
            h->leaving = !wanted;
            h->due_ms = 0;
        }
        if (now >= h->due_ms) {
            begin(ls, h, wanted);
            return;
        }
    }
}

void wt_leases_stop(struct wt_leases *ls, void (*stopped)(void *arg), void *arg) {
    ls->stopping = true;
    ls->stopped = stopped;
    ls->stopped_arg = arg;
    if (ls->at)
        wt_tier_cancel(&ls->req);
    else
        idle(ls);
}
