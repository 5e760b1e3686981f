/*
 * Replaces a data set's manifest by its successor, whose shards are all in cold; see flush.h.
 *
 * Happy path: read, is it the one that is meant? -> put under the name of a retired one -> read, is
 * it still? -> put the successor -> done(0). Failures: WT_ECHANGED: another manifest stands
 * there, and stays; others as they come. A put that is open is aborted. One at a time.
 */
#ifndef WT_DAEMON_SUCCESSOR_H
#define WT_DAEMON_SUCCESSOR_H

#include "core/dataset.h"
#include "daemon/whole.h"

struct wt_successor { /* the caller's, zeroed; untouched while busy */
    /* set by the caller */
    struct wt_tier *cold;
    char name[WT_DATASET_NAME];
    struct wt_hash manifest; /* of the one that is meant */
    uint64_t generation;     /* its own */
    uint64_t now_s;
    bool (*may)(void *arg); /* change the tier, now */
    void (*done)(struct wt_successor *s, int rc, const struct wt_err *err);
    void *arg;
    /* its own */
    bool busy, canceled;
    struct wt_whole object; /* being read or written */
    char key[WT_OBJECT_NAME], retired[WT_OBJECT_NAME];
    char *text, *next; /* the one that stands there, and the one that is to come */
};
/* done() is called once, from the loop. */
void wt_successor_start(struct wt_successor *s);
void wt_successor_cancel(struct wt_successor *s);

#endif
