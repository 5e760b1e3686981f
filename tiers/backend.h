/*
 * What a backend implements, and what the core (tier.c) does for all of them: argument checks, bounded queue, deadlines,
 * circuit breaker, measured cost, counters, messages with tier and key in front.
 *
 * An op gets a request that was accepted, and must call wt_req_complete exactly once, on the loop thread, never from inside the op
 * itself. cancel: asks to end a request early (also at its deadline); the backend then completes it as soon as it can promise that
 * nobody writes to its buffer any more.
 */
#ifndef WT_TIERS_BACKEND_H
#define WT_TIERS_BACKEND_H

#include "tiers/tier.h"

struct wt_backend {
    const char *scheme; /* "file" */
    const char *help;   /* the URL forms, one line */
    uint32_t depth;     /* default requests in flight */
    double prior_us;    /* latency before the first measurement */
    int (*open)(struct wt_tier *tier, const char *url, struct wt_err *err);
    void (*close)(struct wt_tier *tier); /* nothing is in flight; calls wt_backend_closed when its handles are gone */
    unsigned (*caps)(const struct wt_tier *tier); /* asked once, after open */
    void (*op[WT_OP_COUNT])(struct wt_tier *tier, struct wt_req *req); /* NULL: WT_EUNSUPPORTED */
    void (*cancel)(struct wt_tier *tier, struct wt_req *req);
};

/* One explicit table: tiers/registry.c. */
extern const struct wt_backend *const wt_backends[]; /* NULL-terminated */

void wt_backend_set(struct wt_tier *tier, void *state); /* in open */
void *wt_backend_state(const struct wt_tier *tier);
uv_loop_t *wt_backend_loop(const struct wt_tier *tier);
const struct wt_tier_opts *wt_backend_opts(const struct wt_tier *tier);
const struct wt_log *wt_backend_log(const struct wt_tier *tier);
void wt_backend_url(struct wt_tier *tier, const char *shown); /* the URL without secrets */
void wt_backend_prior(struct wt_tier *tier, double us);       /* in open, when better known than the table's */
void wt_backend_stuck(struct wt_tier *tier, int delta);       /* workers that hang; at its cap the tier is down */

/* Ends a request: rc from req->rc, message from req->err. */
void wt_req_complete(struct wt_req *req);
void wt_backend_closed(struct wt_tier *tier);

/* A map that the backend made; `release` runs once, on any thread. */
struct wt_map *wt_map_new(const void *data, size_t size, void (*release)(void *arg), void *arg);

#endif
