/*
 * The backend of rados: URLs; rados.c, or none.c where this build has no librados (CMake option
 * WT_RADOS).
 */
#ifndef WT_TIERS_RADOS_H
#define WT_TIERS_RADOS_H

#include "tiers/backend.h"

extern const struct wt_backend wt_backend_rados;

#endif
