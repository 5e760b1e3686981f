/*
 * The end of the daemon; see daemon.h.
 *
 *   everything that submits requests stops -> state is written -> lock is given back -> tiers close
 * -> timers close
 *
 * Each part says when it is done; the next stage begins when none is outstanding. What can be
 * canceled is; what publishes or removes is let end, since its outcome counts. When that takes
 * LET_GO_MS the daemon leaves as if killed: the state is written, the loop is stopped, and the lock
 * is *not* given back. What was sent may still arrive, and until the lock expires nobody else
 * changes these tiers. With nothing in flight any more the lock has a time of its own to be given
 * back in.
 */
#include "daemon/daemon.h"
#include "daemon/notify.h"

enum { LET_GO_MS = 4000, GIVE_BACK_MS = 2000, AGAIN_MS = 5 };

static void on_hurry(uv_timer_t *timer);

static void on_timer_closed(uv_handle_t *h) {
    (void)h;
}

static void close_timers(struct wt_daemon *d) {
    if (!d->timers_open)
        return;
    d->timers_open = false;
    uv_close((uv_handle_t *)&d->tick, on_timer_closed);
    uv_close((uv_handle_t *)&d->watchdog, on_timer_closed);
    uv_close((uv_handle_t *)&d->hurry, on_timer_closed);
    wt_turns_stop(&d->turns);
}

static void on_tier_closed(void *arg) {
    struct wt_daemon *d = arg;
    if (--d->outstanding == 0)
        close_timers(d);
}

static void close_tiers(struct wt_daemon *d) {
    d->outstanding = d->tiers_open;
    d->tiers_open = 0;
    if (d->outstanding == 0)
        close_timers(d);
    for (uint32_t t = 0, n = d->outstanding; t < n; t++)
        wt_tier_close(d->tier[t], on_tier_closed, d);
}

static void on_lock_stopped(void *arg) {
    close_tiers(arg);
}

static void save_state(uv_timer_t *timer) {
    struct wt_daemon *d = timer->data;
    struct wt_err err = {0};
    if (d->state && wt_state_saving(d->state)) { /* a worker writes: the last word comes after it */
        wt_state_save_cancel(d->state);
        uv_timer_start(&d->tick, save_state, AGAIN_MS, 0);
        return;
    }
    uv_timer_stop(&d->tick);
    if (d->state && wt_state_save(d->state, &d->catalog, &err) < 0)
        wt_log(&d->log, WT_LOG_WARN, "state is not kept: %s", err.text);
    d->saved = true;
    uv_timer_start(&d->hurry, on_hurry, GIVE_BACK_MS, 0);
    if (d->lock)
        wt_lock_stop(d->lock, on_lock_stopped, d);
    else
        close_tiers(d);
}

void wt_daemon_part_stopped(void *arg) {
    struct wt_daemon *d = arg;
    if (--d->outstanding == 0)
        save_state(&d->tick);
}

static void name_tiers(const struct wt_daemon *d) {
    for (uint32_t t = 0; t < d->tiers_open; t++) {
        struct wt_tier_stats s;
        wt_tier_stats(d->tier[t], &s);
        if (s.in_flight)
            wt_log(&d->log, WT_LOG_WARN, "tier %s does not let go of %u requests",
                   wt_tier_name(d->tier[t]), s.in_flight);
    }
}

/* Storage hangs. What is in flight is lost, as by a kill: nothing that counts. */
static void on_hurry(uv_timer_t *timer) {
    struct wt_daemon *d = timer->data;
    name_tiers(d);
    wt_log(&d->log, WT_LOG_WARN,
           "leaving without an answer, as if killed: who stands by waits until the lock expires");
    if (!d->saved && d->state && !wt_state_saving(d->state))
        wt_state_save(d->state, &d->catalog, NULL);
    d->hurried = true;
    uv_stop(d->loop);
}

void wt_daemon_stop(struct wt_daemon *d) {
    if (d->stopping)
        return;
    d->stopping = true;
    wt_notify_stopping();
    uv_timer_stop(&d->tick);
    uv_timer_start(&d->hurry, on_hurry, LET_GO_MS, 0);
    d->outstanding = 1 + d->opening; /* parts may stop at once */
    if (d->events && ++d->outstanding)
        wt_events_stop(d->events, "the daemon stops", wt_daemon_part_stopped, d);
    if (d->control && ++d->outstanding)
        wt_control_stop(d->control, wt_daemon_part_stopped, d);
    if (d->datasets && ++d->outstanding)
        wt_datasets_stop(d->datasets, wt_daemon_part_stopped, d);
    if (d->planner && ++d->outstanding)
        wt_planner_stop(d->planner, wt_daemon_part_stopped, d);
    if (d->scrub && ++d->outstanding)
        wt_scrub_stop(d->scrub, wt_daemon_part_stopped, d);
    if (d->flush && ++d->outstanding)
        wt_flush_stop(d->flush, wt_daemon_part_stopped, d);
    if (d->reconcile && ++d->outstanding)
        wt_reconcile_stop(d->reconcile, wt_daemon_part_stopped, d);
    if (d->requests && ++d->outstanding)
        wt_requests_stop(d->requests, wt_daemon_part_stopped, d);
    if (d->leases && ++d->outstanding)
        wt_leases_stop(d->leases, wt_daemon_part_stopped, d);
    if (d->places && ++d->outstanding)
        wt_places_stop(d->places, wt_daemon_part_stopped, d);
    if (d->rules && ++d->outstanding)
        wt_rules_stop(d->rules, wt_daemon_part_stopped, d);
    if (d->mover && ++d->outstanding)
        wt_mover_stop(d->mover, wt_daemon_part_stopped, d);
    wt_daemon_part_stopped(d);
}

void wt_daemon_free(struct wt_daemon *d) {
    if (d->hurried) /* requests still point into all of it */
        return;
    wt_control_free(d->control);
    wt_lock_free(d->lock);
    wt_datasets_free(d->datasets);
    wt_scrub_free(d->scrub);
    wt_flush_free(d->flush);
    wt_reconcile_free(d->reconcile);
    wt_jobs_free(d->jobs); /* each leaves the planner */
    wt_planner_free(d->planner);
    wt_requests_free(d->requests);
    wt_leases_free(d->leases);
    wt_rules_free(d->rules);
    wt_places_free(d->places);
    wt_events_free(d->events);
    wt_claims_free(d->claims);
    wt_mover_free(d->mover);
    wt_state_free(d->state);
    wt_catalog_free(&d->catalog);
}
