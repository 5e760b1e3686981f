/*
 * A heap of shards with the largest key on top, where every shard knows its place: keys change and
 * shards leave in O(log n). Several heaps share one table of places and keys: a shard is in one of
 * them at most.
 *
 * Failures: only out of memory, when a heap must grow; it is unchanged then.
 */
#ifndef WT_DAEMON_POLICY_HEAP_H
#define WT_DAEMON_POLICY_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WT_HEAP_OUT UINT32_MAX

struct wt_heap_table { /* 12 bytes a shard */
    double *key;
    uint32_t *place; /* in its heap + 1; 0: in none, so that fresh memory need not be touched */
};

static inline bool wt_heap_has(const struct wt_heap_table *t, uint64_t shard) {
    return t->place[shard] != 0;
}

struct wt_heap {
    struct wt_heap_table *table;
    uint32_t *at;
    size_t n, cap;
};

bool wt_heap_put(struct wt_heap *h, uint32_t shard,
                 double key); /* in it or not; false: no memory */
void wt_heap_remove(struct wt_heap *h, uint32_t shard);
static inline uint32_t wt_heap_top(const struct wt_heap *h) {
    return h->n ? h->at[0] : WT_HEAP_OUT;
}
void wt_heap_clear(struct wt_heap *h); /* forgets all; their places must be reset by the caller */

#endif
