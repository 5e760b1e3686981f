/*
 * What a backend implements, and what the core (tier.c, request.c) does for all of them: argument
 * checks, bounded queue, deadlines, circuit breaker, measured cost, counters, messages with tier
 * and key in front, the book of open puts.
 *
 * An op gets a request that was accepted, and must end it exactly once on the loop thread: by
 * wt_req_complete, never from inside the op or cancel themselves, or by wt_req_later, from
 * anywhere. cancel: asks to end a running request early (also at its deadline); the backend then
 * ends it with WT_ECANCELED as soon as it can promise that nobody writes to its buffer any more;
 * the core makes WT_ETIMEDOUT of it where the deadline was the reason.
 */
#ifndef WT_TIERS_BACKEND_H
#define WT_TIERS_BACKEND_H

#include "tiers/tier.h"

struct wt_backend {
    const char *scheme; /* "file" */
    const char *help;   /* the URL forms, one line */
    uint32_t depth;     /* default requests in flight */
    double prior_us;    /* latency before the first measurement */
    /* After a failed open nothing of the backend may refer to the tier. */
    int (*open)(struct wt_tier *tier, const char *url, struct wt_err *err);
    /* Nothing is in flight; calls wt_backend_closed when its handles are gone. */
    void (*close)(struct wt_tier *tier);
    /* Asked after open, and again whenever the tier comes back. */
    unsigned (*caps)(const struct wt_tier *tier);
    void (*op[WT_OP_COUNT])(struct wt_tier *tier, struct wt_req *req); /* NULL: WT_EUNSUPPORTED */
    void (*cancel)(struct wt_tier *tier, struct wt_req *req);
    /* A put ended without its COMMIT or ABORT having run: free it, clean up behind the scenes. */
    void (*drop)(struct wt_tier *tier, struct wt_put *put);
    /* wt_backend_opts has another capacity; NULL: it is always looked up there. */
    void (*resize)(struct wt_tier *tier, uint64_t capacity);
    /* wt_tier_describe; NULL: there is no server to speak of. */
    void (*describe)(struct wt_tier *tier, wt_fact_fn fact, void *arg);
};

/* One explicit table: tiers/registry.c. */
extern const struct wt_backend *const wt_backends[]; /* NULL-terminated */

void wt_backend_set(struct wt_tier *tier, void *state); /* in open */
void *wt_backend_state(const struct wt_tier *tier);
uv_loop_t *wt_backend_loop(const struct wt_tier *tier);
const struct wt_tier_opts *wt_backend_opts(const struct wt_tier *tier);
uint32_t wt_backend_depth(const struct wt_tier *tier);
const struct wt_log *wt_backend_log(const struct wt_tier *tier);
void wt_backend_url(struct wt_tier *tier, const char *shown); /* the URL without secrets */
void wt_backend_prior(struct wt_tier *tier, double us);       /* in open, when better known */
/* The tier is away, as open or a connection found out: down at once, then probed. */
void wt_backend_down(struct wt_tier *tier, const struct wt_err *why);
/* What it holds may be gone: a server was restarted, or flushed. */
void wt_backend_lost(struct wt_tier *tier);
enum { WT_STUCK_MAX = 8 };
/* Workers that hang: at WT_STUCK_MAX the tier is down, until one returns. */
void wt_backend_stuck(struct wt_tier *tier, int delta);
void wt_backend_closed(struct wt_tier *tier);

/* Ends a request: rc from req->rc, message from req->err (made from rc where there is none). */
void wt_req_complete(struct wt_req *req);
/* The same at the loop's next turn: from inside ops and cancel. */
void wt_req_later(struct wt_req *req);
/* A long request (LIST) moves on: its deadline starts anew. */
void wt_req_alive(struct wt_req *req);

/* A map that the backend made; `release` runs once, on any thread. NULL when out of memory. */
struct wt_map *wt_map_new(const void *data, size_t size, void (*release)(void *arg), void *arg);

/* The head of every backend's put. The core keeps the book of parts; the backend makes and frees
 * it. */
struct wt_put {
    char key[WT_KEY_SIZE];
    uint64_t size;
    unsigned flags;
    uint8_t *parts; /* [n_parts] 1: written */
    uint64_t n_parts, n_written;
    uint32_t busy; /* writes in flight */
    struct wt_tier *tier;
    struct wt_put *next, *prev;
};
/* Any thread. 0, WT_ERANGE (more parts than can be) or WT_ENOMEM. */
int wt_put_init(struct wt_put *put, const char *key, uint64_t size, unsigned flags);
void wt_put_fini(struct wt_put *put);
/* On the loop, at COMMIT: 0, or WT_EINVAL with how much is missing. */
int wt_put_check(const struct wt_put *put, struct wt_err *err);

#endif
