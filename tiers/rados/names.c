/* Open addressing over 64-bit hashes, at most half full. */
#include "tiers/rados/names.h"

#include "core/err.h"
#include "core/mem.h"
#include "core/sum.h"

#include <stdbool.h>
#include <stdlib.h>

static bool insert(struct rados_names *set, uint64_t hash) {
    size_t at = (size_t)hash & (set->cap - 1);
    while (set->slot[at]) {
        if (set->slot[at] == hash)
            return false;
        at = (at + 1) & (set->cap - 1);
    }
    set->slot[at] = hash;
    return true;
}

static int grow(struct rados_names *set) {
    struct rados_names larger = {.cap = set->cap ? set->cap * 2 : 64, .count = set->count};
    larger.slot = wt_calloc(larger.cap, sizeof *larger.slot);
    if (!larger.slot)
        return WT_ENOMEM;
    for (size_t i = 0; i < set->cap; i++)
        if (set->slot[i])
            insert(&larger, set->slot[i]);
    free(set->slot);
    *set = larger;
    return 0;
}

int rados_names_add(struct rados_names *set, const char *name, size_t len) {
    uint64_t hash = wt_hash64(name, len);
    if (set->count >= RADOS_NAMES_MAX)
        return WT_ERANGE;
    if (set->count * 2 >= set->cap && grow(set) < 0)
        return WT_ENOMEM;
    if (!insert(set, hash ? hash : 1))
        return 0;
    set->count++;
    return 1;
}

void rados_names_free(struct rados_names *set) {
    free(set->slot);
    *set = (struct rados_names){0};
}
