/*
 * Reading a data set's manifest from the caller's thread: the request is posted to the I/O thread,
 * the caller waits.
 *
 * Failure modes: a cold tier that is away is asked again until timeout_ms is over, then the request
 * is canceled; a data set that is not there, or damaged, is an error at once.
 */
#include "libloader/open.h"
#include "tiers/load.h"

#include <string.h>
#include <time.h>

enum { RETRY_FIRST_MS = 50, RETRY_MAX_MS = 2000 };

struct reading {
    struct wl_context *ctx;
    struct wt_post start, cancel;
    struct wt_load_dataset load;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool done, canceled; /* canceled: the cancel post has run too */
};

static void finish(struct reading *r) {
    pthread_mutex_lock(&r->mutex);
    r->done = true;
    pthread_cond_signal(&r->cond);
    pthread_mutex_unlock(&r->mutex);
}

static void on_loaded(struct wt_load_dataset *load) {
    finish(load->arg);
}

static void on_start(struct wt_post *post) {
    struct reading *r = (struct reading *)((char *)post - offsetof(struct reading, start));
    r->load.tier = r->ctx->tier[0];
    int rc = wt_load_dataset(&r->load);
    if (rc) {
        r->load.rc = rc;
        if (!r->load.err.code)
            wt_err_set(&r->load.err, rc, "tier %s: %s", wt_tier_name(r->load.tier),
                       wt_err_text(rc));
        finish(r);
    }
}

static void on_cancel(struct wt_post *post) {
    struct reading *r = (struct reading *)((char *)post - offsetof(struct reading, cancel));
    pthread_mutex_lock(&r->mutex);
    bool done = r->done;
    pthread_mutex_unlock(&r->mutex);
    if (!done)
        wt_load_dataset_cancel(&r->load);
    pthread_mutex_lock(&r->mutex);
    r->canceled = true;
    pthread_cond_signal(&r->cond);
    pthread_mutex_unlock(&r->mutex);
}

static void wait_done(struct reading *r, uint64_t deadline) {
    struct timespec t = {.tv_sec = (time_t)(deadline / 1000000000u),
                         .tv_nsec = (long)(deadline % 1000000000u)};
    pthread_mutex_lock(&r->mutex);
    while (!r->done && pthread_cond_timedwait(&r->cond, &r->mutex, &t) == 0)
        continue;
    bool late = !r->done;
    pthread_mutex_unlock(&r->mutex);
    if (!late)
        return;
    r->cancel.run = on_cancel;
    wt_context_post(r->ctx, &r->cancel);
    pthread_mutex_lock(&r->mutex);
    while (!r->done || !r->canceled)
        pthread_cond_wait(&r->cond, &r->mutex);
    pthread_mutex_unlock(&r->mutex);
}

/* One try. */
static int read_once(struct wl_loader *l, uint64_t deadline, struct wt_err *err) {
    struct reading r = {.ctx = l->ctx, .start.run = on_start, .load = {.done = on_loaded}};
    r.load.arg = &r;
    strcpy(r.load.name, l->dataset);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r.cond, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&r.mutex, NULL);
    wt_context_post(l->ctx, &r.start);
    wait_done(&r, deadline);
    pthread_cond_destroy(&r.cond);
    pthread_mutex_destroy(&r.mutex);
    if (r.load.rc)
        *err = r.load.err;
    else
        l->ds = r.load.dataset;
    return r.load.rc;
}

static void sleep_ms(uint64_t ms) {
    struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000)};
    nanosleep(&t, NULL);
}

static int check(struct wl_loader *l, struct wt_err *err) {
    if (l->o.generation && l->o.generation != l->ds.m.generation)
        return wt_err_set(err, WT_EMISSING,
                          "data set '%s' is at generation %llu, generation %llu is not there",
                          l->dataset, (unsigned long long)l->ds.m.generation,
                          (unsigned long long)l->o.generation);
    if (l->ds.m.samples == 0)
        return wt_err_set(err, WT_EINVAL, "data set '%s' has no samples", l->dataset);
    return 0;
}

/* What was landed and is not flushed lies in its home, perhaps nowhere else. */
static int find_home(struct wl_loader *l, struct wt_err *err) {
    const char *home = l->ds.m.home;
    l->home = 0;
    if (!home[0])
        return 0;
    for (unsigned t = 1; t < l->ctx->n_tiers; t++)
        if (strcmp(wt_tier_name(l->ctx->tier[t]), home) == 0)
            l->home = t;
    return l->home
               ? 0
               : wt_err_set(err, WT_EINVAL,
                            "data set '%s' was landed in tier '%s' and is not flushed to cold "
                            "yet: give this loader a tier of that name, or run 'wafertier flush "
                            "%s' first",
                            l->dataset, home, l->dataset);
}

int wt_loader_read_dataset(struct wl_loader *l, struct wt_err *err) {
    int rc = wt_dataset_name_check(l->dataset, err);
    if (rc)
        return rc;
    uint64_t deadline = wt_now_ns() + (uint64_t)l->o.timeout_ms * 1000000, pause = RETRY_FIRST_MS;
    for (;;) {
        rc = read_once(l, deadline, err);
        if (!rc)
            rc = check(l, err);
        if (!rc)
            return find_home(l, err);
        if (l->ds.m.name[0])
            return rc;
        bool away = wt_err_blame(rc) == WT_BLAME_TIER || rc == WT_EBUSY || rc == WT_ECANCELED;
        if (!away || wt_now_ns() + pause * 1000000 >= deadline)
            break;
        sleep_ms(pause);
        pause = pause * 2 < RETRY_MAX_MS ? pause * 2 : (uint64_t)RETRY_MAX_MS;
    }
    if (rc == WT_ECANCELED)
        err->code = WT_ETIMEDOUT;
    wt_err_wrap(err, "data set '%s'", l->dataset);
    return err->code;
}
