/* `wafertier gen`: a synthetic data set; the pictures are in gen/. */
#include "tools/gen/gen.h"
#include "core/bytes.h"
#include "tools/daemon.h"
#include "tools/packer.h"
#include "tools/stop.h"
#include "tools/summary.h"
#include "tools/verb.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct gen_args {
    struct wt_target_opts target;
    struct wt_pack_opts pack;
    uint64_t size, samples, seed, lots, wafers;
    const char *shape;
    int kind, dtype, sidecars;
    bool unlabelled, quiet;
};

static const struct wt_arg args[] = {
    {.name = "dataset",
     .letter = 'd',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct gen_args, pack.dataset),
     .value = "NAME",
     .help = "name of the data set: small letters, digits, '.', '_' and '-'"},
    WT_TARGET_ARGS(struct gen_args, target, "to"),
    {.name = "kind",
     .type = WT_ARG_CHOICE,
     .offset = offsetof(struct gen_args, kind),
     .value = "map|sem",
     .help = "map: grids of good and bad dies in nine patterns; sem: textures as an electron "
             "microscope shows them, with defects"},
    {.name = "shape",
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct gen_args, shape),
     .value = "HxW",
     .help = "height and width of an image (52x52 for map, 512x512 for sem)"},
    {.name = "dtype",
     .type = WT_ARG_CHOICE,
     .offset = offsetof(struct gen_args, dtype),
     .value = "u8|u16",
     .help = "element type"},
    {.name = "samples",
     .letter = 'n',
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct gen_args, samples),
     .value = "N",
     .min = 1,
     .max = 1000000000,
     .help = "how many (1000)"},
    {.name = "size",
     .type = WT_ARG_SIZE,
     .offset = offsetof(struct gen_args, size),
     .value = "SIZE",
     .min = 1,
     .max = UINT64_C(1) << 50,
     .help = "as many as have this many bytes of pixels"},
    {.name = "seed",
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct gen_args, seed),
     .value = "N",
     .help = "the same seed gives the same bytes (0)"},
    {.name = "lots",
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct gen_args, lots),
     .value = "N",
     .min = 1,
     .max = 10000,
     .help = "lots (4)"},
    {.name = "wafers",
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct gen_args, wafers),
     .value = "N",
     .min = 1,
     .max = 100,
     .help = "wafers of a lot (25)"},
    {.name = "unlabelled",
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct gen_args, unlabelled),
     .help = "leave the labels out"},
    {.name = "codec",
     .type = WT_ARG_CHOICE,
     .offset = offsetof(struct gen_args, pack.codec),
     .value = "auto|tar|zstd",
     .help = "plain tar, or tar in zstd frames; auto tries both on a few samples"},
    {.name = "level",
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct gen_args, pack.level),
     .value = "N",
     .min = 1,
     .max = 19,
     .help = "zstd level (3)"},
    {.name = "shard-size",
     .letter = 's',
     .type = WT_ARG_SIZE,
     .offset = offsetof(struct gen_args, pack.shard_size),
     .value = "SIZE",
     .min = 1024,
     .max = UINT64_C(1) << 39,
     .help = "decoded bytes of a shard at most (a 256th of the data, 256KiB to 64MiB)"},
    {.name = "sidecars",
     .type = WT_ARG_CHOICE,
     .offset = offsetof(struct gen_args, sidecars),
     .value = "members|index",
     .help = "labels and metadata as members of the tar too, or in the shard's index alone"},
    {.name = "threads",
     .letter = 'j',
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct gen_args, pack.threads),
     .value = "N",
     .min = 1,
     .max = 256,
     .help = "workers (the processors of this machine)"},
    {.name = "land",
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct gen_args, pack.land),
     .value = "TIER",
     .help = "put the shards into this tier of the configuration, as with pack"},
    {.name = "replace",
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct gen_args, pack.replace),
     .help = "an existing data set gets a new generation"},
    {.name = "quiet",
     .letter = 'q',
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct gen_args, quiet),
     .help = "no progress and no summary"},
};

