/*
 * The labels array of an npz file: [N] or [N,1] integers are classes (-1: unlabelled), [N,C] of 0
 * and 1 is multi-hot. Floats and bools are taken where they are whole numbers.
 *
 * Failures: a wrong number of rows, a value that is no class, a multi-hot value that is neither 0
 * nor 1: each names the row.
 */
#ifndef WT_TOOLS_INGEST_NPZ_LABELS_H
#define WT_TOOLS_INGEST_NPZ_LABELS_H

#include "core/dataset.h"
#include "core/npy.h"
#include "tools/ingest/zip.h"

struct wt_npz_labels { /* zero-initialise: no labels */
    enum wt_label_kind kind;
    uint32_t n_multihot;
    uint64_t rows;
    int32_t *cls;      /* [rows] */
    uint8_t *multihot; /* [rows][n_multihot] */
};

/* stream: at the array's first element. */
int wt_npz_labels_load(struct wt_npz_labels *labels, struct wt_zip_stream *stream,
                       const struct wt_npy *npy, uint64_t rows, struct wt_err *err);
void wt_npz_labels_get(const struct wt_npz_labels *labels, uint64_t row, int32_t *cls,
                       const uint8_t **multihot);
void wt_npz_labels_free(struct wt_npz_labels *labels);

#endif
