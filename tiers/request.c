/*
 * The way of a request: submit -> queued -> running (at the backend) -> ended -> done().
 *
 * Happy path: checked, entered in the deadline heap, started as soon as one of `depth` places is
 * free, completed by the backend, accounted, done() called, the next one started. Failures: a bad
 * request is refused by submit. One that cannot be served (tier down, read-only) or that is
 * canceled or late while it waits goes to `ended`, which the loop's next turn delivers. At its
 * deadline a running one is canceled at the backend, which ends it when nobody writes to its
 * buffer.
 */
#include "tiers/internal.h"

#include <string.h>

/* ---- lists ---- */

static void list_add(struct req_list *list, struct wt_req *req) {
    req->next = NULL;
    req->prev = list->last;
    if (list->last)
        list->last->next = req;
    else
        list->first = req;
    list->last = req;
    list->count++;
}

static void list_remove(struct req_list *list, struct wt_req *req) {
    if (req->prev)
        req->prev->next = req->next;
    else
        list->first = req->next;
    if (req->next)
        req->next->prev = req->prev;
    else
        list->last = req->prev;
    req->next = req->prev = NULL;
    list->count--;
}

static struct req_list *list_of(struct wt_req *req) {
    struct tier_outstanding *out = &req->tier->out;
    switch (req->state & REQ_PLACE) {
    case REQ_QUEUED:
        return &out->queued;
    case REQ_RUNNING:
        return &out->running;
    default:
        return &out->ended;
    }
}

static void move_to(struct wt_req *req, int where) {
    if (req->state & REQ_PLACE)
        list_remove(list_of(req), req);
    req->state = (req->state & ~REQ_PLACE) | where;
    list_add(list_of(req), req);
}

/* ---- the end of a request ---- */

/* The core's reason for an early end is the one that counts; a real result that was first stays. */
static void settle(struct wt_req *req) {
    if (req->rc != WT_ECANCELED)
        return;
    if (req->state & REQ_CANCELED)
        wt_err_set(&req->err, WT_ECANCELED, "canceled");
    else if (req->state & REQ_TIMED_OUT)
        req->rc = wt_err_set(&req->err, WT_ETIMEDOUT, "%s: no answer after %llu ms%s",
                             wt_op_name(req->op),
                             (unsigned long long)((uv_hrtime() - req->start_ns) / 1000000),
                             req->state & REQ_SERVED ? "" : ", still waiting for its turn");
}

static void fill_error(struct wt_req *req) {
    if (req->rc < 0 && req->err.code == 0)
        wt_err_set(&req->err, req->rc, "%s", wt_err_text(req->rc));
    req->err.code = req->rc < 0 ? req->rc : 0;
}

static void explain(struct wt_tier *tier, struct wt_req *req, const char *key) {
    if (req->rc >= 0)
        return;
    if (key && *key)
        wt_err_wrap(&req->err, "tier %s (%s): %s", tier->opts.name, tier->shown, key);
    else
        wt_err_wrap(&req->err, "tier %s (%s)", tier->opts.name, tier->shown);
}

/* Requests on a put carry no key of their own: the backend names it. */
static const char *key_of(const struct wt_req *req) {
    bool on_put =
        req->op == WT_OP_PUT_WRITE || req->op == WT_OP_PUT_COMMIT || req->op == WT_OP_PUT_ABORT;
    return on_put || req->op == WT_OP_USAGE || req->op == WT_OP_PROBE ? NULL : req->key;
}

static void count_bytes(struct wt_tier_stats *s, const struct wt_req *req) {
    if (req->rc < 0)
        return;
    if (req->op == WT_OP_GET)
        s->bytes_read += req->got;
    else if (req->op == WT_OP_MAP && req->map)
        s->bytes_read += wt_map_view(req->map).size;
    else if (req->op == WT_OP_PUT_WRITE)
        s->bytes_written += req->len;
}

static void count(struct wt_tier *tier, struct wt_req *req) {
    struct wt_tier_stats *s = &tier->stats;
    s->ops[req->op]++;
    count_bytes(s, req);
    if (req->rc >= 0 && req->op == WT_OP_GET)
        wt_hist_add(&s->get, req->elapsed_us);
    if (req->rc >= 0 && req->op == WT_OP_PUT_WRITE)
        wt_hist_add(&s->put, req->elapsed_us);
    if (req->rc >= 0)
        return;
    s->missing += req->rc == WT_EMISSING;
    s->corrupt += req->rc == WT_ECORRUPT || req->rc == WT_ECHANGED;
    s->timeouts += req->rc == WT_ETIMEDOUT;
    s->cancels += req->rc == WT_ECANCELED;
    if (req->rc == WT_EMISSING || req->rc == WT_ECANCELED)
        return;
    s->errors[req->op]++;
    memcpy(s->last_error, req->err.text, sizeof s->last_error);
}

