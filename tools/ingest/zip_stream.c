/*
 * A member of a zip archive as a stream of bytes; see zip.h.
 *
 * Happy path: 256 KiB of the archive are read at a time and copied or inflated straight into the
 * caller's buffer; the CRC-32 runs along and is compared when the member's last byte has been
 * given. Failures: as in zip.h. A deflated member that goes on after its declared size, or ends
 * before it, is damaged.
 */
#include "core/bytes.h"
#include "core/mem.h"
#include "tools/ingest/zip_file.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { WINDOW = 256 << 10, LOCAL = 30, STORED = 0, DEFLATED = 8, ENCRYPTED = 1 };
/* The most that one deflated byte can become, with room for short members. */
#define DEFLATE_RATIO 1040u

struct wt_zip_stream {
    const struct wt_zip *zip;
    const struct wt_zip_entry *entry;
    uint64_t next, left; /* archive bytes not yet in the window */
    uint64_t to_give;
    uint32_t crc;
    bool inflating; /* z is initialised */
    z_stream z;     /* next_in, avail_in: the window's unread part, for stored members too */
    uint8_t window[WINDOW];
};

static int find_data(struct wt_zip_stream *s, struct wt_err *err) {
    const struct wt_zip *zip = s->zip;
    const struct wt_zip_entry *e = s->entry;
    uint8_t b[LOCAL];
    int rc = wt_zip_pread(zip, b, LOCAL, e->header, err);
    if (rc < 0)
        return rc;
    uint64_t data = e->header + LOCAL + wt_get16(b + 26) + wt_get16(b + 28);
    if (wt_get32(b) != 0x04034b50 || data > zip->size || e->stored > zip->size - data)
        return wt_err_set(err, WT_ECORRUPT, "%s: the header of member '%s' is damaged", zip->path,
                          e->name);
    s->next = data;
    s->left = e->stored;
    return 0;
}

static int check_entry(const struct wt_zip *zip, const struct wt_zip_entry *e, struct wt_err *err) {
    if (e->flags & ENCRYPTED)
        return wt_err_set(err, WT_EUNSUPPORTED, "%s: member '%s' is encrypted", zip->path, e->name);
    if (e->method != STORED && e->method != DEFLATED)
        return wt_err_set(
            err, WT_EUNSUPPORTED,
            "%s: member '%s' has compression method %u; stored and deflated can be read", zip->path,
            e->name, e->method);
    bool fits = e->method == STORED ? e->size == e->stored : e->size / DEFLATE_RATIO <= e->stored;
    if (!fits)
        return wt_err_set(err, WT_ECORRUPT,
                          "%s: member '%s' cannot have %llu bytes: %llu are stored", zip->path,
                          e->name, (unsigned long long)e->size, (unsigned long long)e->stored);
    return 0;
}

int wt_zip_stream_open(const struct wt_zip *zip, const struct wt_zip_entry *entry,
                       struct wt_zip_stream **out, struct wt_err *err) {
    int rc = check_entry(zip, entry, err);
    if (rc < 0)
        return rc;
    struct wt_zip_stream *s = wt_calloc(1, sizeof *s);
    if (!s)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory", zip->path);
    s->zip = zip;
    s->entry = entry;
    s->to_give = entry->size;
    s->crc = (uint32_t)crc32(0, NULL, 0);
    rc = find_data(s, err);
    if (rc == 0 && entry->method == DEFLATED) {
        s->inflating = inflateInit2(&s->z, -MAX_WBITS) == Z_OK;
        if (!s->inflating)
            rc = wt_err_set(err, WT_ENOMEM, "%s: no memory to inflate", zip->path);
    }
    if (rc < 0)
        wt_zip_stream_close(s);
    else
        *out = s;
    return rc;
}

static int damaged(const struct wt_zip_stream *s, const char *what, struct wt_err *err) {
    return wt_err_set(err, WT_ECORRUPT, "%s: member '%s' %s; make the file again", s->zip->path,
                      s->entry->name, what);
}

static int refill(struct wt_zip_stream *s, struct wt_err *err) {
    if (s->z.avail_in > 0 || s->left == 0)
        return 0;
    size_t n = s->left < WINDOW ? (size_t)s->left : WINDOW;
    int rc = wt_zip_pread(s->zip, s->window, n, s->next, err);
    if (rc < 0)
        return rc;
    s->next += n;
    s->left -= n;
    s->z.next_in = s->window;
    s->z.avail_in = (uInt)n;
    return 0;
}

static size_t copy_stored(struct wt_zip_stream *s, uint8_t *out, size_t len) {
    size_t n = len < s->z.avail_in ? len : s->z.avail_in;
    memcpy(out, s->z.next_in, n);
    s->z.next_in += n;
    s->z.avail_in -= (uInt)n;
    return n;
}

/* One step towards `len` bytes at out; *n gets how many came. */
static int step(struct wt_zip_stream *s, uint8_t *out, size_t len, size_t *n, struct wt_err *err) {
    int rc = refill(s, err);
    if (rc < 0)
        return rc;
    if (s->entry->method == STORED) {
        *n = copy_stored(s, out, len);
        return *n ? 0 : damaged(s, "ends too early", err);
    }
    uInt room = len < (1u << 30) ? (uInt)len : 1u << 30;
    s->z.next_out = out;
    s->z.avail_out = room;
    uInt before = s->z.avail_in;
    int code = inflate(&s->z, Z_NO_FLUSH);
    *n = room - s->z.avail_out;
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        return damaged(s, "does not inflate", err);
    if (*n == 0 && (code == Z_STREAM_END || s->z.avail_in == before))
        return damaged(s, "ends too early", err);
    return 0;
}

/* All has been given: nothing may follow, and the sum has to be right. */
static int check_end(struct wt_zip_stream *s, struct wt_err *err) {
    if (s->entry->method == DEFLATED) {
        uint8_t extra;
        int code = Z_OK;
        while (code == Z_OK) {
            int rc = refill(s, err);
            if (rc < 0)
                return rc;
            s->z.next_out = &extra;
            s->z.avail_out = 1;
            code = inflate(&s->z, Z_NO_FLUSH);
            if (s->z.avail_out == 0)
                return damaged(s, "is longer than it says", err);
        }
        if (code != Z_STREAM_END)
            return damaged(s, "does not end", err);
    }
    if (s->crc != s->entry->crc)
        return damaged(s, "has a wrong CRC-32", err);
    return 0;
}

int wt_zip_stream_read(struct wt_zip_stream *s, void *buf, size_t len, struct wt_err *err) {
    if (len > s->to_give)
        return damaged(s, "is shorter than its array", err);
    if (len == 0)
        return 0;
    uint8_t *out = buf;
    size_t done = 0;
    while (done < len) {
        size_t n = 0;
        int rc = step(s, out + done, len - done, &n, err);
        if (rc < 0)
            return rc;
        done += n;
    }
    for (size_t at = 0; at < len;) {
        uInt n = len - at < (1u << 30) ? (uInt)(len - at) : 1u << 30;
        s->crc = (uint32_t)crc32(s->crc, out + at, n);
        at += n;
    }
    s->to_give -= len;
    return s->to_give == 0 ? check_end(s, err) : 0;
}

void wt_zip_stream_close(struct wt_zip_stream *s) {
    if (!s)
        return;
    if (s->inflating)
        inflateEnd(&s->z);
    free(s);
}
