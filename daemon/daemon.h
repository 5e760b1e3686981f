/*
 * wafertierd: what its parts share, and how it starts, reloads and stops.
 *
 * Happy path: tiers are opened, the control socket listens, the lock is taken; then the state is
 * read, data sets are found, and the planner and the mover work until the stop. Without the lock it
 * stands by: it answers, but moves nothing and takes no jobs. Failures: what makes a start
 * impossible is returned; later ones are logged and lived with (a tier that is away, a full state
 * folder). Stop: control and lock, moves, loads, then the state is written, the tiers closed;
 * bounded by a few seconds.
 */
#ifndef WT_DAEMON_DAEMON_H
#define WT_DAEMON_DAEMON_H

#include "daemon/claims.h"
#include "daemon/config.h"
#include "daemon/control.h"
#include "daemon/datasets.h"
#include "daemon/events.h"
#include "daemon/flush.h"
#include "daemon/jobs.h"
#include "daemon/leases.h"
#include "daemon/lock.h"
#include "daemon/places.h"
#include "daemon/planner.h"
#include "daemon/reconcile.h"
#include "daemon/requests.h"
#include "daemon/rules.h"
#include "daemon/state.h"
#include "daemon/turns.h"

struct wt_read_stats { /* reported by jobs; hits + misses = reads */
    uint64_t reads, hits, misses, bytes;
    uint64_t tier_reads[WT_TIERS_MAX], tier_bytes[WT_TIERS_MAX];
};

struct wt_daemon {
    uv_loop_t *loop;
    const char *conf_path;
    struct wt_daemon_conf conf;
    struct wt_log log;
    struct wt_tier *tier[WT_TIERS_MAX];
    uint32_t n_tiers;
    struct wt_catalog catalog;
    struct wt_state *state; /* NULL until the lock was held, and what is remembered has been read */
    struct wt_rules *rules; /* the same */
    struct wt_events *events;
    struct wt_places *places;
    struct wt_requests *requests;
    struct wt_leases *leases;
    struct wt_jobs *jobs;
    struct wt_mover *mover;
    struct wt_claims *claims;
    struct wt_planner *planner;
    struct wt_datasets *datasets;
    struct wt_reconcile *reconcile;
    struct wt_scrub *scrub;
    struct wt_flush *flush;
    struct wt_lock *lock;
    struct wt_control *control;
    struct wt_read_stats reads;
    uint64_t started_ms;
    uint64_t saved_ms, usage_ms, found_ms, reconciled_ms, ruled_ms; /* when each was last done */
    uint64_t job_expired;
    uint64_t doubted_ms;
    bool doubts;                   /* copies are in doubt that jobs did not find */
    uint64_t losses[WT_TIERS_MAX]; /* of each tier that are known, */
    uint64_t downs[WT_TIERS_MAX];  /* and when its copies were last doubted */
    bool inherited;                /* it leads: all that it needs to know has been read */
    bool opening;                  /* a worker reads the state: */
    uv_work_t open_work;
    struct wt_state *open_state;
    struct wt_err open_err;
    bool dirty;                            /* something that a snapshot keeps has changed */
    uint8_t was_down, was_full, was_small; /* tiers, as events told last */
    enum { WT_ROLE_UNTOLD, WT_ROLE_LEADER, WT_ROLE_STANDBY } role;

    uv_timer_t tick, watchdog, hurry;
    struct wt_turns turns;
    bool timers_open;
    bool stopping;
    unsigned outstanding; /* parts that still stop */
    uint32_t tiers_open;
    bool failed;  /* stopped because of an error */
    bool saved;   /* the last snapshot is written */
    bool hurried; /* the stop took too long: nothing may be freed */
};

/* The loop runs it; wt_daemon_stop ends it. On failure nothing is left but closing handles: run the
 * loop once more. */
int wt_daemon_start(struct wt_daemon *d, uv_loop_t *loop, const char *conf_path,
                    const struct wt_daemon_conf *conf, const struct wt_log *log,
                    struct wt_err *err);
/* reload.c: takes over what can change in place, or nothing. *changed: names of options (a JSON
 * list), when it is not NULL. WT_EUNSUPPORTED: something needs a restart. */
int wt_daemon_reload(struct wt_daemon *d, json_t **changed, struct wt_err *err);
/* Ends everything; the loop then has nothing left to do. */
void wt_daemon_stop(struct wt_daemon *d);
/* After the loop has ended. */
void wt_daemon_free(struct wt_daemon *d);

uint64_t wt_daemon_now_ms(const struct wt_daemon *d); /* monotonic */
uint32_t wt_daemon_now_s(const struct wt_daemon *d);  /* of the daemon's calendar */
/* It holds the lock and works. */
bool wt_daemon_active(const struct wt_daemon *d);
void wt_daemon_half_life(struct wt_daemon *d);
void wt_daemon_find_sets(struct wt_daemon *d);
void wt_daemon_on_tick(uv_timer_t *timer);
void wt_daemon_part_stopped(void *daemon); /* stop.c: one of `outstanding` */

/* watch.c: what happens, for those who follow. Takes fields over. */
void wt_daemon_event(struct wt_daemon *d, const char *kind, json_t *fields);
void wt_daemon_job_event(struct wt_daemon *d, const char *kind, const struct wt_job *job);
void wt_daemon_on_move(void *arg, enum wt_move_change change, struct wt_catalog_set *set,
                       const struct wt_move_info *info);
void wt_daemon_on_request(void *arg, const struct wt_request *request);
/* The cold copy is missing or damaged (`what`): made anew from a copy above, where there is one;
 * until then nothing of the shard is dropped. */
void wt_daemon_cold_is_bad(void *arg, struct wt_catalog_set *set, uint64_t shard, const char *what);
/* So is what was landed and is not flushed: there is nothing to make it anew from. */
void wt_daemon_home_is_bad(struct wt_daemon *d, const struct wt_catalog_set *set, uint64_t shard,
                           const char *what);
void wt_daemon_on_flush(void *arg, bool flushed, const char *dataset, uint64_t generation,
                        const char *text);
void wt_daemon_watch(struct wt_daemon *d); /* tiers and role, at each tick */

#endif
