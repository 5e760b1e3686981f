/*
 * Looks in the background whether warm and hot hold what the catalog believes.
 *
 * Happy path: entries that are believed but not seen get a STAT, a few at a time: the right size
 * makes them sure. A data set of which nothing was remembered is looked for once by a LIST of each
 * tier above cold. A tier that may have lost what it held (a server restarted, flushed) is looked
 * through again. Failures: missing or of a wrong size: the catalog loses it, which costs readers
 * nothing more; a tier that is down is asked again later.
 */
#ifndef WT_DAEMON_RECONCILE_H
#define WT_DAEMON_RECONCILE_H

#include "core/log.h"
#include "daemon/catalog.h"
#include "tiers/tier.h"

struct wt_reconcile;
struct wt_reconcile *wt_reconcile_new(uv_loop_t *loop, struct wt_tier *const *tiers,
                                      struct wt_catalog *catalog, const struct wt_log *log);
/* Looks again at everything that is not sure. Cheap when all is. */
void wt_reconcile_kick(struct wt_reconcile *r);
/* Nothing in that tier is sure any more: looks again at all that it is believed to hold. */
void wt_reconcile_doubt(struct wt_reconcile *r, uint32_t tier);
/* Nothing is remembered of this set: find its copies. */
void wt_reconcile_find(struct wt_reconcile *r, const struct wt_catalog_set *set);
struct wt_reconcile_stats {
    uint64_t confirmed, lost, found;
    bool busy;
};
void wt_reconcile_stats(const struct wt_reconcile *r, struct wt_reconcile_stats *out);
void wt_reconcile_stop(struct wt_reconcile *r, void (*stopped)(void *arg), void *arg);
void wt_reconcile_free(struct wt_reconcile *r);

#endif
