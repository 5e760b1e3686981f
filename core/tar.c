/* Writing and reading tar headers; see tar.h. */
#include "core/tar.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { /* where the fields of a header lie */
       AT_NAME = 0,
       AT_MODE = 100,
       AT_UID = 108,
       AT_GID = 116,
       AT_SIZE = 124,
       AT_MTIME = 136,
       AT_SUM = 148,
       AT_TYPE = 156,
       AT_MAGIC = 257,
       AT_DEVMAJOR = 329,
       AT_DEVMINOR = 337,
       AT_PREFIX = 345,
       LEN_NAME = 100,
       LEN_SIZE = 12,
       LEN_SUM = 8,
       LEN_PREFIX = 155,
};

/* The sum of all bytes, the sum's own field taken as spaces. Some old tars added signed bytes. */
static void sums(const uint8_t h[WT_TAR_BLOCK], uint32_t *plain, int32_t *with_sign) {
    *plain = 0;
    *with_sign = 0;
    for (int i = 0; i < WT_TAR_BLOCK; i++) {
        uint8_t c = i >= AT_SUM && i < AT_SUM + LEN_SUM ? ' ' : h[i];
        *plain += c;
        *with_sign += (int8_t)c;
    }
}

static void put_size(uint8_t *field, uint64_t size) {
    if (size < UINT64_C(1) << 33) {
        snprintf((char *)field, LEN_SIZE, "%011llo", (unsigned long long)size);
        return;
    }
    memset(field, 0, LEN_SIZE); /* base-256, as GNU and pax write it */
    field[0] = 0x80;
    for (int i = 0; i < 8; i++)
        field[LEN_SIZE - 1 - i] = (uint8_t)(size >> (8 * i));
}

void wt_tar_header(uint8_t out[WT_TAR_BLOCK], const char *name, uint64_t size) {
    memset(out, 0, WT_TAR_BLOCK);
    memcpy(out + AT_NAME, name, strnlen(name, LEN_NAME - 1));
    memcpy(out + AT_MODE, "0000644", 7);
    memcpy(out + AT_UID, "0000000", 7);
    memcpy(out + AT_GID, "0000000", 7);
    put_size(out + AT_SIZE, size);
    memcpy(out + AT_MTIME, "00000000000", 11);
    out[AT_TYPE] = '0';
    memcpy(out + AT_MAGIC, "ustar\00000", 8);
    memcpy(out + AT_DEVMAJOR, "0000000", 7);
    memcpy(out + AT_DEVMINOR, "0000000", 7);
    uint32_t sum;
    int32_t unused;
    sums(out, &sum, &unused);
    snprintf((char *)out + AT_SUM, LEN_SUM, "%06o", sum);
    out[AT_SUM + 7] = ' ';
}

/* ---- reading ---- */

void wt_tar_iter_init(struct wt_tar_iter *it, const void *data, uint64_t len) {
    it->data = data;
    it->len = len;
    it->pos = 0;
    it->name[0] = '\0';
}

/* Octal with spaces and NULs around it, or base-256. */
static bool get_number(const uint8_t *field, int len, uint64_t *value) {
    uint64_t v = 0;
    int i = 0;
    if (field[0] & 0x80) {
        if (field[0] & 0x7f) /* negative, or too large */
            return false;
        for (i = 1; i < len; i++) {
            if (v >> 55)
                return false;
            v = v << 8 | field[i];
        }
        *value = v;
        return true;
    }
    while (i < len && field[i] == ' ')
        i++;
    for (; i < len && field[i] >= '0' && field[i] <= '7'; i++)
        v = v << 3 | (uint64_t)(field[i] - '0'); /* 12 digits: 36 bits */
    for (; i < len; i++)
        if (field[i] != ' ' && field[i] != '\0')
            return false;
    *value = v;
    return true;
}

static bool is_zero(const uint8_t *p, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (p[i])
            return false;
    return true;
}

struct member { /* what one entry's headers have said so far */
    const uint8_t *header;
    uint64_t data_off, size;
    bool has_name, has_size; /* from extended headers */
    uint64_t pax_size;
};

static bool sum_fits(const uint8_t *h) {
    uint64_t stored;
    uint32_t plain;
    int32_t with_sign;
    sums(h, &plain, &with_sign);
    return get_number(h + AT_SUM, LEN_SUM, &stored) &&
           (stored == plain || (int64_t)stored == with_sign);
}

/* Headers that speak about the member after them. */
static bool is_extended(char type) {
    return type == 'L' || type == 'K' || type == 'x' || type == 'g';
}

/* Types whose size field says nothing about data that follows: links, devices, folders, FIFOs. */
static bool has_no_data(char type) {
    return type >= '1' && type <= '6';
}

static int read_header(const struct wt_tar_iter *it, uint64_t pos, struct member *m,
                       struct wt_err *err) {
    if (it->len - pos < WT_TAR_BLOCK)
        return wt_err_set(err, WT_ECORRUPT, "tar is cut at byte %llu: no header, no end",
                          (unsigned long long)pos);
    const uint8_t *h = it->data + pos;
    if (!sum_fits(h))
        return wt_err_set(err, WT_ECORRUPT, "tar header at byte %llu has a wrong checksum",
                          (unsigned long long)pos);
    uint64_t size;
    if (!get_number(h + AT_SIZE, LEN_SIZE, &size))
        return wt_err_set(err, WT_ECORRUPT, "tar header at byte %llu has no readable size",
                          (unsigned long long)pos);
    m->header = h;
    m->data_off = pos + WT_TAR_BLOCK;
    char type = (char)h[AT_TYPE];
    m->size = m->has_size && !is_extended(type) ? m->pax_size : size;
    if (has_no_data(type))
        m->size = 0;
    uint64_t left = it->len - m->data_off;
    if (m->size > left || wt_tar_pad(m->size) > left - m->size)
        return wt_err_set(err, WT_ECORRUPT, "tar is cut: the member at byte %llu has %llu bytes",
                          (unsigned long long)pos, (unsigned long long)m->size);
    return 0;
}

