/*
 * The npy reader: versions, orders, byte orders, everything that must be refused. Cross-checks
 * against numpy itself run where /usr/bin/python3 has it, and say so where it does not.
 */
#include "core/bytes.h"
#include "core/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A header of the given version around a dict's text; returns its length. */
static size_t make_header(uint8_t *out, int version, const char *dict) {
    size_t len = strlen(dict), start = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[7] = 0;
    if (version == 1)
        wt_put16(out + 8, (uint16_t)len);
    else
        wt_put32(out + 8, (uint32_t)len);
    memcpy(out + start, dict, len);
    return start + len;
}

static int parse(const char *dict, struct wt_npy *npy, struct wt_err *err) {
    uint8_t file[4096];
    return wt_npy_parse(file, make_header(file, 1, dict), npy, err);
}

static void every_version_and_spelling(void **state) {
    (void)state;
    static const char *const dicts[] = {
        "{'descr': '<u2', 'fortran_order': False, 'shape': (3, 4), }      \n",
        "{\"shape\":(3,4),\"descr\":\"<u2\",\"fortran_order\":False}",
        " { 'fortran_order' : False , 'shape' : ( 3L, 4L ) , 'descr' : '=u2' }\n",
    };
    for (int version = 1; version <= 3; version++) {
        for (size_t i = 0; i < sizeof dicts / sizeof dicts[0]; i++) {
            uint8_t file[256];
            struct wt_npy npy;
            struct wt_err err = {0};
            size_t len = make_header(file, version, dicts[i]);
            assert_int_equal(wt_npy_parse(file, len, &npy, &err), 0);
            assert_int_equal(npy.shape.dtype, WT_DTYPE_U16);
            assert_int_equal(npy.shape.ndim, 2);
            assert_int_equal(npy.shape.dim[0], 3);
            assert_int_equal(npy.shape.dim[1], 4);
            assert_false(npy.fortran || npy.big_endian);
            assert_int_equal(npy.data_off, len);
            assert_int_equal(npy.data_len, 24);
        }
    }
}

static void every_dtype(void **state) {
    (void)state;
    static const struct {
        const char *code;
        enum wt_dtype dtype;
    } rows[] = {{"|b1", WT_DTYPE_BOOL}, {"|u1", WT_DTYPE_U8},   {"|i1", WT_DTYPE_I8},
                {"<u2", WT_DTYPE_U16},  {"<i2", WT_DTYPE_I16},  {"<u4", WT_DTYPE_U32},
                {"<i4", WT_DTYPE_I32},  {"<u8", WT_DTYPE_U64},  {"<i8", WT_DTYPE_I64},
                {"<f2", WT_DTYPE_F16},  {"<f4", WT_DTYPE_F32},  {"<f8", WT_DTYPE_F64},
                {"<c8", WT_DTYPE_C64},  {"<c16", WT_DTYPE_C128}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char dict[128];
        struct wt_npy npy;
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (), }",
                 rows[i].code);
        assert_int_equal(parse(dict, &npy, NULL), 0);
        assert_int_equal(npy.shape.dtype, rows[i].dtype);
        assert_int_equal(npy.data_len, wt_dtype_size(rows[i].dtype));
        assert_int_equal(wt_dtype_parse(wt_dtype_name(rows[i].dtype)), rows[i].dtype);
    }
    assert_int_equal(wt_dtype_parse("float"), WT_DTYPE_NONE);
    assert_int_equal(wt_dtype_size(WT_DTYPE_NONE), 0);
}

struct refused {
    const char *dict;
    int code;
    const char *part; /* what the message must say */
};

#define HEAD "'fortran_order': False, 'shape': (2,), "

