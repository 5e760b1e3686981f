/* Start, tick, reload and stop; see daemon.h. */
#include "daemon/daemon.h"

#include "daemon/dispose.h"
#include "daemon/heat.h"
#include "daemon/notify.h"
#include "daemon/routes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    USAGE_MS = 10000,     /* between questions how full the tiers are */
    RECONCILE_MS = 30000, /* between looks at copies that could not be confirmed, and at the time
                             that has passed for the policy */
    DOUBT_MS = 2000,      /* between looks at copies that jobs did not find */
    FIND_MS = 60000,      /* between attempts to load data sets that could not be loaded */
};

uint64_t wt_daemon_now_ms(const struct wt_daemon *d) {
    return uv_now(d->loop);
}

uint32_t wt_daemon_now_s(const struct wt_daemon *d) {
    return wt_clock_now(&d->catalog.clock);
}

bool wt_daemon_active(const struct wt_daemon *d) {
    return d->lock && wt_lock_held(d->lock) && d->inherited && !d->stopping;
}

/* At four times an epoch the heat of what was read at its begin and at its end differs by less than
 * `beat` and `margin` allow for. */
void wt_daemon_half_life(struct wt_daemon *d) {
    uint64_t now = wt_daemon_now_ms(d), up = now - d->started_ms;
    uint64_t epochs = 4 * wt_jobs_longest_epoch(d->jobs, now), known = 0;
    double least = (double)(epochs > d->conf.half_life ? epochs : d->conf.half_life) / 1000;
    for (size_t i = 0; i < d->catalog.n_sets; i++)
        known += d->catalog.set[i]->retired ? 0 : d->catalog.set[i]->d.m.stored_bytes;
    double rate = up ? (double)d->reads.bytes * 1000 / (double)up : 0;
    wt_planner_half_life(d->planner, wt_heat_half_life(least, known, rate));
}

/* ---- what the parts report ---- */

static void on_residency(void *arg, const struct wt_catalog_set *set, uint64_t shard, uint32_t tier,
                         bool held) {
    struct wt_daemon *d = arg;
    d->dirty = true;
    if (!held && set->home == (int)tier && !(set->shard[shard].mask & 1))
        wt_daemon_home_is_bad(d, set, shard, "gone");
    if (d->planner)
        wt_planner_touched(d->planner, set, shard);
    if (d->state)
        wt_state_note(d->state, set, shard, tier, held);
}

static bool may_change(void *arg) {
    const struct wt_daemon *d = arg;
    return d->lock && wt_lock_held(d->lock);
}

/* By a worker. A new generation takes over what the old one has. */
static void on_set_prepared(void *arg, struct wt_catalog_set *set) {
    const struct wt_daemon *d = arg;
    if (d->state && !set->old)
        wt_state_fill(d->state, &d->catalog.clock, set);
}

static void free_set(void *set) {
    wt_catalog_set_free(set);
}

static void on_set_left(void *arg, struct wt_catalog_set *set) {
    const struct wt_daemon *d = arg;
    wt_dispose(d->loop, free_set, set);
}

static void on_set_added(void *arg, struct wt_catalog_set *set) {
    struct wt_daemon *d = arg;
    void *known = d->state ? wt_state_forget(d->state, set->d.m.name) : NULL;
    if (known)
        wt_dispose(d->loop, free, known);
    wt_reconcile_kick(d->reconcile);
    /* Moves of the last moments may not have been noted, or another daemon may have made some. */
    wt_reconcile_find(d->reconcile, set);
    if (d->rules)
        wt_rules_apply(d->rules, set);
    if (set->home < 0)
        wt_log(&d->log, WT_LOG_ERROR,
               "data set %s was landed in tier '%s', which this daemon does not have: it can be "
               "neither read nor flushed; give the tier that name",
               set->d.m.name, set->d.m.home);
    wt_daemon_event(d, "dataset",
                    json_pack("{s:s, s:I, s:I}", "dataset", set->d.m.name, "generation",
                              (json_int_t)set->d.m.generation, "shards",
                              (json_int_t)set->d.m.shards));
    wt_planner_kick(d->planner);
}

static void on_rules(void *arg) {
    struct wt_daemon *d = arg;
    d->dirty = true;
    wt_planner_kick(d->planner);
}

/* Made anew where it has room beside all else: a damaged copy may be of any size. */
static void on_damage(void *arg, struct wt_catalog_set *set, uint64_t shard, uint32_t tier) {
    struct wt_daemon *d = arg;
    bool room = wt_planner_room(d->planner, tier, wt_catalog_size(set, shard));
    if (wt_catalog_truth(set, shard) == tier) {
        wt_daemon_home_is_bad(d, set, shard, "damaged");
        return;
    }
    if (wt_mover_repair(d->mover, set, shard, tier, room) < 0) { /* met again by its entry */
        wt_catalog_hold(&d->catalog, set, shard, tier, wt_daemon_now_s(d), false);
        wt_reconcile_doubtful(d->reconcile);
    }
}

