/*
 * Filters: what stands between the core and a tier's backend, and keeps the tier's contract: made
 * to slow a tier or to let it fail, in tests and demos. A tier has a chain of them, outermost
 * first:
 *
 *   core -> throttle -> delay -> fault -> backend      down: `down` of each, then the backend's op
 *   core <- throttle <- delay <- fault <- backend      up: `up` of each, then done()
 *
 * A filter only decides; the chain (filter.c) holds, passes and ends requests, so that completion
 * stays exactly once, and a request that is held ends at once when it is canceled or late.
 * All on the tier's loop.
 */
#ifndef WT_TIERS_FILTER_FILTER_H
#define WT_TIERS_FILTER_FILTER_H

#include "tiers/filter/params.h"
#include "tiers/tier.h"

enum wt_verdict {
    WT_PASS,
    WT_HOLD, /* until req->held_ns (uv_hrtime; UINT64_MAX: until its deadline), then pass */
    WT_END,  /* with req->rc and req->err. Only on the way down */
};

struct wt_filter_ops {
    const char *name;
    const char *const *params; /* names, NULL-terminated */
    /* Makes *state of the parameters, whose names are known to be good. */
    int (*open)(const struct wt_filter_params *params, void **state, struct wt_err *err);
    void (*close)(void *state);
    /* NULL: passes. Up: held is only what reads into the caller's buffer (GET with rc = 0). */
    enum wt_verdict (*down)(void *state, struct wt_req *req);
    enum wt_verdict (*up)(void *state, struct wt_req *req);
    /* A request that it held ends early. May be NULL. */
    void (*unheld)(void *state, struct wt_req *req);
};

extern const struct wt_filter_ops wt_filter_fault, wt_filter_delay, wt_filter_throttle;

/* The chain of a tier; NULL where it has none. */
struct wt_filters;
/* From the text of a tier's `filter` option. "": *out is NULL. */
int wt_filters_parse(const char *text, struct wt_filters **out, struct wt_err *err);
void wt_filters_free(struct wt_filters *chain); /* its timer is closed, or was never made */

/* ---- for the core; `chain` may be NULL ---- */
void wt_filters_init_timer(struct wt_filters *chain, uv_loop_t *loop, void *data);
uv_handle_t *wt_filters_timer(struct wt_filters *chain);
/* A started request goes on its way down. */
void wt_filters_down(struct wt_filters *chain, struct wt_req *req);
/* The backend, or a filter, has ended it: true: nobody wants it any more, deliver it. false: it is
 * held. */
bool wt_filters_up(struct wt_filters *chain, struct wt_req *req);
/* A running one shall end early. false: the backend has it. */
bool wt_filters_cancel(struct wt_filters *chain, struct wt_req *req);

#endif
