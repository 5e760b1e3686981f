/* `wafertier reload`: the daemon reads its configuration again. */
#include "tools/daemon.h"

struct reload_args {
    struct wt_daemon_opts daemon;
    bool json;
};

static const struct wt_arg args[] = {
    WT_DAEMON_ARGS(struct reload_args, daemon),
    {.name = "json",
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct reload_args, json),
     .help = "the daemon's answer as it is"},
};

static void show(const json_t *reply) {
    const json_t *list = wt_view(reply, "changed"), *name;
    size_t i;
    if (json_array_size(list) == 0)
        puts("reloaded; no option has changed");
    json_array_foreach(list, i, name)
        printf("%s%s", i ? ", " : "reloaded; changed: ", json_string_value(name));
    if (json_array_size(list) > 0)
        putchar('\n');
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct reload_args a = {0};
    struct wt_operands operands;
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n)
        return wt_verb_usage(verb, "it takes options only");
    return wt_daemon_run(verb, &a.daemon, "POST", "/v1/reload", json_object(), a.json, show);
}

const struct wt_verb wt_verb_reload = {
    .name = "reload",
    .summary = "let the daemon read its configuration again",
    .operands = "",
    .about = "Capacities, bands, marks, limits, intervals and the log level change in place, and "
             "shards that were set aside get a new chance. When the file is wrong, or something "
             "changed that needs a restart, the message names it, nothing is applied, and the exit "
             "status is 1.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
