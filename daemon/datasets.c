/* Loading data sets one after the other; see datasets.h. */
#include "daemon/datasets.h"

#include "core/mem.h"
#include "tiers/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WANTS_MAX = 4096 };

struct want {
    struct want *next;
    char name[WT_DATASET_NAME];
    wt_dataset_done done;
    void *arg;
};

struct wt_datasets {
    uv_loop_t *loop;
    struct wt_tier *cold;
    struct wt_catalog *catalog;
    const struct wt_log *log;
    struct want *first, **last;
    size_t wants;
    struct wt_load_dataset load; /* of `first`, while loading */
    bool loading, listing, stopping;
    struct wt_req list;
    uv_work_t work; /* prepares what was loaded */
    struct wt_catalog_set *old, *set;
    int rc;
    struct wt_err err;
    void (*prepare)(void *arg, struct wt_catalog_set *set);
    void *prepare_arg;
    void (*added)(void *arg, struct wt_catalog_set *set);
    void *added_arg;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

struct wt_datasets *wt_datasets_new(uv_loop_t *loop, struct wt_tier *cold,
                                    struct wt_catalog *catalog, const struct wt_log *log) {
    struct wt_datasets *ds = wt_calloc(1, sizeof *ds);
    if (!ds)
        return NULL;
    ds->loop = loop;
    ds->cold = cold;
    ds->catalog = catalog;
    ds->log = log;
    ds->last = &ds->first;
    return ds;
}

void wt_datasets_on_prepare(struct wt_datasets *ds,
                            void (*prepare)(void *arg, struct wt_catalog_set *set), void *arg) {
    ds->prepare = prepare;
    ds->prepare_arg = arg;
}

void wt_datasets_on_added(struct wt_datasets *ds,
                          void (*added)(void *arg, struct wt_catalog_set *set), void *arg) {
    ds->added = added;
    ds->added_arg = arg;
}

static struct want *pop(struct wt_datasets *ds) {
    struct want *w = ds->first;
    ds->first = w->next;
    if (!ds->first)
        ds->last = &ds->first;
    ds->wants--;
    return w;
}

static void answer(struct wt_datasets *ds, struct want *w, int rc, const struct wt_err *err,
                   struct wt_catalog_set *set) {
    if (w->done)
        w->done(w->arg, rc, err, set);
    else if (rc < 0 && rc != WT_ECANCELED)
        wt_log(ds->log, rc == WT_EMISSING ? WT_LOG_DEBUG : WT_LOG_WARN, "data set %s: %s", w->name,
               err->text);
    free(w);
}

static void try_stopped(struct wt_datasets *ds) {
    if (!ds->stopping || ds->loading || ds->listing || !ds->stopped)
        return;
    void (*stopped)(void *arg) = ds->stopped;
    ds->stopped = NULL;
    stopped(ds->stopped_arg); /* may free ds */
}

static void pump(struct wt_datasets *ds);

/* The first one that waits has its answer. */
static void ended(struct wt_datasets *ds, int rc, const struct wt_err *err,
                  struct wt_catalog_set *set) {
    ds->loading = false;
    answer(ds, pop(ds), rc, err, set);
    if (ds->stopping)
        try_stopped(ds);
    else
        pump(ds);
}

/* ---- from what was read to the catalog ---- */

static void prepare(uv_work_t *work) {
    struct wt_datasets *ds = work->data;
    struct wt_load_dataset *load = &ds->load;
    ds->rc = wt_catalog_prepare(&load->dataset, load->manifest_hash, ds->old, &ds->set, &ds->err);
    if (ds->rc < 0)
        wt_dataset_free(&load->dataset);
    else if (ds->prepare)
        ds->prepare(ds->prepare_arg, ds->set);
}

static int enter(struct wt_datasets *ds, struct wt_err *err) {
    struct wt_catalog_set *set = ds->set;
    int rc = wt_catalog_enter(ds->catalog, set, err);
    if (rc < 0)
        return rc;
    wt_log(ds->log, WT_LOG_INFO,
           "data set %s: generation %" PRIu64 ", %" PRIu64 " shards, %" PRIu64 " samples",
           set->d.m.name, set->d.m.generation, set->d.m.shards, set->d.m.samples);
    if (ds->added)
        ds->added(ds->added_arg, set);
    return 0;
}

static void on_prepared(uv_work_t *work, int status) {
    struct wt_datasets *ds = work->data;
    struct wt_err err = ds->err;
    int rc = ds->rc;
    if (ds->old)
        ds->old->moves--;
    if (rc == 0 && (ds->stopping || status < 0))
        rc = wt_err_set(&err, WT_ECANCELED, "the daemon is stopping");
    if (rc == 0)
        rc = enter(ds, &err);
    if (rc < 0)
        wt_catalog_set_free(ds->set);
    ended(ds, rc, &err, rc == 0 ? ds->set : NULL);
}

static int start_prepare(struct wt_datasets *ds, struct wt_catalog_set *old, struct wt_err *err) {
    ds->work.data = ds;
    ds->old = old;
    ds->set = NULL;
    ds->rc = 0;
    ds->err = (struct wt_err){0};
    int rc = uv_queue_work(ds->loop, &ds->work, prepare, on_prepared);
    if (rc < 0)
        return wt_err_sys(err, -rc, "data set %s: no worker", ds->load.name);
    if (old)
        old->moves++; /* so that it stays */
    return 0;
}

static void on_loaded(struct wt_load_dataset *load) {
    struct wt_datasets *ds = load->arg;
    struct wt_catalog_set *old = wt_catalog_find(ds->catalog, load->name, 0);
    struct wt_err err = load->err;
    int rc = load->rc;
    if (rc == 0 && ds->stopping)
        rc = wt_err_set(&err, WT_ECANCELED, "the daemon is stopping");
    if (rc == 0 && !load->unchanged)
        rc = start_prepare(ds, old, &err);
    if (rc == 0 && !load->unchanged)
        return;
    wt_dataset_free(&load->dataset);
    ended(ds, rc, &err, rc == 0 ? old : NULL);
}

static void pump(struct wt_datasets *ds) {
    while (ds->first && !ds->loading && !ds->stopping) {
        const struct wt_catalog_set *old = wt_catalog_find(ds->catalog, ds->first->name, 0);
        ds->load = (struct wt_load_dataset){
            .tier = ds->cold, .known = old ? &old->manifest : NULL, .done = on_loaded, .arg = ds};
        snprintf(ds->load.name, sizeof ds->load.name, "%s", ds->first->name);
        int rc = wt_load_dataset(&ds->load);
        ds->loading = rc == 0;
        if (rc == 0)
            return;
        struct wt_err err = ds->load.err;
        if (!err.code)
            wt_err_set(&err, rc, "data set %s: cannot be read now: %s", ds->first->name,
                       wt_err_text(rc));
        answer(ds, pop(ds), rc, &err, NULL);
    }
}

int wt_datasets_want(struct wt_datasets *ds, const char *name, wt_dataset_done done, void *arg,
                     struct wt_err *err) {
    int rc = wt_dataset_name_check(name, err);
    if (rc < 0)
        return rc;
    if (ds->stopping)
        return wt_err_set(err, WT_ECANCELED, "the daemon is stopping");
    if (ds->wants >= WANTS_MAX)
        return wt_err_set(err, WT_EBUSY, "data set %s: %d others wait to be read; try again", name,
                          WANTS_MAX);
    struct want *w = wt_calloc(1, sizeof *w);
    if (!w)
        return wt_err_set(err, WT_ENOMEM, "data set %s: out of memory", name);
    snprintf(w->name, sizeof w->name, "%s", name);
    w->done = done;
    w->arg = arg;
    *ds->last = w;
    ds->last = &w->next;
    ds->wants++;
    pump(ds);
    return 0;
}

static int on_entry(struct wt_req *req, const struct wt_entry *entry) {
    struct wt_datasets *ds = req->arg;
    char name[WT_DATASET_NAME];
    size_t len = strlen(entry->key);
    if (len < 2 || len > sizeof name || entry->key[len - 1] != '/')
        return 0;
    memcpy(name, entry->key, len - 1);
    name[len - 1] = '\0';
    if (wt_dataset_name_check(name, NULL) == 0 && !wt_catalog_find(ds->catalog, name, 0))
        wt_datasets_want(ds, name, NULL, NULL, NULL);
    return 0;
}

static void on_listed(struct wt_req *req) {
    struct wt_datasets *ds = req->arg;
    ds->listing = false;
    if (req->rc < 0 && req->rc != WT_ECANCELED)
        wt_log(ds->log, WT_LOG_WARN,
               "data sets in the cold tier cannot be listed, jobs will name theirs: %s",
               req->err.text);
    try_stopped(ds);
}

void wt_datasets_discover(struct wt_datasets *ds) {
    if (ds->listing || ds->stopping)
        return;
    ds->list = (struct wt_req){.op = WT_OP_LIST,
                               .key = "",
                               .flags = WT_LIST_SHALLOW,
                               .on_entry = on_entry,
                               .done = on_listed,
                               .arg = ds};
    ds->listing = wt_tier_submit(ds->cold, &ds->list) == 0;
}

void wt_datasets_stop(struct wt_datasets *ds, void (*stopped)(void *arg), void *arg) {
    ds->stopping = true;
    ds->stopped = stopped;
    ds->stopped_arg = arg;
    struct wt_err err = {.code = WT_ECANCELED, .text = "the daemon is stopping"};
    struct want *rest = ds->first;
    if (ds->loading) { /* the first one is answered by its load */
        rest = ds->first->next;
        ds->first->next = NULL;
        ds->last = &ds->first->next;
    } else {
        ds->first = NULL;
        ds->last = &ds->first;
    }
    ds->wants = ds->loading;
    while (rest) {
        struct want *next = rest->next;
        answer(ds, rest, WT_ECANCELED, &err, NULL);
        rest = next;
    }
    if (ds->loading)
        wt_load_dataset_cancel(&ds->load);
    if (ds->listing)
        wt_tier_cancel(&ds->list);
    try_stopped(ds);
}

void wt_datasets_free(struct wt_datasets *ds) {
    free(ds);
}
