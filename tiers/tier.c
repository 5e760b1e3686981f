/*
 * The life of a tier: open, down and back, close; what a backend asks of the core; figures.
 *
 * Happy path: wt_tier_open finds the backend by the URL's scheme, opens it, asks its capabilities;
 * requests come and go (request.c); wt_tier_close cancels them, and the close gate goes step by
 * step: requests out -> puts dropped -> backend closed -> our handles closed -> freed, `closed`
 * called. Failures: a bad URL or option fails the open. A tier that is away is open and down: it is
 * probed with growing pauses (breaker.h) until it answers.
 */
#include "tiers/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TIMEOUT_MS = 10000, DEFAULT_MIN_RATE = 8 << 20, MAX_DEPTH = 1024 };

/* ---- down and back ---- */

static void on_probe_timer(uv_timer_t *timer) {
    struct wt_tier *tier = timer->data;
    if (tier->closing || tier->probing || !tier->breaker.open)
        return;
    if (tier->stats.stuck >= WT_STUCK_MAX)
        tier_arm_probe(tier); /* a probe would hang as well: wait for a worker that returns */
    else
        tier_start_probe(tier);
}

void tier_arm_probe(struct wt_tier *tier) {
    uv_timer_start(&tier->probe_timer, on_probe_timer, wt_breaker_backoff(&tier->breaker), 0);
}

void tier_went_down(struct wt_tier *tier, const char *why) {
    tier->stats.down_count++;
    tier->down_since_ns = uv_hrtime();
    snprintf(tier->down_why, sizeof tier->down_why, "%s", why);
    wt_log(tier->log, WT_LOG_WARN, "tier %s (%s) is down: %s", tier->opts.name, tier->shown, why);
    tier_refuse_queued(tier);
    if (tier->handles && !tier->closing && !tier->probing)
        tier_arm_probe(tier);
}

/* What a filter does must apply to every read: nothing is mapped past it. */
static unsigned caps_of(const struct wt_tier *tier) {
    unsigned caps = tier->backend->caps(tier);
    return tier->filters ? caps & ~(unsigned)WT_CAP_MAP : caps;
}

void tier_came_back(struct wt_tier *tier) {
    uv_timer_stop(&tier->probe_timer);
    tier->caps = caps_of(tier);
    wt_cost_init(&tier->cost, tier->cost.prior_us); /* what it took while it failed is past */
    wt_log(tier->log, WT_LOG_INFO, "tier %s (%s) is back after %.1f s", tier->opts.name,
           tier->shown, (double)(uv_hrtime() - tier->down_since_ns) / 1e9);
}

/* ---- what a backend asks ---- */

void wt_backend_set(struct wt_tier *tier, void *state) {
    tier->state = state;
}

void *wt_backend_state(const struct wt_tier *tier) {
    return tier->state;
}

uv_loop_t *wt_backend_loop(const struct wt_tier *tier) {
    return tier->loop;
}

const struct wt_tier_opts *wt_backend_opts(const struct wt_tier *tier) {
    return &tier->opts;
}

uint32_t wt_backend_depth(const struct wt_tier *tier) {
    return tier->depth;
}

const struct wt_log *wt_backend_log(const struct wt_tier *tier) {
    return tier->log;
}

void wt_backend_url(struct wt_tier *tier, const char *shown) {
    snprintf(tier->shown, sizeof tier->shown, "%s", shown);
}

void wt_backend_prior(struct wt_tier *tier, double us) {
    wt_cost_init(&tier->cost, us);
}

void wt_backend_down(struct wt_tier *tier, const struct wt_err *why) {
    snprintf(tier->stats.last_error, sizeof tier->stats.last_error, "%s", why->text);
    if (wt_breaker_trip(&tier->breaker) == WT_BREAKER_OPENS)
        tier_went_down(tier, why->text);
    else
        snprintf(tier->down_why, sizeof tier->down_why, "%s", why->text);
}

void wt_backend_lost(struct wt_tier *tier) {
    tier->stats.losses++;
}