static bool parse_shape(const char *text, uint32_t *height, uint32_t *width) {
    char *end;
    enum { SIDE_MAX = 1 << 20 };
    unsigned long h = strtoul(text, &end, 10);
    if (end == text || (*end != 'x' && *end != 'X'))
        return false;
    const char *second = end + 1;
    unsigned long w = strtoul(second, &end, 10);
    if (end == second || *end || h == 0 || w == 0 || h > SIDE_MAX || w > SIDE_MAX)
        return false;
    *height = (uint32_t)h;
    *width = (uint32_t)w;
    return true;
}

static int check_args(const struct wt_verb *verb, const struct gen_args *a, size_t operands,
                      struct wt_gen_opts *o) {
    bool sem = a->kind == WT_GEN_SEM;
    *o = (struct wt_gen_opts){.kind = sem ? WT_GEN_SEM : WT_GEN_MAP,
                              .dtype = a->dtype ? WT_DTYPE_U16 : WT_DTYPE_U8,
                              .seed = a->seed,
                              .samples = a->samples ? a->samples : 1000,
                              .lots = (uint32_t)a->lots,
                              .wafers = (uint32_t)a->wafers,
                              .unlabelled = a->unlabelled};
    if (operands)
        return wt_verb_usage(verb, "it takes options only");
    if (!a->pack.dataset)
        return wt_verb_usage(verb, "--dataset NAME is missing");
    if (a->target.url && a->target.config)
        return wt_verb_usage(verb, "--to and --config exclude each other");
    if (a->size && a->samples)
        return wt_verb_usage(verb, "--size and --samples exclude each other");
    if (!parse_shape(a->shape ? a->shape : sem ? "512x512" : "52x52", &o->height, &o->width))
        return wt_verb_usage(verb, "--shape %s: write HEIGHTxWIDTH, like 512x512", a->shape);
    uint64_t bytes = (uint64_t)o->height * o->width * wt_dtype_size(o->dtype);
    if (a->size)
        o->samples = a->size > bytes ? a->size / bytes : 1;
    return -1;
}

static int generate(const struct wt_verb *verb, struct gen_args *a, const struct wt_gen_opts *o,
                    struct wt_err *err) {
    struct wt_stop stop = {.fd = -1};
    struct wt_progress progress = {0};
    struct wt_target target = {0};
    struct wt_gen *gen = NULL;
    struct wt_manifest m = {0};
    a->pack.stopped = wt_stop_asked;
    a->pack.stopped_arg = &stop;
    a->pack.progress = &progress;
    a->pack.index_only = a->sidecars == 1;
    int rc = wt_stop_open(&stop, err);
    if (rc == 0)
        rc = wt_target_open(&a->target, &target, err);
    if (rc == 0)
        rc = wt_gen_open(o, &gen, err);
    if (rc == 0) {
        wt_progress_start(&progress, "gen", "samples", o->samples, a->quiet);
        rc = wt_pack_run(wt_gen_source(gen), &target, &a->pack, &m, err);
    }
    if (rc == 0 && !a->quiet)
        wt_summary_print(&m, wt_progress_seconds(&progress));
    if (rc == 0)
        wt_daemon_announce(verb, target.control, m.name);
    wt_manifest_free(&m);
    wt_gen_close(gen);
    wt_target_close(&target);
    wt_stop_close(&stop);
    return rc;
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct gen_args a = {.lots = 4, .wafers = 25};
    struct wt_gen_opts o;
    struct wt_operands operands;
    struct wt_err err = {0};
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    code = check_args(verb, &a, operands.n, &o);
    if (code >= 0)
        return code;
    return generate(verb, &a, &o, &err) < 0 ? wt_verb_fail(verb, &err) : WT_EXIT_OK;
}

const struct wt_verb wt_verb_gen = {
    .name = "gen",
    .summary = "generate a synthetic data set",
    .operands = "",
    .about =
        "Generates wafers: die maps, or images as an electron microscope shows them, with defect "
        "classes in a natural imbalance, "
        "and packs them like `wafertier pack` does. The same seed and options give the same bytes.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
