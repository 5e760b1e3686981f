/*
 * npz files: an images array [N, ...] and, where there is one, a labels array: [N] or [N,1]
 * integers (classes; -1 is unlabelled) or [N,C] of 0 and 1 (multi-hot). Sample i is images[i].
 *
 * Happy path: open finds both arrays, reads the images' header and all labels; read streams the
 * images in order, one sample in memory at a time. An array in Fortran order cannot be streamed: it
 * is loaded whole, up to a limit. Failures: the arrays that are there are listed when the wanted
 * one is not; a damaged stream is found at the latest at its last sample, by the zip member's CRC.
 */
#include "core/mem.h"
#include "tools/ingest/npz_labels.h"
#include "tools/ingest/reader.h"
#include "tools/ingest/zip.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORTRAN_MAX (UINT64_C(8) << 30)

struct npz_state {
    struct wt_zip *zip;
    struct wt_zip_stream *images;
    struct wt_npy npy;    /* of the whole images array */
    struct wt_npy sample; /* of one image */
    uint64_t next;        /* the sample that the stream gives next */
    uint64_t max_image;
    uint8_t *whole; /* a Fortran array in C order, else NULL */
    struct wt_npz_labels labels;
    char path[];
};

static bool npz_magic(const uint8_t *head, size_t len) {
    return len >= 4 && (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0);
}

/* "arr_0, arr_1" for messages. */
static void list_arrays(const struct wt_zip *zip, char *out, size_t size) {
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < wt_zip_count(zip) && at < size; i++) {
        const char *name = wt_zip_entry(zip, i)->name;
        int n =
            snprintf(out + at, size - at, "%s%.*s", i ? ", " : "", (int)strcspn(name, "."), name);
        at += n > 0 ? (size_t)n : 0;
    }
}

static const struct wt_zip_entry *find_array(const struct wt_zip *zip, const char *name) {
    char member[300];
    int n = snprintf(member, sizeof member, "%s.npy", name);
    return n < 0 || (size_t)n >= sizeof member ? NULL : wt_zip_find(zip, member);
}

static const struct wt_zip_entry *find_any(const struct wt_zip *zip, const char *const *names) {
    for (; *names; names++) {
        const struct wt_zip_entry *e = find_array(zip, *names);
        if (e)
            return e;
    }
    return NULL;
}

/* The array called `wanted`, or the first of the usual names. *entry NULL: none of those is there.
 */
static int choose(const struct npz_state *s, const char *wanted, const char *const *usual,
                  const char *what, const struct wt_zip_entry **entry, struct wt_err *err) {
    *entry = wanted ? find_array(s->zip, wanted) : find_any(s->zip, usual);
    if (*entry || !wanted)
        return 0;
    char list[200];
    list_arrays(s->zip, list, sizeof list);
    return wt_err_set(err, WT_EMISSING, "%s: has no array '%s' (--%s); it has %s", s->path, wanted,
                      what, list);
}

static int open_array(const struct npz_state *s, const struct wt_zip_entry *e,
                      struct wt_zip_stream **stream, struct wt_npy *npy, struct wt_err *err) {
    uint8_t *head = malloc(WT_NPY_HEADER_MAX);
    if (!head)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory", s->path);
    int rc = wt_zip_stream_open(s->zip, e, stream, err);
    size_t len = e->size < WT_NPY_HEADER_MAX ? (size_t)e->size : WT_NPY_HEADER_MAX;
    /* The header's own length stands in its first 12 bytes: a stream cannot be read ahead and put
     * back. */
    size_t have = len < 12 ? len : 12;
    if (rc == 0)
        rc = wt_zip_stream_read(*stream, head, have, err);
    if (rc == 0 && have == 12) {
        uint64_t want =
            head[6] == 1 ? 10 + (uint64_t)wt_get16(head + 8) : 12 + (uint64_t)wt_get32(head + 8);
        size_t all = want < len ? (size_t)want : len;
        if (all > have) {
            rc = wt_zip_stream_read(*stream, head + have, all - have, err);
            have = all;
        }
    }
    if (rc == 0 && (rc = wt_npy_parse(head, have, npy, err)) < 0)
        wt_err_wrap(err, "%s: %s", s->path, e->name);
    free(head);
    if (rc == 0 && npy->data_off + npy->data_len != e->size)
        rc = wt_err_set(err, WT_ECORRUPT,
                        "%s: %s: its header promises %" PRIu64 " bytes of elements, %" PRIu64
                        " are there",
                        s->path, e->name, npy->data_len, e->size - npy->data_off);
    return rc;
}

static int load_labels(struct npz_state *s, const char *wanted, struct wt_err *err) {
    static const char *const usual[] = {"labels", "y", "label", "arr_1", NULL};
    const struct wt_zip_entry *e;
    if (wanted && !wanted[0])
        return 0;
    int rc = choose(s, wanted, usual, "labels", &e, err);
    if (rc < 0 || !e)
        return rc;
    struct wt_zip_stream *stream = NULL;
    struct wt_npy npy;
    rc = open_array(s, e, &stream, &npy, err);
    if (rc == 0 &&
        (rc = wt_npz_labels_load(&s->labels, stream, &npy, s->npy.shape.dim[0], err)) < 0)
        wt_err_wrap(err, "%s: %s", s->path, e->name);
    wt_zip_stream_close(stream);
    return rc;
}