void wt_backend_stuck(struct wt_tier *tier, int delta) {
    tier->stats.stuck = (uint32_t)((int)tier->stats.stuck + delta);
    if (tier->stats.stuck < WT_STUCK_MAX || tier->breaker.open)
        return;
    struct wt_err err;
    wt_err_set(&err, WT_EDOWN, "%u workers hang in it", tier->stats.stuck);
    wt_backend_down(tier, &err);
}

/* ---- open ---- */

static const struct wt_backend *find_backend(const char *url) {
    for (size_t i = 0; wt_backends[i]; i++) {
        size_t n = strlen(wt_backends[i]->scheme);
        if (strncmp(url, wt_backends[i]->scheme, n) == 0 && url[n] == ':')
            return wt_backends[i];
    }
    return NULL;
}

static int unknown_scheme(const struct wt_tier_opts *opts, struct wt_err *err) {
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; wt_backends[i] && used < sizeof list - 1; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                 wt_backends[i]->help);
    /* The scheme alone: the rest may hold a password. */
    int scheme = (int)strcspn(opts->url, ":/");
    return wt_err_set(
        err, WT_EINVAL,
        "tier %s: the url's scheme \"%.*s\" is none that this build knows; it takes: %s",
        opts->name, scheme < 32 ? scheme : 32, opts->url, list);
}

static int check_opts(const struct wt_tier_opts *opts, struct wt_err *err) {
    if (!memchr(opts->name, 0, sizeof opts->name) || !memchr(opts->url, 0, sizeof opts->url) ||
        !memchr(opts->filter, 0, sizeof opts->filter))
        return wt_err_set(err, WT_EINVAL, "a tier's name, url or filter is too long");
    if (!opts->name[0])
        return wt_err_set(err, WT_EINVAL, "a tier needs a name");
    if (opts->depth < 0 || opts->depth > MAX_DEPTH)
        return wt_err_set(err, WT_EINVAL, "tier %s: depth %lld is not in 0..%d", opts->name,
                          (long long)opts->depth, MAX_DEPTH);
    return find_backend(opts->url) ? 0 : unknown_scheme(opts, err);
}

static void init_handles(struct wt_tier *tier) {
    /* None of these can fail. */
    uv_timer_init(tier->loop, &tier->deadline_timer);
    uv_timer_init(tier->loop, &tier->probe_timer);
    uv_idle_init(tier->loop, &tier->idle);
    tier->deadline_timer.data = tier->probe_timer.data = tier->idle.data = tier;
    tier->handles = 3;
    if (tier->filters) {
        wt_filters_init_timer(tier->filters, tier->loop, tier);
        tier->handles++;
        wt_log(tier->log, WT_LOG_WARN, "tier %s (%s) has filters: %s", tier->opts.name, tier->shown,
               tier->opts.filter);
    }
}

/* The backend and the filters, from the options. */
static int open_parts(struct wt_tier *tier, struct wt_err *err) {
    int rc = wt_filters_parse(tier->opts.filter, &tier->filters, err);
    if (rc == 0)
        rc = tier->backend->open(tier, tier->opts.url, err);
    return rc;
}

static void on_handle_closed(uv_handle_t *handle) {
    struct wt_tier *tier = handle->data;
    if (--tier->handles)
        return;
    void (*closed)(void *) = tier->closed;
    void *arg = tier->closed_arg;
    wt_deadlines_free(&tier->deadlines);
    wt_filters_free(tier->filters);
    free(tier);
    if (closed)
        closed(arg);
}

static void close_handles(struct wt_tier *tier) {
    uv_close((uv_handle_t *)&tier->deadline_timer, on_handle_closed);
    uv_close((uv_handle_t *)&tier->probe_timer, on_handle_closed);
    uv_close((uv_handle_t *)&tier->idle, on_handle_closed);
    if (tier->filters)
        uv_close(wt_filters_timer(tier->filters), on_handle_closed);
}

