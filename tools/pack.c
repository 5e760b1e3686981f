/* `wafertier pack`: files into a data set. The work is done by ingest/ (what is read) and packer.h
 * (what is written). */
#include "core/bytes.h"
#include "tools/daemon.h"
#include "tools/ingest/ingest.h"
#include "tools/packer.h"
#include "tools/stop.h"
#include "tools/summary.h"
#include "tools/verb.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

struct pack_args {
    struct wt_target_opts target;
    struct wt_pack_opts pack;
    struct wt_ingest_opts ingest;
    int sidecars; /* 0 members, 1 index */
    bool quiet;
};

static const struct wt_arg args[] = {
    {.name = "dataset",
     .letter = 'd',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct pack_args, pack.dataset),
     .value = "NAME",
     .help = "name of the data set: small letters, digits, '.', '_' and '-'"},
    WT_TARGET_ARGS(struct pack_args, target, "to"),
    {.name = "labels",
     .letter = 'l',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct pack_args, ingest.labels),
     .value = "FROM",
     .help = "'folders': the first folder below the input is the class; FILE.csv: a table with the "
             "columns file and label, and lot, "
             "wafer and more if you like; NAME: the labels array of npz files (without it labels, "
             "y, label or arr_1)"},
    {.name = "label-column",
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct pack_args, ingest.label_column),
     .value = "NAME",
     .help = "the CSV's column of labels (label)"},
    {.name = "classes",
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct pack_args, ingest.classes),
     .value = "A,B,C",
     .help = "the classes in order: the first is number 0. Without it whole numbers keep their "
             "value and names are sorted"},
    {.name = "images",
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct pack_args, ingest.images),
     .value = "NAME",
     .help = "the images array of npz files (without it images, x, data or arr_0)"},
    {.name = "lot",
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct pack_args, ingest.lot),
     .value = "NAME",
     .help = "lot of samples whose lot is not in the CSV (lot0)"},
    {.name = "wafer",
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct pack_args, ingest.wafer),
     .value = "NAME",
     .help = "wafer of samples whose wafer is not in the CSV (wafer0)"},
    {.name = "codec",
     .type = WT_ARG_CHOICE,
     .offset = offsetof(struct pack_args, pack.codec),
     .value = "auto|tar|zstd",
     .help = "plain tar, or tar in zstd frames; auto tries both on a few samples and takes zstd "
             "where it saves a quarter"},
    {.name = "level",
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct pack_args, pack.level),
     .value = "N",
     .min = 1,
     .max = 19,
     .help = "zstd level (3)"},
    {.name = "shard-size",
     .letter = 's',
     .type = WT_ARG_SIZE,
     .offset = offsetof(struct pack_args, pack.shard_size),
     .value = "SIZE",
     .min = 1024,
     .max = UINT64_C(1) << 39,
     .help = "decoded bytes of a shard at most, but one sample at least (a 256th of the data, "
             "256KiB to 64MiB)"},
    {.name = "sidecars",
     .type = WT_ARG_CHOICE,
     .offset = offsetof(struct pack_args, sidecars),
     .value = "members|index",
     .help = "members: labels and metadata are members of the tar too, for other programs; index: "
             "in the shard's index alone, which is smaller"},
    {.name = "max-image",
     .type = WT_ARG_SIZE,
     .offset = offsetof(struct pack_args, ingest.max_image),
     .value = "SIZE",
     .min = 1,
     .max = UINT64_C(1) << 38,
     .help = "larger decoded images are refused (4GiB)"},
    {.name = "threads",
     .letter = 'j',
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct pack_args, pack.threads),
     .value = "N",
     .min = 1,
     .max = 256,
     .help = "workers that read and compress (the processors of this machine)"},
    {.name = "replace",
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct pack_args, pack.replace),
     .help = "an existing data set gets a new generation; running jobs stay on theirs"},
    {.name = "land",
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct pack_args, pack.land),
     .value = "TIER",
     .help =
         "put the shards into this tier of the configuration instead of the cold one, up to its "
         "land_max; the daemon, or 'wafertier flush', brings them to cold afterwards"},
    {.name = "keep-going",
     .letter = 'k',
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct pack_args, ingest.keep_going),
     .help = "leave bad files out, name and count them, and exit with 1 at the end"},
    {.name = "quiet",
     .letter = 'q',
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct pack_args, quiet),
     .help = "no progress and no summary"},
};

