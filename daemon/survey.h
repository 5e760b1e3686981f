/*
 * The wafers of a data set and the shards that hold each: built shard by shard from their indices,
 * in ascending order, then asked. No I/O.
 */
#ifndef WT_DAEMON_SURVEY_H
#define WT_DAEMON_SURVEY_H

#include "core/shard.h"
#include "daemon/places.h"

struct wt_survey;
struct wt_survey *wt_survey_new(void);
void wt_survey_free(struct wt_survey *s);
/* Takes the keys of one shard. WT_ENOMEM; WT_ERANGE: more than it is made for. */
int wt_survey_add(struct wt_survey *s, uint64_t shard, const struct wt_shard_index *index);
/* Adds to *out the shards with samples of the lot, or of its wafer alone (wafer ""). WT_EMISSING:
 * there are none. Names are as in keys, or as people write them (wt_key_escape). */
int wt_survey_find(const struct wt_survey *s, const char *lot, const char *wafer,
                   struct wt_selection *out);
/* out->range, also where they touch. */
int wt_selection_add(struct wt_selection *out, uint64_t first, uint64_t end);

#endif
