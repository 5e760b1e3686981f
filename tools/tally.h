/*
 * What the manifest says about the samples, counted as they go into shards: labels, lots, wafers,
 * fields. Each worker has a tally of its own; they are merged at the end, and the result does not
 * depend on who counted what.
 */
#ifndef WT_TOOLS_TALLY_H
#define WT_TOOLS_TALLY_H

#include "core/dataset.h"
#include "tools/ingest/names.h"

struct wt_tally { /* wt_tally_init; wt_tally_free */
    uint64_t labelled;
    uint64_t *class_count; /* [n_classes] */
    uint32_t n_classes;
    bool multihot;
    struct wt_names lots, wafers; /* wafers as "lot/wafer" */
    struct wt_field_info field[WT_MAX_FIELDS];
    uint32_t n_fields;
    char last[WT_KEY_MAX]; /* "lot/wafer" of the last sample: most have the same */
};
int wt_tally_init(struct wt_tally *t, uint32_t n_classes, bool multihot, struct wt_err *err);
int wt_tally_add(struct wt_tally *t, const struct wt_sample_in *s, struct wt_err *err);
int wt_tally_merge(struct wt_tally *into, const struct wt_tally *from, struct wt_err *err);
/* Fills labelled, class_count, lots, wafers and fields of a manifest; class_count moves. */
void wt_tally_finish(struct wt_tally *t, struct wt_manifest *m);
void wt_tally_free(struct wt_tally *t);

#endif