static int load_whole(struct npz_state *s, struct wt_err *err) {
    if (s->npy.data_len > FORTRAN_MAX)
        return wt_err_set(
            err, WT_EUNSUPPORTED,
            "%s: the images are in Fortran order and too large to turn in memory; save them with "
            "numpy.ascontiguousarray",
            s->path);
    size_t len = (size_t)s->npy.data_len;
    uint8_t *raw = malloc(len + 1);
    s->whole = malloc(len + 1);
    int rc = 0;
    if (!raw || !s->whole)
        rc = wt_err_set(err, WT_ENOMEM, "%s: no memory for images in Fortran order", s->path);
    if (rc == 0)
        rc = wt_zip_stream_read(s->images, raw, len, err);
    if (rc == 0)
        wt_npy_normalize(&s->npy, raw, s->whole);
    free(raw);
    return rc;
}

static int open_images(struct npz_state *s, const char *wanted, struct wt_err *err) {
    static const char *const usual[] = {"images", "x", "data", "arr_0", NULL};
    const struct wt_zip_entry *e;
    char list[200];
    int rc = choose(s, wanted, usual, "images", &e, err);
    if (rc < 0)
        return rc;
    if (!e) {
        list_arrays(s->zip, list, sizeof list);
        return wt_err_set(err, WT_EMISSING,
                          "%s: which array has the images? It has %s; give --images NAME", s->path,
                          list);
    }
    rc = open_array(s, e, &s->images, &s->npy, err);
    if (rc < 0)
        return rc;
    if (s->npy.shape.ndim < 2)
        return wt_err_set(err, WT_EFORMAT, "%s: %s is %s, images need the shape [N, ...]", s->path,
                          e->name, wt_shape_format(&s->npy.shape, list, sizeof list));
    s->sample = s->npy;
    s->sample.fortran = false;
    s->sample.shape.ndim--;
    memmove(s->sample.shape.dim, s->npy.shape.dim + 1,
            s->sample.shape.ndim * sizeof s->sample.shape.dim[0]);
    s->sample.data_off = 0;
    uint64_t bytes;
    if (!wt_shape_bytes(&s->sample.shape, &bytes))
        return wt_err_set(err, WT_ERANGE, "%s: images of %s are too large", s->path,
                          wt_shape_format(&s->sample.shape, list, sizeof list));
    s->sample.data_len = bytes;
    return 0;
}

static void npz_close(void *state) {
    struct npz_state *s = state;
    if (!s)
        return;
    wt_zip_stream_close(s->images);
    wt_zip_close(s->zip);
    wt_npz_labels_free(&s->labels);
    free(s->whole);
    free(s);
}

static int npz_open(const char *path, const struct wt_reader_opts *opts, void **state,
                    struct wt_reader_info *info, struct wt_err *err) {
    struct npz_state *s = wt_calloc(1, sizeof *s + strlen(path) + 1);
    if (!s)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory", path);
    memcpy(s->path, path, strlen(path) + 1);
    s->max_image = opts->max_image;
    int rc = wt_zip_open(path, &s->zip, err);
    if (rc == 0)
        rc = open_images(s, opts->images, err);
    if (rc == 0)
        rc = load_labels(s, opts->labels, err);
    if (rc < 0) {
        npz_close(s);
        return rc;
    }
    *info = (struct wt_reader_info){.samples = s->npy.shape.dim[0],
                                    .shape = s->sample.shape,
                                    .bytes = s->sample.data_len,
                                    .ordered = true,
                                    .labels = s->labels.kind,
                                    .n_multihot = s->labels.n_multihot};
    *state = s;
    return 0;
}

static int npz_read(void *state, uint64_t index, struct wt_image *image, struct wt_err *err) {
    struct npz_state *s = state;
    size_t len = (size_t)s->sample.data_len;
    uint8_t *data;
    if (!s->npy.fortran && index != s->next)
        return wt_err_set(err, WT_EINVAL,
                          "%s: samples come in order: %" PRIu64 " is next, not %" PRIu64, s->path,
                          s->next, index);
    int rc = wt_image_add(image, "", &s->sample.shape, s->max_image, &data, err);
    if (rc == 0 && s->npy.fortran && !s->whole)
        rc = load_whole(s, err);
    if (rc < 0)
        return rc;
    s->next = index + 1;
    if (s->whole) {
        memcpy(data, s->whole + index * len, len);
        return 0;
    }
    if (!s->npy.big_endian)
        return wt_zip_stream_read(s->images, data, len, err);
    if (wt_grow(&image->scratch.data, &image->scratch.cap, len + 1, 1) < 0)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory for an image", s->path);
    rc = wt_zip_stream_read(s->images, image->scratch.data, len, err);
    if (rc == 0)
        wt_npy_normalize(&s->sample, image->scratch.data, data);
    return rc;
}

static void npz_label(void *state, uint64_t index, int32_t *cls, const uint8_t **multihot) {
    const struct npz_state *s = state;
    wt_npz_labels_get(&s->labels, index, cls, multihot);
}

const struct wt_reader_ops wt_reader_npz = {
    .name = "npz",
    .extensions = (const char *const[]){".npz", NULL},
    .magic = npz_magic,
    .open = npz_open,
    .read = npz_read,
    .label = npz_label,
    .close = npz_close,
};
