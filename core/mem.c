/* Mapped, pre-faulted buffers; see mem.h. */
#include "core/mem.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

static size_t round_up(size_t n, size_t unit) {
    return (n + unit - 1) / unit * unit;
}

/* One write a page: the kernel backs it now, not in the middle of a batch. */
static void touch(volatile char *p, size_t size, size_t page) {
    for (size_t i = 0; i < size; i += page)
        p[i] = 0;
}

int wt_mem_map(struct wt_mem *mem, size_t size, struct wt_err *err) {
    if (size == 0) {
        *mem = (struct wt_mem){0};
        return 0;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t unit = size >= HUGE_PAGE ? (size_t)HUGE_PAGE : page;
    if (size > SIZE_MAX - 2 * (size_t)HUGE_PAGE)
        return wt_err_set(err, WT_ENOMEM, "a buffer of %zu bytes cannot be had", size);
    size_t want = round_up(size, unit);
    size_t slack = unit == (size_t)HUGE_PAGE ? unit : 0;
    char *base =
        mmap(NULL, want + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return wt_err_set(err, WT_ENOMEM, "a buffer of %zu bytes cannot be had", size);
    if (slack) {
        /* Align to a huge page and give the rest back, so that every page can be a huge one. */
        char *start = (char *)round_up((size_t)(uintptr_t)base, unit);
        if (start > base)
            munmap(base, (size_t)(start - base));
        size_t tail = (size_t)(base + want + slack - (start + want));
        if (tail)
            munmap(start + want, tail);
        base = start;
        madvise(base, want, MADV_HUGEPAGE);
    }
    touch(base, want, page);
    *mem = (struct wt_mem){.ptr = base, .size = size, .mapped = want};
    return 0;
}

void wt_mem_unmap(struct wt_mem *mem) {
    if (mem->ptr)
        munmap(mem->ptr, mem->mapped);
    *mem = (struct wt_mem){0};
}

void *wt_calloc(size_t count, size_t size) {
    return calloc(count ? count : 1, size ? size : 1);
}

int wt_grow(void *array, size_t *cap, size_t need, size_t size) {
    if (need <= *cap)
        return 0;
    size_t next = *cap ? *cap : 8;
    while (next < need) {
        if (next > SIZE_MAX / 2)
            return WT_ENOMEM;
        next *= 2;
    }
    if (size && next > SIZE_MAX / size)
        return WT_ENOMEM;
    void *old;
    memcpy(&old, array, sizeof old);
    void *grown = realloc(old, next * size);
    if (!grown)
        return WT_ENOMEM;
    memcpy(array, &grown, sizeof grown);
    *cap = next;
    return 0;
}
