/*
 * The book of puts: which parts of an object under way are written, which writes are in flight,
 * which puts are open. Happy path: PUT_OPEN completes (the put is entered), each PUT_WRITE ticks
 * its part, COMMIT or ABORT strike the put off as soon as they are accepted. Failures: a COMMIT or
 * ABORT that ends without its op having run, and puts left open at the close, are handed to the
 * backend's drop, so that nothing leaks.
 */
#include "tiers/internal.h"

#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_PARTS = 1 << 24 }; /* 128 TiB */

int wt_put_init(struct wt_put *put, const char *key, uint64_t size, unsigned flags) {
    uint64_t n = size / WT_PART + (size % WT_PART != 0);
    if (n > MAX_PARTS)
        return WT_ERANGE;
    uint8_t *parts = wt_calloc((size_t)n, 1);
    if (!parts)
        return WT_ENOMEM;
    *put = (struct wt_put){.size = size, .flags = flags, .parts = parts, .n_parts = n};
    snprintf(put->key, sizeof put->key, "%s", key);
    return 0;
}

void wt_put_fini(struct wt_put *put) {
    free(put->parts);
    put->parts = NULL;
}

int wt_put_check(const struct wt_put *put, struct wt_err *err) {
    if (put->n_written == put->n_parts)
        return 0;
    return wt_err_set(err, WT_EINVAL, "only %llu of %llu parts were written",
                      (unsigned long long)put->n_written, (unsigned long long)put->n_parts);
}

static void enter(struct wt_tier *tier, struct wt_put *put) {
    put->tier = tier;
    put->prev = NULL;
    put->next = tier->out.puts;
    if (put->next)
        put->next->prev = put;
    tier->out.puts = put;
}

static void strike(struct wt_tier *tier, struct wt_put *put) {
    if (put->prev)
        put->prev->next = put->next;
    else
        tier->out.puts = put->next;
    if (put->next)
        put->next->prev = put->prev;
    put->tier = NULL; /* a further request on it is refused */
}

void tier_put_accepted(struct wt_tier *tier, struct wt_req *req) {
    if (req->op == WT_OP_PUT_WRITE)
        req->put->busy++;
    else if (req->op == WT_OP_PUT_COMMIT || req->op == WT_OP_PUT_ABORT)
        strike(tier, req->put);
}

void tier_put_ended(struct wt_tier *tier, struct wt_req *req) {
    switch (req->op) {
    case WT_OP_PUT_OPEN:
        if (req->rc == 0)
            enter(tier, req->put);
        break;
    case WT_OP_PUT_WRITE:
        req->put->busy--;
        uint8_t *part = &req->put->parts[req->off / WT_PART];
        if (req->rc == 0 && !*part) {
            *part = 1;
            req->put->n_written++;
        }
        break;
    case WT_OP_PUT_COMMIT:
    case WT_OP_PUT_ABORT:
        if (!(req->state & REQ_SERVED))
            tier->backend->drop(tier, req->put);
        req->put = NULL;
        break;
    default:
        break;
    }
}

void tier_put_drop_all(struct wt_tier *tier) {
    while (tier->out.puts) {
        struct wt_put *put = tier->out.puts;
        strike(tier, put);
        tier->backend->drop(tier, put);
    }
}
