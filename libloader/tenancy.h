/*
 * The lease of a loader: a record in the cold tier by which `wafertier gc` knows that somebody
 * reads this generation (core/lease.h).
 *
 * Happy path: begun after the open, written by the I/O thread, written anew at a third of its life,
 * removed by the end. Nothing waits for it but the context's close, a second at most. Failures: a
 * tier that is away or cannot be written (read-only credentials) is a line in the log; it is tried
 * again at the next third.
 */
#ifndef WT_LOADER_TENANCY_H
#define WT_LOADER_TENANCY_H

#include "libloader/context.h"

struct wt_tenancy;

/* NULL when there is none: switched off by the configuration, or no memory. */
struct wt_tenancy *wt_tenancy_begin(struct wl_context *ctx, const char *dataset,
                                    uint64_t generation, const char *job);
/* Any thread; the context must be held by the caller until this returns. NULL is fine. */
void wt_tenancy_end(struct wt_tenancy *t);

#endif
