/*
 * Pins and quotas over HTTP; see rules.h. A pin is answered when its shards are known and the disk
 * has it.
 */
#include "core/json.h"
#include "core/mem.h"
#include "daemon/body.h"
#include "daemon/routes.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- selectors ---- */

int wt_read_selector(const json_t *body, struct wt_selector *out, struct wt_err *err) {
    int rc = wt_body_text(body, "dataset", out->dataset, sizeof out->dataset, err);
    if (rc == 0)
        rc = wt_dataset_name_check(out->dataset, err);
    if (rc == 0)
        rc = wt_body_option(body, "lot", out->lot, sizeof out->lot, err);
    if (rc == 0)
        rc = wt_body_option(body, "wafer", out->wafer, sizeof out->wafer, err);
    if (rc == 0 && out->wafer[0] && !out->lot[0])
        rc = wt_err_set(err, WT_EINVAL, "'wafer' needs the 'lot' that it is of");
    return rc;
}

struct looking {
    struct wt_daemon *d;
    struct wt_selector selector;
    wt_places_done done;
    void *arg;
};

static void on_found(void *arg, int rc, const struct wt_err *err, struct wt_catalog_set *set) {
    struct looking *l = arg;
    (void)set;
    if (rc < 0)
        l->done(l->arg, rc, err, NULL, NULL);
    else
        wt_places_select(l->d->places, &l->selector, l->done, l->arg);
    free(l);
}

void wt_route_select(struct wt_daemon *d, const struct wt_selector *selector, wt_places_done done,
                     void *arg) {
    struct wt_err err = {0};
    if (wt_catalog_find(&d->catalog, selector->dataset, 0) || !wt_daemon_active(d)) {
        wt_places_select(d->places, selector, done, arg);
        return;
    }
    struct looking *l = wt_calloc(1, sizeof *l);
    int rc = l ? 0 : wt_err_set(&err, WT_ENOMEM, "out of memory");
    if (rc == 0) {
        *l = (struct looking){.d = d, .selector = *selector, .done = done, .arg = arg};
        rc = wt_datasets_want(d->datasets, selector->dataset, on_found, l, &err);
    }
    if (rc < 0) {
        free(l);
        done(arg, rc, &err, NULL, NULL);
    }
}

int wt_read_tier(const struct wt_daemon *d, const json_t *body, uint32_t *out, struct wt_err *err) {
    char name[64];
    int rc = wt_body_option(body, "tier", name, sizeof name, err);
    if (rc < 0 || !name[0])
        return rc;
    for (uint32_t t = 0; t < d->n_tiers; t++)
        if (strcmp(wt_tier_name(d->tier[t]), name) == 0) {
            if (t == 0)
                return wt_err_set(err, WT_EINVAL,
                                  "tier '%s' is the cold one, which holds everything anyhow", name);
            *out = t;
            return 0;
        }
    return wt_err_set(err, WT_EINVAL, "there is no tier '%s'; see GET /v1/tiers", name);
}

json_t *wt_text_or_null(const char *text) {
    return text[0] ? wt_json_string(text) : json_null();
}

static uint64_t resident(const struct wt_catalog_set *set, const struct wt_pin *p) {
    uint64_t n = 0;
    if (set && p->selection.shards == set->d.m.shards)
        return set->held[p->tier];
    for (uint64_t k = UINT64_MAX; set && wt_selection_next(&p->selection, &k);)
        n += k < set->d.m.shards && (set->shard[k].mask & (1u << p->tier)) != 0;
    return n;
}

static json_t *pin_json(const struct wt_daemon *d, const struct wt_pin *p) {
    const struct wt_catalog_set *set = wt_catalog_find(&d->catalog, p->selector.dataset, 0);
    return json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "dataset", p->selector.dataset,
                     "lot", wt_text_or_null(p->selector.lot), "wafer",
                     wt_text_or_null(p->selector.wafer), "tier", wt_tier_name(d->tier[p->tier]),
                     "shards", p->known ? wt_body_number(p->selection.shards) : json_null(),
                     "bytes", p->known ? wt_body_number(p->selection.bytes) : json_null(),
                     "resident", wt_body_number(p->known ? resident(set, p) : 0), "time",
                     wt_body_number(p->time));
}

static void tell(struct wt_daemon *d, const char *kind, const struct wt_selector *s,
                 const char *tier, uint64_t bytes) {
    wt_daemon_event(d, kind,
                    json_pack("{s:s, s:o, s:o, s:s?, s:o}", "dataset", s->dataset, "lot",
                              wt_text_or_null(s->lot), "wafer", wt_text_or_null(s->wafer), "tier",
                              tier, "bytes", wt_body_number(bytes)));
}

/* ---- answers that wait for the disk ---- */

struct saving {
    struct wt_call *call;
    json_t *reply;
};

static void on_saved(void *arg, int rc, const struct wt_err *err) {
    struct saving *s = arg;
    if (rc < 0) {
        json_decref(s->reply);
        wt_call_fail(s->call, err);
    } else {
        wt_call_reply(s->call, WT_HTTP_OK, s->reply);
    }
    free(s);
}

static void answer_saved(struct wt_daemon *d, struct wt_call *call, json_t *reply) {
    struct saving *s = wt_calloc(1, sizeof *s);
    if (!s) {
        json_decref(reply);
        wt_call_reply(call, 0, NULL);
        return;
    }
    *s = (struct saving){.call = call, .reply = reply};
    wt_rules_save(d->rules, on_saved, s);
}

/* ---- pin ---- */

struct pinning {
    struct wt_daemon *d;
    struct wt_call *call;
    struct wt_selector selector;
    uint32_t tier;
};

