/* Reads an answer; see hints.h. */
#include "libloader/hints.h"

#include <string.h>

enum { NAMES_MAX = 64, UNKNOWN = -1, LONGEST_MS = 3600000 };

static int our_tier(const struct wl_context *ctx, const json_t *name) {
    const char *text = json_string_value(name);
    for (unsigned t = 0; text && t < ctx->n_tiers; t++)
        if (strcmp(text, ctx->conf.tier[t].name) == 0)
            return (int)t;
    return UNKNOWN;
}

static bool get_shard(const struct wl_loader *l, const json_t *row, uint64_t *shard) {
    const json_t *v = json_array_get(row, 0);
    if (!json_is_integer(v) || json_integer_value(v) < 0 ||
        (uint64_t)json_integer_value(v) >= l->ds.m.shards)
        return false;
    *shard = (uint64_t)json_integer_value(v);
    return true;
}

static void take_row(struct wl_loader *l, const json_t *row, const int *ours, size_t n,
                     unsigned known) {
    const json_t *mask = json_array_get(row, 1);
    struct wt_shard_rec rec;
    uint64_t shard;
    unsigned held = 0;
    if (!json_is_integer(mask) || !get_shard(l, row, &shard))
        return;
    for (size_t t = 0; t < n; t++)
        if (ours[t] != UNKNOWN && ((uint64_t)json_integer_value(mask) >> t & 1))
            held |= 1u << ours[t];
    wt_dataset_rec(&l->ds, shard, &rec);
    wt_residency_hint(&l->residency, shard, held, known);
    wt_keeper_forget(l->ctx->keeper, rec.hash, known & ~held & ~1u);
    wt_moves_forget(&l->moves, shard); /* what is still under way is told below */
}

static void take_residency(struct wl_loader *l, const json_t *names, const json_t *rows) {
    int ours[NAMES_MAX];
    unsigned known = 0;
    size_t n = json_array_size(names) < NAMES_MAX ? json_array_size(names) : (size_t)NAMES_MAX;
    for (size_t i = 0; i < n; i++) {
        ours[i] = our_tier(l->ctx, json_array_get(names, i));
        if (ours[i] != UNKNOWN)
            known |= 1u << ours[i];
    }
    for (size_t i = 0; i < json_array_size(rows); i++)
        take_row(l, json_array_get(rows, i), ours, n, known);
}

/* [shard, "tier", milliseconds until it should be there] */
static void take_moves(struct wl_loader *l, const json_t *rows) {
    uint64_t now = wt_now_ns();
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *left = json_array_get(row, 2);
        int tier = our_tier(l->ctx, json_array_get(row, 1));
        uint64_t shard;
        if (tier <= 0 || !json_is_integer(left) || json_integer_value(left) < 0 ||
            json_integer_value(left) > LONGEST_MS || !get_shard(l, row, &shard))
            continue;
        struct wt_coming c = {.shard = shard,
                              .tier = (unsigned)tier,
                              .end_ns = now + (uint64_t)json_integer_value(left) * 1000000};
        wt_moves_tell(&l->moves, &c);
    }
}

void wt_hints_take(struct wl_loader *l, const json_t *answer) {
    take_residency(l, json_object_get(answer, "tiers"), json_object_get(answer, "residency"));
    take_moves(l, json_object_get(answer, "moves"));
}
