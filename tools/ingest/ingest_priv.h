/* What the planning (scan.c) and the reading (ingest.c) of files share. */
#ifndef WT_TOOLS_INGEST_PRIV_H
#define WT_TOOLS_INGEST_PRIV_H

#include "tools/ingest/ingest.h"
#include "tools/ingest/labels.h"
#include "tools/ingest/reader.h"

#include <pthread.h>

struct wt_item { /* a file */
    char *path;
    size_t root; /* path + root: below the input */
    const struct wt_reader_ops *ops;
    uint64_t first, count; /* its samples */
    uint64_t bytes;        /* of one sample */
    bool ordered;
    bool own_labels; /* the file's labels count */
    uint32_t label;  /* number in classes.seen, or WT_NAME_NONE */
    const struct wt_label_row *row;
    bool told;     /* found bad while it was read, and told so */
    void *state;   /* ordered readers stay open from sample to sample */
    uint64_t next; /* the sample that such a reader gives next */
};

struct wt_ingest {
    struct wt_source source; /* first */
    struct wt_ingest_opts opts;
    struct wt_reader_opts reader;
    bool by_folder;
    const char *label_source; /* for the metadata; NULL: none */
    struct wt_label_table *table;
    struct wt_classes classes;
    uint32_t n_multihot;
    struct wt_item *item;
    size_t items, item_cap;
    struct wt_idmap ids;
    pthread_mutex_t lock; /* of report and note */
    struct wt_ingest_report report;
};

/* Fills items, classes, report. */
int wt_ingest_scan(struct wt_ingest *g, struct wt_err *err);
/* Whose sample that is. */
struct wt_item *wt_ingest_item(const struct wt_ingest *g, uint64_t sample);
int wt_item_key(const struct wt_ingest *g, const struct wt_item *item, uint64_t index,
                char key[WT_KEY_MAX], struct wt_err *err);
/* A bad file: 0 with keep_going (told and counted), else err's code. item: when it was among the
 * files already, else NULL. */
int wt_ingest_bad(struct wt_ingest *g, struct wt_item *item, struct wt_err *err);

#endif
