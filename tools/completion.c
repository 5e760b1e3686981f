/*
 * `wafertier completion`: a shell's completion, written from the same tables as the parser and
 * --help, so that it knows every verb, option and choice, and no other.
 */
#include "tools/verb.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum { BRIEF = 70 };

struct completion_args {
    const char *output;
};

static const struct wt_arg args[] = {
    {.name = "output",
     .letter = 'o',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct completion_args, output),
     .value = "FILE",
     .help = "where to write it (standard output)"},
};

/* Values that are files, folders or sockets. */
static bool names_file(const struct wt_arg *a) {
    static const char *const values[] = {"FILE", "URL", "FROM", "ADDRESS"};
    for (size_t i = 0; a->value && i < sizeof values / sizeof values[0]; i++)
        if (strcmp(a->value, values[i]) == 0)
            return true;
    return false;
}

/* ---- bash ---- */

/* "--codec" and "-c" as patterns of a case. */
static void bash_pattern(const char *verb, const struct wt_arg *a) {
    printf("    %s:--%s", verb, a->name);
    if (a->letter)
        printf(" | %s:-%c", verb, a->letter);
    printf(") ");
}

static void bash_value(const char *verb, const struct wt_arg *a) {
    if (a->type == WT_ARG_FLAG)
        return;
    bash_pattern(verb, a);
    if (a->type == WT_ARG_CHOICE) {
        printf("words='");
        for (const char *c = a->value; *c; c++)
            putchar(*c == '|' ? ' ' : *c);
        printf("' ;;\n");
    } else {
        printf("%s ;;\n", names_file(a) ? "files=yes" : "files=no");
    }
}

static void bash_verb(const struct wt_verb *v) {
    printf("    %s) words='--help", v->name);
    for (size_t i = 0; i < v->n_args; i++)
        printf(" --%s", v->args[i].name);
    printf("' ;;\n");
}

static void print_bash(const struct wt_verb *const *verbs, size_t n) {
    printf("# Completion of wafertier for bash; made by `wafertier completion bash`.\n"
           "_wafertier() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    local verb=${COMP_WORDS[1]} words='' files='' all='");
    for (size_t i = 0; i < n; i++)
        printf("%s ", verbs[i]->name);
    printf(
        "help'\n"
        "    COMPREPLY=()\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ] || { [ \"$verb\" = help ] && [ \"$COMP_CWORD\" -eq 2 ]; "
        "}; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W \"$all\" -- \"$cur\")\n"
        "        return\n"
        "    fi\n"
        "    case $verb:$prev in\n");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < verbs[i]->n_args; k++)
            bash_value(verbs[i]->name, &verbs[i]->args[k]);
    printf("    esac\n"
           "    if [ -z \"$words$files\" ] && [ \"${cur:0:1}\" = - ]; then\n"
           "        case $verb in\n");
    for (size_t i = 0; i < n; i++)
        bash_verb(verbs[i]);
    printf("        esac\n"
           "    fi\n"
           "    if [ -n \"$words\" ]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
           "    elif [ \"$files\" != no ]; then\n"
           "        compopt -o default 2>/dev/null || true # file names, by readline\n"
           "    fi\n"
           "}\n"
           "complete -F _wafertier wafertier\n");
}

/* ---- zsh ---- */

/* The first clause of a help text, as it may stand in brackets within single quotes. */
static void zsh_brief(const char *help) {
    size_t n = strcspn(help, ";(");
    bool cut = n > BRIEF;
    n = cut ? BRIEF : n;
    while (cut && n > 0 && help[n] != ' ')
        n--;
    while (n > 0 && (help[n - 1] == ' ' || help[n - 1] == ','))
        n--;
    for (size_t i = 0; i < n; i++) {
        if (help[i] == '\'')
            printf("'\\'");
        else if (strchr("[]:\\", help[i]))
            putchar('\\');
        putchar(help[i] == '\n' ? ' ' : help[i]);
    }
}

static void zsh_value(const struct wt_arg *a) {
    if (a->type == WT_ARG_FLAG)
        return;
    printf(":value:");
    if (a->type == WT_ARG_CHOICE) {
        putchar('(');
        for (const char *c = a->value; *c; c++)
            putchar(*c == '|' ? ' ' : *c);
        putchar(')');
    } else {
        printf("%s", names_file(a) ? "_files" : " ");
    }
}

static void zsh_arg(const struct wt_arg *a) {
    if (a->letter)
        printf(" \\\n            '(-%c --%s)'{-%c,--%s}'[", a->letter, a->name, a->letter, a->name);
    else
        printf(" \\\n            '--%s[", a->name);
    zsh_brief(a->help);
    putchar(']');
    zsh_value(a);
    putchar('\'');
}

static void zsh_verb(const struct wt_verb *v) {
    printf("    %s)\n        _arguments -s '(-h --help)'{-h,--help}'[print the help]'", v->name);
    for (size_t i = 0; i < v->n_args; i++)
        zsh_arg(&v->args[i]);
    if (strstr(v->operands, "INPUT"))
        printf(" \\\n            '*:input:_files'");
    else if (v->operands[0])
        printf(" \\\n            '*:operand: '");
    printf("\n        ;;\n");
}

static void print_zsh(const struct wt_verb *const *verbs, size_t n) {
    printf("#compdef wafertier\n"
           "# Completion of wafertier for zsh; made by `wafertier completion zsh`.\n"
           "local -a verbs\n"
           "verbs=(\n");
    for (size_t i = 0; i < n; i++) {
        printf("    '%s:", verbs[i]->name);
        zsh_brief(verbs[i]->summary);
        printf("'\n");
    }
    printf("    'help:print the help of a verb'\n"
           ")\n"
           "if (( CURRENT == 2 )) || [[ $words[2] == help && $CURRENT == 3 ]]; then\n"
           "    _describe -t verbs verb verbs\n"
           "    return\n"
           "fi\n"
           "local verb=$words[2]\n"
           "shift words\n"
           "(( CURRENT-- ))\n"
           "case $verb in\n");
    for (size_t i = 0; i < n; i++)
        zsh_verb(verbs[i]);
    printf("esac\n");
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct completion_args a = {0};
    struct wt_operands operands;
    struct wt_err err = {0};
    size_t n;
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n != 1)
        return wt_verb_usage(verb, "for which shell, bash or zsh?");
    bool bash = strcmp(operands.arg[0], "bash") == 0;
    if (!bash && strcmp(operands.arg[0], "zsh") != 0)
        return wt_verb_usage(verb, "'%s' is no shell that it knows: bash or zsh", operands.arg[0]);
    if (a.output && !freopen(a.output, "w", stdout)) {
        wt_err_sys(&err, errno, "%s cannot be written", a.output);
        return wt_verb_fail(verb, &err);
    }
    const struct wt_verb *const *verbs = wt_verbs(&n);
    if (bash)
        print_bash(verbs, n);
    else
        print_zsh(verbs, n);
    return WT_EXIT_OK;
}

const struct wt_verb wt_verb_completion = {
    .name = "completion",
    .summary = "print the completion script of a shell",
    .operands = "bash|zsh",
    .about =
        "Prints what completes verbs, options and choices in bash or zsh. The installation puts "
        "both where the shells look; without it: source <(wafertier completion bash)",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
