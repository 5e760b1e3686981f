/*
 * Reading zip archives (PKWARE APPNOTE 6.3.10): stored and deflated members, ZIP64, by the central
 * directory; members are streamed, so memory does not grow with them.
 *
 * Happy path: wt_zip_open reads the directory; wt_zip_stream_open begins a member,
 * wt_zip_stream_read gives its bytes in order; when the last byte has been given the CRC-32 has
 * been checked. Failures: WT_EFORMAT: no zip archive; WT_ECORRUPT: offsets, sizes or sums that do
 * not fit the file; WT_EUNSUPPORTED: encrypted members and other methods. Never more than the
 * member's declared size comes out, and a declared size that deflate cannot reach from the bytes at
 * hand is refused at once.
 */
#ifndef WT_TOOLS_INGEST_ZIP_H
#define WT_TOOLS_INGEST_ZIP_H

#include "core/err.h"

#include <stddef.h>
#include <stdint.h>

struct wt_zip_entry {
    const char *name; /* NUL-terminated, owned by the archive */
    uint64_t size;    /* decoded */
    uint64_t stored;  /* in the archive */
    uint64_t header;  /* offset of the local header */
    uint32_t crc;
    uint16_t method; /* 0 stored, 8 deflated */
    uint16_t flags;
};

struct wt_zip;
int wt_zip_open(const char *path, struct wt_zip **out, struct wt_err *err);
void wt_zip_close(struct wt_zip *zip);
size_t wt_zip_count(const struct wt_zip *zip);
const struct wt_zip_entry *wt_zip_entry(const struct wt_zip *zip, size_t i);
/* By name; NULL: there is none. */
const struct wt_zip_entry *wt_zip_find(const struct wt_zip *zip, const char *name);

struct wt_zip_stream;
int wt_zip_stream_open(const struct wt_zip *zip, const struct wt_zip_entry *entry,
                       struct wt_zip_stream **out, struct wt_err *err);
/* Exactly `len` next bytes, or an error (WT_ECORRUPT: the member has fewer). */
int wt_zip_stream_read(struct wt_zip_stream *s, void *buf, size_t len, struct wt_err *err);
void wt_zip_stream_close(struct wt_zip_stream *s);

#endif
