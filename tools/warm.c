/*
 * `wafertier warm` and `evict`: bring shards into a tier or out of it, now.
 *
 * Happy path: the daemon takes the request and answers its number; with --wait its progress is
 * asked for four times a second until it has ended. Failures: refused at once (it cannot fit, it is
 * pinned); shards that failed, with the daemon's reasons: exit status 1. An interrupt ends the
 * waiting, not the request.
 */
#include "tools/daemon.h"
#include "tools/progress.h"
#include "tools/select.h"
#include "tools/stop.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

struct warm_args {
    struct wt_daemon_opts daemon;
    const char *tier, *follow, *cancel;
    uint64_t patience_ms, hold_ms;
    bool wait, json, quiet;
};

#define COMMON_ARGS                                                                                \
    WT_DAEMON_ARGS(struct warm_args, daemon),                                                      \
        {.name = "wait",                                                                           \
         .letter = 'w',                                                                            \
         .type = WT_ARG_FLAG,                                                                      \
         .offset = offsetof(struct warm_args, wait),                                               \
         .help = "show its progress and come back when it has ended; exit status 0: every shard "  \
                 "is done"},                                                                       \
        {.name = "follow",                                                                         \
         .type = WT_ARG_TEXT,                                                                      \
         .offset = offsetof(struct warm_args, follow),                                             \
         .value = "ID",                                                                            \
         .help = "wait for a request that was made before"},                                       \
        {.name = "cancel",                                                                         \
         .type = WT_ARG_TEXT,                                                                      \
         .offset = offsetof(struct warm_args, cancel),                                             \
         .value = "ID",                                                                            \
         .help = "cancel a request; what it has done stays"},                                      \
        {.name = "patience",                                                                       \
         .type = WT_ARG_TIME,                                                                      \
         .offset = offsetof(struct warm_args, patience_ms),                                        \
         .value = "TIME",                                                                          \
         .min = 1000,                                                                              \
         .max = UINT64_C(604800000),                                                               \
         .help = "how long nothing may come forward before the rest counts as failed (10min)"},    \
        {.name = "quiet",                                                                          \
         .letter = 'q',                                                                            \
         .type = WT_ARG_FLAG,                                                                      \
         .offset = offsetof(struct warm_args, quiet),                                              \
         .help = "no progress"},                                                                   \
    {                                                                                              \
        .name = "json", .type = WT_ARG_FLAG, .offset = offsetof(struct warm_args, json),           \
        .help = "the daemon's last answer as it is"                                                \
    }

static const struct wt_arg warm_table[] = {
    {.name = "tier",
     .letter = 't',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct warm_args, tier),
     .value = "NAME",
     .help = "into which tier; without it the highest"},
    COMMON_ARGS,
};
static const struct wt_arg evict_table[] = {
    {.name = "tier",
     .letter = 't',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct warm_args, tier),
     .value = "NAME",
     .help = "out of which tier; without it all above cold"},
    {.name = "hold",
     .type = WT_ARG_TIME,
     .offset = offsetof(struct warm_args, hold_ms),
     .value = "TIME",
     .min = 1000,
     .max = UINT64_C(604800000),
     .help = "how long they are not brought back by the daemon itself (60s)"},
    COMMON_ARGS,
};

static bool is(const json_t *r, const char *state) {
    return strcmp(wt_view_text(r, "state"), state) == 0;
}

/* ---- what is shown ---- */

static void show_reasons(const json_t *r) {
    const json_t *reason;
    size_t i;
    json_array_foreach(wt_view(r, "reasons"), i, reason)
        printf("  %" PRIu64 " shards: %s (%s)\n", wt_view_count(reason, "shards"),
               wt_view_text(reason, "text"), wt_view_text(reason, "code"));
}

static void show_request(const json_t *r) {
    char what[WT_SELECT_TEXT], done[WT_SIZE_TEXT], all[WT_SIZE_TEXT], took[WT_SPAN_TEXT];
    const char *id = wt_view_text(r, "id"), *tier = wt_view_text(r, "tier");
    printf("%-6s %-5s %-28s %-8s %-8s %" PRIu64 " of %" PRIu64 " shards, %s of %s, %s", id,
           id[0] == 'e' ? "evict" : "warm", wt_select_text(r, what), tier[0] ? tier : "all",
           wt_view_text(r, "state"), wt_view_count(r, "shards.done"),
           wt_view_count(r, "shards.total"), wt_view_size(r, "bytes.done", done),
           wt_view_size(r, "bytes.total", all), wt_view_span(wt_view_real(r, "running_s"), took));
    if (wt_view_count(r, "shards.failed"))
        printf(", %" PRIu64 " failed", wt_view_count(r, "shards.failed"));
    putchar('\n');
    show_reasons(r);
}

static void show_requests(const json_t *reply) {
    const json_t *list = wt_view(reply, "requests"), *r;
    size_t i;
    if (json_array_size(list) == 0)
        puts("nothing was asked for since the daemon started");
    json_array_foreach(list, i, r) show_request(r);
}

static void show_last(const json_t *reply, bool as_json) {
    if (!as_json)
        show_request(reply);
    else if (json_dumpf(reply, stdout, JSON_INDENT(2)) == 0)
        putchar('\n');
}

/* ---- waiting ---- */

static void pause_a_little(void) {
    nanosleep(&(struct timespec){.tv_nsec = 250000000}, NULL);
}

static int path_of(const char *id, char *out, size_t size, struct wt_err *err) {
    if ((id[0] != 'w' && id[0] != 'e') || !id[1] ||
        strspn(id + 1, "0123456789") != strlen(id + 1) || strlen(id) > 20)
        return wt_err_set(err, WT_EINVAL, "'%.40s' is no request; they are called like w7 or e8",
                          id);
    snprintf(out, size, "/v1/%s/%s", id[0] == 'e' ? "evict" : "warm", id);
    return 0;
}

