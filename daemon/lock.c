/* The lock in the cold tier; see lock.h. */
#include "daemon/lock.h"

#include "core/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct wt_lock {
    uv_timer_t timer; /* next attempt */
    uv_timer_t guard; /* stops the work when the lock was not renewed */
    unsigned open;    /* handles not closed yet */
    struct wt_tier *cold;
    struct wt_req req;
    bool busy, held, stopping, waited;
    char owner[160];
    char why[WT_ERR_TEXT];
    uint64_t ttl_ms, asked_ms;
    uint64_t asked_ns, until_ns; /* it is ours for sure */
    const struct wt_log *log;
    void (*changed)(void *arg, bool held);
    void *arg;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

static void on_timer(uv_timer_t *timer);

static void set_held(struct wt_lock *l, bool held) {
    if (l->held == held)
        return;
    l->held = held;
    if (!held)
        uv_timer_stop(&l->guard);
    l->changed(l->arg, held);
}

static void on_guard(uv_timer_t *guard) {
    struct wt_lock *l = guard->data;
    wt_log(l->log, WT_LOG_ERROR,
           "the lock %s in tier %s could not be renewed: nothing moves until it is held again",
           WT_LOCK_KEY, wt_tier_name(l->cold));
    set_held(l, false);
}

static void on_closed(uv_handle_t *h) {
    struct wt_lock *l = h->data;
    if (--l->open == 0 && l->stopped)
        l->stopped(l->stopped_arg); /* may free l */
}

static void close_handles(struct wt_lock *l) {
    uv_close((uv_handle_t *)&l->timer, on_closed);
    uv_close((uv_handle_t *)&l->guard, on_closed);
}

static void refused(struct wt_lock *l, int rc, const char *text) {
    if (strcmp(l->why, text) != 0)
        wt_log(l->log, rc == WT_ELOCKED ? WT_LOG_INFO : WT_LOG_WARN, "standing by: %s", text);
    snprintf(l->why, sizeof l->why, "%s", text);
    if (rc == WT_ELOCKED && l->held) {
        wt_log(l->log, WT_LOG_ERROR, "the lock was lost: %s", text);
        set_held(l, false);
    }
}

/* A renewal that failed is tried again at once: there is time for some before the guard. Who stands
 * by asks often enough to take over soon after the other one's time is over. */
static void again(struct wt_lock *l, bool renewed) {
    uint64_t parts = renewed ? 3 : l->held ? 24 : 10;
    uv_timer_start(&l->timer, on_timer, l->ttl_ms / parts + 1, 0);
}

static void on_locked(struct wt_req *req) {
    struct wt_lock *l = req->arg;
    l->busy = false;
    if (l->stopping) {
        if (req->rc == 0)
            l->held = true; /* to be given back */
        wt_lock_stop(l, l->stopped, l->stopped_arg);
        return;
    }
    uint64_t now = uv_now(l->timer.loop), guard_at = l->asked_ms + l->ttl_ms * 2 / 3;
    bool good = req->rc == 0 && guard_at > now;
    if (good) {
        l->why[0] = '\0';
        l->until_ns = l->asked_ns + l->ttl_ms * 2000000 / 3;
        uv_timer_start(&l->guard, on_guard, guard_at - now, 0);
        set_held(l, true);
    } else {
        refused(l, req->rc, req->rc < 0 ? req->err.text : "the answer came too late");
    }
    again(l, good);
}

static void on_timer(uv_timer_t *timer) {
    struct wt_lock *l = timer->data;
    l->asked_ms = uv_now(timer->loop);
    l->asked_ns = uv_hrtime();
    l->req = (struct wt_req){.op = WT_OP_LOCK,
                             .key = WT_LOCK_KEY,
                             .owner = l->owner,
                             .ttl_ms = l->ttl_ms,
                             .timeout_ms = (uint32_t)(l->ttl_ms / 6),
                             .done = on_locked,
                             .arg = l};
    int rc = wt_tier_submit(l->cold, &l->req);
    l->busy = rc == 0;
    if (rc == 0)
        return;
    refused(l, rc, l->req.err.code ? l->req.err.text : wt_err_text(rc));
    again(l, false);
}

int wt_lock_new(uv_loop_t *loop, struct wt_tier *cold, uint64_t ttl_ms, const struct wt_log *log,
                void (*changed)(void *arg, bool held), void *arg, struct wt_lock **out,
                struct wt_err *err) {
    struct wt_lock *l = wt_calloc(1, sizeof *l);
    if (!l)
        return wt_err_set(err, WT_ENOMEM, "lock: out of memory");
    char host[64] = "localhost";
    gethostname(host, sizeof host - 1);
    snprintf(l->owner, sizeof l->owner, "%s:%ld:%lld", host, (long)getpid(), (long long)time(NULL));
    l->cold = cold;
    l->ttl_ms = ttl_ms;
    l->log = log;
    l->changed = changed;
    l->arg = arg;
    uv_timer_init(loop, &l->timer);
    uv_timer_init(loop, &l->guard);
    l->timer.data = l->guard.data = l;
    l->open = 2;
    uv_timer_start(&l->timer, on_timer, 0, 0);
    *out = l;
    return 0;
}

bool wt_lock_held(const struct wt_lock *l) {
    return l->held && uv_hrtime() < l->until_ns;
}

const char *wt_lock_why(const struct wt_lock *l) {
    return l->why;
}

static void on_unlocked(struct wt_req *req) {
    struct wt_lock *l = req->arg;
    l->held = false;
    close_handles(l);
}

void wt_lock_stop(struct wt_lock *l, void (*stopped)(void *arg), void *arg) {
    l->stopping = true;
    l->stopped = stopped;
    l->stopped_arg = arg;
    uv_timer_stop(&l->timer);
    uv_timer_stop(&l->guard);
    if (l->busy) {
        if (!l->waited)
            wt_tier_cancel(&l->req);
        l->waited = true;
        return; /* on_locked comes back here */
    }
    if (l->held) {
        l->req = (struct wt_req){.op = WT_OP_UNLOCK,
                                 .key = WT_LOCK_KEY,
                                 .owner = l->owner,
                                 .timeout_ms = 1000,
                                 .done = on_unlocked,
                                 .arg = l};
        if (wt_tier_submit(l->cold, &l->req) == 0)
            return;
    }
    close_handles(l);
}

void wt_lock_free(struct wt_lock *l) {
    free(l);
}
