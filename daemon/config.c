/* The table of options and the checks between them; see config.h. */
#include "daemon/config.h"

#include "tiers/conf.h"

#include <stdlib.h>
#include <string.h>

#define AT(member)   .offset = offsetof(struct wt_daemon_conf, member)
#define TEXT(member) AT(member), .size = sizeof((struct wt_daemon_conf *)0)->member

static const struct wt_conf_opt options[] = {
    {.name = "state_folder",
     .type = WT_CONF_TEXT,
     TEXT(state_folder),
     .def = "/var/lib/wafertier/state",
     .help = "where the daemon keeps what it knows about warm and hot copies, and heat"},
    {.name = "control",
     .type = WT_CONF_TEXT,
     TEXT(control),
     .def = "unix:/run/wafertier/control.sock",
     .help = "the control socket, unix:PATH; loaders and tools find the daemon there"},
    {.name = "leases", .type = WT_CONF_TEXT, TEXT(leases), .def = "", .help = WT_LEASES_HELP},
    {.name = "control_mode",
     .type = WT_CONF_TEXT,
     TEXT(control_mode),
     .def = "0660",
     .help = "mode of the socket, octal: who may read statistics"},
    {.name = "control_group",
     .type = WT_CONF_TEXT,
     TEXT(control_group),
     .def = "",
     .help = "group of the socket, whose members may register jobs and change things; empty: the "
             "daemon's own group"},
    {.name = "log_level",
     .type = WT_CONF_TEXT,
     TEXT(log_level_name),
     .def = "info",
     .reloadable = true,
     .help = "error, warn, info or debug"},
    {.name = "lock_ttl",
     .type = WT_CONF_TIME,
     AT(lock_ttl),
     .def = "30s",
     .min = 300,
     .max = 3600e3,
     .unit = "ms",
     .help = "the lock in the cold tier expires so long after its holder was last seen"},
    {.name = "tick",
     .type = WT_CONF_TIME,
     AT(tick),
     .def = "1s",
     .min = 10,
     .max = 60e3,
     .unit = "ms",
     .reloadable = true,
     .help = "pause between two looks at the tiers when nothing happens"},
    {.name = "report_interval",
     .type = WT_CONF_TIME,
     AT(report_interval),
     .def = "1s",
     .min = 10,
     .max = 60e3,
     .unit = "ms",
     .reloadable = true,
     .help = "how often jobs are asked to report"},
    {.name = "job_expiry",
     .type = WT_CONF_TIME,
     AT(job_expiry),
     .def = "60s",
     .min = 100,
     .max = 86400e3,
     .unit = "ms",
     .reloadable = true,
     .help = "a job that reported nothing for so long is forgotten"},
    {.name = "snapshot_interval",
     .type = WT_CONF_TIME,
     AT(snapshot_interval),
     .def = "60s",
     .min = 100,
     .max = 3600e3,
     .unit = "ms",
     .reloadable = true,
     .help = "how often heat and residency are written down; moves are noted at once"},

    {.section = "policy",
     .name = "half_life",
     .type = WT_CONF_TIME,
     AT(half_life),
     .def = "1h",
     .min = 1000,
     .max = 90 * 86400e3,
     .unit = "ms",
     .reloadable = true,
     .help = "heat halves in this time; at least four times the longest running epoch is used"},
    {.section = "policy",
     .name = "high",
     .type = WT_CONF_REAL,
     AT(policy.high),
     .def = "95%",
     .min = 0.01,
     .max = 1,
     .unit = "parts of the capacity",
     .reloadable = true,
     .help = "a tier is filled up to here; above it shards leave"},
    {.section = "policy",
     .name = "low",
     .type = WT_CONF_REAL,
     AT(policy.low),
     .def = "90%",
     .min = 0.01,
     .max = 1,
     .unit = "parts of the capacity",
     .reloadable = true,
     .help = "... until it is filled up to here"},
    {.section = "policy",
     .name = "percentile",
     .type = WT_CONF_REAL,
     AT(policy.percentile),
     .def = "95%",
     .min = 0.5,
     .max = 1,
     .unit = "parts of the bytes",
     .reloadable = true,
     .help = "bands are relative to the heat that so much of the read bytes do not exceed"},
    {.section = "policy",
     .name = "cold_below",
     .type = WT_CONF_REAL,
     AT(policy.cold_below),
     .def = "1%",
     .min = 0,
     .max = 1,
     .unit = "parts of the percentile's heat",
     .reloadable = true,
     .help = "shards cooler than this belong in the cold tier alone"},
    {.section = "policy",
     .name = "hot_above",
     .type = WT_CONF_REAL,
     AT(policy.hot_above),
     .def = "10%",
     .min = 0,
     .max = 1,
     .unit = "parts of the percentile's heat",
     .reloadable = true,
     .help = "shards hotter than this belong in the highest tier"},
    {.section = "policy",
     .name = "beat",
     .type = WT_CONF_REAL,
     AT(policy.beat),
     .def = "1.1",
     .min = 1,
     .max = 100,
     .unit = "times",
     .reloadable = true,
     .help = "a shard displaces another from a full tier when its heat is above so many times the "
             "other's, plus the margin"},
    {.section = "policy",
     .name = "margin",
     .type = WT_CONF_REAL,
     AT(policy.margin),
     .def = "1",
     .min = 0,
     .max = 1000,
     .unit = "reads of a shard",
     .reloadable = true,
     .help = "see beat; it keeps the resident set still when all is read equally often"},
    {.section = "policy",
     .name = "min_stay",
     .type = WT_CONF_TIME,
     AT(min_stay),
     .def = "60s",
     .min = 0,
     .max = 86400e3,
     .unit = "ms",
     .reloadable = true,
     .help = "a shard is not displaced sooner after it came"},

    {.section = "mover",
     .name = "moves",
     .type = WT_CONF_INT,
     AT(moves),
     .def = "4",
     .min = 1,
     .max = 64,
     .unit = "moves",
     .help = "moves at the same time"},
    {.section = "mover",
     .name = "bytes_in_flight",
     .type = WT_CONF_SIZE,
     AT(bytes_in_flight),
     .def = "64MiB",
     .min = 8 << 20,
     .max = 0x1p34,
     .unit = "bytes",
     .help =
         "memory for shards on their way, allocated at the start; at least 8 MiB for each move"},
    {.section = "mover",
     .name = "queue",
     .type = WT_CONF_INT,
     AT(queue),
     .def = "1024",
     .min = 1,
     .max = 65536,
     .unit = "moves",
     .reloadable = true,
     .help = "moves that wait; the policy decides the rest later"},
    {.section = "mover",
     .name = "retries",
     .type = WT_CONF_INT,
     AT(retries),
     .def = "5",
     .min = 0,
     .max = 100,
     .unit = "times",
     .reloadable = true,
     .help =
         "a move that failed so often again is given up, and its shard set aside until a reload"},
    {.section = "mover",
     .name = "backoff",
     .type = WT_CONF_TIME,
     AT(backoff),
     .def = "500ms",
     .min = 1,
     .max = 3600e3,
     .unit = "ms",
     .reloadable = true,
     .help = "pause before the first retry; it doubles each time. A tier that was full is left "
             "alone for as long"},
    {.section = "mover",
     .name = "backoff_max",
     .type = WT_CONF_TIME,
     AT(backoff_max),
     .def = "1min",
     .min = 1,
     .max = 86400e3,
     .unit = "ms",
     .reloadable = true,
     .help = "longest pause before a retry"},

    {.section = "listen",
     .name = "address",
     .type = WT_CONF_TEXT,
     TEXT(listen_address),
     .def = "",
     .help = "HOST:PORT for jobs of other hosts, with TLS and a token; empty: only the socket"},
    {.section = "listen",
     .name = "cert_file",
     .type = WT_CONF_TEXT,
     TEXT(listen_cert),
     .def = "",
     .reloadable = true,
     .help = "the certificate and its chain, PEM; a reload reads it again"},
    {.section = "listen",
     .name = "key_file",
     .type = WT_CONF_TEXT,
     TEXT(listen_key),
     .def = "",
     .reloadable = true,
     .help = "its private key, PEM; not readable by others"},
    {.section = "listen",
     .name = "token_file",
     .type = WT_CONF_TEXT,
     TEXT(listen_token),
     .def = "",
     .reloadable = true,
     .help = "its first line is the token that other hosts send; a reload reads it again"},

    {.section = "scrub",
     .name = "rate",
     .type = WT_CONF_SIZE,
     AT(scrub.rate),
     .def = "16MiB",
     .min = 0,
     .max = 1e12,
     .unit = "bytes/s",
     .reloadable = true,
     .help = "copies are read and verified at this rate at most, while nothing moves; 0: never"},
    {.section = "scrub",
     .name = "min_rate",
     .type = WT_CONF_SIZE,
     AT(scrub.min_rate),
     .def = "1MiB",
     .min = 0,
     .max = 1e12,
     .unit = "bytes/s",
     .reloadable = true,
     .help = "... and at this one while something moves, so that a busy daemon comes round too; 0: "
             "not at all then"},
    {.section = "scrub",
     .name = "every",
     .type = WT_CONF_TIME,
     AT(scrub.every_ms),
     .def = "7d",
     .min = 1000,
     .max = 365 * 86400e3,
     .unit = "ms",
     .reloadable = true,
     .help = "each copy is verified once in this time, where the rate suffices"},

    WT_TIER_CONF_ROWS(true),
};

