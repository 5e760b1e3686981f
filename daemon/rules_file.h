/*
 * The rules as a file: JSON with a version, so that people can read it. Pure text but for load.
 *
 *   {"version": 1, "change": N, "pins": [{"dataset", "lot", "wafer", "tier", "time"}], "quotas":
 * [{"dataset", "tier", "bytes"}]}      lot and wafer: "" for all
 */
#ifndef WT_DAEMON_RULES_FILE_H
#define WT_DAEMON_RULES_FILE_H

#include "daemon/rules.h"

#define WT_RULES_NAME "rules"

struct wt_rule_list {
    struct wt_pin **pin; /* each allocated by itself: their addresses stay */
    size_t n_pins, pin_cap;
    struct wt_quota *quota;
    size_t n_quotas, quota_cap;
    uint64_t change; /* grows with each: of two files the one with more is the later */
};
void wt_rule_list_free(struct wt_rule_list *list);
struct wt_pin *wt_rule_list_add_pin(struct wt_rule_list *list); /* zeroed; NULL: no memory */
int wt_rule_list_add_quota(struct wt_rule_list *list, const struct wt_quota *quota);

/* free(); NULL: no memory. */
char *wt_rules_format(const struct wt_rule_list *list, const struct wt_tier_opts *tier,
                      size_t *len);
/* *dropped: rules of tiers that are no more. WT_EFORMAT: no such file; *list is empty then. */
int wt_rules_parse(const char *text, size_t len, const struct wt_tier_opts *tier, uint32_t n_tiers,
                   struct wt_rule_list *list, size_t *dropped, struct wt_err *err);

#endif
