/* Summaries of data sets; see summary.h. */
#include "tools/summary.h"

#include "core/bytes.h"
#include "tools/ingest/reader.h"

#include <inttypes.h>
#include <stdio.h>

enum { CLASSES_SHOWN = 40 };

static void print_labels(const struct wt_manifest *m) {
    static const char *const kinds[] = {"none", "classes", "multi-hot"};
    printf("labels     %s", kinds[m->label_kind]);
    if (m->label_kind != WT_LABEL_NONE)
        printf(", %u classes, %" PRIu64 " labelled, %" PRIu64 " unlabelled", m->n_classes,
               m->labelled, m->samples - m->labelled);
    putchar('\n');
    for (uint32_t i = 0; i < m->n_classes && i < CLASSES_SHOWN; i++)
        printf("  %-3u %-16s %" PRIu64 "\n", i, m->classes[i], m->class_count[i]);
    if (m->n_classes > CLASSES_SHOWN)
        printf("  and %u more\n", m->n_classes - CLASSES_SHOWN);
}

static void print_fields(const struct wt_manifest *m) {
    for (uint32_t i = 0; i < m->n_fields; i++) {
        const struct wt_field_info *f = &m->field[i];
        char shape[128];
        if (f->shape.ndim == WT_SHAPE_VARIES)
            snprintf(shape, sizeof shape, "%s, shapes differ",
                     f->shape.dtype == WT_DTYPE_NONE ? "several types"
                                                     : wt_dtype_name(f->shape.dtype));
        else
            wt_shape_format(&f->shape, shape, sizeof shape);
        printf("%-10s %s\n", f->name[0] ? f->name : "image", shape);
    }
}

void wt_summary_print(const struct wt_manifest *m, double seconds) {
    char pixels[WT_SIZE_TEXT], tar[WT_SIZE_TEXT], stored[WT_SIZE_TEXT];
    wt_size_format(m->pixel_bytes, pixels);
    wt_size_format(m->tar_bytes, tar);
    wt_size_format(m->stored_bytes, stored);
    printf("data set   %s, generation %" PRIu64 "\n", m->name, m->generation);
    if (m->home[0])
        printf("home       tier %s: landed there, not flushed to cold yet\n", m->home);
    printf("samples    %" PRIu64 " in %" PRIu64 " shards, %u lots, %u wafers\n", m->samples,
           m->shards, m->lots, m->wafers);
    printf("bytes      %s of pixels, %s as tar, %s stored (%.2f stored bytes per byte of pixels)\n",
           pixels, tar, stored,
           m->pixel_bytes ? (double)m->stored_bytes / (double)m->pixel_bytes : 0);
    if (seconds > 0)
        printf("time       %.2f s, %.1f MB/s of pixels, %.0f samples/s\n", seconds,
               (double)m->pixel_bytes / 1e6 / seconds, (double)m->samples / seconds);
    print_fields(m);
    print_labels(m);
}
