/*
 * How long the loop's turns take, from the end of one wait to the next: so long may a request that
 * comes now have to wait. Without the time that the loop slept. Cannot fail.
 */
#ifndef WT_DAEMON_TURNS_H
#define WT_DAEMON_TURNS_H

#include "core/hist.h"

#include <uv.h>

struct wt_turns {
    uv_prepare_t prepare;
    uint64_t at_ns, idle_ns, cpu_ns;
    struct wt_hist hist;
    uint64_t max_cpu_us; /* of processor time: without what others took of the machine */
    uint64_t over;       /* longer than 5 ms, which is what a slice of work may take */
};
void wt_turns_start(struct wt_turns *t, uv_loop_t *loop);
void wt_turns_stop(struct wt_turns *t);

#endif
