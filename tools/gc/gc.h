/*
 * gc: finds what nothing needs any more in every tier, and removes it.
 *
 *   look     one LIST of cold: names of data sets, retired manifests; the leases
 *   know     for each data set: which objects do its manifests name (current ones, and retired ones
 *            that are young or held)?
 *   scan     one LIST of each tier: what is not among them, and old enough, is an orphan
 *   sweep    for each data set with orphans: a lease that keeps packs off, know it again, remove
 *            what is still an orphan; shards first, then idx parts, then retired manifests
 *
 * Failures: a data set whose manifests cannot be read or understood is left alone as a whole, and
 * so is a tier that is away; both are said, and the exit code is 1. Killed at any point: the next
 * run goes on. Memory: 16 bytes for each shard, and the names of the orphans.
 */
#ifndef WT_TOOLS_GC_GC_H
#define WT_TOOLS_GC_GC_H

#include "core/bytes.h"
#include "core/dataset.h"
#include "tools/gc/names.h"
#include "tools/lease.h"
#include "tools/target.h"

struct wt_gc_opts {
    bool dry_run;
    uint64_t grace_s; /* replaced generations stay this long */
    uint64_t young_s; /* what may be a put in progress stays this long */
    bool (*stopped)(void *arg);
    void *stopped_arg;
};

enum wt_gc_why {
    WT_GC_TEMPORARY, /* of a put that was killed */
    WT_GC_UNNAMED,   /* in cold, and no manifest names it: of a pack that was killed */
    WT_GC_RETIRED,   /* of a replaced generation */
    WT_GC_COPY,      /* in a faster tier, of something that cold has no more */
    WT_GC_LEASE,     /* its time is over */
    WT_GC_WHYS
};
const char *wt_gc_why_name(enum wt_gc_why why);

struct wt_gc_set { /* a data set */
    char name[WT_DATASET_NAME];
    bool there;   /* it has a manifest */
    bool unknown; /* nothing is known for sure: nothing of it goes; `reason` says why */
    bool packing; /* a pack holds it: nothing of it goes, from any tier (it may be landing) */
    bool held;    /* a job holds a generation that has no manifest: nothing unnamed goes */
    uint64_t generation, created;
    struct wt_gc_names keep, gone; /* named; named by retired manifests that may go */
    uint64_t *retired;             /* generations, ascending */
    size_t n_retired, cap_retired;
    size_t orphans;
    char reason[WT_ERR_TEXT];
};

struct wt_gc_object {
    size_t key; /* offset in the text */
    uint64_t size;
    int64_t mtime;
    uint32_t tier;
    uint32_t set; /* UINT32_MAX: of none */
    uint8_t why;
    uint8_t phase; /* 0 first */
};

struct wt_gc_count {
    uint64_t objects, bytes;
};

struct wt_gc {
    struct wt_gc_opts o;
    struct wt_target *cold;
    struct wt_tier *tier[WT_TIERS_MAX + 1]; /* cold first; last the place for leases, if any */
    size_t n_tiers;                         /* without that place */
    uint64_t now_s;
    struct wt_gc_set *set; /* by name */
    size_t n_sets, cap_sets;
    struct wt_gc_object *object;
    size_t n_objects, cap_objects;
    struct wt_bytes text;
    struct wt_gc_count found[WT_TIERS_MAX + 1][WT_GC_WHYS], removed[WT_TIERS_MAX + 1];
    uint64_t failed;   /* objects that could not be removed */
    uint64_t troubles; /* tiers and data sets that were left alone */
};

/* All of it. Prints a line for each orphan unless `quiet`, troubles on stderr. */
int wt_gc_run(struct wt_gc *gc, bool quiet, struct wt_err *err);
void wt_gc_free(struct wt_gc *gc);

static inline const char *wt_gc_key(const struct wt_gc *gc, const struct wt_gc_object *o) {
    return (const char *)gc->text.data + o->key;
}

/* ---- know.c ---- */
struct wt_gc_set *wt_gc_find(struct wt_gc *gc, const char *name); /* NULL: cold has no such thing */
struct wt_gc_set *wt_gc_add(struct wt_gc *gc, const char *name);  /* NULL: no memory */
/* Lists cold: sets, retired manifests. */
int wt_gc_look(struct wt_gc *gc, struct wt_err *err);
/* Reads the manifests of a data set, anew; `leases`: at least those of the data set. WT_ENOMEM is
 * the only failure; all else is in the set. */
int wt_gc_know(struct wt_gc *gc, struct wt_gc_set *set, const struct wt_lease_list *leases);
void wt_gc_set_free(struct wt_gc_set *set);

/* ---- scan.c ---- */
/* Is it an orphan? *why, *set and *phase are filled in when it is. */
bool wt_gc_orphan(struct wt_gc *gc, uint32_t tier, const struct wt_entry *entry,
                  struct wt_gc_object *out);
int wt_gc_scan(struct wt_gc *gc, uint32_t tier, struct wt_err *err);
int wt_gc_note(struct wt_gc *gc, const char *key, const struct wt_gc_object *object);

/* ---- sweep.c ---- */
int wt_gc_sweep(struct wt_gc *gc, struct wt_err *err);

#endif
