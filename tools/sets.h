/* Which data sets a tier holds, by the names of its folders. */
#ifndef WT_TOOLS_SETS_H
#define WT_TOOLS_SETS_H

#include "tools/target.h"

struct wt_set_names { /* zeroed: none; in order */
    char **name;
    size_t n, cap;
};
/* A folder need not hold a data set: it may be of something else, or of a pack at work. */
int wt_set_names_list(struct wt_target *t, struct wt_set_names *names, struct wt_err *err);
void wt_set_names_free(struct wt_set_names *names);

#endif
