/* One request after the other; see successor.h. */
#include "daemon/successor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void end(struct wt_successor *s) {
    free(s->text);
    free(s->next);
    s->text = s->next = NULL;
    s->busy = false;
    s->done(s, s->err.code, &s->err);
}

static void on_aborted(struct wt_req *req) {
    end(req->arg);
}

/* The first error counts. */
static void fail(struct wt_successor *s, int rc, const struct wt_err *err) {
    if (!s->err.code && err && err->code)
        s->err = *err;
    else if (!s->err.code)
        wt_err_set(&s->err, rc, "%s: %s", s->key, wt_err_text(rc));
    if (!s->put) {
        end(s);
        return;
    }
    s->req = (struct wt_req){.op = WT_OP_PUT_ABORT, .put = s->put, .done = on_aborted, .arg = s};
    s->put = NULL;
    if (wt_tier_submit(s->cold, &s->req) < 0)
        end(s);
}

/* false: it failed, and the end has come. */
static bool submit(struct wt_successor *s, struct wt_req req) {
    s->req = req;
    s->req.arg = s;
    int rc = s->canceled ? WT_ECANCELED : 0;
    bool changes = req.op == WT_OP_PUT_OPEN || req.op == WT_OP_PUT_COMMIT;
    if (rc == 0 && changes && !s->may(s->arg))
        rc = wt_err_set(&s->req.err, WT_ELOCKED, "%s: the lock is no longer held", s->key);
    if (rc == 0)
        rc = wt_tier_submit(s->cold, &s->req);
    if (rc < 0)
        fail(s, rc, &s->req.err);
    return rc == 0;
}

static bool went_well(struct wt_successor *s) {
    int rc = s->req.rc == 0 && s->canceled ? WT_ECANCELED : s->req.rc;
    if (rc < 0)
        fail(s, rc, s->req.rc < 0 ? &s->req.err : NULL);
    return rc == 0;
}

/* ---- writing ---- */

static void look(struct wt_successor *s);

static void on_committed(struct wt_req *req) {
    struct wt_successor *s = req->arg;
    s->put = NULL;
    if (!went_well(s))
        return;
    if (s->target == s->retired)
        look(s);
    else
        end(s);
}

static void on_written(struct wt_req *req);

static void write_on(struct wt_successor *s) {
    size_t left = s->src_len - s->at;
    if (left == 0)
        submit(s, (struct wt_req){.op = WT_OP_PUT_COMMIT, .put = s->put, .done = on_committed});
    else
        submit(s, (struct wt_req){.op = WT_OP_PUT_WRITE,
                                  .put = s->put,
                                  .off = s->at,
                                  .src = s->src + s->at,
                                  .len = left < WT_PART ? left : (size_t)WT_PART,
                                  .done = on_written});
}

static void on_written(struct wt_req *req) {
    struct wt_successor *s = req->arg;
    s->at += req->len;
    if (went_well(s))
        write_on(s);
}

static void on_opened(struct wt_req *req) {
    struct wt_successor *s = req->arg;
    s->put = req->rc == 0 ? req->put : NULL;
    if (went_well(s))
        write_on(s);
}

static void replace(struct wt_successor *s, const char *target, const char *src, size_t len) {
    s->target = target;
    s->src = src;
    s->src_len = len;
    s->at = 0;
    submit(s, (struct wt_req){.op = WT_OP_PUT_OPEN,
                              .key = target,
                              .size = len,
                              .flags = WT_PUT_REPLACE,
                              .done = on_opened});
}

/* ---- reading ---- */

/* Nobody may have published in the meantime. */
static int check(struct wt_successor *s, size_t got) {
    if (got != s->len || !wt_hash_equal(wt_hash(s->text, got), s->manifest))
        return wt_err_set(&s->err, WT_ECHANGED, "%s: another manifest has come meanwhile", s->key);
    if (s->next)
        return 0;
    s->next = wt_manifest_flushed(s->text, got, s->now_s, &s->err);
    return s->next ? 0 : s->err.code;
}

static void on_read(struct wt_req *req) {
    struct wt_successor *s = req->arg;
    if (!went_well(s))
        return;
    int rc = check(s, req->got);
    if (rc < 0)
        fail(s, rc, NULL);
    else if (!s->again)
        replace(s, s->retired, s->text, s->len);
    else
        replace(s, s->key, s->next, strlen(s->next));
}

static void on_stat(struct wt_req *req) {
    struct wt_successor *s = req->arg;
    if (!went_well(s))
        return;
    s->again = s->text != NULL;
    if (req->size > WT_MANIFEST_MAX || (s->again && req->size != s->len)) {
        fail(s, wt_err_set(&s->err, WT_ECHANGED, "%s: another manifest has come", s->key), NULL);
        return;
    }
    s->len = (size_t)req->size;
    if (!s->again)
        s->text = malloc(s->len + 1); /* one byte more shows that it has grown */
    if (!s->text)
        fail(s, wt_err_set(&s->err, WT_ENOMEM, "no memory for %s", s->key), NULL);
    else
        submit(s, (struct wt_req){.op = WT_OP_GET,
                                  .key = s->key,
                                  .buf = s->text,
                                  .len = s->len + 1,
                                  .done = on_read});
}

static void look(struct wt_successor *s) {
    submit(s, (struct wt_req){.op = WT_OP_STAT, .key = s->key, .done = on_stat});
}

void wt_successor_start(struct wt_successor *s) {
    s->busy = true;
    s->canceled = s->again = false;
    s->put = NULL;
    s->text = s->next = NULL;
    s->err = (struct wt_err){0};
    wt_manifest_name(s->name, s->key);
    wt_retired_name(s->name, s->generation, s->retired);
    look(s);
}

void wt_successor_cancel(struct wt_successor *s) {
    s->canceled = true;
    /* What publishes or takes back is let end: its outcome is then known. */
    if (s->busy && s->req.op != WT_OP_PUT_COMMIT && s->req.op != WT_OP_PUT_ABORT)
        wt_tier_cancel(&s->req);
}
