/*
 * One sample on its way into a shard: its tensors in C order and little-endian, and its metadata.
 * The memory is reused from sample to sample, so that a million files cost no million allocations.
 */
#ifndef WT_TOOLS_INGEST_IMAGE_H
#define WT_TOOLS_INGEST_IMAGE_H

#include "core/bytes.h"
#include "core/npy.h"
#include "core/shard.h"

#define WT_IMAGE_MAX (UINT64_C(4) << 30) /* bytes of a tensor, where no other limit is given */

struct wt_image_field {
    char name[WT_FIELD_NAME]; /* "": the image */
    struct wt_shape shape;
    uint8_t *data;
    size_t cap;
};
struct wt_image { /* zero-initialise; free with wt_image_free */
    struct wt_image_field field[WT_MAX_FIELDS];
    size_t n_fields;
    struct wt_bytes meta;    /* members of a JSON object, each with a comma in front: `,"page":3` */
    struct wt_bytes scratch; /* a reader's own, for raw bytes before they are put in order */
};
/* Empties an image for the next sample; memory is kept. */
void wt_image_reset(struct wt_image *image);
/* Adds a tensor and makes room for it; its bytes are at *data. Refuses what is over `max` bytes. */
int wt_image_add(struct wt_image *image, const char *name, const struct wt_shape *shape,
                 uint64_t max, uint8_t **data, struct wt_err *err);
/* Adds one member to the metadata. */
int wt_image_meta_int(struct wt_image *image, const char *name, int64_t value);
int wt_image_meta_text(struct wt_image *image, const char *name, const char *value);
/* Appends `"text"` with JSON escapes; bytes that are no UTF-8 become U+FFFD. */
int wt_json_text(struct wt_bytes *out, const char *text);
/* Is all of the text UTF-8? */
bool wt_utf8_valid(const char *text);
void wt_image_free(struct wt_image *image);

#endif
