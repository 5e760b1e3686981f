/*
 * The verbs of the `wafertier` command: one table row and one file each. Options are a table too:
 * it drives the parser, --help and (by tests/docs) the man page, so they cannot disagree.
 */
#ifndef WT_TOOLS_VERB_H
#define WT_TOOLS_VERB_H

#include "core/err.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    WT_EXIT_OK = 0,
    WT_EXIT_FAILED = 1,
    WT_EXIT_USAGE = 2,
    WT_EXIT_NO_DAEMON = 3,
    WT_EXIT_INTERRUPTED = 130
};

/* FLAG: bool. TEXT: const char *. SIZE: uint64_t bytes ("64MiB"). COUNT: uint64_t. TIME:
 * uint64_t milliseconds ("7d"). CHOICE: int, the index in `choices`. */
enum wt_arg_type {
    WT_ARG_FLAG,
    WT_ARG_TEXT,
    WT_ARG_SIZE,
    WT_ARG_COUNT,
    WT_ARG_TIME,
    WT_ARG_CHOICE
};

struct wt_arg {
    const char *name; /* long name, without dashes */
    char letter;      /* short one, or 0 */
    enum wt_arg_type type;
    size_t offset; /* in the target struct */
    const char
        *value; /* how help calls the value; CHOICE: "auto|tar|zstd", the choices themselves */
    uint64_t min, max; /* SIZE, COUNT, TIME: inclusive; max 0: any */
    const char *help;
};

struct wt_verb {
    const char *name;
    const char *summary;  /* one line for `wafertier help` */
    const char *operands; /* "INPUT... " or "" */
    const char *about;    /* a paragraph or two for --help */
    const struct wt_arg *args;
    size_t n_args;
    int (*run)(const struct wt_verb *verb, int argc,
               char **argv); /* argv[0] is the verb; returns an exit code */
};

extern const struct wt_verb wt_verb_pack, wt_verb_gen, wt_verb_verify, wt_verb_ls, wt_verb_cat,
    wt_verb_flush, wt_verb_gc, wt_verb_fsck, wt_verb_stats, wt_verb_top, wt_verb_jobs,
    wt_verb_moves, wt_verb_shards, wt_verb_events, wt_verb_pin, wt_verb_unpin, wt_verb_warm,
    wt_verb_evict, wt_verb_quota, wt_verb_reload, wt_verb_doctor, wt_verb_loadtest, wt_verb_sim,
    wt_verb_completion;
const struct wt_verb *const *wt_verbs(size_t *n);

/* What is left after the options. */
struct wt_operands {
    char **arg;
    size_t n;
};
/* Fills *target (which has the defaults) from argv. -1: go on; else the exit code: --help was
 * printed, or the error was. */
int wt_args_parse(const struct wt_verb *verb, int argc, char **argv, void *target,
                  struct wt_operands *operands);
void wt_args_help(const struct wt_verb *verb, FILE *out);

/* "wafertier VERB: text" on stderr; the exit code that fits: 1, or 130 for an interrupt. */
int wt_verb_fail(const struct wt_verb *verb, const struct wt_err *err);
/* The same for a wrong command line, with a hint at --help; WT_EXIT_USAGE. */
int wt_verb_usage(const struct wt_verb *verb, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
