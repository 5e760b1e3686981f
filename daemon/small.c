/* A small object in the cold tier; see small.h. */
#include "daemon/small.h"

#include <stdlib.h>

static void end(struct wt_small *s, int rc, const struct wt_err *err) {
    s->busy = false;
    s->done(s->arg, rc, err);
}

/* `done` of the request comes in any case. */
static void submit(struct wt_small *s, struct wt_req req, void (*done)(struct wt_req *req)) {
    s->req = req;
    s->req.key = s->key;
    s->req.done = done;
    s->req.arg = s;
    int rc = wt_tier_submit(s->tier, &s->req);
    if (rc == 0)
        return;
    s->req.rc = rc;
    if (!s->req.err.code)
        wt_err_set(&s->req.err, rc, "%s: %s", s->key, wt_err_text(rc));
    done(&s->req);
}

/* ---- read ---- */

static void on_read(struct wt_req *req) {
    struct wt_small *s = req->arg;
    struct wt_err err = req->err;
    char *text = s->text;
    int rc = req->rc;
    s->len = req->got;
    if (rc == 0 && s->len > WT_SMALL_MAX)
        rc = wt_err_set(&err, WT_ERANGE, "%s has more than %d bytes", s->key, WT_SMALL_MAX);
    end(s, rc, &err);
    free(text);
}

void wt_small_read(struct wt_small *s) {
    struct wt_err err;
    s->busy = true;
    s->text = malloc(WT_SMALL_MAX + 1);
    if (!s->text)
        end(s, wt_err_set(&err, WT_ENOMEM, "%s: out of memory", s->key), &err);
    else
        submit(s, (struct wt_req){.op = WT_OP_GET, .buf = s->text, .len = WT_SMALL_MAX + 1},
               on_read);
}

/* ---- write ---- */

static void on_aborted(struct wt_req *req) {
    struct wt_small *s = req->arg;
    end(s, s->err.code, &s->err);
}

static bool locked_out(struct wt_small *s) {
    if (!s->may || s->may(s->arg))
        return false;
    wt_err_set(&s->err, WT_ELOCKED, "%s: this daemon does not hold the lock any more", s->key);
    return true;
}

/* true: it went wrong, and is being ended. */
static bool went_wrong(struct wt_small *s, const struct wt_req *req) {
    s->err = req->err;
    if (req->rc == 0 && !locked_out(s))
        return false;
    if (s->put)
        submit(s, (struct wt_req){.op = WT_OP_PUT_ABORT, .put = s->put}, on_aborted);
    else
        end(s, s->err.code, &s->err);
    return true;
}

static void on_committed(struct wt_req *req) {
    struct wt_small *s = req->arg;
    struct wt_err err = req->err;
    end(s, req->rc, &err);
}

static void on_written(struct wt_req *req) {
    struct wt_small *s = req->arg;
    if (!went_wrong(s, req))
        submit(s, (struct wt_req){.op = WT_OP_PUT_COMMIT, .put = s->put}, on_committed);
}

static void on_opened(struct wt_req *req) {
    struct wt_small *s = req->arg;
    s->put = req->rc == 0 ? req->put : NULL;
    if (!went_wrong(s, req))
        submit(s,
               (struct wt_req){.op = WT_OP_PUT_WRITE, .put = s->put, .src = s->text, .len = s->len},
               on_written);
}

void wt_small_write(struct wt_small *s, char *text, size_t len) {
    s->busy = true;
    s->text = text;
    s->len = len;
    s->put = NULL;
    if (locked_out(s))
        end(s, s->err.code, &s->err);
    else
        submit(s, (struct wt_req){.op = WT_OP_PUT_OPEN, .size = len, .flags = WT_PUT_REPLACE},
               on_opened);
}

void wt_small_cancel(struct wt_small *s) {
    if (s->busy)
        wt_tier_cancel(&s->req);
}
