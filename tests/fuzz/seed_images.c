/* Seeds of image files, tables and requests, made byte by byte; see seed.c. */
#include "seed_files.h"

#include "core/bytes.h"
#include "core/npy.h"

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void add(struct wt_bytes *b, const void *data, size_t len) {
    FUZZ_CHECK(wt_bytes_add(b, data, len) == 0);
}
static void add16(struct wt_bytes *b, unsigned v) {
    uint8_t p[2];
    wt_put16(p, (uint16_t)v);
    add(b, p, 2);
}
static void add32(struct wt_bytes *b, size_t v) {
    uint8_t p[4];
    wt_put32(p, (uint32_t)v);
    add(b, p, 4);
}

/* ---- npy ---- */

static void npy(struct wt_bytes *b, const char *dict, size_t bytes) {
    uint8_t head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    b->len = 0;
    wt_put16(head + 8, (uint16_t)strlen(dict));
    add(b, head, sizeof head);
    add(b, dict, strlen(dict));
    FUZZ_CHECK(wt_bytes_zeros(b, bytes) == 0);
}

static void seed_npy(void) {
    static const struct {
        const char *name, *dict;
        size_t bytes;
    } seeds[] = {
        {"u8", "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 6), }\n", 24},
        {"fortran", "{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3, 2), }\n", 48},
        {"scalar", "{'descr': '<c16', 'fortran_order': False, 'shape': (), }\n", 16},
        {"one", "{\"shape\": (5,), \"descr\": \"<i8\", \"fortran_order\": False}", 40},
        {"object", "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", 8},
        {"fields", "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }\n", 4},
        {"huge", "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967295, 4294967295), }\n",
         0},
    };
    struct wt_bytes b = {0};
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        npy(&b, seeds[i].dict, seeds[i].bytes);
        seed_put("npy", seeds[i].name, -1, b.data, b.len);
    }
    wt_bytes_free(&b);
}

/* ---- zip ---- */

struct member {
    const char *name;
    const struct wt_bytes *data;
    bool deflate;
};

