/* What pin, unpin, warm, evict and shards are about: DATASET[/LOT[/WAFER]]. */
#ifndef WT_TOOLS_SELECT_H
#define WT_TOOLS_SELECT_H

#include "core/err.h"

#include <jansson.h>

/* The daemon's selector with `tier` (NULL: left out). NULL: `err` says what is wrong with it. */
json_t *wt_select_json(const char *operand, const char *tier, struct wt_err *err);
/* "wafers/L1/W03" again, from an answer's dataset, lot and wafer; returns out. */
enum { WT_SELECT_TEXT = 400 };
const char *wt_select_text(const json_t *o, char out[WT_SELECT_TEXT]);
/* ...as parameters of a GET: "dataset=wafers&lot=L1". */
int wt_select_query(const char *operand, char *out, size_t size, struct wt_err *err);
/* Appends "&name=value", percent-encoded; WT_ERANGE when it does not fit. */
int wt_select_param(char *out, size_t size, const char *name, const char *value,
                    struct wt_err *err);

#endif