static void bad_headers_are_refused(void **state) {
    (void)state;
    static const struct refused rows[] = {
        {"{'descr': '|O', " HEAD "}", WT_EUNSUPPORTED, "pickle"},
        {"{'descr': '<U5', " HEAD "}", WT_EUNSUPPORTED, "text"},
        {"{'descr': '|S5', " HEAD "}", WT_EUNSUPPORTED, "text"},
        {"{'descr': '<M8[ns]', " HEAD "}", WT_EUNSUPPORTED, "dates"},
        {"{'descr': '|V8', " HEAD "}", WT_EUNSUPPORTED, "raw"},
        {"{'descr': '<f16', " HEAD "}", WT_EUNSUPPORTED, "f16"},
        {"{'descr': [('a', '<u1')], " HEAD "}", WT_EUNSUPPORTED, "structured"},
        {"{'descr': '<u1', 'fortran_order': 0, 'shape': (2,)}", WT_ECORRUPT, "fortran_order"},
        {"{'descr': '<u1', 'fortran_order': False, 'shape': 2}", WT_ECORRUPT, "("},
        {"{'descr': '<u1', 'fortran_order': False, 'shape': (2)}", WT_ECORRUPT, "tuple"},
        {"{'descr': '<u1', 'fortran_order': False, 'shape': (2 3)}", WT_ECORRUPT, "tuple"},
        {"{'descr': '<u1', 'fortran_order': False, 'shape': (-2,)}", WT_ECORRUPT, "no size"},
        {"{'descr': '<u1', 'fortran_order': False, 'shape': (2.0,)}", WT_ECORRUPT, "tuple"},
        {"{'descr': '<u1', 'fortran_order': False, 'shape': (2,", WT_ECORRUPT, "shape"},
        {"{'descr': '<u1', 'fortran_order': False, 'shape': (4294967296,)}", WT_EUNSUPPORTED,
         "2^32"},
        {"{'descr': '<u1', 'fortran_order': False, 'shape': (99999999999999999999999,)}",
         WT_EUNSUPPORTED, "2^32"},
        {"{'descr': '<u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", WT_EUNSUPPORTED,
         "dimensions"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000,4000000000)}", WT_ECORRUPT,
         "overflow"},
        {"{'descr': '<u1', 'fortran_order': False}", WT_ECORRUPT, "missing"},
        {"{'descr': '<u1', 'descr': '<u1', " HEAD "}", WT_ECORRUPT, "descr"},
        {"{'descr': '<u1', " HEAD "'x': 1}", WT_ECORRUPT, "'x'"},
        {"{'descr': '<u1', " HEAD "} + __import__('os').system('true')", WT_ECORRUPT, "follows"},
        {"{'descr': '<u\\x31', " HEAD "}", WT_ECORRUPT, "string"},
        {"{'descr': '<u1" HEAD "}", WT_ECORRUPT, ""},
        {"", WT_ECORRUPT, "cut"},
        {"  ", WT_ECORRUPT, "{"},
        {"{ ", WT_ECORRUPT, "string"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wt_npy npy = {.data_off = 77};
        struct wt_err err = {0};
        int rc = parse(rows[i].dict, &npy, &err);
        if (rc != rows[i].code || !strstr(err.text, rows[i].part))
            fail_msg("%s: %s '%s'", rows[i].dict, wt_err_name(rc), err.text);
        assert_int_equal(npy.data_off, 77);
    }
}

static void bad_magic_version_and_length(void **state) {
    (void)state;
    uint8_t file[256];
    struct wt_npy npy;
    size_t len = make_header(file, 1, "{'descr': '<u1', " HEAD "}\n");
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t *copy = malloc(cut ? cut : 1); /* so that a sanitizer sees reads behind it */
        assert_non_null(copy);
        memcpy(copy, file, cut);
        assert_int_equal(wt_npy_parse(copy, cut, &npy, NULL), cut < 6 ? WT_EFORMAT : WT_ECORRUPT);
        free(copy);
    }
    file[6] = 4;
    assert_int_equal(wt_npy_parse(file, len, &npy, NULL), WT_EFORMAT);
    file[6] = 2;
    wt_put32(file + 8, 0xffffffff);
    assert_int_equal(wt_npy_parse(file, len, &npy, NULL), WT_EUNSUPPORTED);
    file[0] = 'P';
    assert_int_equal(wt_npy_parse(file, len, &npy, NULL), WT_EFORMAT);
}

static void every_garbled_byte_is_survived(void **state) {
    (void)state;
    uint8_t file[256];
    size_t len =
        make_header(file, 1, "{'descr': '<u2', 'fortran_order': True, 'shape': (3, 4), }\n");
    for (size_t i = 0; i < len; i++) {
        for (int v = 0; v < 256; v++) {
            uint8_t *copy = malloc(len);
            struct wt_npy npy;
            assert_non_null(copy);
            memcpy(copy, file, len);
            copy[i] = (uint8_t)v;
            int rc = wt_npy_parse(copy, len, &npy, NULL);
            assert_true(rc <= 0);
            if (rc == 0)
                assert_true(npy.data_off <= len && npy.shape.ndim <= WT_MAX_NDIM);
            free(copy);
        }
    }
}

