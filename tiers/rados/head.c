/* Heads and names in RADOS; see head.h for the layout. A head that does not add up is WT_ECORRUPT.
 */
#include "tiers/rados/head.h"

#include "core/mem.h"
#include "core/sum.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, SUMMED = RADOS_HEAD_FIXED - 4, TOKEN_DIGITS = 16 };
static const char magic[8] = {'\x89', 'W', 'T', 'H', 'E', 'A', 'D', '\n'};

uint32_t rados_parts_of(uint64_t size) {
    if (size <= RADOS_INLINE_MAX)
        return 0;
    return (uint32_t)(size / RADOS_PART + (size % RADOS_PART != 0));
}

uint64_t rados_part_length(uint64_t size, uint32_t n) {
    uint64_t left = size - (uint64_t)n * RADOS_PART;
    return left < RADOS_PART ? left : RADOS_PART;
}

/* What follows the fixed part, but for the last sum. */
static uint64_t body_length(const struct rados_head *h) {
    return h->flags & RADOS_HEAD_INLINE ? h->size : (uint64_t)h->n_parts * 4;
}

static bool adds_up(const struct rados_head *h) {
    if (h->flags & ~(uint32_t)(RADOS_HEAD_INLINE | RADOS_HEAD_REPLACEABLE))
        return false;
    if (h->size > (uint64_t)RADOS_PARTS_MAX * RADOS_PART || h->n_parts != rados_parts_of(h->size))
        return false;
    if (!(h->flags & RADOS_HEAD_INLINE) != (h->n_parts > 0))
        return false;
    return h->length == RADOS_HEAD_FIXED + body_length(h) + 4;
}

int rados_head_peek(const void *bytes, size_t len, struct rados_head *head, struct wt_err *err) {
    const uint8_t *p = bytes;
    if (len < RADOS_HEAD_FIXED || memcmp(p, magic, sizeof magic) != 0)
        return wt_err_set(err, WT_ECORRUPT, "its head object is not one (%zu bytes)", len);
    if (wt_get32(p + SUMMED) != wt_crc32c(0, p, SUMMED))
        return wt_err_set(err, WT_ECORRUPT, "its head object has a wrong sum");
    if (wt_get32(p + 8) != VERSION)
        return wt_err_set(err, WT_EFORMAT,
                          "its head has version %u, this program knows %d: use a newer one",
                          wt_get32(p + 8), VERSION);
    struct rados_head h = {.refs = 1,
                           .flags = wt_get32(p + 12),
                           .size = wt_get64(p + 16),
                           .n_parts = wt_get32(p + 28),
                           .token = wt_get64(p + 32),
                           .length = wt_get32(p + 40)};
    if (wt_get32(p + 24) != RADOS_PART || !adds_up(&h))
        return wt_err_set(err, WT_ECORRUPT, "its head object contradicts itself");
    *head = h;
    return 0;
}

int rados_head_decode(const void *bytes, size_t len, struct rados_head **out, struct wt_err *err) {
    const uint8_t *p = bytes;
    struct rados_head h;
    int rc = rados_head_peek(bytes, len, &h, err);
    if (rc < 0)
        return rc;
    if (h.length != len)
        return wt_err_set(err, WT_ECORRUPT, "its head object has %zu bytes instead of %u", len,
                          h.length);
    if (wt_get32(p + len - 4) != wt_crc32c(0, p, len - 4))
        return wt_err_set(err, WT_ECORRUPT, "its head object has a wrong sum");
    size_t body = (size_t)body_length(&h);
    struct rados_head *head = malloc(sizeof *head + body);
    if (!head)
        return wt_err_set(err, WT_ENOMEM, "out of memory for a head of %zu bytes", len);
    *head = h;
    memcpy(head + 1, p + RADOS_HEAD_FIXED, body);
    if (h.flags & RADOS_HEAD_INLINE)
        head->data = (uint8_t *)(head + 1);
    else
        head->crc = (uint32_t *)(head + 1);
    *out = head;
    return 0;
}

void rados_head_ref(struct rados_head *head) {
    head->refs++;
}

void rados_head_unref(struct rados_head *head) {
    if (head && --head->refs == 0)
        free(head);
}

int rados_head_encode(const struct rados_head *head, struct wt_bytes *out) {
    size_t start = out->len;
    uint8_t fixed[RADOS_HEAD_FIXED] = {0}, sum[4];
    size_t body = (size_t)body_length(head);
    memcpy(fixed, magic, sizeof magic);
    wt_put32(fixed + 8, VERSION);
    wt_put32(fixed + 12, head->flags);
    wt_put64(fixed + 16, head->size);
    wt_put32(fixed + 24, RADOS_PART);
    wt_put32(fixed + 28, head->n_parts);
    wt_put64(fixed + 32, head->token);
    wt_put32(fixed + 40, (uint32_t)(RADOS_HEAD_FIXED + body + 4));
    wt_put32(fixed + SUMMED, wt_crc32c(0, fixed, SUMMED));
    const void *rest = head->flags & RADOS_HEAD_INLINE ? (const void *)head->data : head->crc;
    int rc = wt_bytes_add(out, fixed, sizeof fixed);
    if (rc == 0 && body)
        rc = wt_bytes_add(out, rest, body);
    if (rc == 0) {
        wt_put32(sum, wt_crc32c(0, out->data + start, out->len - start));
        rc = wt_bytes_add(out, sum, sizeof sum);
    }
    return rc;
}

/* ---- names ---- */

void rados_part_name(char out[RADOS_OID_SIZE], const char *key, uint64_t token, uint32_t n) {
    snprintf(out, RADOS_OID_SIZE, "%.255s@%016" PRIx64 ".%" PRIu32, key, token, n);
}

void rados_lock_name(char out[RADOS_OID_SIZE], const char *key) {
    snprintf(out, RADOS_OID_SIZE, "%.255s@lock", key);
}

enum rados_name rados_name_kind(const char *name, size_t *key_len, uint64_t *token) {
    static const char digits[] = "0123456789abcdef";
    const char *at = strrchr(name, '@');
    if (!at || at == name)
        return RADOS_NAME_HEAD;
    if (strcmp(at, "@lock") == 0)
        return RADOS_NAME_LOCK;
    const char *number = at + 1 + TOKEN_DIGITS + 1;
    if (strspn(at + 1, digits) != TOKEN_DIGITS || at[1 + TOKEN_DIGITS] != '.')
        return RADOS_NAME_HEAD;
    size_t n = strspn(number, "0123456789");
    if (n == 0 || n > 10 || number[n] != '\0')
        return RADOS_NAME_HEAD;
    *key_len = (size_t)(at - name);
    *token = strtoull(at + 1, NULL, 16);
    return RADOS_NAME_PART;
}
