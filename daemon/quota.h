/*
 * What a data set has above its quota leaves, coldest first, but for what is pinned. That nothing
 * more comes in is the planner's business (wt_catalog_room).
 *
 * Called after each pass; a few drops at a time, the next pass gives more. Failures: a mover whose
 * queue is full takes the rest next time.
 */
#ifndef WT_DAEMON_QUOTA_H
#define WT_DAEMON_QUOTA_H

#include "daemon/catalog.h"
#include "daemon/mover.h"

void wt_quota_drain(struct wt_catalog *c, struct wt_mover *m, uint32_t now_s, double half_life_s);

#endif
