/*
 * Finds data sets and loads them from the cold tier into the catalog.
 *
 * Happy path: a name is wanted; its manifest and shards.idx are read; a worker prepares the set,
 * for it may have millions of shards; the catalog has it; `done` says so. Names come from jobs,
 * from POST /v1/datasets, from the state folder, and from one shallow LIST of the cold tier.
 * Failures: those of the load go to `done`; a folder without manifest is no data set.
 */
#ifndef WT_DAEMON_DATASETS_H
#define WT_DAEMON_DATASETS_H

#include "core/log.h"
#include "daemon/catalog.h"
#include "tiers/tier.h"

#include <uv.h>

/* rc, err: of the load; set: what stands in the catalog when rc = 0. */
typedef void (*wt_dataset_done)(void *arg, int rc, const struct wt_err *err,
                                struct wt_catalog_set *set);

struct wt_datasets;
struct wt_datasets *wt_datasets_new(uv_loop_t *loop, struct wt_tier *cold,
                                    struct wt_catalog *catalog, const struct wt_log *log);
/* `prepare`: a set is about to enter the catalog. Called by a worker. */
void wt_datasets_on_prepare(struct wt_datasets *ds,
                            void (*prepare)(void *arg, struct wt_catalog_set *set), void *arg);
/* `added`: a set, or a new generation of one, came into the catalog. */
void wt_datasets_on_added(struct wt_datasets *ds,
                          void (*added)(void *arg, struct wt_catalog_set *set), void *arg);
/* Reads the manifest now, also when the set is there. done may be NULL (failures are logged).
 * WT_EINVAL: no such name can be; WT_EBUSY: too many wait. */
int wt_datasets_want(struct wt_datasets *ds, const char *name, wt_dataset_done done, void *arg,
                     struct wt_err *err);
/* Lists the cold tier and wants what it finds. */
void wt_datasets_discover(struct wt_datasets *ds);
/* Those that wait get WT_ECANCELED; `stopped` is called (perhaps at once) when nothing is read any
 * more; then free. */
void wt_datasets_stop(struct wt_datasets *ds, void (*stopped)(void *arg), void *arg);
void wt_datasets_free(struct wt_datasets *ds);

#endif
