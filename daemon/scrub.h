/*
 * Reads copies in the background and compares them with the hash in their names.
 *
 * Happy path: once in `every`, each copy that the catalog believes in is read, cold ones too, no
 * faster than `rate` while no move is queued or runs, and no faster than `min_rate` else, so that a
 * daemon that always moves comes round as well; the copy is sure then. Failures: a copy that is not
 * there is lost from the catalog; a damaged one above cold is told to `damaged`, which has it
 * removed and copied again from another tier; a missing or damaged cold copy is told to `cold`,
 * which has it made anew from a copy above. A tier that does not answer is passed over until the
 * next time. All on the loop's thread.
 */
#ifndef WT_DAEMON_SCRUB_H
#define WT_DAEMON_SCRUB_H

#include "core/log.h"
#include "daemon/mover.h"

struct wt_scrub_conf {
    uint64_t rate;     /* bytes a second, 0: off */
    uint64_t min_rate; /* while something moves; 0: only in idle time */
    uint64_t every_ms; /* begin of a pass to begin of the next */
};

struct wt_scrub_stats {
    uint64_t passes, copies, bytes; /* ended, whole, read */
    uint64_t missing, damaged;      /* copies above cold */
    uint64_t cold_missing, cold_damaged;
};

struct wt_scrub;
/* conf may change between calls. */
struct wt_scrub *wt_scrub_new(uv_loop_t *loop, struct wt_tier *const *tiers,
                              struct wt_catalog *catalog, struct wt_mover *mover,
                              const struct wt_scrub_conf *conf, const struct wt_log *log);
/* A copy above cold is not what it should be: to be removed and, perhaps, made anew. */
void wt_scrub_on_damage(struct wt_scrub *s,
                        void (*damaged)(void *arg, struct wt_catalog_set *set, uint64_t shard,
                                        uint32_t tier),
                        void *arg);
/* A cold copy is "missing" or "damaged". */
void wt_scrub_on_cold(struct wt_scrub *s,
                      void (*cold)(void *arg, struct wt_catalog_set *set, uint64_t shard,
                                   const char *what),
                      void *arg);
/* Off, as it begins: what is read now is not judged. */
void wt_scrub_enable(struct wt_scrub *s, bool on);
void wt_scrub_stats(const struct wt_scrub *s, struct wt_scrub_stats *out);
void wt_scrub_stop(struct wt_scrub *s, void (*stopped)(void *arg), void *arg);
void wt_scrub_free(struct wt_scrub *s);

#endif
