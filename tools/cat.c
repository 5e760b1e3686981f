/*
 * `wafertier cat`: one sample out of a data set, as an npy file, as raw bytes, or its metadata as
 * JSON.
 *
 * The shard is found by reading index after index; then only the sample's own range is read and
 * checked.
 */
#include "core/mem.h"
#include "tools/progress.h"
#include "tools/target.h"
#include "tools/verb.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct cat_args {
    struct wt_target_opts target;
    const char *field, *output;
    bool raw, json;
};

static const struct wt_arg args[] = {
    WT_TARGET_ARGS(struct cat_args, target, "from"),
    {.name = "field",
     .letter = 'f',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct cat_args, field),
     .value = "NAME",
     .help = "the tensor (image)"},
    {.name = "output",
     .letter = 'o',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct cat_args, output),
     .value = "FILE",
     .help = "where to write it (standard output)"},
    {.name = "raw",
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct cat_args, raw),
     .help = "the elements alone, without an npy header"},
    {.name = "json",
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct cat_args, json),
     .help = "label, metadata and shapes instead of a tensor"},
};

static bool find_in(const struct wt_shard_index *x, const char *key, uint32_t *sample) {
    for (uint32_t i = 0; i < x->samples; i++) {
        if (strcmp(wt_shard_key(x, i), key) != 0)
            continue;
        *sample = i;
        return true;
    }
    return false;
}

static int find_sample(struct wt_target *t, const struct wt_dataset *d, const char *key,
                       struct wt_shard_blob *blob, uint32_t *sample, struct wt_err *err) {
    struct wt_progress progress;
    uint64_t bytes = 0;
    wt_progress_start(&progress, "cat: looking for the key", "shards", d->m.shards, false);
    for (uint64_t s = 0; s < d->m.shards; s++) {
        int rc = wt_target_index(t, d, s, blob, err);
        if (rc < 0) {
            wt_progress_clear(&progress);
            return rc;
        }
        if (find_in(&blob->index, key, sample)) {
            wt_progress_clear(&progress);
            return 0;
        }
        bytes += blob->len;
        wt_shard_blob_free(blob);
        wt_progress_at(&progress, s + 1, bytes);
    }
    wt_progress_clear(&progress);
    return wt_err_set(err, WT_EMISSING, "%s: has no sample '%s'; wafertier ls --samples lists all",
                      d->m.name, key);
}

/* The tar bytes of a span in memory of their own. */
static int decode(const struct wt_shard_index *x, const struct wt_span *span, const uint8_t *stored,
                  uint8_t **tar, struct wt_err *err) {
    struct wt_decoder *decoder = wt_decoder_new();
    uint8_t *out = malloc(span->tar_len ? span->tar_len : 1);
    int rc = decoder && out
                 ? 0
                 : wt_err_set(err, WT_ENOMEM, "no memory for %" PRIu64 " bytes", span->tar_len);
    for (uint32_t f = span->frame_first; rc == 0 && f < span->frame_first + span->n_frames; f++)
        rc = wt_shard_decode_frame(decoder, x, f, stored + (x->frame[f].off - span->off),
                                   out + (x->frame[f].tar_off - span->tar_off), err);
    wt_decoder_free(decoder);
    if (rc < 0)
        free(out);
    else
        *tar = out;
    return rc;
}

/* The tensor's bytes, checked, in *data (free()). */
static int read_tensor(struct wt_target *t, const struct wt_shard_blob *b, uint32_t sample,
                       uint32_t field, uint8_t **data, struct wt_err *err) {
    const struct wt_shard_index *x = &b->index;
    const struct wt_field_ref *ref = wt_shard_ref(x, sample, field);
    struct wt_span span = wt_shard_span(x, sample, 1);
    uint8_t *stored, *tar = NULL;
    int rc = wt_target_range(t, b->name, span.off, (size_t)span.len, &stored, err);
    if (rc < 0)
        return rc;
    if (b->rec.codec == WT_CODEC_ZSTD) {
        rc = decode(x, &span, stored, &tar, err);
        free(stored);
    } else {
        tar = stored;
        rc = wt_shard_verify_field(x, sample, field, tar + (ref->off - span.tar_off), NULL, err);
    }
    if (rc == 0)
        memmove(tar, tar + (ref->off - span.tar_off), (size_t)ref->len);
    if (rc < 0 && tar)
        free(tar);
    else
        *data = tar;
    return rc;
}

