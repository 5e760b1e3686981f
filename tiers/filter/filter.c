/*
 * The chain of a tier's filters; see filter.h.
 *
 * Happy path: a request goes down filter by filter and to the backend; when that ends it, up
 * again. req->level is how many filters have yet to see it on its way up. One that a filter holds
 * stands in `held`, ordered by its time, and the chain's timer lets it go. Failures: a filter that
 * ends a request sends it up from there, with the loop's next turn. A held one that is canceled or
 * late ends the same way; where it was the end of a put, the backend drops that put, since it will
 * not see the request. What is canceled or late is not held on its way up.
 */
#include "tiers/filter/filter.h"

#include "core/conf.h"
#include "core/mem.h"
#include "tiers/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILTERS = 8 };

struct wt_filters {
    struct filter {
        const struct wt_filter_ops *ops;
        void *state;
    } filter[MAX_FILTERS];
    unsigned n;
    struct wt_req *first, *last; /* held, by held_ns */
    uv_timer_t timer;            /* armed for the first of them */
};

static const struct wt_filter_ops *const known[] = {&wt_filter_fault, &wt_filter_delay,
                                                    &wt_filter_throttle};
enum { KNOWN = sizeof known / sizeof known[0] };

/* ---- from text ---- */

static int unknown(const char *what, const char *word, const char *const *names, size_t n,
                   struct wt_err *err) {
    const char *nearest = wt_nearest(word, names, n);
    if (nearest)
        return wt_err_set(err, WT_EINVAL, "unknown %s '%.60s'; did you mean '%s'?", what, word,
                          nearest);
    wt_err_set(err, WT_EINVAL, "unknown %s '%.60s'; there is", what, word);
    for (size_t i = 0; i < n; i++) {
        size_t used = strlen(err->text);
        snprintf(err->text + used, sizeof err->text - used, "%s%s", i ? ", " : " ", names[i]);
    }
    return WT_EINVAL;
}

static const struct wt_filter_ops *find(const char *name, struct wt_err *err) {
    const char *names[KNOWN];
    for (size_t i = 0; i < KNOWN; i++) {
        names[i] = known[i]->name;
        if (strcmp(names[i], name) == 0)
            return known[i];
    }
    unknown("filter", name, names, KNOWN, err);
    return NULL;
}

static int check_names(const struct wt_filter_ops *ops, const struct wt_filter_params *params,
                       struct wt_err *err) {
    size_t n = 0;
    while (ops->params[n])
        n++;
    for (size_t i = 0; i < params->n; i++) {
        const char *name = params->param[i].name;
        size_t at = 0;
        while (at < n && strcmp(ops->params[at], name) != 0)
            at++;
        if (at == n)
            return unknown("parameter", name, ops->params, n, err);
    }
    return 0;
}

static int add(struct wt_filters *chain, const struct wt_filter_params *params,
               struct wt_err *err) {
    if (chain->n == MAX_FILTERS)
        return wt_err_set(err, WT_EINVAL, "more than %d filters", MAX_FILTERS);
    struct filter *f = &chain->filter[chain->n];
    f->ops = find(params->filter, err);
    if (!f->ops)
        return WT_EINVAL;
    int rc = check_names(f->ops, params, err);
    if (rc == 0)
        rc = f->ops->open(params, &f->state, err);
    if (rc < 0) {
        wt_err_wrap(err, "filter %s", params->filter);
        return rc;
    }
    chain->n++;
    return 0;
}

int wt_filters_parse(const char *text, struct wt_filters **out, struct wt_err *err) {
    struct wt_err own;
    err = err ? err : &own;
    struct wt_filters *chain = calloc(1, sizeof *chain);
    if (!chain)
        return wt_err_set(err, WT_ENOMEM, "out of memory for filters");
    struct wt_filter_params params;
    int rc;
    while ((rc = wt_filter_params_next(&text, &params, err)) > 0) {
        rc = add(chain, &params, err);
        if (rc < 0)
            break;
    }
    if (rc < 0 || chain->n == 0) {
        wt_filters_free(chain);
        chain = NULL;
    }
    if (rc == 0)
        *out = chain;
    return rc;
}

void wt_filters_free(struct wt_filters *chain) {
    if (!chain)
        return;
    for (unsigned i = 0; i < chain->n; i++)
        chain->filter[i].ops->close(chain->filter[i].state);
    free(chain);
}

void wt_filters_init_timer(struct wt_filters *chain, uv_loop_t *loop, void *data) {
    uv_timer_init(loop, &chain->timer); /* cannot fail */
    chain->timer.data = data;
}

