/*
 * Leases for command-line tools (core/lease.h has the records): a pack holds one while it works, gc
 * holds one on the data set that it removes from, and each looks for the other's after it has
 * written its own. So one of the two at least sees the other, and that one waits or leaves it.
 */
#ifndef WT_TOOLS_LEASE_H
#define WT_TOOLS_LEASE_H

#include "core/lease.h"
#include "tools/target.h"

struct wt_hold {
    struct wt_target *target; /* NULL: nothing is held */
    struct wt_lease lease;
    char key[WT_LEASE_KEY];
    uint64_t renewed_ms; /* monotonic */
    bool lapsed;         /* it could not be renewed in time once: others may have thought us dead */
};

/* Writes the lease. GC: WT_ELOCKED when another gc holds it. */
int wt_hold_take(struct wt_hold *hold, struct wt_target *target, const struct wt_lease *lease,
                 struct wt_err *err);
/* Renews it when a third of its life is over. Call it now and then. */
void wt_hold_keep(struct wt_hold *hold);
/* Removes it; what cannot be removed expires. Fine when nothing is held. */
void wt_hold_drop(struct wt_hold *hold);

/* One lease by its key, in the target's tier or its place for leases: 1 live (*lease is filled in;
 * a record that cannot be understood counts, as a pack's, for a day), 0 not there or over, else an
 * error. */
int wt_lease_look(struct wt_target *target, struct wt_tier *place, const char *key,
                  uint64_t written_s, struct wt_lease *lease, struct wt_err *err);

struct wt_lease_entry {
    char key[WT_LEASE_KEY];
    struct wt_tier *place;
    uint64_t size;
    bool live;
    struct wt_lease lease; /* when live */
};
struct wt_lease_list {
    struct wt_lease_entry *entry;
    size_t n, cap;
};
/* All leases of a data set (NULL: of all), live or over, in both places. Free with
 * wt_lease_list_free. */
int wt_lease_list(struct wt_target *target, const char *dataset, struct wt_lease_list *list,
                  struct wt_err *err);
void wt_lease_list_free(struct wt_lease_list *list);

#endif
