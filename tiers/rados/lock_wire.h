/*
 * What the OSD's "lock" class takes and gives, byte by byte (Ceph's src/cls/lock/cls_lock_ops.h,
 * version 1 of each, unchanged since 2012). rados_lock_exclusive() would do the same, but only
 * blocking.
 *
 * Every structure is {u8 version, u8 oldest reader's version, u32 length of what follows}; a text
 * is {u32 length, bytes}; an entity {u8 type, s64 number}; a time {u32 seconds, u32 nanoseconds}.
 */
#ifndef WT_TIERS_RADOS_LOCK_WIRE_H
#define WT_TIERS_RADOS_LOCK_WIRE_H

#include "core/bytes.h"
#include "core/err.h"

#define RADOS_LOCK_NAME "wafertier"

struct rados_locker {
    uint8_t entity_type;
    uint64_t entity;  /* the client's global id: rados_get_instance_id() */
    char owner[128];  /* the cookie */
    uint32_t expires; /* seconds since 1970, by the OSD's clock; 0: never */
};

/* Arguments of lock, unlock, break_lock, get_info. 0 or WT_ENOMEM. */
int rados_lock_args(struct wt_bytes *out, const char *owner, uint64_t ttl_ms);
int rados_unlock_args(struct wt_bytes *out, const char *owner);
int rados_break_args(struct wt_bytes *out, const struct rados_locker *locker);
int rados_lock_info_args(struct wt_bytes *out);
/* The first holder in get_info's answer; *held: there is one. 0 or WT_ECORRUPT. */
int rados_lock_info(const void *bytes, size_t len, struct rados_locker *locker, bool *held);

#endif