static const struct wt_conf_section sections[] = {
    {.name = "tier",
     .array = offsetof(struct wt_daemon_conf, tier),
     .count = offsetof(struct wt_daemon_conf, n_tiers),
     .element = sizeof(struct wt_tier_opts),
     .max = WT_TIERS_MAX,
     .title = offsetof(struct wt_tier_opts, name),
     .help = "The tiers, the cold one first (it holds everything), the fastest last."},
};

const struct wt_conf_table wt_daemon_conf_table = {
    .what = "wafertierd.conf: configuration of wafertierd(8)",
    .opts = options,
    .n_opts = sizeof options / sizeof options[0],
    .sections = sections,
    .n_sections = sizeof sections / sizeof sections[0],
};

static int check_control(struct wt_daemon_conf *c, struct wt_err *err) {
    static const char scheme[] = "unix:";
    if (strncmp(c->control, scheme, sizeof scheme - 1) != 0 || c->control[sizeof scheme - 1] != '/')
        return wt_err_set(err, WT_EINVAL,
                          "option 'control': '%s' must be unix: and an absolute path", c->control);
    c->socket_path = c->control + sizeof scheme - 1;
    if (strlen(c->socket_path) > 107)
        return wt_err_set(
            err, WT_EINVAL,
            "option 'control': the path has more than 107 bytes, the limit of a Unix socket");
    char *end;
    unsigned long mode = strtoul(c->control_mode, &end, 8);
    if (end == c->control_mode || *end || mode > 0777)
        return wt_err_set(err, WT_EINVAL, "option 'control_mode': '%s' is no octal mode like 0660",
                          c->control_mode);
    c->mode = (unsigned)mode;
    return 0;
}

