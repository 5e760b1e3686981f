/*
 * Reload: what can change in place does, all of it or nothing; see daemon.h.
 *
 * Happy path: read and check the file, compare, apply. Failures: a wrong file, something that needs
 * a restart, a token or certificate that cannot be taken: named, and all stays as it is.
 */
#include "core/json.h"
#include "daemon/daemon.h"
#include "daemon/notify.h"

static void add_name(void *arg, const char *name) {
    json_t **list = arg;
    if (*list)
        wt_json_push(list, json_string(name));
}

static int read_conf(struct wt_daemon *d, struct wt_daemon_conf *conf, struct wt_err *err) {
    int rc = wt_daemon_conf_load(d->conf_path, conf, err);
    if (rc < 0)
        return rc;
    if (wt_conf_frozen(&wt_daemon_conf_table, &d->conf, conf, err) < 0) {
        wt_err_wrap(err, "%s: these need a restart", d->conf_path);
        return err->code = WT_EUNSUPPORTED;
    }
    rc = wt_control_reload(d->control,
                           &(struct wt_control_opts){.cert_file = conf->listen_cert,
                                                     .key_file = conf->listen_key,
                                                     .token_file = conf->listen_token},
                           err);
    return rc < 0 ? wt_err_wrap(err, "%s: listen", d->conf_path) : 0;
}

static void apply(struct wt_daemon *d, const struct wt_daemon_conf *conf) {
    d->conf = *conf;
    d->conf.socket_path = d->conf.control + (conf->socket_path - conf->control);
    d->log.level = conf->log_level;
    wt_mover_tune(d->mover, &d->conf.mover);
    wt_mover_forgive(d->mover);
    wt_daemon_half_life(d);
    uv_timer_start(&d->tick, wt_daemon_on_tick, d->conf.tick, d->conf.tick);
    for (uint32_t t = 0; t < d->n_tiers; t++)
        wt_tier_resize(d->tier[t], d->conf.tier[t].capacity);
    wt_planner_reload(d->planner);
    wt_planner_ask_usage(d->planner);
}

/* A newer generation may lie there. */
static void look_for_sets(struct wt_daemon *d) {
    if (!wt_daemon_active(d))
        return;
    for (size_t i = 0; i < d->catalog.n_sets; i++)
        if (!d->catalog.set[i]->retired)
            wt_datasets_want(d->datasets, d->catalog.set[i]->d.m.name, NULL, NULL, NULL);
    wt_daemon_find_sets(d);
}

int wt_daemon_reload(struct wt_daemon *d, json_t **changed, struct wt_err *err) {
    struct wt_daemon_conf conf;
    *err = (struct wt_err){0};
    if (d->stopping)
        return wt_err_set(err, WT_ECANCELED, "the daemon is stopping");
    wt_notify_reloading();
    json_t *names = json_array();
    int rc = read_conf(d, &conf, err);
    if (rc < 0) {
        wt_log(&d->log, WT_LOG_ERROR, "nothing was reloaded: %s", err->text);
    } else {
        wt_conf_changed(&wt_daemon_conf_table, &d->conf, &conf, add_name, &names);
        apply(d, &conf);
        look_for_sets(d);
        wt_log(&d->log, WT_LOG_INFO, "%s was reloaded, %zu options changed", d->conf_path,
               json_array_size(names));
    }
    wt_daemon_event(d, "reload",
                    json_pack("{s:O, s:o}", "changed", names, "text", wt_json_string(err->text)));
    if (rc == 0 && changed)
        *changed = names;
    else
        json_decref(names);
    wt_notify_ready();
    return rc;
}
