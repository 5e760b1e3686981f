/* Reading the samples of files that scan.c has planned; see ingest.h. */
#include "tools/ingest/ingest.h"

#include "core/mem.h"
#include "tools/ingest/ingest_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct wt_ingest *of(struct wt_source *src) {
    return (struct wt_ingest *)src;
}

struct wt_item *wt_ingest_item(const struct wt_ingest *g, uint64_t sample) {
    size_t low = 0, high = g->items;
    while (high - low > 1) {
        size_t mid = (low + high) / 2;
        if (g->item[mid].first <= sample)
            low = mid;
        else
            high = mid;
    }
    return &g->item[low];
}

static uint64_t ingest_tar_bytes(const struct wt_source *src, uint64_t i) {
    return wt_tar_member(wt_ingest_item((const struct wt_ingest *)src, i)->bytes);
}

static bool ingest_ordered(const struct wt_source *src, uint64_t first, uint64_t count) {
    const struct wt_ingest *g = (const struct wt_ingest *)src;
    const struct wt_item *last = wt_ingest_item(g, first + count - 1);
    for (const struct wt_item *item = wt_ingest_item(g, first); item <= last; item++)
        if (item->ordered)
            return true;
    return false;
}

static int add_meta(const struct wt_ingest *g, const struct wt_item *item, uint64_t index,
                    bool labelled, struct wt_image *image) {
    int rc = wt_image_meta_text(image, "source", item->path + item->root);
    if (rc == 0 && item->ops->label)
        rc = wt_image_meta_int(image, "index", (int64_t)index);
    if (rc == 0 && labelled)
        rc = wt_image_meta_text(image, "label_source", g->label_source);
    if (rc == 0 && item->row) {
        const char *more = wt_label_table_meta(g->table, item->row);
        rc = wt_bytes_add(&image->meta, more, strlen(more));
    }
    if (rc == 0)
        rc = wt_bytes_add(&image->meta, "}", 2); /* with its NUL */
    if (rc == 0)
        image->meta.data[0] = '{'; /* was the first member's comma */
    return rc;
}

static void set_label(const struct wt_ingest *g, const struct wt_item *item, void *state,
                      uint64_t index, struct wt_sample_in *s) {
    s->label = item->label == WT_NAME_NONE ? WT_UNLABELLED : g->classes.number[item->label];
    if (!item->own_labels)
        return;
    char text[16];
    item->ops->label(state, index, &s->label, &s->multihot);
    if (s->label == WT_UNLABELLED)
        return;
    snprintf(text, sizeof text, "%d", s->label);
    s->label = g->classes.number[wt_names_find(&g->classes.seen, text)];
}

static int emit_sample(struct wt_ingest *g, const struct wt_item *item, void *state, uint64_t index,
                       struct wt_image *image, wt_emit_fn emit, void *arg, struct wt_err *err) {
    char key[WT_KEY_MAX];
    struct wt_tensor tensor[WT_MAX_FIELDS];
    int rc = wt_item_key(g, item, index, key, err);
    if (rc < 0)
        return rc;
    for (size_t f = 0; f < image->n_fields; f++)
        tensor[f] = (struct wt_tensor){.name = image->field[f].name,
                                       .shape = image->field[f].shape,
                                       .data = image->field[f].data};
    struct wt_sample_in s = {
        .key = key, .id = wt_sample_id(key), .tensors = tensor, .n_tensors = image->n_fields};
    set_label(g, item, state, index, &s);
    if (add_meta(g, item, index, s.label != WT_UNLABELLED || s.multihot, image) < 0)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory for its metadata", item->path);
    s.json = (const char *)image->meta.data;
    return emit(arg, &s, err);
}

