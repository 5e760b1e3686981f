/* What is there, and is it right? See fsck.h. */
#include "tools/fsck/fsck.h"

#include "core/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const whats[WT_FSCK_WHATS] = {
    [WT_FSCK_MISSING] = "missing", [WT_FSCK_SIZE] = "size", [WT_FSCK_CORRUPT] = "corrupt",
    [WT_FSCK_UNKNOWN] = "unknown", [WT_FSCK_LOST] = "lost",
};

void wt_fsck_name(const struct wt_fsck *f, uint64_t shard, struct wt_shard_rec *rec,
                  char name[WT_OBJECT_NAME]) {
    wt_dataset_rec(&f->d, shard, rec);
    wt_shard_name(f->d.m.name, shard, rec, name);
}

void wt_fsck_found(struct wt_fsck *f, uint32_t tier, enum wt_fsck_what what, uint64_t shard,
                   const char *text) {
    struct wt_shard_rec rec;
    char name[WT_OBJECT_NAME];
    f->found[what]++;
    wt_fsck_name(f, shard, &rec, name);
    printf("%-12s %-8s %s%s%s\n", wt_tier_name(f->tier[tier]), whats[what], name,
           text[0] ? ": " : "", text);
}

void wt_fsck_trouble(struct wt_fsck *f, const char *what, const struct wt_err *err) {
    f->troubles++;
    fprintf(stderr, "wafertier fsck: %s cannot be checked: %s\n", what, err->text);
}

static bool stopped(const struct wt_fsck *f, struct wt_err *err) {
    if (!f->o.stopped || !f->o.stopped(f->o.stopped_arg))
        return false;
    wt_err_set(err, WT_ECANCELED, "interrupted; what was repaired stays repaired");
    return true;
}

/* ---- one LIST a tier ---- */

struct listing {
    struct wt_fsck *f;
    uint32_t tier;
    bool stopped;
    struct wt_err *err;
};

/* Objects of other generations and of no data set are gc's business. */
static int take(void *arg, const struct wt_entry *entry) {
    struct listing *l = arg;
    struct wt_fsck *f = l->f;
    struct wt_shard_rec rec;
    struct wt_hash hash;
    char name[WT_DATASET_NAME], want[WT_OBJECT_NAME];
    uint64_t number;
    l->stopped = stopped(f, l->err);
    if (l->stopped)
        return WT_ECANCELED;
    if (entry->unpublished || wt_shard_name_parse(entry->key, name, &number, &hash) < 0 ||
        strcmp(name, f->d.m.name) != 0 || number >= f->d.m.shards)
        return 0;
    wt_fsck_name(f, number, &rec, want);
    if (strcmp(entry->key, want) != 0)
        return 0;
    f->copies++;
    if (entry->size == rec.size)
        f->shard[number].there |= (uint8_t)(1u << l->tier);
    else
        f->shard[number].damaged |= (uint8_t)(1u << l->tier);
    return 0;
}

static int list_tier(struct wt_fsck *f, uint32_t tier, struct wt_err *err) {
    char prefix[WT_DATASET_NAME + 1];
    struct wt_err why = {0};
    struct listing l = {.f = f, .tier = tier, .err = err};
    snprintf(prefix, sizeof prefix, "%s/", f->d.m.name);
    int rc = wt_sync_list(f->cold->sync, f->tier[tier], prefix, 0, take, &l, &why);
    if (rc == 0 || rc == WT_EMISSING)
        return 0;
    if (l.stopped)
        return WT_ECANCELED;
    f->away |= 1u << tier;
    wt_fsck_trouble(f, wt_tier_name(f->tier[tier]), &why);
    return 0;
}

bool wt_fsck_landed(const struct wt_fsck *f, uint64_t shard) {
    for (uint32_t t = 1; f->d.m.home[0] && t < f->n_tiers; t++)
        if (strcmp(wt_tier_name(f->tier[t]), f->d.m.home) == 0)
            return (f->shard[shard].there | f->away) & 1u << t;
    return false;
}

