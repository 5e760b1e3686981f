/*
 * Where batches lie. One table of operations per kind of memory; the first row is the host. A
 * loader picks its row once, in wl_open, and never asks again which one it has.
 */
#ifndef WT_LOADER_ACCEL_H
#define WT_LOADER_ACCEL_H

#include "core/log.h"
#include "core/mem.h"

#include <wafertier/loader.h>

struct wt_accel {
    const char *name;
    /* Memory of a ring: allocated in open alone, zero-filled. */
    int (*alloc)(struct wt_mem *mem, size_t size, struct wt_err *err);
    void (*free)(struct wt_mem *mem);
    /* Between two buffers of this kind, complete for work on `stream` that comes later. */
    void (*copy)(void *dst, const void *src, size_t size, void *stream);
    int device; /* wl_tensor.device */
};

extern const struct wt_accel wt_accel_host;

/* AUTO takes the best there is, with one message; a kind that cannot be had is WT_EUNSUPPORTED. */
int wt_accel_choose(wl_accel wanted, const struct wt_log *log, const struct wt_accel **out,
                    struct wt_err *err);

#endif
