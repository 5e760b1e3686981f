/*
 * The core's own view of a tier, shared by tier.c (life), request.c (requests), check.c (arguments)
 * and put.c (open puts). Everything outstanding stands in one place: struct tier_outstanding; the
 * close gate opens when it is empty.
 */
#ifndef WT_TIERS_INTERNAL_H
#define WT_TIERS_INTERNAL_H

#include "tiers/backend.h"
#include "tiers/breaker.h"
#include "tiers/cost.h"
#include "tiers/deadline.h"
#include "tiers/filter/filter.h"

struct req_list {
    struct wt_req *first, *last;
    uint32_t count;
};

struct tier_outstanding {
    struct req_list queued;  /* accepted, waits for a place */
    struct req_list running; /* at the backend */
    struct req_list ended;   /* complete at the loop's next turn */
    struct wt_put *puts;     /* open, between PUT_OPEN and their end */
    uint64_t bytes;          /* that all these requests move */
};

struct wt_tier {
    const struct wt_backend *backend;
    void *state;
    struct wt_tier_opts opts;
    struct wt_filters *filters; /* NULL: none */
    const struct wt_log *log;
    uv_loop_t *loop;
    char shown[512];
    unsigned caps;
    uint32_t depth;

    struct tier_outstanding out;
    struct wt_deadlines deadlines;
    struct wt_breaker breaker;
    struct wt_cost cost;
    struct wt_tier_stats stats;

    uv_timer_t deadline_timer; /* armed for the earliest deadline */
    uint64_t armed_ns;         /* 0: not armed */
    uv_timer_t probe_timer;    /* while down: the next probe */
    uv_idle_t idle;            /* runs while out.ended is not empty */
    struct wt_req probe;
    bool probing;
    uint64_t down_since_ns;
    char down_why[WT_ERR_TEXT];

    bool closing, backend_closing;
    unsigned handles; /* of ours still to close */
    void (*closed)(void *arg);
    void *closed_arg;
};

/* Bits of wt_req.state. */
enum {
    REQ_QUEUED = 1,
    REQ_RUNNING = 2,
    REQ_ENDED = 4,
    REQ_PLACE = 7, /* one of the three above; 0: not in flight */
    REQ_CANCELED = 8,
    REQ_TIMED_OUT = 16,
    REQ_SERVED = 32, /* the backend had it, or a filter */
    REQ_HELD = 64,   /* by a filter; running as well */
    REQ_HELD_UP = 128,
};

/* check.c: 0, or a code with req->err set. */
int tier_check_request(struct wt_tier *tier, struct wt_req *req);
uint64_t tier_request_bytes(const struct wt_req *req);

/* put.c: the book of puts, on the loop. */
void tier_put_accepted(struct wt_tier *tier, struct wt_req *req);
void tier_put_ended(struct wt_tier *tier, struct wt_req *req);
void tier_put_drop_all(struct wt_tier *tier);

/* request.c */
void tier_cancel_all(struct wt_tier *tier);
void tier_refuse_queued(struct wt_tier *tier);
void tier_end_soon(struct wt_tier *tier); /* `ended` and the close gate at the loop's next turn */
void tier_run_ended(struct wt_tier *tier);
void tier_run_deadlines(struct wt_tier *tier);
void tier_start_probe(struct wt_tier *tier);

/* tier.c */
void tier_went_down(struct wt_tier *tier, const char *why);
void tier_came_back(struct wt_tier *tier);
void tier_arm_probe(struct wt_tier *tier);
void tier_close_step(struct wt_tier *tier);

#endif
