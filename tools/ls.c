/* `wafertier ls`: data sets, their shards, their samples; from manifests and indices alone. */
#include "core/bytes.h"
#include "tools/sets.h"
#include "tools/summary.h"
#include "tools/target.h"
#include "tools/verb.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct ls_args {
    struct wt_target_opts target;
    bool shards, samples, json;
};

static const struct wt_arg args[] = {
    WT_TARGET_ARGS(struct ls_args, target, "from"),
    {.name = "long",
     .letter = 'l',
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct ls_args, shards),
     .help = "a line for each shard"},
    {.name = "samples",
     .letter = 's',
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct ls_args, samples),
     .help = "a line for each sample: key, label, tensors"},
    {.name = "json",
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct ls_args, json),
     .help = "the manifest of the data set, as it is"},
};

/* ---- all data sets ---- */

static void print_dataset(struct wt_target *t, const char *name) {
    struct wt_manifest m = {0};
    struct wt_err err = {0};
    char bytes[WT_SIZE_TEXT];
    int rc = wt_target_manifest(t, name, &m, &err);
    if (rc == WT_EMISSING)
        return; /* a folder of something else, or a pack at work */
    if (rc < 0)
        printf("%-24s damaged: %s\n", name, err.text);
    else
        printf("%-24s %12" PRIu64 " samples %8" PRIu64 " shards %12s  generation %" PRIu64 "%s%s\n",
               name, m.samples, m.shards, wt_size_format(m.stored_bytes, bytes), m.generation,
               m.home[0] ? "  landed in " : "", m.home);
    wt_manifest_free(&m);
}

static int list_datasets(struct wt_target *t, struct wt_err *err) {
    struct wt_set_names names = {0};
    int rc = wt_set_names_list(t, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++)
        print_dataset(t, names.name[i]);
    wt_set_names_free(&names);
    return rc;
}

/* ---- one ---- */

static void print_shards(const struct wt_dataset *d) {
    for (uint64_t s = 0; s < d->m.shards; s++) {
        struct wt_shard_rec rec;
        char name[WT_OBJECT_NAME];
        wt_dataset_rec(d, s, &rec);
        wt_shard_name(d->m.name, s, &rec, name);
        printf("%8" PRIu64 " %6u samples %12" PRIu64 " bytes %12" PRIu64 " decoded  %s\n", s,
               rec.samples, rec.size, rec.tar_size, name);
    }
}

static void print_label(const struct wt_manifest *m, const struct wt_shard_index *x, uint32_t i) {
    if (x->label[i] == WT_UNLABELLED) {
        printf("\t-");
        return;
    }
    if (m->label_kind != WT_LABEL_MULTIHOT) {
        uint32_t c = (uint32_t)x->label[i];
        printf("\t%s", c < m->n_classes ? m->classes[c] : "?");
        return;
    }
    const char *comma = "\t";
    for (uint32_t c = 0; c < x->n_multihot && c < m->n_classes; c++) {
        if (!x->multihot[(size_t)i * x->n_multihot + c])
            continue;
        printf("%s%s", comma, m->classes[c]);
        comma = "+";
    }
    if (comma[0] == '\t')
        printf("\t(no class)");
}

static void print_sample(const struct wt_manifest *m, const struct wt_shard_index *x, uint32_t i) {
    printf("%s", wt_shard_key(x, i));
    print_label(m, x, i);
    for (uint32_t f = 0; f < x->n_fields; f++) {
        const struct wt_field_ref *ref = wt_shard_ref(x, i, f);
        char shape[128];
        if (ref->shape_id >= x->n_shapes)
            continue;
        printf("\t%s%s%s", x->field[f], x->field[f][0] ? ":" : "",
               wt_shape_format(&x->shape[ref->shape_id], shape, sizeof shape));
    }
    putchar('\n');
}

static int print_samples(struct wt_target *t, const struct wt_dataset *d, struct wt_err *err) {
    for (uint64_t s = 0; s < d->m.shards; s++) {
        struct wt_shard_blob blob;
        int rc = wt_target_index(t, d, s, &blob, err);
        if (rc < 0)
            return rc;
        for (uint32_t i = 0; i < blob.index.samples; i++)
            print_sample(&d->m, &blob.index, i);
        wt_shard_blob_free(&blob);
    }
    return 0;
}

static int print_manifest(const struct wt_manifest *m, struct wt_err *err) {
    char *text = wt_manifest_format(m);
    if (!text)
        return wt_err_set(err, WT_ENOMEM, "no memory for the manifest");
    fputs(text, stdout);
    free(text);
    return 0;
}

static int list_one(struct wt_target *t, const struct ls_args *a, const char *name,
                    struct wt_err *err) {
    struct wt_dataset d = {0};
    int rc = wt_target_dataset(t, name, &d, err);
    if (rc < 0)
        return rc;
    if (a->json)
        rc = print_manifest(&d.m, err);
    else if (!a->shards && !a->samples)
        wt_summary_print(&d.m, 0);
    if (a->shards)
        print_shards(&d);
    if (a->samples)
        rc = print_samples(t, &d, err);
    wt_dataset_free(&d);
    return rc;
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct ls_args a = {.target = {.read_only = true}};
    struct wt_operands operands;
    struct wt_err err = {0};
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n > 1)
        return wt_verb_usage(verb, "give one data set, or none to list all");
    if (operands.n == 0 && (a.shards || a.samples || a.json))
        return wt_verb_usage(verb, "of which data set?");
    struct wt_target target;
    int rc = wt_target_open(&a.target, &target, &err);
    if (rc == 0) {
        rc = operands.n ? list_one(&target, &a, operands.arg[0], &err)
                        : list_datasets(&target, &err);
        wt_target_close(&target);
    }
    return rc < 0 ? wt_verb_fail(verb, &err) : WT_EXIT_OK;
}

const struct wt_verb wt_verb_ls = {
    .name = "ls",
    .summary = "list data sets, shards or samples",
    .operands = "[DATASET]",
    .about = "Without a data set: all of the tier, a line each. With one: what it is; its shards "
             "with --long, its samples with --samples "
             "(key, label or '-' for unlabelled, tensors). Only manifests and indices are read.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
