/* `wafertier stats`: what the daemon counts, as a table or as its own JSON, once or again and
 * again. */
#include "tools/daemon.h"
#include "tools/stop.h"

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

struct stats_args {
    struct wt_daemon_opts daemon;
    uint64_t interval_ms, number;
    bool json, watch;
};

static const struct wt_arg args[] = {
    WT_DAEMON_ARGS(struct stats_args, daemon),
    {.name = "json",
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct stats_args, json),
     .help = "the daemon's answer as it is; with --watch on one line each time"},
    {.name = "watch",
     .letter = 'w',
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct stats_args, watch),
     .help = "again and again until it is interrupted; wafertier top shows more"},
    {.name = "interval",
     .letter = 'i',
     .type = WT_ARG_TIME,
     .offset = offsetof(struct stats_args, interval_ms),
     .value = "TIME",
     .min = 100,
     .max = 86400000,
     .help = "pause between two times (2s)"},
    {.name = "number",
     .letter = 'n',
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct stats_args, number),
     .value = "N",
     .help = "with --watch: end after so many times (never)"},
};

static void print_tier(const json_t *t, uint64_t all_reads) {
    char used[WT_SIZE_TEXT], capacity[WT_SIZE_TEXT] = "-", read[WT_SIZE_TEXT];
    const json_t *reported = wt_view(t, "reported"); /* by the jobs */
    uint64_t reads = wt_view_count(reported, "reads");
    if (wt_view_count(t, "capacity"))
        wt_view_size(t, "capacity", capacity);
    printf("%-8s %-5s %8" PRIu64 " %12s %12s %12" PRIu64 " %6.1f%% %12s\n", wt_view_text(t, "name"),
           wt_view_true(t, "down") ? "down" : "up", wt_view_count(t, "shards"),
           wt_view_size(t, "used", used), capacity, reads,
           all_reads ? 100.0 * (double)reads / (double)all_reads : 0,
           wt_view_size(reported, "bytes", read));
}

/* What is not as it should be, or not there yet: nothing most of the time. */
static void print_truth(const json_t *root) {
    const json_t *scrub = wt_view(root, "scrub");
    uint64_t bad = wt_view_count(scrub, "cold_missing") + wt_view_count(scrub, "cold_damaged");
    if (wt_view_count(root, "flush.landed"))
        printf("landed %" PRIu64 " data sets, %" PRIu64 " of their shards are not in cold yet\n",
               wt_view_count(root, "flush.landed"), wt_view_count(root, "flush.dirty"));
    if (bad)
        printf("COLD   %" PRIu64 " copies were found missing or damaged, %" PRIu64
               " were made anew; see 'wafertier events' and the log\n",
               bad, wt_view_count(scrub, "cold_repaired"));
}

static void print_table(const json_t *root) {
    const json_t *tiers = wt_view(root, "tiers"), *moves = wt_view(root, "moves");
    const json_t *reads = wt_view(root, "reads"), *tier;
    char bytes[WT_SIZE_TEXT];
    size_t i;
    uint64_t total = wt_view_count(reads, "total");
    printf("wafertierd %s, up %.0f s, %" PRIu64 " jobs\n\n", wt_view_text(root, "version"),
           wt_view_real(root, "uptime_s"), wt_view_count(root, "jobs"));
    printf("%-8s %-5s %8s %12s %12s %12s %7s %12s\n", "tier", "state", "shards", "used", "capacity",
           "reads", "share", "read");
    json_array_foreach(tiers, i, tier) print_tier(tier, total);
    json_array_foreach(tiers, i, tier) if (wt_view_text(tier, "last_error")[0])
        printf("%s: %s\n", wt_view_text(tier, "name"), wt_view_text(tier, "last_error"));
    printf("\nreads  %" PRIu64 " (%" PRIu64 " above cold, %" PRIu64 " from cold)\n", total,
           wt_view_count(reads, "hits"), wt_view_count(reads, "misses"));
    printf("moves  %" PRIu64 " running, %" PRIu64 " queued, %" PRIu64 " done, %" PRIu64
           " failed, %s moved\n",
           wt_view_count(moves, "running"), wt_view_count(moves, "queued"),
           wt_view_count(moves, "done"), wt_view_count(moves, "failed"),
           wt_view_size(moves, "bytes", bytes));
    print_truth(root);
}

static void show(const struct stats_args *a, const json_t *root) {
    if (a->watch && !a->json && isatty(STDOUT_FILENO) == 1)
        fputs("\033[H\033[2J", stdout);
    if (!a->json)
        print_table(root);
    else if (json_dumpf(root, stdout, a->watch ? JSON_COMPACT : JSON_INDENT(2)) == 0)
        putchar('\n');
    if (a->watch && !a->json)
        putchar('\n');
}

/* Until `deadline`, or until it is interrupted. */
static void sleep_until(struct timespec *deadline, uint64_t ms, struct wt_stop *stop) {
    deadline->tv_sec += (time_t)(ms / 1000);
    deadline->tv_nsec += (long)(ms % 1000) * 1000000;
    deadline->tv_sec += deadline->tv_nsec / 1000000000;
    deadline->tv_nsec %= 1000000000;
    for (;;) {
        struct timespec now, wait = {.tv_nsec = 50000000};
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (wt_stop_asked(stop) || now.tv_sec > deadline->tv_sec ||
            (now.tv_sec == deadline->tv_sec && now.tv_nsec >= deadline->tv_nsec))
            return;
        nanosleep(&wait, NULL);
    }
}

/* A daemon that goes away ends it: who watches wants to know. */
static int watch(const struct stats_args *a, struct wt_daemon_link *link, struct wt_err *err) {
    struct wt_stop stop;
    struct timespec next;
    int rc = wt_stop_open(&stop, err);
    if (rc < 0)
        return rc;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (uint64_t i = 0; rc == 0 && (a->number == 0 || i < a->number); i++) {
        json_t *root = NULL;
        if (i > 0)
            sleep_until(&next, a->interval_ms, &stop);
        if (wt_stop_asked(&stop))
            break;
        rc = wt_daemon_call(link, "GET", "/v1/stats", NULL, &root, err);
        if (rc == 0)
            show(a, root);
        json_decref(root);
        if (fflush(stdout) != 0)
            break;
    }
    wt_stop_close(&stop);
    return rc;
}

static int once(const struct stats_args *a, struct wt_daemon_link *link, struct wt_err *err) {
    json_t *root = NULL;
    int rc = wt_daemon_call(link, "GET", "/v1/stats", NULL, &root, err);
    if (rc == 0)
        show(a, root);
    json_decref(root);
    return rc;
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct stats_args a = {.interval_ms = 2000};
    struct wt_operands operands;
    struct wt_daemon_link link;
    struct wt_err err = {0};
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n)
        return wt_verb_usage(verb, "it takes options only");
    int rc = wt_daemon_open(&a.daemon, &link, &err);
    if (rc == 0)
        rc = a.watch ? watch(&a, &link, &err) : once(&a, &link, &err);
    wt_daemon_close(&link);
    return rc < 0 ? wt_daemon_fail(verb, &link, &err) : WT_EXIT_OK;
}

const struct wt_verb wt_verb_stats = {
    .name = "stats",
    .summary = "what the daemon counts: tiers, reads, moves",
    .operands = "",
    .about =
        "Asks the daemon for its counters (GET /v1/stats) and prints them as a table, or as "
        "JSON. In the table 'reads' and 'read' are what jobs say that they finished at a tier.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
