/* The consumer of `wafertier loadtest`: takes batches and works on them for as long as it was told.
 */
#include "tools/loadtest/loadtest.h"

#include <math.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void work_until(double when) {
    double left = when - now();
    if (left <= 0)
        return;
    struct timespec t = {.tv_sec = (time_t)left};
    t.tv_nsec = (long)((left - (double)t.tv_sec) * 1e9);
    nanosleep(&t, NULL);
}

static void subtract_stage(wl_stage_stats *a, const wl_stage_stats *b) {
    a->busy_s -= b->busy_s;
    a->wait_s -= b->wait_s;
}

static void subtract(wl_stats *a, const wl_stats *b) {
    a->batches -= b->batches;
    a->samples -= b->samples;
    a->bytes -= b->bytes;
    a->stall_s -= b->stall_s;
    a->stall_fetch_s -= b->stall_fetch_s;
    a->stall_decode_s -= b->stall_decode_s;
    a->stall_stage_s -= b->stall_stage_s;
    a->stall_consumer_s -= b->stall_consumer_s;
    subtract_stage(&a->fetch, &b->fetch);
    subtract_stage(&a->decode, &b->decode);
    subtract_stage(&a->stage, &b->stage);
    subtract_stage(&a->deliver, &b->deliver);
    for (size_t i = 0; i < a->tiers; i++) {
        a->tier[i].reads -= b->tier[i].reads;
        a->tier[i].bytes -= b->tier[i].bytes;
        a->tier[i].misses -= b->tier[i].misses;
        a->tier[i].failures -= b->tier[i].failures;
        a->tier_stall_s[i] -= b->tier_stall_s[i];
    }
    a->bad_samples -= b->bad_samples;
    a->retries -= b->retries;
    a->joins -= b->joins;
    a->waits -= b->waits;
    a->waits_met -= b->waits_met;
}

static int loader_error(const wl_loader *l, struct wt_err *err) {
    const wl_error *e = wl_last_error(l);
    return wt_err_set(err, WT_EIO, "%s: %s", wl_result_name(e->code), e->message);
}

int wt_loadtest_run(wl_loader *l, double seconds, double rate, bool (*stopped)(void *), void *arg,
                    struct wt_loadtest_phase *out, struct wt_err *err) {
    enum { SLICE_MS = 100 };
    wl_stats before = {.size = sizeof before};
    *out = (struct wt_loadtest_phase){.d = {.size = sizeof out->d}};
    wl_get_stats(l, &before);
    double began = now(), end = began + seconds;
    while (now() < end && !stopped(arg)) {
        wl_batch *b;
        int rc = wl_next(l, NULL, SLICE_MS, &b);
        if (rc < 0)
            return loader_error(l, err);
        if (rc == WL_END) {
            out->ended = true;
            break;
        }
        if (rc != WL_OK)
            continue;
        if (rate > 0)
            work_until(fmin(end, now() + (double)wl_batch_size(b) / rate));
        wl_batch_release(b, NULL);
    }
    out->seconds = now() - began;
    wl_get_stats(l, &out->d);
    subtract(&out->d, &before);
    out->samples = out->d.samples;
    out->bytes = out->d.bytes;
    out->stall_s = out->d.stall_s;
    return 0;
}

const char *wt_loadtest_bottleneck(const struct wt_loadtest_phase *p, int *tier) {
    const struct {
        const char *name;
        double stall_s;
    } stage[] = {{"fetch", p->d.stall_fetch_s},
                 {"decode", p->d.stall_decode_s},
                 {"stage", p->d.stall_stage_s},
                 {"consumer", p->d.stall_consumer_s}};
    const char *worst = NULL;
    double most = 0;
    for (size_t i = 0; i < sizeof stage / sizeof stage[0]; i++) {
        if (stage[i].stall_s > most) {
            most = stage[i].stall_s;
            worst = stage[i].name;
        }
    }
    int at = -1;
    for (size_t i = 0; worst && worst[0] == 'f' && i < p->d.tiers; i++)
        if (p->d.tier_stall_s[i] > (at < 0 ? 0 : p->d.tier_stall_s[at]))
            at = (int)i;
    if (tier)
        *tier = at;
    return worst;
}

double wt_loadtest_waits(const struct wt_loadtest_phase *p) {
    return p->seconds > 0 ? p->stall_s / p->seconds : 0;
}
