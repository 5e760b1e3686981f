/*
 * What the loader's tests share: a folder with three file: tiers (hot on /dev/shm), a small data
 * set whose samples say who they are, and a reader that turns what a loader gives into something to
 * compare.
 *
 * Sample i has id 1000 + i, class i % 5 (every 7th is unlabelled), and an image of H x W u16 whose
 * pixel p is (i * 31 + p * 7) & 0xffff.
 */
#ifndef LOADER_KIT_H
#define LOADER_KIT_H

#include "core/dataset.h"

#include <wafertier/loader.h>

#include <stdbool.h>
#include <stdint.h>

enum { KIT_TIERS = 3 };

struct kit_shape {
    unsigned samples, per_shard, h, w;
    enum wt_codec codec;
    bool mask;         /* a second field, u8 of the same size */
    unsigned multihot; /* classes; 0: single labels */
    bool ragged;       /* shapes of the mask differ */
    unsigned odd_one;  /* this sample's image is one row higher, though the manifest says otherwise;
                          0: none */
};

struct kit {
    char root[128], hot[128];
    char config[192];
    struct kit_shape shape;
    struct wt_dataset ds; /* as written */
};

/* Makes folders, data set "wafers" in cold, and a loader.conf. Aborts the test on failure. */
void kit_make(struct kit *k, const struct kit_shape *shape);
void kit_free(struct kit *k);
/* Path of a shard in a tier: 0 cold, 1 warm, 2 hot. */
void kit_path(const struct kit *k, unsigned tier, uint64_t shard, char out[512]);
void kit_shard_name(const struct kit *k, uint64_t shard, char out[WT_OBJECT_NAME]);
void kit_copy(const struct kit *k, uint64_t shard, unsigned tier); /* from cold */
void kit_copy_all(const struct kit *k, unsigned tier);
void kit_remove(const struct kit *k, uint64_t shard, unsigned tier);
/* Flips a byte. */
void kit_damage(const struct kit *k, uint64_t shard, unsigned tier, uint64_t off);
void kit_cut(const struct kit *k, uint64_t shard, unsigned tier, uint64_t size);
/* Appends to loader.conf. */
void kit_config(const struct kit *k, const char *text);

wl_options kit_options(const struct kit *k); /* batch 16, one epoch, 2 threads, rank 0 of 1 */
wl_loader *kit_open(const wl_options *o);

/* ids of one epoch in global order: [steps][batch], 0 for padding. */
struct kit_epoch {
    uint64_t steps, batch, *id, valid;
};
void kit_epoch_free(struct kit_epoch *e);
/* Reads one epoch, checks every valid row's content, label, key and size; puts this rank's rows at
 * their place. *e is made by the first call (zeroed before) and filled in by those of further
 * ranks. */
void kit_read_epoch(const struct kit *k, wl_loader *l, struct kit_epoch *e);
/* Checks one batch's rows. */
void kit_check_batch(const struct kit *k, const wl_batch *b);
void kit_same(const struct kit_epoch *a, const struct kit_epoch *b);
/* Each sample of the data set exactly once. */
void kit_all_once(const struct kit *k, const struct kit_epoch *e);
uint64_t kit_bytes_read(const wl_loader *l);
wl_stats kit_stats(const wl_loader *l);

#endif
