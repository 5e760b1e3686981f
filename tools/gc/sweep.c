/* Removing orphans, data set by data set; see gc.h. */
#include "tools/gc/gc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEASE_S = 600, PHASES = 3 };

static bool stopped(const struct wt_gc *gc) {
    return gc->o.stopped && gc->o.stopped(gc->o.stopped_arg);
}

/* Data sets together, those of none first. */
static int by_set(const void *a, const void *b) {
    const struct wt_gc_object *x = a, *y = b;
    uint32_t p = x->set + 1, q = y->set + 1; /* UINT32_MAX becomes 0 */
    if (p != q)
        return p < q ? -1 : 1;
    if (x->phase != y->phase)
        return x->phase < y->phase ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* true: it is gone. */
static bool remove_one(struct wt_gc *gc, const struct wt_gc_object *o) {
    struct wt_err err = {0};
    const char *key = wt_gc_key(gc, o);
    int rc = wt_sync_remove(gc->cold->sync, gc->tier[o->tier], key, &err);
    if (rc < 0 && rc != WT_EMISSING) {
        gc->failed++;
        fprintf(stderr, "wafertier gc: %s\n", err.text);
        return false;
    }
    gc->removed[o->tier].objects += rc == 0;
    gc->removed[o->tier].bytes += rc == 0 ? o->size : 0;
    return true;
}

static bool still_orphan(struct wt_gc *gc, const struct wt_gc_object *o) {
    struct wt_entry entry = {.key = wt_gc_key(gc, o), .size = o->size, .mtime = o->mtime};
    struct wt_gc_object again;
    return wt_gc_orphan(gc, o->tier, &entry, &again);
}

/* What names others goes only after these: a phase that failed ends it. */
static int remove_all(struct wt_gc *gc, const struct wt_gc_object *o, size_t n,
                      struct wt_hold *hold, struct wt_err *err) {
    uint8_t failed = PHASES;
    for (size_t i = 0; i < n && o[i].phase <= failed; i++) {
        if (stopped(gc))
            return wt_err_set(err, WT_ECANCELED, "interrupted");
        if (hold)
            wt_hold_keep(hold);
        if (hold && hold->lapsed)
            return wt_err_set(err, WT_ETIMEDOUT,
                              "the lease on data set '%s' could not be renewed; run gc again",
                              hold->lease.dataset);
        if ((!hold || still_orphan(gc, &o[i])) && !remove_one(gc, &o[i]))
            failed = o[i].phase;
    }
    return 0;
}

static int hold_set(struct wt_gc *gc, const struct wt_gc_set *set, struct wt_hold *hold,
                    struct wt_err *err) {
    char host[64] = "localhost", holder[100];
    struct wt_lease lease;
    gethostname(host, sizeof host - 1);
    snprintf(holder, sizeof holder, "gc %ld on %s", (long)getpid(), host);
    wt_lease_init(&lease, WT_LEASE_GC, set->name, 0, holder, LEASE_S);
    return wt_hold_take(hold, gc->cold, &lease, err);
}

/* Packs that begin from now on wait for us; those at work are seen in the leases. */
static int sweep_held(struct wt_gc *gc, struct wt_gc_set *set, const struct wt_gc_object *o,
                      size_t n, struct wt_hold *hold, struct wt_err *err) {
    struct wt_lease_list leases;
    int rc = wt_lease_list(gc->cold, set->name, &leases, err);
    if (rc < 0)
        return rc;
    rc = wt_gc_know(gc, set, &leases);
    wt_lease_list_free(&leases);
    if (rc < 0)
        return wt_err_set(err, rc, "no memory for the names of data set '%s'", set->name);
    return remove_all(gc, o, n, hold, err);
}

static int sweep_set(struct wt_gc *gc, struct wt_gc_set *set, const struct wt_gc_object *o,
                     size_t n, struct wt_err *err) {
    struct wt_hold hold = {0};
    struct wt_err why = {0};
    int rc = hold_set(gc, set, &hold, &why);
    if (rc == 0)
        rc = sweep_held(gc, set, o, n, &hold, &why);
    wt_hold_drop(&hold);
    if (rc == WT_ENOMEM || rc == WT_ECANCELED) {
        *err = why;
        return rc;
    }
    if (rc < 0) {
        gc->troubles++;
        fprintf(stderr, "wafertier gc: data set '%s' is left alone: %s\n", set->name, why.text);
    }
    return 0;
}

/* Is the data set, of which cold has nothing, about to be landed? Packs that begin from now on wait
 * for us. */
static bool is_packed(struct wt_gc *gc, const char *name, struct wt_hold *hold,
                      struct wt_err *err) {
    struct wt_gc_set set = {0};
    struct wt_lease_list leases;
    bool packed = true;
    snprintf(set.name, sizeof set.name, "%s", name);
    int rc = hold_set(gc, &set, hold, err);
    if (rc == 0)
        rc = wt_lease_list(gc->cold, name, &leases, err);
    if (rc == 0) {
        packed = false;
        for (size_t i = 0; i < leases.n; i++)
            packed |= leases.entry[i].live && leases.entry[i].lease.kind == WT_LEASE_PACK;
        wt_lease_list_free(&leases);
    }
    return packed;
}

/* Copies of data sets that are gone. */
static int sweep_gone(struct wt_gc *gc, const struct wt_gc_object *o, size_t n,
                      struct wt_err *err) {
    char held[WT_DATASET_NAME] = "", name[WT_DATASET_NAME];
    struct wt_hold hold = {0};
    bool leave = false;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct wt_err why = {0};
        if (o[i].why != WT_GC_COPY) {
            rc = remove_all(gc, &o[i], 1, NULL, err);
            continue;
        }
        size_t len = strcspn(wt_gc_key(gc, &o[i]), "/");
        snprintf(name, sizeof name, "%.*s", (int)len, wt_gc_key(gc, &o[i]));
        if (strcmp(name, held) != 0) {
            wt_hold_drop(&hold);
            hold = (struct wt_hold){0};
            memcpy(held, name, sizeof held);
            leave = is_packed(gc, name, &hold, &why);
        }
        if (leave && why.code) {
            gc->troubles++;
            fprintf(stderr, "wafertier gc: data set '%s' is left alone: %s\n", name, why.text);
        } else if (!leave) {
            rc = remove_all(gc, &o[i], 1, NULL, err);
        }
        if (rc == 0 && hold.target)
            wt_hold_keep(&hold);
    }
    wt_hold_drop(&hold);
    return rc;
}

int wt_gc_sweep(struct wt_gc *gc, struct wt_err *err) {
    int rc = 0;
    if (gc->n_objects)
        qsort(gc->object, gc->n_objects, sizeof *gc->object, by_set);
    for (size_t i = 0, end; rc == 0 && i < gc->n_objects; i = end) {
        const struct wt_gc_object *o = &gc->object[i];
        for (end = i; end < gc->n_objects && gc->object[end].set == o->set;)
            end++;
        if (o->set == UINT32_MAX)
            rc = sweep_gone(gc, o, end - i, err);
        else
            rc = sweep_set(gc, &gc->set[o->set], o, end - i, err);
    }
    return rc;
}