void wt_daemon_find_sets(struct wt_daemon *d) {
    d->found_ms = wt_daemon_now_ms(d);
    const char *name;
    for (size_t i = 0; (name = wt_state_pending(d->state, i)); i++)
        wt_datasets_want(d->datasets, name, NULL, NULL, NULL);
    wt_datasets_discover(d->datasets);
}

/* ---- the lock ---- */

static void tell_status(struct wt_daemon *d) {
    struct wt_mover_stats s;
    wt_mover_stats(d->mover, &s);
    if (wt_daemon_active(d))
        wt_notify_status("active: %zu data sets, %" PRIu64 " shards, %zu jobs, %u moves",
                         d->catalog.n_sets, d->catalog.shards, wt_jobs_count(d->jobs),
                         s.running + s.queued);
    else
        wt_notify_status("standing by: %.200s", d->lock ? wt_lock_why(d->lock) : "starting");
}

/* Another daemon may have moved things meanwhile: nothing above cold is sure any more, and there
 * may be copies that we do not know of. */
static void doubt_everything(struct wt_daemon *d) {
    for (uint32_t t = 1; t < d->n_tiers; t++)
        wt_reconcile_doubt(d->reconcile, t);
    for (size_t i = 0; i < d->catalog.n_sets; i++)
        if (!d->catalog.set[i]->retired)
            wt_reconcile_find(d->reconcile, d->catalog.set[i]);
}

/* The lock is held, what is remembered has been read, pins and quotas are known. */
static void lead(void *arg) {
    struct wt_daemon *d = arg;
    if (!wt_lock_held(d->lock))
        return;
    d->inherited = true;
    wt_log(&d->log, WT_LOG_INFO, "the lock in tier %s is held: moves may begin",
           wt_tier_name(d->tier[0]));
    doubt_everything(d);
    d->dirty = true;
    d->saved_ms = 0; /* begin with a fresh snapshot: the journals of the last run are folded in */
    wt_daemon_find_sets(d);
    wt_reconcile_kick(d->reconcile);
    wt_planner_ask_usage(d->planner);
    wt_mover_enable(d->mover, true);
    wt_planner_enable(d->planner, true);
    wt_daemon_watch(d);
    wt_scrub_enable(d->scrub, true);
    tell_status(d);
}

static int open_rules(struct wt_daemon *d, struct wt_err *err) {
    struct wt_rules_opts o = {.loop = d->loop,
                              .folder = d->conf.state_folder,
                              .tier = d->conf.tier,
                              .n_tiers = d->n_tiers,
                              .catalog = &d->catalog,
                              .places = d->places,
                              .cold = d->tier[0],
                              .may = may_change,
                              .inherited = lead,
                              .log = &d->log,
                              .changed = on_rules,
                              .arg = d};
    return wt_rules_open(&o, &d->rules, err);
}

static void work_open(uv_work_t *work) {
    struct wt_daemon *d = work->data;
    wt_state_open(d->conf.state_folder, d->conf.tier, d->n_tiers, &d->log, &d->open_state,
                  &d->open_err);
}

static void on_state_open(uv_work_t *work, int status) {
    struct wt_daemon *d = work->data;
    struct wt_err err = d->open_err;
    d->opening = false;
    if (d->stopping) {
        wt_state_free(d->open_state);
        wt_daemon_part_stopped(d);
        return;
    }
    d->state = d->open_state;
    if (status == 0 && d->state && open_rules(d, &err) == 0) {
        if (wt_lock_held(d->lock))
            wt_rules_inherit(d->rules);
        return;
    }
    wt_log(&d->log, WT_LOG_ERROR, "%s", err.text);
    d->failed = true;
    wt_daemon_stop(d);
}

/* What is remembered of many shards takes a while to read. */
static void open_state(struct wt_daemon *d) {
    if (d->opening)
        return;
    d->open_work.data = d;
    d->open_state = NULL;
    d->opening = uv_queue_work(d->loop, &d->open_work, work_open, on_state_open) == 0;
    if (d->opening)
        return;
    wt_log(&d->log, WT_LOG_ERROR, "state_folder %s: no worker to read it", d->conf.state_folder);
    d->failed = true;
    wt_daemon_stop(d);
}

