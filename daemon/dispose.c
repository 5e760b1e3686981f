/* See dispose.h. */
#include "daemon/dispose.h"

#include <stdlib.h>

struct disposal {
    uv_work_t work;
    void (*fn)(void *what);
    void *what;
};

static void work(uv_work_t *w) {
    struct disposal *d = w->data;
    d->fn(d->what);
}

static void worked(uv_work_t *w, int status) {
    struct disposal *d = w->data;
    if (status < 0)
        d->fn(d->what);
    free(d);
}

void wt_dispose(uv_loop_t *loop, void (*fn)(void *what), void *what) {
    struct disposal *d = malloc(sizeof *d);
    if (d) {
        *d = (struct disposal){.fn = fn, .what = what};
        d->work.data = d;
        if (uv_queue_work(loop, &d->work, work, worked) == 0)
            return;
    }
    free(d);
    fn(what);
}
