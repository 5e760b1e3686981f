/*
 * See tenancy.h. All but begin and end runs on the I/O thread:
 *
 *   write -> OPEN -> WRITE -> COMMIT -> rest -> (a third of the life) -> write
 *              any failure -> ABORT -> rest
 *   end: what is under way is canceled, then REMOVE, then the memory goes. A COMMIT is waited for
 *        (not for long): canceled, it could still be seen through, after the REMOVE.
 */
#include "libloader/tenancy.h"

#include "core/lease.h"
#include "core/mem.h"
#include "libloader/ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REMOVE_MS = 1000, COMMIT_PATIENCE_MS = 1000 };

struct wt_tenancy {
    struct wl_context *ctx;
    struct wt_post start, end;
    struct wt_delay delay;
    struct wt_lease lease;
    char key[WT_LEASE_KEY];
    uint64_t life_ms, due_ns;
    char *text;
    struct wt_req req;
    struct wt_put *put;
    struct wt_err err; /* of this attempt */
    bool busy, committing, ending, tried, told;
};

static void rest(struct wt_tenancy *t);

/* A refusal ends as a failed request does, but for the callback's nesting. */
static void submit(struct wt_tenancy *t, struct wt_req req, void (*done)(struct wt_req *req)) {
    t->req = req;
    t->req.key = t->key;
    t->req.done = done;
    t->req.arg = t;
    t->busy = true;
    struct wt_tier *place = t->ctx->leases ? t->ctx->leases : t->ctx->tier[0];
    int rc = wt_tier_submit(place, &t->req);
    if (rc == 0)
        return;
    t->req.rc = rc;
    if (!t->req.err.code)
        wt_err_set(&t->req.err, rc, "%s: %s", t->key, wt_err_text(rc));
    done(&t->req);
}

/* ---- writing ---- */

/* The step ended; false: it failed, or is not wanted any more. */
static bool went_well(struct wt_tenancy *t, const struct wt_req *req) {
    t->busy = false;
    if (req->rc < 0 && !t->err.code)
        t->err = req->err;
    return req->rc == 0 && !t->ending;
}

static void on_aborted(struct wt_req *req) {
    struct wt_tenancy *t = req->arg;
    t->busy = false;
    t->put = NULL;
    rest(t);
}

static void give_up(struct wt_tenancy *t) {
    if (t->put)
        submit(t, (struct wt_req){.op = WT_OP_PUT_ABORT, .put = t->put}, on_aborted);
    else
        rest(t);
}

static void on_committed(struct wt_req *req) {
    struct wt_tenancy *t = req->arg;
    went_well(t, req);
    t->put = NULL;
    t->committing = false;
    wt_context_undelay(t->ctx, &t->delay);
    rest(t);
}

static void on_written(struct wt_req *req) {
    struct wt_tenancy *t = req->arg;
    if (!went_well(t, req)) {
        give_up(t);
        return;
    }
    t->tried = t->committing = true;
    submit(t, (struct wt_req){.op = WT_OP_PUT_COMMIT, .put = t->put}, on_committed);
}

static void on_opened(struct wt_req *req) {
    struct wt_tenancy *t = req->arg;
    bool well = went_well(t, req);
    t->put = req->rc == 0 ? req->put : NULL;
    if (!well) {
        give_up(t);
        return;
    }
    submit(t,
           (struct wt_req){
               .op = WT_OP_PUT_WRITE, .put = t->put, .src = t->text, .len = strlen(t->text)},
           on_written);
}

static void write_lease(struct wt_tenancy *t) {
    size_t len;
    free(t->text);
    t->err = (struct wt_err){0};
    t->due_ns = wt_now_ns() + t->life_ms / 3 * 1000000;
    t->text = wt_lease_format(&t->lease, &len);
    if (!t->text) {
        wt_err_set(&t->err, WT_ENOMEM, "out of memory for a lease");
        rest(t);
        return;
    }
    submit(t, (struct wt_req){.op = WT_OP_PUT_OPEN, .size = len, .flags = WT_PUT_REPLACE},
           on_opened);
}

