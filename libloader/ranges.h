/*
 * Named ranges for a profiler's time line (NVTX: Nsight Systems shows them beside the GPU's work):
 * "wafertier decode", "wafertier stage" on the loader's threads, "wafertier wait" where wl_next
 * waits. Without a profiler a range is a test of one pointer; without NVTX at build it is nothing.
 * A range ends on the thread that began it; ranges nest.
 */
#ifndef WT_LOADER_RANGES_H
#define WT_LOADER_RANGES_H

void wt_ranges_open(void); /* before the first thread that begins one; again is fine */
void wt_range_begin(const char *name);
void wt_range_end(void);

#endif
