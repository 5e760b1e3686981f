/* One request after the other; see whole.h. */
#include "daemon/whole.h"

#include <stdlib.h>

static void end(struct wt_whole *w) {
    struct wt_err err = w->err;
    w->busy = false;
    w->done(w->arg, err.code, &err); /* may begin anew, or free it */
}

static void on_aborted(struct wt_req *req) {
    end(req->arg);
}

static void fail(struct wt_whole *w, int rc, const struct wt_err *err) {
    if (err && err->code)
        w->err = *err;
    else
        wt_err_set(&w->err, rc, "%s: %s", w->key, wt_err_text(rc));
    struct wt_put *put = w->put;
    w->put = NULL;
    w->req = (struct wt_req){.op = WT_OP_PUT_ABORT, .put = put, .done = on_aborted, .arg = w};
    if (!put || wt_tier_submit(w->tier, &w->req) < 0)
        end(w);
}

static void submit(struct wt_whole *w, struct wt_req req) {
    w->req = req;
    w->req.key = w->key;
    w->req.arg = w;
    int rc = w->canceled ? WT_ECANCELED : 0;
    bool changes = req.op == WT_OP_PUT_OPEN || req.op == WT_OP_PUT_COMMIT;
    if (rc == 0 && changes && w->may && !w->may(w->arg))
        rc = wt_err_set(&w->req.err, WT_ELOCKED, "%s: this daemon does not hold the lock any more",
                        w->key);
    if (rc == 0)
        rc = wt_tier_submit(w->tier, &w->req);
    if (rc < 0)
        fail(w, rc, &w->req.err);
}

/* false: it failed, and is being ended. */
static bool went_well(struct wt_whole *w) {
    int rc = w->req.rc == 0 && w->canceled ? WT_ECANCELED : w->req.rc;
    if (rc < 0)
        fail(w, rc, w->req.rc < 0 ? &w->req.err : NULL);
    return rc == 0;
}

static void begin(struct wt_whole *w) {
    w->busy = true;
    w->canceled = false;
    w->put = NULL;
    w->err = (struct wt_err){0};
}

/* ---- read ---- */

static void on_read(struct wt_req *req) {
    struct wt_whole *w = req->arg;
    char *text = w->text;
    w->text = NULL;
    if (!went_well(w)) {
        free(text);
    } else if (req->got != w->len) {
        free(text);
        wt_err_set(&w->err, WT_ECHANGED, "%s changed while it was read", w->key);
        fail(w, WT_ECHANGED, &w->err);
    } else {
        w->text = text;
        end(w);
    }
}

static void on_stat(struct wt_req *req) {
    struct wt_whole *w = req->arg;
    if (!went_well(w))
        return;
    if (req->size > w->most) {
        wt_err_set(&w->err, WT_ERANGE, "%s has more than %zu bytes", w->key, w->most);
        fail(w, WT_ERANGE, &w->err);
        return;
    }
    w->len = (size_t)req->size;
    w->text = malloc(w->len + 1); /* one byte more shows that it has grown */
    if (!w->text)
        fail(w, WT_ENOMEM, NULL);
    else
        submit(w, (struct wt_req){
                      .op = WT_OP_GET, .buf = w->text, .len = w->len + 1, .done = on_read});
}

void wt_whole_read(struct wt_whole *w) {
    begin(w);
    submit(w, (struct wt_req){.op = WT_OP_STAT, .done = on_stat});
}

/* ---- write ---- */

static void on_committed(struct wt_req *req) {
    struct wt_whole *w = req->arg;
    w->put = NULL;
    if (req->rc < 0)
        fail(w, req->rc, &req->err);
    else
        end(w);
}

static void on_written(struct wt_req *req);

static void write_on(struct wt_whole *w) {
    size_t left = w->len - w->at;
    if (left == 0)
        submit(w, (struct wt_req){.op = WT_OP_PUT_COMMIT, .put = w->put, .done = on_committed});
    else
        submit(w, (struct wt_req){.op = WT_OP_PUT_WRITE,
                                  .put = w->put,
                                  .off = w->at,
                                  .src = w->src + w->at,
                                  .len = left < WT_PART ? left : (size_t)WT_PART,
                                  .done = on_written});
}

static void on_written(struct wt_req *req) {
    struct wt_whole *w = req->arg;
    w->at += req->len;
    if (went_well(w))
        write_on(w);
}

static void on_opened(struct wt_req *req) {
    struct wt_whole *w = req->arg;
    w->put = req->rc == 0 ? req->put : NULL;
    if (went_well(w))
        write_on(w);
}

void wt_whole_write(struct wt_whole *w, const char *text, size_t len) {
    begin(w);
    w->src = text;
    w->len = len;
    w->at = 0;
    submit(w, (struct wt_req){
                  .op = WT_OP_PUT_OPEN, .size = len, .flags = WT_PUT_REPLACE, .done = on_opened});
}

void wt_whole_cancel(struct wt_whole *w) {
    w->canceled = true;
    if (w->busy && w->req.op != WT_OP_PUT_COMMIT && w->req.op != WT_OP_PUT_ABORT)
        wt_tier_cancel(&w->req);
}
