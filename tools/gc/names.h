/*
 * A set of object names, 8 bytes each: their hashes. Two names of one hash are taken for one, which
 * may let an orphan stay, and never lets a named object go.
 */
#ifndef WT_TOOLS_GC_NAMES_H
#define WT_TOOLS_GC_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wt_gc_names { /* zeroed: empty */
    uint64_t *slot;  /* 0: free */
    size_t size, count;
};

int wt_gc_names_add(struct wt_gc_names *set, const char *name); /* 0 or WT_ENOMEM */
bool wt_gc_names_has(const struct wt_gc_names *set, const char *name);
void wt_gc_names_free(struct wt_gc_names *set);

#endif
