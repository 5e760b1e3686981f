/*
 * The life of the rados backend's client; client.c opens with its states.
 */
#ifndef WT_TIERS_RADOS_CLIENT_H
#define WT_TIERS_RADOS_CLIENT_H

#include "tiers/rados/internal.h"

/* Starts to connect and returns. 0, or a code when not even that could be begun. */
int rados_client_open(struct wt_tier *tier, const struct rados_url *url, struct wt_err *err);
void rados_client_close(struct wt_tier *tier);

#endif
