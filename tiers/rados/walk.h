/*
 * Walking a pool's namespace on a worker: every object of it, in the order of its hashes, heads
 * understood. It walks the whole pool (RADOS has no order of names), so it is for fsck, gc and
 * finding data sets.
 */
#ifndef WT_TIERS_RADOS_WALK_H
#define WT_TIERS_RADOS_WALK_H

#include "tiers/rados/url.h"
#include "tiers/tier.h"

struct rados_walk {
    struct rados_url url;
    char prefix[WT_KEY_SIZE];
    unsigned flags; /* WT_LIST_... */
    bool (*stopped)(void *arg);
    int (*each)(void *arg, const struct wt_entry *entry); /* non-zero ends the walk: its result */
    void *arg;
};

/* Blocks; over a connection of its own whose every operation has a timeout, so that it always ends.
 * 0, what each() gave, WT_ECANCELED, or a code with err set. */
int rados_walk(const struct rados_walk *walk, struct wt_err *err);

#endif
