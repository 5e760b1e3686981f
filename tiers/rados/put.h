/* A put under way; put.c and commit.c. */
#ifndef WT_TIERS_RADOS_PUT_H
#define WT_TIERS_RADOS_PUT_H

#include "tiers/rados/internal.h"

struct rados_put {
    struct wt_put base;
    uint64_t token;
    uint32_t n_parts, tried; /* tried: parts 0 to tried-1 may be there */
    uint32_t *crc;           /* [n_parts] */
    uint8_t *data;           /* [size] where it goes into the head */
};

void rados_put_free(struct rados_client *c, struct rados_put *put);
/* Its parts are removed behind the scenes, then `waiter` (may be NULL) ends. */
void rados_put_undo(struct rados_client *c, struct rados_put *put, struct rados_call *waiter);

#endif
