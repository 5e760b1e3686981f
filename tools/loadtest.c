/*
 * `wafertier loadtest`: runs a loader alone and tells what holds it back; loadtest/loadtest.h.
 *
 * Happy path: opens a loader with the options given, takes the first batch, then batches flat out
 * for a time and, with --rate, as a trainer of that rate would, and prints both. Fails with what
 * the loader says; with a rate that is not held the exit code is 1.
 */
#include "tools/loadtest/loadtest.h"

#include "tools/stop.h"
#include "tools/verb.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct loadtest_args {
    const char *config, *dataset;
    uint64_t batch, rate, world, rank, time_ms, threads, memory;
    bool json;
};

static const struct wt_arg args[] = {
    {.name = "dataset",
     .letter = 'd',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct loadtest_args, dataset),
     .value = "NAME",
     .help = "the data set; required"},
    {.name = "batch",
     .letter = 'b',
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct loadtest_args, batch),
     .value = "N",
     .min = 1,
     .help = "samples of the global batch over all ranks; required"},
    {.name = "config",
     .letter = 'c',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct loadtest_args, config),
     .value = "FILE",
     .help = "the loader's configuration; without it $WAFERTIER_CONFIG, else the installed one"},
    {.name = "rate",
     .letter = 'r',
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct loadtest_args, rate),
     .value = "R",
     .help = "samples a second that the trainer of this rank takes: is that held?"},
    {.name = "world",
     .letter = 'w',
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct loadtest_args, world),
     .value = "W",
     .min = 1,
     .max = 1 << 20,
     .help = "ranks of the job; this is one of them (1)"},
    {.name = "rank",
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct loadtest_args, rank),
     .value = "N",
     .max = 1 << 20,
     .help = "which of them (0)"},
    {.name = "time",
     .letter = 't',
     .type = WT_ARG_TIME,
     .offset = offsetof(struct loadtest_args, time_ms),
     .value = "TIME",
     .min = 100,
     .max = 86400000,
     .help = "how long to measure flat out, and as long again with --rate (10s)"},
    {.name = "threads",
     .letter = 'j',
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct loadtest_args, threads),
     .value = "N",
     .min = 1,
     .max = 256,
     .help = "the loader's threads (the processors that this process may use, at most 16)"},
    {.name = "memory",
     .letter = 'm',
     .type = WT_ARG_SIZE,
     .offset = offsetof(struct loadtest_args, memory),
     .value = "SIZE",
     .help = "the loader's memory (a quarter of the machine's)"},
    {.name = "json",
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct loadtest_args, json),
     .help = "print JSON"},
};

static unsigned processors(void) {
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? (unsigned)n : 1;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int last_error(struct wt_err *err) {
    return wt_err_set(err, WT_EINVAL, "%s", wl_last_error(NULL)->message);
}

/* NAME=VALUE of wl_options; the text of the command line is kept by reference. */
static int take_option(wl_options *o, char *operand, struct wt_err *err) {
    char *equals = strchr(operand, '=');
    if (!equals)
        return wt_err_set(err, WT_EINVAL, "'%s' is no option of the loader: NAME=VALUE is wanted",
                          operand);
    *equals = 0;
    return wl_options_set(o, operand, equals + 1) < 0 ? last_error(err) : 0;
}

static int fill_options(const struct loadtest_args *a, struct wt_operands *operands, wl_options *o,
                        struct wt_err *err) {
    *o = (wl_options)WL_OPTIONS_INIT;
    o->config = a->config;
    o->dataset = a->dataset;
    o->batch = a->batch;
    o->epochs = 0;
    o->rank = (int)a->rank;
    o->world = (int)a->world;
    o->memory = a->memory;
    o->job = "loadtest";
    for (size_t i = 0; i < operands->n; i++) {
        int rc = take_option(o, operands->arg[i], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The first batch counts for itself: windows are allocated and filled for it. */
static int first_batch(wl_loader *l, struct wt_stop *stop, struct wt_err *err) {
    wl_batch *b = NULL;
    int rc = WL_NOT_READY;
    while (rc == WL_NOT_READY && !wt_stop_asked(stop))
        rc = wl_next(l, NULL, 200, &b);
    if (rc == WL_OK)
        wl_batch_release(b, NULL);
    if (rc >= 0)
        return 0;
    return wt_err_set(err, WT_EIO, "%s", wl_last_error(l)->message);
}

static int measure(const struct loadtest_args *a, const wl_options *o, struct wt_stop *stop,
                   struct wt_loadtest *t, struct wt_err *err) {
    double began = now(), seconds = (double)a->time_ms / 1000;
    wl_loader *l;
    if (wl_open(NULL, o, &l) < 0)
        return last_error(err);
    int rc = first_batch(l, stop, err);
    t->first_batch_s = now() - began;
    if (rc == 0)
        rc = wt_loadtest_run(l, seconds, 0, wt_stop_asked, stop, &t->flat, err);
    if (rc == 0 && a->rate)
        rc = wt_loadtest_run(l, seconds, t->rate, wt_stop_asked, stop, &t->paced, err);
    wl_get_info(l, &t->info);
    wl_close(l);
    if (rc == 0 && wt_stop_asked(stop))
        rc = wt_err_set(err, WT_ECANCELED, "interrupted");
    return rc;
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct loadtest_args a = {.world = 1, .time_ms = 10000};
    struct wt_operands operands;
    struct wt_stop stop;
    struct wt_err err = {0};
    wl_options o;
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (!a.dataset || !a.batch)
        return wt_verb_usage(verb, "--dataset and --batch are needed");
    if (a.rank >= a.world)
        return wt_verb_usage(verb, "--rank is below --world");
    if (fill_options(&a, &operands, &o, &err) < 0)
        return wt_verb_usage(verb, "%s", err.text);
    struct wt_loadtest t = {
        .dataset = o.dataset, .rate = (double)a.rate, .processors = processors()};
    unsigned chosen = t.processors < 16 ? t.processors : 16;
    t.threads = a.threads ? (unsigned)a.threads : o.threads > 0 ? (unsigned)o.threads : chosen;
    o.threads = (int)t.threads;
    int rc = wt_stop_open(&stop, &err);
    if (rc < 0)
        return wt_verb_fail(verb, &err);
    rc = measure(&a, &o, &stop, &t, &err);
    wt_stop_close(&stop);
    if (rc == 0 && a.json)
        rc = wt_loadtest_print_json(&t, &err);
    else if (rc == 0)
        wt_loadtest_print(&t);
    if (rc < 0)
        return wt_verb_fail(verb, &err);
    return a.rate && wt_loadtest_waits(&t.paced) >= 0.01 ? WT_EXIT_FAILED : WT_EXIT_OK;
}

const struct wt_verb wt_verb_loadtest = {
    .name = "loadtest",
    .summary = "run a loader alone: its rate, what limits it, what to change",
    .operands = "[OPTION=VALUE]...",
    .about =
        "Opens a data set as a training program would and takes batches: flat out, and with "
        "--rate like a trainer that works on each for batch / rate seconds. Prints what each stage "
        "costs and could do at most, what the consumer waited for, and what to change. Options of "
        "the loader (wafertier/loader.h) are given as slots=8, window=4, fields=image and so on.\n"
        "A limit with '>=' was not reached: something else held the loader. With --rate the exit "
        "code is 1 when the trainer waited 1% of its time or more.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
