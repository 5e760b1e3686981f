/* Rules to and from JSON; see rules_file.h. */
#include "daemon/rules_file.h"

#include "core/json.h"
#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1 };

void wt_rule_list_free(struct wt_rule_list *list) {
    for (size_t i = 0; i < list->n_pins; i++) {
        wt_selection_free(&list->pin[i]->selection);
        free(list->pin[i]);
    }
    free(list->pin);
    free(list->quota);
    *list = (struct wt_rule_list){0};
}

struct wt_pin *wt_rule_list_add_pin(struct wt_rule_list *list) {
    struct wt_pin *pin = wt_calloc(1, sizeof *pin);
    if (!pin || wt_grow(&list->pin, &list->pin_cap, list->n_pins + 1, sizeof(*list->pin)) < 0) {
        free(pin);
        return NULL;
    }
    list->pin[list->n_pins++] = pin;
    return pin;
}

int wt_rule_list_add_quota(struct wt_rule_list *list, const struct wt_quota *quota) {
    if (wt_grow(&list->quota, &list->quota_cap, list->n_quotas + 1, sizeof *list->quota) < 0)
        return WT_ENOMEM;
    list->quota[list->n_quotas++] = *quota;
    return 0;
}

char *wt_rules_format(const struct wt_rule_list *list, const struct wt_tier_opts *tier,
                      size_t *len) {
    json_t *pins = json_array(), *quotas = json_array();
    for (size_t i = 0; i < list->n_pins; i++) {
        const struct wt_pin *p = list->pin[i];
        wt_json_push(&pins, json_pack("{s:s, s:s, s:s, s:s, s:I}", "dataset", p->selector.dataset,
                                      "lot", p->selector.lot, "wafer", p->selector.wafer, "tier",
                                      tier[p->tier].name, "time", (json_int_t)p->time));
    }
    for (size_t i = 0; i < list->n_quotas; i++) {
        const struct wt_quota *q = &list->quota[i];
        wt_json_push(&quotas, json_pack("{s:s, s:s, s:I}", "dataset", q->dataset, "tier",
                                        tier[q->tier].name, "bytes", (json_int_t)q->bytes));
    }
    json_t *root = json_pack("{s:i, s:I, s:o, s:o}", "version", VERSION, "change",
                             (json_int_t)list->change, "pins", pins, "quotas", quotas);
    char *text = root ? wt_json_dump(root, JSON_INDENT(1), len) : NULL;
    json_decref(root);
    return text;
}

static int copy_text(const json_t *o, const char *name, char *out, size_t size) {
    const char *text = json_string_value(json_object_get(o, name));
    if (!text || strlen(text) >= size)
        return WT_EFORMAT;
    memcpy(out, text, strlen(text) + 1);
    return 0;
}

/* 0, WT_EMISSING: there is no such tier above cold; WT_EFORMAT. */
static int read_tier(const json_t *o, const struct wt_tier_opts *tier, uint32_t n_tiers,
                     uint32_t *out) {
    const char *name = json_string_value(json_object_get(o, "tier"));
    if (!name)
        return WT_EFORMAT;
    for (uint32_t t = 1; t < n_tiers; t++)
        if (strcmp(tier[t].name, name) == 0) {
            *out = t;
            return 0;
        }
    return WT_EMISSING;
}

static int read_number(const json_t *o, const char *name, uint64_t *out) {
    const json_t *v = json_object_get(o, name);
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return WT_EFORMAT;
    *out = (uint64_t)json_integer_value(v);
    return 0;
}

static int read_pin(const json_t *o, const struct wt_tier_opts *tier, uint32_t n_tiers,
                    struct wt_rule_list *list) {
    struct wt_pin p = {0};
    int rc = copy_text(o, "dataset", p.selector.dataset, sizeof p.selector.dataset);
    if (rc == 0)
        rc = copy_text(o, "lot", p.selector.lot, sizeof p.selector.lot);
    if (rc == 0)
        rc = copy_text(o, "wafer", p.selector.wafer, sizeof p.selector.wafer);
    if (rc == 0)
        rc = read_number(o, "time", &p.time);
    if (rc == 0)
        rc = read_tier(o, tier, n_tiers, &p.tier);
    struct wt_pin *pin = rc == 0 ? wt_rule_list_add_pin(list) : NULL;
    if (rc < 0 || !pin)
        return rc < 0 ? rc : WT_ENOMEM;
    *pin = p;
    return 0;
}

static int read_quota(const json_t *o, const struct wt_tier_opts *tier, uint32_t n_tiers,
                      struct wt_rule_list *list) {
    struct wt_quota q = {0};
    int rc = copy_text(o, "dataset", q.dataset, sizeof q.dataset);
    if (rc == 0)
        rc = read_number(o, "bytes", &q.bytes);
    if (rc == 0)
        rc = read_tier(o, tier, n_tiers, &q.tier);
    return rc < 0 ? rc : wt_rule_list_add_quota(list, &q);
}

typedef int (*read_fn)(const json_t *o, const struct wt_tier_opts *tier, uint32_t n_tiers,
                       struct wt_rule_list *list);

static int read_list(const json_t *root, const char *name, read_fn read,
                     const struct wt_tier_opts *tier, uint32_t n_tiers, struct wt_rule_list *list,
                     size_t *dropped) {
    const json_t *rows = json_object_get(root, name);
    if (!json_is_array(rows) || json_array_size(rows) > WT_RULES_MAX)
        return WT_EFORMAT;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        int rc = read(json_array_get(rows, i), tier, n_tiers, list);
        *dropped += rc == WT_EMISSING;
        if (rc < 0 && rc != WT_EMISSING)
            return rc;
    }
    return 0;
}

int wt_rules_parse(const char *text, size_t len, const struct wt_tier_opts *tier, uint32_t n_tiers,
                   struct wt_rule_list *list, size_t *dropped, struct wt_err *err) {
    json_t *root = NULL;
    uint64_t version = 0;
    *list = (struct wt_rule_list){0};
    *dropped = 0;
    int rc = wt_json_load(text, len, JSON_REJECT_DUPLICATES, &root, err);
    if (rc < 0)
        return rc;
    rc = read_number(root, "version", &version);
    if (rc == 0 && version != VERSION)
        rc = wt_err_set(err, WT_EFORMAT, "has version %llu, this daemon reads %d",
                        (unsigned long long)version, VERSION);
    else if (rc == 0)
        rc = read_list(root, "pins", read_pin, tier, n_tiers, list, dropped);
    if (rc == 0)
        rc = read_list(root, "quotas", read_quota, tier, n_tiers, list, dropped);
    if (rc == 0 && json_object_get(root, "change"))
        rc = read_number(root, "change", &list->change);
    json_decref(root);
    if (rc < 0)
        wt_rule_list_free(list);
    if (rc < 0 && !(err && err->code))
        wt_err_set(err, rc, rc == WT_ENOMEM ? "out of memory" : "holds no pins and quotas");
    return rc;
}
