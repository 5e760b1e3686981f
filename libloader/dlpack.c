/*
 * A tensor of a held batch, handed on: it takes a reference on the slot, its deleter gives it back.
 * The deleter may run on any thread and after wl_close, because the ring counts references. Fails
 * (NULL) without memory, or when the batch has no such tensor.
 */
#include "libloader/dlpack.h"

#include "core/mem.h"
#include "libloader/errors.h"
#include "libloader/ring.h"

#include <stdlib.h>
#include <string.h>

struct handed {
    struct wt_dl_managed managed; /* first: the deleter gets its address */
    struct wl_batch *batch;
    int64_t shape[WL_MAX_NDIM + 1], strides[WL_MAX_NDIM + 1];
};

enum wt_dl_code wt_dl_code(wl_dtype dtype) {
    switch (dtype) {
    case WL_BOOL:
        return WT_DL_BOOL;
    case WL_U8:
    case WL_U16:
    case WL_U32:
    case WL_U64:
        return WT_DL_UINT;
    case WL_I8:
    case WL_I16:
    case WL_I32:
    case WL_I64:
        return WT_DL_INT;
    case WL_F16:
    case WL_F32:
    case WL_F64:
        return WT_DL_FLOAT;
    case WL_C64:
    case WL_C128:
        return WT_DL_COMPLEX;
    }
    return WT_DL_UINT;
}

static void handed_delete(struct wt_dl_managed *self) {
    if (!self)
        return;
    struct handed *h = self->manager_ctx;
    wt_ring_release(h->batch);
    free(h);
}

void *wl_batch_dlpack(wl_batch *b, const char *name, void *stream) {
    (void)stream;
    const wl_tensor *t = b && name ? wl_batch_tensor(b, name) : NULL;
    if (!t) {
        wt_error_set(wt_error_thread(), WL_ERROR_INVALID, "the batch has no tensor '%s'",
                     name ? name : "(NULL)");
        return NULL;
    }
    struct handed *h = wt_calloc(1, sizeof *h);
    if (!h) {
        wt_error_set(wt_error_thread(), WL_ERROR_MEMORY, "out of memory for a DLPack tensor");
        return NULL;
    }
    h->batch = b;
    memcpy(h->shape, t->shape, (size_t)t->ndim * sizeof t->shape[0]);
    memcpy(h->strides, t->stride, (size_t)t->ndim * sizeof t->stride[0]);
    h->managed = (struct wt_dl_managed){
        .version = {WT_DL_MAJOR, WT_DL_MINOR},
        .manager_ctx = h,
        .deleter = handed_delete,
        .tensor = {.data = t->data,
                   .device = {t->device < 0 ? WT_DL_CPU : WT_DL_CUDA,
                              t->device < 0 ? 0 : t->device},
                   .ndim = t->ndim,
                   .dtype = {(uint8_t)wt_dl_code(t->dtype), (uint8_t)(8 * wl_dtype_size(t->dtype)),
                             1},
                   .shape = h->shape,
                   .strides = h->strides},
    };
    pthread_mutex_lock(&b->ring->mutex);
    wt_ring_hold(b);
    pthread_mutex_unlock(&b->ring->mutex);
    return &h->managed;
}
