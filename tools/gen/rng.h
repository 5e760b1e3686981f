/*
 * Random numbers by counter: draw n of a stream is a pure function of (key, n), so any thread makes
 * the same sample.
 */
#ifndef WT_TOOLS_GEN_RNG_H
#define WT_TOOLS_GEN_RNG_H

#include <stdint.h>

#define WT_RNG_STEP UINT64_C(0x9e3779b97f4a7c15)

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014; constants by Stafford). */
static inline uint64_t wt_rng_mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

struct wt_rng {
    uint64_t key, n;
};
static inline struct wt_rng wt_rng_of(uint64_t seed, uint64_t stream) {
    return (struct wt_rng){.key =
                               wt_rng_mix(wt_rng_mix(seed + WT_RNG_STEP) ^ (stream * WT_RNG_STEP))};
}
static inline uint64_t wt_rng_next(struct wt_rng *r) {
    return wt_rng_mix(r->key + ++r->n * WT_RNG_STEP);
}
/* [0, 1) */
static inline double wt_rng_unit(struct wt_rng *r) {
    return (double)(wt_rng_next(r) >> 11) * 0x1p-53;
}
static inline double wt_rng_between(struct wt_rng *r, double low, double high) {
    return low + (high - low) * wt_rng_unit(r);
}
/* [0, n), n < 2^32 */
static inline uint32_t wt_rng_below(struct wt_rng *r, uint32_t n) {
    return (uint32_t)(((wt_rng_next(r) >> 32) * n) >> 32);
}

#endif
