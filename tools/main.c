/* The `wafertier` command: finds the verb and runs it. Exit codes: 0 done, 1 failed, 2 wrong
 * command line, 3 no daemon answers, 130 interrupted. */
#include "core/conf.h"
#include "tools/verb.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <wafertier/version.h>

enum { MAX_VERBS = 32 };

static const struct wt_verb *find_verb(const char *name) {
    size_t n;
    const struct wt_verb *const *verbs = wt_verbs(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    return NULL;
}

static void print_overview(FILE *out) {
    size_t n;
    const struct wt_verb *const *verbs = wt_verbs(&n);
    fprintf(out, "Usage: wafertier VERB [OPTION...] ...\n\n"
                 "Keeps wafer inspection images where training needs them.\n\nVerbs:\n");
    for (size_t i = 0; i < n; i++)
        fprintf(out, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    fprintf(out, "  %-10s %s\n", "help", "print this, or the help of a verb: wafertier help pack");
    fprintf(out, "\nwafertier --version prints the version. wafertier VERB --help tells all about "
                 "a verb.\n");
}

static int unknown_verb(const char *name) {
    size_t n;
    const struct wt_verb *const *verbs = wt_verbs(&n);
    const char *names[MAX_VERBS];
    for (size_t i = 0; i < n && i < MAX_VERBS; i++)
        names[i] = verbs[i]->name;
    const char *near = wt_nearest(name, names, n);
    if (near)
        fprintf(stderr, "wafertier: unknown verb '%s'; did you mean '%s'?\n", name, near);
    else
        fprintf(stderr, "wafertier: unknown verb '%s'; wafertier help lists all\n", name);
    return WT_EXIT_USAGE;
}

static int help(int argc, char **argv) {
    const struct wt_verb *verb = argc > 1 ? find_verb(argv[1]) : NULL;
    if (argc > 1 && !verb)
        return unknown_verb(argv[1]);
    if (verb)
        wt_args_help(verb, stdout);
    else
        print_overview(stdout);
    return WT_EXIT_OK;
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2) {
        print_overview(stderr);
        return WT_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
        printf("wafertier %s\n", WAFERTIER_VERSION_STRING);
        return WT_EXIT_OK;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(argc - 1, argv + 1);
    const struct wt_verb *verb = find_verb(name);
    int code = verb ? verb->run(verb, argc - 1, argv + 1) : unknown_verb(name);
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == WT_EXIT_OK) {
        code = WT_EXIT_FAILED;
        if (errno != EPIPE) /* a reader that has seen enough (`| head`) needs no message */
            fprintf(stderr, "wafertier %s: the output could not be written\n", name);
    }
    return code;
}
