/*
 * What state.c (open, journal, what is remembered) and state_save.c (the snapshot) share.
 */
#ifndef WT_DAEMON_STATE_INTERNAL_H
#define WT_DAEMON_STATE_INTERNAL_H

#include "daemon/state.h"
#include "daemon/state_file.h"

struct saving { /* the snapshot being written */
    uv_work_t work;
    bool on, canceled;
    const struct wt_catalog *catalog;
    uv_loop_t *loop;             /* NULL: all at once */
    uint64_t shape, state_shape; /* that the places below are good for */
    size_t set, pending;         /* next to encode, */
    uint64_t at;                 /* ... from this shard, or record, on */
    struct wt_bytes piece;
    struct wt_hasher *hasher;
    int fd;
    bool last; /* the piece ends the file */
    uint64_t sequence;
    int rc;
    struct wt_err err;
};

struct wt_state {
    char folder[256];
    int dir, journal;
    uint64_t sequence; /* of the journal */
    uint64_t damaged;
    bool warned;
    struct wt_tier_opts tier[WT_TIERS_MAX];
    uint32_t n_tiers;
    const struct wt_log *log;
    struct wt_state_sets pending;
    uint64_t shape; /* changes when `pending` does */
    struct saving save;
};

void state_warn_once(struct wt_state *s, const struct wt_err *err);
/* Ends the journal and begins the next. */
int state_next_journal(struct wt_state *s, struct wt_err *err);
void state_remove_journals(struct wt_state *s, uint64_t before);
void state_save_free(struct wt_state *s);

#endif
