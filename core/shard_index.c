/*
 * Finding and parsing a shard's index; see shard.h and shard_format.h.
 *
 * Happy path: seek table (.tar.zst) -> the index frame decoded, or the bytes as they are (.tar) ->
 * exactly one tar member
 * `__index__` and the tar's end -> hash of the payload -> counts and sections -> one allocation,
 * filled and checked array by array. Failures: everything that does not fit is WT_ECORRUPT and
 * names the part; sizes are checked before they are allocated.
 */
#include "core/shard_index.h"

#include "core/mem.h"
#include "core/shard_check.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

static int bad(struct wt_err *err, const char *what) {
    return wt_err_set(err, WT_ECORRUPT, "shard index: %s", what);
}

/* ---- the seek table ---- */

struct seek {
    const uint8_t *entries; /* n of them */
    uint32_t n;
    uint64_t len; /* of the whole table */
};

static int find_seek(const uint8_t *data, size_t len, struct seek *s, struct wt_err *err) {
    if (len < WT_SEEK_HEAD + WT_SEEK_FOOT)
        return bad(err, "the object is too short for a seek table");
    const uint8_t *foot = data + len - WT_SEEK_FOOT;
    if (wt_get32(foot + 5) != WT_SEEK_MAGIC || foot[4] != 0)
        return bad(err, "no seek table at the end (the object is cut, or not ours)");
    s->n = wt_get32(foot);
    s->len = WT_SEEK_HEAD + (uint64_t)s->n * WT_SEEK_ENTRY + WT_SEEK_FOOT;
    if (s->n < 2 || s->len > len)
        return bad(err, "the seek table's length is wrong");
    const uint8_t *head = data + len - s->len;
    if (wt_get32(head) != WT_SEEK_SKIPPABLE || wt_get32(head + 4) != s->len - WT_SEEK_HEAD)
        return bad(err, "the seek table's head is wrong");
    s->entries = head + WT_SEEK_HEAD;
    return 0;
}

/* Frame boundaries: frame[n] is the end. */
static int place_frames(const struct seek *s, uint64_t size, uint64_t index_off,
                        struct wt_frame *frame, struct wt_err *err) {
    struct wt_frame at = {0};
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t stored = wt_get32(s->entries + (size_t)i * 8);
        uint32_t decoded = wt_get32(s->entries + (size_t)i * 8 + 4);
        if (stored == 0 || decoded == 0)
            return bad(err, "an empty frame");
        frame[i] = at;
        at.off += stored;
        at.tar_off += decoded;
    }
    frame[s->n] = at;
    if (at.off != size - s->len)
        return bad(err, "the frames' lengths do not add up to the object's size");
    if (frame[s->n - 1].off != index_off)
        return bad(err, "it does not begin where it should");
    if (at.tar_off > WT_SHARD_MAX_DECODED)
        return bad(err, "the tar is too large");
    return 0;
}

int wt_shard_locate(const void *end, size_t len, uint64_t size, enum wt_codec codec,
                    uint64_t *index_off, struct wt_err *err) {
    const uint8_t *last = (const uint8_t *)end + len;
    const size_t need_tar = WT_TAR_END + WT_INDEX_TRAILER;
    const size_t need_zstd = WT_SEEK_HEAD + 2 * WT_SEEK_ENTRY + WT_SEEK_FOOT;
    size_t need = codec == WT_CODEC_ZSTD ? need_zstd : need_tar;
    if (len > size || size < need)
        return bad(err, "the object is too short for a shard");
    if (len < need) {
        *index_off = size - (size < 65536 ? size : 65536);
        return wt_err_set(err, WT_ERANGE, "more of the shard's end is needed");
    }
    uint64_t back; /* how far before the end it begins */
    if (codec == WT_CODEC_ZSTD) {
        const uint8_t *foot = last - WT_SEEK_FOOT;
        if (wt_get32(foot + 5) != WT_SEEK_MAGIC)
            return bad(err, "no seek table at the end (the object is cut, or not ours)");
        back = WT_SEEK_HEAD + (uint64_t)wt_get32(foot) * WT_SEEK_ENTRY + WT_SEEK_FOOT +
               wt_get32(foot - WT_SEEK_ENTRY);
    } else {
        const uint8_t *trailer = last - need_tar;
        uint64_t payload = wt_get64(trailer + WT_AT_END_LEN);
        if (memcmp(trailer + WT_AT_END_MAGIC, WT_TRAILER_MAGIC, 8) != 0 || payload > WT_INDEX_MAX)
            return bad(err, "none at the end of the tar (the object is cut, or not ours)");
        back = WT_TAR_BLOCK + payload + WT_TAR_END;
    }
    if (back > size)
        return bad(err, "it would begin before the object");
    *index_off = size - back;
    return 0;
}

