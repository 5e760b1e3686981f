/*
 * The catalog: every shard of every known data set, 20 bytes each beside its record in shards.idx.
 * It owns placement: which tiers hold a shard, as far as the daemon knows. Cold always does, but
 * for a data set that was landed in another tier, its home (`wafertier pack --land`): its shards
 * are dirty there, which means that bit 0 of their mask is clear, until each was copied to cold and
 * read back; and no copy leaves the home before a manifest says that all are flushed.
 *
 * Happy path: a data set loaded from the cold tier is prepared (by a worker, for there may be
 * millions of shards) and enters; moves that end say hold and lose; each such change goes to the
 * journal through `changed`. A new generation takes over what the old one had of the same shards
 * (same number, same hash); the old one stays, as retired, until no job uses it and no tier holds
 * what is left of it. Failures: out of memory on prepare and enter, nothing changed then.
 */
#ifndef WT_DAEMON_CATALOG_H
#define WT_DAEMON_CATALOG_H

#include "core/dataset.h"
#include "daemon/clock.h"
#include "tiers/tier.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WT_SHARD_BUSY = 1,  /* a move of it is queued or runs */
    WT_SHARD_ASIDE = 2, /* its moves failed: left alone until a reload */
};

struct wt_shard_state {
    float heat;      /* see heat.h */
    uint32_t heated; /* second (since 1970) that heat is of */
    uint32_t since;  /* second in which it last came to a tier */
    uint8_t mask;    /* tiers that hold it; bit 0 (cold) is clear while it is dirty alone */
    uint8_t sure;    /* those of them that were seen since the start; the others are believed */
    uint8_t pin;     /* tiers that must keep it: pins, kept over a restart */
    uint8_t flags;
    uint8_t want;   /* tiers that a request by hand brings it to: as pinned while that runs */
    uint8_t barred; /* tiers that it was evicted from by hand, and must not come back to yet */
    uint16_t spare;
};
_Static_assert(sizeof(struct wt_shard_state) == 20, "20 bytes a shard");

struct wt_catalog_set {
    struct wt_dataset d;
    struct wt_hash manifest;
    struct wt_shard_state *shard;                         /* [d.m.shards] */
    uint64_t base;                                        /* number of its first shard among all */
    uint32_t jobs, moves;                                 /* that refer to it */
    uint64_t held[WT_TIERS_MAX];                          /* shards of it in a tier */
    uint64_t used[WT_TIERS_MAX];                          /* bytes of these */
    uint64_t coming[WT_TIERS_MAX], leaving[WT_TIERS_MAX]; /* that moves bring and remove */
    uint64_t quota[WT_TIERS_MAX];                         /* bytes; UINT64_MAX: none */
    uint64_t granted[WT_TIERS_MAX];                       /* in the planner's pass under way */
    uint64_t kept;                     /* shards that are pinned or wanted somewhere */
    uint64_t kept_bytes[WT_TIERS_MAX]; /* of these, in each tier */
    bool limited;                      /* it has a quota somewhere */
    bool pins_due;                     /* shards from pins_at on are still to be given their pins */
    uint64_t pins_at;
    uint64_t dirty; /* shards that cold is not known to have */
    int home; /* tier it was landed in and is not flushed from; 0: cold; -1: one that this daemon
                 has not */
    bool retired;
    /* until it enters: */
    const struct wt_catalog_set *old; /* the generation that it was compared with, */
    uint8_t *same;                    /* ... a bit for each shard that both have */
};

struct wt_catalog {
    uint32_t n_tiers;
    struct wt_catalog_set **set;
    size_t n_sets, cap_sets;
    uint64_t shards;
    uint64_t shape;                                  /* changes when shards get other numbers */
    uint64_t used[WT_TIERS_MAX], held[WT_TIERS_MAX]; /* bytes, shards */
    uint64_t kept[WT_TIERS_MAX];                     /* bytes that are pinned or wanted there */
    uint64_t landed[WT_TIERS_MAX];    /* bytes there of sets that are at home there */
    const struct wt_tier_opts *tiers; /* by whose names homes are known; or NULL */
    /* A tier holds a shard, or no longer does. */
    void (*changed)(void *arg, const struct wt_catalog_set *set, uint64_t shard, uint32_t tier,
                    bool held);
    void *arg;
    /* Frees a set that was taken out (wt_catalog_set_free); NULL: at once. */
    void (*dispose)(void *arg, struct wt_catalog_set *set);
    struct wt_clock clock; /* dates heat and residency */
};

void wt_catalog_init(struct wt_catalog *c, uint32_t n_tiers);
void wt_catalog_free(struct wt_catalog *c);

/* Makes a set of *d, which it takes over on success. Any thread; `old`, the current generation
 * (NULL: there is none), must stay meanwhile. */
