/* A chained hash table whose entries also stand in one list, the least recently used last. */
#include "tiers/rados/cache.h"

#include "core/sum.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024 };

struct entry {
    struct entry *chain, *newer, *older;
    struct rados_head *head;
    size_t bytes;
    uint64_t hash;
    char key[];
};

struct rados_cache {
    struct entry *bucket[BUCKETS];
    struct entry *newest, *oldest;
    size_t bytes, max_bytes;
};

struct rados_cache *rados_cache_new(size_t max_bytes) {
    struct rados_cache *cache = calloc(1, sizeof *cache);
    if (cache)
        cache->max_bytes = max_bytes;
    return cache;
}

static struct entry **find(struct rados_cache *cache, const char *key, uint64_t hash) {
    struct entry **at = &cache->bucket[hash % BUCKETS];
    while (*at && ((*at)->hash != hash || strcmp((*at)->key, key) != 0))
        at = &(*at)->chain;
    return at;
}

static void unlink_entry(struct rados_cache *cache, struct entry *e) {
    *(e->newer ? &e->newer->older : &cache->newest) = e->older;
    *(e->older ? &e->older->newer : &cache->oldest) = e->newer;
}

static void link_newest(struct rados_cache *cache, struct entry *e) {
    e->newer = NULL;
    e->older = cache->newest;
    *(e->older ? &e->older->newer : &cache->oldest) = e;
    cache->newest = e;
}

static void remove_at(struct rados_cache *cache, struct entry **at) {
    struct entry *e = *at;
    *at = e->chain;
    unlink_entry(cache, e);
    cache->bytes -= e->bytes;
    rados_head_unref(e->head);
    free(e);
}

struct rados_head *rados_cache_get(struct rados_cache *cache, const char *key) {
    struct entry *e = *find(cache, key, wt_hash64(key, strlen(key)));
    if (!e)
        return NULL;
    unlink_entry(cache, e);
    link_newest(cache, e);
    rados_head_ref(e->head);
    return e->head;
}

void rados_cache_drop(struct rados_cache *cache, const char *key) {
    struct entry **at = find(cache, key, wt_hash64(key, strlen(key)));
    if (*at)
        remove_at(cache, at);
}

void rados_cache_put(struct rados_cache *cache, const char *key, struct rados_head *head) {
    size_t len = strlen(key);
    size_t bytes = sizeof(struct entry) + len + 1 + sizeof *head + head->length;
    rados_cache_drop(cache, key);
    if (head->flags || bytes > cache->max_bytes / 4)
        return;
    struct entry *e = malloc(sizeof *e + len + 1);
    if (!e)
        return;
    *e = (struct entry){.head = head, .bytes = bytes, .hash = wt_hash64(key, len)};
    memcpy(e->key, key, len + 1);
    rados_head_ref(head);
    struct entry **at = &cache->bucket[e->hash % BUCKETS];
    e->chain = *at;
    *at = e;
    link_newest(cache, e);
    cache->bytes += bytes;
    while (cache->bytes > cache->max_bytes)
        remove_at(cache, find(cache, cache->oldest->key, cache->oldest->hash));
}

void rados_cache_clear(struct rados_cache *cache) {
    while (cache->oldest)
        remove_at(cache, find(cache, cache->oldest->key, cache->oldest->hash));
}

void rados_cache_free(struct rados_cache *cache) {
    if (!cache)
        return;
    rados_cache_clear(cache);
    free(cache);
}
