/* Shards for tests: a recipe says what is in one; kit_build makes it, kit_check compares what was
 * read with the recipe. */
#ifndef WT_TESTS_SHARD_KIT_H
#define WT_TESTS_SHARD_KIT_H

#include "core/shard.h"

#include <stdbool.h>

struct kit_recipe {
    enum wt_codec codec;
    bool sidecars;
    uint32_t n_multihot;
    uint32_t samples;
    uint32_t rows, cols;       /* of the image, u16 */
    uint32_t mask_every;       /* each such sample has a u8 mask of the same size; 0: none */
    uint32_t unlabelled_every; /* 0: all are labelled */
};

/* Sample i: key "lotA/wB/sNNNN", id 1000 + 7 i. All contents follow from the recipe and i. */
void kit_build(const struct kit_recipe *r, struct wt_shard_out *out);
/* Fails the test when the parsed index and the tar bytes differ from the recipe. tar: decoded bytes
 * from tar offset `tar_off`. */
void kit_check(const struct kit_recipe *r, const struct wt_shard_index *x, uint32_t first,
               uint32_t count, const uint8_t *tar, uint64_t tar_off);
/* The same as a question: false on the first difference in tensors or index. */
bool kit_same(const struct kit_recipe *r, const struct wt_shard_index *x, uint32_t first,
              uint32_t count, const uint8_t *tar, uint64_t tar_off);
/* locate + parse over a whole object. */
int kit_open(const void *data, uint64_t size, enum wt_codec codec, struct wt_shard_index *x,
             struct wt_err *err);
/* Decodes (and verifies) the samples of a whole stored object; malloced tar bytes of the span. 0 or
 * an error. */
int kit_fetch(const struct wt_shard_index *x, const uint8_t *object, uint32_t first, uint32_t count,
              uint8_t **tar, uint64_t *tar_off, struct wt_err *err);

#endif
