/*
 * The limits that the loader is measured against: what the memory and the decoder under it can do,
 * with as many threads, and nothing else.
 *
 *   gather   images copied from kept mappings, in the loader's order, into slots like the loader's
 *   decode   every frame with samples in it, decoded once to its place in memory for the whole
 *            data set: what `zstd -b` measures (programs/benchzstd.c: one result buffer)
 *   cached   the same into one frame's memory, which stays in the processor's cache: what a reader
 *            that never keeps an image could do
 */
#ifndef WT_BENCH_LIMIT_H
#define WT_BENCH_LIMIT_H

#include "bench/loader/set.h"

struct limit;
/* slots, batch: of the loader. Threads are started for each run: their start is part of no sample.
 */
struct limit *limit_new(const struct set *s, unsigned threads, unsigned slots, uint64_t batch);
void limit_free(struct limit *l);
/* order[n] as set_order gives it, n a multiple of batch. Prepared before the clock starts. */
void limit_prepare(struct limit *l, const uint64_t *order, uint64_t n);
void limit_gather(struct limit *l);
void limit_decode(struct limit *l);
void limit_decode_cached(struct limit *l);

#endif
