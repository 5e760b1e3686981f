/*
 * Pins and quotas: what an operator has decided for good. They are kept in FOLDER/rules (JSON with
 * a version), written beside and renamed, and then in the cold tier beside the lock, where a daemon
 * with another folder finds them when it takes over; only then is anyone told that they hold.
 *
 * Happy path: open reads the file; inherit, with the lock held, reads the cold tier's, and the
 * later one counts; set and remove change the list at once and call `done` when both have it; apply
 * gives a data set that comes its pins and quotas. Failures: a damaged file is set aside as
 * rules.damaged-<n>, with a warning; a damaged object is replaced by the next change; rules for
 * tiers that are no more are dropped, with a warning; a disk or a cold tier that does not take
 * them: `done` says so, and the rule holds until the end of the process. While the cold tier's
 * cannot be read the file's hold, and nothing may be changed (WT_EBUSY).
 */
#ifndef WT_DAEMON_RULES_H
#define WT_DAEMON_RULES_H

#include "core/log.h"
#include "daemon/places.h"

#include <jansson.h>

enum { WT_RULES_MAX = 4096 };

struct wt_pin {
    struct wt_selector selector;
    uint32_t tier;
    uint64_t time; /* seconds since 1970 */
    /* as applied: */
    bool known; /* which shards it selects */
    struct wt_selection selection;
};

struct wt_quota {
    char dataset[WT_DATASET_NAME];
    uint32_t tier;
    uint64_t bytes;
};

struct wt_rules_opts {
    uv_loop_t *loop;
    const char *folder;
    const struct wt_tier_opts *tier;
    uint32_t n_tiers;
    struct wt_catalog *catalog;
    struct wt_places *places;
    struct wt_tier *cold;
    bool (*may)(void *arg); /* is the lock held? */
    const struct wt_log *log;
    void (*inherited)(void *arg); /* the cold tier's were read, or cannot be now */
    void (*changed)(void *arg);   /* pins or quotas were applied: the policy has something to do */
    void *arg;
};

struct wt_rules;
int wt_rules_open(const struct wt_rules_opts *opts, struct wt_rules **out, struct wt_err *err);

/* rc < 0: it holds, but is not on the disk. */
typedef void (*wt_rules_done)(void *arg, int rc, const struct wt_err *err);
/* Takes the selection over where it is used (it is empty then). The pin that was, or is now. NULL:
 * no room or memory, err says. */
const struct wt_pin *wt_rules_pin(struct wt_rules *r, const struct wt_selector *selector,
                                  uint32_t tier, uint64_t time, struct wt_selection *selection,
                                  struct wt_err *err);
/* Removes the pins within the selector, in the tiers of the mask; how many. */
size_t wt_rules_unpin(struct wt_rules *r, const struct wt_selector *selector, uint8_t tiers);
/* bytes UINT64_MAX: removes it. */
int wt_rules_quota(struct wt_rules *r, const char *dataset, uint32_t tier, uint64_t bytes,
                   struct wt_err *err);
/* Writes them; `done` comes later, once. */
void wt_rules_save(struct wt_rules *r, wt_rules_done done, void *arg);

/* A data set, or a new generation of one, came. */
void wt_rules_apply(struct wt_rules *r, struct wt_catalog_set *set);
/* The lock is held now: another daemon may have changed the rules, they are read from the cold tier
 * and applied anew; then `inherited` is called, perhaps at once. */
void wt_rules_inherit(struct wt_rules *r);
/* WT_EBUSY: not now, err says why. */
int wt_rules_may_change(const struct wt_rules *r, struct wt_err *err);
/* Asks again for what could not be found out. */
void wt_rules_retry(struct wt_rules *r);

size_t wt_rules_pins(const struct wt_rules *r, const struct wt_pin *const **list);
size_t wt_rules_quotas(const struct wt_rules *r, const struct wt_quota **list);
/* `stopped` is called (perhaps at once) when nothing is being written. Free after the places. */
void wt_rules_stop(struct wt_rules *r, void (*stopped)(void *arg), void *arg);
void wt_rules_free(struct wt_rules *r);

#endif
