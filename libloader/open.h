/* Steps of wl_open that wl_state_load repeats. */
#ifndef WT_LOADER_OPEN_H
#define WT_LOADER_OPEN_H

#include "libloader/internal.h"

/* Plans with l->asked, and sets what follows from it: first_row, rows, the ring's base state.
 * WT_EINVAL. */
int wt_loader_plan(struct wl_loader *l, struct wt_err *err);
/* Reads the manifest and shards.idx into l->ds; waits until timeout_ms for a cold tier that is
 * away. */
int wt_loader_read_dataset(struct wl_loader *l, struct wt_err *err);
/* The tensors of a batch: the wanted fields, then those that are always there. Returns their
 * number. */
int wt_loader_fields(struct wl_loader *l, struct wt_tensor_spec spec[WT_RING_TENSORS], size_t *n,
                     struct wt_err *err);

#endif
