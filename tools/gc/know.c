/*
 * What a data set needs: names of its current generation, of retired ones that stay, and of those
 * that may go; see gc.h.
 */
#include "tools/gc/gc.h"

#include "core/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sets ---- */

static size_t place_of(const struct wt_gc *gc, const char *name, bool *found) {
    size_t low = 0, high = gc->n_sets;
    *found = false;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(gc->set[mid].name, name);
        if (order == 0) {
            *found = true;
            return mid;
        }
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct wt_gc_set *wt_gc_find(struct wt_gc *gc, const char *name) {
    bool found;
    size_t at = place_of(gc, name, &found);
    return found ? &gc->set[at] : NULL;
}

struct wt_gc_set *wt_gc_add(struct wt_gc *gc, const char *name) {
    bool found;
    size_t at = place_of(gc, name, &found);
    if (found)
        return &gc->set[at];
    if (wt_grow(&gc->set, &gc->cap_sets, gc->n_sets + 1, sizeof *gc->set) < 0)
        return NULL;
    memmove(&gc->set[at + 1], &gc->set[at], (gc->n_sets - at) * sizeof *gc->set);
    gc->n_sets++;
    gc->set[at] = (struct wt_gc_set){0};
    snprintf(gc->set[at].name, sizeof gc->set[at].name, "%s", name);
    return &gc->set[at];
}

static int add_retired(struct wt_gc_set *set, uint64_t generation) {
    if (wt_grow(&set->retired, &set->cap_retired, set->n_retired + 1, sizeof *set->retired) < 0)
        return WT_ENOMEM;
    size_t at = set->n_retired++;
    for (; at > 0 && set->retired[at - 1] > generation; at--)
        set->retired[at] = set->retired[at - 1];
    set->retired[at] = generation;
    return 0;
}

static int look_at(void *arg, const struct wt_entry *entry) {
    struct wt_gc *gc = arg;
    char name[WT_DATASET_NAME];
    uint64_t generation;
    size_t len = strcspn(entry->key, "/");
    if (entry->unpublished || entry->key[len] != '/' || len >= sizeof name)
        return 0;
    snprintf(name, sizeof name, "%.*s", (int)len, entry->key);
    if (wt_dataset_name_check(name, NULL) < 0)
        return 0;
    struct wt_gc_set *set = wt_gc_add(gc, name);
    if (!set)
        return WT_ENOMEM;
    return wt_retired_name_parse(entry->key, name, &generation) == 0 ? add_retired(set, generation)
                                                                     : 0;
}

int wt_gc_look(struct wt_gc *gc, struct wt_err *err) {
    int rc = wt_sync_list(gc->cold->sync, gc->cold->tier, "", 0, look_at, gc, err);
    if (rc == WT_ENOMEM && !err->code)
        wt_err_set(err, rc, "no memory for the names of data sets");
    return rc;
}

void wt_gc_set_free(struct wt_gc_set *set) {
    wt_gc_names_free(&set->keep);
    wt_gc_names_free(&set->gone);
    free(set->retired);
}

/* ---- generations ---- */

static void not_known(struct wt_gc *gc, struct wt_gc_set *set, const struct wt_err *err) {
    if (!set->unknown) {
        gc->troubles++;
        snprintf(set->reason, sizeof set->reason, "%s", err->text);
        fprintf(stderr, "wafertier gc: data set '%s' is left alone: %s\n", set->name, err->text);
    }
    set->unknown = true;
}

static int add_names(const struct wt_dataset *d, struct wt_gc_names *names) {
    char key[WT_OBJECT_NAME];
    int rc = 0;
    for (uint64_t s = 0; rc == 0 && s < d->m.shards; s++) {
        struct wt_shard_rec rec;
        wt_dataset_rec(d, s, &rec);
        wt_shard_name(d->m.name, s, &rec, key);
        rc = wt_gc_names_add(names, key);
    }
    for (uint32_t i = 0; rc == 0 && i < d->m.n_parts; i++) {
        wt_idx_name(d->m.name, d->m.part[i].hash, key);
        rc = wt_gc_names_add(names, key);
    }
    return rc;
}

static int know_current(struct wt_gc *gc, struct wt_gc_set *set) {
    struct wt_dataset d = {0};
    struct wt_err err = {0};
    int rc = wt_target_dataset(gc->cold, set->name, &d, &err);
    if (rc == WT_EMISSING) {
        char key[WT_OBJECT_NAME];
        uint64_t size;
        wt_manifest_name(set->name, key);
        /* The manifest, or a part of the index that it names? */
        if (wt_sync_stat(gc->cold->sync, gc->cold->tier, key, &size, NULL) == WT_EMISSING)
            return 0;
    }
    if (rc == WT_ENOMEM)
        return rc;
    if (rc < 0) {
        not_known(gc, set, &err);
        return 0;
    }
    set->there = true;
    set->generation = d.m.generation;
    set->created = d.m.created;
    rc = add_names(&d, &set->keep);
    wt_dataset_free(&d);
    return rc;
}

static bool leased(const struct wt_gc_set *set, const struct wt_lease_list *leases,
                   uint64_t generation) {
    for (size_t i = 0; i < leases->n; i++) {
        const struct wt_lease_entry *e = &leases->entry[i];
        if (e->live && e->lease.kind == WT_LEASE_JOB && e->lease.generation == generation &&
            strcmp(e->lease.dataset, set->name) == 0)
            return true;
    }
    return false;
}

/* `retired_s`: when it was replaced. Its own creation is what the one before it was retired at. */
static int know_retired(struct wt_gc *gc, struct wt_gc_set *set, uint64_t generation,
                        const struct wt_lease_list *leases, uint64_t *retired_s) {
    struct wt_dataset d = {0};
    struct wt_err err = {0};
    char key[WT_OBJECT_NAME];
    bool stays = gc->now_s < *retired_s || gc->now_s - *retired_s < gc->o.grace_s ||
                 leased(set, leases, generation);
    wt_retired_name(set->name, generation, key);
    struct wt_gc_names *names = stays ? &set->keep : &set->gone;
    int rc = wt_target_generation(gc->cold, set->name, key, &d, &err);
    if (rc == WT_ENOMEM)
        return rc;
    if (rc == WT_EMISSING && !stays) /* an earlier gc was killed after it had removed its index */
        return wt_gc_names_add(names, key);
    if (rc < 0) {
        not_known(gc, set, &err);
        return 0;
    }
    *retired_s = d.m.created;
    rc = wt_gc_names_add(names, key);
    if (rc == 0)
        rc = add_names(&d, names);
    wt_dataset_free(&d);
    return rc;
}

static bool has_manifest(const struct wt_gc_set *set, uint64_t generation) {
    if (set->there && set->generation == generation)
        return true;
    for (size_t i = 0; i < set->n_retired; i++)
        if (set->retired[i] == generation)
            return true;
    return false;
}

static void know_leases(struct wt_gc_set *set, const struct wt_lease_list *leases) {
    set->packing = set->held = false;
    for (size_t i = 0; i < leases->n; i++) {
        const struct wt_lease_entry *e = &leases->entry[i];
        if (!e->live || strcmp(e->lease.dataset, set->name) != 0)
            continue;
        set->packing |= e->lease.kind == WT_LEASE_PACK;
        set->held |= e->lease.kind == WT_LEASE_JOB && !has_manifest(set, e->lease.generation);
    }
}

int wt_gc_know(struct wt_gc *gc, struct wt_gc_set *set, const struct wt_lease_list *leases) {
    wt_gc_names_free(&set->keep);
    wt_gc_names_free(&set->gone);
    set->there = set->unknown = false;
    set->generation = set->created = 0;
    int rc = know_current(gc, set);
    uint64_t retired_s = set->there ? set->created : UINT64_MAX;
    for (size_t i = set->n_retired; rc == 0 && i-- > 0;)
        if (!set->there || set->retired[i] < set->generation)
            rc = know_retired(gc, set, set->retired[i], leases, &retired_s);
    know_leases(set, leases);
    return rc;
}
