/*
 * The `tier` sections that the daemon's, the loader's and the tools' configurations share, and
 * loader.conf itself.
 */
#ifndef WT_TIERS_CONF_H
#define WT_TIERS_CONF_H

#include "core/conf.h"
#include "tiers/forms.h"
#include "tiers/tier.h"

/* Rows for a table: options of section "tier" in an element of type struct wt_tier_opts. */
#define WT_TIER_CONF_ROWS(reload)                                                                  \
    {.section = "tier",                                                                            \
     .name = "url",                                                                                \
     .type = WT_CONF_TEXT,                                                                         \
     .offset = offsetof(struct wt_tier_opts, url),                                                 \
     .size = 512,                                                                                  \
     .help = WT_FORM_HELP},                                                                        \
        {.section = "tier",                                                                        \
         .name = "capacity",                                                                       \
         .type = WT_CONF_SIZE,                                                                     \
         .offset = offsetof(struct wt_tier_opts, capacity),                                        \
         .def = "0",                                                                               \
         .unit = "bytes",                                                                          \
         .help = "what wafertier may use of it; 0: no limit of our own",                           \
         .reloadable = reload},                                                                    \
        {.section = "tier",                                                                        \
         .name = "depth",                                                                          \
         .type = WT_CONF_INT,                                                                      \
         .offset = offsetof(struct wt_tier_opts, depth),                                           \
         .def = "0",                                                                               \
         .min = 0,                                                                                 \
         .max = 1024,                                                                              \
         .unit = "requests",                                                                       \
         .help = "requests in flight; 0: the backend's default"},                                  \
        {.section = "tier",                                                                        \
         .name = "timeout",                                                                        \
         .type = WT_CONF_TIME,                                                                     \
         .offset = offsetof(struct wt_tier_opts, timeout_ms),                                      \
         .def = "10s",                                                                             \
         .min = 10,                                                                                \
         .max = 3600000,                                                                           \
         .unit = "ms",                                                                             \
         .help = "base of a request's deadline, before its bytes"},                                \
        {.section = "tier",                                                                        \
         .name = "min_rate",                                                                       \
         .type = WT_CONF_SIZE,                                                                     \
         .offset = offsetof(struct wt_tier_opts, min_rate),                                        \
         .def = "8MiB",                                                                            \
         .min = 1024,                                                                              \
         .max = 1e15,                                                                              \
         .unit = "bytes/s",                                                                        \
         .help = "slowest rate that a deadline allows for"},                                       \
        {.section = "tier",                                                                        \
         .name = "land_max",                                                                       \
         .type = WT_CONF_SIZE,                                                                     \
         .offset = offsetof(struct wt_tier_opts, land_max),                                        \
         .def = "0",                                                                               \
         .unit = "bytes",                                                                          \
         .help = "so much may `wafertier pack --land` put here that is not in the cold tier yet, " \
                 "and that nothing but this tier keeps meanwhile; 0: nothing",                     \
         .reloadable = reload},                                                                    \
        {.section = "tier",                                                                        \
         .name = "read_only",                                                                      \
         .type = WT_CONF_BOOL,                                                                     \
         .offset = offsetof(struct wt_tier_opts, read_only),                                       \
         .def = "false",                                                                           \
         .help = "refuse put, remove and lock"},                                                   \
    {                                                                                              \
        .section = "tier", .name = "filter", .type = WT_CONF_TEXT,                                 \
        .offset = offsetof(struct wt_tier_opts, filter), .size = 256, .def = "",                   \
        .help = "for tests and demos: slow it or let it fail, as in "                              \
                "\"throttle rate=50MiB; delay read=2ms; fault read=IO:0.01 seed=7\""               \
    }

#define WT_LEASES_HELP                                                                             \
    "where loaders keep their leases: a URL as of a tier, for loaders that may not write to the "  \
    "cold one, the same for them and for gc; empty: in the cold tier"

struct wt_client_conf { /* loader.conf: what a loader or a tool needs */
    struct wt_tier_opts tier[WT_TIERS_MAX];
    size_t n_tiers;    /* cold first */
    uint64_t lease;    /* ms, 0: a loader writes none */
    char leases[512];  /* URL of the place for them; "": the cold tier */
    char control[256]; /* "unix:/run/wafertier/control.sock", "https://HOST:PORT"; "": no daemon */
    char control_token_file[256], control_ca[256]; /* of https: */
};
extern const struct wt_conf_table wt_client_conf_table;
/* The place for leases as a tier; false: it is the cold tier. */
bool wt_client_conf_leases(const struct wt_client_conf *conf, struct wt_tier_opts *out);
/* Reads loader.conf, or the tiers and socket of a wafertierd.conf/local.conf (options that only the
 * daemon knows are ignored). */
int wt_client_conf_load(const char *path, struct wt_client_conf *conf, struct wt_err *err);

#endif
