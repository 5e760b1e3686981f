/*
 * The heads read last, by key, so that a GET goes straight to the parts. Least recently used ones
 * leave; bounded in number and bytes. What is here may be stale: parts are named by token, so a
 * stale head finds no parts, is dropped and read again. Heads with their data, and of objects that
 * may be replaced, never enter.
 */
#ifndef WT_TIERS_RADOS_CACHE_H
#define WT_TIERS_RADOS_CACHE_H

#include "tiers/rados/head.h"

struct rados_cache;

struct rados_cache *rados_cache_new(size_t max_bytes); /* NULL: out of memory */
void rados_cache_free(struct rados_cache *cache);
/* A reference for the caller, or NULL. */
struct rados_head *rados_cache_get(struct rados_cache *cache, const char *key);
/* Takes a reference of its own; replaces what the key had. Without memory nothing is kept. */
void rados_cache_put(struct rados_cache *cache, const char *key, struct rados_head *head);
void rados_cache_drop(struct rados_cache *cache, const char *key);
void rados_cache_clear(struct rados_cache *cache);

#endif