/* An ordered reader stays open between calls; going back opens it again. */
static int open_at(struct wt_ingest *g, struct wt_item *item, uint64_t index, void **state,
                   struct wt_err *err) {
    struct wt_reader_info info;
    if (item->ordered && item->state && item->next == index) {
        *state = item->state;
        return 0;
    }
    if (item->state)
        item->ops->close(item->state);
    item->state = NULL;
    int rc = item->ops->open(item->path, &g->reader, state, &info, err);
    if (rc < 0)
        return rc;
    if (info.samples != item->count || info.bytes != item->bytes) {
        item->ops->close(*state);
        return wt_err_set(err, WT_ECHANGED, "%s: changed while it was packed", item->path);
    }
    if (item->ordered)
        item->state = *state;
    return 0;
}

static void done_at(struct wt_item *item, uint64_t next, void *state) {
    if (!item->ordered) {
        item->ops->close(state);
        return;
    }
    item->next = next;
    if (next == item->count) {
        item->ops->close(item->state);
        item->state = NULL;
    }
}

/* Samples [from, to) of one file. */
static int read_item(struct wt_ingest *g, struct wt_item *item, struct wt_image *image,
                     uint64_t from, uint64_t to, wt_emit_fn emit, void *arg, struct wt_err *err) {
    void *state;
    struct wt_err bad = {0};
    if (open_at(g, item, from, &state, &bad) < 0) {
        *err = bad;
        return item->ordered ? bad.code : wt_ingest_bad(g, item, err);
    }
    int rc = 0;
    uint64_t i = from;
    for (; rc == 0 && i < to; i++) {
        wt_image_reset(image);
        rc = item->ops->read(state, i, image, &bad);
        if (rc == 0) {
            rc = emit_sample(g, item, state, i, image, emit, arg, err);
        } else {
            *err = bad;
            if (!item->ordered)
                rc = wt_ingest_bad(g, item, err);
        }
    }
    done_at(item, rc == 0 ? i : UINT64_MAX, state);
    return rc;
}

static int ingest_read(struct wt_source *src, struct wt_image *image, uint64_t first,
                       uint64_t count, wt_emit_fn emit, void *arg, struct wt_err *err) {
    struct wt_ingest *g = of(src);
    struct wt_item *item = wt_ingest_item(g, first);
    int rc = 0;
    for (uint64_t at = first; rc == 0 && at < first + count; item++) {
        uint64_t from = at - item->first;
        uint64_t to =
            first + count - item->first < item->count ? first + count - item->first : item->count;
        rc = read_item(g, item, image, from, to, emit, arg, err);
        at = item->first + to;
    }
    return rc;
}

static const struct wt_source_ops ingest_ops = {
    .tar_bytes = ingest_tar_bytes,
    .ordered = ingest_ordered,
    .read = ingest_read,
};

int wt_ingest_open(const struct wt_ingest_opts *opts, struct wt_ingest **out, struct wt_err *err) {
    struct wt_ingest *g = wt_calloc(1, sizeof *g);
    if (!g)
        return wt_err_set(err, WT_ENOMEM, "no memory to plan the pack");
    g->opts = *opts;
    g->source.ops = &ingest_ops;
    pthread_mutex_init(&g->lock, NULL);
    int rc = wt_ingest_scan(g, err);
    if (rc < 0)
        wt_ingest_close(g);
    else
        *out = g;
    return rc;
}

struct wt_source *wt_ingest_source(struct wt_ingest *g) {
    return &g->source;
}

void wt_ingest_report(struct wt_ingest *g, struct wt_ingest_report *report) {
    pthread_mutex_lock(&g->lock);
    *report = g->report;
    pthread_mutex_unlock(&g->lock);
}

void wt_ingest_close(struct wt_ingest *g) {
    if (!g)
        return;
    for (size_t i = 0; i < g->items; i++) {
        if (g->item[i].state)
            g->item[i].ops->close(g->item[i].state);
        free(g->item[i].path);
    }
    free(g->item);
    wt_idmap_free(&g->ids);
    wt_classes_free(&g->classes);
    wt_label_table_close(g->table);
    pthread_mutex_destroy(&g->lock);
    free(g);
}
