/*
 * Does the daemon know the copies that are there? See fsck.h. Its pages of /v1/shards are compared
 * with the listing; what differs is looked at again a moment later, object by object, since moves
 * go on all the time.
 */
#include "tools/fsck/fsck.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { PAGE = 1000, MOMENT_MS = 1500, TELL_MOST = 1000 };

static uint8_t bits_of(const struct wt_fsck *f, const json_t *tiers) {
    const json_t *name;
    uint8_t bits = 1; /* cold is not asked about: it holds everything */
    size_t i;
    json_array_foreach(tiers, i, name) {
        for (uint32_t t = 1; t < f->n_tiers; t++)
            if (strcmp(json_string_value(name) ? json_string_value(name) : "",
                       wt_tier_name(f->tier[t])) == 0)
                bits |= (uint8_t)(1u << t);
    }
    return bits;
}

/* Fills `believed` from `from` on, `limit` of them; *next: where to go on, or UINT64_MAX. */
static int ask(struct wt_fsck *f, uint64_t from, uint64_t limit, uint64_t *next,
               struct wt_err *err) {
    char path[256], after[48] = "";
    json_t *reply = NULL, *shard;
    size_t i;
    if (from > 0)
        snprintf(after, sizeof after, "&after=%" PRIu64, from - 1);
    snprintf(path, sizeof path, "/v1/shards?dataset=%s&limit=%" PRIu64 "%s", f->d.m.name, limit,
             after);
    int rc = wt_daemon_call(f->daemon, "GET", path, NULL, &reply, err);
    if (rc < 0)
        return rc;
    if (wt_view_count(reply, "generation") != f->d.m.generation)
        rc = wt_err_set(err, WT_ECHANGED,
                        "%s: the daemon knows generation %" PRIu64 ", the manifest is of %" PRIu64,
                        f->d.m.name, wt_view_count(reply, "generation"), f->d.m.generation);
    json_array_foreach(wt_view(reply, "shards"), i, shard) {
        uint64_t number = wt_view_count(shard, "number");
        if (rc == 0 && number < f->d.m.shards)
            f->shard[number].believed = bits_of(f, wt_view(shard, "tiers"));
    }
    const json_t *more = wt_view(reply, "next");
    *next = json_is_integer(more) ? (uint64_t)json_integer_value(more) + 1 : UINT64_MAX;
    json_decref(reply);
    return rc;
}

/* Tiers above cold where belief and truth differ. */
static uint8_t differing(const struct wt_fsck *f, uint64_t s) {
    const struct wt_fsck_shard *shard = &f->shard[s];
    unsigned there = shard->there | shard->damaged, blind = 1 | f->away;
    return (uint8_t)((there ^ shard->believed) & ~blind);
}

/* Asks both again. *bits: what still differs. */
static int look_again(struct wt_fsck *f, uint64_t s, uint8_t *bits, struct wt_err *err) {
    struct wt_shard_rec rec;
    char name[WT_OBJECT_NAME];
    uint64_t next, size;
    int rc = ask(f, s, 1, &next, err);
    if (rc < 0)
        return rc;
    wt_fsck_name(f, s, &rec, name);
    for (uint32_t t = 1; t < f->n_tiers; t++) {
        uint8_t bit = (uint8_t)(1u << t);
        if (!(*bits & bit))
            continue;
        rc = wt_sync_stat(f->cold->sync, f->tier[t], name, &size, err);
        if (rc < 0 && rc != WT_EMISSING)
            return rc;
        bool there = rc == 0, believed = f->shard[s].believed & bit;
        if (there == believed)
            *bits &= (uint8_t)~bit;
    }
    return 0;
}

static void tell(struct wt_fsck *f, uint64_t s, uint8_t bits) {
    for (uint32_t t = 1; t < f->n_tiers; t++) {
        if (!(bits & 1u << t))
            continue;
        if (f->shard[s].believed & 1u << t)
            wt_fsck_found(f, t, WT_FSCK_LOST, s, "the daemon believes that it is there");
        else
            wt_fsck_found(f, t, WT_FSCK_UNKNOWN, s, "the daemon does not know of it");
    }
}

static int settle(struct wt_fsck *f, struct wt_err *err) {
    uint64_t told = 0;
    int rc = 0;
    nanosleep(
        &(struct timespec){.tv_sec = MOMENT_MS / 1000, .tv_nsec = MOMENT_MS % 1000 * 1000000L},
        NULL);
    for (uint64_t s = 0; rc == 0 && told < TELL_MOST && s < f->d.m.shards; s++) {
        uint8_t bits = differing(f, s);
        if (!bits)
            continue;
        rc = look_again(f, s, &bits, err);
        if (rc == 0 && bits) {
            tell(f, s, bits);
            told++;
        }
    }
    return rc;
}

int wt_fsck_compare(struct wt_fsck *f, struct wt_err *err) {
    struct wt_err why = {0};
    uint64_t next = 0, differ = 0;
    int rc = 0;
    while (rc == 0 && next < f->d.m.shards)
        rc = ask(f, next, PAGE, &next, &why);
    for (uint64_t s = 0; rc == 0 && s < f->d.m.shards; s++)
        differ += differing(f, s) != 0;
    if (rc == 0 && differ)
        rc = settle(f, &why);
    if (rc == WT_ENOMEM)
        *err = why;
    else if (rc < 0)
        wt_fsck_trouble(f, "what the daemon knows", &why);
    return rc == WT_ENOMEM ? rc : 0;
}
