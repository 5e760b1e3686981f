/*
 * The deadlines of a tier's requests: a binary min-heap of requests by deadline_ns; each request
 * knows its place (heap_at), so that one leaves in O(log n).
 */
#ifndef WT_TIERS_DEADLINE_H
#define WT_TIERS_DEADLINE_H

#include "tiers/tier.h"

struct wt_deadlines { /* zeroed: empty */
    struct wt_req **heap;
    size_t count, cap;
};

int wt_deadlines_add(struct wt_deadlines *d, struct wt_req *req); /* 0 or WT_ENOMEM */
void wt_deadlines_remove(struct wt_deadlines *d, struct wt_req *req);
/* The deadline of a request that is in the heap has changed. */
void wt_deadlines_moved(struct wt_deadlines *d, struct wt_req *req);
struct wt_req *wt_deadlines_first(const struct wt_deadlines *d); /* NULL: empty */
void wt_deadlines_free(struct wt_deadlines *d);

#endif