/* What a served request teaches about the tier. */
/* A request that waited in our own queue for most of its time says little about the tier. */
static bool hardly_served(const struct wt_req *req, uint64_t now) {
    return req->rc == WT_ETIMEDOUT && now - req->served_ns < (now - req->start_ns) / 2;
}

static void learn(struct wt_tier *tier, struct wt_req *req, uint64_t now) {
    if (hardly_served(req, now))
        return;
    if (req->op == WT_OP_GET) {
        double us = (double)(now - req->served_ns) / 1000;
        if (req->rc == 0)
            wt_cost_sample(&tier->cost, req->got, us, now);
        else if (req->rc == WT_ETIMEDOUT)
            wt_cost_failed(&tier->cost, us, now);
    }
    if (req == &tier->probe && req->rc < 0 && tier->breaker.open) /* why it is down by now */
        memcpy(tier->down_why, req->err.text, sizeof tier->down_why);
    switch (wt_breaker_result(&tier->breaker, req->rc, req == &tier->probe)) {
    case WT_BREAKER_OPENS:
        tier_went_down(tier, req->err.text);
        break;
    case WT_BREAKER_CLOSES:
        tier_came_back(tier);
        break;
    default:
        break;
    }
}

/* `req` has left its list. After done() it is the caller's and may be gone. */
static void finish(struct wt_tier *tier, struct wt_req *req) {
    uint64_t now = uv_hrtime();
    settle(req);
    fill_error(req);
    wt_deadlines_remove(&tier->deadlines, req);
    tier->out.bytes -= req->weight;
    tier_put_ended(tier, req);
    req->elapsed_us = (now - req->start_ns) / 1000;
    if (req->state & REQ_SERVED)
        learn(tier, req, now);
    explain(tier, req, key_of(req));
    count(tier, req);
    req->state = 0;
    req->done(req);
}

static void pump(struct wt_tier *tier);

void wt_req_complete(struct wt_req *req) {
    struct wt_tier *tier = req->tier;
    if (!wt_filters_up(tier->filters, req))
        return;
    list_remove(list_of(req), req);
    finish(tier, req);
    pump(tier);
    tier_close_step(tier);
}

static void on_idle(uv_idle_t *idle) {
    tier_run_ended(idle->data);
}

void wt_req_later(struct wt_req *req) {
    struct wt_tier *tier = req->tier;
    move_to(req, REQ_ENDED);
    tier_end_soon(tier);
}

void tier_end_soon(struct wt_tier *tier) {
    uv_idle_start(&tier->idle, on_idle);
}

void tier_run_ended(struct wt_tier *tier) {
    /* Only those of now: done() may end further ones, which come at the next turn. */
    for (uint32_t n = tier->out.ended.count; n > 0 && tier->out.ended.first; n--) {
        struct wt_req *req = tier->out.ended.first;
        if (!wt_filters_up(tier->filters, req)) {
            move_to(req, REQ_RUNNING);
            continue;
        }
        list_remove(&tier->out.ended, req);
        finish(tier, req);
    }
    if (!tier->out.ended.first)
        uv_idle_stop(&tier->idle);
    pump(tier);
    tier_close_step(tier);
}

/* ---- its start ---- */

static void start(struct wt_tier *tier, struct wt_req *req) {
    move_to(req, REQ_RUNNING);
    req->state |= REQ_SERVED;
    req->served_ns = uv_hrtime();
    wt_filters_down(tier->filters, req);
}

static void pump(struct wt_tier *tier) {
    while (tier->out.queued.first && tier->out.running.count < tier->depth)
        start(tier, tier->out.queued.first);
}

static bool writes(const struct wt_req *req) {
    switch (req->op) {
    case WT_OP_PUT_OPEN:
    case WT_OP_REMOVE:
    case WT_OP_LOCK:
        return true;
    default:
        return false;
    }
}

/* Why the tier will not serve this request now; 0 when it will. The ends of puts and probes pass
 * even when it is down: the ones must free what they hold, the others ask. */
static int unservable(struct wt_tier *tier, struct wt_req *req) {
    if (tier->opts.read_only && writes(req))
        return wt_err_set(&req->err, WT_EDENIED, "the tier is configured read_only");
    bool passes = req->op == WT_OP_PROBE || req->op == WT_OP_PUT_ABORT ||
                  req->op == WT_OP_PUT_COMMIT || req->op == WT_OP_UNLOCK;
    if (tier->breaker.open && !passes)
        return wt_err_set(&req->err, WT_EDOWN, "the tier is down (%.250s)", tier->down_why);
    return 0;
}

static void on_deadline(uv_timer_t *timer) {
    tier_run_deadlines(timer->data);
}

