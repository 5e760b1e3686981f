/*
 * What the daemon's answers to reports teach: where the copies of coming shards are, and which are
 * on their way. An answer is believed as far as it makes sense: what is not a number, a known tier
 * or a shard of the data set is left out.
 */
#ifndef WT_LOADER_HINTS_H
#define WT_LOADER_HINTS_H

#include "libloader/internal.h"

#include <jansson.h>

void wt_hints_take(struct wl_loader *l, const json_t *answer);

#endif
