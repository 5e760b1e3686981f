/*
 * Fuzz: the seek table behind its hash. The input is a list of entries (stored, decoded: u32 each)
 * for the frames before the index's own; the index of a valid shard is fitted to it, so that only
 * the table's sense is tried. Then the input as the whole end of an object.
 */
#include "core/shard_format.h"

#include "fuzz.h"
#include "shard_use.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { ENTRIES_MAX = 2048 };

struct base { /* a valid shard's payload of `__index__` */
    uint8_t *member;
    size_t len;
};

static struct base make_base(void) {
    struct wt_shard_out out;
    struct base b;
    fuzz_make_shard(WT_CODEC_ZSTD, &out);
    unsigned long long len =
        ZSTD_getFrameContentSize(out.data + out.index_off, out.size - out.index_off);
    b.len = (size_t)len;
    b.member = fuzz_alloc(b.len);
    FUZZ_CHECK(ZSTD_decompress(b.member, b.len, out.data + out.index_off,
                               out.size - out.index_off) == b.len);
    wt_shard_out_free(&out);
    return b;
}

static void fit(struct base *b, const uint8_t *entries, uint32_t n, uint64_t tar_size) {
    uint8_t *h = b->member + WT_TAR_BLOCK;
    size_t payload = b->len - WT_TAR_BLOCK - WT_TAR_END;
    wt_put64(h + WT_AT_TAR_SIZE, tar_size);
    wt_put64(h + WT_AT_MEMBER, tar_size - b->len);
    wt_put32(h + WT_AT_FRAMES, n);
    wt_put64(h + WT_AT_FRAMES_HASH, wt_hash64(entries, (size_t)n * WT_SEEK_ENTRY));
    /* The last sample ends where the index begins. */
    uint32_t start = wt_get32(h + WT_AT_SECTIONS + WT_SEC_START * 4),
             samples = wt_get32(h + WT_AT_SAMPLES);
    wt_put64(h + start + (size_t)samples * 8, tar_size - b->len);
    wt_put64(h + payload - WT_INDEX_TRAILER, wt_hash64(h, payload - WT_INDEX_TRAILER));
}

static size_t compress(const struct base *b, uint8_t *dst, size_t room) {
    ZSTD_CCtx *c = ZSTD_createCCtx();
    FUZZ_CHECK(c);
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
    size_t n = ZSTD_compress2(c, dst, room, b->member, b->len);
    FUZZ_CHECK(!ZSTD_isError(n));
    ZSTD_freeCCtx(c);
    return n;
}

static size_t put_table(uint8_t *at, const uint8_t *entries, uint32_t n, size_t stored,
                        size_t decoded) {
    uint8_t *p = at;
    wt_put32(p, WT_SEEK_SKIPPABLE);
    wt_put32(p + 4, (n + 1) * WT_SEEK_ENTRY + WT_SEEK_FOOT);
    p += WT_SEEK_HEAD;
    if (n)
        memcpy(p, entries, (size_t)n * WT_SEEK_ENTRY);
    p += (size_t)n * WT_SEEK_ENTRY;
    wt_put32(p, (uint32_t)stored);
    wt_put32(p + 4, (uint32_t)decoded);
    wt_put32(p + 8, n + 1);
    p[12] = 0;
    wt_put32(p + 13, WT_SEEK_MAGIC);
    return (size_t)(p + 17 - at);
}

static void try_entries(const uint8_t *entries, uint32_t n) {
    struct base b = make_base();
    uint64_t stored = 0, decoded = b.len, at = 0;
    for (uint32_t i = 0; i < n; i++) {
        stored += wt_get32(entries + (size_t)i * WT_SEEK_ENTRY);
        decoded += wt_get32(entries + (size_t)i * WT_SEEK_ENTRY + 4);
    }
    fit(&b, entries, n, decoded);
    size_t room =
        ZSTD_compressBound(b.len) + ((size_t)n + 1) * WT_SEEK_ENTRY + WT_SEEK_HEAD + WT_SEEK_FOOT;
    uint8_t *tail = fuzz_alloc(room);
    size_t len = compress(&b, tail, room);
    len += put_table(tail + len, entries, n, len, b.len);
    uint8_t *exact = fuzz_copy(tail, len);
    struct wt_shard_index x;
    struct wt_err err = {0};
    uint64_t size = stored + len;
    FUZZ_CHECK(wt_shard_locate(exact, len, size, WT_CODEC_ZSTD, &at, &err) == 0 && at == stored);
    int rc = wt_shard_index_parse(exact, len, at, size, WT_CODEC_ZSTD, &x, &err);
    FUZZ_CHECK(rc == 0 || rc == WT_ECORRUPT);
    if (rc == 0) {
        fuzz_use_index(&x, NULL);
        wt_shard_index_free(&x);
    }
    free(exact);
    free(tail);
    free(b.member);
}

/* The bytes as the end of an object of that size: nothing fits, and nothing may be read that is not
 * there. */
static void try_end(const uint8_t *data, size_t len, uint64_t size) {
    uint64_t at;
    struct wt_shard_index x;
    struct wt_err err = {0};
    int rc = wt_shard_locate(data, len, size, WT_CODEC_ZSTD, &at, &err);
    FUZZ_CHECK(rc == 0 || rc == WT_ECORRUPT || rc == WT_ERANGE);
    if (rc == 0)
        FUZZ_CHECK(at < size);
    if (wt_shard_index_parse(data, len, size - len, size, WT_CODEC_ZSTD, &x, &err) == 0)
        wt_shard_index_free(&x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > ENTRIES_MAX * WT_SEEK_ENTRY)
        return 0;
    try_entries(data, (uint32_t)(size / WT_SEEK_ENTRY));
    try_end(data, size, size);
    try_end(data, size, (uint64_t)size + UINT32_MAX);
    return 0;
}
