/*
 * Moves shards between tiers: copies, verifies, commits, and only then drops what is to be dropped.
 *
 * Happy path of a copy: PUT_OPEN at the destination; parts are read from the cheapest tier that
 * holds the shard, hashed in order and written; the hash is compared with that of shards.idx;
 * PUT_COMMIT; the catalog says hold. When the move also drops (a demotion), or only drops: a fresh
 * STAT of the cold copy, REMOVE, the catalog says lose. Buffers are allocated once; at most `moves`
 * run, one of a shard. Failures, by what broke: source missing or damaged   the catalog loses that
 * copy (a damaged one is removed); the next cheapest serves. A damaged cold copy: set aside tier
 * down, slow, failing    tried again after a pause that doubles, at most `retries` times, then set
 * aside with the reason destination full            refused: the tier is left alone for a while;
 * not counted against the shard cold copy not found         nothing is dropped, ever; set aside
 * Stop and pause cancel what runs: an open put is aborted, nothing is left but what gc finds.
 * All on the loop's thread; nothing blocks.
 */
#ifndef WT_DAEMON_MOVER_H
#define WT_DAEMON_MOVER_H

#include "core/log.h"
#include "daemon/catalog.h"
#include "daemon/usage.h"
#include "tiers/tier.h"

struct wt_mover_conf {
    uint32_t moves, queue, retries;
    uint64_t bytes; /* in flight: at least WT_PART for each move */
    uint64_t backoff_ms, backoff_max_ms;
};

struct wt_mover_stats {
    uint32_t running, queued, waiting; /* waiting: for a retry */
    uint64_t done, failed, refused, canceled, retried;
    uint64_t bytes;           /* copied and committed */
    uint64_t from_cold;       /* part of it that was read from cold */
    uint64_t checked;         /* copies that were read and judged */
    uint64_t flushed, mended; /* shards put into cold: landed ones, and in place of damaged ones */
    uint64_t late;            /* canceled since their time was over */
};

/* How a move ended, or where it stands. */
struct wt_move_info {
    const char *dataset; /* valid for the call */
    uint64_t shard, size;
    int from, to, drop; /* tiers, -1: none; from: the source of the copy; without `to`: of a copy
                           that was read and judged */
    bool mends;         /* the cold copy */
    const char *step;
    uint64_t done; /* bytes */
    uint32_t attempts;
    uint64_t ms;      /* since it was queued; of an ended one: that it took */
    int rc;           /* of an ended one */
    const char *text; /* why it failed or waits, "" */
};
enum wt_move_list { WT_MOVES_RUNNING, WT_MOVES_WAITING, WT_MOVES_RECENT, WT_MOVES_ASIDE };

struct wt_mover;
int wt_mover_new(uv_loop_t *loop, struct wt_tier *const *tiers, struct wt_catalog *catalog,
                 const struct wt_mover_conf *conf, const struct wt_log *log, struct wt_mover **out,
                 struct wt_err *err);
/* A move began for the first time, or ended; the catalog is up to date. FAILED: also when it was
 * canceled or refused; the shard may be tried again. ASIDE: it will not be. */
enum wt_move_change { WT_MOVE_STARTED, WT_MOVE_DONE, WT_MOVE_FAILED, WT_MOVE_ASIDE };
typedef void (*wt_mover_watch)(void *arg, enum wt_move_change change, struct wt_catalog_set *set,
                               const struct wt_move_info *info);
void wt_mover_on_change(struct wt_mover *m, wt_mover_watch watch, void *arg);
/* Asked before each request that changes a tier: false ends the attempt. None set: always. */
void wt_mover_guard(struct wt_mover *m, bool (*may)(void *arg), void *arg);
/* Queue, retries and pauses; moves and bytes stay. */
void wt_mover_tune(struct wt_mover *m, const struct wt_mover_conf *conf);

/* to, drop: as in struct wt_policy_move. WT_EBUSY: the queue is full, the shard moves already, is
 * set aside, or was landed in `drop` and is not flushed. */
int wt_mover_add(struct wt_mover *m, struct wt_catalog_set *set, uint64_t shard, int to, int drop);
/* The same with a deadline on the loop's clock: the earliest goes first, removals before copies;
 * one that has not begun by then is canceled. UINT64_MAX: none. */
int wt_mover_add_due(struct wt_mover *m, struct wt_catalog_set *set, uint64_t shard, int to,
                     int drop, uint64_t due_ms);
/* A copy in `tier` was found damaged: the catalog loses it, the object is removed, and with `anew`
 * it is copied again from another tier. WT_EBUSY as above, with nothing changed. */
int wt_mover_repair(struct wt_mover *m, struct wt_catalog_set *set, uint64_t shard, uint32_t tier,
                    bool anew);
/* Copies the shard into cold and reads the copy back, before anything counts on it. WT_EBUSY as
 * above. */
int wt_mover_to_cold(struct wt_mover *m, struct wt_catalog_set *set, uint64_t shard);
/* The same in place of a cold copy that is missing or damaged, also of a shard that is set aside.
 * WT_EMISSING: no other tier has a copy. */
int wt_mover_mend(struct wt_mover *m, struct wt_catalog_set *set, uint64_t shard);
/* Somebody calls the copy in `tier` damaged: it is read, and dropped when that is so. */
int wt_mover_check(struct wt_mover *m, struct wt_catalog_set *set, uint64_t shard, uint32_t tier);
/* Seconds that a copy from cold takes, as measured; how many moves run at a time; copies queued. */
void wt_mover_pace(const struct wt_mover *m, double *copy_s, uint32_t *moves, uint32_t *queued);
/* Off (as it begins): what is queued is forgotten, what runs is cancelled. */
void wt_mover_enable(struct wt_mover *m, bool on);
bool wt_mover_idle(const struct wt_mover *m); /* nothing runs */

uint64_t wt_mover_coming(const struct wt_mover *m, uint32_t tier);  /* bytes that moves will add, */
uint64_t wt_mover_leaving(const struct wt_mover *m, uint32_t tier); /* and remove */
/* Bytes that moves added to the tier since the start, less those they removed. */
int64_t wt_mover_net(const struct wt_mover *m, uint32_t tier);
void wt_mover_moved(const struct wt_mover *m, uint32_t tier, struct wt_moved *out);
bool wt_mover_full(const struct wt_mover *m, uint32_t tier); /* it refused lately */
/* May the shard be tried again, all of them: after a reload. */
void wt_mover_forgive(struct wt_mover *m);

void wt_mover_stats(const struct wt_mover *m, struct wt_mover_stats *out);
void wt_mover_list(const struct wt_mover *m, enum wt_move_list list,
                   void (*each)(void *arg, const struct wt_move_info *info), void *arg);
/* Why a shard that is set aside is: text until the next call; NULL: not known any more. */
const char *wt_mover_why_aside(const struct wt_mover *m, const struct wt_catalog_set *set,
                               uint64_t shard, int *code);
/* Is a copy of the shard under way? The tier it goes to, or -1. */
int wt_mover_target(const struct wt_mover *m, const struct wt_catalog_set *set, uint64_t shard);
/* The same, also of one that is queued and will begin in time; *left_ms: until it should be there.
 */
int wt_mover_expect(const struct wt_mover *m, const struct wt_catalog_set *set, uint64_t shard,
                    uint64_t *left_ms);

/* Disables it for good; `stopped` is called on the loop when nothing runs and its handles are
 * closed. Then free. */
void wt_mover_stop(struct wt_mover *m, void (*stopped)(void *arg), void *arg);
void wt_mover_free(struct wt_mover *m);

#endif
