/*
 * What the daemon remembers over a restart: which tiers hold which shards, and heat. A hint, never
 * the truth: residency is believed "probably" and looked up in the background; a wrong entry costs
 * a reader one fall-through.
 *
 *   FOLDER/snapshot        all of it, written beside and renamed
 *   FOLDER/journal-<n>     what changed since snapshot n-1 began, appended and never rewritten
 *
 * Happy path: open reads the snapshot and every journal that is not older; fill hands a data set
 * its part when it is loaded; note appends to the journal; save begins the next journal and writes
 * the next snapshot. All numbers little-endian:
 *   snapshot: head {"WTSNAP1\n", u32 version, u32 tiers, u64 sequence, u64 pieces, char
 *             tier[8][64]}; pieces {char name[64], u64 records, records of 32 bytes}, any number of
 *             a data set; XXH3-64 of all before it in the last 8 bytes
 *   journal:  head {"WTJRNL1\n", u32 version, u32 tiers, u64 sequence, u64 0, char tier[8][64]},
 *             u64 XXH3-64 of the head; then for each change {char name[64], record, u32 0, u32
 *             crc32c of the 100 bytes before}
 *   record:   {u64 shard, u64 low half of its hash, f32 heat, u32 heated, u32 since, u8 kind, u8
 *             tiers (a mask) or tier, u8 pin, u8 0}
 * Open and fill read much: they are made for a worker's thread. Failures: a damaged file is renamed
 * NAME.damaged-<n> with a warning and the rest is used; a journal cut in the middle of a record (a
 * crash) is used up to there. A folder that cannot be written is an error at open; later a warning,
 * once.
 */
#ifndef WT_DAEMON_STATE_H
#define WT_DAEMON_STATE_H

#include "core/log.h"
#include "daemon/catalog.h"

#include <uv.h>

struct wt_state;

/* Makes the folder (0750) when its parent is there. tier: the names of the tiers of today; what
 * older files say of others is dropped. */
int wt_state_open(const char *folder, const struct wt_tier_opts *tier, uint32_t n_tiers,
                  const struct wt_log *log, struct wt_state **out, struct wt_err *err);
void wt_state_free(struct wt_state *s);

/* Puts what is remembered of this data set into the set, which is not in the catalog yet. Any
 * thread, while nothing is forgotten. */
void wt_state_fill(const struct wt_state *s, const struct wt_clock *clock,
                   struct wt_catalog_set *set);
/* It stands in the catalog now. Returns what there is to free(), which takes long where it is
 * much; NULL: nothing was remembered. */
void *wt_state_forget(struct wt_state *s, const char *name);
/* Names of data sets that are remembered and not applied yet; NULL at the end. */
const char *wt_state_pending(const struct wt_state *s, size_t i);
/* Appends to the journal. */
void wt_state_note(struct wt_state *s, const struct wt_catalog_set *set, uint64_t shard,
                   uint32_t tier, bool held);

/* Writes a snapshot now. */
int wt_state_save(struct wt_state *s, const struct wt_catalog *c, struct wt_err *err);
/* The same piece by piece, written in a worker of the loop; nothing happens when one is being
 * written already. */
void wt_state_save_later(struct wt_state *s, const struct wt_catalog *c, uv_loop_t *loop);
/* That one ends soon, without a result. */
void wt_state_save_cancel(struct wt_state *s);
bool wt_state_saving(const struct wt_state *s);
uint64_t wt_state_damaged(const struct wt_state *s); /* files set aside since open began */

#endif
