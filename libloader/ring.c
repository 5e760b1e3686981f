/* Slots, their memory and their references; see ring.h. */
#include "libloader/ring.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ALIGN = 256 }; /* what DLPack asks of CPU memory */

uint64_t wt_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool spec_row_bytes(const struct wt_tensor_spec *s, uint64_t *bytes) {
    uint64_t n = wl_dtype_size(s->dtype);
    for (int i = 0; i < s->ndim; i++)
        if (__builtin_mul_overflow(n, (uint64_t)s->dim[i], &n))
            return false;
    *bytes = n;
    return true;
}

/* Bytes of one slot's tensors, each aligned. */
static uint64_t slot_bytes(const struct wt_tensor_spec *spec, size_t n_spec, uint64_t rows) {
    uint64_t total = 0, row, bytes;
    for (size_t i = 0; i < n_spec; i++) {
        if (!spec_row_bytes(&spec[i], &row) || __builtin_mul_overflow(row, rows, &bytes) ||
            bytes > (UINT64_C(1) << 60) || total > (UINT64_C(1) << 60))
            return UINT64_MAX;
        total += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
    return total;
}

uint64_t wt_ring_bytes(const struct wt_tensor_spec *spec, size_t n_spec, uint64_t rows,
                       unsigned slots) {
    uint64_t one = slot_bytes(spec, n_spec, rows), total;
    if (one == UINT64_MAX || rows > UINT64_MAX / WT_RING_KEY / 2 ||
        __builtin_mul_overflow(one + rows * WT_RING_KEY, (uint64_t)slots, &total))
        return UINT64_MAX;
    return total;
}

static void fill_tensor(wl_tensor *t, const struct wt_tensor_spec *s, uint64_t rows, void *data,
                        int device) {
    *t = (wl_tensor){
        .name = s->name, .data = data, .dtype = s->dtype, .ndim = s->ndim + 1, .device = device};
    t->shape[0] = (int64_t)rows;
    memcpy(t->shape + 1, s->dim, (size_t)s->ndim * sizeof s->dim[0]);
    int64_t stride = 1;
    for (int i = s->ndim; i >= 0; i--) {
        t->stride[i] = stride;
        stride *= t->shape[i];
    }
}

static void fill_slots(struct wt_ring *r) {
    char *at = r->mem.ptr;
    char(*keys)[WT_RING_KEY] = r->host.ptr;
    for (unsigned i = 0; i < r->n_slots; i++) {
        struct wl_batch *b = &r->slot[i];
        *b = (struct wl_batch){.ring = r,
                               .index = (int)i,
                               .rows = r->rows,
                               .n_tensors = r->n_tensors,
                               .tensor = r->tensors + (size_t)i * r->n_tensors,
                               .row_bytes = r->row_bytes,
                               .key = keys + (size_t)i * r->rows};
        for (size_t t = 0; t < r->n_tensors; t++) {
            fill_tensor(&b->tensor[t], &r->spec[t], r->rows, at, r->accel->device);
            at += (r->row_bytes[t] * r->rows + ALIGN - 1) / ALIGN * ALIGN;
        }
    }
}

static void ring_free(struct wt_ring *r) {
    r->accel->free(&r->mem);
    wt_mem_unmap(&r->host);
    for (unsigned i = 0; r->slot && i < r->n_slots; i++)
        free(r->slot[i].wanted);
    free(r->slot);
    free(r->spec);
    free(r->tensors);
    free(r->row_bytes);
    pthread_cond_destroy(&r->cond);
    pthread_mutex_destroy(&r->mutex);
    free(r);
}

static int ring_alloc(struct wt_ring *r, uint64_t bytes, struct wt_err *err) {
    r->slot = wt_calloc(r->n_slots, sizeof *r->slot);
    r->spec = wt_calloc(r->n_tensors, sizeof *r->spec);
    r->tensors = wt_calloc((size_t)r->n_slots * r->n_tensors, sizeof *r->tensors);
    r->row_bytes = wt_calloc(r->n_tensors, sizeof *r->row_bytes);
    if (!r->slot || !r->spec || !r->tensors || !r->row_bytes)
        return wt_err_set(err, WT_ENOMEM, "out of memory for a ring of %u batches", r->n_slots);
    uint64_t keys = r->n_slots * r->rows * WT_RING_KEY;
    int rc = r->accel->alloc(&r->mem, (size_t)(bytes - keys), err);
    return rc ? rc : wt_mem_map(&r->host, (size_t)keys, err);
}

int wt_ring_new(const struct wt_tensor_spec *spec, size_t n_spec, uint64_t rows, unsigned slots,
                const struct wt_accel *accel, struct wt_ring **out, struct wt_err *err) {
    uint64_t bytes = wt_ring_bytes(spec, n_spec, rows, slots);
    if (bytes == UINT64_MAX)
        return wt_err_set(err, WT_EINVAL, "a batch of %llu rows is too large",
                          (unsigned long long)rows);
    struct wt_ring *r = wt_calloc(1, sizeof *r);
    if (!r)
        return wt_err_set(err, WT_ENOMEM, "out of memory for a ring of %u batches", slots);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->cond, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&r->mutex, NULL);
    atomic_init(&r->refs, 1);
    r->n_slots = slots;
    r->rows = rows;
    r->n_tensors = n_spec;
    r->accel = accel;
    int rc = ring_alloc(r, bytes, err);
    if (rc) {
        ring_free(r);
        return rc;
    }
    memcpy(r->spec, spec, n_spec * sizeof *spec);
    for (size_t i = 0; i < n_spec; i++) {
        uint64_t row = 0;
        spec_row_bytes(&spec[i], &row);
        r->row_bytes[i] = (size_t)row;
    }
    fill_slots(r);
    *out = r;
    return 0;
}

