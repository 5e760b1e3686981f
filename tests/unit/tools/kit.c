/* See kit.h. */
#include "kit.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

int kit_setup(void **state) {
    struct kit *k = calloc(1, sizeof *k);
    const char *tmp = getenv("TMPDIR");
    assert_non_null(k);
    snprintf(k->dir, sizeof k->dir, "%s/wt-tools-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(k->dir));
    *state = k;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int kit_teardown(void **state) {
    struct kit *k = *state;
    nftw(k->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(k);
    return 0;
}

const char *kit_path(struct kit *k, const char *name) {
    char *out = k->path[k->next++ % 16];
    char made[sizeof k->path[0]];
    snprintf(made, sizeof made, "%s/%s", k->dir, name);
    return memcpy(out, made, sizeof made);
}

const char *kit_write(struct kit *k, const char *name, const void *data, size_t len) {
    const char *path = kit_path(k, name);
    char folder[600];
    for (const char *slash = strchr(path + strlen(k->dir) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        mkdir(folder, 0755);
    }
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
    return path;
}

const char *kit_text(struct kit *k, const char *name, const char *text) {
    return kit_write(k, name, text, strlen(text));
}

void kit_npy(struct wt_bytes *out, const char *descr, bool fortran, const char *shape,
             const void *data, size_t len) {
    char dict[256];
    uint8_t head[10] = "\x93NUMPY\1";
    int n = snprintf(dict, sizeof dict, "{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n",
                     descr, fortran ? "True" : "False", shape);
    wt_put16(head + 8, (uint16_t)n);
    assert_int_equal(wt_bytes_add(out, head, sizeof head), 0);
    assert_int_equal(wt_bytes_add(out, dict, (size_t)n), 0);
    assert_int_equal(wt_bytes_add(out, data, len), 0);
}

static void put(struct wt_bytes *out, int width, uint64_t value) {
    assert_int_equal(wt_bytes_add(out, &value, (size_t)width), 0);
}

static void pack_member(const struct kit_member *m, struct wt_bytes *packed) {
    if (!m->deflate) {
        assert_int_equal(wt_bytes_add(packed, m->data, m->len), 0);
        return;
    }
    z_stream z = {0};
    uLong bound = compressBound((uLong)m->len) + 64;
    uint8_t *buf = malloc(bound);
    assert_non_null(buf);
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)m->data;
    z.avail_in = (uInt)m->len;
    z.next_out = buf;
    z.avail_out = (uInt)bound;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(wt_bytes_add(packed, buf, z.total_out), 0);
    deflateEnd(&z);
    free(buf);
}

/* The fields that local header and directory entry share, from "version needed" to the extra
 * field's length. */
static void put_common(struct wt_bytes *out, const struct kit_member *m, uint32_t crc,
                       uint64_t stored, uint64_t size, bool local, int extra) {
    bool later = local && m->descriptor;
    put(out, 2, 45);
    put(out, 2, (uint64_t)(m->flags | (m->descriptor ? 8 : 0)));
    put(out, 2, m->method_override ? m->method_override : m->deflate ? 8 : 0);
    put(out, 4, 0);
    put(out, 4, later ? 0 : crc);
    put(out, 4, m->zip64 ? UINT32_MAX : later ? 0 : stored);
    put(out, 4, m->zip64 ? UINT32_MAX : later ? 0 : size);
    put(out, 2, strlen(m->name));
    put(out, 2, (uint64_t)extra);
}

void kit_zip(struct wt_bytes *out, const struct kit_member *members, size_t n, bool end64) {
    struct wt_bytes dir = {0};
    for (size_t i = 0; i < n; i++) {
        const struct kit_member *m = &members[i];
        struct wt_bytes packed = {0};
        pack_member(m, &packed);
        uint64_t header = out->len, size = m->claim ? m->claim : m->len;
        uint32_t crc = (uint32_t)crc32(0, m->data, (uInt)m->len) ^ (m->bad_crc ? 1 : 0);
        put(out, 4, 0x04034b50);
        put_common(out, m, crc, packed.len, size, true, m->zip64 ? 20 : 0);
        wt_bytes_add(out, m->name, strlen(m->name));
        if (m->zip64) {
            put(out, 2, 1), put(out, 2, 16), put(out, 8, size), put(out, 8, packed.len);
        }
        wt_bytes_add(out, packed.data, packed.len);
        if (m->descriptor) {
            put(out, 4, 0x08074b50), put(out, 4, crc), put(out, 4, packed.len), put(out, 4, size);
        }
        put(&dir, 4, 0x02014b50);
        put(&dir, 2, 45);
        put_common(&dir, m, crc, packed.len, size, false, m->zip64 ? 28 : 0);
        put(&dir, 2, 0), put(&dir, 2, 0), put(&dir, 2, 0), put(&dir, 4, 0);
        put(&dir, 4, m->zip64 ? UINT32_MAX : header);
        wt_bytes_add(&dir, m->name, strlen(m->name));
        if (m->zip64) {
            put(&dir, 2, 1), put(&dir, 2, 24), put(&dir, 8, size), put(&dir, 8, packed.len),
                put(&dir, 8, header);
        }
        wt_bytes_free(&packed);
    }
    uint64_t at = out->len, end = at + dir.len;
    wt_bytes_add(out, dir.data, dir.len);
    if (end64) {
        put(out, 4, 0x06064b50), put(out, 8, 44), put(out, 2, 45), put(out, 2, 45), put(out, 4, 0),
            put(out, 4, 0);
        put(out, 8, n), put(out, 8, n), put(out, 8, dir.len), put(out, 8, at);
        put(out, 4, 0x07064b50), put(out, 4, 0), put(out, 8, end), put(out, 4, 1);
    }
    put(out, 4, 0x06054b50), put(out, 2, 0), put(out, 2, 0);
    put(out, 2, end64 ? 0xffff : n), put(out, 2, end64 ? 0xffff : n);
    put(out, 4, end64 ? UINT32_MAX : dir.len), put(out, 4, end64 ? UINT32_MAX : at), put(out, 2, 0);
    wt_bytes_free(&dir);
}
