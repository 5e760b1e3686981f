/* What a caller reads of a batch that it holds; nothing here changes it but release. See loader.h.
 */
#include "core/npy.h"
#include "libloader/errors.h"
#include "libloader/ring.h"

#include <string.h>

_Static_assert((int)WL_BOOL == (int)WT_DTYPE_BOOL && (int)WL_F16 == (int)WT_DTYPE_F16 &&
                   (int)WL_C128 == (int)WT_DTYPE_C128,
               "the public element types are the stored ones");
_Static_assert((int)WL_MAX_NDIM == (int)WT_MAX_NDIM, "the public and the stored dimensions agree");

size_t wl_dtype_size(wl_dtype dtype) {
    return wt_dtype_size((enum wt_dtype)dtype);
}

const char *wl_dtype_name(wl_dtype dtype) {
    return wt_dtype_name((enum wt_dtype)dtype);
}

const wl_tensor *wl_batch_tensor(const wl_batch *b, const char *name) {
    if (!b || !name)
        return NULL;
    for (size_t i = 0; i < b->n_tensors; i++)
        if (strcmp(b->tensor[i].name, name) == 0)
            return &b->tensor[i];
    return NULL;
}

size_t wl_batch_tensors(const wl_batch *b) {
    return b->n_tensors;
}

const wl_tensor *wl_batch_tensor_at(const wl_batch *b, size_t i) {
    return i < b->n_tensors ? &b->tensor[i] : NULL;
}

uint64_t wl_batch_size(const wl_batch *b) {
    return b->rows;
}

uint64_t wl_batch_step(const wl_batch *b) {
    return b->step;
}

uint64_t wl_batch_epoch(const wl_batch *b) {
    return b->epoch;
}

int wl_batch_slot(const wl_batch *b) {
    return b->index;
}

const char *wl_batch_key(const wl_batch *b, uint64_t row) {
    return row < b->rows ? b->key[row] : "";
}

const char *wl_batch_wanted_key(const wl_batch *b, uint64_t row) {
    for (size_t i = 0; i < b->n_wanted; i++)
        if (b->wanted[i].row == row)
            return b->wanted[i].key;
    return wl_batch_key(b, row);
}

int wl_batch_use(wl_batch *b, void *stream) {
    (void)stream; /* host memory is ready when wl_next gives it */
    return b ? WL_OK : wt_error_set(wt_error_thread(), WL_ERROR_INVALID, "wl_batch_use: no batch");
}

void wl_batch_release(wl_batch *b, void *stream) {
    (void)stream;
    if (b)
        wt_ring_release(b);
}

int wl_batch_state(const wl_batch *b, void *buf, size_t size, size_t *len) {
    struct wt_err err = {0};
    if (!b || !buf || !len)
        return wt_error_set(wt_error_thread(), WL_ERROR_INVALID,
                            "wl_batch_state: batch, buffer and len are needed");
    pthread_mutex_lock(&b->ring->mutex);
    struct wt_state s = b->ring->base;
    pthread_mutex_unlock(&b->ring->mutex);
    s.epoch = b->epoch;
    s.done = b->done;
    return wt_state_encode(&s, buf, size, len, &err) ? wt_error_from(wt_error_thread(), &err)
                                                     : WL_OK;
}