int wt_catalog_prepare(struct wt_dataset *d, struct wt_hash manifest,
                       const struct wt_catalog_set *old, struct wt_catalog_set **out,
                       struct wt_err *err);
/* From now on it stands for its name. On failure the set is the caller's still. */
int wt_catalog_enter(struct wt_catalog *c, struct wt_catalog_set *set, struct wt_err *err);
void wt_catalog_set_free(struct wt_catalog_set *set);
/* Both. Takes *d over on success. *out is the set that now stands for the name: the old one when
 * the manifest is the same (d is freed then). */
int wt_catalog_add(struct wt_catalog *c, struct wt_dataset *d, struct wt_hash manifest,
                   struct wt_catalog_set **out, struct wt_err *err);
/* generation 0: the current one. NULL: not there. */
struct wt_catalog_set *wt_catalog_find(const struct wt_catalog *c, const char *name,
                                       uint64_t generation);
/* Where the shard is kept account of: in the current generation when that has the same object, else
 * in `set` itself. Its number is the same. */
struct wt_catalog_set *wt_catalog_home(const struct wt_catalog *c, struct wt_catalog_set *set,
                                       uint64_t shard);
/* A move of the shard has ended: if a newer generation has the same object, its copies are that
 * one's from now on. (Those of shards that did not move went over when it entered.) */
void wt_catalog_hand_on(struct wt_catalog *c, struct wt_catalog_set *set, uint64_t shard);
/* Shard `i` of all. */
struct wt_catalog_set *wt_catalog_at(const struct wt_catalog *c, uint64_t i, uint64_t *shard);
/* Removes retired sets that nothing refers to any more.. */
void wt_catalog_reap(struct wt_catalog *c);

void wt_catalog_rec(const struct wt_catalog_set *set, uint64_t shard, struct wt_shard_rec *rec);
uint64_t wt_catalog_size(const struct wt_catalog_set *set, uint64_t shard);
void wt_catalog_key(const struct wt_catalog_set *set, uint64_t shard, char out[WT_OBJECT_NAME]);

/* Was it landed in that tier, where its copy must stay until the set is flushed? */
static inline bool wt_catalog_landed(const struct wt_catalog_set *set, uint64_t shard,
                                     uint32_t tier) {
    return set->home > 0 && (uint32_t)set->home == tier && (set->shard[shard].mask & (1u << tier));
}
/* The tier whose copy is the truth: cold, once that has it, else the set's home. */
static inline uint32_t wt_catalog_truth(const struct wt_catalog_set *set, uint64_t shard) {
    return set->home > 0 && !(set->shard[shard].mask & 1) ? (uint32_t)set->home : 0;
}
/* Tiers that it must not leave: pinned, asked for, landed. */
static inline uint8_t wt_catalog_bound(const struct wt_catalog_set *set, uint64_t shard) {
    const struct wt_shard_state *s = &set->shard[shard];
    unsigned home = set->home > 0 ? s->mask & (1u << set->home) : 0;
    return (uint8_t)(s->pin | s->want | home);
}

/* What the functions below do, on a set that has not entered yet: nobody is told. */
bool wt_set_hold(struct wt_catalog_set *set, uint64_t shard, uint32_t tier, uint32_t since);
bool wt_set_lose(struct wt_catalog_set *set, uint64_t shard, uint32_t tier);
void wt_set_keep(struct wt_catalog_set *set, uint64_t shard, uint8_t pin, uint8_t want);

/* Sets which tiers must have the shard, by pins and by requests. */
void wt_catalog_keep(struct wt_catalog *c, struct wt_catalog_set *set, uint64_t shard, uint8_t pin,
                     uint8_t want);
/* Bytes of shards [first, end) that are not pinned or wanted in the tier yet. */
uint64_t wt_catalog_unkept(const struct wt_catalog_set *set, uint64_t first, uint64_t end,
                           uint32_t tier);
/* May `size` bytes more of the set come to the tier, by its quota? */
bool wt_catalog_room(const struct wt_catalog_set *set, uint32_t tier, uint64_t size);
/* Sets the quota of the data set's current generation; UINT64_MAX: none. */
void wt_catalog_quota(struct wt_catalog_set *set, uint32_t tier, uint64_t bytes);

/* The tier holds the shard; sure: seen now, not only believed. Tells `changed` when that is news.
 */
void wt_catalog_hold(struct wt_catalog *c, struct wt_catalog_set *set, uint64_t shard,
                     uint32_t tier, uint32_t now, bool sure);
void wt_catalog_lose(struct wt_catalog *c, struct wt_catalog_set *set, uint64_t shard,
                     uint32_t tier);

#endif
