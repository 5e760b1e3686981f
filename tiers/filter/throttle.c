/*
 * throttle: all requests of a direction together move so many bytes a second, after a burst.
 *
 *   throttle rate=50MiB            throttle read=50MiB write=20MiB burst=8MiB
 *
 * Happy path: a virtual clock for each direction says when the bytes so far have passed the line;
 * one that would be through before now minus the burst's time starts anew from there. A write is
 * held before it is served, a read when its bytes are known, until the clock's time less the
 * burst. Failures: bad text. One that ends early while it is held gives its bytes back.
 */
#include "tiers/filter/filter.h"

#include "core/bytes.h"

#include <stdlib.h>
#include <string.h>

struct line {
    double rate; /* bytes a ns; 0: no limit */
    double burst_ns;
    double through_ns; /* when all bytes so far are through */
};

struct throttle {
    struct line read, write;
};

/* The default burst is a tenth of a second, but never so small that timers decide the rate. */
static const double burst_s = 0.1;
enum { MIN_BURST = 64 << 10 };

static int open_lines(const struct wt_filter_params *params, struct throttle *t,
                      struct wt_err *err) {
    uint64_t read = 0, write = 0, burst = 0;
    for (size_t i = 0; i < params->n; i++) {
        const struct wt_filter_param *p = &params->param[i];
        uint64_t bytes;
        if (wt_size_parse(p->value, &bytes, err) < 0)
            return wt_err_wrap(err, "%s", p->name);
        if (bytes == 0)
            return wt_err_set(err, WT_EINVAL, "%s=%s: must be more than 0", p->name, p->value);
        bool both = strcmp(p->name, "rate") == 0;
        if (both || strcmp(p->name, "read") == 0)
            read = bytes;
        if (both || strcmp(p->name, "write") == 0)
            write = bytes;
        if (strcmp(p->name, "burst") == 0)
            burst = bytes;
    }
    if (!read && !write)
        return wt_err_set(err, WT_EINVAL, "needs rate=BYTES, read=BYTES or write=BYTES");
    struct line *lines[] = {&t->read, &t->write};
    const uint64_t rates[] = {read, write};
    for (size_t i = 0; i < 2; i++) {
        double rate = (double)rates[i];
        double room = burst ? (double)burst : rate * burst_s;
        lines[i]->rate = rate / 1e9;
        if (rate > 0)
            lines[i]->burst_ns = (room < MIN_BURST && !burst ? MIN_BURST : room) / rate * 1e9;
    }
    return 0;
}

static int throttle_open(const struct wt_filter_params *params, void **state, struct wt_err *err) {
    struct throttle *t = calloc(1, sizeof *t);
    if (!t)
        return wt_err_set(err, WT_ENOMEM, "out of memory");
    int rc = open_lines(params, t, err);
    if (rc < 0)
        free(t);
    else
        *state = t;
    return rc;
}

static enum wt_verdict take(struct line *line, struct wt_req *req, size_t bytes) {
    if (line->rate <= 0 || bytes == 0)
        return WT_PASS;
    double now = (double)uv_hrtime();
    if (line->through_ns < now)
        line->through_ns = now;
    line->through_ns += (double)bytes / line->rate;
    double until = line->through_ns - line->burst_ns;
    if (until <= now)
        return WT_PASS;
    req->held_ns = (uint64_t)until;
    return WT_HOLD;
}

static enum wt_verdict throttle_down(void *state, struct wt_req *req) {
    struct throttle *t = state;
    return req->op == WT_OP_PUT_WRITE ? take(&t->write, req, req->len) : WT_PASS;
}

static enum wt_verdict throttle_up(void *state, struct wt_req *req) {
    struct throttle *t = state;
    return req->op == WT_OP_GET && req->rc == 0 ? take(&t->read, req, req->got) : WT_PASS;
}

static void throttle_unheld(void *state, struct wt_req *req) {
    struct throttle *t = state;
    if (req->op == WT_OP_PUT_WRITE)
        t->write.through_ns -= (double)req->len / t->write.rate;
    else
        t->read.through_ns -= (double)req->got / t->read.rate;
}

static const char *const names[] = {"rate", "read", "write", "burst", NULL};

const struct wt_filter_ops wt_filter_throttle = {
    .name = "throttle",
    .params = names,
    .open = throttle_open,
    .close = free,
    .down = throttle_down,
    .up = throttle_up,
    .unheld = throttle_unheld,
};
