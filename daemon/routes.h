/*
 * The functions behind the paths, by file, and what they show. Each answers its call, at once or
 * later.
 */
#ifndef WT_DAEMON_ROUTES_H
#define WT_DAEMON_ROUTES_H

#include "daemon/daemon.h"

/* routes.c: the table; true: refused, as this daemon stands by. */
extern const struct wt_route wt_daemon_routes[];
extern const size_t wt_daemon_n_routes;
bool wt_refuse_standby(struct wt_daemon *d, struct wt_call *call);

/* stats.c, job_stats.c: JSON, NULL when out of memory. */
json_t *wt_stats_json(struct wt_daemon *d);
json_t *wt_stats_health(struct wt_daemon *d);
json_t *wt_stats_tiers(struct wt_daemon *d);
json_t *wt_stats_datasets(struct wt_daemon *d);
json_t *wt_stats_dataset(const struct wt_daemon *d, const struct wt_catalog_set *set);
json_t *wt_stats_jobs(struct wt_daemon *d);
json_t *wt_stats_moves(struct wt_daemon *d);
/* What the optimum needs of cold for this job, and for all of now. */
json_t *wt_stats_predicted(struct wt_daemon *d, const struct wt_job *job);
/* Bytes from cold, by its readers and for it, to what the optimum would have taken; 0: none yet. */
double wt_stats_cold_ratio(const struct wt_job *job);

/* Bytes and shards in tier t, cold's too. */
uint64_t wt_stats_used(const struct wt_daemon *d, uint32_t t);
uint64_t wt_stats_held(const struct wt_daemon *d, uint32_t t);

/* metrics.c, shards.c */
void wt_route_metrics(void *arg, struct wt_call *call);
void wt_route_get_shards(void *arg, struct wt_call *call);

/* pin_routes.c: as wt_places_select, but a data set that is not known yet is looked for first. */
void wt_route_select(struct wt_daemon *d, const struct wt_selector *selector, wt_places_done done,
                     void *arg);
int wt_read_selector(const json_t *body, struct wt_selector *out, struct wt_err *err);
/* `tier` of the body, a tier above cold; not given: *out stays. */
int wt_read_tier(const struct wt_daemon *d, const json_t *body, uint32_t *out, struct wt_err *err);
json_t *wt_text_or_null(const char *text);
void wt_route_pin(void *arg, struct wt_call *call);
void wt_route_unpin(void *arg, struct wt_call *call);
void wt_route_quota(void *arg, struct wt_call *call);
void wt_route_get_pins(void *arg, struct wt_call *call);
void wt_route_get_quotas(void *arg, struct wt_call *call);

/* request_routes.c */
void wt_route_warm(void *arg, struct wt_call *call);
void wt_route_evict(void *arg, struct wt_call *call);
void wt_route_cancel(void *arg, struct wt_call *call);
void wt_route_get_requests(void *arg, struct wt_call *call);
void wt_route_get_request(void *arg, struct wt_call *call);

/* job_routes.c, progress.c */
void wt_route_post_dataset(void *arg, struct wt_call *call);
void wt_route_post_job(void *arg, struct wt_call *call);
void wt_route_delete_job(void *arg, struct wt_call *call);
void wt_route_post_progress(void *arg, struct wt_call *call);
/* The job of the path's {id}; NULL: there is none, and the call is answered. */
struct wt_job *wt_job_of(struct wt_daemon *d, struct wt_call *call);

#endif
