/* Labels out of an npz array; see npz_labels.h. */
#include "tools/ingest/npz_labels.h"

#include "core/bytes.h"
#include "core/mem.h"
#include "core/shard.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define LABELS_MAX (UINT64_C(4) << 30) /* bytes of the array */

static double float_at(enum wt_dtype dtype, const uint8_t *p) {
    if (dtype == WT_DTYPE_F32) {
        float f;
        memcpy(&f, p, sizeof f);
        return (double)f;
    }
    double d;
    memcpy(&d, p, sizeof d);
    return d;
}

/* Element i as a whole number; false when it is none. */
static bool whole_at(enum wt_dtype dtype, const uint8_t *data, uint64_t i, int64_t *value) {
    const uint8_t *p = data + i * wt_dtype_size(dtype);
    double d;
    switch (dtype) {
    case WT_DTYPE_BOOL:
    case WT_DTYPE_U8:
        *value = *p;
        return true;
    case WT_DTYPE_I8:
        *value = (int8_t)*p;
        return true;
    case WT_DTYPE_U16:
        *value = wt_get16(p);
        return true;
    case WT_DTYPE_I16:
        *value = (int16_t)wt_get16(p);
        return true;
    case WT_DTYPE_U32:
        *value = wt_get32(p);
        return true;
    case WT_DTYPE_I32:
        *value = (int32_t)wt_get32(p);
        return true;
    case WT_DTYPE_U64:
    case WT_DTYPE_I64:
        *value = (int64_t)wt_get64(p); /* beyond 2^63 becomes negative, which no class is */
        return *value >= 0 || dtype == WT_DTYPE_I64;
    case WT_DTYPE_F32:
    case WT_DTYPE_F64:
        d = float_at(dtype, p);
        if (!(d == floor(d)) || fabs(d) > 1e9)
            return false;
        *value = (int64_t)d;
        return true;
    default:
        return false;
    }
}

static int take_classes(struct wt_npz_labels *l, enum wt_dtype dtype, const uint8_t *data,
                        struct wt_err *err) {
    l->cls = wt_calloc(l->rows, sizeof *l->cls);
    if (!l->cls)
        return wt_err_set(err, WT_ENOMEM, "no memory for %" PRIu64 " labels", l->rows);
    for (uint64_t i = 0; i < l->rows; i++) {
        int64_t v;
        if (!whole_at(dtype, data, i, &v) || v < -1 || v >= WT_MAX_CLASSES)
            return wt_err_set(err, WT_ERANGE,
                              "the label of row %" PRIu64
                              " is no class (whole numbers from 0 to %d, -1 for unlabelled)",
                              i, WT_MAX_CLASSES - 1);
        l->cls[i] = v < 0 ? WT_UNLABELLED : (int32_t)v;
    }
    l->kind = WT_LABEL_CLASS;
    return 0;
}

static int take_multihot(struct wt_npz_labels *l, enum wt_dtype dtype, const uint8_t *data,
                         uint32_t columns, struct wt_err *err) {
    uint64_t n = l->rows * columns;
    l->multihot = wt_calloc(n, 1);
    if (!l->multihot)
        return wt_err_set(err, WT_ENOMEM, "no memory for %" PRIu64 " labels", n);
    for (uint64_t i = 0; i < n; i++) {
        int64_t v;
        if (!whole_at(dtype, data, i, &v) || v < 0 || v > 1)
            return wt_err_set(err, WT_ERANGE,
                              "row %" PRIu64 " column %" PRIu64
                              " of multi-hot labels is neither 0 nor 1",
                              i / columns, i % columns);
        l->multihot[i] = (uint8_t)v;
    }
    l->n_multihot = columns;
    l->kind = WT_LABEL_MULTIHOT;
    return 0;
}

static int check_array(const struct wt_npy *npy, uint64_t rows, struct wt_err *err) {
    char text[128];
    wt_shape_format(&npy->shape, text, sizeof text);
    if (npy->shape.ndim < 1 || npy->shape.ndim > 2 || npy->shape.dim[0] != rows)
        return wt_err_set(err, WT_EFORMAT,
                          "labels are %s, but for %" PRIu64
                          " images they have to be [N] or [N, classes]",
                          text, rows);
    if (npy->shape.ndim == 2 && (npy->shape.dim[1] == 0 || npy->shape.dim[1] > WT_MAX_CLASSES))
        return wt_err_set(err, WT_ERANGE, "labels are %s: 1 to %d classes can be had", text,
                          WT_MAX_CLASSES);
    if (npy->shape.dtype == WT_DTYPE_C64 || npy->shape.dtype == WT_DTYPE_C128 ||
        npy->shape.dtype == WT_DTYPE_F16)
        return wt_err_set(err, WT_EUNSUPPORTED, "labels are %s; integers are wanted", text);
    if (npy->data_len > LABELS_MAX)
        return wt_err_set(err, WT_ERANGE, "labels are %s: too many", text);
    return 0;
}

int wt_npz_labels_load(struct wt_npz_labels *labels, struct wt_zip_stream *stream,
                       const struct wt_npy *npy, uint64_t rows, struct wt_err *err) {
    int rc = check_array(npy, rows, err);
    if (rc < 0)
        return rc;
    size_t len = (size_t)npy->data_len;
    uint8_t *raw = malloc(len + 1), *data = malloc(len + 1);
    if (!raw || !data)
        rc = wt_err_set(err, WT_ENOMEM, "no memory for labels");
    if (rc == 0)
        rc = wt_zip_stream_read(stream, raw, len, err);
    struct wt_npz_labels l = {.rows = rows};
    if (rc == 0) {
        wt_npy_normalize(npy, raw, data);
        bool multihot = npy->shape.ndim == 2 && npy->shape.dim[1] > 1;
        rc = multihot ? take_multihot(&l, npy->shape.dtype, data, npy->shape.dim[1], err)
                      : take_classes(&l, npy->shape.dtype, data, err);
    }
    free(raw);
    free(data);
    if (rc < 0)
        wt_npz_labels_free(&l);
    else
        *labels = l;
    return rc;
}

void wt_npz_labels_get(const struct wt_npz_labels *labels, uint64_t row, int32_t *cls,
                       const uint8_t **multihot) {
    *cls = labels->cls && row < labels->rows ? labels->cls[row] : WT_UNLABELLED;
    *multihot =
        labels->multihot && row < labels->rows ? labels->multihot + row * labels->n_multihot : NULL;
}

void wt_npz_labels_free(struct wt_npz_labels *labels) {
    free(labels->cls);
    free(labels->multihot);
    *labels = (struct wt_npz_labels){0};
}
