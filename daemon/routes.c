/*
 * Which path does what; see control.h and docs/control-api.md.
 */
#include "daemon/routes.h"

#include "daemon/body.h"

/* Standing by, the daemon must not act for others: the one that holds the lock does. */
bool wt_refuse_standby(struct wt_daemon *d, struct wt_call *call) {
    if (wt_daemon_active(d))
        return false;
    struct wt_err err;
    wt_err_set(&err, WT_ELOCKED, "this daemon stands by and takes nothing on: %s",
               d->lock && wt_lock_why(d->lock)[0] ? wt_lock_why(d->lock) : "it just starts");
    wt_call_fail(call, &err);
    return true;
}

/* ---- what is shown ---- */

static void get_stats(void *arg, struct wt_call *call) {
    wt_call_reply(call, WT_HTTP_OK, wt_stats_json(arg));
}
static void get_health(void *arg, struct wt_call *call) {
    wt_call_reply(call, WT_HTTP_OK, wt_stats_health(arg));
}
static void get_tiers(void *arg, struct wt_call *call) {
    wt_call_reply(call, WT_HTTP_OK, wt_stats_tiers(arg));
}
static void get_datasets(void *arg, struct wt_call *call) {
    wt_call_reply(call, WT_HTTP_OK, wt_stats_datasets(arg));
}
static void get_jobs(void *arg, struct wt_call *call) {
    wt_call_reply(call, WT_HTTP_OK, wt_stats_jobs(arg));
}
static void get_moves(void *arg, struct wt_call *call) {
    wt_call_reply(call, WT_HTTP_OK, wt_stats_moves(arg));
}

/* ---- reload ---- */

static void post_reload(void *arg, struct wt_call *call) {
    json_t *changed = NULL;
    struct wt_err err;
    if (wt_daemon_reload(arg, &changed, &err) < 0)
        wt_call_fail(call, &err);
    else
        wt_call_reply(call, WT_HTTP_OK, json_pack("{s:o}", "changed", changed));
}

/* ---- events ---- */

static void get_events(void *arg, struct wt_call *call) {
    struct wt_daemon *d = arg;
    struct wt_err err = {0};
    uint64_t since = UINT64_MAX;
    if (wt_query_u64(call, "since", &since, &err) < 0) {
        wt_call_fail(call, &err);
        return;
    }
    struct wt_events_reader *r =
        wt_events_follow(d->events, since == UINT64_MAX ? WT_EVENTS_NEW : (int64_t)since);
    if (!r) {
        wt_err_set(&err, WT_ENOMEM, "no memory for a reader of events");
        wt_call_fail(call, &err);
        return;
    }
    void *handle = wt_call_stream(
        call, "application/x-ndjson",
        &(struct wt_stream){.read = wt_events_read, .free = wt_events_leave, .arg = r});
    if (handle)
        wt_events_on_news(r, wt_stream_wake, handle);
}

#define READ   WT_ROUTE_REMOTE
#define CHANGE WT_ROUTE_CHANGES

const struct wt_route wt_daemon_routes[] = {
    {"GET", "/healthz", READ, get_health},
    {"GET", "/metrics", READ, wt_route_metrics},
    {"GET", "/v1/stats", READ, get_stats},
    {"GET", "/v1/tiers", READ, get_tiers},
    {"GET", "/v1/datasets", READ, get_datasets},
    {"GET", "/v1/shards", READ, wt_route_get_shards},
    {"GET", "/v1/jobs", READ, get_jobs},
    {"GET", "/v1/moves", READ, get_moves},
    {"GET", "/v1/events", READ | WT_ROUTE_STREAM, get_events},
    {"GET", "/v1/pins", READ, wt_route_get_pins},
    {"GET", "/v1/quotas", READ, wt_route_get_quotas},
    {"GET", "/v1/warm", READ, wt_route_get_requests},
    {"GET", "/v1/warm/{id}", READ, wt_route_get_request},
    {"GET", "/v1/evict/{id}", READ, wt_route_get_request},
    {"POST", "/v1/pin", CHANGE, wt_route_pin},
    {"POST", "/v1/unpin", CHANGE, wt_route_unpin},
    {"POST", "/v1/quota", CHANGE, wt_route_quota},
    {"POST", "/v1/warm", CHANGE, wt_route_warm},
    {"POST", "/v1/evict", CHANGE, wt_route_evict},
    {"DELETE", "/v1/warm/{id}", CHANGE, wt_route_cancel},
    {"DELETE", "/v1/evict/{id}", CHANGE, wt_route_cancel},
    {"POST", "/v1/reload", CHANGE, post_reload},
    {"POST", "/v1/datasets", CHANGE, wt_route_post_dataset},
    {"POST", "/v1/jobs", CHANGE | WT_ROUTE_REMOTE, wt_route_post_job},
    {"POST", "/v1/jobs/{id}/progress", CHANGE | WT_ROUTE_REMOTE, wt_route_post_progress},
    {"DELETE", "/v1/jobs/{id}", CHANGE | WT_ROUTE_REMOTE, wt_route_delete_job},
};
const size_t wt_daemon_n_routes = sizeof wt_daemon_routes / sizeof wt_daemon_routes[0];
