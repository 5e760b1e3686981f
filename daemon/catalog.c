/* Shards and where they are; see catalog.h. */
#include "daemon/catalog.h"

#include "core/mem.h"

#include <stdlib.h>
#include <string.h>

void wt_catalog_init(struct wt_catalog *c, uint32_t n_tiers) {
    *c = (struct wt_catalog){.n_tiers = n_tiers};
}

void wt_catalog_set_free(struct wt_catalog_set *set) {
    if (!set)
        return;
    wt_dataset_free(&set->d);
    free(set->shard);
    free(set->same);
    free(set);
}

void wt_catalog_free(struct wt_catalog *c) {
    for (size_t i = 0; i < c->n_sets; i++)
        wt_catalog_set_free(c->set[i]);
    free(c->set);
    *c = (struct wt_catalog){0};
}

void wt_catalog_rec(const struct wt_catalog_set *set, uint64_t shard, struct wt_shard_rec *rec) {
    wt_dataset_rec(&set->d, shard, rec);
}

uint64_t wt_catalog_size(const struct wt_catalog_set *set, uint64_t shard) {
    struct wt_shard_rec rec;
    wt_dataset_rec(&set->d, shard, &rec);
    return rec.size;
}

void wt_catalog_key(const struct wt_catalog_set *set, uint64_t shard, char out[WT_OBJECT_NAME]) {
    struct wt_shard_rec rec;
    wt_dataset_rec(&set->d, shard, &rec);
    wt_shard_name(set->d.m.name, shard, &rec, out);
}

struct wt_catalog_set *wt_catalog_find(const struct wt_catalog *c, const char *name,
                                       uint64_t generation) {
    for (size_t i = 0; i < c->n_sets; i++) {
        struct wt_catalog_set *s = c->set[i];
        bool wanted = generation ? s->d.m.generation == generation : !s->retired;
        if (wanted && strcmp(s->d.m.name, name) == 0)
            return s;
    }
    return NULL;
}

struct wt_catalog_set *wt_catalog_home(const struct wt_catalog *c, struct wt_catalog_set *set,
                                       uint64_t shard) {
    struct wt_catalog_set *now = set->retired ? wt_catalog_find(c, set->d.m.name, 0) : NULL;
    struct wt_shard_rec a, b;
    if (!now || shard >= now->d.m.shards)
        return set;
    wt_dataset_rec(&set->d, shard, &a);
    wt_dataset_rec(&now->d, shard, &b);
    return wt_hash_equal(a.hash, b.hash) ? now : set;
}

struct wt_catalog_set *wt_catalog_at(const struct wt_catalog *c, uint64_t i, uint64_t *shard) {
    size_t low = 0, high = c->n_sets; /* the last set with base <= i */
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (c->set[mid]->base <= i)
            low = mid;
        else
            high = mid;
    }
    *shard = i - c->set[low]->base;
    return c->set[low];
}

static void renumber(struct wt_catalog *c) {
    c->shards = 0;
    for (size_t i = 0; i < c->n_sets; i++) {
        c->set[i]->base = c->shards;
        c->shards += c->set[i]->d.m.shards;
    }
    c->shape++;
}

void wt_set_keep(struct wt_catalog_set *set, uint64_t shard, uint8_t pin, uint8_t want) {
    struct wt_shard_state *s = &set->shard[shard];
    uint8_t before = s->pin | s->want, after = pin | want;
    s->pin = pin;
    s->want = want;
    set->kept += (after != 0) - (uint64_t)(before != 0);
    for (uint32_t t = 1; before != after && t < WT_TIERS_MAX; t++) {
        uint8_t bit = (uint8_t)(1u << t);
        if ((after & bit) && !(before & bit))
            set->kept_bytes[t] += wt_catalog_size(set, shard);
        if ((before & bit) && !(after & bit))
            set->kept_bytes[t] -= wt_catalog_size(set, shard);
    }
}

