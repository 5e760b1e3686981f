/* Turns of the loop; see turns.h. */
#include "daemon/turns.h"

#include <time.h>

enum { OVER_US = 5000 };

static uint64_t cpu_now(void) {
    struct timespec t = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void on_prepare(uv_prepare_t *prepare) {
    struct wt_turns *t = prepare->data;
    uint64_t now = uv_hrtime(), idle = uv_metrics_idle_time(prepare->loop);
    uint64_t cpu = cpu_now(), worked = (cpu - t->cpu_ns) / 1000;
    uint64_t passed = now - t->at_ns, slept = idle - t->idle_ns;
    if (t->at_ns) {
        uint64_t us = (passed > slept ? passed - slept : 0) / 1000;
        wt_hist_add(&t->hist, us);
        t->over += us > OVER_US;
        t->max_cpu_us = worked > t->max_cpu_us ? worked : t->max_cpu_us;
    }
    t->at_ns = now;
    t->cpu_ns = cpu;
    t->idle_ns = idle;
}

void wt_turns_start(struct wt_turns *t, uv_loop_t *loop) {
    uv_loop_configure(loop, UV_METRICS_IDLE_TIME);
    *t = (struct wt_turns){0};
    uv_prepare_init(loop, &t->prepare);
    t->prepare.data = t;
    uv_prepare_start(&t->prepare, on_prepare);
}

void wt_turns_stop(struct wt_turns *t) {
    uv_close((uv_handle_t *)&t->prepare, NULL);
}
