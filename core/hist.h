/*
 * A histogram of durations: two buckets a doubling from 1 us to an hour, so a percentile is right
 * within a half. One thread at a time; adding costs a few instructions.
 */
#ifndef WT_CORE_HIST_H
#define WT_CORE_HIST_H

#include <stdint.h>

enum { WT_HIST_BUCKETS = 66 };

struct wt_hist { /* zeroed: empty */
    uint64_t n[WT_HIST_BUCKETS];
    uint64_t count, max_us;
    double sum_us;
};

void wt_hist_add(struct wt_hist *h, uint64_t us);
/* The most that falls into bucket i; of the last one UINT64_MAX. */
uint64_t wt_hist_bound(unsigned i);
/* An upper bound of what `part` (0 to 1) of the durations did not exceed, never above the longest;
 * 0 when there is none. */
uint64_t wt_hist_percentile(const struct wt_hist *h, double part);

#endif
