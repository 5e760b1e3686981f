/*
 * The npy header and the order of elements; see npy.h.
 *
 * Happy path: magic and version give the header's length; the header is a Python dict literal with
 * exactly descr, fortran_order and shape, read by a small recursive-descent reader that knows
 * strings, booleans and tuples of integers and nothing else. Failures: whatever does not fit is
 * named in the message, with WT_EFORMAT (no npy, unknown version), WT_ECORRUPT (cut or garbled) or
 * WT_EUNSUPPORTED (objects, structures, strings, dates, too many or too large dimensions).
 */
#include "core/npy.h"

#include "core/bytes.h"

#include <stdio.h>
#include <string.h>

struct dtype_row {
    enum wt_dtype dtype;
    size_t size;
    const char *name, *code;
};

static const struct dtype_row dtypes[] = {
#define X(name, value, size, code) {WT_DTYPE_##name, size, #name, code},
    WT_DTYPE_MAP(X)
#undef X
};
enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

static const struct dtype_row *row_of(enum wt_dtype dtype) {
    for (size_t i = 0; i < N_DTYPES; i++)
        if (dtypes[i].dtype == dtype)
            return &dtypes[i];
    return NULL;
}

size_t wt_dtype_size(enum wt_dtype dtype) {
    const struct dtype_row *row = row_of(dtype);
    return row ? row->size : 0;
}

/* The table's names are capitals; the public ones lower case. */
const char *wt_dtype_name(enum wt_dtype dtype) {
    static const char *const names[] = {"none", "bool", "u8",  "i8",  "u16", "i16", "u32", "i32",
                                        "u64",  "i64",  "f16", "f32", "f64", "c64", "c128"};
    return row_of(dtype) ? names[dtype] : names[0];
}

enum wt_dtype wt_dtype_parse(const char *name) {
    for (size_t i = 0; i < N_DTYPES; i++)
        if (strcmp(name, wt_dtype_name(dtypes[i].dtype)) == 0)
            return dtypes[i].dtype;
    return WT_DTYPE_NONE;
}

bool wt_shape_bytes(const struct wt_shape *shape, uint64_t *bytes) {
    const uint64_t limit = UINT64_C(1) << 62;
    uint64_t total = wt_dtype_size(shape->dtype);
    bool empty = false;
    if (total == 0 || shape->ndim > WT_MAX_NDIM)
        return false;
    for (uint32_t i = 0; i < shape->ndim; i++) {
        if (shape->dim[i] == 0)
            empty = true;
        else if (total > limit / shape->dim[i])
            return false;
        else
            total *= shape->dim[i];
    }
    *bytes = empty ? 0 : total;
    return true;
}