static void written_headers_read_back(void **state) {
    (void)state;
    struct wt_shape shapes[] = {
        {WT_DTYPE_U8, 2, {52, 52}},   {WT_DTYPE_C128, 8, {UINT32_MAX, 1, 1, 1, 1, 1, 1, 9}},
        {WT_DTYPE_F32, 0, {0}},       {WT_DTYPE_BOOL, 1, {7}},
        {WT_DTYPE_I64, 3, {0, 5, 6}},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char out[WT_NPY_WRITE_MAX];
        struct wt_npy npy;
        struct wt_err err = {0};
        size_t len = wt_npy_write(&shapes[i], out);
        assert_int_equal(len % 64, 0);
        assert_int_equal(out[len - 1], '\n');
        assert_int_equal(wt_npy_parse(out, len, &npy, &err), 0);
        assert_true(wt_shape_equal(&npy.shape, &shapes[i]));
        assert_int_equal(npy.data_off, len);
    }
}

static void shapes_have_bytes_and_text(void **state) {
    (void)state;
    char text[64];
    uint64_t bytes = 0;
    struct wt_shape s = {WT_DTYPE_U16, 3, {2, 3, 4}};
    assert_true(wt_shape_bytes(&s, &bytes));
    assert_int_equal(bytes, 48);
    assert_string_equal(wt_shape_format(&s, text, sizeof text), "u16[2,3,4]");
    assert_string_equal(wt_shape_format(&s, text, 6), "u16[2");
    struct wt_shape huge = {WT_DTYPE_F64, 3, {UINT32_MAX, UINT32_MAX, 2}};
    assert_false(wt_shape_bytes(&huge, &bytes));
    struct wt_shape none = {WT_DTYPE_NONE, 1, {2}};
    assert_false(wt_shape_bytes(&none, &bytes));
    struct wt_shape deep = {WT_DTYPE_U8, 9, {1}};
    assert_false(wt_shape_bytes(&deep, &bytes));
    struct wt_shape other = s;
    other.dim[2] = 5;
    assert_false(wt_shape_equal(&s, &other));
}

/* The definition: dst[i0, i1, ...] = src at i0 + d0 * (i1 + d1 * (i2 ...)), each word reversed. */
static void fortran_and_big_endian(void **state) {
    (void)state;
    struct wt_npy npy = {
        .shape = {WT_DTYPE_U32, 3, {37, 5, 41}}, .fortran = true, .big_endian = true};
    enum { N = 37 * 5 * 41 };
    static uint32_t src[N], dst[N];
    npy.data_len = sizeof src;
    for (uint32_t i = 0; i < N; i++)
        src[i] = __builtin_bswap32(i * 2654435761u);
    wt_npy_normalize(&npy, src, dst);
    for (uint32_t a = 0; a < 37; a++)
        for (uint32_t b = 0; b < 5; b++)
            for (uint32_t c = 0; c < 41; c++)
                assert_int_equal(dst[(a * 5 + b) * 41 + c], (a + 37 * (b + 5 * c)) * 2654435761u);
}

static void complex_swaps_each_half(void **state) {
    (void)state;
    uint8_t src[8] = {1, 2, 3, 4, 5, 6, 7, 8}, dst[8];
    struct wt_npy npy = {.shape = {WT_DTYPE_C64, 1, {1}}, .big_endian = true, .data_len = 8};
    wt_npy_normalize(&npy, src, dst);
    assert_memory_equal(dst, "\4\3\2\1\10\7\6\5", 8);
}

/* ---- numpy itself ---- */

static bool have_numpy(void) {
    return access("/usr/bin/python3", X_OK) == 0 &&
           system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") == 0;
}

static uint8_t *read_file(const char *path, size_t *len) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    uint8_t *data = malloc(1 << 20);
    *len = data ? fread(data, 1, 1 << 20, f) : 0;
    fclose(f);
    return data;
}

