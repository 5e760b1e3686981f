/*
 * Rows of a batch, from the records of their samples.
 *
 * Happy path: a run of rows of one window is copied in bursts, each asked for while the one before
 * it is copied, so that the waits for memory overlap. Failure modes: a sample that is bad in its
 * cold copy is an error, masked, or substituted by the next good position of the window, as the
 * options say; a sample whose field deviates from the manifest is an error; so is a wrong sum,
 * where they are checked again.
 */
#ifndef WT_LOADER_ROW_H
#define WT_LOADER_ROW_H

#include "libloader/internal.h"

struct wt_rows { /* a batch being staged, by one worker */
    const struct wl_loader *l;
    struct wl_batch *b;
    uint64_t n_valid, n_bad;
    wl_error err;
};

/* Rows from `row` on from records[n], which follow each other. Gives how many there were before one
 * whose record is not plain, or *failed with err filled. */
uint64_t wt_rows_plain(struct wt_rows *r, uint64_t row, const struct wt_record *records, uint64_t n,
                       bool *failed);
/* One row, whatever it is: lane position pos of a unit's. false: err is filled. */
bool wt_rows_any(struct wt_rows *r, uint64_t row, const struct wt_track *t, const struct wt_unit *u,
                 uint64_t pos);
/* The lane has ended: zeroes, not valid. */
void wt_rows_blank(struct wt_rows *r, uint64_t row);

#endif
