/* What a data set is, in a few lines for people. */
#ifndef WT_TOOLS_SUMMARY_H
#define WT_TOOLS_SUMMARY_H

#include "core/dataset.h"

/* On stdout; seconds: what making it took, 0: it was not made now. */
void wt_summary_print(const struct wt_manifest *m, double seconds);

#endif
