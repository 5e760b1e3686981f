/* `wafertier shards`: where the shards of a data set lie, and when they are needed next. */
#include "tools/daemon.h"
#include "tools/select.h"

#include <inttypes.h>
#include <string.h>

struct shards_args {
    struct wt_daemon_opts daemon;
    const char *tier, *prefix;
    uint64_t limit;
    bool json;
};

static const struct wt_arg args[] = {
    WT_DAEMON_ARGS(struct shards_args, daemon),
    {.name = "tier",
     .letter = 't',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct shards_args, tier),
     .value = "NAME",
     .help = "only those that this tier holds"},
    {.name = "prefix",
     .letter = 'p',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct shards_args, prefix),
     .value = "TEXT",
     .help = "only those whose file name begins so"},
    {.name = "limit",
     .letter = 'n',
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct shards_args, limit),
     .value = "N",
     .help = "not more than so many (all)"},
    {.name = "json",
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct shards_args, json),
     .help = "a JSON object for each shard, one a line"},
};

enum { QUERY = 2048, PAGE = 1000 };

static const char *join(const json_t *list, char *out, size_t size) {
    const json_t *name;
    size_t i, used = 0;
    out[0] = '\0';
    json_array_foreach(list, i, name) {
        if (used < size)
            used += (size_t)snprintf(out + used, size - used, "%s%s", i ? "," : "",
                                     json_string_value(name));
    }
    return out;
}

static void show_shard(const json_t *s) {
    char bytes[WT_SIZE_TEXT], tiers[200], pinned[200], next[WT_SPAN_TEXT] = "-";
    const json_t *use = wt_view(s, "next_use_s");
    const char *to = wt_view_text(s, "moving_to");
    if (json_is_number(use))
        wt_view_span(json_number_value(use), next);
    printf("%8" PRIu64 " %10s %8" PRIu64 " %9.3f %12s  %-16s", wt_view_count(s, "number"),
           wt_view_size(s, "bytes", bytes), wt_view_count(s, "samples"), wt_view_real(s, "heat"),
           next, join(wt_view(s, "tiers"), tiers, sizeof tiers));
    if (join(wt_view(s, "pinned"), pinned, sizeof pinned)[0])
        printf(" pinned in %s", pinned);
    if (to[0])
        printf(" on its way to %s", to);
    if (wt_view_true(s, "set_aside"))
        printf(" set aside");
    putchar('\n');
}

/* Asks page by page; a page begins behind the last number of the one before. */
static int list(struct wt_daemon_link *link, const struct shards_args *a, const char *query,
                struct wt_err *err) {
    uint64_t left = a->limit ? a->limit : UINT64_MAX;
    char path[QUERY + 128], after[32] = "";
    json_t *reply = NULL, *shard;
    while (left > 0) {
        size_t i;
        snprintf(path, sizeof path, "/v1/shards?%s&limit=%d%s", query,
                 left < PAGE ? (int)left : PAGE, after);
        int rc = wt_daemon_call(link, "GET", path, NULL, &reply, err);
        if (rc < 0)
            return rc;
        if (!a->json && !after[0])
            printf("%8s %10s %8s %9s %12s  %s\n", "shard", "size", "samples", "heat", "next use",
                   "tiers");
        json_array_foreach(wt_view(reply, "shards"), i, shard) {
            if (!a->json)
                show_shard(shard);
            else if (json_dumpf(shard, stdout, JSON_COMPACT) == 0)
                putchar('\n');
            left--;
        }
        const json_t *next = wt_view(reply, "next");
        if (!json_is_integer(next) || ferror(stdout))
            left = 0;
        snprintf(after, sizeof after, "&after=%lld", (long long)json_integer_value(next));
        json_decref(reply);
    }
    return 0;
}

static int query_of(const struct shards_args *a, const char *operand, char out[QUERY],
                    struct wt_err *err) {
    int rc = wt_select_query(operand, out, QUERY, err);
    if (rc == 0 && a->tier)
        rc = wt_select_param(out, QUERY, "tier", a->tier, err);
    if (rc == 0 && a->prefix)
        rc = wt_select_param(out, QUERY, "prefix", a->prefix, err);
    return rc;
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct shards_args a = {0};
    struct wt_operands operands;
    struct wt_daemon_link link;
    struct wt_err err = {0};
    char query[QUERY];
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n != 1)
        return wt_verb_usage(verb, "it takes one DATASET[/LOT[/WAFER]]");
    if (query_of(&a, operands.arg[0], query, &err) < 0)
        return wt_verb_usage(verb, "%s", err.text);
    int rc = wt_daemon_open(&a.daemon, &link, &err);
    link.patient = true;
    if (rc == 0)
        rc = list(&link, &a, query, &err);
    wt_daemon_close(&link);
    return rc < 0 ? wt_daemon_fail(verb, &link, &err) : WT_EXIT_OK;
}

const struct wt_verb wt_verb_shards = {
    .name = "shards",
    .summary = "where the shards of a data set lie",
    .operands = "DATASET[/LOT[/WAFER]]",
    .about = "A line for each shard that holds some of it: number, size, samples, heat (reads of "
             "the whole shard, decayed), when a job reads it next by the plans that the daemon "
             "knows, and the tiers that hold it.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