/* ---- the payload ---- */

static bool is_zero(const uint8_t *p, uint64_t len) {
    for (uint64_t i = 0; i < len; i++)
        if (p[i])
            return false;
    return true;
}

/* member: the last bytes of the tar, from the index member's header. */
static int open_member(struct wt_index_in *in, const uint8_t *member, uint64_t len,
                       struct wt_err *err) {
    const uint64_t around = WT_TAR_BLOCK + WT_TAR_END;
    if (len % WT_TAR_BLOCK || len < around + WT_TAR_BLOCK || len - around > WT_INDEX_MAX)
        return bad(err, "its length is wrong (the object is cut)");
    uint8_t header[WT_TAR_BLOCK];
    in->len = len - around;
    in->payload = member + WT_TAR_BLOCK;
    wt_tar_header(header, WT_INDEX_MEMBER, in->len);
    if (memcmp(header, member, sizeof header) != 0)
        return bad(err, "no tar member __index__ where it should be");
    if (!is_zero(in->payload + in->len, WT_TAR_END))
        return bad(err, "the end of the tar is missing");
    const uint8_t *trailer = in->payload + in->len - WT_INDEX_TRAILER;
    if (memcmp(trailer + WT_AT_END_MAGIC, WT_TRAILER_MAGIC, 8) != 0 ||
        wt_get64(trailer + WT_AT_END_LEN) != in->len ||
        wt_get64(trailer + WT_AT_HASH) != wt_hash64(in->payload, in->len - WT_INDEX_TRAILER))
        return bad(err, "its hash is wrong");
    return 0;
}

static int check_counts(const struct wt_shard_index *x, const uint8_t *h, struct wt_err *err) {
    if (memcmp(h + WT_AT_MAGIC, WT_INDEX_MAGIC, 8) != 0)
        return bad(err, "wrong magic");
    if (wt_get32(h + WT_AT_VERSION) != WT_SHARD_VERSION)
        return wt_err_set(err, WT_EUNSUPPORTED, "shard index of version %u, this program reads %d",
                          wt_get32(h + WT_AT_VERSION), WT_SHARD_VERSION);
    if (wt_get32(h + WT_AT_CODEC) != x->codec || wt_get32(h + WT_AT_ZERO) != 0)
        return bad(err, "it belongs to another kind of shard");
    if (x->samples == 0 || x->samples == UINT32_MAX || x->n_fields == 0 ||
        x->n_fields > WT_MAX_FIELDS || x->n_shapes == 0 || x->n_multihot > WT_MAX_CLASSES ||
        x->text_len < 2)
        return bad(err, "impossible counts");
    if (x->codec == WT_CODEC_ZSTD && x->n_sums)
        return bad(err, "sums in a shard of frames");
    return 0;
}

static void section_lengths(const struct wt_shard_index *x, uint64_t len[WT_SECTIONS]) {
    uint64_t n = x->samples;
    len[WT_SEC_FIELDS] = (uint64_t)x->n_fields * WT_FIELD_NAME;
    len[WT_SEC_SHAPES] = (uint64_t)x->n_shapes * WT_SHAPE_RECORD;
    len[WT_SEC_ID] = n * 8;
    len[WT_SEC_START] = (n + 1) * 8;
    len[WT_SEC_REF_OFF] = n * x->n_fields * 8;
    len[WT_SEC_REF_SHAPE] = n * x->n_fields * 4;
    len[WT_SEC_LABEL] = n * 4;
    len[WT_SEC_MULTIHOT] = n * ((x->n_multihot + 7) / 8);
    len[WT_SEC_KEY] = n * 4;
    len[WT_SEC_JSON] = n * 4;
    len[WT_SEC_SUMS] = (uint64_t)x->n_sums * 4;
    len[WT_SEC_TEXT] = x->text_len;
}

