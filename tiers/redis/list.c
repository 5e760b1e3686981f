/*
 * LIST, and the count of what the tier holds.
 *
 * Happy path of the count: objects are counted once, by a scan at the first question; from then on
 * our own puts and removals keep it (one daemon writes a tier). Failures: a restart or FLUSHALL
 * that is noticed makes it unknown, and the next question counts again; a scan that fails fails
 * those who wait for it.
 */
#include "tiers/redis/internal.h"

/* ---- LIST ---- */

struct list_op {
    struct rds_op op;
    struct rds_scan *scan;
};

static int on_entry(void *arg, const struct wt_entry *entry) {
    struct list_op *l = arg;
    return l->op.req->on_entry(l->op.req, entry);
}

static void on_alive(void *arg) {
    struct list_op *l = arg;
    wt_req_alive(l->op.req);
}

static void on_ended(void *arg, int rc, const struct wt_err *err) {
    struct list_op *l = arg;
    rds_op_end(&l->op, rc, err);
}

static void cancel_list(struct rds_op *op) {
    struct list_op *l = (struct list_op *)op;
    rds_scan_stop(l->scan);
    rds_op_end(op, WT_ECANCELED, NULL);
}

void rds_op_list(struct wt_tier *tier, struct wt_req *req) {
    struct rds *r = wt_backend_state(tier);
    bool shallow = req->flags & WT_LIST_SHALLOW;
    struct list_op *l = rds_op_new(r, req, sizeof *l, cancel_list);
    if (!l)
        return;
    struct rds_scan_opts opts = {
        .prefix = req->key,
        .shallow = shallow,
        .orphans = !shallow && !req->key[0],
        .each = on_entry,
        .alive = on_alive,
        .ended = on_ended,
        .arg = l,
    };
    l->scan = rds_scan_start(r, &opts);
    if (!l->scan)
        rds_op_end(&l->op, WT_ENOMEM, NULL);
}

/* ---- the count ---- */

static int add_up(void *arg, const struct wt_entry *entry) {
    struct rds *r = arg;
    r->count.seen += entry->size;
    return 0;
}

static void on_counted(void *arg, int rc, const struct wt_err *err) {
    struct rds *r = arg;
    struct rds_count *count = &r->count;
    count->scan = NULL;
    if (rc == 0) {
        count->known = true;
        count->used = count->seen;
    }
    struct rds_waiter *waiters = count->waiters;
    count->waiters = NULL;
    while (waiters) {
        struct rds_waiter *w = waiters;
        waiters = w->next;
        w->ready(w, rc, err);
    }
}

/* 0: known; 1: w is called when it is; negative: it cannot be. */
int rds_count_want(struct rds *r, struct rds_waiter *w) {
    struct rds_count *count = &r->count;
    if (count->known)
        return 0;
    if (!count->scan) {
        struct rds_scan_opts opts = {.prefix = "", .each = add_up, .ended = on_counted, .arg = r};
        count->seen = 0;
        count->scan = rds_scan_start(r, &opts);
        if (!count->scan)
            return WT_ENOMEM;
    }
    w->next = count->waiters;
    count->waiters = w;
    return 1;
}

void rds_count_leave(struct rds *r, const struct rds_waiter *w) {
    for (struct rds_waiter **at = &r->count.waiters; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            return;
        }
}

void rds_count_add(struct rds *r, uint64_t bytes) {
    r->count.used += bytes;
}

void rds_count_take(struct rds *r, uint64_t bytes) {
    r->count.used = bytes < r->count.used ? r->count.used - bytes : 0;
}

void rds_count_forget(struct rds *r) {
    r->count.known = false;
}

void rds_count_stop(struct rds *r) {
    if (r->count.scan)
        rds_scan_stop(r->count.scan);
    r->count.scan = NULL;
}
