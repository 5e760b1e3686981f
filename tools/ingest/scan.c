/*
 * Planning a pack of files: what samples there are, with which labels and keys; see ingest.h. Only
 * headers are read.
 */
#include "core/mem.h"
#include "tools/ingest/ingest_priv.h"
#include "tools/ingest/walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* <sample> of a key: the path below the input without extension, '/' as '~', the index where a file
 * has many. A text that is too long keeps its end, with a hash of all of it in front. */
static int sample_part(const struct wt_item *item, uint64_t index, char *out, size_t size,
                       struct wt_err *err) {
    const char *rel = item->path + item->root;
    size_t n = strlen(rel);
    char tail[32] = "";
    const char *dot = strrchr(rel, '.'), *slash = strrchr(rel, '/');
    if (dot && dot != rel && (!slash || dot > slash + 1))
        n = (size_t)(dot - rel);
    if (item->ops->label || item->count > 1)
        snprintf(tail, sizeof tail, "~%06" PRIu64, index);
    char *text = malloc(n + sizeof tail + 1);
    if (!text)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory", item->path);
    memcpy(text, rel, n);
    snprintf(text + n, sizeof tail + 1, "%s", tail);
    for (char *p = text; *p; p++)
        if (*p == '/')
            *p = '~';
    int rc = wt_key_escape(text, out, size);
    for (const char *p = text; rc < 0 && *p && size > 24; p++) {
        /* 16 digits and '~' in front of as much of the end as fits. */
        int head = snprintf(out, size, "%016" PRIx64 "~", wt_hash64(text, strlen(text)));
        rc = wt_key_escape(p + 1, out + head, size - (size_t)head);
    }
    free(text);
    return rc < 0 ? wt_err_set(err, WT_EINVAL,
                               "%s: no room for its name in a key; give a shorter --lot or --wafer",
                               item->path)
                  : 0;
}

static const char *first_of(const char *a, const char *b, const char *c) {
    return a && a[0] ? a : b && b[0] ? b : c;
}

int wt_item_key(const struct wt_ingest *g, const struct wt_item *item, uint64_t index,
                char key[WT_KEY_MAX], struct wt_err *err) {
    const struct wt_label_row *row = item->row;
    const char *part[2] = {first_of(row ? row->lot : NULL, g->opts.lot, "lot0"),
                           first_of(row ? row->wafer : NULL, g->opts.wafer, "wafer0")};
    size_t at = 0;
    for (int i = 0; i < 2; i++) {
        if (wt_key_escape(part[i], key + at, WT_KEY_MAX - at - 1) < 0)
            return wt_err_set(err, WT_EINVAL, "%s: '%s' is too long a %s", item->path, part[i],
                              i ? "wafer" : "lot");
        at += strlen(key + at);
        key[at++] = '/';
    }
    return sample_part(item, index, key + at, WT_KEY_MAX - at, err);
}

int wt_ingest_bad(struct wt_ingest *g, struct wt_item *item, struct wt_err *err) {
    if (!g->opts.keep_going || err->code == WT_ENOMEM || err->code == WT_ECANCELED)
        return err->code;
    pthread_mutex_lock(&g->lock);
    if (!item || !item->told) { /* a file is read twice when it serves to choose the codec */
        g->report.bad++;
        g->report.files -= item != NULL;
        if (g->opts.note)
            g->opts.note(g->opts.arg, err->text);
    }
    if (item)
        item->told = true;
    pthread_mutex_unlock(&g->lock);
    *err = (struct wt_err){0};
    return 0;
}

/* Class = the first folder below the input. */
static int folder_label(struct wt_ingest *g, struct wt_item *item, struct wt_err *err) {
    const char *rel = item->path + item->root;
    const char *slash = strchr(rel, '/');
    if (!slash)
        return 0;
    char *name = strndup(rel, (size_t)(slash - rel));
    int rc = name ? wt_names_add(&g->classes.seen, name, &item->label) : WT_ENOMEM;
    free(name);
    return rc < 0 ? wt_err_set(err, rc, "%s: no memory for its class", item->path) : 0;
}

