/*
 * Putting a data set into a tier: shards in order, then the parts of shards.idx, then the manifest,
 * which alone makes them visible.
 *
 * Landed: the shards go to another tier, the rest to cold; the manifest names that tier as the data
 * set's home until a flush has brought them to cold.
 *
 * Happy path: begin (is the name free? a lease keeps gc off) -> shard, shard, ... -> commit. The
 * manifest that is replaced is kept as a retired one, so that gc knows what belongs to it.
 * Failures: undo removes every object that this run put; the data set is as it was before. A shard
 * that is there already, with the same name (so the same content hash) and size, is taken as done
 * and not removed by undo. Killed: its objects stay, without a name in any manifest, for gc.
 */
#ifndef WT_TOOLS_PUBLISH_H
#define WT_TOOLS_PUBLISH_H

#include "core/bytes.h"
#include "core/dataset.h"
#include "tools/lease.h"
#include "tools/target.h"

struct wt_publish {
    struct wt_target *target;
    char name[WT_DATASET_NAME];
    bool replace;
    uint64_t generation;
    uint64_t shards, samples, stored_bytes, tar_bytes, pixel_bytes;
    struct wt_bytes idx;  /* encoded records */
    struct wt_bytes put;  /* names of what this run put: where ('c' cold, 'l' landed), then the name
                             and a NUL, one after the other */
    struct wt_bytes kept; /* names of what was there already */
    struct wt_hold hold;
    struct wt_tier *land; /* where shards go instead of cold, or NULL */
    uint64_t landed;      /* by other data sets */
    uint64_t land_max;    /* most bytes in it of data sets that are at home there */
};
/* An existing data set is WT_EEXISTS unless `replace`. */
int wt_publish_begin(struct wt_publish *p, struct wt_target *target, const char *name, bool replace,
                     struct wt_err *err);
/* Shards go to `tier` instead, whose name becomes the data set's home. Right after begin. WT_EFULL:
 * as much as `max` was landed there already. */
int wt_publish_land(struct wt_publish *p, struct wt_tier *tier, uint64_t max, struct wt_err *err);
int wt_publish_shard(struct wt_publish *p, enum wt_codec codec, const struct wt_shard_out *shard,
                     struct wt_err *err);
/* m: classes, fields, labels and counts from the caller; the rest is filled in here. */
int wt_publish_commit(struct wt_publish *p, struct wt_manifest *m, struct wt_err *err);
/* Removes what was put; how many objects could not be removed (they are left for gc). */
uint64_t wt_publish_undo(struct wt_publish *p, uint64_t *removed);
/* For flush: begins a data set's next generation, the same shards; then what stands for it. */
int wt_publish_resume(struct wt_publish *p, struct wt_target *target, const char *name,
                      uint64_t generation, struct wt_err *err);
/* Replaces the manifest by the one that says that all is in cold. WT_EEXISTS: another came. */
int wt_publish_flushed(struct wt_publish *p, struct wt_err *err);
void wt_publish_end(struct wt_publish *p);

#endif
