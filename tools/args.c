/* Command lines by table, over getopt_long(3); see verb.h. */
#include "core/bytes.h"
#include "core/conf.h"
#include "core/mem.h"
#include "tools/verb.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARGS = 48, FIRST_LONG = 1000, HELP_COLUMN = 30, HELP_WIDTH = 96 };

int wt_verb_fail(const struct wt_verb *verb, const struct wt_err *err) {
    fprintf(stderr, "wafertier %s: %s\n", verb->name, err->text);
    return err->code == WT_ECANCELED ? WT_EXIT_INTERRUPTED : WT_EXIT_FAILED;
}

int wt_verb_usage(const struct wt_verb *verb, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "wafertier %s: ", verb->name);
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "; see wafertier %s --help\n", verb->name);
    va_end(args);
    return WT_EXIT_USAGE;
}

/* Words of `text`, broken at `column` and indented by it. */
static void print_wrapped(FILE *out, const char *text, int column, int at) {
    while (*text) {
        int word = (int)strcspn(text, " \n");
        if (at > column && at + 1 + word > HELP_WIDTH) {
            fprintf(out, "\n%*s", column, "");
            at = column;
        }
        at += fprintf(out, "%s%.*s", at > column ? " " : "", word, text);
        text += word;
        if (*text == '\n') {
            fprintf(out, "\n%*s", column, "");
            at = column;
        }
        text += *text != '\0';
    }
    fputc('\n', out);
}

static void print_arg(FILE *out, const char *name, char letter, const char *value,
                      const char *help) {
    char left[80];
    char dash[5] = "    ";
    if (letter)
        snprintf(dash, sizeof dash, "-%c, ", letter);
    int n = snprintf(left, sizeof left, "  %s--%s%s%s", dash, name, value ? " " : "",
                     value ? value : "");
    fprintf(out, "%-*s", HELP_COLUMN, left);
    if (n >= HELP_COLUMN)
        fprintf(out, "\n%*s", HELP_COLUMN, "");
    print_wrapped(out, help, HELP_COLUMN, HELP_COLUMN);
}

void wt_args_help(const struct wt_verb *verb, FILE *out) {
    fprintf(out, "Usage: wafertier %s [OPTION...] %s\n\n", verb->name, verb->operands);
    print_wrapped(out, verb->about, 0, 0);
    fprintf(out, "\nOptions:\n");
    for (size_t i = 0; i < verb->n_args; i++)
        print_arg(out, verb->args[i].name, verb->args[i].letter, verb->args[i].value,
                  verb->args[i].help);
    print_arg(out, "help", 'h', NULL, "print this and exit");
}

static bool find_choice(const char *choices, const char *text, int *index) {
    size_t len = strlen(text);
    *index = 0;
    for (const char *c = choices; *c; (*index)++) {
        size_t n = strcspn(c, "|");
        if (n == len && memcmp(c, text, n) == 0)
            return true;
        c += n + (c[n] == '|');
    }
    return false;
}

static int take_count(const char *text, uint64_t *value, struct wt_err *err) {
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (end == text || *end || errno || strchr(text, '-'))
        return wt_err_set(err, WT_EINVAL, "'%s' is no whole number", text);
    *value = v;
    return 0;
}

static int take_value(const struct wt_arg *arg, const char *text, void *target,
                      struct wt_err *err) {
    void *at = (char *)target + arg->offset;
    uint64_t number = 0;
    int rc = 0;
    switch (arg->type) {
    case WT_ARG_FLAG:
        *(bool *)at = true;
        return 0;
    case WT_ARG_TEXT:
        *(const char **)at = text;
        return 0;
    case WT_ARG_CHOICE:
        if (find_choice(arg->value, text, at))
            return 0;
        return wt_err_set(err, WT_EINVAL, "--%s %s: choose one of %s", arg->name, text, arg->value);
    case WT_ARG_SIZE:
        rc = wt_size_parse(text, &number, err);
        break;
    case WT_ARG_COUNT:
        rc = take_count(text, &number, err);
        break;
    case WT_ARG_TIME:
        rc = wt_time_parse(text, &number, err);
    }
    if (rc == 0 && arg->max && (number < arg->min || number > arg->max))
        rc = wt_err_set(err, WT_ERANGE, "'%s' is out of range (%" PRIu64 " to %" PRIu64 ")", text,
                        arg->min, arg->max);
    if (rc < 0) {
        wt_err_wrap(err, "--%s", arg->name);
        return rc;
    }
    *(uint64_t *)at = number;
    return 0;
}

/* The table as getopt wants it: short[] and option[]. */
static void build_tables(const struct wt_verb *verb, char *letters, struct option *option) {
    *letters++ = ':'; /* tell a missing value from an unknown option */
    for (size_t i = 0; i < verb->n_args; i++) {
        const struct wt_arg *a = &verb->args[i];
        bool value = a->type != WT_ARG_FLAG;
        option[i] = (struct option){a->name, value ? required_argument : no_argument, NULL,
                                    FIRST_LONG + (int)i};
        if (a->letter)
            *letters++ = a->letter;
        if (a->letter && value)
            *letters++ = ':';
    }
    option[verb->n_args] = (struct option){"help", no_argument, NULL, 'h'};
    option[verb->n_args + 1] = (struct option){0};
    *letters++ = 'h';
    *letters = '\0';
}

static const struct wt_arg *arg_of(const struct wt_verb *verb, int code) {
    if (code >= FIRST_LONG)
        return &verb->args[code - FIRST_LONG];
    for (size_t i = 0; i < verb->n_args; i++)
        if (verb->args[i].letter == code)
            return &verb->args[i];
    return NULL;
}

static int unknown_option(const struct wt_verb *verb, const char *given) {
    const char *names[MAX_ARGS];
    char word[64];
    for (size_t i = 0; i < verb->n_args; i++)
        names[i] = verb->args[i].name;
    given += strspn(given, "-");
    snprintf(word, sizeof word, "%.*s", (int)strcspn(given, "="), given);
    const char *near = wt_nearest(word, names, verb->n_args);
    if (near)
        return wt_verb_usage(verb, "unknown option '--%s'; did you mean --%s?", word, near);
    return wt_verb_usage(verb, "unknown option '%s'", word);
}

int wt_args_parse(const struct wt_verb *verb, int argc, char **argv, void *target,
                  struct wt_operands *operands) {
    char letters[2 * MAX_ARGS + 4];
    struct option option[MAX_ARGS + 2];
    struct wt_err err = {0};
    build_tables(verb, letters, option);
    opterr = 0;
    optind = 1;
    int code;
    while ((code = getopt_long(argc, argv, letters, option, NULL)) != -1) {
        if (code == 'h') {
            wt_args_help(verb, stdout);
            return WT_EXIT_OK;
        }
        if (code == ':')
            return wt_verb_usage(verb, "%s needs a value", argv[optind - 1]);
        const struct wt_arg *arg = code == '?' ? NULL : arg_of(verb, code);
        if (!arg) {
            char letter[3] = {'-', (char)optopt, '\0'};
            bool is_letter = optopt > 0 && optopt < 128;
            return unknown_option(verb, is_letter ? letter : argv[optind - 1]);
        }
        if (take_value(arg, optarg, target, &err) < 0)
            return wt_verb_usage(verb, "%s", err.text);
    }
    operands->arg = argv + optind;
    operands->n = (size_t)(argc - optind);
    return -1;
}
