/*
 * loader.conf, and what of a wafertierd.conf a client needs: the tiers and the daemon's socket.
 * Options that only the daemon knows are passed over, so one file serves both. Failures name file
 * and line (core/conf.h); a file without a tier is one.
 */
#include "tiers/conf.h"

#include <stdio.h>

static const struct wt_conf_opt opts[] = {
    {.name = "control",
     .type = WT_CONF_TEXT,
     .offset = offsetof(struct wt_client_conf, control),
     .size = sizeof((struct wt_client_conf *)0)->control,
     .def = "",
     .help = "the daemon: its socket, unix:PATH, or on another host https://HOST:PORT; empty: "
             "there is none"},
    {.name = "control_token_file",
     .type = WT_CONF_TEXT,
     .offset = offsetof(struct wt_client_conf, control_token_file),
     .size = sizeof((struct wt_client_conf *)0)->control_token_file,
     .def = "",
     .help = "with https: its first line is the token that the daemon wants"},
    {.name = "control_ca",
     .type = WT_CONF_TEXT,
     .offset = offsetof(struct wt_client_conf, control_ca),
     .size = sizeof((struct wt_client_conf *)0)->control_ca,
     .def = "",
     .help = "with https: who signed the daemon's certificate, PEM; empty: the system knows"},
    {.name = "lease",
     .type = WT_CONF_TIME,
     .offset = offsetof(struct wt_client_conf, lease),
     .def = "10min",
     .max = 86400000,
     .unit = "ms",
     .help = "a loader's lease on its generation, in the cold tier, is valid for this long and "
             "renewed at a third of it; gc keeps what is leased; 0: none"},
    {.name = "leases",
     .type = WT_CONF_TEXT,
     .offset = offsetof(struct wt_client_conf, leases),
     .size = sizeof((struct wt_client_conf *)0)->leases,
     .def = "",
     .help = WT_LEASES_HELP},
    WT_TIER_CONF_ROWS(false),
};

static const struct wt_conf_section sections[] = {
    {.name = "tier",
     .array = offsetof(struct wt_client_conf, tier),
     .count = offsetof(struct wt_client_conf, n_tiers),
     .element = sizeof(struct wt_tier_opts),
     .max = WT_TIERS_MAX,
     .title = offsetof(struct wt_tier_opts, name),
     .help = "a storage tier; the first is the cold one, which holds everything"},
};

const struct wt_conf_table wt_client_conf_table = {
    .what = "loader.conf",
    .opts = opts,
    .n_opts = sizeof opts / sizeof opts[0],
    .sections = sections,
    .n_sections = sizeof sections / sizeof sections[0],
    .ignore_unknown = true,
};

bool wt_client_conf_leases(const struct wt_client_conf *conf, struct wt_tier_opts *out) {
    if (!conf->leases[0])
        return false;
    /* The cold tier's patience: what is asked of both is as urgent. */
    *out = (struct wt_tier_opts){.name = "leases",
                                 .timeout_ms = conf->tier[0].timeout_ms,
                                 .min_rate = conf->tier[0].min_rate};
    snprintf(out->url, sizeof out->url, "%s", conf->leases);
    return true;
}

int wt_client_conf_load(const char *path, struct wt_client_conf *conf, struct wt_err *err) {
    struct wt_client_conf read;
    int rc = wt_conf_load(&wt_client_conf_table, path, &read, err);
    if (rc < 0)
        return rc;
    if (read.n_tiers == 0)
        return wt_err_set(err, WT_EINVAL,
                          "%s: no tier is configured; add tier \"cold\" { url = \"file:///PATH\" }",
                          path);
    *conf = read;
    return 0;
}
