/*
 * Memory of the data path: allocated once, touched before use, in huge pages where they can be had.
 *
 * A first touch of a page costs microseconds on a virtual machine, far more than the copy into it.
 * So big buffers are mapped once by their owner, pre-faulted here and reused.
 */
#ifndef WT_CORE_MEM_H
#define WT_CORE_MEM_H

#include "core/err.h"

#include <stddef.h>

struct wt_mem {
    void *ptr;   /* page-aligned; NULL when empty */
    size_t size; /* what was asked for */
    size_t mapped;
};

/* Maps at least `size` bytes (size 0: an empty wt_mem), advises huge pages and touches every page.
 * Zero-filled. Any thread. */
int wt_mem_map(struct wt_mem *mem, size_t size, struct wt_err *err);
/* Unmaps and empties; fine on an empty one. */
void wt_mem_unmap(struct wt_mem *mem);

/* malloc family with overflow checks. NULL on failure. Free with free(). */
void *wt_calloc(size_t count, size_t size);
/* Grows *array (capacity *cap elements of `size` bytes) to hold `need`; 0 or WT_ENOMEM, *array
 * untouched then. */
int wt_grow(void *array, size_t *cap, size_t need, size_t size);

#endif
