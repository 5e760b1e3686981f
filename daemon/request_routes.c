/* Warm and evict over HTTP; see requests.h. */
#include "core/json.h"
#include "core/mem.h"
#include "daemon/body.h"
#include "daemon/routes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATIENCE_S = 600, HOLD_S = 60 };

/* ---- as JSON ---- */

static json_t *reasons_json(const struct wt_request *r) {
    json_t *list = json_array();
    for (unsigned i = 0; i < r->n_reasons; i++)
        wt_json_push(&list, json_pack("{s:s, s:o, s:o}", "code", wt_err_name(r->reason[i].code),
                                      "text", wt_json_string(r->reason[i].text), "shards",
                                      wt_body_number(r->reason[i].shards)));
    if (r->state == WT_REQUEST_RUNNING && r->waits.code)
        wt_json_push(&list, json_pack("{s:s, s:o, s:o}", "code", wt_err_name(r->waits.code), "text",
                                      wt_json_string(r->waits.text), "shards",
                                      wt_body_number(r->n_pending)));
    return list;
}

static json_t *tier_json(const struct wt_daemon *d, uint8_t tiers) {
    bool one = (tiers & (tiers - 1)) == 0;
    return one ? json_string(wt_tier_name(d->tier[31 - __builtin_clz(tiers)])) : json_null();
}

static json_t *counts_json(uint64_t total, uint64_t done, uint64_t failed) {
    return json_pack("{s:o, s:o, s:o}", "total", wt_body_number(total), "done",
                     wt_body_number(done), "failed", wt_body_number(failed));
}

static json_t *request_json(const struct wt_daemon *d, const struct wt_request *r) {
    static const char *const states[] = {"running", "done", "failed", "canceled"};
    char id[32];
    uint64_t until = r->state == WT_REQUEST_RUNNING ? wt_daemon_now_ms(d) : r->ended_ms;
    snprintf(id, sizeof id, "%c%" PRIu64, r->evict ? 'e' : 'w', r->number);
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:f}", "id", id, "dataset",
                     r->selector.dataset, "lot", wt_text_or_null(r->selector.lot), "wafer",
                     wt_text_or_null(r->selector.wafer), "tier", tier_json(d, r->tiers), "state",
                     states[r->state], "shards", counts_json(r->total, r->done, r->failed), "bytes",
                     counts_json(r->total_bytes, r->done_bytes, r->failed_bytes), "reasons",
                     reasons_json(r), "running_s", (double)(until - r->began_ms) / 1000);
}

/* ---- begin ---- */

struct asking {
    struct wt_daemon *d;
    struct wt_call *call;
    struct wt_request what;
};

static void on_selected(void *arg, int rc, const struct wt_err *why, struct wt_catalog_set *set,
                        struct wt_selection *selection) {
    struct asking *a = arg;
    const struct wt_request *r = NULL;
    struct wt_err err = {0};
    if (rc < 0)
        err = *why;
    else if (!wt_daemon_active(a->d)) {
        wt_selection_free(selection);
        wt_err_set(&err, WT_ELOCKED, "this daemon stands by now");
    } else
        wt_requests_add(a->d->requests, &a->what, set, selection, &r, &err);
    if (r)
        wt_call_reply(a->call, WT_HTTP_OK, request_json(a->d, r));
    else
        wt_call_fail(a->call, &err);
    free(a);
}

static int read_request(const struct wt_daemon *d, const json_t *body, struct wt_request *r,
                        struct wt_err *err) {
    uint32_t tier = 0;
    double patience = PATIENCE_S, hold = r->evict ? HOLD_S : 0;
    int rc = wt_read_selector(body, &r->selector, err);
    if (rc == 0)
        rc = wt_read_tier(d, body, &tier, err);
    if (rc == 0)
        rc = wt_body_seconds(body, "patience_s", &patience, err);
    if (rc == 0 && r->evict)
        rc = wt_body_seconds(body, "hold_s", &hold, err);
    if (rc == 0 && d->n_tiers < 2)
        rc = wt_err_set(err, WT_EINVAL, "there is no tier above cold");
    if (rc < 0)
        return rc;
    if (r->evict && !tier)
        r->tiers = (uint8_t)(((1u << d->n_tiers) - 1) & ~1u);
    else
        r->tiers = (uint8_t)(1u << (tier ? tier : d->n_tiers - 1));
    r->patience_ms = (uint64_t)(patience * 1000);
    r->hold_ms = (uint64_t)(hold * 1000);
    return 0;
}

static void ask(struct wt_daemon *d, struct wt_call *call, bool evict) {
    struct wt_err err = {0};
    if (wt_refuse_standby(d, call))
        return;
    struct asking *a = wt_calloc(1, sizeof *a);
    int rc = a ? 0 : wt_err_set(&err, WT_ENOMEM, "out of memory");
    if (rc == 0) {
        *a = (struct asking){.d = d, .call = call, .what = {.evict = evict}};
        rc = read_request(d, call->body, &a->what, &err);
    }
    if (rc < 0) {
        wt_call_fail(call, &err);
        free(a);
        return;
    }
    wt_route_select(d, &a->what.selector, on_selected, a);
}

void wt_route_warm(void *arg, struct wt_call *call) {
    ask(arg, call, false);
}
void wt_route_evict(void *arg, struct wt_call *call) {
    ask(arg, call, true);
}

/* ---- later ---- */

static const struct wt_request *find(struct wt_daemon *d, struct wt_call *call) {
    const struct wt_request *r = wt_requests_find(d->requests, call->id);
    struct wt_err err;
    if (r)
        return r;
    wt_err_set(&err, WT_EMISSING, "no request %s: see GET /v1/warm; a restart forgets them",
               call->id);
    wt_call_fail(call, &err);
    return NULL;
}

void wt_route_get_request(void *arg, struct wt_call *call) {
    const struct wt_request *r = find(arg, call);
    if (r)
        wt_call_reply(call, WT_HTTP_OK, request_json(arg, r));
}

void wt_route_cancel(void *arg, struct wt_call *call) {
    struct wt_daemon *d = arg;
    const struct wt_request *r = find(d, call);
    if (!r)
        return;
    wt_requests_cancel(d->requests, r);
    wt_call_reply(call, WT_HTTP_OK, request_json(d, r));
}

void wt_route_get_requests(void *arg, struct wt_call *call) {
    struct wt_daemon *d = arg;
    json_t *list = json_array();
    for (const struct wt_request *r = wt_requests_first(d->requests); r; r = r->next)
        wt_json_push(&list, request_json(d, r));
    wt_call_reply(call, WT_HTTP_OK, json_pack("{s:o}", "requests", list));
}
