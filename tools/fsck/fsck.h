/*
 * fsck: does what lies in the tiers agree with what is said about it?
 *
 *   look     for each data set: manifest and shards.idx, then one LIST of its folder in each tier:
 *            which shards are there, and have they the right size?
 *   read     with --data: every copy is read and its content hash compared
 *   compare  with a daemon: does it know the copies that are there, and only these? It goes on
 *            working meanwhile, so a difference counts only when it is still one a moment later
 *   repair   a damaged copy is removed when the cold one was read and is right; a cold object that
 *            is missing or damaged is put anew from a copy that was read and is right
 *
 * Failures: a tier that is away or a data set that cannot be read is a trouble of its own: it is
 * said, nothing of it is repaired, and the exit code is 1. Repairs hold the daemon's lock, so that
 * none moves meanwhile. Killed at any point: the next run goes on. Memory: 4 bytes for each shard
 * of one data set.
 */
#ifndef WT_TOOLS_FSCK_FSCK_H
#define WT_TOOLS_FSCK_FSCK_H

#include "tools/daemon.h"
#include "tools/target.h"

struct wt_fsck_opts {
    bool data, repair;
    bool (*stopped)(void *arg);
    void *stopped_arg;
};

enum wt_fsck_what {
    WT_FSCK_MISSING, /* cold has no such object */
    WT_FSCK_SIZE,    /* a wrong size */
    WT_FSCK_CORRUPT, /* wrong bytes */
    WT_FSCK_UNKNOWN, /* the daemon does not know of the copy: room is wasted */
    WT_FSCK_LOST,    /* the daemon believes in a copy that is not there: reads fall through */
    WT_FSCK_WHATS
};

struct wt_fsck_shard { /* a bit for each tier */
    uint8_t there;     /* an object of the right size */
    uint8_t damaged;   /* one of a wrong size, or with wrong bytes */
    uint8_t sound;     /* read, and right */
    uint8_t believed;  /* by the daemon */
};

struct wt_fsck {
    struct wt_fsck_opts o;
    struct wt_target *cold;
    struct wt_tier *tier[WT_TIERS_MAX + 1]; /* cold first */
    size_t n_tiers;
    unsigned away;                 /* tiers that could not be listed, a bit each */
    struct wt_daemon_link *daemon; /* NULL: none answers */
    struct wt_dataset d;           /* the data set in hand */
    struct wt_fsck_shard *shard;   /* [d.m.shards] */
    char owner[96];                /* of the lock; "": not held */
    uint64_t locked_ms;
    uint64_t sets, shards, copies, read_bytes;
    uint64_t found[WT_FSCK_WHATS];
    uint64_t repaired, hopeless; /* hopeless: no right copy anywhere */
    uint64_t troubles;
};

/* All of it for one data set. What is wrong is printed as it is found. Only WT_ENOMEM,
 * WT_ECANCELED and a lost lock are failures. */
int wt_fsck_set(struct wt_fsck *f, const char *name, struct wt_err *err);
void wt_fsck_found(struct wt_fsck *f, uint32_t tier, enum wt_fsck_what what, uint64_t shard,
                   const char *text);
/* It lies where its data set was landed, and cold need not have it yet. */
bool wt_fsck_landed(const struct wt_fsck *f, uint64_t shard);
/* A thing that could not be checked. */
void wt_fsck_trouble(struct wt_fsck *f, const char *what, const struct wt_err *err);
void wt_fsck_name(const struct wt_fsck *f, uint64_t shard, struct wt_shard_rec *rec,
                  char name[WT_OBJECT_NAME]);
/* Reads a copy and sets its bits; *data (free()) when it is right and wanted. WT_ECORRUPT: it is
 * not. */
int wt_fsck_read(struct wt_fsck *f, uint64_t shard, uint32_t tier, uint8_t **data,
                 struct wt_err *err);

/* ---- compare.c ---- */
int wt_fsck_compare(struct wt_fsck *f, struct wt_err *err);

/* ---- repair.c ---- */
/* Takes the daemon's lock. WT_ELOCKED: somebody else holds it. */
int wt_fsck_lock(struct wt_fsck *f, struct wt_err *err);
void wt_fsck_unlock(struct wt_fsck *f);
int wt_fsck_repair(struct wt_fsck *f, struct wt_err *err);

#endif
