/* `wafertier doctor`: looks at tiers, daemon and machine; doctor/doctor.h has how. */
#include "tools/doctor/doctor.h"

#include "core/mem.h"
#include "tools/target.h"
#include "tools/verb.h"

#include <stdlib.h>

struct doctor_args {
    const char *config, *user;
    uint64_t size, timeout_ms;
    bool json;
};

static const struct wt_arg args[] = {
    {.name = "config",
     .letter = 'c',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct doctor_args, config),
     .value = "FILE",
     .help = "the daemon's or a loader's configuration; without it $WAFERTIER_CONFIG, else the "
             "installed one"},
    {.name = "size",
     .letter = 's',
     .type = WT_ARG_SIZE,
     .offset = offsetof(struct doctor_args, size),
     .value = "BYTES",
     .min = 64 << 10,
     .max = UINT64_C(16) << 30,
     .help = "how large the probe is at most (64MiB); it is smaller where there is little room, or "
             "where it would take more than some seconds"},
    {.name = "timeout",
     .letter = 't',
     .type = WT_ARG_TIME,
     .offset = offsetof(struct doctor_args, timeout_ms),
     .value = "TIME",
     .min = 100,
     .max = 600000,
     .help = "how long a request may take before its bytes (5s); a tier's own timeout holds where "
             "it is shorter"},
    {.name = "user",
     .letter = 'u',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct doctor_args, user),
     .value = "NAME",
     .help = "look as this user, whose rights are then seen (root only); root without it looks as "
             "the owner of the tiers' folders"},
    {.name = "json",
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct doctor_args, json),
     .help = "the report as JSON"},
};

static int print_json(const struct wt_doctor *d, struct wt_err *err) {
    json_t *root = wt_doctor_json(d);
    int rc = root ? json_dumpf(root, stdout, JSON_INDENT(2)) : -1;
    json_decref(root);
    putchar('\n');
    return rc < 0 ? wt_err_set(err, WT_ESYSTEM, "the report could not be written") : 0;
}

static int look(struct wt_doctor *d, const struct doctor_args *a, struct wt_err *err) {
    struct wt_stop stop;
    d->size = a->size;
    d->timeout_ms = a->timeout_ms;
    int rc = wt_target_config(a->config, &d->conf, err);
    if (rc == 0)
        rc = wt_doctor_become(d, a->user, err);
    if (rc == 0)
        rc = wt_stop_open(&stop, err);
    if (rc < 0)
        return rc;
    d->stop = &stop;
    rc = wt_doctor_run(d, err);
    wt_stop_close(&stop);
    if (rc == 0 && a->json)
        rc = print_json(d, err);
    else if (rc == 0)
        wt_doctor_print(d, stdout);
    return rc;
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct doctor_args a = {.size = 64 << 20, .timeout_ms = 5000};
    struct wt_operands operands;
    struct wt_err err = {0};
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n)
        return wt_verb_usage(verb, "it takes options only");
    struct wt_doctor *d = wt_calloc(1, sizeof *d);
    int rc = d ? look(d, &a, &err) : wt_err_set(&err, WT_ENOMEM, "no memory");
    code = rc < 0 ? wt_verb_fail(verb, &err) : d->n_wrong ? WT_EXIT_FAILED : WT_EXIT_OK;
    free(d);
    return code;
}

const struct wt_verb wt_verb_doctor = {
    .name = "doctor",
    .summary = "look at tiers, daemon and machine; say what is wrong and what to do",
    .operands = "",
    .about = "Looks at every tier of a configuration: reaches it, writes a probe object of its own "
             "name, reads it back, compares, removes it; measures the latency of small reads and "
             "the throughput; asks servers for version and settings; looks at rights, capacity "
             "and room. Tiers that are read_only are read only. Then the daemon and its lock, "
             "memory, open files and the clock, and whether a higher tier is the faster one.\n"
             "For each thing that is wrong it says what to do. Exit status 0: all is well, also "
             "with notes; 1: something is wrong.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
