/*
 * npy files: one file, one sample, of any shape and numeric dtype.
 *
 * Happy path: the header is parsed from the first 64 KiB, the file's size is compared with what the
 * header says, the elements are read once and put into C order and little-endian. Failures: object
 * arrays and structured dtypes are refused by the header parser; a file that is too short is named
 * as cut.
 */
#include "core/mem.h"
#include "tools/ingest/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct npy_state {
    int fd;
    struct wt_npy npy;
    uint64_t max_image;
    char path[]; /* for messages */
};

static bool npy_magic(const uint8_t *head, size_t len) {
    return len >= 6 && memcmp(head, "\x93NUMPY", 6) == 0;
}

static int read_at(int fd, void *buf, size_t len, uint64_t off, const char *path, size_t *got,
                   struct wt_err *err) {
    size_t done = 0;
    while (done < len) {
        ssize_t n = pread(fd, (char *)buf + done, len - done, (off_t)(off + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return wt_err_sys(err, errno, "%s: cannot be read", path);
        if (n == 0)
            break;
        done += (size_t)n;
    }
    *got = done;
    return 0;
}

static int read_header(struct npy_state *s, struct wt_err *err) {
    enum { FIRST = 4096 };
    struct stat st;
    if (fstat(s->fd, &st) < 0)
        return wt_err_sys(err, errno, "%s: cannot be examined", s->path);
    if (!S_ISREG(st.st_mode))
        return wt_err_set(err, WT_EFORMAT, "%s: is not a regular file", s->path);
    uint8_t *head = malloc(WT_NPY_HEADER_MAX);
    if (!head)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory for its header", s->path);
    size_t got = 0;
    int rc = read_at(s->fd, head, FIRST, 0, s->path, &got, err);
    if (rc == 0 && got == FIRST && wt_npy_parse(head, got, &s->npy, NULL) < 0) {
        /* A long header: take all that one may have. */
        rc = read_at(s->fd, head, WT_NPY_HEADER_MAX, 0, s->path, &got, err);
    }
    if (rc == 0 && (rc = wt_npy_parse(head, got, &s->npy, err)) < 0)
        wt_err_wrap(err, "%s", s->path);
    free(head);
    if (rc == 0 && s->npy.data_off + s->npy.data_len > (uint64_t)st.st_size)
        rc = wt_err_set(err, WT_ECORRUPT,
                        "%s: is cut: its header promises %llu bytes of elements, %llu are there",
                        s->path, (unsigned long long)s->npy.data_len,
                        (unsigned long long)((uint64_t)st.st_size - s->npy.data_off));
    return rc;
}

static void npy_close(void *state) {
    struct npy_state *s = state;
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}

static int npy_open(const char *path, const struct wt_reader_opts *opts, void **state,
                    struct wt_reader_info *info, struct wt_err *err) {
    struct npy_state *s = wt_calloc(1, sizeof *s + strlen(path) + 1);
    if (!s)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory", path);
    memcpy(s->path, path, strlen(path) + 1);
    s->max_image = opts->max_image;
    s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = s->fd < 0 ? wt_err_sys(err, errno, "%s: cannot be opened", path) : read_header(s, err);
    if (rc < 0) {
        npy_close(s);
        return rc;
    }
    *info = (struct wt_reader_info){.samples = 1, .shape = s->npy.shape, .bytes = s->npy.data_len};
    *state = s;
    return 0;
}

static int npy_read(void *state, uint64_t index, struct wt_image *image, struct wt_err *err) {
    struct npy_state *s = state;
    (void)index;
    size_t len = (size_t)s->npy.data_len, got = 0;
    uint8_t *data;
    int rc = wt_image_add(image, "", &s->npy.shape, s->max_image, &data, err);
    if (rc < 0) {
        wt_err_wrap(err, "%s", s->path);
        return rc;
    }
    uint8_t *raw = data;
    bool direct = !s->npy.fortran && !s->npy.big_endian;
    if (!direct) {
        if (wt_grow(&image->scratch.data, &image->scratch.cap, len + 1, 1) < 0)
            return wt_err_set(err, WT_ENOMEM, "%s: no memory for its elements", s->path);
        raw = image->scratch.data;
    }
    rc = read_at(s->fd, raw, len, s->npy.data_off, s->path, &got, err);
    if (rc == 0 && got != len)
        rc = wt_err_set(err, WT_ECORRUPT, "%s: was cut while it was read", s->path);
    if (rc == 0 && !direct)
        wt_npy_normalize(&s->npy, raw, data);
    return rc;
}

const struct wt_reader_ops wt_reader_npy = {
    .name = "npy",
    .extensions = (const char *const[]){".npy", NULL},
    .magic = npy_magic,
    .open = npy_open,
    .read = npy_read,
    .close = npy_close,
};
