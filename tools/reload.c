/* `wafertier reload`: the daemon reads its configuration again. */
#include "tools/daemon.h"

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
    return wt_daemon_show(verb, argc, argv, "POST", "/v1/reload", show);
}

const struct wt_verb wt_verb_reload = {
    .name = "reload",
    .summary = "let the daemon read its configuration again",
    .operands = "",
    .about = "Capacities, bands, marks, limits, intervals and the log level change in place, and "
             "shards that were set aside get a new chance. When the file is wrong, or something "
             "changed that needs a restart, the message names it, nothing is applied, and the exit "
             "status is 1.",
    .args = wt_daemon_show_args,
    .n_args = WT_DAEMON_SHOW_ARGS,
    .run = run,
};