static int write_tensor(struct wt_target *t, const struct cat_args *a,
                        const struct wt_shard_blob *b, uint32_t sample, FILE *out,
                        struct wt_err *err) {
    const struct wt_shard_index *x = &b->index;
    const char *name = a->field && strcmp(a->field, "image") != 0 ? a->field : "";
    int field = wt_shard_field(x, name);
    if (field < 0 || wt_shard_ref(x, sample, (uint32_t)field)->shape_id >= x->n_shapes)
        return wt_err_set(err, WT_EMISSING, "%s: has no field '%s'", wt_shard_key(x, sample),
                          a->field ? a->field : "image");
    const struct wt_field_ref *ref = wt_shard_ref(x, sample, (uint32_t)field);
    uint8_t *data;
    char head[WT_NPY_WRITE_MAX];
    int rc = read_tensor(t, b, sample, (uint32_t)field, &data, err);
    if (rc < 0)
        return rc;
    size_t n = a->raw ? 0 : wt_npy_write(&x->shape[ref->shape_id], head);
    if (fwrite(head, 1, n, out) != n || fwrite(data, 1, (size_t)ref->len, out) != ref->len ||
        fflush(out) != 0)
        rc = wt_err_sys(err, errno, "%s: cannot be written",
                        a->output ? a->output : "standard output");
    free(data);
    return rc;
}

static json_t *json_label(const struct wt_manifest *m, const struct wt_shard_index *x, uint32_t i) {
    if (x->label[i] == WT_UNLABELLED)
        return json_null();
    if (m->label_kind != WT_LABEL_MULTIHOT)
        return json_integer(x->label[i]);
    json_t *bits = json_array();
    for (uint32_t c = 0; c < x->n_multihot; c++)
        json_array_append_new(bits, json_integer(x->multihot[(size_t)i * x->n_multihot + c]));
    return bits;
}

static json_t *json_fields(const struct wt_shard_index *x, uint32_t i) {
    json_t *fields = json_object();
    for (uint32_t f = 0; f < x->n_fields; f++) {
        const struct wt_field_ref *ref = wt_shard_ref(x, i, f);
        char shape[128];
        if (ref->shape_id < x->n_shapes)
            json_object_set_new(
                fields, x->field[f][0] ? x->field[f] : "image",
                json_string(wt_shape_format(&x->shape[ref->shape_id], shape, sizeof shape)));
    }
    return fields;
}

static int write_json(const struct wt_manifest *m, const struct wt_shard_blob *b, uint32_t i,
                      FILE *out, struct wt_err *err) {
    const struct wt_shard_index *x = &b->index;
    json_t *root = json_object();
    json_object_set_new(root, "key", json_string(wt_shard_key(x, i)));
    json_object_set_new(root, "id", json_integer((json_int_t)x->id[i]));
    json_object_set_new(root, "label", json_label(m, x, i));
    if (m->label_kind == WT_LABEL_CLASS && x->label[i] >= 0 && (uint32_t)x->label[i] < m->n_classes)
        json_object_set_new(root, "class", json_string(m->classes[x->label[i]]));
    json_object_set_new(root, "fields", json_fields(x, i));
    json_object_set_new(root, "shard", json_string(b->name));
    json_t *meta = x->json_off[i] ? json_loads(x->text + x->json_off[i], 0, NULL) : NULL;
    if (meta)
        json_object_set_new(root, "meta", meta);
    int rc = json_dumpf(root, out, JSON_INDENT(2));
    json_decref(root);
    if (rc < 0 || fputc('\n', out) == EOF || fflush(out) != 0)
        return wt_err_sys(err, errno, "the metadata cannot be written");
    return 0;
}

static int write_out(struct wt_target *t, const struct cat_args *a, const struct wt_manifest *m,
                     const struct wt_shard_blob *b, uint32_t sample, struct wt_err *err) {
    FILE *out = a->output ? fopen(a->output, "wbe") : stdout;
    if (!out)
        return wt_err_sys(err, errno, "%s: cannot be written", a->output);
    int rc = a->json ? write_json(m, b, sample, out, err) : write_tensor(t, a, b, sample, out, err);
    if (out != stdout && fclose(out) != 0 && rc == 0)
        rc = wt_err_sys(err, errno, "%s: cannot be written", a->output);
    return rc;
}

static int cat(const struct cat_args *a, const char *dataset, const char *key, struct wt_err *err) {
    struct wt_target target;
    struct wt_dataset d = {0};
    struct wt_shard_blob blob;
    uint32_t sample = 0;
    int rc = wt_target_open(&a->target, &target, err);
    if (rc < 0)
        return rc;
    rc = wt_target_dataset(&target, dataset, &d, err);
    if (rc == 0 && (rc = find_sample(&target, &d, key, &blob, &sample, err)) == 0) {
        rc = write_out(&target, a, &d.m, &blob, sample, err);
        wt_shard_blob_free(&blob);
    }
    wt_dataset_free(&d);
    wt_target_close(&target);
    return rc;
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct cat_args a = {.target = {.read_only = true}};
    struct wt_operands operands;
    struct wt_err err = {0};
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n != 2)
        return wt_verb_usage(verb, "give a data set and a key");
    return cat(&a, operands.arg[0], operands.arg[1], &err) < 0 ? wt_verb_fail(verb, &err)
                                                               : WT_EXIT_OK;
}

const struct wt_verb wt_verb_cat = {
    .name = "cat",
    .summary = "write one sample as npy, raw bytes or JSON",
    .operands = "DATASET KEY",
    .about = "Finds the sample <lot>/<wafer>/<sample> and writes one of its tensors as an npy "
             "file, checked against its sum.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
