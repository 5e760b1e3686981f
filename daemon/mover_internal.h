/*
 * Between mover.c (queue, retries, ends), mover_life.c, mover_list.c and the steps of one move:
 * move.c, move_copy.c, move_proof.c.
 */
#ifndef WT_DAEMON_MOVER_INTERNAL_H
#define WT_DAEMON_MOVER_INTERNAL_H

#include "core/mem.h"
#include "core/sum.h"
#include "daemon/mover.h"

enum wt_step {
    WT_STEP_QUEUED,
    WT_STEP_WAITING,    /* for a retry */
    WT_STEP_OPENING,    /* PUT_OPEN */
    WT_STEP_COPYING,    /* GET and PUT_WRITE of the parts */
    WT_STEP_COMMITTING, /* PUT_COMMIT */
    WT_STEP_ADOPTING,   /* STAT of an object that is there already */
    WT_STEP_PROVING,    /* GET of the parts of a copy, to judge it */
    WT_STEP_ABORTING,   /* PUT_ABORT after an error */
    WT_STEP_PURGING,    /* REMOVE of a damaged copy */
    WT_STEP_CHECKING,   /* STAT of the cold copy before a drop */
    WT_STEP_DROPPING,   /* REMOVE */
    WT_STEP_ENDED,
    WT_STEP_COUNT
};
const char *wt_step_name(enum wt_step step);

struct wt_lane;

struct wt_move {
    struct wt_move *next; /* in the queue or among the waiting */
    struct wt_mover *mover;
    struct wt_catalog_set *set;
    uint64_t shard, size;
    int from, to, drop;
    bool proves;   /* it was written to cold, perhaps: that is read before it is written again */
    int check;     /* tier whose copy is only to be judged, -1: none */
    uint8_t avoid; /* tiers whose copies were found damaged, and stay */
    bool anew;     /* what lies at `to` is replaced */
    bool mends;    /* the cold copy, which is missing or damaged */
    bool comes;    /* its bytes are counted as coming to `to` */
    int bad;       /* tier whose damaged copy goes first, -1: none */
    bool unknown;  /* a commit failed that may have been done */
    enum wt_step step;
    uint32_t attempts;
    uint64_t queued_ms, due_ms; /* due: of a retry */
    uint64_t begun_ms, deadline_ms;
    struct wt_err err; /* of the last failure */
    struct wt_lane *lane;
};

struct wt_slot { /* a buffer and the request that uses it */
    struct wt_lane *lane;
    struct wt_req req;
    uint8_t *buf;
    uint64_t part;
    size_t len;
    enum { WT_SLOT_FREE, WT_SLOT_READING, WT_SLOT_READ, WT_SLOT_WRITING } state;
};

struct wt_lane { /* what one running move uses */
    struct wt_move *move;
    struct wt_req ctl;
    bool ctl_busy;
    char key[WT_OBJECT_NAME];
    struct wt_hash hash;
    struct wt_put *put;
    struct wt_hasher *hasher;
    struct wt_slot *slot;
    uint32_t n_slots, in_flight;
    uint64_t parts, next_get, next_hash, written;
    struct wt_err err; /* of this attempt */
    int broken;        /* the tier whose copy is missing or damaged, -1 */
    bool purge;        /* ... and is to be removed */
    int purging;       /* the tier it is removed from */
    bool cancel;
    int proof; /* the tier whose copy is read and judged, -1: a copy is made */
    int truth; /* the tier that was asked before a drop */
};

enum { WT_MOVER_RECENT = 64, WT_MOVER_ASIDE = 1024, WT_MOVER_TEXT = 256 };

struct wt_mover_ended {
    char dataset[WT_DATASET_NAME];
    uint64_t shard, size, ms;
    int from, to, drop, rc;
    uint32_t attempts;
    char text[WT_MOVER_TEXT];
};

struct wt_mover {
    uv_loop_t *loop;
    uv_timer_t timer;   /* retries */
    uv_prepare_t start; /* starts moves outside of anybody's callback */
    bool starting, closing, timer_open, start_open;
    struct wt_tier *tier[WT_TIERS_MAX];
    struct wt_catalog *catalog;
    struct wt_mover_conf conf;
    const struct wt_log *log;
    bool enabled;

    struct wt_mem memory;
    struct wt_lane *lane;
    struct wt_slot *slots;
    struct wt_move *first, **last; /* queued */
    struct wt_move *waiting;       /* by due time */
    struct wt_mover_stats stats;
    double copy_s; /* that a copy from cold takes, smoothed */
    uint64_t coming[WT_TIERS_MAX], leaving[WT_TIERS_MAX];
    int64_t net[WT_TIERS_MAX];
    uint64_t gone[WT_TIERS_MAX];
    uint64_t full_until[WT_TIERS_MAX];

    struct wt_mover_ended recent[WT_MOVER_RECENT];
    uint64_t n_recent; /* ever */
    struct wt_mover_ended *aside;
    size_t n_aside;

    wt_mover_watch watch;
    void *watch_arg;
    bool (*may)(void *arg); /* change a tier */
    void *may_arg;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

/* Starts the move of a lane that was filled (move, buffers); ends with wt_move_ended. */
void wt_move_start(struct wt_lane *lane);
/* Ends it soon, with WT_ECANCELED unless it is over already. */
void wt_move_cancel(struct wt_lane *lane);

/* ---- between the files of one move ---- */
void wt_move_enter(struct wt_lane *l, enum wt_step step);
void wt_move_end(struct wt_lane *l);
void wt_move_note(struct wt_lane *l, int rc, const struct wt_err *err); /* the first error counts */
void wt_move_copied(struct wt_lane *l); /* the copy is there: what is to be dropped goes */
/* move_copy.c: reads on, and writes; leads to wt_move_parts_done (move.c). */
void wt_move_pump(struct wt_lane *l);
void wt_move_rewind(struct wt_lane *l);
void wt_move_parts_done(struct wt_lane *l);
/* move_proof.c: reads the copy in that tier and judges it. */
void wt_move_prove(struct wt_lane *l, int tier);
void wt_move_proved(struct wt_lane *l);

/* What a move needs of the mover. */
struct wt_tier *wt_mover_tier(const struct wt_mover *m, int tier);
struct wt_catalog *wt_mover_catalog(const struct wt_mover *m);
const struct wt_log *wt_mover_log(const struct wt_mover *m);
bool wt_mover_may(const struct wt_mover *m); /* change a tier, now */
uint32_t wt_mover_now_s(const struct wt_mover *m);
void wt_mover_count(struct wt_mover *m, int tier, int64_t bytes); /* came to it, or left it */
void wt_mover_drop_too(struct wt_move *v, int tier); /* the move is to drop this copy as well */
/* The attempt is over: lane->err says how. The lane is free and the move may be gone afterwards. */
void wt_move_ended(struct wt_lane *lane);

/* mover_list.c */
struct wt_move_info wt_mover_info_of(const struct wt_mover *m, const struct wt_move *v);
struct wt_mover_ended wt_mover_ended_of(const struct wt_mover *m, const struct wt_move *v,
                                        const struct wt_err *err);
/* mover_life.c: closes the handles when it is to end and nothing runs. */
void wt_mover_try_close(struct wt_mover *m);

#endif