struct notes {
    struct wt_progress *progress;
    struct wt_stop *stop;
};

static void print_note(void *arg, const char *line) {
    struct notes *n = arg;
    wt_progress_clear(n->progress);
    fprintf(stderr, "wafertier pack: left out: %s\n", line);
}

static bool asked_to_stop(void *arg) {
    return wt_stop_asked(((struct notes *)arg)->stop);
}

static void print_files(const struct wt_ingest_report *r) {
    printf("files      %" PRIu64 " packed", r->files);
    if (r->ignored)
        printf(", %" PRIu64 " others ignored", r->ignored);
    if (r->bad)
        printf(", %" PRIu64 " bad left out", r->bad);
    if (r->unlisted)
        printf(", %" PRIu64 " not in the label table", r->unlisted);
    if (r->unused_rows)
        printf(", %" PRIu64 " rows of the label table without a file", r->unused_rows);
    putchar('\n');
}

static int pack_to(const struct wt_verb *verb, struct pack_args *a, struct wt_ingest *ingest,
                   struct wt_target *target, struct wt_progress *progress, struct wt_err *err) {
    struct wt_manifest m = {0};
    struct wt_ingest_report report;
    struct wt_source *source = wt_ingest_source(ingest);
    wt_progress_start(progress, "pack", "samples", source->samples, a->quiet);
    int rc = wt_pack_run(source, target, &a->pack, &m, err);
    if (rc < 0)
        return rc;
    wt_ingest_report(ingest, &report);
    if (!a->quiet) {
        wt_summary_print(&m, wt_progress_seconds(progress));
        print_files(&report);
    }
    wt_daemon_announce(verb, target->control, m.name);
    wt_manifest_free(&m);
    if (report.bad == 0)
        return 0;
    return wt_err_set(err, WT_EFORMAT, "%" PRIu64 " bad files were left out; all else is packed",
                      report.bad);
}

static int check_args(const struct wt_verb *verb, const struct pack_args *a, size_t inputs) {
    if (inputs == 0)
        return wt_verb_usage(verb, "which files? Give folders, .npy, .npz or .png files");
    if (!a->pack.dataset)
        return wt_verb_usage(verb, "--dataset NAME is missing");
    if (a->pack.land && (a->target.url || a->target.tier))
        return wt_verb_usage(verb,
                             "--land takes the tiers of a configuration, the manifest goes to "
                             "the cold one: give neither --to nor --tier");
    if (a->target.url && a->target.config)
        return wt_verb_usage(verb, "--to and --config exclude each other");
    return -1;
}

static int pack(const struct wt_verb *verb, struct pack_args *a, struct wt_err *err) {
    struct wt_stop stop = {.fd = -1};
    struct wt_progress progress = {0};
    struct notes notes = {&progress, &stop};
    struct wt_target target = {0};
    struct wt_ingest *ingest = NULL;
    a->ingest.stopped = a->pack.stopped = asked_to_stop;
    a->ingest.note = print_note;
    a->ingest.arg = a->pack.stopped_arg = &notes;
    a->pack.progress = &progress;
    a->pack.index_only = a->sidecars == 1;
    int rc = wt_stop_open(&stop, err);
    if (rc == 0)
        rc = wt_target_open(&a->target, &target, err);
    if (rc == 0)
        rc = wt_ingest_open(&a->ingest, &ingest, err);
    if (rc == 0)
        rc = pack_to(verb, a, ingest, &target, &progress, err);
    wt_ingest_close(ingest);
    wt_target_close(&target);
    wt_stop_close(&stop);
    return rc;
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct pack_args a = {0};
    struct wt_operands operands;
    struct wt_err err = {0};
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    code = check_args(verb, &a, operands.n);
    if (code >= 0)
        return code;
    a.ingest.inputs = operands.arg;
    a.ingest.n_inputs = operands.n;
    return pack(verb, &a, &err) < 0 ? wt_verb_fail(verb, &err) : WT_EXIT_OK;
}

const struct wt_verb wt_verb_pack = {
    .name = "pack",
    .summary = "pack image files into a data set of shards",
    .operands = "INPUT...",
    .about = "Packs the .npy, .npz and .png files of the inputs (files, or folders with all that "
             "is below them) into a data set. Each "
             "sample gets a key <lot>/<wafer>/<sample>. Nothing is visible before everything is "
             "written; an interrupted pack takes back "
             "what it wrote.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