static void on_lock(void *arg, bool held) {
    struct wt_daemon *d = arg;
    if (d->stopping)
        return;
    if (!held) {
        d->inherited = false;
        wt_planner_enable(d->planner, false);
        wt_mover_enable(d->mover, false);
        wt_requests_abort(d->requests, "this daemon lost its lock and moves nothing any more");
        wt_daemon_watch(d);
        wt_scrub_enable(d->scrub, false);
        tell_status(d);
        return;
    }
    if (!d->state) {
        open_state(d);
        return;
    }
    wt_rules_inherit(d->rules);
}

/* ---- tick ---- */

static void on_job_gone(void *arg, const struct wt_job *job) {
    struct wt_daemon *d = arg;
    d->job_expired++;
    wt_daemon_job_event(d, "job_expired", job);
    wt_log(&d->log, WT_LOG_WARN, "job %s (%s) reported nothing for %" PRIu64 " s and is forgotten",
           job->id, job->o.name, d->conf.job_expiry / 1000);
}

static void on_job_removed(void *arg, struct wt_job *job) {
    struct wt_daemon *d = arg;
    wt_foresee_leave(wt_planner_foresee(d->planner), job);
}

static bool due(uint64_t *last, uint64_t now, uint64_t interval) {
    if (*last && now - *last < interval)
        return false;
    *last = now;
    return true;
}

/* A server that was restarted, flushed or away may have nothing of what it is believed to hold;
 * what a job did not find is looked for by ourselves. */
static void look_for_losses(struct wt_daemon *d, uint64_t now) {
    for (uint32_t t = 1; t < d->n_tiers; t++) {
        struct wt_tier_stats s;
        wt_tier_stats(d->tier[t], &s);
        if ((s.losses != d->losses[t] || s.down_count != d->downs[t]) && !s.down) {
            d->losses[t] = s.losses;
            d->downs[t] = s.down_count;
            wt_reconcile_doubt(d->reconcile, t);
        }
    }
    if (d->doubts && due(&d->doubted_ms, now, DOUBT_MS)) {
        d->doubts = false;
        wt_reconcile_kick(d->reconcile);
    }
}

void wt_daemon_on_tick(uv_timer_t *timer) {
    struct wt_daemon *d = timer->data;
    uint64_t now = wt_daemon_now_ms(d);
    wt_jobs_expire(d->jobs, now, d->conf.job_expiry, on_job_gone, d);
    wt_daemon_half_life(d);
    wt_daemon_watch(d);
    tell_status(d);
    if (!wt_daemon_active(d))
        return;
    wt_catalog_reap(&d->catalog);
    wt_leases_look(d->leases);
    wt_flush_look(d->flush);
    look_for_losses(d, now);
    if (due(&d->usage_ms, now, USAGE_MS))
        wt_planner_ask_usage(d->planner);
    if (due(&d->reconciled_ms, now, RECONCILE_MS)) {
        wt_reconcile_again(d->reconcile);
        wt_planner_look(d->planner);
    }
    if (due(&d->ruled_ms, now, FIND_MS))
        wt_rules_retry(d->rules);
    if (wt_jobs_count(d->jobs))
        wt_planner_kick(d->planner);
    if (now - d->found_ms >= FIND_MS && (wt_state_pending(d->state, 0) || d->catalog.n_sets == 0))
        wt_daemon_find_sets(d);
    if (d->dirty && due(&d->saved_ms, now, d->conf.snapshot_interval)) {
        d->dirty = false;
        wt_state_save_later(d->state, &d->catalog, d->loop);
    }
}

static void on_watchdog(uv_timer_t *timer) {
    (void)timer;
    wt_notify_alive();
}

/* ---- start ---- */

static int open_tiers(struct wt_daemon *d, struct wt_err *err) {
    for (uint32_t t = 0; t < d->conf.n_tiers; t++) {
        int rc = wt_tier_open(d->loop, &d->conf.tier[t], &d->log, &d->tier[t], err);
        if (rc < 0)
            return rc;
        d->n_tiers = d->tiers_open = t + 1;
    }
    return 0;
}

