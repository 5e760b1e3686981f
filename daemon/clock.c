/* A calendar that nobody can set; see clock.h. Cannot fail. */
#include "daemon/clock.h"

#include <time.h>

void wt_clock_start(struct wt_clock *c, uint32_t calendar_s, uint64_t (*monotonic_ns)(void)) {
    *c = (struct wt_clock){
        .base_s = calendar_s, .base_ns = monotonic_ns(), .monotonic_ns = monotonic_ns};
}

uint32_t wt_clock_now(const struct wt_clock *c) {
    if (!c->monotonic_ns)
        return (uint32_t)time(NULL);
    return c->base_s + (uint32_t)((c->monotonic_ns() - c->base_ns) / 1000000000);
}

uint32_t wt_clock_past(const struct wt_clock *c, uint32_t then) {
    uint32_t now = wt_clock_now(c);
    return then < now ? then : now;
}
