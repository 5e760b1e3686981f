/* The coldest of a data set that has too much; see quota.h. */
#include "daemon/quota.h"

#include "daemon/heat.h"

enum { AT_A_TIME = 64 };

struct coldest { /* ascending by heat */
    uint64_t shard[AT_A_TIME];
    double heat[AT_A_TIME];
    unsigned n;
};

static void offer(struct coldest *c, uint64_t shard, double heat) {
    if (c->n == AT_A_TIME && heat >= c->heat[c->n - 1])
        return;
    unsigned i = c->n < AT_A_TIME ? c->n++ : c->n - 1;
    for (; i > 0 && c->heat[i - 1] > heat; i--) {
        c->heat[i] = c->heat[i - 1];
        c->shard[i] = c->shard[i - 1];
    }
    c->heat[i] = heat;
    c->shard[i] = shard;
}

static void drain(struct wt_catalog_set *set, uint32_t tier, struct wt_mover *m, uint32_t now_s,
                  double half_life_s) {
    struct coldest c = {.n = 0};
    uint64_t stays =
        set->used[tier] > set->leaving[tier] ? set->used[tier] - set->leaving[tier] : 0;
    if (stays <= set->quota[tier])
        return;
    for (uint64_t k = 0; k < set->d.m.shards; k++) {
        const struct wt_shard_state *s = &set->shard[k];
        uint8_t kept = wt_catalog_bound(set, k), bit = (uint8_t)(1u << tier);
        if ((s->mask & bit) && !(kept & bit) && !(s->flags & (WT_SHARD_BUSY | WT_SHARD_ASIDE)))
            offer(&c, k, wt_heat_at(s->heat, s->heated, now_s, half_life_s));
    }
    for (unsigned i = 0; i < c.n && stays > set->quota[tier]; i++) {
        uint64_t size = wt_catalog_size(set, c.shard[i]);
        if (wt_mover_add(m, set, c.shard[i], -1, (int)tier) < 0)
            return;
        stays -= size < stays ? size : stays;
    }
}

void wt_quota_drain(struct wt_catalog *c, struct wt_mover *m, uint32_t now_s, double half_life_s) {
    for (size_t i = 0; i < c->n_sets; i++)
        for (uint32_t t = 1; c->set[i]->limited && t < c->n_tiers; t++)
            drain(c->set[i], t, m, now_s, half_life_s);
}
