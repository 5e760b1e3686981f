/*
 * One thread that talks to the daemon: what was read, what comes next; it learns where copies are.
 * The data path never waits for it.
 */
#ifndef WT_LOADER_REPORT_H
#define WT_LOADER_REPORT_H

#include "libloader/internal.h"

/* Starts it where the configuration names a control socket and this is rank 0; else *out is NULL,
 * which all others accept. */
int wt_reporter_new(struct wl_loader *l, struct wt_reporter **out, struct wt_err *err);
/* Last report and goodbye (a second at most), then joins. */
void wt_reporter_free(struct wt_reporter *r);
void wt_reporter_read(struct wt_reporter *r, uint64_t shard, unsigned tier,
                      uint64_t bytes); /* any thread */
/* The tier's copy is not there, or damaged: the daemon may count on it. Any thread. */
void wt_reporter_lost(struct wt_reporter *r, uint64_t shard, unsigned tier, bool damaged);
void wt_reporter_poke(struct wt_reporter *r); /* report soon: an epoch ended. Any thread */

#endif