void wt_catalog_keep(struct wt_catalog *c, struct wt_catalog_set *set, uint64_t shard, uint8_t pin,
                     uint8_t want) {
    struct wt_shard_state *s = &set->shard[shard];
    if (s->pin == pin && s->want == want)
        return;
    for (uint32_t t = 1; t < c->n_tiers; t++)
        c->kept[t] -= set->kept_bytes[t];
    wt_set_keep(set, shard, pin, want);
    for (uint32_t t = 1; t < c->n_tiers; t++)
        c->kept[t] += set->kept_bytes[t];
}

uint64_t wt_catalog_unkept(const struct wt_catalog_set *set, uint64_t first, uint64_t end,
                           uint32_t tier) {
    if (first == 0 && end == set->d.m.shards) /* no need to look at each of many */
        return set->d.m.stored_bytes - set->kept_bytes[tier];
    uint64_t bytes = 0;
    for (uint64_t k = first; k < end; k++)
        if (!((set->shard[k].pin | set->shard[k].want) & (1u << tier)))
            bytes += wt_catalog_size(set, k);
    return bytes;
}

bool wt_catalog_room(const struct wt_catalog_set *set, uint32_t tier, uint64_t size) {
    uint64_t have = set->used[tier] + set->coming[tier];
    return have <= set->quota[tier] && size <= set->quota[tier] - have;
}

void wt_catalog_quota(struct wt_catalog_set *set, uint32_t tier, uint64_t bytes) {
    set->quota[tier] = bytes;
    set->limited = false;
    for (uint32_t t = 0; t < WT_TIERS_MAX; t++)
        set->limited = set->limited || set->quota[t] != UINT64_MAX;
}

static void count_in(struct wt_catalog *c, struct wt_catalog_set *set, uint64_t shard,
                     uint32_t tier) {
    uint64_t size = wt_catalog_size(set, shard);
    c->used[tier] += size;
    c->held[tier]++;
    if (set->home > 0 && (uint32_t)set->home == tier)
        c->landed[tier] += size;
}

bool wt_set_hold(struct wt_catalog_set *set, uint64_t shard, uint32_t tier, uint32_t since) {
    struct wt_shard_state *s = &set->shard[shard];
    uint8_t bit = (uint8_t)(1u << tier);
    if (s->mask & bit)
        return false;
    s->mask |= bit;
    if (tier == 0) { /* a dirty one was flushed; no news for the journal: a restart looks again */
        set->dirty--;
        return false;
    }
    s->since = since;
    set->used[tier] += wt_catalog_size(set, shard);
    set->held[tier]++;
    return true;
}

bool wt_set_lose(struct wt_catalog_set *set, uint64_t shard, uint32_t tier) {
    struct wt_shard_state *s = &set->shard[shard];
    uint8_t bit = (uint8_t)(1u << tier);
    if (tier == 0 || !(s->mask & bit))
        return false;
    s->mask &= (uint8_t)~bit;
    s->sure &= (uint8_t)~bit;
    set->used[tier] -= wt_catalog_size(set, shard);
    set->held[tier]--;
    return true;
}

void wt_catalog_hold(struct wt_catalog *c, struct wt_catalog_set *set, uint64_t shard,
                     uint32_t tier, uint32_t now, bool sure) {
    if (sure)
        set->shard[shard].sure |= (uint8_t)(1u << tier);
    if (!wt_set_hold(set, shard, tier, now))
        return;
    count_in(c, set, shard, tier);
    if (c->changed)
        c->changed(c->arg, set, shard, tier, true);
}

void wt_catalog_lose(struct wt_catalog *c, struct wt_catalog_set *set, uint64_t shard,
                     uint32_t tier) {
    if (!wt_set_lose(set, shard, tier))
        return;
    c->used[tier] -= wt_catalog_size(set, shard);
    c->held[tier]--;
    if (set->home > 0 && (uint32_t)set->home == tier)
        c->landed[tier] -= wt_catalog_size(set, shard);
    if (c->changed)
        c->changed(c->arg, set, shard, tier, false);
}

void wt_catalog_hand_on(struct wt_catalog *c, struct wt_catalog_set *set, uint64_t shard) {
    struct wt_catalog_set *home = wt_catalog_home(c, set, shard);
    const struct wt_shard_state *s = &set->shard[shard];
    for (uint32_t t = 1; home != set && t < c->n_tiers; t++) {
        bool held = s->mask & (1u << t), sure = s->sure & (1u << t);
        if (!held)
            continue;
        wt_catalog_lose(c, set, shard, t);
        wt_catalog_hold(c, home, shard, t, s->since, sure);
    }
}

