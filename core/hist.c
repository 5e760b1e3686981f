/* Buckets and percentiles; see hist.h. Bucket 2k ends at 2^k, bucket 2k+1 at 1.5 * 2^k. */
#include "core/hist.h"

static unsigned bucket_of(uint64_t us) {
    if (us <= 1)
        return 0;
    unsigned k = 63 - (unsigned)__builtin_clzll(us);
    uint64_t power = UINT64_C(1) << k;
    unsigned i = us == power ? 2 * k : us <= power + power / 2 ? 2 * k + 1 : 2 * k + 2;
    return i < WT_HIST_BUCKETS ? i : WT_HIST_BUCKETS - 1;
}

uint64_t wt_hist_bound(unsigned i) {
    if (i >= WT_HIST_BUCKETS - 1)
        return UINT64_MAX;
    uint64_t power = UINT64_C(1) << (i / 2);
    return i % 2 ? power + power / 2 : power;
}

void wt_hist_add(struct wt_hist *h, uint64_t us) {
    h->n[bucket_of(us)]++;
    h->count++;
    h->sum_us += (double)us;
    if (us > h->max_us)
        h->max_us = us;
}

uint64_t wt_hist_percentile(const struct wt_hist *h, double part) {
    double want = part * (double)h->count;
    uint64_t sum = 0;
    for (unsigned i = 0; i < WT_HIST_BUCKETS; i++) {
        sum += h->n[i];
        if (sum && (double)sum >= want)
            return wt_hist_bound(i) < h->max_us ? wt_hist_bound(i) : h->max_us;
    }
    return h->max_us;
}