static void put_deflated(struct wt_bytes *out, const struct wt_bytes *in) {
    z_stream z = {0};
    uint8_t room[8192];
    FUZZ_CHECK(deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_in = in->data;
    z.avail_in = (uInt)in->len;
    z.next_out = room;
    z.avail_out = sizeof room;
    FUZZ_CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    add(out, room, sizeof room - z.avail_out);
    deflateEnd(&z);
}

/* What the local header and the directory entry share, from "version needed" on. */
static void put_common(struct wt_bytes *b, const struct member *m, size_t stored) {
    add16(b, 20);
    add16(b, 0);
    add16(b, m->deflate ? 8 : 0);
    add32(b, 0);
    add32(b, crc32(0, m->data->data, (uInt)m->data->len));
    add32(b, stored);
    add32(b, m->data->len);
    add16(b, (unsigned)strlen(m->name));
    add16(b, 0);
}

static void zip(struct wt_bytes *b, const struct member *m, size_t n) {
    struct wt_bytes dir = {0}, body = {0};
    b->len = 0;
    for (size_t i = 0; i < n; i++) {
        size_t header = b->len;
        body.len = 0;
        if (m[i].deflate)
            put_deflated(&body, m[i].data);
        else
            add(&body, m[i].data->data, m[i].data->len);
        add32(b, 0x04034b50);
        put_common(b, &m[i], body.len);
        add(b, m[i].name, strlen(m[i].name));
        add(b, body.data, body.len);
        add32(&dir, 0x02014b50);
        add16(&dir, 20);
        put_common(&dir, &m[i], body.len);
        FUZZ_CHECK(wt_bytes_zeros(&dir, 10) == 0);
        add32(&dir, header);
        add(&dir, m[i].name, strlen(m[i].name));
    }
    size_t at = b->len;
    add(b, dir.data, dir.len);
    add32(b, 0x06054b50);
    add32(b, 0);
    add16(b, (unsigned)n);
    add16(b, (unsigned)n);
    add32(b, dir.len);
    add32(b, at);
    add16(b, 0);
    wt_bytes_free(&dir);
    wt_bytes_free(&body);
}

static void seed_npz(void) {
    struct wt_bytes images = {0}, labels = {0}, hot = {0}, order = {0}, out = {0};
    npy(&images, "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 4, 5), }\n", 60);
    npy(&order, "{'descr': '>u2', 'fortran_order': True, 'shape': (3, 4, 5), }\n", 120);
    npy(&labels, "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }\n", 12);
    npy(&hot, "{'descr': '|b1', 'fortran_order': False, 'shape': (3, 2), }\n", 6);
    for (int deflate = 0; deflate < 2; deflate++) {
        const struct member single[] = {{"images.npy", &images, deflate},
                                        {"labels.npy", &labels, deflate}};
        const struct member multi[] = {{"arr_0.npy", &order, deflate},
                                       {"arr_1.npy", &hot, deflate}};
        zip(&out, single, 2);
        seed_put("npz", deflate ? "deflated" : "stored", -1, out.data, out.len);
        seed_put("zip", deflate ? "deflated" : "stored", -1, out.data, out.len);
        zip(&out, multi, 2);
        seed_put("npz", deflate ? "hot_deflated" : "hot_stored", -1, out.data, out.len);
    }
    zip(&out, NULL, 0);
    seed_put("zip", "empty", -1, out.data, out.len);
    wt_bytes_free(&images);
    wt_bytes_free(&labels);
    wt_bytes_free(&hot);
    wt_bytes_free(&order);
    wt_bytes_free(&out);
}

/* ---- png ---- */

static void chunk(struct wt_bytes *b, const char *type, const void *data, size_t len) {
    uint8_t be[4];
    for (int i = 0; i < 4; i++)
        be[i] = (uint8_t)(len >> (24 - 8 * i));
    add(b, be, 4);
    add(b, type, 4);
    add(b, data, len);
    FUZZ_CHECK(wt_bytes_zeros(b, 4) == 0); /* the target puts sums right */
}

static void png(const char *name, uint8_t depth, uint8_t color, uint8_t interlace) {
    struct wt_bytes b = {0};
    uint8_t raw[256] = {0}, packed[512];
    uLongf len = sizeof packed;
    const uint8_t ihdr[13] = {0, 0, 0, 5, 0, 0, 0, 4, depth, color, 0, 0, interlace};
    static const uint8_t channels[] = {1, 0, 3, 1, 2, 0, 4};
    size_t row = 1 + (5u * depth * channels[color] + 7) / 8, rows = interlace ? 9 : 4;
    for (size_t i = 0; i < sizeof raw; i++)
        raw[i] = i % row ? (uint8_t)(i * 37) : 0;
    FUZZ_CHECK(compress(packed, &len, raw, interlace ? 64 : row * rows) == Z_OK);
    add(&b, "\x89PNG\r\n\x1a\n", 8);
    chunk(&b, "IHDR", ihdr, sizeof ihdr);
    if (color == 3) {
        chunk(&b, "PLTE", raw, 12);
        chunk(&b, "tRNS", raw, 3);
    }
    chunk(&b, "IDAT", packed, len);
    chunk(&b, "IEND", "", 0);
    seed_put("png", name, -1, b.data, b.len);
    wt_bytes_free(&b);
}

static void seed_png(void) {
    png("gray8", 8, 0, 0);
    png("gray16", 16, 0, 0);
    png("gray1", 1, 0, 0);
    png("rgb8", 8, 2, 0);
    png("rgba16", 16, 6, 0);
    png("gray_alpha", 8, 4, 0);
    png("palette4", 4, 3, 0);
    png("interlaced", 8, 0, 1);
}

void seed_images(void) {
    seed_npy();
    seed_npz();
    seed_png();
    seed_text("csv", "labels", -1,
              "file,label,lot,wafer,x\na.png,Edge-Ring,l1,w1,3\n\"b,\"\"1\"\".png\",,l1,w2,\r\n");
    seed_text("csv", "semicolon", -1,
              "\xef\xbb\xbf"
              "label;file\n3;folder/a.png\n-1;c.png\n");
    seed_text("csv", "tab", -1, "file\tlabel\tnote\n\"line\nbreak\"\t1\t1e5\n");
    seed_text("csv", "open_quote", -1, "file,label\n\"a,b\n");
}

/* ---- requests ---- */

#define JOB                                                                                        \
    "POST "                                                                                        \
    "/v1/"                                                                                         \
    "jobs\n{\"name\":\"train\",\"dataset\":\"wafers\",\"generation\":1,\"world\":2,\"seed\":-7,"   \
    "\"epoch\":1,"                                                                                 \
    "\"tiers\":[\"cold\",\"warm\",\"own\"],\"plan\":{\"version\":1,\"samples\":6,\"batch\":2,"     \
    "\"block\":1,\"lanes\":1,"                                                                     \
    "\"window\":1,\"tail\":\"pad\",\"mode\":\"eval\"}}"

void seed_control(void) {
    static const char *const shown[] = {"/healthz",
                                        "/v1/stats",
                                        "/v1/tiers",
                                        "/v1/datasets",
                                        "/v1/jobs",
                                        "/v1/moves",
                                        "/metrics",
                                        "/v1/pins",
                                        "/v1/quotas",
                                        "/v1/warm",
                                        "/v1/shards?dataset=wafers&after=0&limit=1&tier=hot",
                                        "/v1/shards?dataset=wafers&lot=lot&wafer=w&prefix=0"};
    static const char *const steered[] = {
        "/v1/pin\n{\"dataset\":\"wafers\",\"lot\":\"lot\",\"wafer\":\"w1\",\"tier\":\"hot\"}",
        "/v1/unpin\n{\"dataset\":\"wafers\"}",
        "/v1/quota\n{\"dataset\":\"wafers\",\"tier\":\"hot\",\"bytes\":1000}",
        "/v1/warm\n{\"dataset\":\"wafers\",\"tier\":\"warm\",\"patience_s\":0.5}",
        "/v1/evict\n{\"dataset\":\"wafers\",\"hold_s\":0}",
        "/v1/reload\n{}"};
    char line[192], name[16];
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        snprintf(line, sizeof line, "GET %s", shown[i]);
        snprintf(name, sizeof name, "get%zu", i);
        seed_text("control", name, 0, line);
    }
    for (size_t i = 0; i < sizeof steered / sizeof steered[0]; i++) {
        snprintf(line, sizeof line, "POST %s", steered[i]);
        snprintf(name, sizeof name, "steer%zu", i);
        seed_text("control", name, 0, line);
    }
    seed_text("control", "job", 0, JOB);
    seed_text("control", "dataset", 0, "POST /v1/datasets\n{\"name\":\"wafers\"}");
    seed_text("control", "no_dataset", 0, "POST /v1/datasets\n{\"name\":\"others\"}");
    seed_text("control", "progress", 0,
              "POST "
              "/v1/jobs/$/"
              "progress\n{\"epoch\":0,\"step\":3,\"reads\":[[0,\"cold\",1,100],[1,\"own\",2,5]],"
              "\"next\":[1,0]}");
    seed_text("control", "leave", 0, "DELETE /v1/jobs/$");
    seed_text("control", "bad_id", 0, "DELETE /v1/jobs/%ff%2e%41");
    seed_text(
        "control", "bad_tier", 0,
        "POST /v1/jobs/$/progress\n{\"epoch\":0,\"step\":0,\"reads\":[[0,\"\xc3\xa4\",1,1]]}");
    seed_text("control", "method", 0, "PUT /v1/jobs");
    seed_text("control", "raw", 1,
              "GET /v1/stats HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/jobs HTTP/1.1\r\nHost: "
              "x\r\nConnection: close\r\n\r\n");
    seed_text("control", "chunked", 1,
              "POST /v1/datasets HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
              "chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n");
}
