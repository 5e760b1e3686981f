/*
 * How an object lies in RADOS: a head named like its key, and parts of 8 MiB named by key, token of
 * the put that wrote them, and number. The head is written last; it alone makes the object visible.
 * Objects up to 64 KiB live inside their head. Docs: docs/operations-ceph.md has the same table.
 *
 *   offset  bytes  (little-endian)
 *        0      8  magic "\x89WTHEAD\n"
 *        8      4  version, 1
 *       12      4  flags: 1 the data is in the head, 2 the object may be replaced
 *       16      8  size of the object
 *       24      4  size of a part, 8388608
 *       28      4  number of parts; 0 where the data is in the head
 *       32      8  token, random for each put
 *       40      4  length of the head object
 *       44      4  crc32c of bytes 0-43
 *       48    4*n  crc32c of each part
 *                  then the data where it is in the head
 *     last      4  crc32c of all before
 *
 * Names: "KEY" the head, "KEY@<token, 16 hex digits>.<number>" a part, "KEY@lock" a lock. A key
 * that ends like one of the latter two is reserved.
 */
#ifndef WT_TIERS_RADOS_HEAD_H
#define WT_TIERS_RADOS_HEAD_H

#include "core/bytes.h"
#include "core/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RADOS_PART = 8 << 20,
    RADOS_INLINE_MAX = 64 << 10,
    RADOS_PARTS_MAX = 1 << 20, /* 8 TiB */
    RADOS_HEAD_FIXED = 48,
    /* Reads this much at first: every head with its data, or of an object of up to 128 GiB. */
    RADOS_HEAD_READ = RADOS_HEAD_FIXED + RADOS_INLINE_MAX + 4 + 4,
    RADOS_OID_SIZE = 256 + 32,
};

enum { RADOS_HEAD_INLINE = 1, RADOS_HEAD_REPLACEABLE = 2 };

struct rados_head {
    uint32_t refs; /* loop's thread */
    uint32_t flags;
    uint64_t size, token;
    uint32_t n_parts, length;
    uint32_t *crc; /* [n_parts] */
    uint8_t *data; /* [size] where it is inline */
};

/* The fixed part alone (at least RADOS_HEAD_FIXED bytes); crc and data stay NULL. 0 or WT_ECORRUPT.
 */
int rados_head_peek(const void *bytes, size_t len, struct rados_head *head, struct wt_err *err);
/* The whole of it; one reference is the caller's. 0, WT_ECORRUPT, WT_ENOMEM. */
int rados_head_decode(const void *bytes, size_t len, struct rados_head **out, struct wt_err *err);
void rados_head_ref(struct rados_head *head);
void rados_head_unref(struct rados_head *head); /* NULL is fine */
/* Appends the head of `head` (crc or data set); 0 or WT_ENOMEM. */
int rados_head_encode(const struct rados_head *head, struct wt_bytes *out);

uint32_t rados_parts_of(uint64_t size); /* 0: in the head */
uint64_t rados_part_length(uint64_t size, uint32_t n);

void rados_part_name(char out[RADOS_OID_SIZE], const char *key, uint64_t token, uint32_t n);
void rados_lock_name(char out[RADOS_OID_SIZE], const char *key);

enum rados_name { RADOS_NAME_HEAD, RADOS_NAME_PART, RADOS_NAME_LOCK };
/* What an object's name says it is; for a part also the length of its key, and its token. */
enum rados_name rados_name_kind(const char *name, size_t *key_len, uint64_t *token);

#endif
