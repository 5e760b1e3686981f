/* A binary heap of requests; see deadline.h. Only growing it can fail. */
#include "tiers/deadline.h"

#include "core/mem.h"

#include <stdlib.h>

static void place(struct wt_deadlines *d, size_t at, struct wt_req *req) {
    d->heap[at] = req;
    req->heap_at = (uint32_t)at;
}

static size_t rise(struct wt_deadlines *d, size_t at) {
    struct wt_req *req = d->heap[at];
    while (at > 0) {
        size_t up = (at - 1) / 2;
        if (d->heap[up]->deadline_ns <= req->deadline_ns)
            break;
        place(d, at, d->heap[up]);
        at = up;
    }
    place(d, at, req);
    return at;
}

static void sink(struct wt_deadlines *d, size_t at) {
    struct wt_req *req = d->heap[at];
    for (;;) {
        size_t down = 2 * at + 1;
        if (down >= d->count)
            break;
        if (down + 1 < d->count && d->heap[down + 1]->deadline_ns < d->heap[down]->deadline_ns)
            down++;
        if (req->deadline_ns <= d->heap[down]->deadline_ns)
            break;
        place(d, at, d->heap[down]);
        at = down;
    }
    place(d, at, req);
}

int wt_deadlines_add(struct wt_deadlines *d, struct wt_req *req) {
    int rc = wt_grow(&d->heap, &d->cap, d->count + 1, sizeof(struct wt_req *));
    if (rc < 0)
        return rc;
    place(d, d->count, req);
    d->count++;
    rise(d, d->count - 1);
    return 0;
}

void wt_deadlines_remove(struct wt_deadlines *d, struct wt_req *req) {
    size_t at = req->heap_at;
    struct wt_req *last = d->heap[--d->count];
    if (last == req)
        return;
    place(d, at, last);
    wt_deadlines_moved(d, last);
}

void wt_deadlines_moved(struct wt_deadlines *d, struct wt_req *req) {
    size_t at = rise(d, req->heap_at);
    sink(d, at);
}

struct wt_req *wt_deadlines_first(const struct wt_deadlines *d) {
    return d->count ? d->heap[0] : NULL;
}

void wt_deadlines_free(struct wt_deadlines *d) {
    free(d->heap);
    *d = (struct wt_deadlines){0};
}
