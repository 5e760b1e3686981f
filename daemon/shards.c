/*
 * GET /v1/shards: the shards of a data set, a page at a time. A page looks at so many shards at
 * most, so that a filter that fits few costs bounded time; then `next` goes on.
 */
#include "core/json.h"
#include "core/mem.h"
#include "daemon/body.h"
#include "daemon/heat.h"
#include "daemon/routes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LIMIT = 100,
    LIMIT_MAX = 1000,
    LOOK_MAX = 100000, /* of these */
    NAMES_MAX = 5000,  /* ... so many by name, which takes longer: some milliseconds for both */
    NUMBER_DIGITS = 8, /* of the number in a name, at least */
};

struct asking {
    struct wt_daemon *d;
    struct wt_call *call;
    struct wt_selector selector;
    char prefix[64];
    uint64_t after, limit;
    uint32_t tier; /* 0: any */
};

static json_t *names_json(const struct wt_daemon *d, uint8_t mask) {
    json_t *list = json_array();
    for (uint32_t t = 0; t < d->n_tiers; t++)
        if (mask & (1u << t))
            wt_json_push(&list, json_string(wt_tier_name(d->tier[t])));
    return list;
}

static json_t *next_use(const struct wt_daemon *d, const struct wt_catalog_set *set, uint64_t k) {
    double t = wt_foresee_next(wt_planner_foresee(d->planner), set->base + k);
    double now = (double)wt_daemon_now_ms(d) / 1000;
    return isinf(t) ? json_null() : json_real(t > now ? t - now : 0);
}

static json_t *shard_json(const struct wt_daemon *d, const struct wt_catalog_set *set, uint64_t k,
                          const char *name) {
    const struct wt_shard_state *s = &set->shard[k];
    struct wt_shard_rec rec;
    wt_catalog_rec(set, k, &rec);
    int to = wt_mover_target(d->mover, set, k);
    double heat =
        wt_heat_at(s->heat, s->heated, wt_daemon_now_s(d), wt_planner_get_half_life(d->planner));
    return json_pack("{s:o, s:s, s:o, s:o, s:f, s:o, s:o, s:o, s:o, s:b}", "number",
                     wt_body_number(k), "name", name, "bytes", wt_body_number(rec.size), "samples",
                     wt_body_number(rec.samples), "heat", heat, "tiers", names_json(d, s->mask),
                     "pinned", names_json(d, s->pin), "next_use_s", next_use(d, set, k),
                     "moving_to", to >= 0 ? json_string(wt_tier_name(d->tier[to])) : json_null(),
                     "set_aside", (s->flags & WT_SHARD_ASIDE) != 0);
}

static bool fits(const struct asking *a, const char *name) {
    const char *file = strrchr(name, '/');
    return strncmp(file ? file + 1 : name, a->prefix, strlen(a->prefix)) == 0;
}

/* Names begin with the number: the first shard from `k` on that can fit the prefix; UINT64_MAX:
 * none. */
static uint64_t first_that_fits(const char *prefix, uint64_t k) {
    size_t digits = strspn(prefix, "0123456789");
    bool whole = prefix[digits] != '\0';
    uint64_t p = 0, power = 1;
    if (digits == 0 || digits > 18)
        return k;
    for (size_t i = 0; i < digits; i++)
        p = p * 10 + (uint64_t)(prefix[i] - '0');
    if (whole)
        return p >= k ? p : UINT64_MAX;
    for (size_t i = digits; i < NUMBER_DIGITS; i++)
        power *= 10;
    for (size_t width = digits < NUMBER_DIGITS ? NUMBER_DIGITS : digits; width < 19; width++) {
        if ((p + 1) * power > k)
            return p * power > k ? p * power : k;
        if (prefix[0] == '0') /* longer numbers begin with another digit */
            break;
        power *= 10;
    }
    return UINT64_MAX;
}

struct page {
    json_t *list;
    uint64_t at; /* the last that was looked at */
    bool more;
};

static struct page make_page(const struct asking *a, const struct wt_catalog_set *set,
                             const struct wt_selection *selection) {
    struct page p = {.list = json_array(), .at = a->after};
    uint64_t looked = 0, named = 0, k = a->after;
    while ((p.more = wt_selection_next(selection, &k)) && json_array_size(p.list) < a->limit &&
           looked++ < LOOK_MAX && named < NAMES_MAX) {
        char name[WT_OBJECT_NAME];
        uint64_t first = first_that_fits(a->prefix, k);
        p.at = first > k ? first - 1 : k;
        if (first == k && (set->shard[k].mask & (1u << a->tier))) {
            wt_catalog_key(set, k, name);
            named++;
            if (fits(a, name))
                wt_json_push(&p.list, shard_json(a->d, set, k, name));
        }
        k = p.at;
    }
    return p;
}

static void on_selected(void *arg, int rc, const struct wt_err *err, struct wt_catalog_set *set,
                        struct wt_selection *selection) {
    struct asking *a = arg;
    if (rc < 0) {
        wt_call_fail(a->call, err);
        free(a);
        return;
    }
    struct page p = make_page(a, set, selection);
    wt_call_reply(a->call, WT_HTTP_OK,
                  json_pack("{s:s, s:o, s:o, s:o}", "dataset", set->d.m.name, "generation",
                            wt_body_number(set->d.m.generation), "shards", p.list, "next",
                            p.more ? wt_body_number(p.at) : json_null()));
    wt_selection_free(selection);
    free(a);
}

static int read_query(struct asking *a, struct wt_err *err) {
    json_t *body = json_object();
    char tier[64];
    int rc = wt_query_text(a->call, "prefix", a->prefix, sizeof a->prefix, err);
    if (rc == 0)
        rc = wt_query_text(a->call, "tier", tier, sizeof tier, err);
    static const char *const names[] = {"dataset", "lot", "wafer"};
    for (size_t i = 0; i < 3; i++)
        if (wt_call_query(a->call, names[i]))
            wt_json_put(&body, names[i], wt_json_string(wt_call_query(a->call, names[i])));
    if (rc == 0 && !body)
        rc = wt_err_set(err, WT_ENOMEM, "out of memory");
    if (rc == 0)
        rc = wt_read_selector(body, &a->selector, err);
    if (rc == 0 && tier[0] && strcmp(tier, wt_tier_name(a->d->tier[0])) != 0) {
        wt_json_put(&body, "tier", wt_json_string(tier));
        rc = body ? wt_read_tier(a->d, body, &a->tier, err)
                  : wt_err_set(err, WT_ENOMEM, "out of memory");
    }
    if (rc == 0)
        rc = wt_query_u64(a->call, "after", &a->after, err);
    if (rc == 0)
        rc = wt_query_u64(a->call, "limit", &a->limit, err);
    if (rc == 0 && (a->limit == 0 || a->limit > LIMIT_MAX))
        rc = wt_err_set(err, WT_EINVAL, "'limit' must be 1 to %d", LIMIT_MAX);
    json_decref(body);
    return rc;
}

void wt_route_get_shards(void *arg, struct wt_call *call) {
    struct wt_err err = {0};
    struct asking *a = wt_calloc(1, sizeof *a);
    if (!a) {
        wt_call_reply(call, 0, NULL);
        return;
    }
    *a = (struct asking){.d = arg, .call = call, .after = UINT64_MAX, .limit = LIMIT};
    if (read_query(a, &err) < 0) {
        wt_call_fail(call, &err);
        free(a);
        return;
    }
    wt_route_select(a->d, &a->selector, on_selected, a);
}