static const char make_arrays[] =
    "import numpy as np, sys, os\n"
    "d = sys.argv[1]; n = 0\n"
    "def put(a, version):\n"
    "    global n\n"
    "    with open(f'{d}/{n}.npy', 'wb') as f: np.lib.format.write_array(f, a, version=version)\n"
    "    c = np.ascontiguousarray(a); c = c.astype(c.dtype.newbyteorder('<')).reshape(a.shape)\n"
    "    with open(f'{d}/{n}.raw', 'wb') as f: f.write(c.tobytes('C'))\n"
    "    n += 1\n"
    "rng = np.random.default_rng(1)\n"
    "for code in 'b1 u1 i1 u2 i2 u4 i4 u8 i8 f2 f4 f8 c8 c16'.split():\n"
    "    for shape in [(), (7,), (33, 65), (3, 4, 5, 6), (2, 0, 3)]:\n"
    "        for order in 'CF':\n"
    "            for end in '<>':\n"
    "                a = rng.integers(0, 100, shape) * 1\n"
    "                a = np.asarray(a).astype(np.dtype(end + code))\n"
    "                put(np.asarray(a, order=order), [(1, 0), (2, 0), (3, 0)][n % 3])\n"
    "np.save(f'{d}/object.npy', np.array([{}, 1], dtype=object), allow_pickle=True)\n";

static void check_file(const char *folder, int i) {
    char path[300];
    size_t len = 0, raw_len = 0;
    struct wt_npy npy;
    struct wt_err err = {0};
    snprintf(path, sizeof path, "%s/%d.npy", folder, i);
    uint8_t *file = read_file(path, &len);
    snprintf(path, sizeof path, "%s/%d.raw", folder, i);
    uint8_t *raw = read_file(path, &raw_len);
    assert_true(file && raw);
    if (wt_npy_parse(file, len, &npy, &err) < 0)
        fail_msg("%s: %s", path, err.text);
    assert_int_equal(npy.data_len, raw_len);
    assert_int_equal(npy.data_off + npy.data_len, len);
    uint8_t *out = malloc(raw_len + 1);
    assert_non_null(out);
    wt_npy_normalize(&npy, file + npy.data_off, out);
    assert_memory_equal(out, raw, raw_len);
    free(out);
    free(file);
    free(raw);
}

static void numpy_agrees(void **state) {
    (void)state;
    if (!have_numpy()) {
        print_message("SKIPPED: /usr/bin/python3 with numpy is not there\n");
        skip();
    }
    const char *tmp = getenv("TMPDIR");
    char folder[200], script[260], command[800];
    snprintf(folder, sizeof folder, "%s/wt-npy-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(script, sizeof script, "%s/make.py", folder);
    FILE *f = fopen(script, "w");
    assert_non_null(f);
    fputs(make_arrays, f);
    fclose(f);
    snprintf(command, sizeof command, "/usr/bin/python3 '%s' '%s'", script, folder);
    assert_int_equal(system(command), 0);
    for (int i = 0; i < 14 * 5 * 2 * 2; i++)
        check_file(folder, i);
    size_t len = 0;
    struct wt_npy npy;
    snprintf(script, sizeof script, "%s/object.npy", folder);
    uint8_t *object = read_file(script, &len);
    assert_int_equal(wt_npy_parse(object, len, &npy, NULL), WT_EUNSUPPORTED);
    free(object);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* Pickles as real programs wrote them; the folder holds files that never enter the repository. */
static void real_object_arrays_are_refused(void **state) {
    (void)state;
    const char *root = getenv("WAFERTIER_REAL_DATA");
    static const char *const names[] = {"py2-np0-objarr.npy", "py2-objarr.npy", "py3-objarr.npy"};
    if (!root) {
        print_message("SKIPPED: WAFERTIER_REAL_DATA is not set\n");
        skip();
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[600];
        size_t len = 0;
        struct wt_npy npy;
        struct wt_err err = {0};
        snprintf(path, sizeof path, "%s/npy-numpy/%s", root, names[i]);
        uint8_t *file = read_file(path, &len);
        assert_non_null(file);
        assert_int_equal(wt_npy_parse(file, len, &npy, &err), WT_EUNSUPPORTED);
        assert_non_null(strstr(err.text, "pickle"));
        free(file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_and_spelling),
        cmocka_unit_test(every_dtype),
        cmocka_unit_test(bad_headers_are_refused),
        cmocka_unit_test(bad_magic_version_and_length),
        cmocka_unit_test(every_garbled_byte_is_survived),
        cmocka_unit_test(written_headers_read_back),
        cmocka_unit_test(shapes_have_bytes_and_text),
        cmocka_unit_test(fortran_and_big_endian),
        cmocka_unit_test(complex_swaps_each_half),
        cmocka_unit_test(numpy_agrees),
        cmocka_unit_test(real_object_arrays_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
