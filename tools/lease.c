/* Taking, keeping and reading leases with blocking calls; see lease.h. */
#include "tools/lease.h"

#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DAMAGED_LIFE_S = 86400 };

static uint64_t monotonic_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- our own ---- */

static int write_lease(struct wt_hold *hold, unsigned flags, struct wt_err *err) {
    size_t len;
    char *text = wt_lease_format(&hold->lease, &len);
    if (!text)
        return wt_err_set(err, WT_ENOMEM, "no memory for a lease");
    uint64_t now = monotonic_ms();
    int rc =
        wt_sync_write(hold->target->sync, hold->target->tier, hold->key, text, len, flags, err);
    free(text);
    if (rc == 0)
        hold->renewed_ms = now;
    return rc;
}

/* There is one of that name already: may it be taken over? */
static int take_over(struct wt_hold *hold, struct wt_err *err) {
    struct wt_lease other;
    int rc = wt_lease_look(hold->target, hold->target->tier, hold->key, 0, &other, err);
    if (rc < 0)
        return rc;
    if (rc > 0)
        return wt_err_set(err, WT_ELOCKED, "%s is at work on data set '%s'", other.holder,
                          other.dataset);
    return write_lease(hold, WT_PUT_REPLACE, err);
}

int wt_hold_take(struct wt_hold *hold, struct wt_target *target, const struct wt_lease *lease,
                 struct wt_err *err) {
    struct wt_hold h = {.target = target, .lease = *lease};
    struct wt_err why = {0};
    wt_lease_key(lease, h.key);
    int rc = write_lease(&h, 0, &why);
    if (rc == WT_EEXISTS)
        rc = take_over(&h, &why);
    if (rc < 0 && err)
        *err = why;
    if (rc == 0)
        *hold = h;
    return rc;
}

void wt_hold_keep(struct wt_hold *hold) {
    if (!hold->target)
        return;
    uint64_t life = hold->lease.life_s * 1000, age = monotonic_ms() - hold->renewed_ms;
    if (age < life / 3)
        return;
    if (age >= life)
        hold->lapsed = true;
    write_lease(hold, WT_PUT_REPLACE, NULL); /* failing that, the next call tries again */
}

void wt_hold_drop(struct wt_hold *hold) {
    if (hold->target)
        wt_sync_remove(hold->target->sync, hold->target->tier, hold->key, NULL);
    hold->target = NULL;
}

/* ---- those of others ---- */

static uint64_t now_s(void) {
    time_t now = time(NULL);
    return now > 0 ? (uint64_t)now : 0;
}

/* Nobody knows what it means: better to believe that somebody needs it. */
static bool damaged_live(const char *key, uint64_t written_s, struct wt_lease *lease) {
    *lease = (struct wt_lease){.kind = WT_LEASE_PACK, .life_s = DAMAGED_LIFE_S};
    snprintf(lease->holder, sizeof lease->holder, "%.100s", key);
    wt_lease_key_parse(key, lease->dataset);
    return !written_s || written_s + DAMAGED_LIFE_S > now_s();
}

int wt_lease_look(struct wt_target *target, struct wt_tier *place, const char *key,
                  uint64_t written_s, struct wt_lease *lease, struct wt_err *err) {
    struct wt_err why = {0};
    uint8_t *text = NULL;
    size_t len = 0;
    int rc = wt_sync_read(target->sync, place, key, WT_LEASE_MAX, &text, &len, &why);
    if (rc == WT_EMISSING)
        return 0;
    if (rc == WT_ERANGE)
        return damaged_live(key, written_s, lease);
    if (rc < 0) {
        if (err)
            *err = why;
        return rc;
    }
    bool good = wt_lease_parse((const char *)text, len, lease, &why) == 0;
    free(text);
    if (why.code == WT_ENOMEM)
        return wt_err_set(err, WT_ENOMEM, "%s: no memory to read it", key);
    if (!good)
        return damaged_live(key, written_s, lease);
    return wt_lease_live(lease, written_s, now_s());
}

struct listing {
    struct wt_lease_list *list;
    struct wt_tier *place;
};

static int take_entry(void *arg, const struct wt_entry *entry) {
    const struct listing *listing = arg;
    struct wt_lease_list *list = listing->list;
    char dataset[WT_DATASET_NAME];
    if (entry->unpublished || wt_lease_key_parse(entry->key, dataset) < 0 ||
        strlen(entry->key) >= WT_LEASE_KEY)
        return 0;
    if (wt_grow(&list->entry, &list->cap, list->n + 1, sizeof *list->entry) < 0)
        return WT_ENOMEM;
    struct wt_lease_entry *e = &list->entry[list->n++];
    *e = (struct wt_lease_entry){.place = listing->place, .size = entry->size};
    snprintf(e->key, sizeof e->key, "%s", entry->key);
    e->lease.expires_s = entry->mtime > 0 ? (uint64_t)entry->mtime : 0; /* until it is read */
    return 0;
}

static int list_place(struct wt_target *target, struct wt_tier *place, const char *prefix,
                      struct wt_lease_list *list, struct wt_err *err) {
    struct listing listing = {list, place};
    size_t first = list->n;
    int rc = wt_sync_list(target->sync, place, prefix, 0, take_entry, &listing, err);
    for (size_t i = first; rc == 0 && i < list->n; i++) {
        struct wt_lease_entry *e = &list->entry[i];
        uint64_t written = e->lease.expires_s;
        rc = wt_lease_look(target, place, e->key, written, &e->lease, err);
        e->live = rc > 0;
        rc = rc > 0 ? 0 : rc;
    }
    if (rc < 0)
        wt_err_wrap(err, "the leases in tier %s", wt_tier_name(place));
    return rc;
}

int wt_lease_list(struct wt_target *target, const char *dataset, struct wt_lease_list *list,
                  struct wt_err *err) {
    char prefix[WT_LEASE_KEY] = WT_LEASE_FOLDER "/";
    if (dataset)
        wt_lease_prefix(dataset, prefix);
    *list = (struct wt_lease_list){0};
    int rc = list_place(target, target->tier, prefix, list, err);
    if (rc == 0 && target->leases)
        rc = list_place(target, target->leases, prefix, list, err);
    if (rc < 0)
        wt_lease_list_free(list);
    return rc;
}

void wt_lease_list_free(struct wt_lease_list *list) {
    free(list->entry);
    *list = (struct wt_lease_list){0};
}
