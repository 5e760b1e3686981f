/*
 * The plan: the order in which a job reads samples, as a pure function of (view, seed, epoch,
 * options, plan version).
 *
 *   view      N samples in manifest order, cut in blocks of B consecutive samples (the last may be
 * short) stream    the blocks in the order of a keyed permutation, one per epoch lane      the
 * stream cut in L equal runs (within one sample); lane l is positions [lN/L, (l+1)N/L) piece     a
 * block as one lane has it: whole, but for the two at a lane's ends window    K consecutive pieces
 * of a lane (lane l's grid is shifted by floor(lK/L) pieces, so that lanes do not all turn over at
 *             once); inside a window the samples are permuted by a second keyed permutation
 *   batch     step s takes G/L samples of every lane; lane l fills positions [lG/L, (l+1)G/L)
 *   rank      r of W owns positions [rG/W, (r+1)G/W): whole lanes when W divides L
 *
 * Nothing here depends on ranks but the last line, and nothing on threads, tiers or faults. Every
 * function is O(1) except where it says otherwise; all are thread-safe on a const plan. In eval
 * mode both permutations are the identity and L is 1.
 */
#ifndef WT_CORE_PLAN_H
#define WT_CORE_PLAN_H

#include "core/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WT_PLAN_VERSION = 1 };
enum wt_tail { WT_TAIL_DROP, WT_TAIL_PAD };
enum wt_plan_mode { WT_PLAN_TRAIN, WT_PLAN_EVAL };

struct wt_plan_opts {
    uint64_t samples; /* N > 0 */
    uint64_t seed;
    uint64_t batch;  /* G: the global batch, > 0 */
    uint64_t block;  /* B, 0: 256 (a caller passes what a typical shard holds) */
    uint32_t lanes;  /* L, 0: the largest divisor of G that is <= min(16, blocks / 4), at least 1.
                        Given: must divide G */
    uint32_t window; /* K, 0: as many blocks as fit 1 GiB over all lanes by block_bytes, in 1..8 and
                        <= half a lane */
    uint64_t block_bytes; /* for the default of K only; 0: unknown (K = 4) */
    enum wt_tail tail;
    enum wt_plan_mode mode;
};

struct wt_plan {
    struct wt_plan_opts o; /* with the defaults filled in */
    uint64_t blocks;       /* ceil(N / B) */
    uint64_t lane_batch;   /* G / L */
    uint64_t steps; /* in an epoch: drop: floor over the shortest lane; pad (and eval): ceil over
                       the longest */
};

/* WT_EINVAL says which option is wrong and what would do. */
int wt_plan_init(struct wt_plan *plan, const struct wt_plan_opts *opts, struct wt_err *err);

/* A keyed permutation of [0, n): an alternating Feistel network over the smallest power of two >=
 * n, walked along its cycle until the value is below n (Black and Rogaway, "Ciphers with Arbitrary
 * Finite Domains", CT-RSA 2002). bits = 0: the identity. */
struct wt_perm {
    uint64_t n;
    uint32_t bits, rounds;
    uint64_t key[4];
};
struct wt_perm wt_perm_make(uint64_t n, uint64_t k0, uint64_t k1, uint64_t k2);
uint64_t wt_perm_at(const struct wt_perm *p, uint64_t i);
uint64_t wt_perm_inverse(const struct wt_perm *p, uint64_t v);
/* out[i] = wt_perm_inverse(p, first + i) for i < n, in less time than n calls. */
void wt_perm_inverses(const struct wt_perm *p, uint64_t first, size_t n, uint64_t *out);

/* One epoch of a plan: derived keys. */
struct wt_epoch {
    const struct wt_plan *plan;
    uint64_t epoch;
    struct wt_perm blocks;
    uint64_t short_at; /* stream index of the short block; = blocks when there is none */
};
struct wt_epoch wt_plan_epoch(const struct wt_plan *plan, uint64_t epoch);

/* i-th block of the stream, and its inverse: when block b comes. */
uint64_t wt_epoch_block(const struct wt_epoch *e, uint64_t i);
uint64_t wt_epoch_when(const struct wt_epoch *e, uint64_t block);
/* Stream position of the first sample of the i-th block of the stream (i may be = blocks: N), and
 * which i holds a position. */
uint64_t wt_epoch_offset(const struct wt_epoch *e, uint64_t i);
uint64_t wt_epoch_index(const struct wt_epoch *e, uint64_t pos);

uint64_t wt_plan_lane_start(const struct wt_plan *plan,
                            uint32_t lane); /* floor(lane N / L); lane may be = L */
static inline uint64_t wt_plan_lane_samples(const struct wt_plan *plan, uint32_t lane) {
    return wt_plan_lane_start(plan, lane + 1) - wt_plan_lane_start(plan, lane);
}

struct wt_piece {
    uint64_t stream;       /* index in the stream of its block */
    uint64_t first, count; /* sample ordinals [first, first + count), count > 0 */
    uint64_t lane_pos;     /* lane position of its first sample, before the window's permutation */
};
struct wt_window {
    uint64_t number;                /* 0, 1, ... in the lane */
    uint64_t piece_first, n_pieces; /* of the lane */
    uint64_t pos, count;            /* lane positions [pos, pos + count) */
    struct wt_perm perm;            /* of count */
};
uint64_t wt_epoch_pieces(const struct wt_epoch *e,
                         uint32_t lane); /* pieces of a lane; 0 for an empty lane */
struct wt_piece wt_epoch_piece(const struct wt_epoch *e, uint32_t lane, uint64_t j);
uint64_t wt_epoch_windows(const struct wt_epoch *e, uint32_t lane);
struct wt_window wt_epoch_window(const struct wt_epoch *e, uint32_t lane, uint64_t w);
/* The window that holds lane position pos (< lane samples). */
uint64_t wt_epoch_window_of(const struct wt_epoch *e, uint32_t lane, uint64_t pos);

/* Inside a window: which unpermuted lane position is delivered at lane position pos. */
static inline uint64_t wt_window_source(const struct wt_window *w, uint64_t pos) {
    return w->pos + wt_perm_at(&w->perm, pos - w->pos);
}
/* Sample ordinal at lane position pos. */
uint64_t wt_epoch_sample(const struct wt_epoch *e, uint32_t lane, uint64_t pos);

/* Position p of the global batch (0 <= p < G) belongs to this lane, at this offset in the lane's
 * share. */
static inline uint32_t wt_plan_lane_of(const struct wt_plan *plan, uint64_t p) {
    return (uint32_t)(p / plan->lane_batch);
}
/* Rank r of W: positions [*first, *first + *count). W <= G. */
static inline void wt_plan_rank(const struct wt_plan *plan, uint32_t rank, uint32_t world,
                                uint64_t *first, uint64_t *count) {
    uint64_t g = plan->o.batch;
    *first = g * rank / world;
    *count = g * (rank + UINT64_C(1)) / world - *first;
}

#endif
