/*
 * Fuzz: whole objects as shards, from their end: locate, parse, and all that a reader does with
 * what was accepted. The first byte chooses .tar or .tar.zst. index.c and seek.c get behind the
 * sums.
 */
#include "core/shard.h"

#include "fuzz.h"
#include "shard_use.h"

#include <stdlib.h>

static uint64_t locate(const uint8_t *object, size_t size, enum wt_codec codec) {
    uint64_t at = 0, whole = 0;
    struct wt_err err = {0};
    size_t tail = size < 64 ? size : 64; /* as if only that had been read */
    uint8_t *end = fuzz_copy(object + size - tail, tail);
    int rc = wt_shard_locate(end, tail, size, codec, &at, &err);
    free(end);
    FUZZ_CHECK(rc == 0 || rc == WT_ECORRUPT || rc == WT_ERANGE);
    if (wt_shard_locate(object, size, size, codec, &whole, &err) < 0)
        return UINT64_MAX;
    FUZZ_CHECK(whole <= size);
    FUZZ_CHECK(rc == WT_ERANGE ? at <= size : rc == 0 && at == whole);
    return whole;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    enum wt_codec codec = data[0] & 1 ? WT_CODEC_ZSTD : WT_CODEC_TAR;
    const uint8_t *object = data + 1;
    struct wt_shard_index x;
    struct wt_err err = {0};
    uint64_t at = locate(object, --size, codec);
    if (at == UINT64_MAX)
        return 0;
    uint8_t *tail = fuzz_copy(object + at, size - at);
    int rc = wt_shard_index_parse(tail, size - at, at, size, codec, &x, &err);
    free(tail);
    FUZZ_CHECK(rc == 0 || rc == WT_ECORRUPT || rc == WT_EUNSUPPORTED);
    if (rc == 0) {
        fuzz_use_index(&x, object);
        wt_shard_index_free(&x);
    }
    return 0;
}