int wt_tier_open(uv_loop_t *loop, const struct wt_tier_opts *opts, const struct wt_log *log,
                 struct wt_tier **out, struct wt_err *err) {
    int rc = check_opts(opts, err);
    if (rc < 0)
        return rc;
    struct wt_tier *tier = calloc(1, sizeof *tier);
    if (!tier)
        return wt_err_set(err, WT_ENOMEM, "tier %s: out of memory", opts->name);
    tier->backend = find_backend(opts->url);
    tier->opts = *opts;
    tier->log = log;
    tier->loop = loop;
    tier->depth = opts->depth ? (uint32_t)opts->depth : tier->backend->depth;
    wt_cost_init(&tier->cost, tier->backend->prior_us);
    snprintf(tier->shown, sizeof tier->shown, "%s", opts->url);
    struct wt_err why = {0};
    rc = open_parts(tier, &why);
    if (rc < 0) {
        wt_filters_free(tier->filters);
        free(tier);
        if (err) {
            *err = why;
            wt_err_wrap(err, "tier %s", opts->name);
        }
        return rc;
    }
    init_handles(tier);
    tier->caps = caps_of(tier);
    if (tier->breaker.open) /* open found it away */
        tier_arm_probe(tier);
    *out = tier;
    return 0;
}

/* ---- close ---- */

void tier_close_step(struct wt_tier *tier) {
    const struct tier_outstanding *out = &tier->out;
    if (!tier->closing || tier->backend_closing)
        return;
    if (out->queued.count || out->running.count || out->ended.count)
        return;
    tier->backend_closing = true;
    tier_put_drop_all(tier);
    tier->backend->close(tier);
}

void wt_backend_closed(struct wt_tier *tier) {
    close_handles(tier);
}

void wt_tier_close(struct wt_tier *tier, void (*closed)(void *arg), void *arg) {
    tier->closed = closed;
    tier->closed_arg = arg;
    tier->closing = true;
    uv_timer_stop(&tier->probe_timer);
    tier_cancel_all(tier);
    /* At the loop's next turn, also where nothing is in flight: a caller may be inside done(). */
    tier_end_soon(tier);
}

void wt_tier_resize(struct wt_tier *tier, uint64_t capacity) {
    tier->opts.capacity = capacity;
    if (tier->backend->resize)
        tier->backend->resize(tier, capacity);
}

/* ---- figures ---- */

unsigned wt_tier_caps(const struct wt_tier *tier) {
    return tier->caps;
}

const char *wt_tier_name(const struct wt_tier *tier) {
    return tier->opts.name;
}

const char *wt_tier_url(const struct wt_tier *tier) {
    return tier->shown;
}

bool wt_tier_is_down(const struct wt_tier *tier) {
    return tier->breaker.open;
}

void wt_tier_describe(struct wt_tier *tier, wt_fact_fn fact, void *arg) {
    if (tier->backend->describe && !tier->closing)
        tier->backend->describe(tier, fact, arg);
}

uint32_t wt_tier_deadline(const struct wt_tier *tier, uint64_t bytes) {
    uint64_t base = tier->opts.timeout_ms ? tier->opts.timeout_ms : DEFAULT_TIMEOUT_MS;
    uint64_t rate = tier->opts.min_rate ? tier->opts.min_rate : DEFAULT_MIN_RATE;
    double ms = (double)base + (double)bytes / (double)rate * 1000;
    return ms < (double)UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

double wt_tier_cost(const struct wt_tier *tier, uint64_t bytes) {
    if (tier->breaker.open)
        return INFINITY;
    size_t ahead = (size_t)tier->out.queued.count + tier->out.running.count;
    return wt_cost_of(&tier->cost, bytes, ahead, tier->depth, uv_hrtime());
}

void wt_tier_stats(const struct wt_tier *tier, struct wt_tier_stats *out) {
    *out = tier->stats;
    out->in_flight = tier->out.running.count;
    out->queued = tier->out.queued.count;
    out->down = tier->breaker.open;
    out->latency_us = tier->cost.latency_us;
    out->bandwidth = tier->cost.bandwidth;
}