static void on_selected(void *arg, int rc, const struct wt_err *why, struct wt_catalog_set *set,
                        struct wt_selection *selection) {
    struct pinning *p = arg;
    struct wt_daemon *d = p->d;
    struct wt_err err = {0};
    const struct wt_pin *pin = NULL;
    if (rc < 0) {
        err = *why;
    } else if (wt_requests_fit(d->requests, set, selection, p->tier, &err) < 0) {
        wt_selection_free(selection);
    } else {
        pin = wt_rules_pin(d->rules, &p->selector, p->tier, (uint64_t)time(NULL), selection, &err);
        wt_selection_free(selection);
    }
    if (pin) {
        tell(d, "pin", &p->selector, wt_tier_name(d->tier[p->tier]), pin->selection.bytes);
        answer_saved(d, p->call, pin_json(d, pin));
    } else {
        wt_call_fail(p->call, &err);
    }
    free(p);
}

void wt_route_pin(void *arg, struct wt_call *call) {
    struct wt_daemon *d = arg;
    struct wt_err err = {0};
    if (wt_refuse_standby(d, call))
        return;
    struct pinning *p = wt_calloc(1, sizeof *p);
    int rc = p ? wt_rules_may_change(d->rules, &err) : wt_err_set(&err, WT_ENOMEM, "out of memory");
    if (rc == 0)
        rc = wt_read_selector(call->body, &p->selector, &err);
    if (rc == 0) {
        *p =
            (struct pinning){.d = d, .call = call, .selector = p->selector, .tier = d->n_tiers - 1};
        rc = wt_read_tier(d, call->body, &p->tier, &err);
    }
    if (rc == 0 && p->tier == 0)
        rc = wt_err_set(&err, WT_EINVAL, "there is no tier above cold to pin in");
    if (rc < 0) {
        wt_call_fail(call, &err);
        free(p);
        return;
    }
    wt_route_select(d, &p->selector, on_selected, p);
}

void wt_route_unpin(void *arg, struct wt_call *call) {
    struct wt_daemon *d = arg;
    struct wt_selector s = {0};
    struct wt_err err = {0};
    uint32_t tier = 0;
    if (wt_refuse_standby(d, call))
        return;
    int rc = wt_rules_may_change(d->rules, &err);
    if (rc == 0)
        rc = wt_read_selector(call->body, &s, &err);
    if (rc == 0)
        rc = wt_read_tier(d, call->body, &tier, &err);
    uint8_t tiers = UINT8_MAX;
    if (tier)
        tiers = (uint8_t)(1u << tier);
    size_t n = rc == 0 ? wt_rules_unpin(d->rules, &s, tiers) : 0;
    if (rc == 0 && n == 0)
        rc = wt_err_set(&err, WT_EMISSING, "no pin lies within that; see GET /v1/pins");
    if (rc < 0) {
        wt_call_fail(call, &err);
        return;
    }
    tell(d, "unpin", &s, tier ? wt_tier_name(d->tier[tier]) : NULL, 0);
    answer_saved(d, call, json_pack("{s:o}", "removed", wt_body_number(n)));
}

void wt_route_get_pins(void *arg, struct wt_call *call) {
    struct wt_daemon *d = arg;
    const struct wt_pin *const *pin = NULL;
    size_t n = d->rules ? wt_rules_pins(d->rules, &pin) : 0;
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        wt_json_push(&list, pin_json(d, pin[i]));
    wt_call_reply(call, WT_HTTP_OK, json_pack("{s:o}", "pins", list));
}

/* ---- quotas ---- */

static json_t *quota_json(const struct wt_daemon *d, const char *dataset, uint32_t tier,
                          uint64_t bytes) {
    const struct wt_catalog_set *set = wt_catalog_find(&d->catalog, dataset, 0);
    return json_pack("{s:s, s:s, s:o, s:o}", "dataset", dataset, "tier",
                     wt_tier_name(d->tier[tier]), "bytes", wt_body_number(bytes), "used",
                     wt_body_number(set ? set->used[tier] : 0));
}

void wt_route_quota(void *arg, struct wt_call *call) {
    struct wt_daemon *d = arg;
    struct wt_selector s = {0};
    struct wt_err err = {0};
    uint32_t tier = d->n_tiers - 1;
    uint64_t bytes = 0;
    if (wt_refuse_standby(d, call))
        return;
    int rc = wt_rules_may_change(d->rules, &err);
    if (rc == 0)
        rc = wt_read_selector(call->body, &s, &err);
    if (rc == 0 && s.lot[0])
        rc = wt_err_set(&err, WT_EINVAL, "a quota is for a whole data set; leave out 'lot'");
    if (rc == 0)
        rc = wt_read_tier(d, call->body, &tier, &err);
    if (rc == 0 && tier == 0)
        rc = wt_err_set(&err, WT_EINVAL, "there is no tier above cold to limit");
    if (rc == 0)
        rc = wt_body_u64(call->body, "bytes", true, &bytes, &err);
    if (rc == 0)
        rc = wt_rules_quota(d->rules, s.dataset, tier, bytes ? bytes : UINT64_MAX, &err);
    if (rc < 0) {
        wt_call_fail(call, &err);
        return;
    }
    tell(d, "quota", &s, wt_tier_name(d->tier[tier]), bytes);
    answer_saved(d, call, quota_json(d, s.dataset, tier, bytes));
}

void wt_route_get_quotas(void *arg, struct wt_call *call) {
    struct wt_daemon *d = arg;
    const struct wt_quota *q = NULL;
    size_t n = d->rules ? wt_rules_quotas(d->rules, &q) : 0;
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        wt_json_push(&list, quota_json(d, q[i].dataset, q[i].tier, q[i].bytes));
    wt_call_reply(call, WT_HTTP_OK, json_pack("{s:o}", "quotas", list));
}
