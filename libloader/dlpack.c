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
    union {
        struct wt_dl_managed managed;
        struct wt_dl_unversioned unversioned;
    };
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

static void give_back(struct handed *h) {
    wt_ring_release(h->batch);
    free(h);
}

static void handed_delete(struct wt_dl_managed *self) {
    if (self)
        give_back(self->manager_ctx);
}

static void unversioned_delete(struct wt_dl_unversioned *self) {
    if (self)
        give_back(self->manager_ctx);
}

static struct wt_dl_tensor describe(struct handed *h, const wl_tensor *t) {
    memcpy(h->shape, t->shape, (size_t)t->ndim * sizeof t->shape[0]);
    memcpy(h->strides, t->stride, (size_t)t->ndim * sizeof t->stride[0]);
    return (struct wt_dl_tensor){
        .data = t->data,
        .device = {t->device < 0 ? WT_DL_CPU : WT_DL_CUDA, t->device < 0 ? 0 : t->device},
        .ndim = t->ndim,
        .dtype = {(uint8_t)wt_dl_code(t->dtype), (uint8_t)(8 * wl_dtype_size(t->dtype)), 1},
        .shape = h->shape,
        .strides = h->strides};
}

/* A reference on the batch, and its tensor's shape beside it; NULL with the thread's error. */
static struct handed *hand_on(wl_batch *b, const char *name, struct wt_dl_tensor *tensor) {
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
    *tensor = describe(h, t);
    pthread_mutex_lock(&b->ring->mutex);
    wt_ring_hold(b);
    pthread_mutex_unlock(&b->ring->mutex);
    return h;
}

void *wl_batch_dlpack(wl_batch *b, const char *name, void *stream) {
    (void)stream;
    struct wt_dl_tensor tensor;
    struct handed *h = hand_on(b, name, &tensor);
    if (!h)
        return NULL;
    h->managed = (struct wt_dl_managed){.version = {WT_DL_MAJOR, WT_DL_MINOR},
                                        .manager_ctx = h,
                                        .deleter = handed_delete,
                                        .tensor = tensor};
    return &h->managed;
}

void *wl_batch_dlpack_unversioned(wl_batch *b, const char *name, void *stream) {
    (void)stream;
    struct wt_dl_tensor tensor;
    struct handed *h = hand_on(b, name, &tensor);
    if (!h)
        return NULL;
    h->unversioned = (struct wt_dl_unversioned){
        .tensor = tensor, .manager_ctx = h, .deleter = unversioned_delete};
    return &h->unversioned;
}
