/*
 * The files of state.h: to and from bytes, without any I/O but the last few functions.
 */
#ifndef WT_DAEMON_STATE_FILE_H
#define WT_DAEMON_STATE_FILE_H

#include "core/bytes.h"
#include "core/dataset.h"
#include "tiers/tier.h"

enum wt_state_kind { WT_STATE_ENTRY = 1, WT_STATE_HOLD, WT_STATE_LOSE };

enum {
    WT_STATE_RECORD = 32,
    WT_STATE_HEAD = 8 + 4 + 4 + 8 + 8 + WT_TIERS_MAX * 64,
    WT_STATE_CHANGE = WT_DATASET_NAME + WT_STATE_RECORD + 8,
};

struct wt_state_rec {
    uint64_t shard, hash;
    float heat;
    uint32_t heated, since;
    uint8_t kind, tiers, pin; /* tiers: a mask, or the tier's number in HOLD and LOSE */
};

struct wt_state_set { /* what is remembered of a data set, in order */
    char name[WT_DATASET_NAME];
    struct wt_state_rec *rec;
    size_t n, cap;
};
struct wt_state_sets {
    struct wt_state_set *set;
    size_t n, cap;
};

void wt_state_sets_free(struct wt_state_sets *sets);
int wt_state_sets_add(struct wt_state_sets *sets, const char *name, const struct wt_state_rec *rec);

void wt_state_rec_encode(const struct wt_state_rec *rec, uint8_t out[WT_STATE_RECORD]);
int wt_state_head_encode(struct wt_bytes *out, const char *magic, const struct wt_tier_opts *tier,
                         uint32_t n_tiers, uint64_t sequence, uint64_t sets);
void wt_state_change_encode(const char *name, const struct wt_state_rec *rec,
                            uint8_t out[WT_STATE_CHANGE]);

/* Adds the file's content to `sets`, tiers numbered as in tier[]. WT_ECORRUPT: damaged (a snapshot:
 * nothing was added; a journal: what stood before the damage). */
int wt_state_snapshot_decode(const uint8_t *data, size_t len, const struct wt_tier_opts *tier,
                             uint32_t n_tiers, struct wt_state_sets *sets, uint64_t *sequence,
                             struct wt_err *err);
int wt_state_journal_decode(const uint8_t *data, size_t len, const struct wt_tier_opts *tier,
                            uint32_t n_tiers, struct wt_state_sets *sets, struct wt_err *err);

int wt_state_read(int folder, const char *name, uint8_t **data, size_t *len, struct wt_err *err);
/* Beside (NAME.new); end: synced, renamed, folder synced, closed, also on failure. */
int wt_state_write_begin(int folder, const char *name, int *fd, struct wt_err *err);
int wt_state_write_more(int fd, const void *data, size_t len, struct wt_err *err);
int wt_state_write_end(int folder, const char *name, int fd, struct wt_err *err);
void wt_state_write_abandon(int folder, const char *name, int fd);
/* All of these at once. */
int wt_state_write(int folder, const char *name, const void *data, size_t len, struct wt_err *err);

#endif
