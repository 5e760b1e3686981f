/* A binary heap with places; see heap.h. */
#include "daemon/policy/heap.h"

#include "core/mem.h"

#include <stdlib.h>

static double key_at(const struct wt_heap *h, size_t i) {
    return h->table->key[h->at[i]];
}

static void set(struct wt_heap *h, size_t i, uint32_t shard) {
    h->at[i] = shard;
    h->table->place[shard] = (uint32_t)i + 1;
}

static void up(struct wt_heap *h, size_t i) {
    uint32_t shard = h->at[i];
    double key = h->table->key[shard];
    for (; i && key_at(h, (i - 1) / 2) < key; i = (i - 1) / 2)
        set(h, i, h->at[(i - 1) / 2]);
    set(h, i, shard);
}

static void down(struct wt_heap *h, size_t i) {
    uint32_t shard = h->at[i];
    double key = h->table->key[shard];
    for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && key_at(h, child + 1) > key_at(h, child))
            child++;
        if (key_at(h, child) <= key)
            break;
        set(h, i, h->at[child]);
    }
    set(h, i, shard);
}

bool wt_heap_put(struct wt_heap *h, uint32_t shard, double key) {
    if (!wt_heap_has(h->table, shard)) {
        if (wt_grow(&h->at, &h->cap, h->n + 1, sizeof *h->at) < 0)
            return false;
        set(h, h->n++, shard);
    }
    h->table->key[shard] = key;
    up(h, h->table->place[shard] - 1);
    down(h, h->table->place[shard] - 1);
    return true;
}

void wt_heap_remove(struct wt_heap *h, uint32_t shard) {
    if (!wt_heap_has(h->table, shard))
        return;
    uint32_t place = h->table->place[shard] - 1;
    h->table->place[shard] = 0;
    uint32_t last = h->at[--h->n];
    if (last == shard)
        return;
    set(h, place, last);
    up(h, place);
    down(h, h->table->place[last] - 1);
}

void wt_heap_clear(struct wt_heap *h) {
    free(h->at);
    h->at = NULL;
    h->n = h->cap = 0;
}
