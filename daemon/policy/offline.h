/*
 * What is possible, and what simple policies reach, over a list of requests that is known as a
 * whole. None of this decides anything in the daemon but predictions.
 *
 *   BELADY      the farthest next use leaves, a newcomer that is farther is not kept. Least missed
 *               bytes where sizes are equal
 *   BOUND       the same with objects that may be kept in part: no policy misses fewer bytes
 *   LRU, LFU    (LFU forgets counts on eviction; the older leaves among equals)
 *   FIXED       what comes first stays
 * What is larger than the cache is never kept.
 *
 * Failures: WT_ENOMEM only.
 */
#ifndef WT_DAEMON_POLICY_OFFLINE_H
#define WT_DAEMON_POLICY_OFFLINE_H

#include "core/err.h"

#include <stdint.h>

enum wt_offline_policy { WT_BELADY, WT_BOUND, WT_LRU, WT_LFU, WT_FIXED, WT_OFFLINE_COUNT };

struct wt_requests {
    const uint32_t *object; /* [n] */
    uint64_t n;             /* below 2^32 - 1 */
    const uint64_t *size;   /* [objects] */
    uint32_t objects;
    uint64_t from; /* requests before this one warm up: they are not counted */
};

struct wt_offline {
    uint64_t requests, hits, bytes, hit_bytes;
};

const char *wt_offline_name(enum wt_offline_policy policy);
int wt_offline_run(enum wt_offline_policy policy, const struct wt_requests *q, uint64_t capacity,
                   struct wt_offline *out, struct wt_err *err);

#endif
