/*
 * Looks in the background whether warm and hot hold what the catalog believes.
 *
 * Happy path: entries that are believed but not seen get a STAT, a few at a time: the right size
 * makes them sure. Once after a set came, or the lock, each tier above cold is listed, for copies
 * that nobody has noted. A tier that may have lost what it held (a server restarted, flushed) is
 * looked through again. Failures: missing: the catalog loses it, which costs readers nothing more;
 * of a wrong size: told to `damaged`; a tier that is down, or cannot be listed, is asked again
 * later.
 */
#ifndef WT_DAEMON_RECONCILE_H
#define WT_DAEMON_RECONCILE_H

#include "core/log.h"
#include "daemon/catalog.h"
#include "tiers/tier.h"

struct wt_reconcile;
struct wt_reconcile *wt_reconcile_new(uv_loop_t *loop, struct wt_tier *const *tiers,
                                      struct wt_catalog *catalog, const struct wt_log *log);
/* An object of another size than the shard's stands in its place. */
void wt_reconcile_on_damage(struct wt_reconcile *r,
                            void (*damaged)(void *arg, struct wt_catalog_set *set, uint64_t shard,
                                            uint32_t tier),
                            void *arg);
/* Looks again at everything that is not sure. */
void wt_reconcile_kick(struct wt_reconcile *r);
/* Some copy is not sure any more: worth a look by and by. */
void wt_reconcile_doubtful(struct wt_reconcile *r);
/* The look by and by: where there was something the last time, or has come since, and for the
 * tiers that could not be listed. Nothing at all when all is sure. */
void wt_reconcile_again(struct wt_reconcile *r);
/* Nothing in that tier is sure any more: looks again at all that it is believed to hold. */
void wt_reconcile_doubt(struct wt_reconcile *r, uint32_t tier);
/* There may be copies of this set that nobody has noted: find them. */
void wt_reconcile_find(struct wt_reconcile *r, const struct wt_catalog_set *set);
struct wt_reconcile_stats {
    uint64_t confirmed, lost, found;
    bool busy;
};
void wt_reconcile_stats(const struct wt_reconcile *r, struct wt_reconcile_stats *out);
void wt_reconcile_stop(struct wt_reconcile *r, void (*stopped)(void *arg), void *arg);
void wt_reconcile_free(struct wt_reconcile *r);

#endif