/* *r: the newest answer. */
static int wait_for(struct wt_daemon_link *link, const struct warm_args *a, json_t **r,
                    struct wt_err *err) {
    struct wt_progress progress;
    struct wt_stop stop;
    char path[64];
    int rc = path_of(wt_view_text(*r, "id"), path, sizeof path, err);
    if (rc == 0)
        rc = wt_stop_open(&stop, err);
    if (rc < 0)
        return rc;
    wt_progress_start(&progress, path[4] == 'w' ? "warm" : "evict", "shards",
                      wt_view_count(*r, "shards.total"), a->quiet);
    while (rc == 0 && is(*r, "running")) {
        json_t *newer = NULL;
        wt_progress_at(&progress, wt_view_count(*r, "shards.done"),
                       wt_view_count(*r, "bytes.done"));
        pause_a_little();
        if (wt_stop_asked(&stop)) {
            rc = wt_err_set(err, WT_ECANCELED,
                            "interrupted; %s goes on (--follow %s waits again, "
                            "--cancel %s ends it)",
                            strrchr(path, '/') + 1, strrchr(path, '/') + 1, strrchr(path, '/') + 1);
            break;
        }
        rc = wt_daemon_call(link, "GET", path, NULL, &newer, err);
        if (rc == WT_EMISSING)
            wt_err_wrap(err, "the daemon was restarted; ask again");
        if (rc == 0) {
            json_decref(*r);
            *r = newer;
        }
    }
    wt_progress_clear(&progress);
    wt_stop_close(&stop);
    return rc;
}

/* ---- the request ---- */

static json_t *body_of(const struct warm_args *a, const char *operand, struct wt_err *err) {
    json_t *body = wt_select_json(operand, a->tier, err);
    if (body && a->patience_ms)
        json_object_set_new(body, "patience_s", json_integer((json_int_t)(a->patience_ms / 1000)));
    if (body && a->hold_ms)
        json_object_set_new(body, "hold_s", json_integer((json_int_t)(a->hold_ms / 1000)));
    return body;
}

/* One exchange, and the wait where it is wanted. Takes the body over. */
static int ask(const struct wt_verb *verb, const struct warm_args *a, const char *method,
               const char *path, json_t *body, bool wait) {
    struct wt_daemon_link link;
    struct wt_err err = {0};
    json_t *r = NULL;
    int rc = wt_daemon_open(&a->daemon, &link, &err);
    if (rc == 0)
        rc = wt_daemon_call(&link, method, path, body, &r, &err);
    else
        json_decref(body);
    if (rc == 0 && wait)
        rc = wait_for(&link, a, &r, &err);
    wt_daemon_close(&link);
    if (rc == 0)
        show_last(r, a->json);
    bool bad = rc == 0 && wait && !is(r, "done");
    json_decref(r);
    if (rc < 0)
        return wt_daemon_fail(verb, &link, &err);
    return bad ? WT_EXIT_FAILED : WT_EXIT_OK;
}

static int run_on(const struct wt_verb *verb, const struct warm_args *a, const char *id) {
    struct wt_err err = {0};
    char path[64];
    if (path_of(id, path, sizeof path, &err) < 0)
        return wt_verb_usage(verb, "%s", err.text);
    if (a->cancel)
        return ask(verb, a, "DELETE", path, NULL, false);
    return ask(verb, a, "GET", path, NULL, true);
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct warm_args a = {0};
    struct wt_operands operands;
    struct wt_err err = {0};
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    const char *id = a.cancel ? a.cancel : a.follow;
    if (operands.n > 1 || (operands.n && id))
        return wt_verb_usage(verb, "it takes one DATASET[/LOT[/WAFER]] at a time, or an ID");
    if (id)
        return run_on(verb, &a, id);
    if (operands.n == 0 && (a.tier || a.wait))
        return wt_verb_usage(verb, "which DATASET[/LOT[/WAFER]]?");
    if (operands.n == 0)
        return wt_daemon_run(verb, &a.daemon, "GET", "/v1/warm", NULL, a.json, show_requests);
    json_t *body = body_of(&a, operands.arg[0], &err);
    if (!body)
        return wt_verb_usage(verb, "%s", err.text);
    return ask(verb, &a, "POST", strcmp(verb->name, "warm") == 0 ? "/v1/warm" : "/v1/evict", body,
               a.wait);
}

const struct wt_verb wt_verb_warm = {
    .name = "warm",
    .summary = "bring shards into a tier now",
    .operands = "[DATASET[/LOT[/WAFER]]]",
    .about =
        "Asks the daemon to bring the shards into the tier, and keeps them there until all are "
        "there. A shard counts as done only when the copy was verified. It is refused at once "
        "when it cannot fit beside what is pinned and asked for. Without a data set: prints "
        "the requests that the daemon remembers, of warm and evict.",
    .args = warm_table,
    .n_args = sizeof warm_table / sizeof warm_table[0],
    .run = run,
};

const struct wt_verb wt_verb_evict = {
    .name = "evict",
    .summary = "take shards out of a tier now",
    .operands = "[DATASET[/LOT[/WAFER]]]",
    .about = "Asks the daemon to remove the copies from the tier, and to leave them out for some "
             "time. The cold copy always stays; a shard of which cold has no verified copy stays "
             "where it is and counts as failed. It is refused while some of it is pinned there, or "
             "on its way there by hand. Without a data set: prints the requests that the daemon "
             "remembers, of warm and evict.",
    .args = evict_table,
    .n_args = sizeof evict_table / sizeof evict_table[0],
    .run = run,
};
