/* Uses a shard's index that was accepted in all ways in which a reader does. */
#ifndef WT_TESTS_FUZZ_SHARD_USE_H
#define WT_TESTS_FUZZ_SHARD_USE_H

#include "core/shard.h"

/* object: all x->size stored bytes, or NULL: only the arithmetic is tried. */
void fuzz_use_index(const struct wt_shard_index *x, const uint8_t *object);
/* A small valid shard, the same each time; wt_shard_out_free. */
void fuzz_make_shard(enum wt_codec codec, struct wt_shard_out *out);

#endif
