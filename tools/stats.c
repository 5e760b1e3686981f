/* `wafertier stats`: what the daemon counts, as a table or as its own JSON. */
#include "core/bytes.h"
#include "tools/daemon.h"
#include "tools/target.h"
#include "tools/verb.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct stats_args {
    struct wt_target_opts target;
    const char *control;
    bool json;
};

static const struct wt_arg args[] = {
    {.name = "control",
     .letter = 's',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct stats_args, control),
     .value = "ADDRESS",
     .help = "the daemon's socket, unix:/PATH"},
    {.name = "config",
     .letter = 'c',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct stats_args, target.config),
     .value = "FILE",
     .help = "take the socket from this configuration; without it and without --control: "
             "$WAFERTIER_CONFIG, else the installed one"},
    {.name = "json",
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct stats_args, json),
     .help = "the daemon's answer as it is"},
};

static uint64_t count_of(const json_t *o, const char *name) {
    return (uint64_t)json_integer_value(json_object_get(o, name));
}

static const char *size_of(const json_t *o, const char *name, char out[WT_SIZE_TEXT]) {
    return wt_size_format(count_of(o, name), out);
}

static const char *text_of(const json_t *o, const char *name) {
    const char *text = json_string_value(json_object_get(o, name));
    return text ? text : "";
}

static void print_tier(const json_t *t, uint64_t all_reads) {
    char used[WT_SIZE_TEXT], capacity[WT_SIZE_TEXT] = "-", read[WT_SIZE_TEXT];
    const json_t *reported = json_object_get(t, "reported"); /* by the jobs */
    uint64_t reads = count_of(reported, "reads");
    if (count_of(t, "capacity"))
        size_of(t, "capacity", capacity);
    printf("%-8s %-5s %8" PRIu64 " %12s %12s %12" PRIu64 " %6.1f%% %12s\n", text_of(t, "name"),
           json_is_true(json_object_get(t, "down")) ? "down" : "up", count_of(t, "shards"),
           size_of(t, "used", used), capacity, reads,
           all_reads ? 100.0 * (double)reads / (double)all_reads : 0,
           size_of(reported, "bytes", read));
}

static void print_table(const json_t *root) {
    const json_t *tiers = json_object_get(root, "tiers"), *moves = json_object_get(root, "moves");
    const json_t *reads = json_object_get(root, "reads"), *tier;
    char bytes[WT_SIZE_TEXT];
    size_t i;
    uint64_t total = count_of(reads, "total");
    printf("wafertierd %s, up %.0f s, %" PRIu64 " jobs\n\n", text_of(root, "version"),
           json_number_value(json_object_get(root, "uptime_s")), count_of(root, "jobs"));
    printf("%-8s %-5s %8s %12s %12s %12s %7s %12s\n", "tier", "state", "shards", "used", "capacity",
           "reads", "share", "read");
    json_array_foreach(tiers, i, tier) print_tier(tier, total);
    json_array_foreach(tiers, i, tier) if (text_of(tier, "last_error")[0])
        printf("%s: %s\n", text_of(tier, "name"), text_of(tier, "last_error"));
    printf("\nreads  %" PRIu64 " (%" PRIu64 " above cold, %" PRIu64 " from cold)\n", total,
           count_of(reads, "hits"), count_of(reads, "misses"));
    printf("moves  %" PRIu64 " running, %" PRIu64 " queued, %" PRIu64 " done, %" PRIu64
           " failed, %s moved\n",
           count_of(moves, "running"), count_of(moves, "queued"), count_of(moves, "done"),
           count_of(moves, "failed"), size_of(moves, "bytes", bytes));
}

static int print_stats(const char *reply, struct wt_err *err) {
    json_error_t where;
    json_t *root = json_loads(reply, 0, &where);
    if (!json_is_object(root)) {
        json_decref(root);
        return wt_err_set(err, WT_EFORMAT, "the daemon's answer is no JSON object: %s", where.text);
    }
    print_table(root);
    json_decref(root);
    return 0;
}

static int find_control(const struct stats_args *a, char *out, size_t size, struct wt_err *err) {
    struct wt_target target;
    if (a->control) {
        const char *path = strncmp(a->control, "unix:", 5) == 0 ? a->control + 5 : a->control;
        char full[PATH_MAX];
        if (!realpath(path, full))
            return wt_err_sys(err, errno, "%s: no daemon listens there", path);
        int n = snprintf(out, size, "unix:%s", full);
        return n > 0 && (size_t)n < size ? 0 : wt_err_set(err, WT_EINVAL, "%s: is too long", full);
    }
    int rc = wt_target_open(&a->target, &target, err);
    if (rc < 0)
        return rc;
    snprintf(out, size, "%s", target.control);
    wt_target_close(&target);
    return out[0] ? 0 : wt_err_set(err, WT_EINVAL, "the configuration names no control socket");
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct stats_args a = {.target = {.read_only = true}};
    struct wt_operands operands;
    struct wt_err err = {0};
    char control[300];
    char *reply = NULL;
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n)
        return wt_verb_usage(verb, "it takes options only");
    int rc = find_control(&a, control, sizeof control, &err);
    if (rc == 0)
        rc = wt_daemon_get(control, "/v1/stats", &reply, &err);
    if (rc == 0 && a.json)
        puts(reply);
    else if (rc == 0)
        rc = print_stats(reply, &err);
    free(reply);
    return rc < 0 ? wt_verb_fail(verb, &err) : WT_EXIT_OK;
}

const struct wt_verb wt_verb_stats = {
    .name = "stats",
    .summary = "what the daemon counts: tiers, reads, moves",
    .operands = "",
    .about =
        "Asks the daemon for its counters (GET /v1/stats) and prints them as a table, or as JSON.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
