/* `wafertier events`: what the daemon does, as it happens. */
#include "tools/daemon.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct events_args {
    struct wt_daemon_opts daemon;
    const char *since;
    uint64_t number;
    bool json;
};

static const struct wt_arg args[] = {
    WT_DAEMON_ARGS(struct events_args, daemon),
    {.name = "since",
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct events_args, since),
     .value = "ID",
     .help = "begin behind this event, as far as the daemon remembers; 0: with the oldest. Without "
             "it: with what happens from now on"},
    {.name = "number",
     .letter = 'n',
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct events_args, number),
     .value = "N",
     .help = "end after so many events (never)"},
    {.name = "json",
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct events_args, json),
     .help = "each line as the daemon sends it, also those that only say that it is alive"},
};

struct follow {
    const struct events_args *a;
    uint64_t seen;
    bool enough; /* by --number, or nobody reads us any more */
};

/* Fields that say something, in this order. */
static const char *const fields[] = {"dataset", "lot",     "wafer",  "shard",      "tier",
                                     "from",    "to",      "drop",   "bytes",      "shards",
                                     "ms",      "job",     "name",   "generation", "request",
                                     "state",   "changed", "events", "code",       "text"};

static void show_field(const char *name, const json_t *v) {
    const json_t *item;
    size_t i;
    if (json_is_integer(v))
        printf(" %s=%lld", name, (long long)json_integer_value(v));
    else if (json_is_string(v) && json_string_length(v) && strcmp(name, "text") == 0)
        printf(": %s", json_string_value(v));
    else if (json_is_string(v) && json_string_length(v))
        printf(" %s=%s", name, json_string_value(v));
    json_array_foreach(v, i, item) printf("%s%s", i ? "," : " changed=", json_string_value(item));
}

static void show(const json_t *e) {
    double seconds = wt_view_real(e, "time");
    time_t when = (time_t)seconds;
    struct tm tm;
    char clock[32] = "";
    if (seconds > 0 && localtime_r(&when, &tm))
        strftime(clock, sizeof clock, "%F %T", &tm);
    if (json_is_integer(wt_view(e, "id")))
        printf("%" PRIu64 " ", wt_view_count(e, "id"));
    printf("%s %s", clock, wt_view_text(e, "kind"));
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        show_field(fields[i], wt_view(e, fields[i]));
    putchar('\n');
}

static int on_line(void *arg, const char *text) {
    struct follow *f = arg;
    json_t *e = json_loads(text, 0, NULL);
    const char *kind = wt_view_text(e, "kind");
    if (f->a->json)
        puts(text);
    else if (strcmp(kind, "alive") != 0)
        show(e);
    f->seen += json_is_integer(wt_view(e, "id"));
    f->enough = (f->a->number && f->seen >= f->a->number) || fflush(stdout) != 0;
    json_decref(e);
    return f->enough ? WT_ECANCELED : 0;
}

static int path_of(const struct events_args *a, char *out, size_t size) {
    if (!a->since)
        return snprintf(out, size, "/v1/events");
    if (!a->since[0] || strspn(a->since, "0123456789") != strlen(a->since) || strlen(a->since) > 18)
        return -1;
    return snprintf(out, size, "/v1/events?since=%s", a->since);
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct events_args a = {0};
    struct wt_operands operands;
    struct wt_daemon_link link;
    struct wt_err err = {0};
    struct follow follow = {.a = &a};
    char path[64];
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n)
        return wt_verb_usage(verb, "it takes options only");
    if (path_of(&a, path, sizeof path) < 0)
        return wt_verb_usage(verb, "--since '%s': give the number of an event", a.since);
    int rc = wt_daemon_open(&a.daemon, &link, &err);
    if (rc == 0)
        rc = wt_daemon_stream(&link, path, on_line, &follow, &err);
    wt_daemon_close(&link);
    if (follow.enough)
        return WT_EXIT_OK;
    if (rc == 0) { /* its last line says why */
        wt_err_set(&err, WT_EDOWN, "the daemon ended the stream");
        link.lost = true;
    }
    return wt_daemon_fail(verb, &link, &err);
}

const struct wt_verb wt_verb_events = {
    .name = "events",
    .summary = "what the daemon does, as it happens",
    .operands = "",
    .about = "A line for each event until it is interrupted: moves, tiers that go down, come back "
             "or are full, jobs, data sets, requests by hand, reloads, who leads. Each line begins "
             "with the event's number, for --since.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
