/*
 * The daemon: does it answer on its socket, does it move anything, what does it see? Where none
 * answers: does somebody else hold its lock? The lock is taken for an instant to find out; a daemon
 * that starts just then stands by and asks again.
 */
#include "core/dataset.h"
#include "core/http.h"
#include "core/json.h"
#include "tools/doctor/doctor.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MS = 5000, LOCK_MS = 2000 };

static void say(struct wt_doctor *d, const char *text) {
    snprintf(d->daemon, sizeof d->daemon, "%s", text);
}

/* *health: NULL when what answers speaks no JSON. */
static int ask(const struct wt_client_conf *conf, json_t **health, struct wt_err *err) {
    struct wt_http *http;
    long status = 0;
    char *reply = NULL;
    size_t len = 0;
    *health = NULL;
    int rc = wt_http_open(&(struct wt_http_where){.address = conf->control,
                                                  .token_file = conf->control_token_file,
                                                  .ca = conf->control_ca},
                          &http, err);
    if (rc < 0)
        return rc;
    rc = wt_http_call(http, "GET", "/healthz", NULL, ANSWER_MS, &status, &reply, &len, err);
    if (rc == 0 && (status == 401 || status == 403))
        rc = wt_err_set(err, WT_EDENIED, "%s refuses the token in %s", conf->control,
                        conf->control_token_file);
    else if (rc == 0)
        wt_json_load(reply, len, 0, health, NULL);
    free(reply);
    wt_http_free(http);
    return rc;
}

static void no_answer(struct wt_doctor *d, int rc, const struct wt_err *err) {
    bool denied = rc == WT_EDENIED;
    say(d, denied ? "it may not be asked" : "does not answer");
    wt_doctor_find(d, WT_DOCTOR_WRONG, denied ? WT_DOCTOR_DAEMON_DENIED : WT_DOCTOR_DAEMON_DOWN,
                   "daemon", NULL, "%s", err->text);
}

static void name_tiers(const json_t *down, char *out, size_t size) {
    const json_t *name;
    size_t i, used = 0;
    out[0] = '\0';
    json_array_foreach(down, i, name) if (used < size) used +=
        (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", json_string_value(name));
}

static void judge(struct wt_doctor *d, const json_t *health) {
    const char *status = json_string_value(json_object_get(health, "status"));
    const char *why = json_string_value(json_object_get(health, "standby_reason"));
    const char *version = json_string_value(json_object_get(health, "version"));
    char names[200];
    if (!status) {
        say(d, "answers, but not like a wafertierd");
        wt_doctor_find(d, WT_DOCTOR_WRONG, WT_DOCTOR_DAEMON_DOWN, "daemon", NULL,
                       "what answers on %s is no wafertierd", d->conf.control);
        return;
    }
    snprintf(d->daemon, sizeof d->daemon, "wafertierd %.40s: %.40s", version ? version : "?",
             status);
    name_tiers(json_object_get(health, "down"), names, sizeof names);
    if (strcmp(status, "standby") == 0)
        wt_doctor_find(d, WT_DOCTOR_WRONG, WT_DOCTOR_DAEMON_STANDBY, "daemon", NULL,
                       "it stands by and moves nothing: %s",
                       why ? why : "it does not hold the lock");
    else if (strcmp(status, "degraded") == 0)
        wt_doctor_find(d, WT_DOCTOR_WRONG, WT_DOCTOR_DAEMON_DEGRADED, "daemon", NULL,
                       "it sees down: %s", names);
}

void wt_doctor_control(struct wt_doctor *d) {
    json_t *health;
    struct wt_err err = {0};
    if (!d->conf.control[0]) {
        say(d, "none is configured");
        return;
    }
    int rc = ask(&d->conf, &health, &err);
    d->daemon_answers = rc == 0;
    if (rc < 0) {
        no_answer(d, rc, &err);
        return;
    }
    judge(d, health);
    json_decref(health);
}

void wt_doctor_lock(struct wt_doctor *d, struct wt_tier *cold) {
    char owner[96], host[64] = "localhost";
    if (!d->conf.control[0] || d->daemon_answers || !(wt_tier_caps(cold) & WT_CAP_LOCK))
        return;
    gethostname(host, sizeof host - 1);
    snprintf(owner, sizeof owner, "doctor %ld on %s", (long)getpid(), host);
    struct wt_req req = {.op = WT_OP_LOCK, .key = WT_LOCK_KEY, .owner = owner, .ttl_ms = LOCK_MS};
    int rc = wt_doctor_do(d, cold, &req);
    if (rc == WT_ELOCKED)
        wt_doctor_find(d, WT_DOCTOR_WRONG, WT_DOCTOR_LOCK_HELD, "daemon", NULL, "%s", req.err.text);
    if (rc < 0) /* what else failed is seen again when the probe is written */
        return;
    req = (struct wt_req){.op = WT_OP_UNLOCK, .key = WT_LOCK_KEY, .owner = owner};
    wt_doctor_do(d, cold, &req); /* it expires by itself */
}