uv_handle_t *wt_filters_timer(struct wt_filters *chain) {
    return (uv_handle_t *)&chain->timer;
}

/* ---- what is held ---- */

static void on_timer(uv_timer_t *timer);

static void arm(struct wt_filters *chain) {
    if (!chain->first || chain->first->held_ns == UINT64_MAX) {
        uv_timer_stop(&chain->timer);
        return;
    }
    uint64_t now = uv_hrtime();
    uint64_t wait = chain->first->held_ns > now ? chain->first->held_ns - now : 0;
    /* The loop's clock is that of its last turn. */
    uv_update_time(chain->timer.loop);
    uv_timer_start(&chain->timer, on_timer, (wait + 999999) / 1000000, 0);
}

/* Behind those of the same time: first come, first served. */
static void hold(struct wt_filters *chain, struct wt_req *req, int way) {
    struct wt_req *after = chain->last;
    while (after && after->held_ns > req->held_ns)
        after = after->held_prev;
    req->held_prev = after;
    req->held_next = after ? after->held_next : chain->first;
    *(after ? &after->held_next : &chain->first) = req;
    *(req->held_next ? &req->held_next->held_prev : &chain->last) = req;
    req->state |= REQ_HELD | way;
    if (chain->first == req)
        arm(chain);
}

static void let_go(struct wt_filters *chain, struct wt_req *req) {
    *(req->held_prev ? &req->held_prev->held_next : &chain->first) = req->held_next;
    *(req->held_next ? &req->held_next->held_prev : &chain->last) = req->held_prev;
    req->held_next = req->held_prev = NULL;
    req->state &= ~(REQ_HELD | REQ_HELD_UP);
}

static void on_timer(uv_timer_t *timer) {
    struct wt_tier *tier = timer->data;
    struct wt_filters *chain = tier->filters;
    /* done() may submit, cancel and close, but not free the tier before this returns. */
    while (chain->first && chain->first->held_ns <= uv_hrtime()) {
        struct wt_req *req = chain->first;
        bool up = req->state & REQ_HELD_UP;
        let_go(chain, req);
        if (up)
            wt_req_complete(req);
        else
            wt_filters_down(chain, req);
    }
    arm(chain);
}

/* ---- down and up ---- */

static bool ends_put(const struct wt_req *req) {
    return req->op == WT_OP_PUT_COMMIT || req->op == WT_OP_PUT_ABORT;
}

/* The backend will not see it. The filter that decided so is not asked about it again. */
static void end(struct wt_req *req) {
    struct wt_tier *tier = req->tier;
    if (ends_put(req)) {
        wt_err_wrap(&req->err, "%s", req->put->key);
        tier->backend->drop(tier, req->put);
    } else if (req->op == WT_OP_PUT_WRITE) {
        wt_err_wrap(&req->err, "%s", req->put->key);
    }
    wt_req_later(req);
}

void wt_filters_down(struct wt_filters *chain, struct wt_req *req) {
    while (chain && req->level < chain->n) {
        struct filter *f = &chain->filter[req->level];
        enum wt_verdict verdict = f->ops->down ? f->ops->down(f->state, req) : WT_PASS;
        if (verdict == WT_END) {
            end(req);
            return;
        }
        req->level++;
        if (verdict == WT_HOLD) {
            hold(chain, req, 0);
            return;
        }
    }
    req->tier->backend->op[req->op](req->tier, req);
}

bool wt_filters_up(struct wt_filters *chain, struct wt_req *req) {
    while (chain && req->level) {
        struct filter *f = &chain->filter[--req->level];
        enum wt_verdict verdict = f->ops->up ? f->ops->up(f->state, req) : WT_PASS;
        if (verdict == WT_HOLD && !(req->state & (REQ_CANCELED | REQ_TIMED_OUT))) {
            hold(chain, req, REQ_HELD_UP);
            return false;
        }
    }
    return true;
}

bool wt_filters_cancel(struct wt_filters *chain, struct wt_req *req) {
    if (!(req->state & REQ_HELD))
        return false;
    bool up = req->state & REQ_HELD_UP;
    /* Its level is one past the filter that holds it on the way down, and that filter's on the way
     * up. */
    struct filter *f = &chain->filter[up ? req->level : --req->level];
    let_go(chain, req);
    if (f->ops->unheld)
        f->ops->unheld(f->state, req);
    req->rc = WT_ECANCELED;
    req->got = 0;
    if (up)
        wt_req_later(req);
    else
        end(req);
    return true;
}
