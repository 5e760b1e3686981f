/*
 * Which objects are orphans; see gc.h. What has not the form of an object of ours is never one.
 */
#include "tools/gc/gc.h"

#include "core/mem.h"

#include <stdio.h>
#include <string.h>

#define TEMPORARIES ".wafertier.tmp/"

static bool older(const struct wt_gc *gc, int64_t since_s, uint64_t age_s) {
    uint64_t since = since_s > 0 ? (uint64_t)since_s : 0;
    return gc->now_s >= since && gc->now_s - since >= age_s;
}

/* A put in progress is none: its process lives here, or is of another machine and may live. */
static bool temporary(const struct wt_gc *gc, const struct wt_entry *entry, const char *prefix) {
    struct wt_process p;
    size_t n = strlen(prefix);
    if (strncmp(entry->key, prefix, n) == 0 && wt_process_parse(entry->key + n, &p)) {
        enum wt_process_state state = wt_process_look(&p);
        if (state != WT_PROCESS_UNKNOWN)
            return state == WT_PROCESS_DEAD;
    }
    return older(gc, entry->mtime, gc->o.young_s);
}

static bool parse(const char *key, char name[WT_DATASET_NAME], uint8_t *phase) {
    uint64_t number;
    struct wt_hash hash;
    *phase = 0;
    if (wt_shard_name_parse(key, name, &number, &hash) == 0)
        return true;
    *phase = 1;
    if (wt_idx_name_parse(key, name, &hash) == 0)
        return true;
    *phase = 2;
    return wt_retired_name_parse(key, name, &number) == 0;
}

/* No manifest names it. What is older than the manifest may be of a generation that was replaced
 * by a program that keeps no retired manifests. */
static bool unnamed(const struct wt_gc *gc, const struct wt_gc_set *set, int64_t mtime) {
    if (set->held)
        return false;
    if (set->generation > 1 && mtime >= 0 && (uint64_t)mtime <= set->created)
        return older(gc, (int64_t)set->created, gc->o.grace_s);
    return older(gc, mtime, gc->o.young_s);
}

bool wt_gc_orphan(struct wt_gc *gc, uint32_t tier, const struct wt_entry *entry,
                  struct wt_gc_object *out) {
    char name[WT_DATASET_NAME];
    out->set = UINT32_MAX;
    out->phase = 0;
    out->why = WT_GC_TEMPORARY;
    if (entry->unpublished)
        return temporary(gc, entry, TEMPORARIES);
    if (strncmp(entry->key, WT_DOCTOR_PREFIX, strlen(WT_DOCTOR_PREFIX)) == 0)
        return temporary(gc, entry, WT_DOCTOR_PREFIX);
    if (!parse(entry->key, name, &out->phase))
        return false;
    struct wt_gc_set *set = wt_gc_find(gc, name);
    if (!set) { /* cold: it came after the look. Else: its data set is gone */
        out->why = WT_GC_COPY;
        return tier > 0 && gc->n_sets > 0 && older(gc, entry->mtime, gc->o.young_s);
    }
    out->set = (uint32_t)(set - gc->set);
    if (set->unknown || set->packing || wt_gc_names_has(&set->keep, entry->key))
        return false;
    out->why = WT_GC_RETIRED;
    if (wt_gc_names_has(&set->gone, entry->key))
        return true;
    out->why = tier > 0 ? WT_GC_COPY : WT_GC_UNNAMED;
    return unnamed(gc, set, entry->mtime);
}

int wt_gc_note(struct wt_gc *gc, const char *key, const struct wt_gc_object *object) {
    if (wt_grow(&gc->object, &gc->cap_objects, gc->n_objects + 1, sizeof *gc->object) < 0)
        return WT_ENOMEM;
    size_t at = gc->text.len;
    if (wt_bytes_add(&gc->text, key, strlen(key) + 1) < 0)
        return WT_ENOMEM;
    struct wt_gc_object *o = &gc->object[gc->n_objects++];
    *o = *object;
    o->key = at;
    gc->found[o->tier][o->why].objects++;
    gc->found[o->tier][o->why].bytes += o->size;
    if (o->set != UINT32_MAX)
        gc->set[o->set].orphans++;
    return 0;
}

struct scan {
    struct wt_gc *gc;
    uint32_t tier;
};

static int take(void *arg, const struct wt_entry *entry) {
    struct scan *s = arg;
    struct wt_gc_object o = {.tier = s->tier, .size = entry->size, .mtime = entry->mtime};
    if (s->gc->o.stopped && s->gc->o.stopped(s->gc->o.stopped_arg))
        return WT_ECANCELED;
    return wt_gc_orphan(s->gc, s->tier, entry, &o) ? wt_gc_note(s->gc, entry->key, &o) : 0;
}

int wt_gc_scan(struct wt_gc *gc, uint32_t tier, struct wt_err *err) {
    struct scan s = {gc, tier};
    int rc = wt_sync_list(gc->cold->sync, gc->tier[tier], "", 0, take, &s, err);
    if (rc == WT_ENOMEM && !err->code)
        wt_err_set(err, rc, "no memory for the names of orphans");
    if (rc == WT_ECANCELED)
        wt_err_set(err, rc, "interrupted");
    return rc;
}
