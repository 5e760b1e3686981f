/*
 * The requests of a fetch; see fetch.h. A range is read in parts of 8 MiB, WT_FETCH_REQS at a time,
 * straight to where it is wanted; a mapping is one request.
 *
 * Happy path: all parts came, wt_fetch_read_done with rc 0. Failures: the first one counts, the
 * other parts are cancelled and waited for: nobody writes to the memory when the end is told.
 */
#include "libloader/fetch.h"

static void on_done(struct wt_req *req);

static void note_failure(struct wt_fetch *f, const struct wt_err *err, int rc) {
    if (f->rc)
        return;
    f->rc = rc;
    f->err = *err;
    if (!f->err.code)
        wt_err_set(&f->err, rc, "%s", wt_err_text(rc));
    for (unsigned i = 0; i < WT_FETCH_REQS; i++)
        if (f->flying[i])
            wt_tier_cancel(&f->req[i]);
}

/* Submits parts until enough are in flight. */
static void read_more(struct wt_fetch *f) {
    struct wt_tier *tier = f->l->ctx->tier[wt_fetch_tier_of(f)];
    for (unsigned i = 0; i < WT_FETCH_REQS && f->next < f->end && !f->rc; i++) {
        if (f->flying[i])
            continue;
        uint64_t n = f->end - f->next < WT_PART ? f->end - f->next : (uint64_t)WT_PART;
        f->req[i] = (struct wt_req){.op = WT_OP_GET,
                                    .key = f->key,
                                    .off = f->next,
                                    .buf = f->dst + (f->next - f->begin),
                                    .len = (size_t)n,
                                    .done = on_done,
                                    .arg = f};
        int rc = wt_tier_submit(tier, &f->req[i]);
        if (rc) {
            note_failure(f, &f->req[i].err, rc);
            return;
        }
        f->flying[i] = true;
        f->n_flying++;
        f->next += n;
    }
}

static void request_ended(struct wt_fetch *f) {
    if (f->n_flying)
        return;
    wt_count(&f->l->meter.stage[WT_AT_FETCH].busy_ns, wt_now_ns() - f->step_ns);
    wt_fetch_read_done(f);
}

static void on_done(struct wt_req *req) {
    struct wt_fetch *f = req->arg;
    f->flying[req - f->req] = false;
    f->n_flying--;
    if (req->rc == 0 && req->op == WT_OP_GET && req->got != req->len) {
        wt_err_set(&req->err, WT_ECORRUPT, "the copy ends at byte %llu of %llu",
                   (unsigned long long)(req->off + req->got),
                   (unsigned long long)f->chunk->rec.size);
        req->rc = WT_ECORRUPT;
    }
    if (req->rc) {
        if (wt_fetch_step_of(f) == WT_FETCH_MAP && req->map)
            wt_map_release(req->map);
        note_failure(f, &req->err, req->rc);
    } else if (req->op == WT_OP_MAP) {
        f->chunk->kept = wt_keeper_add(f->l->ctx->keeper, f->chunk->rec.hash,
                                       (unsigned)wt_fetch_tier_of(f), req->map);
        if (!f->chunk->kept)
            f->rc = wt_err_set(&f->err, WT_ENOMEM, "out of memory for a mapping");
    } else {
        read_more(f);
    }
    request_ended(f);
}

void wt_fetch_read(struct wt_fetch *f, enum wt_fetch_step step, uint8_t *dst, uint64_t begin,
                   uint64_t end) {
    wt_fetch_set_step(f, step);
    f->dst = dst;
    f->begin = f->next = begin;
    f->end = end;
    f->rc = 0;
    f->step_ns = wt_now_ns();
    read_more(f);
    request_ended(f);
}

void wt_fetch_map(struct wt_fetch *f) {
    wt_fetch_set_step(f, WT_FETCH_MAP);
    f->rc = 0;
    f->step_ns = wt_now_ns();
    f->req[0] = (struct wt_req){.op = WT_OP_MAP, .key = f->key, .done = on_done, .arg = f};
    int rc = wt_tier_submit(f->l->ctx->tier[wt_fetch_tier_of(f)], &f->req[0]);
    if (rc) {
        note_failure(f, &f->req[0].err, rc);
    } else {
        f->flying[0] = true;
        f->n_flying = 1;
    }
    request_ended(f);
}
