/* XXH3 hashes and their text; see sum.h. crc32c is in crc32c*.c. */
#include "core/sum.h"

#include "core/err.h"

#include <stdlib.h>
#include <xxhash.h>

struct wt_hasher {
    XXH3_state_t *state; /* from its own allocator: it must be aligned to 64 bytes */
};

static struct wt_hash from_xxh(XXH128_hash_t h) {
    return (struct wt_hash){.hi = h.high64, .lo = h.low64};
}

struct wt_hash wt_hash(const void *data, size_t len) {
    return from_xxh(XXH3_128bits(data, len));
}

uint64_t wt_hash64(const void *data, size_t len) {
    return XXH3_64bits(data, len);
}

struct wt_hasher *wt_hasher_new(void) {
    struct wt_hasher *h = malloc(sizeof *h);
    if (!h)
        return NULL;
    h->state = XXH3_createState();
    if (!h->state) {
        free(h);
        return NULL;
    }
    wt_hasher_reset(h);
    return h;
}

void wt_hasher_reset(struct wt_hasher *h) {
    XXH3_128bits_reset(h->state);
}

void wt_hasher_add(struct wt_hasher *h, const void *data, size_t len) {
    if (len)
        XXH3_128bits_update(h->state, data, len);
}

struct wt_hash wt_hasher_end(const struct wt_hasher *h) {
    return from_xxh(XXH3_128bits_digest(h->state));
}

/* The state does not depend on the width that is asked for in the end. */
uint64_t wt_hasher_end64(const struct wt_hasher *h) {
    return XXH3_64bits_digest(h->state);
}

void wt_hasher_free(struct wt_hasher *h) {
    if (!h)
        return;
    XXH3_freeState(h->state);
    free(h);
}

void wt_hash_hex(struct wt_hash hash, char out[WT_HASH_HEX]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        out[i] = digits[hash.hi >> (60 - 4 * i) & 15];
        out[16 + i] = digits[hash.lo >> (60 - 4 * i) & 15];
    }
    out[32] = '\0';
}

static int digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int wt_hash_parse(const char *hex, struct wt_hash *hash) {
    uint64_t half[2] = {0, 0};
    for (int i = 0; i < 32; i++) {
        int d = digit(hex[i]);
        if (d < 0)
            return WT_EINVAL;
        half[i / 16] = half[i / 16] << 4 | (uint64_t)d;
    }
    if (hex[32] != '\0')
        return WT_EINVAL;
    *hash = (struct wt_hash){.hi = half[0], .lo = half[1]};
    return 0;
}