static int set_name(struct wt_tar_iter *it, const uint8_t *text, size_t len, struct wt_err *err) {
    if (len == 0 || memchr(text, '\0', len))
        return wt_err_set(err, WT_ECORRUPT, "tar: an empty name or one with a NUL in it");
    if (len >= sizeof it->name)
        return wt_err_set(err, WT_EUNSUPPORTED, "tar: a name of %zu bytes", len);
    memcpy(it->name, text, len);
    it->name[len] = '\0';
    return 0;
}

static int pax_pair(struct wt_tar_iter *it, struct member *m, const uint8_t *key, size_t key_len,
                    const uint8_t *value, size_t len, struct wt_err *err) {
    if (key_len == 4 && memcmp(key, "path", 4) == 0) {
        m->has_name = true;
        return set_name(it, value, len, err);
    }
    if (key_len > 11 && memcmp(key, "GNU.sparse.", 11) == 0)
        return wt_err_set(err, WT_EUNSUPPORTED, "tar: sparse files are not read");
    if (key_len != 4 || memcmp(key, "size", 4) != 0)
        return 0;
    uint64_t size = 0;
    for (size_t i = 0; i < len; i++) {
        if (value[i] < '0' || value[i] > '9' || size > UINT64_C(1) << 58)
            return wt_err_set(err, WT_ECORRUPT, "tar: a pax size that is no number");
        size = size * 10 + (uint64_t)(value[i] - '0');
    }
    m->has_size = len > 0;
    m->pax_size = size;
    return 0;
}

/* Records "LEN KEY=VALUE\n", LEN counts the whole record. */
static int read_pax(struct wt_tar_iter *it, struct member *m, const uint8_t *p, uint64_t len,
                    struct wt_err *err) {
    while (len > 0) {
        uint64_t whole = 0, digits = 0;
        while (digits < len && digits < 12 && p[digits] >= '0' && p[digits] <= '9')
            whole = whole * 10 + (uint64_t)(p[digits++] - '0');
        if (digits == 0 || digits == len || p[digits] != ' ' || whole > len || whole < digits + 4 ||
            p[whole - 1] != '\n')
            return wt_err_set(err, WT_ECORRUPT, "tar: a garbled pax header");
        const uint8_t *key = p + digits + 1;
        const uint8_t *end = p + whole - 1;
        const uint8_t *eq = memchr(key, '=', (size_t)(end - key));
        if (!eq)
            return wt_err_set(err, WT_ECORRUPT, "tar: a garbled pax header");
        int rc = pax_pair(it, m, key, (size_t)(eq - key), eq + 1, (size_t)(end - eq - 1), err);
        if (rc < 0)
            return rc;
        p += whole;
        len -= whole;
    }
    return 0;
}

/* 1 when the header was an extended one (and is taken in), 0 when it is the member itself. */
static int take_extended(struct wt_tar_iter *it, struct member *m, struct wt_err *err) {
    const uint8_t *data = it->data + m->data_off;
    int rc = 0;
    switch (m->header[AT_TYPE]) {
    case 'L':
        m->has_name = true;
        rc = set_name(it, data, strnlen((const char *)data, m->size), err);
        break;
    case 'x':
        rc = read_pax(it, m, data, m->size, err);
        break;
    case 'g': /* defaults for all members: none that concern us may be in it */
    case 'K': /* a long link target */
        break;
    case 'S':
        return wt_err_set(err, WT_EUNSUPPORTED, "tar: sparse files are not read");
    default:
        return 0;
    }
    return rc < 0 ? rc : 1;
}

/* ustar: prefix "/" name; old GNU headers keep other things where the prefix is. */
static int header_name(struct wt_tar_iter *it, const uint8_t *h, struct wt_err *err) {
    uint8_t full[LEN_PREFIX + 1 + LEN_NAME];
    size_t n = 0;
    if (memcmp(h + AT_MAGIC, "ustar\0", 6) == 0 && h[AT_PREFIX]) {
        n = strnlen((const char *)h + AT_PREFIX, LEN_PREFIX);
        memcpy(full, h + AT_PREFIX, n);
        full[n++] = '/';
    }
    size_t len = strnlen((const char *)h + AT_NAME, LEN_NAME);
    memcpy(full + n, h + AT_NAME, len);
    return set_name(it, full, n + len, err);
}

static int finish(struct wt_tar_iter *it, const struct member *m, struct wt_tar_entry *entry,
                  struct wt_err *err) {
    if (!m->has_name) {
        int rc = header_name(it, m->header, err);
        if (rc < 0)
            return rc;
    }
    char type = (char)m->header[AT_TYPE];
    *entry = (struct wt_tar_entry){
        .name = it->name,
        .type = type == '\0' || type == '7' ? '0' : type,
        .header_off = it->pos,
        .data_off = m->data_off,
        .size = m->size,
    };
    it->pos = m->data_off + m->size + wt_tar_pad(m->size);
    return 1;
}

int wt_tar_next(struct wt_tar_iter *it, struct wt_tar_entry *entry, struct wt_err *err) {
    uint64_t pos = it->pos;
    struct member m = {0};
    if (it->len - pos >= WT_TAR_BLOCK && is_zero(it->data + pos, WT_TAR_BLOCK))
        return 0;
    for (;;) {
        int rc = read_header(it, pos, &m, err);
        if (rc == 0)
            rc = take_extended(it, &m, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            return finish(it, &m, entry, err);
        pos = m.data_off + m.size + wt_tar_pad(m.size);
    }
}
