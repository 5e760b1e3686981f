/*
 * tar: deterministic ustar headers to write, and a careful reader of what others write.
 *
 * The reader walks a tar stream in memory: ustar with prefix, pax `path` and `size`, GNU long
 * names, base-256 sizes. Happy path: wt_tar_iter_init, then wt_tar_next until it returns 0.
 * Failures: WT_ECORRUPT (checksum, cut, nonsense sizes) with the offset in the message,
 * WT_EUNSUPPORTED for sparse files and names over WT_TAR_NAME.
 */
#ifndef WT_CORE_TAR_H
#define WT_CORE_TAR_H

#include "core/err.h"

#include <stddef.h>
#include <stdint.h>

enum {
    WT_TAR_BLOCK = 512,
    WT_TAR_END = 1024,       /* two zero blocks end a tar */
    WT_TAR_NAME_WRITE = 100, /* names that we write are shorter */
    WT_TAR_NAME = 4096,      /* names that we read, with the NUL */
};

/* Bytes up to the next block. */
static inline uint64_t wt_tar_pad(uint64_t size) {
    return (WT_TAR_BLOCK - size % WT_TAR_BLOCK) % WT_TAR_BLOCK;
}

/* The header of a regular file: mode 0644, ids and time 0, so that equal content gives equal bytes.
 * name: 1 to 99 bytes. */
void wt_tar_header(uint8_t out[WT_TAR_BLOCK], const char *name, uint64_t size);

struct wt_tar_entry {
    const char *name;    /* lives until the next call */
    char type;           /* '0' a regular file, else as in the header ('5' a folder...) */
    uint64_t header_off; /* of its first block, extended headers included */
    uint64_t data_off, size;
};

struct wt_tar_iter {
    const uint8_t *data;
    uint64_t len, pos;
    char name[WT_TAR_NAME];
};

void wt_tar_iter_init(struct wt_tar_iter *it, const void *data, uint64_t len);
/* 1: *entry is filled; 0: the end of the archive; negative: an error, and the iterator stays where
 * it is. */
int wt_tar_next(struct wt_tar_iter *it, struct wt_tar_entry *entry, struct wt_err *err);

#endif
