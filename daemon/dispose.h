/*
 * Giving large memory back in a worker: to unmap a GiB takes a tenth of a second, which the loop
 * does not have.
 *
 * Happy path: dispose; `fn` is called with `what` by a worker of the loop, before the loop ends.
 * Failures: without memory or a worker it is called at once.
 */
#ifndef WT_DAEMON_DISPOSE_H
#define WT_DAEMON_DISPOSE_H

#include <uv.h>

void wt_dispose(uv_loop_t *loop, void (*fn)(void *what), void *what);

#endif
