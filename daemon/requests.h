/*
 * What is asked for by hand: bring these shards to a tier now (warm), take them away (evict).
 *
 * Happy path of warm: its shards are wanted in the tier, which outranks the policy: passes bring
 * them and make others leave; what was there already is looked up again. A shard is done when the
 * tier has been seen to hold it since. Of evict: each shard is dropped, and barred from the tier
 * until some time after the end. Progress is counted in slices from a timer that runs only while
 * there is a request.
 * Failures: a shard that the mover sets aside counts as failed with the mover's reason; when
 * nothing comes forward for `patience` the rest does; so does all when the data set is replaced.
 * What cannot fit is refused at once. Every request ends.
 */
#ifndef WT_DAEMON_REQUESTS_H
#define WT_DAEMON_REQUESTS_H

#include "daemon/places.h"
#include "daemon/planner.h"
#include "daemon/reconcile.h"

enum { WT_REQUESTS_MAX = 256, WT_REASONS = 8, WT_REASON_TEXT = 256 };

enum wt_request_state {
    WT_REQUEST_RUNNING,
    WT_REQUEST_DONE,
    WT_REQUEST_FAILED,
    WT_REQUEST_CANCELED
};

struct wt_reason {
    int code;
    char text[WT_REASON_TEXT];
    uint64_t shards;
};

struct wt_request {
    struct wt_request *next; /* older */
    uint64_t number;
    bool evict;
    struct wt_selector selector;
    uint8_t tiers; /* a mask; of warm one bit */
    enum wt_request_state state;
    uint64_t total, done, failed, total_bytes, done_bytes, failed_bytes;
    struct wt_reason reason[WT_REASONS];
    unsigned n_reasons;
    struct wt_reason waits; /* why it did not come forward lately */
    uint64_t began_ms, ended_ms, progress_ms, patience_ms, hold_ms;
    /* its own */
    struct wt_catalog_set *set; /* NULL when it has let go of it */
    struct wt_selection selection;
    uint64_t *pending;
    size_t n_pending, at;
};

struct wt_requests_opts {
    uv_loop_t *loop;
    struct wt_catalog *catalog;
    struct wt_mover *mover;
    struct wt_planner *planner;
    struct wt_reconcile *reconcile;
    void (*ended)(void *arg, const struct wt_request *request);
    void *arg;
};

struct wt_requests;
struct wt_requests *wt_requests_new(const struct wt_requests_opts *opts);
/* Is there room for the selection beside what is pinned and asked for? WT_EFULL. */
int wt_requests_fit(const struct wt_requests *rs, const struct wt_catalog_set *set,
                    const struct wt_selection *s, uint32_t tier, struct wt_err *err);
/* `template`: evict, selector, tiers, patience_ms, hold_ms. Takes the selection over, also on
 * failure. WT_EFULL: it cannot fit; WT_EEXISTS: some of it is pinned, or being brought there;
 * WT_EBUSY: too many requests run. */
int wt_requests_add(struct wt_requests *rs, const struct wt_request *template,
                    struct wt_catalog_set *set, struct wt_selection *selection,
                    const struct wt_request **out, struct wt_err *err);
/* "w7", "e8"; NULL: not there. */
const struct wt_request *wt_requests_find(const struct wt_requests *rs, const char *id);
const struct wt_request *wt_requests_first(const struct wt_requests *rs); /* newest; then ->next */
size_t wt_requests_running(const struct wt_requests *rs);
void wt_requests_cancel(struct wt_requests *rs, const struct wt_request *request);
/* This daemon may move nothing any more: all that run end as failed. */
void wt_requests_abort(struct wt_requests *rs, const char *why);
/* A move of a shard failed for now. */
void wt_requests_trouble(struct wt_requests *rs, const struct wt_catalog_set *set, int code,
                         const char *text);
void wt_requests_stop(struct wt_requests *rs, void (*stopped)(void *arg), void *arg);
void wt_requests_free(struct wt_requests *rs);

#endif
