/*
 * An object of the cold tier, read or replaced as a whole: pins and quotas, manifests.
 *
 * Happy path: a read is STAT and GET, a write is the steps of a put; `done` is called once, from
 * the loop, or before read or write return when nothing can be begun. One at a time. Failures:
 * those of the tier; an object that is larger than `most` (WT_ERANGE); one that changes while it is
 * read (WT_ECHANGED); a daemon that may not write any more (WT_ELOCKED). A put that is open is
 * aborted. Cancel ends all but what publishes or takes back: its outcome is waited for.
 */
#ifndef WT_DAEMON_WHOLE_H
#define WT_DAEMON_WHOLE_H

#include "tiers/tier.h"

struct wt_whole { /* the caller's, zeroed; untouched while busy */
    /* set by the caller */
    struct wt_tier *tier;
    const char *key;
    size_t most;            /* bytes that a read takes */
    bool (*may)(void *arg); /* change the tier, now? NULL: always */
    /* After a read with rc 0: `len` bytes of `text` are the caller's, free(). */
    void (*done)(void *arg, int rc, const struct wt_err *err);
    void *arg;
    char *text;
    size_t len;
    /* its own */
    bool busy, canceled;
    struct wt_req req;
    struct wt_put *put;
    const char *src;
    size_t at;
    struct wt_err err;
};

void wt_whole_read(struct wt_whole *w);
/* text, len are the caller's, and stay until `done`. */
void wt_whole_write(struct wt_whole *w, const char *text, size_t len);
void wt_whole_cancel(struct wt_whole *w);

#endif
