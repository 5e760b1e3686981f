/* Zip archives; see zip.h. The directory is here, members are streamed by zip_stream.c. */
#include "tools/ingest/zip.h"

#include "core/bytes.h"
#include "core/mem.h"
#include "tools/ingest/zip_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    EOCD = 22, /* end of central directory, without its comment */
    EOCD64 = 56,
    LOCATOR64 = 20,
    CENTRAL = 46, /* a directory entry, without name and extra fields */
    COMMENT_MAX = 65535,
    DIRECTORY_MAX = 256 << 20,
};

int wt_zip_pread(const struct wt_zip *zip, void *buf, size_t len, uint64_t off,
                 struct wt_err *err) {
    if (off > zip->size || len > zip->size - off)
        return wt_err_set(err, WT_ECORRUPT, "%s: is cut, or its directory points outside of it",
                          zip->path);
    for (size_t done = 0; done < len;) {
        ssize_t n = pread(zip->fd, (char *)buf + done, len - done, (off_t)(off + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return wt_err_sys(err, errno, "%s: cannot be read", zip->path);
        if (n == 0)
            return wt_err_set(err, WT_ECORRUPT, "%s: was cut while it was read", zip->path);
        done += (size_t)n;
    }
    return 0;
}

struct directory {
    uint64_t off, len, count;
};

/* ZIP64: a locator stands just before the ordinary end record. */
static int read_end64(const struct wt_zip *zip, uint64_t end_off, struct directory *dir,
                      struct wt_err *err) {
    uint8_t b[EOCD64];
    if (end_off < LOCATOR64)
        return wt_err_set(err, WT_ECORRUPT, "%s: the ZIP64 end record is missing", zip->path);
    int rc = wt_zip_pread(zip, b, LOCATOR64, end_off - LOCATOR64, err);
    if (rc < 0)
        return rc;
    if (wt_get32(b) != 0x07064b50)
        return wt_err_set(err, WT_ECORRUPT, "%s: the ZIP64 end record is missing", zip->path);
    rc = wt_zip_pread(zip, b, EOCD64, wt_get64(b + 8), err);
    if (rc < 0)
        return rc;
    if (wt_get32(b) != 0x06064b50)
        return wt_err_set(err, WT_ECORRUPT, "%s: the ZIP64 end record is damaged", zip->path);
    *dir = (struct directory){
        .count = wt_get64(b + 32), .len = wt_get64(b + 40), .off = wt_get64(b + 48)};
    return 0;
}

static int find_directory(const struct wt_zip *zip, struct directory *dir, struct wt_err *err) {
    size_t len = zip->size < EOCD + COMMENT_MAX ? (size_t)zip->size : EOCD + COMMENT_MAX;
    if (len < EOCD)
        return wt_err_set(err, WT_EFORMAT, "%s: is too short to be a zip archive (or is cut)",
                          zip->path);
    uint8_t *tail = malloc(len);
    if (!tail)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory", zip->path);
    int rc = wt_zip_pread(zip, tail, len, zip->size - len, err);
    size_t at = len - EOCD + 1;
    bool found = false;
    while (rc == 0 && !found && at-- > 0)
        found = wt_get32(tail + at) == 0x06054b50 && at + EOCD + wt_get16(tail + at + 20) <= len;
    if (rc == 0 && !found)
        rc = wt_err_set(err, WT_EFORMAT,
                        "%s: has no zip directory: it is no zip archive, or it is cut", zip->path);
    if (rc == 0) {
        const uint8_t *e = tail + at;
        *dir = (struct directory){
            .count = wt_get16(e + 10), .len = wt_get32(e + 12), .off = wt_get32(e + 16)};
        if (dir->count == 0xffff || dir->len == UINT32_MAX || dir->off == UINT32_MAX)
            rc = read_end64(zip, zip->size - len + at, dir, err);
    }
    free(tail);
    return rc;
}

/* Takes the next 8 bytes of the ZIP64 extra field for a value that did not fit 32 bits. */
static bool take64(const uint8_t **p, const uint8_t *end, uint64_t *value) {
    if (*value != UINT32_MAX)
        return true;
    if (end - *p < 8)
        return false;
    *value = wt_get64(*p);
    *p += 8;
    return true;
}

static bool read_extra64(const uint8_t *extra, size_t len, struct wt_zip_entry *e) {
    bool need = e->size == UINT32_MAX || e->stored == UINT32_MAX || e->header == UINT32_MAX;
    const uint8_t *end = extra + len;
    while (end - extra >= 4) {
        uint16_t id = wt_get16(extra), n = wt_get16(extra + 2);
        extra += 4;
        if (n > end - extra)
            return false;
        if (id == 1) {
            const uint8_t *p = extra;
            return take64(&p, extra + n, &e->size) && take64(&p, extra + n, &e->stored) &&
                   take64(&p, extra + n, &e->header);
        }
        extra += n;
    }
    return !need;
}

static int parse_entry(struct wt_zip *zip, const uint8_t **p, const uint8_t *end, size_t *name_at,
                       struct wt_err *err) {
    struct wt_zip_entry *e = &zip->entry[zip->count];
    const uint8_t *c = *p;
    if (end - c < CENTRAL || wt_get32(c) != 0x02014b50)
        return wt_err_set(err, WT_ECORRUPT, "%s: its directory is damaged at entry %zu", zip->path,
                          zip->count);
    size_t name = wt_get16(c + 28), extra = wt_get16(c + 30), comment = wt_get16(c + 32);
    if ((size_t)(end - c) < CENTRAL + name + extra + comment)
        return wt_err_set(err, WT_ECORRUPT, "%s: its directory is damaged at entry %zu", zip->path,
                          zip->count);
    *e = (struct wt_zip_entry){.flags = wt_get16(c + 8),
                               .method = wt_get16(c + 10),
                               .crc = wt_get32(c + 16),
                               .stored = wt_get32(c + 20),
                               .size = wt_get32(c + 24),
                               .header = wt_get32(c + 42)};
    char *text = zip->names + *name_at;
    memcpy(text, c + CENTRAL, name);
    text[name] = '\0';
    *name_at += name + 1;
    e->name = text;
    if (!read_extra64(c + CENTRAL + name, extra, e) || e->header >= zip->size ||
        e->stored > zip->size - e->header)
        return wt_err_set(err, WT_ECORRUPT, "%s: member '%s' lies outside of the file", zip->path,
                          text);
    *p = c + CENTRAL + name + extra + comment;
    zip->count++;
    return 0;
}

static int read_directory(struct wt_zip *zip, struct wt_err *err) {
    struct directory dir = {0};
    int rc = find_directory(zip, &dir, err);
    if (rc < 0)
        return rc;
    if (dir.len > zip->size || dir.len > DIRECTORY_MAX || dir.count > dir.len / CENTRAL)
        return wt_err_set(err, WT_ECORRUPT,
                          "%s: its directory is damaged (%llu entries in %llu bytes)", zip->path,
                          (unsigned long long)dir.count, (unsigned long long)dir.len);
    uint8_t *bytes = malloc((size_t)dir.len + 1);
    /* Names are shorter than their entries, so dir.len has room for them with their NULs. */
    zip->names = malloc((size_t)dir.len + 1);
    zip->entry = wt_calloc((size_t)dir.count, sizeof *zip->entry);
    if (!bytes || !zip->names || !zip->entry)
        rc = wt_err_set(err, WT_ENOMEM, "%s: no memory for its directory", zip->path);
    if (rc == 0)
        rc = wt_zip_pread(zip, bytes, (size_t)dir.len, dir.off, err);
    const uint8_t *p = bytes;
    size_t name_at = 0;
    while (rc == 0 && zip->count < dir.count)
        rc = parse_entry(zip, &p, bytes + dir.len, &name_at, err);
    free(bytes);
    return rc;
}

int wt_zip_open(const char *path, struct wt_zip **out, struct wt_err *err) {
    struct wt_zip *zip = wt_calloc(1, sizeof *zip + strlen(path) + 1);
    if (!zip)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory", path);
    memcpy(zip->path, path, strlen(path) + 1);
    struct stat st;
    int rc = 0;
    zip->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (zip->fd < 0)
        rc = wt_err_sys(err, errno, "%s: cannot be opened", path);
    else if (fstat(zip->fd, &st) < 0)
        rc = wt_err_sys(err, errno, "%s: cannot be examined", path);
    else if (!S_ISREG(st.st_mode))
        rc = wt_err_set(err, WT_EFORMAT, "%s: is not a regular file", path);
    if (rc == 0) {
        zip->size = (uint64_t)st.st_size;
        rc = read_directory(zip, err);
    }
    if (rc < 0)
        wt_zip_close(zip);
    else
        *out = zip;
    return rc;
}

void wt_zip_close(struct wt_zip *zip) {
    if (!zip)
        return;
    if (zip->fd >= 0)
        close(zip->fd);
    free(zip->entry);
    free(zip->names);
    free(zip);
}

size_t wt_zip_count(const struct wt_zip *zip) {
    return zip->count;
}

const struct wt_zip_entry *wt_zip_entry(const struct wt_zip *zip, size_t i) {
    return &zip->entry[i];
}

const struct wt_zip_entry *wt_zip_find(const struct wt_zip *zip, const char *name) {
    for (size_t i = 0; i < zip->count; i++)
        if (strcmp(zip->entry[i].name, name) == 0)
            return &zip->entry[i];
    return NULL;
}
