/* `wafertier gc`: finds orphans in every tier and removes them; gc/gc.h has how. */
#include "tools/gc/gc.h"
#include "tools/stop.h"
#include "tools/verb.h"

#include <inttypes.h>
#include <stdio.h>

enum { MS = 1000 };

struct gc_args {
    struct wt_target_opts target;
    const char *leases;
    uint64_t grace_ms, young_ms;
    bool dry_run, quiet;
};

static const struct wt_arg args[] = {
    {.name = "dry-run",
     .letter = 'n',
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct gc_args, dry_run),
     .help = "find and print only"},
    {.name = "from",
     .letter = 'u',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct gc_args, target.url),
     .value = "URL",
     .help = "the cold tier alone, file:///PATH or a path"},
    {.name = "config",
     .letter = 'c',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct gc_args, target.config),
     .value = "FILE",
     .help = "all tiers of this configuration; without it and without a URL: $WAFERTIER_CONFIG, "
             "else the installed one"},
    {.name = "leases",
     .letter = 'l',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct gc_args, leases),
     .value = "URL",
     .help = "where loaders keep their leases when they may not write to the cold tier; without it "
             "what the configuration names"},
    {.name = "grace",
     .letter = 'g',
     .type = WT_ARG_TIME,
     .offset = offsetof(struct gc_args, grace_ms),
     .value = "TIME",
     .help = "how long a generation stays after it was replaced (7d)"},
    {.name = "young",
     .letter = 'y',
     .type = WT_ARG_TIME,
     .offset = offsetof(struct gc_args, young_ms),
     .value = "TIME",
     .help = "how long what may belong to a put in progress stays (1d)"},
    {.name = "quiet",
     .letter = 'q',
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct gc_args, quiet),
     .help = "print the sum only"},
};

static int collect(const struct gc_args *a, struct wt_gc *gc, struct wt_target *cold,
                   struct wt_err *err) {
    size_t rest = 0;
    gc->cold = cold;
    gc->tier[0] = cold->tier;
    gc->n_tiers = 1;
    int rc = wt_target_open_rest(&a->target, cold, gc->tier + 1, &rest, err);
    gc->n_tiers += rest;
    if (rc == 0)
        rc = wt_target_open_leases(&a->target, a->leases, cold, err);
    return rc < 0 ? rc : wt_gc_run(gc, a->quiet, err);
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct gc_args a = {.grace_ms = UINT64_C(7) * 86400 * MS, .young_ms = UINT64_C(86400) * MS};
    struct wt_operands operands;
    struct wt_err err = {0};
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n)
        return wt_verb_usage(verb, "it takes options only");
    struct wt_stop stop;
    struct wt_target cold;
    struct wt_gc gc = {.o = {.dry_run = a.dry_run,
                             .grace_s = a.grace_ms / MS,
                             .young_s = a.young_ms / MS,
                             .stopped = wt_stop_asked,
                             .stopped_arg = &stop}};
    int rc = wt_stop_open(&stop, &err);
    if (rc < 0)
        return wt_verb_fail(verb, &err);
    a.target.read_only = a.dry_run;
    rc = wt_target_open(&a.target, &cold, &err);
    if (rc == 0) {
        rc = collect(&a, &gc, &cold, &err);
        wt_gc_free(&gc);
        wt_target_close(&cold);
    }
    wt_stop_close(&stop);
    if (rc < 0)
        return wt_verb_fail(verb, &err);
    return gc.failed || gc.troubles ? WT_EXIT_FAILED : WT_EXIT_OK;
}

const struct wt_verb wt_verb_gc = {
    .name = "gc",
    .summary = "remove what nothing needs any more",
    .operands = "",
    .about =
        "Finds orphans in every tier, prints them (tier, reason, bytes, name) and removes "
        "them: 'temporary' of a put that was killed, 'unnamed' of a pack that was killed "
        "(no manifest names it), 'retired' of a generation that was replaced longer than the "
        "grace time ago and that no job holds, 'copy' in a faster tier of something that the "
        "cold one has no more, 'lease' whose time is over.\n"
        "Jobs hold the generation that they read by leases, in the cold tier or where `leases` "
        "of the configuration says; a job that can write neither is safe within the grace time. A "
        "put or pack in progress is left "
        "alone. It may run at any time, beside the daemon, jobs and packs.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
