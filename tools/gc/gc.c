/* The steps of gc, and what it prints; see gc.h. */
#include "tools/gc/gc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const whys[WT_GC_WHYS] = {
    [WT_GC_TEMPORARY] = "temporary", [WT_GC_UNNAMED] = "unnamed", [WT_GC_RETIRED] = "retired",
    [WT_GC_COPY] = "copy",           [WT_GC_LEASE] = "lease",
};

const char *wt_gc_why_name(enum wt_gc_why why) {
    return whys[why];
}

static int note_leases(struct wt_gc *gc, const struct wt_lease_list *leases) {
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < leases->n; i++) {
        const struct wt_lease_entry *e = &leases->entry[i];
        struct wt_gc_object o = {.size = e->size,
                                 .tier = e->place == gc->tier[0] ? 0 : (uint32_t)gc->n_tiers,
                                 .set = UINT32_MAX,
                                 .why = WT_GC_LEASE};
        rc = e->live ? 0 : wt_gc_note(gc, e->key, &o);
    }
    return rc;
}

/* Leases are read before the manifests: a pack that has ended meanwhile has left its manifest. */
static int know_all(struct wt_gc *gc, struct wt_err *err) {
    struct wt_lease_list leases;
    int rc = wt_gc_look(gc, err);
    if (rc == 0)
        rc = wt_lease_list(gc->cold, NULL, &leases, err);
    if (rc < 0)
        return rc;
    /* A first pack that lands has nothing in cold yet but its lease. */
    for (size_t i = 0; rc == 0 && i < leases.n; i++)
        if (leases.entry[i].live && leases.entry[i].lease.kind == WT_LEASE_PACK &&
            !wt_gc_add(gc, leases.entry[i].lease.dataset))
            rc = WT_ENOMEM;
    for (size_t i = 0; rc == 0 && i < gc->n_sets; i++)
        rc = wt_gc_know(gc, &gc->set[i], &leases);
    if (rc == 0)
        rc = note_leases(gc, &leases);
    wt_lease_list_free(&leases);
    return rc < 0 ? wt_err_set(err, rc, "no memory for the names of objects") : 0;
}

static int scan_all(struct wt_gc *gc, struct wt_err *err) {
    int rc = wt_gc_scan(gc, 0, err);
    for (uint32_t t = 1; rc == 0 && t < gc->n_tiers; t++) {
        struct wt_err why = {0};
        rc = wt_gc_scan(gc, t, &why);
        if (rc == WT_ENOMEM || rc == WT_ECANCELED) {
            *err = why;
        } else if (rc < 0) {
            gc->troubles++;
            fprintf(stderr, "wafertier gc: tier %s is left alone: %s\n", wt_tier_name(gc->tier[t]),
                    why.text);
            rc = 0;
        }
    }
    if (gc->n_sets == 0 && gc->n_tiers > 1)
        fprintf(stderr,
                "wafertier gc: tier %s has no data set at all (is it mounted?): copies in "
                "other tiers are left alone\n",
                wt_tier_name(gc->tier[0]));
    return rc;
}

static void print_objects(const struct wt_gc *gc) {
    for (size_t i = 0; i < gc->n_objects; i++) {
        const struct wt_gc_object *o = &gc->object[i];
        printf("%-12s %-10s %14" PRIu64 "  %s\n", wt_tier_name(gc->tier[o->tier]), whys[o->why],
               o->size, wt_gc_key(gc, o));
    }
}

static void print_sum(const struct wt_gc *gc) {
    struct wt_gc_count all = {0}, gone = {0};
    char bytes[WT_SIZE_TEXT];
    for (size_t t = 0; t <= gc->n_tiers; t++) {
        for (int w = 0; w < WT_GC_WHYS; w++) {
            all.objects += gc->found[t][w].objects;
            all.bytes += gc->found[t][w].bytes;
        }
        gone.objects += gc->removed[t].objects;
        gone.bytes += gc->removed[t].bytes;
    }
    printf("%" PRIu64 " orphans, %s", all.objects, wt_size_format(all.bytes, bytes));
    if (gc->o.dry_run)
        printf("; nothing was removed\n");
    else
        printf("; %" PRIu64 " removed, %s\n", gone.objects, wt_size_format(gone.bytes, bytes));
}

int wt_gc_run(struct wt_gc *gc, bool quiet, struct wt_err *err) {
    gc->now_s = (uint64_t)time(NULL);
    gc->tier[gc->n_tiers] = gc->cold->leases;
    int rc = know_all(gc, err);
    if (rc == 0)
        rc = scan_all(gc, err);
    if (rc < 0)
        return rc;
    if (!quiet)
        print_objects(gc);
    if (!gc->o.dry_run)
        rc = wt_gc_sweep(gc, err);
    print_sum(gc);
    return rc;
}

void wt_gc_free(struct wt_gc *gc) {
    for (size_t i = 0; i < gc->n_sets; i++)
        wt_gc_set_free(&gc->set[i]);
    free(gc->set);
    free(gc->object);
    wt_bytes_free(&gc->text);
}
