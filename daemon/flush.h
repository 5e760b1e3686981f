/*
 * Brings to cold what `wafertier pack --land` has put into another tier, in the background.
 *
 * Happy path: shards that cold is not known to have are given to the mover, a few at a time, after
 * all that the policy wants; it copies each and reads the copy back. When none is left, the
 * manifest is read again, kept as a retired one, and replaced by the next generation, the same but
 * without a home; that is loaded like any other, and from then on the copies in the old home are
 * cached ones. Failures: killed at any point: the manifest still names the home, which still has
 * all; the next start copies what cold does not have and reads again what it has. A shard that the
 * mover sets aside keeps its set where it is, which is told once. A manifest that is no longer the
 * one that was loaded is loaded anew, never replaced. Tiers that are away: tried again after a
 * pause.
 */
#ifndef WT_DAEMON_FLUSH_H
#define WT_DAEMON_FLUSH_H

#include "core/log.h"
#include "daemon/catalog.h"
#include "daemon/datasets.h"
#include "daemon/mover.h"

struct wt_flush_opts {
    uv_loop_t *loop;
    struct wt_tier *cold;
    struct wt_catalog *catalog;
    struct wt_mover *mover;
    struct wt_datasets *datasets;
    const struct wt_log *log;
    bool (*may)(void *arg); /* change a tier, now */
    /* A set was flushed, or cannot be now. */
    void (*told)(void *arg, bool flushed, const char *dataset, uint64_t generation,
                 const char *text);
    void *arg;
};

struct wt_flush_stats {
    uint64_t sets; /* flushed */
    uint64_t failures;
};

struct wt_flush;
struct wt_flush *wt_flush_new(const struct wt_flush_opts *opts);
/* Is there something to do? Now and then. */
void wt_flush_look(struct wt_flush *f);
/* A move ended, of whatever kind. */
void wt_flush_ended(struct wt_flush *f, const struct wt_move_info *info);
void wt_flush_stats(const struct wt_flush *f, struct wt_flush_stats *out);
void wt_flush_stop(struct wt_flush *f, void (*stopped)(void *arg), void *arg);
void wt_flush_free(struct wt_flush *f);

#endif
