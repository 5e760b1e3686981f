/*
 * Kept mappings: whole shards of a tier that can be mapped (WT_CAP_MAP), with their parsed index
 * and which samples' sums were checked since the bytes came. A mapping that is in use by nobody
 * stays, oldest first to go, as long as all of them fit what the budget has left; so the next epoch
 * finds it mapped, parsed and checked.
 */
#ifndef WT_LOADER_KEEPER_H
#define WT_LOADER_KEEPER_H

#include "core/dataset.h"
#include "core/shard.h"
#include "tiers/tier.h"

#include <pthread.h>
#include <stdbool.h>

struct wl_context;
struct wt_keeper;

struct wt_kept {
    struct wt_hash hash;
    unsigned tier;
    struct wt_map *map;
    struct wt_map_view view;
    pthread_mutex_t mutex; /* guards the next three */
    bool parsed;
    struct wt_shard_index index; /* constant once parsed */
    uint8_t *checked;            /* [index.samples] */
    /* the keeper's */
    unsigned refs;
    bool listed;           /* found by get; a damaged one is not */
    struct wt_kept *chain; /* bucket */
    struct wt_kept *older, *newer;
};

int wt_keeper_new(struct wl_context *ctx, struct wt_keeper **out, struct wt_err *err);
void wt_keeper_free(struct wt_keeper *k); /* nothing may be in use; NULL is fine */

/* All: any thread. One reference for the caller, or NULL. */
struct wt_kept *wt_keeper_get(struct wt_keeper *k, struct wt_hash hash);
/* Takes the mapping over; NULL without memory (the mapping is released). When another came first,
 * that one is given. */
struct wt_kept *wt_keeper_add(struct wt_keeper *k, struct wt_hash hash, unsigned tier,
                              struct wt_map *map);
void wt_keeper_put(struct wt_keeper *k, struct wt_kept *kept);
/* It is damaged, or the tier dropped it: not to be found any more. `tiers`: bits; a kept one of
 * another tier stays. */
void wt_keeper_forget(struct wt_keeper *k, struct wt_hash hash, unsigned tiers);

/* Parses the index where that was not done yet; *index is good while the reference is held. */
int wt_kept_index(struct wt_kept *kept, const struct wt_shard_rec *rec,
                  const struct wt_shard_index **index, struct wt_err *err);
/* Plain tar: checks the sums of samples that were not checked since the mapping was made. */
int wt_kept_check(struct wt_kept *kept, uint32_t first, uint32_t count, struct wt_err *err);

#endif