static int table_label(struct wt_ingest *g, struct wt_item *item, struct wt_err *err) {
    int rc = wt_label_table_take(g->table, item->path + item->root, &item->row, err);
    if (rc < 0)
        return rc;
    if (!item->row) {
        g->report.unlisted++;
        return 0;
    }
    if (!item->row->label[0])
        return 0;
    if (wt_names_add(&g->classes.seen, item->row->label, &item->label) < 0)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory for its class", item->path);
    return 0;
}

/* The file's own labels: their kind has to be that of the others, and their values are noted. */
static int own_labels(struct wt_ingest *g, struct wt_item *item, void *state,
                      const struct wt_reader_info *info, struct wt_err *err) {
    struct wt_source *src = &g->source;
    if (src->label_kind != WT_LABEL_NONE &&
        (src->label_kind != info->labels || g->n_multihot != info->n_multihot))
        return wt_err_set(err, WT_EFORMAT,
                          "%s: its labels are of another kind than those of the files before",
                          item->path);
    src->label_kind = info->labels;
    g->n_multihot = info->n_multihot;
    item->own_labels = true;
    if (info->labels != WT_LABEL_CLASS)
        return 0;
    for (uint64_t i = 0; i < info->samples; i++) {
        int32_t cls;
        const uint8_t *multihot;
        uint32_t number;
        char text[16];
        item->ops->label(state, i, &cls, &multihot);
        snprintf(text, sizeof text, "%d", cls);
        if (cls != WT_UNLABELLED && wt_names_add(&g->classes.seen, text, &number) < 0)
            return wt_err_set(err, WT_ENOMEM, "%s: no memory for its classes", item->path);
    }
    return 0;
}

static int join_labels(struct wt_ingest *g, struct wt_item *item, void *state,
                       const struct wt_reader_info *info, struct wt_err *err) {
    item->label = WT_NAME_NONE;
    if (g->table)
        return table_label(g, item, err);
    if (g->by_folder)
        return folder_label(g, item, err);
    return info->labels == WT_LABEL_NONE ? 0 : own_labels(g, item, state, info, err);
}

/* Every sample of an item gets a key of its own. */
static int check_keys(struct wt_ingest *g, const struct wt_item *item, struct wt_err *err) {
    for (uint64_t i = 0; i < item->count; i++) {
        char key[WT_KEY_MAX];
        uint64_t old;
        int rc = wt_item_key(g, item, i, key, err);
        if (rc == 0)
            rc = wt_idmap_add(&g->ids, wt_sample_id(key), item->first + i, &old);
        if (rc == 1) {
            const struct wt_item *other = wt_ingest_item(g, old);
            return wt_err_set(
                err, WT_EEXISTS,
                "%s: has the same key as %s: %s; rename one, or tell them apart by lot or wafer",
                item->path, other->path, key);
        }
        if (rc < 0)
            return err->code ? err->code : wt_err_set(err, rc, "no memory for sample ids");
    }
    return 0;
}

/* Header, labels and keys of one file; appended to the items on success. */
static int scan_file(struct wt_ingest *g, char *path, size_t root, struct wt_err *err) {
    struct wt_item item = {.path = path, .root = root, .first = g->source.samples};
    struct wt_reader_info info;
    void *state = NULL;
    int rc = wt_reader_find(path, &item.ops, err);
    if (rc == 0)
        rc = item.ops->open(path, &g->reader, &state, &info, err);
    if (rc < 0)
        return rc;
    item.count = info.samples;
    item.bytes = info.bytes;
    item.ordered = info.ordered;
    if (info.bytes == 0 || info.samples == 0)
        rc = wt_err_set(err, WT_EFORMAT, "%s: has no pixels", path);
    else if (info.bytes > (g->opts.max_image ? g->opts.max_image : WT_IMAGE_MAX))
        rc = wt_err_set(err, WT_ERANGE, "%s: an image of %" PRIu64 " bytes is larger than allowed",
                        path, info.bytes);
    if (rc == 0)
        rc = join_labels(g, &item, state, &info, err);
    if (rc == 0 && wt_grow(&g->item, &g->item_cap, g->items + 1, sizeof *g->item) < 0)
        rc = wt_err_set(err, WT_ENOMEM, "no memory for the list of files");
    if (rc == 0)
        rc = check_keys(g, &item, err);
    item.ops->close(state);
    if (rc < 0)
        return rc;
    g->item[g->items++] = item;
    g->source.samples += item.count;
    g->report.files++;
    g->report.bytes += item.count * item.bytes;
    return 0;
}

