/*
 * Which shards hold a lot or a wafer.
 *
 * Happy path: a selector that names a lot makes the index of each shard of the data set be read
 * from cold once, a few at a time; the answer is kept, by the manifest's hash, for later ones. A
 * selector without a lot needs no reading and is answered at once. Failures: an index that cannot
 * be read, memory, a data set that is replaced meanwhile: all who wait are told; the next selector
 * tries again. No such lot or wafer: WT_EMISSING.
 */
#ifndef WT_DAEMON_PLACES_H
#define WT_DAEMON_PLACES_H

#include "daemon/catalog.h"

struct wt_selector {
    char dataset[WT_DATASET_NAME];
    char lot[WT_KEY_MAX], wafer[WT_KEY_MAX]; /* "": all of them */
};

struct wt_shard_range {
    uint64_t first, end;
};
struct wt_selection { /* ascending, without gaps between neighbours */
    struct wt_shard_range *range;
    size_t n, cap;
    uint64_t shards, bytes;
};
void wt_selection_free(struct wt_selection *s);
/* The shard that follows `shard` in it (UINT64_MAX: the first); false: that was the last. */
bool wt_selection_next(const struct wt_selection *s, uint64_t *shard);
bool wt_selection_has(const struct wt_selection *s, uint64_t shard);

/* rc < 0: err says why, set and selection are NULL. The selection becomes the receiver's. */
typedef void (*wt_places_done)(void *arg, int rc, const struct wt_err *err,
                               struct wt_catalog_set *set, struct wt_selection *selection);

struct wt_places;
struct wt_places *wt_places_new(struct wt_tier *const *tiers, struct wt_catalog *catalog);
/* In the data set's current generation. `done` is called once, perhaps before this returns. */
void wt_places_select(struct wt_places *p, const struct wt_selector *selector, wt_places_done done,
                      void *arg);
/* Those that wait get WT_ECANCELED; `stopped` is called (perhaps at once) when nothing is read any
 * more; then free. */
void wt_places_stop(struct wt_places *p, void (*stopped)(void *arg), void *arg);
void wt_places_free(struct wt_places *p);

#endif