/* ---- between and after ---- */

static struct wt_tenancy *of_delay(struct wt_delay *delay) {
    return (struct wt_tenancy *)((char *)delay - offsetof(struct wt_tenancy, delay));
}

/* A flush runs delays early: then it waits on, and this is false. */
static bool is_due(struct wt_tenancy *t) {
    uint64_t now = wt_now_ns();
    if (now >= t->due_ns)
        return true;
    wt_context_delay(t->ctx, &t->delay, (t->due_ns - now) / 1000000 + 1);
    return false;
}

static void on_due(struct wt_delay *delay) {
    struct wt_tenancy *t = of_delay(delay);
    if (is_due(t))
        write_lease(t);
}

static void tell(struct wt_tenancy *t) {
    if (!t->err.code || t->told || t->ending)
        return;
    t->told = true;
    wt_log(&t->ctx->log, t->err.code == WT_EDENIED ? WT_LOG_INFO : WT_LOG_WARN,
           "loader: no lease on data set %s: %s; should it be replaced, its shards stay for gc's "
           "grace time only",
           t->lease.dataset, t->err.text);
}

static void gone(struct wt_tenancy *t) {
    struct wl_context *ctx = t->ctx;
    free(t->text);
    free(t);
    wt_context_tenant(ctx, -1);
}

static void on_removed(struct wt_req *req) {
    gone(req->arg); /* whatever it said: a lease that stays expires */
}

static void rest(struct wt_tenancy *t) {
    tell(t);
    if (!t->ending)
        wt_context_delay(t->ctx, &t->delay, t->life_ms / 3 + 1);
    else if (t->tried)
        submit(t, (struct wt_req){.op = WT_OP_REMOVE, .timeout_ms = REMOVE_MS}, on_removed);
    else
        gone(t);
}

/* ---- begin and end ---- */

static void on_start(struct wt_post *post) {
    struct wt_tenancy *t = (struct wt_tenancy *)((char *)post - offsetof(struct wt_tenancy, start));
    wt_context_tenant(t->ctx, 1);
    write_lease(t);
}

static void on_patience_over(struct wt_delay *delay) {
    struct wt_tenancy *t = of_delay(delay);
    if (is_due(t))
        wt_tier_cancel(&t->req);
}

static void on_end(struct wt_post *post) {
    struct wt_tenancy *t = (struct wt_tenancy *)((char *)post - offsetof(struct wt_tenancy, end));
    t->ending = true;
    if (t->committing) {
        t->delay.run = on_patience_over;
        t->due_ns = wt_now_ns() + COMMIT_PATIENCE_MS * UINT64_C(1000000);
        wt_context_delay(t->ctx, &t->delay, COMMIT_PATIENCE_MS);
        return;
    }
    if (t->busy) {
        wt_tier_cancel(&t->req);
        return;
    }
    wt_context_undelay(t->ctx, &t->delay);
    rest(t);
}

struct wt_tenancy *wt_tenancy_begin(struct wl_context *ctx, const char *dataset,
                                    uint64_t generation, const char *job) {
    struct wt_tenancy *t = ctx->conf.lease ? wt_calloc(1, sizeof *t) : NULL;
    if (!t)
        return NULL;
    t->ctx = ctx;
    t->life_ms = ctx->conf.lease;
    t->delay.run = on_due;
    wt_lease_init(&t->lease, WT_LEASE_JOB, dataset, generation, job, (t->life_ms + 999) / 1000);
    wt_lease_key(&t->lease, t->key);
    t->start.run = on_start;
    wt_context_post(ctx, &t->start);
    return t;
}

void wt_tenancy_end(struct wt_tenancy *t) {
    if (!t)
        return;
    t->end.run = on_end;
    wt_context_post(t->ctx, &t->end);
}
