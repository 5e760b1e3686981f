/*
 * Buffers of the data path: taken from a pool that keeps what it once had, because the first touch
 * of memory costs more than the copy into it. The pool's limit is reserved when a loader opens;
 * where that estimate was too low, its owner is asked for more.
 */
#ifndef WT_LOADER_BUFFERS_H
#define WT_LOADER_BUFFERS_H

#include "core/mem.h"

#include <pthread.h>

struct wt_buffer {
    struct wt_mem mem;
    struct wt_buffer *next;
};

struct wt_buffers {
    pthread_mutex_t mutex;
    struct wt_buffer *free; /* ascending by size */
    size_t total, limit;    /* mapped bytes, in use or free */
    int (*more)(void *owner,
                size_t bytes); /* 0: the limit may grow by this; called with the mutex held */
    void *owner;
};

void wt_buffers_init(struct wt_buffers *p, int (*more)(void *owner, size_t bytes), void *owner);
void wt_buffers_end(struct wt_buffers *p); /* all given back */
/* At least `size` bytes, contents undefined. May map and touch memory: not on an I/O thread.
 * WT_ENOMEM. Any thread. */
int wt_buffers_get(struct wt_buffers *p, size_t size, struct wt_buffer **out, struct wt_err *err);
void wt_buffers_put(struct wt_buffers *p, struct wt_buffer *b); /* NULL is fine; any thread */

#endif
