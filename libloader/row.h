/*
 * One row of a batch, from the record of its sample.
 *
 * A row is found, and some rows later given: what it needs of memory is asked for when it is found,
 * and on its way while the rows between are copied.
 *
 * Failure modes: a sample that is bad in its cold copy is an error, masked, or substituted by the
 * next good position of the window, as the options say; a sample whose field deviates from the
 * manifest is an error; so is a wrong sum, where they are checked again.
 */
#ifndef WT_LOADER_ROW_H
#define WT_LOADER_ROW_H

#include "libloader/internal.h"

struct wt_row {
    uint64_t number; /* in the batch */
    uint64_t pos;    /* lane position */
    const struct wt_track *track;
    const struct wt_unit *unit; /* that serves pos; NULL: the lane has ended, the row is padding */
    const struct wt_record *from; /* set by find: the unit's, or own in ranged mode */
    struct wt_record own;
    bool valid, bad; /* set by give */
};

void wt_row_find(const struct wl_loader *l, struct wt_row *row);
/* 0, or a code with *e filled. */
int wt_row_give(const struct wl_loader *l, struct wl_batch *b, struct wt_row *row, wl_error *e);

#endif
