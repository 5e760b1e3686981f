/* Fuzz: npy headers. What is accepted has a bounded size; its elements put in order are stable; our
 * own header for the shape reads back. */
#include "core/npy.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { ELEMENTS_MAX = 64 << 10 };

static void put_in_order(const struct wt_npy *npy, const uint8_t *data, size_t size) {
    size_t len = (size_t)npy->data_len, have = size - npy->data_off;
    uint8_t *src = fuzz_alloc(len), *dst = fuzz_alloc(len), *again = fuzz_alloc(len);
    memcpy(src, data + npy->data_off, have < len ? have : len);
    wt_npy_normalize(npy, src, dst);
    struct wt_npy plain = *npy;
    plain.fortran = plain.big_endian = false;
    wt_npy_normalize(&plain, dst, again);
    FUZZ_CHECK(memcmp(dst, again, len) == 0);
    if (!npy->fortran && !npy->big_endian)
        FUZZ_CHECK(memcmp(src, dst, len) == 0);
    free(src);
    free(dst);
    free(again);
}

static void write_back(const struct wt_npy *npy) {
    char head[WT_NPY_WRITE_MAX], text[128];
    size_t len = wt_npy_write(&npy->shape, head);
    FUZZ_CHECK(len <= sizeof head && len % 64 == 0);
    struct wt_npy back;
    char *exact = fuzz_copy(head, len);
    FUZZ_CHECK(wt_npy_parse(exact, len, &back, NULL) == 0);
    FUZZ_CHECK(wt_shape_equal(&back.shape, &npy->shape) && back.data_off == len &&
               back.data_len == npy->data_len);
    FUZZ_CHECK(!back.fortran && !back.big_endian);
    FUZZ_CHECK(wt_shape_format(&back.shape, text, sizeof text) == text && text[0]);
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct wt_npy npy;
    struct wt_err err = {0};
    int rc = wt_npy_parse(data, size, &npy, &err);
    if (rc < 0) {
        FUZZ_CHECK(rc == err.code && err.text[0]);
        return 0;
    }
    uint64_t bytes;
    FUZZ_CHECK(npy.data_off <= size && npy.data_off <= WT_NPY_HEADER_MAX);
    FUZZ_CHECK(wt_shape_bytes(&npy.shape, &bytes) && bytes == npy.data_len);
    if (npy.data_len <= ELEMENTS_MAX)
        put_in_order(&npy, data, size);
    write_back(&npy);
    return 0;
}
