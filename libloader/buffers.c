/* Best fit among free buffers, else a new one, for which smaller free ones go when the limit asks
 * for it; see buffers.h. */
#include "libloader/buffers.h"

#include <stdint.h>
#include <stdlib.h>

enum {
    ROUND_SHIFT = 3
}; /* sizes are rounded up to eighths of a power of two, so that nearly equal ones fit each other */

void wt_buffers_init(struct wt_buffers *p, int (*more)(void *owner, size_t bytes), void *owner) {
    *p = (struct wt_buffers){.more = more, .owner = owner};
    pthread_mutex_init(&p->mutex, NULL);
}

static void drop_first(struct wt_buffers *p) {
    struct wt_buffer *b = p->free;
    p->free = b->next;
    p->total -= b->mem.mapped;
    wt_mem_unmap(&b->mem);
    free(b);
}

void wt_buffers_end(struct wt_buffers *p) {
    while (p->free)
        drop_first(p);
    pthread_mutex_destroy(&p->mutex);
}

static size_t rounded(size_t size) {
    size_t unit = 4096;
    while (unit << (ROUND_SHIFT + 1) <= size && unit < ((size_t)1 << 40))
        unit <<= 1;
    return (size + unit - 1) / unit * unit;
}

/* The smallest free one that fits and is not wasted on this. */
static struct wt_buffer *take_fitting(struct wt_buffers *p, size_t size) {
    for (struct wt_buffer **at = &p->free; *at; at = &(*at)->next) {
        struct wt_buffer *b = *at;
        if (b->mem.size < size)
            continue;
        if (b->mem.size / 4 > size)
            return NULL;
        *at = b->next;
        return b;
    }
    return NULL;
}

/* What wt_mem_map takes for a rounded size. */
static size_t mapped(size_t size) {
    const size_t huge = (size_t)2 << 20;
    return size < huge ? size : (size + huge - 1) / huge * huge;
}

static int reserve(struct wt_buffers *p, size_t room, struct wt_err *err) {
    while (p->free && p->total + room > p->limit)
        drop_first(p);
    if (p->total + room > p->limit && p->more(p->owner, p->total + room - p->limit) == 0)
        p->limit = p->total + room;
    if (p->total + room > p->limit)
        return wt_err_set(err, WT_ENOMEM,
                          "a buffer of %zu bytes does not fit the loader's memory (%zu of %zu "
                          "bytes are in use): raise "
                          "'memory', or lower 'window' or 'slots'",
                          room, p->total, p->limit);
    return 0;
}

int wt_buffers_get(struct wt_buffers *p, size_t size, struct wt_buffer **out, struct wt_err *err) {
    if (size > SIZE_MAX / 4)
        return wt_err_set(err, WT_ENOMEM, "a buffer of %zu bytes cannot be had", size);
    size = rounded(size ? size : 1);
    pthread_mutex_lock(&p->mutex);
    struct wt_buffer *b = take_fitting(p, size);
    int rc = b ? 0 : reserve(p, mapped(size), err);
    if (!b && !rc)
        p->total += mapped(size);
    pthread_mutex_unlock(&p->mutex);
    if (b || rc) {
        if (b)
            *out = b;
        return rc;
    }
    b = wt_calloc(1, sizeof *b);
    rc = b ? wt_mem_map(&b->mem, size, err)
           : wt_err_set(err, WT_ENOMEM, "out of memory for a buffer");
    pthread_mutex_lock(&p->mutex);
    if (rc)
        p->total -= mapped(size);
    pthread_mutex_unlock(&p->mutex);
    if (rc) {
        free(b);
        return rc;
    }
    *out = b;
    return 0;
}

void wt_buffers_put(struct wt_buffers *p, struct wt_buffer *b) {
    if (!b)
        return;
    pthread_mutex_lock(&p->mutex);
    struct wt_buffer **at = &p->free;
    while (*at && (*at)->mem.size < b->mem.size)
        at = &(*at)->next;
    b->next = *at;
    *at = b;
    pthread_mutex_unlock(&p->mutex);
}
