/*
 * Reading a data set from a tier, asynchronously: manifest, then the parts of shards.idx, checked
 * and built (core/dataset.h).
 */
#ifndef WT_TIERS_LOAD_H
#define WT_TIERS_LOAD_H

#include "core/dataset.h"
#include "tiers/tier.h"

struct wt_load_dataset {
    /* set by the caller */
    struct wt_tier *tier; /* the cold one */
    char name[WT_DATASET_NAME];
    const struct wt_hash *known; /* of a manifest; NULL: none */
    void (*done)(struct wt_load_dataset *load);
    void *arg;
    /* results */
    int rc;
    struct wt_err err;
    bool unchanged;            /* the manifest is the known one: nothing more was read */
    struct wt_dataset dataset; /* the caller's when rc = 0 */
    struct wt_hash manifest_hash;
    void *priv;
};
/* done() is called once, on the loop; 0 or refused at once. */
int wt_load_dataset(struct wt_load_dataset *load);
void wt_load_dataset_cancel(struct wt_load_dataset *load);

#endif
