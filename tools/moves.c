/* `wafertier moves`: copies between tiers that run, wait, ended or were given up. */
#include "tools/daemon.h"

#include <inttypes.h>
#include <string.h>

/* "cold > hot", "drop hot", "cold > hot, drop warm". */
static const char *way_of(const json_t *m, char *out, size_t size) {
    const char *to = wt_view_text(m, "to"), *drop = wt_view_text(m, "drop");
    int n = to[0] ? snprintf(out, size, "%s > %s", wt_view_text(m, "from"), to) : 0;
    if (drop[0] && n >= 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, "%sdrop %s", n ? ", " : "", drop);
    else if (n == 0)
        out[0] = '\0';
    return out;
}

static void show_list(const json_t *reply, const char *name, const char *title) {
    const json_t *list = wt_view(reply, name), *m;
    char way[200], size[WT_SIZE_TEXT], took[WT_SPAN_TEXT];
    size_t i;
    if (json_array_size(list) == 0)
        return;
    printf("\n%s\n", title);
    json_array_foreach(list, i, m) {
        double all = wt_view_real(m, "size"), part = wt_view_real(m, "done");
        char done[16] = "";
        const char *why = wt_view_text(m, "text");
        if (all > 0 && strcmp(name, "running") == 0)
            snprintf(done, sizeof done, "%.0f%%", 100 * part / all);
        printf("  %-12s %8" PRIu64 "  %-24s %10s %5s %-8s %10s%s%s\n", wt_view_text(m, "dataset"),
               wt_view_count(m, "shard"), way_of(m, way, sizeof way), wt_view_size(m, "size", size),
               done, wt_view_text(m, "step"), wt_view_span(wt_view_real(m, "ms") / 1000, took),
               why[0] ? "  " : "", why);
    }
}

static void show(const json_t *reply) {
    printf("%zu running, %" PRIu64 " queued, %" PRIu64 " waiting for a retry, %" PRIu64
           " set aside\n",
           json_array_size(wt_view(reply, "running")), wt_view_count(reply, "queued"),
           wt_view_count(reply, "waiting_count"), wt_view_count(reply, "set_aside_count"));
    show_list(reply, "running", "running");
    show_list(reply, "waiting", "waiting for a retry");
    show_list(reply, "set_aside", "set aside until a reload (wafertier reload)");
    show_list(reply, "recent", "ended, the newest first");
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    return wt_daemon_show(verb, argc, argv, "GET", "/v1/moves", show);
}

const struct wt_verb wt_verb_moves = {
    .name = "moves",
    .summary = "copies between tiers: running, waiting, ended, set aside",
    .operands = "",
    .about = "A line for each move: data set, shard, from which tier to which (or 'drop': the copy "
             "is removed there), size, part done, step, time since it was queued, and why it waits "
             "or failed. What is set aside failed too often; wafertier reload gives it a new "
             "chance.",
    .args = wt_daemon_show_args,
    .n_args = WT_DAEMON_SHOW_ARGS,
    .run = run,
};