/* The counts fix every offset; the stored ones must say the same, and the gaps must be zero. */
static int place_sections(struct wt_index_in *in, const struct wt_shard_index *x,
                          struct wt_err *err) {
    uint64_t len[WT_SECTIONS], at = WT_INDEX_HEADER, end = in->len - WT_INDEX_TRAILER;
    section_lengths(x, len);
    for (int i = 0; i < WT_SECTIONS; i++) {
        uint64_t next = at + wt_align8(len[i]);
        if (next > end || wt_get32(in->payload + WT_AT_SECTIONS + (size_t)i * 4) != at)
            return bad(err, "a section lies outside");
        in->section[i] = in->payload + at;
        if (!is_zero(in->payload + at + len[i], next - at - len[i]))
            return bad(err, "a gap is not empty");
        at = next;
    }
    if (end - at >= WT_TAR_BLOCK || !is_zero(in->payload + at, end - at))
        return bad(err, "something lies behind the last section");
    return 0;
}

static int read_header(struct wt_index_in *in, struct wt_shard_index *x, struct wt_err *err) {
    const uint8_t *h = in->payload;
    if (in->len < WT_INDEX_HEADER + WT_INDEX_TRAILER)
        return bad(err, "too short");
    x->samples = wt_get32(h + WT_AT_SAMPLES);
    x->n_fields = wt_get32(h + WT_AT_FIELDS);
    x->n_shapes = wt_get32(h + WT_AT_SHAPES);
    x->n_sums = wt_get32(h + WT_AT_SUMS);
    x->n_multihot = wt_get32(h + WT_AT_MULTIHOT);
    x->text_len = wt_get32(h + WT_AT_TEXT_LEN);
    int rc = check_counts(x, h, err);
    if (rc < 0)
        return rc;
    if (wt_get64(h + WT_AT_TAR_SIZE) != x->tar_size || wt_get64(h + WT_AT_LEN) != in->len ||
        wt_get64(h + WT_AT_MEMBER) != x->tar_size - WT_TAR_END - in->len - WT_TAR_BLOCK)
        return bad(err, "it says another size than the shard has");
    return place_sections(in, x, err);
}

/* ---- memory ---- */

static void *carve(uint8_t **at, uint64_t len) {
    void *p = *at;
    *at += wt_align8(len);
    return p;
}

/* One allocation for all arrays; the payload's length bounds every count. */
static int allocate(struct wt_shard_index *x, struct wt_err *err) {
    uint64_t n = x->samples, refs = n * x->n_fields;
    uint64_t frames = x->codec == WT_CODEC_ZSTD ? (uint64_t)x->n_frames + 1 : 0;
    uint64_t total = n * 8 + (n + 1) * 8 + refs * sizeof *x->ref + frames * sizeof *x->frame +
                     (x->n_shapes + UINT64_C(1)) * (sizeof *x->shape + 4) + n * 12 +
                     n * x->n_multihot + (uint64_t)x->n_sums * 4 + x->text_len + UINT64_C(8) * 12;
    uint8_t *at = malloc(total);
    if (!at)
        return wt_err_set(err, WT_ENOMEM, "no memory for a shard index of %u samples", x->samples);
    x->id = carve(&at, n * 8);
    x->start = carve(&at, (n + 1) * 8);
    x->ref = carve(&at, refs * sizeof *x->ref);
    x->frame = frames ? carve(&at, frames * sizeof *x->frame) : NULL;
    x->shape = carve(&at, x->n_shapes * sizeof *x->shape);
    x->rows_per_block = carve(&at, (uint64_t)x->n_shapes * 4);
    x->label = carve(&at, n * 4);
    x->key_off = carve(&at, n * 4);
    x->json_off = carve(&at, n * 4);
    x->sums = carve(&at, (uint64_t)x->n_sums * 4);
    x->multihot = x->n_multihot ? carve(&at, n * x->n_multihot) : NULL;
    x->text = carve(&at, x->text_len);
    return 0;
}

