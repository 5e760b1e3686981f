/*
 * Labels from a CSV (`file,label[,lot,wafer,...]`, columns in any order), and the numbering of
 * classes.
 *
 * A file's row is found by its path below the input folder, else by its bare name. An empty label
 * is unlabelled, which is never a class. Columns beside file, label, lot and wafer go into the
 * sample's metadata, as numbers where they are numbers.
 */
#ifndef WT_TOOLS_INGEST_LABELS_H
#define WT_TOOLS_INGEST_LABELS_H

#include "core/bytes.h"
#include "tools/ingest/names.h"

struct wt_label_row {
    const char *file;        /* as the CSV has it */
    const char *label;       /* "": unlabelled */
    const char *lot, *wafer; /* NULL or "": not given */
    size_t meta;             /* `,"column":value` ... as a text in the table's meta */
    uint64_t line;
    char *taken; /* the file that it was given to, or NULL */
};

struct wt_label_table;
/* label_column: NULL for "label". Errors name the column that is missing and those that are there,
 * or the lines of a file that stands twice. */
int wt_label_table_open(const char *path, const char *label_column, struct wt_label_table **out,
                        struct wt_err *err);
/* The row of a file; *row NULL: none. WT_EINVAL: two files would take one row by their bare names.
 */
int wt_label_table_take(struct wt_label_table *t, const char *rel, const struct wt_label_row **row,
                        struct wt_err *err);
const char *wt_label_table_meta(const struct wt_label_table *t, const struct wt_label_row *row);
/* Rows that no file took; *first the first of them. */
uint64_t wt_label_table_unused(const struct wt_label_table *t, const struct wt_label_row **first);
void wt_label_table_close(struct wt_label_table *t);

/* The classes of a data set: texts as they were met, then numbered. With a given order ("a,b,c")
 * each text has to be one of it, or its number. Else whole numbers keep their value as class
 * number, and other texts are sorted by their bytes. -1 is unlabelled among whole numbers. */
struct wt_classes { /* zero-initialise */
    struct wt_names seen;
    int32_t *number; /* [seen.n] after wt_classes_close: class or WT_UNLABELLED */
    char **name;     /* [n] */
    uint32_t n;
};
int wt_classes_number(struct wt_classes *c, const char *order, struct wt_err *err);
/* n classes of a multi-hot data set: `order` has to name as many, without it they are "0", "1", ...
 */
int wt_classes_multihot(struct wt_classes *c, const char *order, uint32_t n, struct wt_err *err);
void wt_classes_free(struct wt_classes *c);

#endif
