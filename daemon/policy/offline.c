/* Policies over a known list of requests, all on one heap of next to leave; see offline.h. */
#include "daemon/policy/offline.h"

#include "core/mem.h"
#include "daemon/policy/heap.h"

#include <stdlib.h>
#include <string.h>

struct cache {
    const struct wt_requests *q;
    uint64_t capacity, used;
    struct wt_heap_table table;
    struct wt_heap heap; /* the top leaves first */
    uint64_t *kept;      /* bytes of each object */
    uint32_t *next;      /* request that asks for the same object; UINT32_MAX: none */
    uint32_t *count;
};

static const char *const names[WT_OFFLINE_COUNT] = {[WT_BELADY] = "belady",
                                                    [WT_BOUND] = "bound",
                                                    [WT_LRU] = "lru",
                                                    [WT_LFU] = "lfu",
                                                    [WT_FIXED] = "fixed"};

const char *wt_offline_name(enum wt_offline_policy policy) {
    return names[policy];
}

static void cache_free(struct cache *c) {
    wt_heap_clear(&c->heap);
    free(c->table.key);
    free(c->table.place);
    free(c->kept);
    free(c->next);
    free(c->count);
}

static int cache_init(struct cache *c, const struct wt_requests *q, uint64_t capacity,
                      struct wt_err *err) {
    *c = (struct cache){.q = q, .capacity = capacity};
    c->heap.table = &c->table;
    c->table.key = wt_calloc(q->objects, sizeof *c->table.key);
    c->table.place = wt_calloc(q->objects, sizeof *c->table.place);
    c->kept = wt_calloc(q->objects, sizeof *c->kept);
    c->count = wt_calloc(q->objects, sizeof *c->count);
    c->next = wt_calloc(q->n, sizeof *c->next);
    if (!c->table.key || !c->table.place || !c->kept || !c->count || !c->next)
        return wt_err_set(err, WT_ENOMEM, "no memory for %llu requests of %u objects",
                          (unsigned long long)q->n, q->objects);
    return 0;
}

/* `count` serves as the last position seen, then is cleared. */
static void find_next(struct cache *c) {
    memset(c->count, 0xff, c->q->objects * sizeof *c->count);
    for (uint64_t i = c->q->n; i-- > 0;) {
        c->next[i] = c->count[c->q->object[i]];
        c->count[c->q->object[i]] = (uint32_t)i;
    }
    memset(c->count, 0, c->q->objects * sizeof *c->count);
}

static void leave(struct cache *c, uint32_t object) {
    c->used -= c->kept[object];
    c->kept[object] = 0;
    wt_heap_remove(&c->heap, object);
}

static void shrink(struct cache *c, enum wt_offline_policy policy) {
    while (c->used > c->capacity) {
        uint32_t top = wt_heap_top(&c->heap);
        uint64_t over = c->used - c->capacity;
        if (policy == WT_BOUND && c->kept[top] > over) {
            c->kept[top] -= over;
            c->used -= over;
            return;
        }
        leave(c, top);
    }
}

/* Larger: it leaves sooner. */
static double rank(const struct cache *c, enum wt_offline_policy policy, uint64_t i) {
    uint32_t object = c->q->object[i];
    switch (policy) {
    case WT_BELADY:
    case WT_BOUND:
        return c->next[i];
    case WT_LFU:
        return -(double)c->count[object] - (double)i / 0x1p33;
    default:
        return -(double)i;
    }
}

static bool put(struct cache *c, uint32_t object, double key) {
    if (!wt_heap_put(&c->heap, object, key))
        return false;
    c->used += c->q->size[object] - c->kept[object];
    c->kept[object] = c->q->size[object];
    return true;
}

static int serve(struct cache *c, enum wt_offline_policy policy, uint64_t i, struct wt_err *err) {
    uint32_t object = c->q->object[i];
    uint64_t size = c->q->size[object];
    bool here = c->kept[object] == size;
    if (size > c->capacity || size == 0)
        return 0;
    if ((policy == WT_BELADY || policy == WT_BOUND) && c->next[i] == UINT32_MAX) {
        leave(c, object);
        return 0;
    }
    if (policy == WT_FIXED && (here || c->used + size > c->capacity))
        return 0;
    c->count[object]++;
    while ((policy == WT_LRU || policy == WT_LFU) && !here && c->used + size > c->capacity) {
        uint32_t top = wt_heap_top(&c->heap);
        c->count[top] = 0;
        leave(c, top);
    }
    if (!put(c, object, rank(c, policy, i)))
        return wt_err_set(err, WT_ENOMEM, "no memory for the cache");
    shrink(c, policy);
    return 0;
}

int wt_offline_run(enum wt_offline_policy policy, const struct wt_requests *q, uint64_t capacity,
                   struct wt_offline *out, struct wt_err *err) {
    struct cache c;
    int rc = cache_init(&c, q, capacity, err);
    if (rc == 0)
        find_next(&c);
    *out = (struct wt_offline){0};
    for (uint64_t i = 0; rc == 0 && i < q->n; i++) {
        uint32_t object = q->object[i];
        if (i >= q->from) {
            out->requests++;
            out->bytes += q->size[object];
            out->hit_bytes += c.kept[object];
            out->hits += c.kept[object] == q->size[object];
        }
        rc = serve(&c, policy, i, err);
    }
    cache_free(&c);
    return rc;
}