static int check_listen(const struct wt_daemon_conf *c, struct wt_err *err) {
    const char *const files[] = {c->listen_cert, c->listen_key, c->listen_token};
    static const char *const names[] = {"cert_file", "key_file", "token_file"};
    for (size_t i = 0; c->listen_address[0] && i < 3; i++)
        if (files[i][0] != '/')
            return wt_err_set(err, WT_EINVAL,
                              "listen: '%s' must be an absolute path: other hosts are served with "
                              "TLS and a token only",
                              names[i]);
    return 0;
}

static int check_policy(struct wt_daemon_conf *c, struct wt_err *err) {
    if (c->policy.low > c->policy.high)
        return wt_err_set(err, WT_EINVAL, "policy: low (%g) must not be above high (%g)",
                          c->policy.low, c->policy.high);
    if (c->policy.cold_below > c->policy.hot_above)
        return wt_err_set(err, WT_EINVAL,
                          "policy: cold_below (%g) must not be above hot_above (%g)",
                          c->policy.cold_below, c->policy.hot_above);
    c->policy.min_stay = (uint32_t)((c->min_stay + 999) / 1000);
    return 0;
}

static int check_mover(struct wt_daemon_conf *c, struct wt_err *err) {
    if (c->bytes_in_flight / WT_PART < (uint64_t)c->moves)
        return wt_err_set(err, WT_EINVAL,
                          "mover: %lld moves need bytes_in_flight of at least %lldMiB",
                          (long long)c->moves, (long long)c->moves * (WT_PART >> 20));
    if (c->backoff > c->backoff_max)
        return wt_err_set(err, WT_EINVAL, "mover: backoff must not be above backoff_max");
    c->mover = (struct wt_mover_conf){.moves = (uint32_t)c->moves,
                                      .bytes = c->bytes_in_flight,
                                      .queue = (uint32_t)c->queue,
                                      .retries = (uint32_t)c->retries,
                                      .backoff_ms = c->backoff,
                                      .backoff_max_ms = c->backoff_max};
    return 0;
}

static int check_tiers(const struct wt_daemon_conf *c, struct wt_err *err) {
    if (c->n_tiers == 0)
        return wt_err_set(
            err, WT_EINVAL,
            "no tier is given: write at least tier \"cold\" { url = \"file:///PATH\" }");
    for (size_t i = 1; i < c->n_tiers; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(c->tier[i].url, c->tier[k].url) == 0)
                return wt_err_set(err, WT_EINVAL, "tiers '%s' and '%s' have the same url",
                                  c->tier[k].name, c->tier[i].name);
    return 0;
}

int wt_daemon_conf_check(struct wt_daemon_conf *c, struct wt_err *err) {
    if (c->state_folder[0] != '/')
        return wt_err_set(err, WT_EINVAL, "option 'state_folder': '%s' must be an absolute path",
                          c->state_folder);
    if (wt_log_level_parse(c->log_level_name, &c->log_level) < 0)
        return wt_err_set(err, WT_EINVAL,
                          "option 'log_level': '%s' must be error, warn, info or debug",
                          c->log_level_name);
    int rc = check_control(c, err);
    if (rc == 0)
        rc = check_listen(c, err);
    if (rc == 0)
        rc = check_policy(c, err);
    if (rc == 0)
        rc = check_mover(c, err);
    return rc < 0 ? rc : check_tiers(c, err);
}

int wt_daemon_conf_load(const char *path, struct wt_daemon_conf *conf, struct wt_err *err) {
    int rc = wt_conf_load(&wt_daemon_conf_table, path, conf, err);
    if (rc < 0)
        return rc;
    rc = wt_daemon_conf_check(conf, err);
    if (rc < 0)
        wt_err_wrap(err, "%s", path);
    return rc;
}