static void take_shard(struct wt_catalog *c, struct wt_catalog_set *from, struct wt_catalog_set *to,
                       uint64_t i) {
    struct wt_shard_state *old = &from->shard[i], *new = &to->shard[i];
    uint8_t pin = old->pin;
    *new = *old;
    new->flags = new->barred = 0;
    new->pin = new->want = 0;
    if (pin)
        wt_catalog_keep(c, to, i, pin, 0); /* requests were for the old generation */
    for (uint32_t t = 1; old->mask != 1 && t < c->n_tiers; t++) {
        if (!(old->mask & (1u << t)))
            continue;
        uint64_t size = wt_catalog_size(to, i);
        from->held[t]--; /* the totals over all sets stay */
        from->used[t] -= size;
        to->held[t]++;
        to->used[t] += size;
        c->landed[t] += to->home == (int)t ? size : 0;
        c->landed[t] -= from->home == (int)t ? size : 0;
    }
    if (to->home == 0) { /* its manifest says so */
        new->mask |= 1;
        new->sure |= 1;
    } else if (new->mask & 1) {
        to->dirty--;
    }
    old->mask = old->sure = 1;
    old->barred = 0;
    old->heat = 0;
}

static bool is_same(const struct wt_catalog_set *set, uint64_t i) {
    return set->same[i / 8] & (1u << i % 8);
}

/* Shards with the same number and hash are the same objects. One that moves just now stays with the
 * old set until the move has ended. */
static void inherit(struct wt_catalog *c, struct wt_catalog_set *from, struct wt_catalog_set *to) {
    uint64_t n = from->d.m.shards < to->d.m.shards ? from->d.m.shards : to->d.m.shards;
    for (uint64_t i = 0; i < n; i++)
        if (is_same(to, i) && !(from->shard[i].flags & WT_SHARD_BUSY))
            take_shard(c, from, to, i);
    for (uint64_t i = 0; from->kept && i < from->d.m.shards; i++)
        wt_catalog_keep(c, from, i, 0, 0);
}

/* Where the set's shards are at home: the number of that tier. */
static int home_of(const struct wt_catalog *c, const struct wt_manifest *m) {
    if (!m->home[0])
        return 0;
    for (uint32_t t = 1; c->tiers && t < c->n_tiers; t++)
        if (strcmp(c->tiers[t].name, m->home) == 0)
            return (int)t;
    return -1;
}

/* What cold is not known to have is believed to be at home. Not told as a change: it is not one. */
static void settle(struct wt_catalog *c, struct wt_catalog_set *set) {
    for (uint64_t i = 0; set->home > 0 && i < set->d.m.shards; i++)
        if (!(set->shard[i].mask & 1) &&
            wt_set_hold(set, i, (uint32_t)set->home, wt_clock_now(&c->clock)))
            count_in(c, set, i, (uint32_t)set->home);
}

/* Its successor says where the truth is now. */
static void retire(struct wt_catalog *c, struct wt_catalog_set *set) {
    if (set->home > 0)
        c->landed[set->home] -= set->used[set->home];
    set->home = 0;
    set->retired = true;
}

static int compare(struct wt_catalog_set *set, const struct wt_catalog_set *old,
                   struct wt_err *err) {
    uint64_t n = old->d.m.shards < set->d.m.shards ? old->d.m.shards : set->d.m.shards;
    set->old = old;
    free(set->same);
    set->same = wt_calloc(n / 8 + 1, 1);
    if (!set->same)
        return wt_err_set(err, WT_ENOMEM, "data set %s: out of memory", set->d.m.name);
    for (uint64_t i = 0; i < n; i++) {
        struct wt_shard_rec a, b;
        wt_dataset_rec(&old->d, i, &a);
        wt_dataset_rec(&set->d, i, &b);
        if (wt_hash_equal(a.hash, b.hash))
            set->same[i / 8] |= (uint8_t)(1u << i % 8);
    }
    return 0;
}

