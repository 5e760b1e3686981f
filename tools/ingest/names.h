/*
 * Texts with numbers: each different text gets 0, 1, 2, ... in the order in which it came (classes,
 * lots, wafers, file names). And a map from 64-bit numbers, for the ids of samples.
 */
#ifndef WT_TOOLS_INGEST_NAMES_H
#define WT_TOOLS_INGEST_NAMES_H

#include "core/bytes.h"

#include <stdbool.h>
#include <stdint.h>

#define WT_NAME_NONE UINT32_MAX

struct wt_names { /* zero-initialise */
    struct wt_bytes text;
    size_t *off;
    size_t off_cap;
    uint32_t n;
    uint32_t *slot; /* number + 1, 0: empty; a power of two of them */
    size_t slots;
};
/* The number of `text`, new or old; 0 or WT_ENOMEM. */
int wt_names_add(struct wt_names *names, const char *text, uint32_t *number);
uint32_t wt_names_find(const struct wt_names *names, const char *text); /* WT_NAME_NONE */
/* Valid until the next add. */
const char *wt_names_get(const struct wt_names *names, uint32_t number);
void wt_names_free(struct wt_names *names);

struct wt_idmap { /* zero-initialise */
    struct wt_idmap_slot {
        uint64_t id, value; /* value + 1, 0: empty */
    } * slot;
    size_t slots, n;
};
/* 0: added; 1: `id` was there, with *old; or WT_ENOMEM. */
int wt_idmap_add(struct wt_idmap *map, uint64_t id, uint64_t value, uint64_t *old);
void wt_idmap_free(struct wt_idmap *map);

#endif