bool wt_shape_equal(const struct wt_shape *a, const struct wt_shape *b) {
    if (a->dtype != b->dtype || a->ndim != b->ndim || a->ndim > WT_MAX_NDIM)
        return false;
    for (uint32_t i = 0; i < a->ndim; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

const char *wt_shape_format(const struct wt_shape *shape, char *out, size_t size) {
    char text[128]; /* 8 dimensions of up to 10 digits */
    int n = snprintf(text, sizeof text, "%s[", wt_dtype_name(shape->dtype));
    for (uint32_t i = 0; i < shape->ndim && i < WT_MAX_NDIM; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, i ? ",%u" : "%u", shape->dim[i]);
    snprintf(text + n, sizeof text - (size_t)n, "]");
    snprintf(out, size, "%s", text);
    return out;
}

/* ---- the header ---- */

struct reader { /* the dict's text */
    const char *p, *end;
    struct wt_err *err;
};

static void skip_space(struct reader *r) {
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t' || *r->p == '\r'))
        r->p++;
}

static bool accept(struct reader *r, char c) {
    skip_space(r);
    if (r->p == r->end || *r->p != c)
        return false;
    r->p++;
    return true;
}

static int expect(struct reader *r, char c) {
    if (accept(r, c))
        return 0;
    return wt_err_set(r->err, WT_ECORRUPT, "npy header: '%c' is missing", c);
}

enum { TEXT_MAX = 32 };

/* A quoted string without escapes; longer than TEXT_MAX is nothing that we know. */
static int read_text(struct reader *r, char out[TEXT_MAX]) {
    skip_space(r);
    if (r->p == r->end || (*r->p != '\'' && *r->p != '"'))
        return wt_err_set(r->err, WT_ECORRUPT, "npy header: a string is missing");
    char quote = *r->p++;
    const char *close = memchr(r->p, quote, (size_t)(r->end - r->p));
    if (!close || memchr(r->p, '\\', (size_t)(close - r->p)))
        return wt_err_set(r->err, WT_ECORRUPT, "npy header: a string does not end");
    size_t len = (size_t)(close - r->p);
    if (len >= TEXT_MAX || memchr(r->p, '\0', len))
        return wt_err_set(r->err, WT_EUNSUPPORTED, "npy header: a string of %zu bytes", len);
    memcpy(out, r->p, len);
    out[len] = '\0';
    r->p = close + 1;
    return 0;
}

static bool accept_word(struct reader *r, const char *word) {
    size_t len = strlen(word);
    skip_space(r);
    if ((size_t)(r->end - r->p) < len || memcmp(r->p, word, len) != 0)
        return false;
    r->p += len;
    return true;
}

static int refuse_type(struct reader *r, const char *code) {
    const char *what = "is no numeric type that is known";
    switch (code[0]) {
    case 'O':
        what = "is Python objects (a pickle): refused, nothing in it is executed";
        break;
    case 'S':
    case 'a':
    case 'U':
        what = "is text, not numbers";
        break;
    case 'M':
    case 'm':
        what = "is dates or times, not numbers";
        break;
    case 'V':
        what = "is raw records, not numbers";
        break;
    default:
        break;
    }
    return wt_err_set(r->err, WT_EUNSUPPORTED, "npy: dtype '%.16s' %s", code, what);
}

static int read_descr(struct reader *r, struct wt_npy *npy) {
    char text[TEXT_MAX];
    skip_space(r);
    if (r->p < r->end && *r->p == '[')
        return wt_err_set(r->err, WT_EUNSUPPORTED,
                          "npy: structured dtypes are not read; save each field as an array");
    int rc = read_text(r, text);
    if (rc < 0)
        return rc;
    const char *code = text;
    if (*code == '<' || *code == '>' || *code == '|' || *code == '=')
        code++;
    for (size_t i = 0; i < N_DTYPES; i++) {
        if (strcmp(code, dtypes[i].code) != 0)
            continue;
        npy->shape.dtype = dtypes[i].dtype;
        npy->big_endian = text[0] == '>' && dtypes[i].size > 1;
        return 0;
    }
    return refuse_type(r, code);
}

static int read_bool(struct reader *r, bool *value) {
    if (accept_word(r, "True"))
        *value = true;
    else if (accept_word(r, "False"))
        *value = false;
    else
        return wt_err_set(r->err, WT_ECORRUPT, "npy header: fortran_order is not True or False");
    return 0;
}

static int read_dim(struct reader *r, uint32_t *dim) {
    skip_space(r);
    const char *first = r->p;
    uint64_t value = 0;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++) {
        value = value * 10 + (uint64_t)(*r->p - '0');
        if (value > UINT32_MAX)
            return wt_err_set(r->err, WT_EUNSUPPORTED, "npy: a dimension is 2^32 or more");
    }
    if (r->p == first)
        return wt_err_set(r->err, WT_ECORRUPT,
                          "npy header: the shape has something that is no size");
    if (r->p < r->end && *r->p == 'L') /* Python 2 wrote (10L, 10L) */
        r->p++;
    *dim = (uint32_t)value;
    return 0;
}

static int read_shape(struct reader *r, struct wt_shape *shape) {
    int rc = expect(r, '(');
    shape->ndim = 0;
    bool comma = true;
    while (rc == 0 && !accept(r, ')')) {
        if (!comma)
            return wt_err_set(r->err, WT_ECORRUPT, "npy header: the shape is no tuple of sizes");
        if (shape->ndim == WT_MAX_NDIM)
            return wt_err_set(r->err, WT_EUNSUPPORTED, "npy: more than %d dimensions", WT_MAX_NDIM);
        rc = read_dim(r, &shape->dim[shape->ndim++]);
        if (rc == 0)
            comma = accept(r, ',');
    }
    if (rc == 0 && shape->ndim == 1 && !comma) /* (5) is a number, (5,) a tuple */
        return wt_err_set(r->err, WT_ECORRUPT, "npy header: the shape is no tuple");
    return rc;
}

static int read_member(struct reader *r, struct wt_npy *npy, unsigned *seen) {
    static const char *const names[] = {"descr", "fortran_order", "shape"};
    char key[TEXT_MAX];
    int rc = read_text(r, key);
    if (rc == 0)
        rc = expect(r, ':');
    if (rc < 0)
        return rc;
    unsigned i = 0;
    while (i < 3 && strcmp(key, names[i]) != 0)
        i++;
    if (i == 3 || (*seen & 1u << i))
        return wt_err_set(r->err, WT_ECORRUPT, "npy header: unexpected key '%s'", key);
    *seen |= 1u << i;
    if (i == 0)
        return read_descr(r, npy);
    return i == 1 ? read_bool(r, &npy->fortran) : read_shape(r, &npy->shape);
}

static int read_dict(struct reader *r, struct wt_npy *npy) {
    unsigned seen = 0;
    int rc = expect(r, '{');
    bool comma = true;
    while (rc == 0 && !accept(r, '}')) {
        if (!comma)
            return wt_err_set(r->err, WT_ECORRUPT, "npy header: ',' is missing");
        rc = read_member(r, npy, &seen);
        if (rc == 0)
            comma = accept(r, ',');
    }
    if (rc < 0)
        return rc;
    skip_space(r);
    if (r->p != r->end)
        return wt_err_set(r->err, WT_ECORRUPT, "npy header: something follows the dict");
    if (seen != 7)
        return wt_err_set(r->err, WT_ECORRUPT,
                          "npy header: descr, fortran_order or shape is missing");
    return 0;
}

/* Finds the dict's text by the version. */
static int frame_header(const uint8_t *data, size_t len, size_t *start, size_t *dict_len,
                        struct wt_err *err) {
    if (len < 6 || memcmp(data, "\x93NUMPY", 6) != 0)
        return wt_err_set(err, WT_EFORMAT, "no npy file (the magic bytes are missing)");
    if (len < 12)
        return wt_err_set(err, WT_ECORRUPT, "npy file is cut in its header");
    if (data[6] < 1 || data[6] > 3 || data[7] != 0)
        return wt_err_set(err, WT_EFORMAT, "npy version %u.%u is not known (1.0, 2.0, 3.0 are)",
                          data[6], data[7]);
    *start = data[6] == 1 ? 10 : 12;
    *dict_len = data[6] == 1 ? wt_get16(data + 8) : wt_get32(data + 8);
    if (*dict_len > WT_NPY_HEADER_MAX)
        return wt_err_set(err, WT_EUNSUPPORTED, "npy header of %zu bytes, the limit is %d",
                          *dict_len, WT_NPY_HEADER_MAX);
    if (*dict_len > len - *start)
        return wt_err_set(err, WT_ECORRUPT, "npy file is cut in its header");
    return 0;
}

int wt_npy_parse(const void *data, size_t len, struct wt_npy *npy, struct wt_err *err) {
    size_t start = 0, dict_len = 0;
    int rc = frame_header(data, len, &start, &dict_len, err);
    if (rc < 0)
        return rc;
    const char *text = (const char *)data + start;
    struct reader r = {.p = text, .end = text + dict_len, .err = err};
    struct wt_npy out = {.data_off = start + dict_len};
    rc = read_dict(&r, &out);
    if (rc < 0)
        return rc;
    if (!wt_shape_bytes(&out.shape, &out.data_len))
        return wt_err_set(err, WT_ECORRUPT, "npy: the shape's size overflows");
    if (out.shape.ndim < 2)
        out.fortran = false; /* both orders are the same */
    *npy = out;
    return 0;
}

size_t wt_npy_write(const struct wt_shape *shape, char out[WT_NPY_WRITE_MAX]) {
    const struct dtype_row *row = row_of(shape->dtype);
    char dims[WT_MAX_NDIM * 12 + 1] = "";
    int n = 0;
    for (uint32_t i = 0; i < shape->ndim; i++)
        n += snprintf(dims + n, sizeof dims - (size_t)n, i ? ", %u" : "%u", shape->dim[i]);
    n = snprintf(out + 10, WT_NPY_WRITE_MAX - 10,
                 "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s%s), }",
                 row->size == 1 ? '|' : '<', row->code, dims, shape->ndim == 1 ? "," : "");
    size_t used = 10 + (size_t)n;
    size_t total = (used + 1 + 63) / 64 * 64;
    memset(out + used, ' ', total - used);
    out[total - 1] = '\n';
    memcpy(out, "\x93NUMPY\x01", 7);
    out[7] = '\0';
    wt_put16(out + 8, (uint16_t)(total - 10));
    return total;
}
