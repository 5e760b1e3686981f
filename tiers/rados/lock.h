/* The locks of a tier that closes; lock.c also has the ops LOCK and UNLOCK. */
#ifndef WT_TIERS_RADOS_LOCK_H
#define WT_TIERS_RADOS_LOCK_H

#include "tiers/rados/internal.h"

/* Unlocks what is still held, behind the scenes. */
void rados_locks_let_go(struct rados_client *c);

#endif
