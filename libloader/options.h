/* Options: versioned by size, checked, set by name. */
#ifndef WT_LOADER_OPTIONS_H
#define WT_LOADER_OPTIONS_H

#include "core/err.h"

#include <wafertier/loader.h>

/* Copies an options struct of any version into a full one with defaults in what it lacks, and
 * checks every value. */
int wt_options_take(const wl_options *in, wl_options *out, struct wt_err *err);
int wt_context_options_take(const wl_context_options *in, wl_context_options *out,
                            struct wt_err *err);

#endif
