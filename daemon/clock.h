/*
 * The daemon's calendar: seconds since 1970 that heat and residency are dated with.
 *
 * It is set once, at the start, and runs on by the monotonic clock: one who sets the machine's
 * clock by years does not cool every shard, nor freeze its heat. What an earlier run has dated
 * later than now (its clock was ahead) counts as of now: wt_clock_past.
 */
#ifndef WT_DAEMON_CLOCK_H
#define WT_DAEMON_CLOCK_H

#include <stdint.h>

struct wt_clock { /* zeroed: follows the machine's calendar */
    uint32_t base_s;
    uint64_t base_ns;
    uint64_t (*monotonic_ns)(void);
};

/* Begins at calendar_s. */
void wt_clock_start(struct wt_clock *c, uint32_t calendar_s, uint64_t (*monotonic_ns)(void));
uint32_t wt_clock_now(const struct wt_clock *c);
/* A time that was remembered: never later than now. */
uint32_t wt_clock_past(const struct wt_clock *c, uint32_t then);

#endif