int wt_catalog_prepare(struct wt_dataset *d, struct wt_hash manifest,
                       const struct wt_catalog_set *old, struct wt_catalog_set **out,
                       struct wt_err *err) {
    struct wt_catalog_set *set = wt_calloc(1, sizeof *set);
    struct wt_shard_state *shard = wt_calloc(d->m.shards, sizeof *shard);
    if (!set || !shard) {
        free(set);
        free(shard);
        return wt_err_set(err, WT_ENOMEM, "data set %s: no memory for %llu shards", d->m.name,
                          (unsigned long long)d->m.shards);
    }
    bool landed = d->m.home[0] != '\0'; /* which tier that is, the catalog knows as it enters */
    for (uint64_t i = 0; i < d->m.shards; i++)
        shard[i].mask = shard[i].sure = !landed;
    for (uint32_t t = 0; t < WT_TIERS_MAX; t++)
        set->quota[t] = UINT64_MAX;
    set->shard = shard;
    set->dirty = landed ? d->m.shards : 0;
    set->manifest = manifest;
    set->d = *d;
    int rc = old ? compare(set, old, err) : 0;
    if (rc < 0) {
        set->d = (struct wt_dataset){0}; /* the caller's still */
        wt_catalog_set_free(set);
        return rc;
    }
    *d = (struct wt_dataset){0};
    *out = set;
    return 0;
}

int wt_catalog_enter(struct wt_catalog *c, struct wt_catalog_set *set, struct wt_err *err) {
    struct wt_catalog_set *old = wt_catalog_find(c, set->d.m.name, 0);
    if (wt_grow(&c->set, &c->cap_sets, c->n_sets + 1, sizeof(*c->set)) < 0)
        return wt_err_set(err, WT_ENOMEM, "data set %s: out of memory", set->d.m.name);
    int rc = old && set->old != old ? compare(set, old, err) : 0;
    if (rc < 0)
        return rc;
    c->set[c->n_sets++] = set;
    set->home = home_of(c, &set->d.m);
    if (set->home > 0)
        c->landed[set->home] += set->used[set->home];
    for (uint32_t t = 1; t < c->n_tiers; t++) {
        c->held[t] += set->held[t];
        c->used[t] += set->used[t];
        c->kept[t] += set->kept_bytes[t];
    }
    renumber(c);
    if (old) {
        inherit(c, old, set);
        retire(c, old);
    }
    settle(c, set);
    free(set->same);
    set->same = NULL;
    set->old = NULL;
    return 0;
}

int wt_catalog_add(struct wt_catalog *c, struct wt_dataset *d, struct wt_hash manifest,
                   struct wt_catalog_set **out, struct wt_err *err) {
    struct wt_catalog_set *old = wt_catalog_find(c, d->m.name, 0), *set = NULL;
    if (old && wt_hash_equal(old->manifest, manifest)) {
        wt_dataset_free(d);
        *d = (struct wt_dataset){0};
        *out = old;
        return 0;
    }
    int rc = wt_catalog_prepare(d, manifest, old, &set, err);
    if (rc == 0)
        rc = wt_catalog_enter(c, set, err);
    if (rc < 0) {
        if (set) { /* d stays the caller's */
            *d = set->d;
            set->d = (struct wt_dataset){0};
        }
        wt_catalog_set_free(set);
        return rc;
    }
    *out = set;
    return 0;
}

static bool reapable(const struct wt_catalog *c, const struct wt_catalog_set *s) {
    bool held = false;
    for (uint32_t t = 1; t < c->n_tiers; t++)
        held = held || s->held[t];
    return s->retired && s->jobs == 0 && s->moves == 0 && !held;
}

void wt_catalog_reap(struct wt_catalog *c) {
    size_t kept = 0;
    for (size_t i = 0; i < c->n_sets; i++) {
        if (reapable(c, c->set[i]) && c->dispose)
            c->dispose(c->arg, c->set[i]);
        else if (reapable(c, c->set[i]))
            wt_catalog_set_free(c->set[i]);
        else
            c->set[kept++] = c->set[i];
    }
    if (kept == c->n_sets)
        return;
    c->n_sets = kept;
    renumber(c);
}
