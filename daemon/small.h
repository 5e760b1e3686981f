/*
 * A small object of the daemon's own in the cold tier, read and replaced whole.
 *
 * Happy path: read, or write; `done` is called once, later on the loop. One at a time. Failures:
 * those of the tier; an object larger than a MiB or two (WT_ERANGE); stop cancels.
 */
#ifndef WT_DAEMON_SMALL_H
#define WT_DAEMON_SMALL_H

#include "tiers/tier.h"

enum { WT_SMALL_MAX = 4 << 20 };

struct wt_small {
    struct wt_tier *tier;
    const char *key;
    bool (*may)(void *arg); /* write? asked before each step */
    /* rc 0 of a read: `len` bytes of `text`, valid for the call */
    void (*done)(void *arg, int rc, const struct wt_err *err);
    void *arg;
    char *text;
    size_t len;
    /* its own */
    struct wt_req req;
    struct wt_put *put;
    struct wt_err err;
    bool busy;
};

void wt_small_read(struct wt_small *s);
/* text, len are the caller's until `done`. */
void wt_small_write(struct wt_small *s, char *text, size_t len);
void wt_small_cancel(struct wt_small *s);

#endif
