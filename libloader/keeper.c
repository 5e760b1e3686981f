/* A chained hash table of mappings and a list of those that nobody uses, newest last; see keeper.h.
 */
#include "libloader/keeper.h"

#include "core/mem.h"
#include "libloader/context.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096 };

struct wt_keeper {
    struct wl_context *ctx;
    pthread_mutex_t mutex;
    struct wt_kept *bucket[BUCKETS];
    struct wt_kept *oldest, *newest; /* unused ones */
    uint64_t idle_bytes;
};

int wt_keeper_new(struct wl_context *ctx, struct wt_keeper **out, struct wt_err *err) {
    struct wt_keeper *k = wt_calloc(1, sizeof *k);
    if (!k)
        return wt_err_set(err, WT_ENOMEM, "out of memory for a context");
    k->ctx = ctx;
    pthread_mutex_init(&k->mutex, NULL);
    *out = k;
    return 0;
}

static void kept_free(struct wt_kept *kept) {
    if (kept->parsed)
        wt_shard_index_free(&kept->index);
    free(kept->checked);
    wt_map_release(kept->map);
    pthread_mutex_destroy(&kept->mutex);
    free(kept);
}

static struct wt_kept **find(struct wt_keeper *k, struct wt_hash hash) {
    struct wt_kept **at = &k->bucket[hash.lo % BUCKETS];
    while (*at && !wt_hash_equal((*at)->hash, hash))
        at = &(*at)->chain;
    return at;
}

static void idle_remove(struct wt_keeper *k, struct wt_kept *kept) {
    *(kept->older ? &kept->older->newer : &k->oldest) = kept->newer;
    *(kept->newer ? &kept->newer->older : &k->newest) = kept->older;
    kept->older = kept->newer = NULL;
    k->idle_bytes -= kept->view.size;
}

static void idle_add(struct wt_keeper *k, struct wt_kept *kept) {
    kept->older = k->newest;
    kept->newer = NULL;
    *(k->newest ? &k->newest->newer : &k->oldest) = kept;
    k->newest = kept;
    k->idle_bytes += kept->view.size;
}

static void unlist(struct wt_keeper *k, struct wt_kept *kept) {
    struct wt_kept **at = find(k, kept->hash);
    *at = kept->chain;
    kept->listed = false;
}

void wt_keeper_free(struct wt_keeper *k) {
    if (!k)
        return;
    while (k->oldest) {
        struct wt_kept *kept = k->oldest;
        idle_remove(k, kept);
        kept_free(kept);
    }
    pthread_mutex_destroy(&k->mutex);
    free(k);
}

static void hold(struct wt_keeper *k, struct wt_kept *kept) {
    if (kept->refs++ == 0)
        idle_remove(k, kept);
}

struct wt_kept *wt_keeper_get(struct wt_keeper *k, struct wt_hash hash) {
    pthread_mutex_lock(&k->mutex);
    struct wt_kept *kept = *find(k, hash);
    if (kept)
        hold(k, kept);
    pthread_mutex_unlock(&k->mutex);
    return kept;
}

struct wt_kept *wt_keeper_add(struct wt_keeper *k, struct wt_hash hash, unsigned tier,
                              struct wt_map *map) {
    struct wt_kept *fresh = wt_calloc(1, sizeof *fresh);
    if (!fresh) {
        wt_map_release(map);
        return NULL;
    }
    *fresh = (struct wt_kept){.hash = hash,
                              .tier = tier,
                              .map = map,
                              .view = wt_map_view(map),
                              .refs = 1,
                              .listed = true};
    pthread_mutex_init(&fresh->mutex, NULL);
    pthread_mutex_lock(&k->mutex);
    struct wt_kept **at = find(k, hash), *other = *at;
    if (other)
        hold(k, other);
    else
        *at = fresh;
    pthread_mutex_unlock(&k->mutex);
    if (!other)
        return fresh;
    kept_free(fresh);
    return other;
}

void wt_keeper_put(struct wt_keeper *k, struct wt_kept *kept) {
    struct wt_kept *drop = NULL; /* linked by chain; unmapped without the lock */
    uint64_t spare = wt_context_spare(k->ctx);
    pthread_mutex_lock(&k->mutex);
    if (--kept->refs == 0) {
        if (kept->listed) {
            idle_add(k, kept);
        } else {
            kept->chain = drop;
            drop = kept;
        }
    }
    while (k->oldest && k->idle_bytes > spare) {
        struct wt_kept *old = k->oldest;
        idle_remove(k, old);
        unlist(k, old);
        old->chain = drop;
        drop = old;
    }
    pthread_mutex_unlock(&k->mutex);
    while (drop) {
        struct wt_kept *next = drop->chain;
        kept_free(drop);
        drop = next;
    }
}

void wt_keeper_forget(struct wt_keeper *k, struct wt_hash hash, unsigned tiers) {
    pthread_mutex_lock(&k->mutex);
    struct wt_kept *kept = *find(k, hash);
    bool drop = false;
    if (kept && (tiers >> kept->tier & 1)) {
        unlist(k, kept);
        drop = kept->refs == 0;
        if (drop)
            idle_remove(k, kept);
    }
    pthread_mutex_unlock(&k->mutex);
    if (drop)
        kept_free(kept);
}

static int parse(struct wt_kept *kept, const struct wt_shard_rec *rec, struct wt_err *err) {
    if (kept->view.size != rec->size)
        return wt_err_set(err, WT_ECORRUPT, "the copy has %zu bytes, not %llu", kept->view.size,
                          (unsigned long long)rec->size);
    const uint8_t *base = kept->view.data;
    int rc = wt_shard_index_parse(base + rec->index_off, (size_t)(rec->size - rec->index_off),
                                  rec->index_off, rec->size, rec->codec, &kept->index, err);
    if (rc)
        return rc;
    kept->checked = wt_calloc(kept->index.samples, 1);
    if (!kept->checked) {
        wt_shard_index_free(&kept->index);
        return wt_err_set(err, WT_ENOMEM, "out of memory for a shard's index");
    }
    kept->parsed = true;
    return 0;
}

int wt_kept_index(struct wt_kept *kept, const struct wt_shard_rec *rec,
                  const struct wt_shard_index **index, struct wt_err *err) {
    pthread_mutex_lock(&kept->mutex);
    int rc = kept->parsed ? 0 : parse(kept, rec, err);
    pthread_mutex_unlock(&kept->mutex);
    if (!rc)
        *index = &kept->index;
    return rc;
}

int wt_kept_check(struct wt_kept *kept, uint32_t first, uint32_t count, struct wt_err *err) {
    pthread_mutex_lock(&kept->mutex);
    bool all = memchr(kept->checked + first, 0, count) == NULL;
    pthread_mutex_unlock(&kept->mutex);
    if (all)
        return 0;
    int rc = wt_shard_verify(&kept->index, first, count, kept->view.data, 0, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&kept->mutex);
    memset(kept->checked + first, 1, count);
    pthread_mutex_unlock(&kept->mutex);
    return 0;
}
