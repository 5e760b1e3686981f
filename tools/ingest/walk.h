/*
 * The files of an input: the file itself, or all files below a folder, sorted by the bytes of their
 * paths so that the same folder gives the same data set. Hidden files and folders are skipped;
 * symbolic links are followed, loops are not.
 */
#ifndef WT_TOOLS_INGEST_WALK_H
#define WT_TOOLS_INGEST_WALK_H

#include "core/err.h"

#include <stddef.h>

struct wt_walk { /* zero-initialise */
    char **path; /* the input's path, a slash, the path below it */
    size_t n, cap;
    size_t root; /* length of the part of each path that is not "below": path + root is the relative
                    one */
};
int wt_walk_input(const char *input, struct wt_walk *walk, struct wt_err *err);
void wt_walk_free(struct wt_walk *walk);

#endif