void wt_shard_index_free(struct wt_shard_index *index) {
    free(index->id);
    *index = (struct wt_shard_index){0};
}

static int parse_member(const uint8_t *member, uint64_t len, const struct seek *seek,
                        uint64_t index_off, struct wt_shard_index *x, struct wt_err *err) {
    struct wt_index_in in = {0};
    int rc = open_member(&in, member, len, err);
    if (rc == 0)
        rc = read_header(&in, x, err);
    if (rc < 0)
        return rc;
    uint32_t data_frames = wt_get32(in.payload + WT_AT_FRAMES);
    uint64_t hash = wt_get64(in.payload + WT_AT_FRAMES_HASH);
    if (seek && (data_frames != seek->n - 1 ||
                 hash != wt_hash64(seek->entries, (size_t)data_frames * WT_SEEK_ENTRY)))
        return bad(err, "the seek table is not the one that was written");
    if (!seek && (data_frames || hash))
        return bad(err, "frames in a plain tar");
    rc = allocate(x, err);
    if (rc == 0 && seek)
        rc = place_frames(seek, x->size, index_off, x->frame, err);
    if (rc == 0)
        rc = wt_index_fill(&in, x, err);
    if (rc < 0)
        wt_shard_index_free(x);
    return rc;
}

/* ---- both kinds ---- */

static int parse_tar(const uint8_t *tail, size_t len, struct wt_shard_index *x,
                     struct wt_err *err) {
    x->tar_size = x->size;
    return parse_member(tail, len, NULL, 0, x, err);
}

static uint64_t decoded_total(const struct seek *s) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < s->n; i++)
        total += wt_get32(s->entries + (size_t)i * WT_SEEK_ENTRY + 4);
    return total;
}

static int parse_zstd(const uint8_t *tail, size_t len, uint64_t index_off, struct wt_shard_index *x,
                      struct wt_err *err) {
    struct seek s = {0};
    int rc = find_seek(tail, len, &s, err);
    if (rc < 0)
        return rc;
    uint32_t decoded = wt_get32(s.entries + (size_t)(s.n - 1) * WT_SEEK_ENTRY + 4);
    if (decoded > WT_INDEX_MAX + WT_TAR_BLOCK + WT_TAR_END)
        return bad(err, "it is too large");
    rc = wt_frame_check(tail, len - s.len, decoded);
    if (rc < 0)
        return bad(err, "its frame is damaged");
    x->n_frames = s.n;
    x->tar_size = decoded_total(&s);
    uint8_t *member = malloc(decoded);
    if (!member)
        return wt_err_set(err, WT_ENOMEM, "no memory for a shard index of %u bytes", decoded);
    size_t n = ZSTD_decompress(member, decoded, tail, len - s.len);
    if (n == decoded)
        rc = parse_member(member, decoded, &s, index_off, x, err);
    else if (ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation)
        rc = wt_err_set(err, WT_ENOMEM, "no memory to decode a shard index");
    else
        rc = bad(err, "its frame is damaged");
    free(member);
    return rc;
}

int wt_shard_index_parse(const void *tail, size_t len, uint64_t index_off, uint64_t size,
                         enum wt_codec codec, struct wt_shard_index *index, struct wt_err *err) {
    struct wt_shard_index x = {.codec = codec, .size = size};
    if (index_off > size || size - index_off != len)
        return wt_err_set(err, WT_EINVAL, "%zu bytes are not the shard's end from %llu to %llu",
                          len, (unsigned long long)index_off, (unsigned long long)size);
    int rc = codec == WT_CODEC_ZSTD ? parse_zstd(tail, len, index_off, &x, err)
                                    : parse_tar(tail, len, &x, err);
    if (rc == 0)
        *index = x;
    return rc;
}
