/* Counting for the manifest; see tally.h. */
#include "tools/tally.h"

#include "core/mem.h"
#include "tools/ingest/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int wt_tally_init(struct wt_tally *t, uint32_t n_classes, bool multihot, struct wt_err *err) {
    *t = (struct wt_tally){.n_classes = n_classes, .multihot = multihot};
    t->class_count = wt_calloc(n_classes, sizeof *t->class_count);
    return t->class_count ? 0 : wt_err_set(err, WT_ENOMEM, "no memory to count classes");
}

static void add_label(struct wt_tally *t, const struct wt_sample_in *s) {
    if (t->multihot && s->multihot) {
        t->labelled++;
        for (uint32_t c = 0; c < t->n_classes; c++)
            t->class_count[c] += s->multihot[c];
    } else if (!t->multihot && s->label >= 0 && (uint32_t)s->label < t->n_classes) {
        t->labelled++;
        t->class_count[s->label]++;
    }
}

static int add_place(struct wt_tally *t, const char *key) {
    const char *slash = strchr(key, '/');
    const char *second = slash ? strchr(slash + 1, '/') : NULL;
    if (!second)
        return 0; /* the shard writer refuses such a key */
    size_t n = (size_t)(second - key);
    if (strncmp(t->last, key, n) == 0 && t->last[n] == '\0')
        return 0;
    uint32_t number;
    snprintf(t->last, sizeof t->last, "%.*s", (int)n, key);
    int rc = wt_names_add(&t->wafers, t->last, &number);
    char lot[WT_KEY_MAX];
    snprintf(lot, sizeof lot, "%.*s", (int)(slash - key), key);
    return rc < 0 ? rc : wt_names_add(&t->lots, lot, &number);
}

static void add_field(struct wt_tally *t, const char *name, const struct wt_shape *shape) {
    uint32_t i = 0;
    while (i < t->n_fields && strcmp(t->field[i].name, name) != 0)
        i++;
    if (i == t->n_fields && i < WT_MAX_FIELDS) {
        snprintf(t->field[i].name, sizeof t->field[i].name, "%s", name);
        t->field[i].shape = *shape;
        t->n_fields++;
    } else if (i < WT_MAX_FIELDS && !wt_shape_equal(&t->field[i].shape, shape)) {
        struct wt_shape *have = &t->field[i].shape;
        enum wt_dtype dtype = have->dtype == shape->dtype ? have->dtype : WT_DTYPE_NONE;
        *have = (struct wt_shape){.dtype = dtype, .ndim = WT_SHAPE_VARIES};
    }
}

int wt_tally_add(struct wt_tally *t, const struct wt_sample_in *s, struct wt_err *err) {
    add_label(t, s);
    for (size_t i = 0; i < s->n_tensors; i++)
        add_field(t, s->tensors[i].name, &s->tensors[i].shape);
    return add_place(t, s->key) < 0 ? wt_err_set(err, WT_ENOMEM, "no memory to count lots") : 0;
}

static int merge_names(struct wt_names *into, const struct wt_names *from) {
    uint32_t number;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < from->n; i++)
        rc = wt_names_add(into, wt_names_get(from, i), &number);
    return rc;
}

int wt_tally_merge(struct wt_tally *into, const struct wt_tally *from, struct wt_err *err) {
    into->labelled += from->labelled;
    for (uint32_t c = 0; c < into->n_classes; c++)
        into->class_count[c] += from->class_count[c];
    for (uint32_t i = 0; i < from->n_fields; i++)
        add_field(into, from->field[i].name, &from->field[i].shape);
    if (merge_names(&into->lots, &from->lots) < 0 || merge_names(&into->wafers, &from->wafers) < 0)
        return wt_err_set(err, WT_ENOMEM, "no memory to count lots");
    return 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct wt_field_info *)a)->name, ((const struct wt_field_info *)b)->name);
}

void wt_tally_finish(struct wt_tally *t, struct wt_manifest *m) {
    qsort(t->field, t->n_fields, sizeof t->field[0], by_name);
    memcpy(m->field, t->field, sizeof m->field);
    m->n_fields = t->n_fields;
    m->labelled = t->labelled;
    m->lots = t->lots.n;
    m->wafers = t->wafers.n;
    m->class_count = t->class_count;
    t->class_count = NULL;
}

void wt_tally_free(struct wt_tally *t) {
    free(t->class_count);
    wt_names_free(&t->lots);
    wt_names_free(&t->wafers);
    *t = (struct wt_tally){0};
}
