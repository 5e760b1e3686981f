/*
 * Blocking calls for command-line tools and tests: one thread, a loop of their own. Never for the
 * daemon or the loader.
 */
#ifndef WT_TIERS_SYNC_H
#define WT_TIERS_SYNC_H

#include "tiers/tier.h"

struct wt_sync; /* a loop and the tiers opened on it */

int wt_sync_new(const struct wt_log *log, struct wt_sync **out, struct wt_err *err);
int wt_sync_open(struct wt_sync *s, const struct wt_tier_opts *opts, struct wt_tier **out,
                 struct wt_err *err);
void wt_sync_free(struct wt_sync *s); /* closes every tier */

/* Submits and runs the loop until done. rc; err also in req->err. */
int wt_sync_do(struct wt_sync *s, struct wt_tier *tier, struct wt_req *req);

/* Whole object into *data (free()). max: refuse larger ones (WT_ERANGE). Parts are read with
 * several requests in flight. */
int wt_sync_read(struct wt_sync *s, struct wt_tier *tier, const char *key, uint64_t max,
                 uint8_t **data, size_t *len, struct wt_err *err);
/* Whole put: open, parts, commit; aborted on error. */
int wt_sync_write(struct wt_sync *s, struct wt_tier *tier, const char *key, const void *data,
                  size_t len, unsigned flags, struct wt_err *err);
int wt_sync_remove(struct wt_sync *s, struct wt_tier *tier, const char *key, struct wt_err *err);
int wt_sync_stat(struct wt_sync *s, struct wt_tier *tier, const char *key, uint64_t *size,
                 struct wt_err *err);
int wt_sync_list(struct wt_sync *s, struct wt_tier *tier, const char *prefix, unsigned flags,
                 int (*each)(void *arg, const struct wt_entry *entry), void *arg,
                 struct wt_err *err);

#endif
