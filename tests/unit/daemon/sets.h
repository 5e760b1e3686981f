/* Data sets made in memory, for tests of the parts that hold them. */
#ifndef WT_TEST_SETS_H
#define WT_TEST_SETS_H

#include "core/dataset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* `shards` shards of `size` bytes; shard i's hash is {salt_i, i}, with salt_i = i < keep ? 0 :
 * salt. */
static inline struct wt_dataset make_set(const char *name, uint64_t generation, uint64_t shards,
                                         uint64_t size, uint64_t salt, uint64_t keep) {
    struct wt_dataset d = {0};
    snprintf(d.m.name, sizeof d.m.name, "%s", name);
    d.m.generation = generation;
    d.m.shards = d.m.samples = shards;
    d.m.stored_bytes = shards * size;
    d.idx = calloc(shards ? shards : 1, WT_IDX_RECORD);
    d.cum = calloc(shards + 1, sizeof *d.cum);
    assert_non_null(d.idx);
    assert_non_null(d.cum);
    for (uint64_t i = 0; i < shards; i++) {
        struct wt_shard_rec rec = {.hash = {i < keep ? 0 : salt, i},
                                   .size = size,
                                   .tar_size = size,
                                   .index_off = size / 2,
                                   .first = i,
                                   .samples = 1,
                                   .codec = WT_CODEC_TAR};
        wt_shard_rec_encode(&rec, d.idx + i * WT_IDX_RECORD);
        d.cum[i + 1] = i + 1;
    }
    return d;
}

#endif
