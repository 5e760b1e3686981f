/*
 * DLPack 1.x, our own definition of the versioned tensor (dmlc/dlpack, include/dlpack/dlpack.h):
 * the layout is the ABI.
 */
#ifndef WT_LOADER_DLPACK_H
#define WT_LOADER_DLPACK_H

#include <wafertier/loader.h>

#include <stdint.h>

enum { WT_DL_MAJOR = 1, WT_DL_MINOR = 0 };
enum wt_dl_device_type { WT_DL_CPU = 1, WT_DL_CUDA = 2 };
enum wt_dl_code {
    WT_DL_INT = 0,
    WT_DL_UINT = 1,
    WT_DL_FLOAT = 2,
    WT_DL_COMPLEX = 5,
    WT_DL_BOOL = 6
};

struct wt_dl_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides; /* in elements */
    uint64_t byte_offset;
};

struct wt_dl_managed {
    struct {
        uint32_t major, minor;
    } version;
    void *manager_ctx;
    void (*deleter)(struct wt_dl_managed *self);
    uint64_t flags;
    struct wt_dl_tensor tensor;
};

/* Before DLPack 1.0. */
struct wt_dl_unversioned {
    struct wt_dl_tensor tensor;
    void *manager_ctx;
    void (*deleter)(struct wt_dl_unversioned *self);
};

/* Code of a dtype; its bits are 8 * wl_dtype_size. */
enum wt_dl_code wt_dl_code(wl_dtype dtype);

#endif
