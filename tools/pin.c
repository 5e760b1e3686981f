/* `wafertier pin` and `unpin`: what has to stay in a tier, whatever the policy would do. */
#include "tools/daemon.h"
#include "tools/select.h"

#include <inttypes.h>

struct pin_args {
    struct wt_daemon_opts daemon;
    const char *tier;
    bool json;
};

static const struct wt_arg args[] = {
    WT_DAEMON_ARGS(struct pin_args, daemon),
    {.name = "tier",
     .letter = 't',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct pin_args, tier),
     .value = "NAME",
     .help = "which tier; without it the highest (unpin: all)"},
    WT_DAEMON_JSON_ARG(struct pin_args, json),
};

static void show_pin(const json_t *pin) {
    char what[WT_SELECT_TEXT], bytes[WT_SIZE_TEXT];
    if (!json_is_integer(wt_view(pin, "shards"))) { /* after a restart, until it has looked */
        printf("%-32s %-8s not counted yet\n", wt_select_text(pin, what),
               wt_view_text(pin, "tier"));
        return;
    }
    printf("%-32s %-8s %" PRIu64 " of %" PRIu64 " shards there, %s\n", wt_select_text(pin, what),
           wt_view_text(pin, "tier"), wt_view_count(pin, "resident"), wt_view_count(pin, "shards"),
           wt_view_size(pin, "bytes", bytes));
}

static void show_pins(const json_t *reply) {
    const json_t *list = wt_view(reply, "pins"), *pin;
    size_t i;
    if (json_array_size(list) == 0)
        puts("nothing is pinned");
    json_array_foreach(list, i, pin) show_pin(pin);
}

static void show_removed(const json_t *reply) {
    printf("pins removed: %" PRIu64 "\n", wt_view_count(reply, "removed"));
}

static int post(const struct wt_verb *verb, const struct pin_args *a, const char *operand,
                const char *path, void (*show)(const json_t *reply)) {
    struct wt_err err = {0};
    json_t *body = wt_select_json(operand, a->tier, &err);
    if (!body)
        return wt_verb_usage(verb, "%s", err.text);
    return wt_daemon_run(verb, &a->daemon, "POST", path, body, a->json, show);
}

static int run_pin(const struct wt_verb *verb, int argc, char **argv) {
    struct pin_args a = {0};
    struct wt_operands operands;
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n > 1)
        return wt_verb_usage(verb, "it takes one DATASET[/LOT[/WAFER]] at a time");
    if (operands.n == 0 && a.tier)
        return wt_verb_usage(verb, "what is to be pinned in '%s'?", a.tier);
    if (operands.n == 0)
        return wt_daemon_run(verb, &a.daemon, "GET", "/v1/pins", NULL, a.json, show_pins);
    return post(verb, &a, operands.arg[0], "/v1/pin", show_pin);
}

static int run_unpin(const struct wt_verb *verb, int argc, char **argv) {
    struct pin_args a = {0};
    struct wt_operands operands;
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n != 1)
        return wt_verb_usage(verb, "it takes one DATASET[/LOT[/WAFER]]");
    return post(verb, &a, operands.arg[0], "/v1/unpin", show_removed);
}

const struct wt_verb wt_verb_pin = {
    .name = "pin",
    .summary = "keep shards in a tier, or list what is kept",
    .operands = "[DATASET[/LOT[/WAFER]]]",
    .about = "The shards stay in the tier, and are brought there as soon as there is room, which "
             "others have to make. It is refused when all that is pinned in the tier would not fit "
             "there. A new generation of the data set is pinned likewise, and a restart forgets "
             "nothing. Without a data set: prints what is pinned.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run_pin,
};

const struct wt_verb wt_verb_unpin = {
    .name = "unpin",
    .summary = "end pins",
    .operands = "DATASET[/LOT[/WAFER]]",
    .about = "Removes the pins that lie within: the same, and narrower ones. The copies stay until "
             "the policy wants their room.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run_unpin,
};
