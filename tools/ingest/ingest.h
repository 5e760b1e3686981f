/*
 * Files as a source of samples: folders, npy, npz and png files, with labels.
 *
 * Happy path: open walks the inputs, reads every file's header, joins labels, numbers classes and
 * makes sure that keys are unique; the packer then reads ranges of samples from its threads.
 * Failures: a bad file ends it with an error that names the file; with keep_going it is told to
 * `note`, counted and left out. A stream (npz) that breaks while it is read always ends it: samples
 * of it may be in shards already.
 *
 * Keys are <lot>/<wafer>/<sample>: lot and wafer from the CSV, the options, or "lot0" and "wafer0";
 * sample is the path below the input without its extension, '/' becoming '~', and for a file of
 * many samples "~" and the index.
 */
#ifndef WT_TOOLS_INGEST_INGEST_H
#define WT_TOOLS_INGEST_INGEST_H

#include "tools/source.h"

struct wt_ingest_opts {
    char *const *inputs;
    size_t n_inputs;
    const char
        *labels; /* NULL: what files have; "folders"; the path of a CSV; else an npz array's name */
    const char *label_column; /* of the CSV; NULL: "label" */
    const char *classes;      /* "a,b,c"; NULL: as wt_classes_number says */
    const char *images;       /* npz array, NULL: the usual names */
    const char *lot, *wafer;  /* NULL: "lot0", "wafer0" */
    bool keep_going;
    uint64_t max_image;                        /* 0: WT_IMAGE_MAX */
    bool (*stopped)(void *arg);                /* asked now and then; NULL: never */
    void (*note)(void *arg, const char *line); /* from any thread, one at a time; NULL: silent */
    void *arg;
};

struct wt_ingest_report {
    uint64_t files;       /* that have samples in the data set, as far as is known */
    uint64_t ignored;     /* other files in folders: unknown extensions */
    uint64_t bad;         /* left out */
    uint64_t bytes;       /* of the images, decoded */
    uint64_t unlisted;    /* files that the CSV does not have */
    uint64_t unused_rows; /* rows of the CSV without a file */
};

struct wt_ingest;
int wt_ingest_open(const struct wt_ingest_opts *opts, struct wt_ingest **out, struct wt_err *err);
struct wt_source *wt_ingest_source(struct wt_ingest *g);
void wt_ingest_report(struct wt_ingest *g, struct wt_ingest_report *report);
void wt_ingest_close(struct wt_ingest *g);

#endif
