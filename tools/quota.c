/* `wafertier quota`: how much of a tier a data set may take. */
#include "tools/daemon.h"

#include <inttypes.h>
#include <string.h>

struct quota_args {
    struct wt_daemon_opts daemon;
    const char *tier;
    bool json;
};

static const struct wt_arg args[] = {
    WT_DAEMON_ARGS(struct quota_args, daemon),
    {.name = "tier",
     .letter = 't',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct quota_args, tier),
     .value = "NAME",
     .help = "which tier; without it the highest"},
    WT_DAEMON_JSON_ARG(struct quota_args, json),
};

static void show_quota(const json_t *q) {
    char bytes[WT_SIZE_TEXT], used[WT_SIZE_TEXT];
    printf("%-24s %-8s %12s of %s used\n", wt_view_text(q, "dataset"), wt_view_text(q, "tier"),
           wt_view_size(q, "used", used),
           wt_view_count(q, "bytes") ? wt_view_size(q, "bytes", bytes) : "any");
}

static void show_quotas(const json_t *reply) {
    const json_t *list = wt_view(reply, "quotas"), *q;
    size_t i;
    if (json_array_size(list) == 0)
        puts("no data set has a quota");
    json_array_foreach(list, i, q) show_quota(q);
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct quota_args a = {0};
    struct wt_operands operands;
    struct wt_err err = {0};
    uint64_t bytes = 0;
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n == 0)
        return wt_daemon_run(verb, &a.daemon, "GET", "/v1/quotas", NULL, a.json, show_quotas);
    if (operands.n != 2)
        return wt_verb_usage(verb, "it takes a data set and a size, or nothing");
    if (wt_dataset_name_check(operands.arg[0], &err) < 0)
        return wt_verb_usage(verb, "%s", err.text);
    if (strcmp(operands.arg[1], "none") != 0) {
        if (wt_size_parse(operands.arg[1], &bytes, &err) < 0)
            return wt_verb_usage(verb, "%s", err.text);
        if (bytes == 0)
            return wt_verb_usage(verb, "to end a quota give 'none'; to empty a tier, wafertier "
                                       "evict");
    }
    if (bytes > INT64_MAX)
        return wt_verb_usage(verb, "'%s' is more than there can be", operands.arg[1]);
    json_t *body = json_pack("{s:s, s:I, s:s*}", "dataset", operands.arg[0], "bytes",
                             (json_int_t)bytes, "tier", a.tier);
    if (!body)
        return wt_verb_usage(verb, "the name of the tier must be UTF-8");
    return wt_daemon_run(verb, &a.daemon, "POST", "/v1/quota", body, a.json, show_quota);
}

const struct wt_verb wt_verb_quota = {
    .name = "quota",
    .summary = "bound what a data set takes of a tier, or list the bounds",
    .operands = "[DATASET SIZE|none]",
    .about = "The data set gets at most so much of the tier; what is above it leaves, the coldest "
             "first, but for what is pinned. 'none' ends the quota. A restart forgets nothing. "
             "Without operands: prints all quotas.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
