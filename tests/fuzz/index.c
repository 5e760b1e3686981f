/*
 * Fuzz: the payload of `__index__` behind its hash. The input is the payload of a plain .tar's
 * index; whatever only repeats what is known (magic, lengths, where sections begin, the hash) is
 * put right, so that the counts and the arrays themselves are what is tried.
 */
#include "core/shard_format.h"

#include "fuzz.h"
#include "shard_use.h"

#include <stdlib.h>
#include <string.h>

enum { PAYLOAD_MAX = 64 << 10, OBJECT_MAX = 1 << 20 };

static void fix_sections(uint8_t *h) {
    uint64_t n = wt_get32(h + WT_AT_SAMPLES), fields = wt_get32(h + WT_AT_FIELDS),
             at = WT_INDEX_HEADER;
    const uint64_t len[WT_SECTIONS] = {
        [WT_SEC_FIELDS] = fields * WT_FIELD_NAME,
        [WT_SEC_SHAPES] = (uint64_t)wt_get32(h + WT_AT_SHAPES) * WT_SHAPE_RECORD,
        [WT_SEC_ID] = n * 8,
        [WT_SEC_START] = (n + 1) * 8,
        [WT_SEC_REF_OFF] = n * fields * 8,
        [WT_SEC_REF_SHAPE] = n * fields * 4,
        [WT_SEC_LABEL] = n * 4,
        [WT_SEC_MULTIHOT] = n * ((wt_get32(h + WT_AT_MULTIHOT) + UINT64_C(7)) / 8),
        [WT_SEC_KEY] = n * 4,
        [WT_SEC_JSON] = n * 4,
        [WT_SEC_SUMS] = (uint64_t)wt_get32(h + WT_AT_SUMS) * 4,
        [WT_SEC_TEXT] = wt_get32(h + WT_AT_TEXT_LEN),
    };
    for (int i = 0; i < WT_SECTIONS; i++) {
        wt_put32(h + WT_AT_SECTIONS + (size_t)i * 4, (uint32_t)at);
        at += wt_align8(len[i]);
    }
}

/* The end of the object, from the index member's header. *size: of the object that it says it is
 * the end of. */
static uint8_t *make_tail(const uint8_t *data, size_t len, size_t *tail_len, uint64_t *size) {
    size_t payload = (len + WT_INDEX_TRAILER + WT_TAR_BLOCK - 1) / WT_TAR_BLOCK * WT_TAR_BLOCK;
    *tail_len = WT_TAR_BLOCK + payload + WT_TAR_END;
    uint8_t *tail = fuzz_alloc(*tail_len), *h = tail + WT_TAR_BLOCK,
            *end = h + payload - WT_INDEX_TRAILER;
    wt_tar_header(tail, WT_INDEX_MEMBER, payload);
    memcpy(h, data, len);
    *size = wt_get64(h + WT_AT_TAR_SIZE);
    if (*size < *tail_len)
        *size = *tail_len;
    memcpy(h, WT_INDEX_MAGIC, 8);
    wt_put32(h + WT_AT_VERSION, WT_SHARD_VERSION);
    wt_put32(h + WT_AT_CODEC, WT_CODEC_TAR);
    wt_put64(h + WT_AT_TAR_SIZE, *size);
    wt_put64(h + WT_AT_MEMBER, *size - *tail_len);
    wt_put64(h + WT_AT_LEN, payload);
    memset(h + WT_AT_FRAMES, 0, 16);
    fix_sections(h);
    wt_put64(end + WT_AT_HASH, wt_hash64(h, payload - WT_INDEX_TRAILER));
    wt_put64(end + WT_AT_END_LEN, payload);
    memcpy(end + WT_AT_END_MAGIC, WT_TRAILER_MAGIC, 8);
    return tail;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < WT_INDEX_HEADER || size > PAYLOAD_MAX)
        return 0;
    size_t tail_len;
    uint64_t object_size, at = 0;
    struct wt_shard_index x;
    struct wt_err err = {0};
    uint8_t *tail = make_tail(data, size, &tail_len, &object_size), *object = NULL;
    int rc = wt_shard_locate(tail, tail_len, object_size, WT_CODEC_TAR, &at, &err);
    FUZZ_CHECK(rc == 0 && at == object_size - tail_len);
    rc = wt_shard_index_parse(tail, tail_len, at, object_size, WT_CODEC_TAR, &x, &err);
    FUZZ_CHECK(rc == 0 || rc == WT_ECORRUPT);
    if (rc == 0) {
        if (object_size <= OBJECT_MAX) {
            object = fuzz_alloc(object_size);
            memcpy(object + at, tail, tail_len);
        }
        fuzz_use_index(&x, object);
        wt_shard_index_free(&x);
    }
    free(object);
    free(tail);
    return 0;
}
