/*
 * delay: each request of an op waits before it is served.
 *
 *   delay read=2ms write=1ms..5ms seed=1
 *
 * A time, or a range of which each request draws one (the same ones for the same seed). Failures:
 * bad text.
 */
#include "tiers/filter/filter.h"

#include "core/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct delay {
    struct range {
        uint64_t min_ms, max_ms;
        uint64_t count; /* of requests so far */
    } op[WT_OP_COUNT];
    uint64_t seed;
};

enum { MAX_MS = 3600000 };

static int parse_time(const struct wt_filter_param *p, const char *text, uint64_t *ms,
                      struct wt_err *err) {
    int rc = wt_time_parse(text, ms, err);
    if (rc < 0)
        return wt_err_wrap(err, "%s=%s", p->name, p->value);
    if (*ms > MAX_MS)
        return wt_err_set(err, WT_EINVAL, "%s=%s: longer than an hour", p->name, p->value);
    return 0;
}

static int parse_range(const struct wt_filter_param *p, struct range *out, struct wt_err *err) {
    struct range r = {0};
    char first[WT_FILTER_TEXT];
    snprintf(first, sizeof first, "%s", p->value);
    char *dots = strstr(first, "..");
    if (dots)
        *dots = '\0';
    int rc = parse_time(p, first, &r.min_ms, err);
    r.max_ms = r.min_ms;
    if (rc == 0 && dots)
        rc = parse_time(p, dots + 2, &r.max_ms, err);
    if (rc == 0 && r.max_ms < r.min_ms)
        rc = wt_err_set(err, WT_EINVAL, "%s=%s: ends before it begins", p->name, p->value);
    if (rc == 0)
        *out = r;
    return rc;
}

static int delay_open(const struct wt_filter_params *params, void **state, struct wt_err *err) {
    struct delay *d = calloc(1, sizeof *d);
    if (!d)
        return wt_err_set(err, WT_ENOMEM, "out of memory");
    int rc = 0;
    for (size_t i = 0; i < params->n && rc == 0; i++) {
        const struct wt_filter_param *p = &params->param[i];
        enum wt_op op = wt_filter_op(p->name);
        rc = op == WT_OP_COUNT ? wt_filter_number(p, &d->seed, err)
                               : parse_range(p, &d->op[op], err);
    }
    if (rc < 0)
        free(d);
    else
        *state = d;
    return rc;
}

static enum wt_verdict delay_down(void *state, struct wt_req *req) {
    struct delay *d = state;
    struct range *r = &d->op[req->op];
    if (r->max_ms == 0)
        return WT_PASS;
    uint64_t ns = r->min_ms * 1000000;
    uint64_t width = (r->max_ms - r->min_ms) * 1000000;
    if (width)
        ns += wt_filter_random(d->seed, req->op, r->count++) % width;
    req->held_ns = uv_hrtime() + ns;
    return WT_HOLD;
}

static const char *const names[] = {WT_FILTER_OP_NAMES, "seed", NULL};

const struct wt_filter_ops wt_filter_delay = {
    .name = "delay",
    .params = names,
    .open = delay_open,
    .close = free,
    .down = delay_down,
};
