/*
 * One row of a batch, from the chunk that holds its sample.
 *
 * A row is given in three steps, so that the memory that a later one needs is on its way while an
 * earlier one is copied: found (and its place in the shard's index asked for), expected (its bytes
 * asked for), given. Between the steps stand as many rows of the same batch as the caller likes.
 *
 * Failure modes: a sample that is bad in its cold copy is an error, masked, or substituted by the
 * next good position of the window, as the options say; a sample whose field deviates from the
 * manifest is an error; so is a wrong sum, where they are checked again.
 */
#ifndef WT_LOADER_ROW_H
#define WT_LOADER_ROW_H

#include "libloader/internal.h"

struct wt_place { /* where a sample is */
    const struct wt_chunk *chunk;
    uint32_t sample; /* of the chunk */
};

struct wt_row {
    uint64_t number; /* in the batch */
    uint64_t pos;    /* lane position */
    const struct wt_track *track;
    const struct wt_unit *unit; /* that serves pos; NULL: the lane has ended, the row is padding */
    struct wt_place at;
    bool valid, bad; /* set by give */
};

void wt_row_find(const struct wl_loader *l, struct wt_row *row);
void wt_row_expect(const struct wl_loader *l, const struct wt_row *row);
/* 0, or a code with *e filled. */
int wt_row_give(struct wl_loader *l, struct wl_batch *b, struct wt_row *row, wl_error *e);

#endif
