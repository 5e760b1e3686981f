/*
 * wafertierd.conf: one table of every option, and what holds between them.
 *
 * Happy path: load, check, hand the struct to the parts. Failures: WT_EINVAL naming file, line and
 * option.
 */
#ifndef WT_DAEMON_CONFIG_H
#define WT_DAEMON_CONFIG_H

#include "core/conf.h"
#include "core/log.h"
#include "daemon/mover.h"
#include "daemon/policy/policy.h"
#include "daemon/scrub.h"
#include "tiers/tier.h"

struct wt_daemon_conf {
    struct wt_tier_opts tier[WT_TIERS_MAX];
    size_t n_tiers; /* cold first */

    char state_folder[256];
    char control[256]; /* "unix:PATH" */
    char leases[512];  /* for gc, which reads this file; the daemon needs none */
    char control_mode[8];
    char control_group[64];
    char log_level_name[8];
    char listen_address[128], listen_cert[256], listen_key[256], listen_token[256];
    uint64_t lock_ttl, tick, report_interval, job_expiry, snapshot_interval; /* ms */

    uint64_t half_life, min_stay; /* ms */
    struct wt_policy_conf policy; /* its min_stay is filled from the one above */

    int64_t moves, retries, queue;
    uint64_t bytes_in_flight, backoff, backoff_max;
    struct wt_scrub_conf scrub;

    /* derived by the load */
    enum wt_log_level log_level;
    unsigned mode;           /* of the socket */
    const char *socket_path; /* in control[] */
    struct wt_mover_conf mover;
};

extern const struct wt_conf_table wt_daemon_conf_table;

int wt_daemon_conf_load(const char *path, struct wt_daemon_conf *conf, struct wt_err *err);
/* Checks what no single option can say, and fills the derived members. wt_daemon_conf_load calls
 * it. */
int wt_daemon_conf_check(struct wt_daemon_conf *conf, struct wt_err *err);

#endif