/* The timer runs in milliseconds of a cached clock: it may fire early, and is then armed again. */
static void arm(struct wt_tier *tier) {
    struct wt_req *first = wt_deadlines_first(&tier->deadlines);
    if (!first || (tier->armed_ns && tier->armed_ns <= first->deadline_ns))
        return;
    uint64_t now = uv_hrtime();
    uint64_t wait_ns = first->deadline_ns > now ? first->deadline_ns - now : 0;
    tier->armed_ns = first->deadline_ns;
    uv_timer_start(&tier->deadline_timer, on_deadline, wait_ns / 1000000 + 1, 0);
}

static uint64_t deadline_of(const struct wt_tier *tier, const struct wt_req *req) {
    uint64_t ms = req->timeout_ms
                      ? req->timeout_ms
                      : wt_tier_deadline(tier, tier->out.bytes + tier_request_bytes(req));
    return ms * 1000000;
}

static void clear_results(struct wt_req *req) {
    req->rc = 0;
    req->err.code = req->err.sys = 0;
    req->err.text[0] = '\0';
    req->got = 0;
    req->map = NULL;
    req->used = req->capacity = req->elapsed_us = 0;
    req->state = 0;
    req->level = 0;
    req->next = req->prev = NULL;
}

int wt_tier_submit(struct wt_tier *tier, struct wt_req *req) {
    clear_results(req);
    req->tier = tier;
    req->rc = tier_check_request(tier, req);
    if (req->rc == 0) {
        req->start_ns = uv_hrtime();
        req->deadline_ns = req->start_ns + deadline_of(tier, req);
        if (wt_deadlines_add(&tier->deadlines, req) < 0)
            req->rc = wt_err_set(&req->err, WT_ENOMEM, "no memory for one more request");
    }
    if (req->rc < 0) {
        explain(tier, req, NULL);
        return req->rc;
    }
    req->weight = tier_request_bytes(req);
    tier->out.bytes += req->weight;
    tier_put_accepted(tier, req);
    arm(tier);
    req->rc = unservable(tier, req);
    if (req->rc < 0) {
        wt_req_later(req);
    } else if (req->op == WT_OP_PROBE) {
        start(tier, req); /* waits for nobody */
    } else {
        move_to(req, REQ_QUEUED);
        pump(tier);
    }
    return 0;
}

/* ---- early ends ---- */

static void end_early(struct wt_req *req, int why) {
    int place = req->state & REQ_PLACE;
    if (!place || place == REQ_ENDED || (req->state & why))
        return;
    bool asked = (req->state & (REQ_CANCELED | REQ_TIMED_OUT)) != 0;
    req->state |= why;
    if (place == REQ_QUEUED) {
        req->rc = WT_ECANCELED;
        wt_req_later(req);
    } else if (!asked && !wt_filters_cancel(req->tier->filters, req)) {
        req->tier->backend->cancel(req->tier, req);
    }
}

void wt_tier_cancel(struct wt_req *req) {
    if (req->tier)
        end_early(req, REQ_CANCELED);
}

void tier_cancel_all(struct wt_tier *tier) {
    while (tier->out.queued.first)
        end_early(tier->out.queued.first, REQ_CANCELED);
    struct wt_req *next;
    for (struct wt_req *req = tier->out.running.first; req; req = next) {
        next = req->next; /* cancel may move it to `ended` */
        end_early(req, REQ_CANCELED);
    }
}

void tier_refuse_queued(struct wt_tier *tier) {
    struct wt_req *next;
    for (struct wt_req *req = tier->out.queued.first; req; req = next) {
        next = req->next;
        req->rc = unservable(tier, req);
        if (req->rc < 0)
            wt_req_later(req);
    }
}

void tier_run_deadlines(struct wt_tier *tier) {
    uint64_t now = uv_hrtime();
    struct wt_req *req;
    while ((req = wt_deadlines_first(&tier->deadlines)) && req->deadline_ns <= now) {
        end_early(req, REQ_TIMED_OUT);
        /* It stays in the heap until it completes, but out of the way. */
        req->deadline_ns = UINT64_MAX;
        wt_deadlines_moved(&tier->deadlines, req);
    }
    tier->armed_ns = 0;
    if (req && req->deadline_ns != UINT64_MAX)
        arm(tier);
}

void wt_req_alive(struct wt_req *req) {
    if (req->timeout_ms || (req->state & REQ_TIMED_OUT))
        return;
    req->deadline_ns = uv_hrtime() + (uint64_t)wt_tier_deadline(req->tier, 0) * 1000000;
    wt_deadlines_moved(&req->tier->deadlines, req);
}

/* ---- the core's own probe ---- */

static void on_probe(struct wt_req *probe) {
    struct wt_tier *tier = probe->arg;
    tier->probing = false;
    if (tier->breaker.open && !tier->closing)
        tier_arm_probe(tier);
}

void tier_start_probe(struct wt_tier *tier) {
    tier->probe = (struct wt_req){.op = WT_OP_PROBE, .done = on_probe, .arg = tier};
    tier->probing = wt_tier_submit(tier, &tier->probe) == 0;
    if (!tier->probing)
        tier_arm_probe(tier);
}