static void tell_listed(struct wt_fsck *f) {
    struct wt_shard_rec rec;
    char name[WT_OBJECT_NAME], text[96];
    for (uint64_t s = 0; s < f->d.m.shards; s++) {
        const struct wt_fsck_shard *shard = &f->shard[s];
        wt_fsck_name(f, s, &rec, name);
        snprintf(text, sizeof text, "it should have %" PRIu64 " bytes", rec.size);
        for (uint32_t t = 0; t < f->n_tiers; t++)
            if (shard->damaged & 1u << t)
                wt_fsck_found(f, t, WT_FSCK_SIZE, s, text);
        if (!((shard->there | shard->damaged | f->away) & 1) && !wt_fsck_landed(f, s))
            wt_fsck_found(f, 0, WT_FSCK_MISSING, s, "");
    }
}

/* ---- reading ---- */

int wt_fsck_read(struct wt_fsck *f, uint64_t shard, uint32_t tier, uint8_t **data,
                 struct wt_err *err) {
    struct wt_shard_rec rec;
    char name[WT_OBJECT_NAME];
    uint8_t *bytes = NULL, bit = (uint8_t)(1u << tier);
    size_t len = 0;
    wt_fsck_name(f, shard, &rec, name);
    int rc = wt_sync_read(f->cold->sync, f->tier[tier], name, rec.size, &bytes, &len, err);
    if (rc == 0)
        f->read_bytes += len;
    if (rc == 0 && (len != rec.size || !wt_hash_equal(wt_hash(bytes, len), rec.hash)))
        rc = wt_err_set(err, WT_ECORRUPT, "its content hash is wrong");
    if (rc == 0)
        f->shard[shard].sound |= bit;
    if (rc == WT_ECORRUPT) {
        f->shard[shard].damaged |= bit;
        f->shard[shard].there &= (uint8_t)~bit;
    }
    if (rc == 0 && data)
        *data = bytes;
    else
        free(bytes);
    return rc;
}

/* A copy that the daemon has removed meanwhile is no damage. */
static int read_copy(struct wt_fsck *f, uint64_t s, uint32_t tier, struct wt_err *err) {
    struct wt_err why = {0};
    int rc = wt_fsck_read(f, s, tier, NULL, &why);
    if (rc == WT_ECORRUPT)
        wt_fsck_found(f, tier, WT_FSCK_CORRUPT, s, why.text);
    else if (rc == WT_EMISSING && tier == 0)
        wt_fsck_found(f, 0, WT_FSCK_MISSING, s, "");
    else if (rc == WT_ENOMEM)
        *err = why;
    else if (rc < 0 && rc != WT_EMISSING)
        wt_fsck_trouble(f, wt_tier_name(f->tier[tier]), &why);
    return rc == WT_ENOMEM ? rc : 0;
}

static int read_all(struct wt_fsck *f, struct wt_err *err) {
    int rc = 0;
    for (uint64_t s = 0; rc == 0 && s < f->d.m.shards; s++)
        for (uint32_t t = 0; rc == 0 && t < f->n_tiers; t++) {
            if (!(f->shard[s].there & 1u << t))
                continue;
            rc = stopped(f, err) ? WT_ECANCELED : read_copy(f, s, t, err);
        }
    return rc;
}

/* ---- a data set ---- */

static int check(struct wt_fsck *f, struct wt_err *err) {
    int rc = 0;
    f->away = 0;
    for (uint32_t t = 0; rc == 0 && t < f->n_tiers; t++)
        rc = list_tier(f, t, err);
    if (rc < 0)
        return rc;
    tell_listed(f);
    if (f->o.data)
        rc = read_all(f, err);
    if (rc == 0 && f->daemon)
        rc = wt_fsck_compare(f, err);
    if (rc == 0 && f->o.repair)
        rc = wt_fsck_repair(f, err);
    return rc;
}

int wt_fsck_set(struct wt_fsck *f, const char *name, struct wt_err *err) {
    struct wt_err why = {0};
    int rc = wt_target_dataset(f->cold, name, &f->d, &why);
    if (rc == WT_ENOMEM)
        *err = why;
    else if (rc < 0)
        wt_fsck_trouble(f, name, &why);
    if (rc < 0)
        return rc == WT_ENOMEM ? rc : 0;
    f->shard = wt_calloc(f->d.m.shards ? f->d.m.shards : 1, sizeof *f->shard);
    rc = f->shard ? check(f, err) : wt_err_set(err, WT_ENOMEM, "no memory for %s", name);
    f->sets++;
    f->shards += f->d.m.shards;
    free(f->shard);
    f->shard = NULL;
    wt_dataset_free(&f->d);
    return rc;
}