static int make_parts(struct wt_daemon *d, struct wt_err *err) {
    wt_catalog_init(&d->catalog, d->n_tiers);
    wt_clock_start(&d->catalog.clock, (uint32_t)time(NULL), uv_hrtime);
    d->catalog.changed = on_residency;
    d->catalog.dispose = on_set_left;
    d->catalog.arg = d;
    d->catalog.tiers = d->conf.tier;
    int rc = wt_mover_new(d->loop, d->tier, &d->catalog, &d->conf.mover, &d->log, &d->mover, err);
    if (rc < 0)
        return rc;
    wt_mover_on_change(d->mover, wt_daemon_on_move, d);
    wt_mover_guard(d->mover, may_change, d);
    d->jobs = wt_jobs_new();
    d->planner =
        wt_planner_new(d->loop, &(struct wt_planner_opts){.tiers = d->tier,
                                                          .tier_opts = d->conf.tier,
                                                          .catalog = &d->catalog,
                                                          .mover = d->mover,
                                                          .conf = &d->conf.policy,
                                                          .report_ms = &d->conf.report_interval});
    d->datasets = wt_datasets_new(d->loop, d->tier[0], &d->catalog, &d->log);
    d->reconcile = wt_reconcile_new(d->loop, d->tier, &d->catalog, &d->log);
    d->scrub = wt_scrub_new(d->loop, d->tier, &d->catalog, d->mover, &d->conf.scrub, &d->log);
    d->places = wt_places_new(d->tier, &d->catalog);
    d->claims = d->jobs ? wt_claims_new(d->mover, d->jobs, &d->log) : NULL;
    if (!d->claims || !d->planner || !d->datasets || !d->reconcile || !d->places || !d->scrub)
        return wt_err_set(err, WT_ENOMEM, "out of memory");
    d->requests = wt_requests_new(&(struct wt_requests_opts){.loop = d->loop,
                                                             .catalog = &d->catalog,
                                                             .mover = d->mover,
                                                             .planner = d->planner,
                                                             .reconcile = d->reconcile,
                                                             .ended = wt_daemon_on_request,
                                                             .arg = d});
    d->events = wt_events_new(d->loop);
    d->leases = wt_leases_new(d->loop, d->tier[0], &d->catalog, &d->log);
    d->flush = wt_flush_new(&(struct wt_flush_opts){.loop = d->loop,
                                                    .cold = d->tier[0],
                                                    .catalog = &d->catalog,
                                                    .mover = d->mover,
                                                    .datasets = d->datasets,
                                                    .log = &d->log,
                                                    .may = may_change,
                                                    .told = wt_daemon_on_flush,
                                                    .arg = d});
    if (!d->requests || !d->events || !d->leases || !d->flush)
        return wt_err_set(err, WT_ENOMEM, "out of memory");
    wt_reconcile_on_damage(d->reconcile, on_damage, d);
    wt_scrub_on_damage(d->scrub, on_damage, d);
    wt_scrub_on_cold(d->scrub, wt_daemon_cold_is_bad, d);
    wt_jobs_on_remove(d->jobs, on_job_removed, d);
    wt_datasets_on_prepare(d->datasets, on_set_prepared, d);
    wt_datasets_on_added(d->datasets, on_set_added, d);
    wt_daemon_half_life(d);
    return 0;
}

static int start_control(struct wt_daemon *d, struct wt_err *err) {
    struct wt_control_opts o = {.path = d->conf.socket_path,
                                .mode = d->conf.mode,
                                .group = d->conf.control_group,
                                .routes = wt_daemon_routes,
                                .n_routes = wt_daemon_n_routes,
                                .arg = d,
                                .address = d->conf.listen_address,
                                .cert_file = d->conf.listen_cert,
                                .key_file = d->conf.listen_key,
                                .token_file = d->conf.listen_token};
    return wt_control_new(d->loop, &o, &d->log, &d->control, err);
}

static void start_timers(struct wt_daemon *d) {
    uv_timer_init(d->loop, &d->tick);
    uv_timer_init(d->loop, &d->watchdog);
    uv_timer_init(d->loop, &d->hurry);
    d->tick.data = d->watchdog.data = d->hurry.data = d;
    d->timers_open = true;
    wt_turns_start(&d->turns, d->loop);
    uv_timer_start(&d->tick, wt_daemon_on_tick, d->conf.tick, d->conf.tick);
    uint64_t alive = wt_notify_interval();
    if (alive)
        uv_timer_start(&d->watchdog, on_watchdog, 0, alive);
}

int wt_daemon_start(struct wt_daemon *d, uv_loop_t *loop, const char *conf_path,
                    const struct wt_daemon_conf *conf, const struct wt_log *log,
                    struct wt_err *err) {
    *d = (struct wt_daemon){.loop = loop, .conf_path = conf_path, .conf = *conf, .log = *log};
    d->conf.socket_path = d->conf.control + (conf->socket_path - conf->control);
    d->log.level = conf->log_level;
    d->started_ms = uv_now(loop);
    start_timers(d);
    int rc = open_tiers(d, err);
    if (rc == 0)
        rc = make_parts(d, err);
    if (rc == 0)
        rc = start_control(d, err);
    if (rc == 0)
        rc = wt_lock_new(loop, d->tier[0], d->conf.lock_ttl, &d->log, on_lock, d, &d->lock, err);
    if (rc < 0) {
        d->failed = true;
        wt_daemon_stop(d);
        return rc;
    }
    wt_log(&d->log, WT_LOG_INFO, "listening on %s, %u tiers", d->conf.socket_path, d->n_tiers);
    wt_notify_ready();
    return 0;
}