struct wl_batch *wt_ring_take(struct wt_ring *r) {
    for (unsigned i = 0; i < r->n_slots; i++) {
        struct wl_batch *b = &r->slot[i];
        if (b->state != WT_SLOT_FREE)
            continue;
        b->state = WT_SLOT_STAGING;
        b->valid = b->n_bad = 0;
        b->n_wanted = 0;
        b->err_row = UINT64_MAX;
        b->err.code = WL_OK;
        return b;
    }
    return NULL;
}

void wt_ring_publish(struct wl_batch *b) {
    b->state = WT_SLOT_READY;
    b->ready_ns = wt_now_ns();
}

void wt_ring_deliver(struct wl_batch *b) {
    b->state = WT_SLOT_HELD;
    b->refs = 1;
    atomic_fetch_add(&b->ring->refs, 1);
}

void wt_ring_drop(struct wl_batch *b) {
    b->state = WT_SLOT_FREE;
}

unsigned wt_ring_count(const struct wt_ring *r, enum wt_slot_state state) {
    unsigned n = 0;
    for (unsigned i = 0; i < r->n_slots; i++)
        n += r->slot[i].state == state;
    return n;
}

void wt_ring_hold(struct wl_batch *b) {
    b->refs++;
    atomic_fetch_add(&b->ring->refs, 1);
}

static void unref(struct wt_ring *r) {
    if (atomic_fetch_sub(&r->refs, 1) == 1)
        ring_free(r);
}

void wt_ring_unlock_wake(struct wt_ring *r) {
    bool wake = r->waiting > 0;
    if (wake)
        atomic_fetch_add(&r->refs, 1); /* who is woken may drop the last one */
    pthread_mutex_unlock(&r->mutex);
    if (!wake)
        return;
    pthread_cond_broadcast(&r->cond);
    unref(r);
}

void wt_ring_release(struct wl_batch *b) {
    struct wt_ring *r = b->ring;
    pthread_mutex_lock(&r->mutex);
    if (--b->refs == 0) {
        b->state = WT_SLOT_FREE;
        if (r->freed)
            r->freed(r->owner);
        pthread_cond_broadcast(&r->cond);
    }
    pthread_mutex_unlock(&r->mutex);
    unref(r);
}

void wt_ring_disown(struct wt_ring *r) {
    pthread_mutex_lock(&r->mutex);
    r->freed = NULL;
    r->owner = NULL;
    pthread_mutex_unlock(&r->mutex);
    unref(r);
}

bool wt_ring_wait(struct wt_ring *r, uint64_t deadline_ns) {
    r->waiting++;
    bool woken;
    if (deadline_ns == UINT64_MAX) {
        woken = pthread_cond_wait(&r->cond, &r->mutex) == 0;
    } else {
        struct timespec t = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                             .tv_nsec = (long)(deadline_ns % 1000000000u)};
        woken = pthread_cond_timedwait(&r->cond, &r->mutex, &t) == 0;
    }
    r->waiting--;
    return woken;
}
