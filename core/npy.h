/*
 * The npy array format, header only: numpy/lib/format.py describes it (versions 1.0, 2.0, 3.0).
 *
 * An npy file is a header that says dtype, order and shape, then the raw elements. Object arrays
 * (pickles) are refused: nothing is ever executed.
 */
#ifndef WT_CORE_NPY_H
#define WT_CORE_NPY_H

#include "core/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WT_MAX_NDIM = 8 };

/* Values are stored in shards and are part of the public API (wl_dtype): never renumber.
 * name, value, size in bytes, npy code without byte order */
#define WT_DTYPE_MAP(X)                                                                            \
    X(BOOL, 1, 1, "b1")                                                                            \
    X(U8, 2, 1, "u1")                                                                              \
    X(I8, 3, 1, "i1")                                                                              \
    X(U16, 4, 2, "u2")                                                                             \
    X(I16, 5, 2, "i2")                                                                             \
    X(U32, 6, 4, "u4")                                                                             \
    X(I32, 7, 4, "i4")                                                                             \
    X(U64, 8, 8, "u8")                                                                             \
    X(I64, 9, 8, "i8")                                                                             \
    X(F16, 10, 2, "f2")                                                                            \
    X(F32, 11, 4, "f4")                                                                            \
    X(F64, 12, 8, "f8")                                                                            \
    X(C64, 13, 8, "c8")                                                                            \
    X(C128, 14, 16, "c16")

enum wt_dtype {
    WT_DTYPE_NONE = 0,
#define X(name, value, size, code) WT_DTYPE_##name = (value),
    WT_DTYPE_MAP(X)
#undef X
};

struct wt_shape { /* C order: the last dimension is the fastest */
    enum wt_dtype dtype;
    uint32_t ndim; /* 0: a scalar, one element */
    uint32_t dim[WT_MAX_NDIM];
};

size_t wt_dtype_size(enum wt_dtype dtype);      /* 0 for none */
const char *wt_dtype_name(enum wt_dtype dtype); /* "u8", "f32": lower case of the name above */
enum wt_dtype wt_dtype_parse(const char *name); /* NONE when unknown */
/* Bytes of a tensor; false when that overflows 2^62. */
bool wt_shape_bytes(const struct wt_shape *shape, uint64_t *bytes);
bool wt_shape_equal(const struct wt_shape *a, const struct wt_shape *b);
/* "u8[52,52]". */
const char *wt_shape_format(const struct wt_shape *shape, char *out, size_t size);

struct wt_npy {
    struct wt_shape shape; /* as the file says it (before any reordering) */
    bool fortran;
    bool big_endian;
    size_t data_off; /* where the elements begin */
    uint64_t data_len;
};

enum { WT_NPY_HEADER_MAX = 65536 };

/* Reads the header at the start of [data, data+len). `len` may be less than the file as long as it
 * holds the header; that the elements are there is checked by the caller against data_off +
 * data_len. Errors (WT_EFORMAT, WT_ECORRUPT, WT_EUNSUPPORTED for objects, structured types,
 * strings, dates, ndim > 8, dimensions >= 2^32) say which part is wrong. */
int wt_npy_parse(const void *data, size_t len, struct wt_npy *npy, struct wt_err *err);

/* Copies the elements of a parsed file into C order, little-endian. src: data_len bytes; dst: the
 * same size. */
void wt_npy_normalize(const struct wt_npy *npy, const void *src, void *dst);

/* Writes a version 1.0 header for a C-order little-endian array; returns its length (a multiple of
 * 64). */
enum { WT_NPY_WRITE_MAX = 256 };
size_t wt_npy_write(const struct wt_shape *shape, char out[WT_NPY_WRITE_MAX]);

#endif
