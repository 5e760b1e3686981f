/* `wafertier fsck`: compares manifests, objects, copies and the daemon's beliefs; fsck/fsck.h. */
#include "tools/fsck/fsck.h"
#include "tools/sets.h"
#include "tools/stop.h"

#include <inttypes.h>

struct fsck_args {
    struct wt_target_opts target;
    bool data, repair;
};

static const struct wt_arg args[] = {
    {.name = "data",
     .letter = 'd',
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct fsck_args, data),
     .help = "read every copy in every tier, and compare its content hash"},
    {.name = "repair",
     .letter = 'r',
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct fsck_args, repair),
     .help = "remove damaged copies, put missing or damaged cold objects anew from a right copy; "
             "the daemon has to be stopped"},
    {.name = "from",
     .letter = 'u',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct fsck_args, target.url),
     .value = "URL",
     .help = "the cold tier alone, file:///PATH or a path"},
    {.name = "config",
     .letter = 'c',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct fsck_args, target.config),
     .value = "FILE",
     .help = "all tiers of this configuration; without it and without a URL: $WAFERTIER_CONFIG, "
             "else the installed one"},
};

/* Without a daemon it goes on alone: its state is checked against the tiers when it starts. */
static int meet_daemon(struct wt_fsck *f, const char *config, struct wt_daemon_link *link,
                       struct wt_err *err) {
    struct wt_err why = {0};
    if (!f->cold->control[0]) /* none is configured, or a URL was given */
        return 0;
    int rc = wt_daemon_open(&(struct wt_daemon_opts){.config = config}, link, &why);
    if (rc == 0)
        rc = wt_daemon_call(link, "GET", "/healthz", NULL, NULL, &why);
    if (rc < 0) {
        printf("what the daemon knows is not compared: %s\n", why.text);
        return 0;
    }
    f->daemon = link;
    if (f->o.repair)
        return wt_err_set(err, WT_EBUSY,
                          "the daemon answers on %s, and would move what is repaired: stop it "
                          "(systemctl stop wafertierd), and again",
                          f->cold->control);
    return 0;
}

static int check_all(struct wt_fsck *f, const struct wt_operands *given, struct wt_err *err) {
    struct wt_set_names names = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < given->n; i++)
        rc = wt_fsck_set(f, given->arg[i], err);
    if (given->n)
        return rc;
    rc = wt_set_names_list(f->cold, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        char key[WT_OBJECT_NAME];
        uint64_t size;
        wt_manifest_name(names.name[i], key);
        if (wt_sync_stat(f->cold->sync, f->cold->tier, key, &size, NULL) != WT_EMISSING)
            rc = wt_fsck_set(f, names.name[i], err); /* else a pack at work, or something else */
    }
    wt_set_names_free(&names);
    return rc;
}

static void print_sum(const struct wt_fsck *f) {
    char bytes[WT_SIZE_TEXT];
    uint64_t found = 0;
    for (int w = 0; w < WT_FSCK_WHATS; w++)
        found += f->found[w];
    printf("%" PRIu64 " data sets, %" PRIu64 " shards, %" PRIu64 " objects; ", f->sets, f->shards,
           f->copies);
    if (f->read_bytes)
        printf("%s read; ", wt_size_format(f->read_bytes, bytes));
    printf(found ? "%" PRIu64 " things are wrong" : "all agrees", found);
    if (f->o.repair)
        printf("; %" PRIu64 " repaired", f->repaired);
    if (f->hopeless)
        printf(", %" PRIu64 " cannot be", f->hopeless);
    putchar('\n');
}

/* What is left wrong; `lost` and `unknown` are the daemon's to mend, and so no reason to worry for
 * long, but still wrong. */
static bool clean(const struct wt_fsck *f) {
    uint64_t found = 0;
    for (int w = 0; w < WT_FSCK_WHATS; w++)
        found += f->found[w];
    return f->troubles == 0 && f->hopeless == 0 && found <= f->repaired;
}

static int check(const struct fsck_args *a, struct wt_fsck *f, const struct wt_operands *given,
                 struct wt_err *err) {
    struct wt_daemon_link link = {0};
    struct wt_target cold;
    size_t rest = 0;
    int rc = wt_target_open(&a->target, &cold, err);
    if (rc < 0)
        return rc;
    f->cold = &cold;
    f->tier[0] = cold.tier;
    f->n_tiers = 1;
    rc = wt_target_open_rest(&a->target, &cold, f->tier + 1, &rest, err);
    f->n_tiers += rest;
    if (rc == 0)
        rc = meet_daemon(f, a->target.config, &link, err);
    if (rc == 0 && a->repair)
        rc = wt_fsck_lock(f, err);
    if (rc == 0)
        rc = check_all(f, given, err);
    wt_fsck_unlock(f);
    wt_daemon_close(&link);
    wt_target_close(&cold);
    if (rc == 0)
        print_sum(f);
    return rc;
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct fsck_args a = {0};
    struct wt_operands operands;
    struct wt_err err = {0};
    struct wt_stop stop;
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    a.target.read_only = !a.repair;
    struct wt_fsck f = {
        .o = {.data = a.data, .repair = a.repair, .stopped = wt_stop_asked, .stopped_arg = &stop}};
    int rc = wt_stop_open(&stop, &err);
    if (rc < 0)
        return wt_verb_fail(verb, &err);
    rc = check(&a, &f, &operands, &err);
    wt_stop_close(&stop);
    if (rc < 0)
        return wt_verb_fail(verb, &err);
    return clean(&f) ? WT_EXIT_OK : WT_EXIT_FAILED;
}

const struct wt_verb wt_verb_fsck = {
    .name = "fsck",
    .summary = "does what lies in the tiers agree with what is said about it?",
    .operands = "[DATASET...]",
    .about =
        "For each data set (without names: all): reads the manifest and the index, lists every "
        "tier, and prints what does not agree, as tier, finding, object: 'missing', cold has it "
        "not; 'size', 'corrupt', the object is damaged (its bytes are read with --data alone); "
        "'lost', the daemon believes in a copy that is not there; 'unknown', it does not know of "
        "one that is. The last two mend themselves: reads fall through, and the daemon looks after "
        "its copies in the background. A copy is never believed because of where it lies: what is "
        "repaired is repaired from one that was read and has the right content hash. Leftovers "
        "that nothing needs are wafertier gc's. Exit status 0: all agrees, or was repaired.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
