/*
 * Elements of any npy file in C order, little-endian; see npy.h.
 *
 * A Fortran array is a transposition between its first dimension (neighbours in the source) and its
 * last one (neighbours in the destination): these two are walked in tiles that fit the cache, the
 * middle ones by an odometer.
 */
#include "core/npy.h"

#include <string.h>

enum { TILE = 32 };

struct plane {                /* two dimensions to transpose */
    uint32_t first, last;     /* sizes of the first and the last dimension */
    uint64_t src_last_stride; /* in elements; the first dimension's is 1 */
    uint64_t dst_first_stride;
};

/* Inlined with a constant size for each element size. */
static inline __attribute__((always_inline)) void
transpose(const struct plane *p, const uint8_t *src, uint8_t *dst, size_t size) {
    for (uint64_t i0 = 0; i0 < p->first; i0 += TILE) {
        uint64_t i1 = i0 + TILE < p->first ? i0 + TILE : p->first;
        for (uint64_t j0 = 0; j0 < p->last; j0 += TILE) {
            uint64_t j1 = j0 + TILE < p->last ? j0 + TILE : p->last;
            for (uint64_t i = i0; i < i1; i++)
                for (uint64_t j = j0; j < j1; j++)
                    memcpy(dst + (i * p->dst_first_stride + j) * size,
                           src + (i + j * p->src_last_stride) * size, size);
        }
    }
}

static void transpose_any(const struct plane *p, const uint8_t *src, uint8_t *dst, size_t size) {
    switch (size) {
    case 1:
        transpose(p, src, dst, 1);
        break;
    case 2:
        transpose(p, src, dst, 2);
        break;
    case 4:
        transpose(p, src, dst, 4);
        break;
    case 8:
        transpose(p, src, dst, 8);
        break;
    default:
        transpose(p, src, dst, 16);
        break;
    }
}

/* Next combination of the middle dimensions; false after the last. */
static bool advance(const struct wt_shape *s, uint32_t at[WT_MAX_NDIM]) {
    for (uint32_t d = s->ndim - 1; d-- > 1;) {
        if (++at[d] < s->dim[d])
            return true;
        at[d] = 0;
    }
    return false;
}

static void from_fortran(const struct wt_shape *s, const uint8_t *src, uint8_t *dst) {
    uint64_t src_stride[WT_MAX_NDIM], dst_stride[WT_MAX_NDIM];
    uint32_t n = s->ndim;
    src_stride[0] = 1;
    dst_stride[n - 1] = 1;
    for (uint32_t d = 1; d < n; d++) {
        src_stride[d] = src_stride[d - 1] * s->dim[d - 1];
        dst_stride[n - 1 - d] = dst_stride[n - d] * s->dim[n - d];
    }
    struct plane plane = {.first = s->dim[0],
                          .last = s->dim[n - 1],
                          .src_last_stride = src_stride[n - 1],
                          .dst_first_stride = dst_stride[0]};
    size_t size = wt_dtype_size(s->dtype);
    uint32_t at[WT_MAX_NDIM] = {0};
    do {
        uint64_t from = 0, to = 0;
        for (uint32_t d = 1; d + 1 < n; d++) {
            from += at[d] * src_stride[d];
            to += at[d] * dst_stride[d];
        }
        transpose_any(&plane, src + from * size, dst + to * size, size);
    } while (advance(s, at));
}

static void swap_bytes(uint8_t *p, uint64_t len, size_t word) {
    for (uint64_t i = 0; i + word <= len; i += word) {
        for (size_t a = 0, b = word - 1; a < b; a++, b--) {
            uint8_t t = p[i + a];
            p[i + a] = p[i + b];
            p[i + b] = t;
        }
    }
}

static size_t word_size(enum wt_dtype dtype) {
    size_t size = wt_dtype_size(dtype);
    return dtype == WT_DTYPE_C64 || dtype == WT_DTYPE_C128 ? size / 2 : size;
}

void wt_npy_normalize(const struct wt_npy *npy, const void *src, void *dst) {
    if (npy->data_len == 0)
        return;
    if (npy->fortran)
        from_fortran(&npy->shape, src, dst);
    else
        memcpy(dst, src, npy->data_len);
    if (npy->big_endian)
        swap_bytes(dst, npy->data_len, word_size(npy->shape.dtype));
}
