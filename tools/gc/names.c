/* Open addressing, at most half full; see names.h. */
#include "tools/gc/names.h"

#include "core/mem.h"
#include "core/sum.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SIZE = 256 };

static uint64_t hash_of(const char *name) {
    return wt_hash64(name, strlen(name)) | 1; /* 0 means free */
}

static size_t slot_of(const struct wt_gc_names *set, uint64_t hash) {
    size_t i = (size_t)(hash >> 1) & (set->size - 1);
    while (set->slot[i] && set->slot[i] != hash)
        i = (i + 1) & (set->size - 1);
    return i;
}

static int grow(struct wt_gc_names *set) {
    struct wt_gc_names next = {.size = set->size ? set->size * 2 : FIRST_SIZE, .count = set->count};
    next.slot = wt_calloc(next.size, sizeof *next.slot);
    if (!next.slot)
        return WT_ENOMEM;
    for (size_t i = 0; i < set->size; i++)
        if (set->slot[i])
            next.slot[slot_of(&next, set->slot[i])] = set->slot[i];
    free(set->slot);
    *set = next;
    return 0;
}

int wt_gc_names_add(struct wt_gc_names *set, const char *name) {
    if (set->count * 2 >= set->size && grow(set) < 0)
        return WT_ENOMEM;
    uint64_t hash = hash_of(name);
    size_t i = slot_of(set, hash);
    set->count += set->slot[i] == 0;
    set->slot[i] = hash;
    return 0;
}

bool wt_gc_names_has(const struct wt_gc_names *set, const char *name) {
    return set->count && set->slot[slot_of(set, hash_of(name))];
}

void wt_gc_names_free(struct wt_gc_names *set) {
    free(set->slot);
    *set = (struct wt_gc_names){0};
}