static int scan_input(struct wt_ingest *g, const char *input, struct wt_err *err) {
    struct wt_walk walk = {0};
    int rc = wt_walk_input(input, &walk, err);
    for (size_t i = 0; rc == 0 && i < walk.n; i++) {
        if (g->opts.stopped && g->opts.stopped(g->opts.arg)) {
            rc = wt_err_set(err, WT_ECANCELED, "interrupted");
            break;
        }
        bool named_by_user = strcmp(walk.path[i], input) == 0;
        if (!named_by_user && !wt_reader_by_name(walk.path[i])) {
            g->report.ignored++;
            continue;
        }
        size_t before = g->items;
        rc = scan_file(g, walk.path[i], walk.root, err);
        if (rc < 0)
            rc = wt_ingest_bad(g, NULL, err);
        if (g->items > before)
            walk.path[i] = NULL; /* the item owns it */
    }
    wt_walk_free(&walk);
    return rc;
}

static bool is_csv(const char *labels) {
    size_t n = strlen(labels);
    return strchr(labels, '/') || (n > 4 && (strcasecmp(labels + n - 4, ".csv") == 0 ||
                                             strcasecmp(labels + n - 4, ".tsv") == 0));
}

static int choose_labels(struct wt_ingest *g, struct wt_err *err) {
    const char *labels = g->opts.labels;
    g->reader = (struct wt_reader_opts){.images = g->opts.images, .max_image = g->opts.max_image};
    if (!labels) {
        g->label_source = "npz";
        return 0;
    }
    g->by_folder = strcmp(labels, "folders") == 0;
    if (!g->by_folder && !is_csv(labels)) {
        g->label_source = "npz";
        g->reader.labels = labels;
        return 0;
    }
    g->reader.labels = "";
    g->source.label_kind = WT_LABEL_CLASS;
    g->label_source = g->by_folder ? "folder" : "csv";
    return g->by_folder ? 0 : wt_label_table_open(labels, g->opts.label_column, &g->table, err);
}

int wt_ingest_scan(struct wt_ingest *g, struct wt_err *err) {
    int rc = choose_labels(g, err);
    for (size_t i = 0; rc == 0 && i < g->opts.n_inputs; i++)
        rc = scan_input(g, g->opts.inputs[i], err);
    if (rc == 0 && g->source.samples == 0)
        rc = wt_err_set(err, WT_EMISSING,
                        "%s: nothing to pack: no .npy, .npz or .png file that can be read",
                        g->opts.n_inputs ? g->opts.inputs[0] : "");
    if (rc == 0 && g->opts.labels && g->opts.labels[0] && g->source.label_kind == WT_LABEL_NONE)
        rc = wt_err_set(err, WT_EMISSING,
                        "--labels %s: no input has an array of that name; give 'folders', a CSV "
                        "file or an array's name",
                        g->opts.labels);
    if (rc == 0 && g->source.label_kind == WT_LABEL_CLASS)
        rc = wt_classes_number(&g->classes, g->opts.classes, err);
    else if (rc == 0 && g->source.label_kind == WT_LABEL_MULTIHOT)
        rc = wt_classes_multihot(&g->classes, g->opts.classes, g->n_multihot, err);
    if (rc < 0)
        return rc;
    const struct wt_label_row *first;
    g->source.classes = g->classes.name;
    g->source.n_classes = g->classes.n;
    g->report.unused_rows = g->table ? wt_label_table_unused(g->table, &first) : 0;
    wt_idmap_free(&g->ids);
    return 0;
}
