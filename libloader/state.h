/*
 * A position as bytes: magic, version, length, what must be the same for it to make sense, and a
 * checksum.
 *
 * Layout, little-endian: "WLSTATE" NUL, u32 version, u32 length of it all, then the members of
 * struct wt_state in order (the name as u32 length and bytes), last an XXH3-64 of everything
 * before.
 */
#ifndef WT_LOADER_STATE_H
#define WT_LOADER_STATE_H

#include "core/dataset.h"
#include "core/err.h"
#include "core/plan.h"
#include "core/sum.h"

#include <stddef.h>
#include <stdint.h>

struct wt_state {
    char dataset[WT_DATASET_NAME];
    uint64_t generation;
    struct wt_hash
        idx; /* of the hashes of all shards.idx parts: the same samples in the same order */
    uint64_t seed, epoch;
    uint64_t done; /* samples of each lane that were given in this epoch */
    uint64_t samples, block;
    uint32_t lanes, window;
    uint32_t tail, mode, plan_version;
};

/* WT_ERANGE: the buffer is too small. */
int wt_state_encode(const struct wt_state *s, void *buf, size_t size, size_t *len,
                    struct wt_err *err);
/* WT_ECORRUPT: no state, cut, damaged, or of another version. */
int wt_state_decode(const void *buf, size_t len, struct wt_state *s, struct wt_err *err);
/* Does `saved` describe the same job as `mine`? Lanes, window and block are compared where `mine`
 * has them (not 0). WT_EINVAL names the first member that differs. */
int wt_state_match(const struct wt_state *saved, const struct wt_state *mine, struct wt_err *err);
/* What `idx` above is. */
struct wt_hash wt_state_idx(const struct wt_manifest *m);

#endif
