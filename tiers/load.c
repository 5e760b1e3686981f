/*
 * Reading a data set from a tier; see load.h.
 *
 * Happy path: STAT and GET of the manifest -> parse -> GET of the parts of shards.idx, IN_FLIGHT at
 * a time -> hashes checked and records put together on a thread of uv's pool (pure computing) ->
 * done(). Failures: the first error stops further requests; done() comes when none is in flight and
 * the thread has ended. A manifest that is replaced between STAT and GET is read again. A part that
 * the manifest names and that is not there makes the data set damaged, not missing.
 */
#include "tiers/load.h"

#include "core/mem.h"
#include "tiers/backend.h"

#include <stdlib.h>
#include <string.h>

enum { IN_FLIGHT = 4, TRIES = 3 };

struct loading {
    struct wt_load_dataset *load;
    char key[WT_OBJECT_NAME];
    int tries;
    bool canceled;
    struct wt_req manifest;
    uint8_t *text;
    size_t text_len;
    struct wt_manifest m;
    uint32_t n_parts; /* m goes to the data set */
    void **part;
    size_t *part_len;
    uint32_t next; /* part to ask for */
    unsigned in_flight;
    struct slot {
        struct wt_req req;
        char key[WT_OBJECT_NAME];
    } slot[IN_FLIGHT];
    bool working;
    uv_work_t work;
};

static void free_loading(struct loading *l) {
    for (uint32_t i = 0; l->part && i < l->n_parts; i++)
        free(l->part[i]);
    free(l->part);
    free(l->part_len);
    free(l->text);
    wt_manifest_free(&l->m);
    free(l);
}

/* The only way out. `load` may be gone after done(). */
static void end(struct loading *l) {
    struct wt_load_dataset *load = l->load;
    if (load->rc == 0 && l->canceled) {
        wt_dataset_free(&load->dataset);
        load->rc = wt_err_set(&load->err, WT_ECANCELED, "data set %s: canceled", load->name);
    }
    load->priv = NULL;
    free_loading(l);
    load->done(load);
}

static void fail(struct loading *l, int rc, const struct wt_err *err) {
    if (l->load->rc < 0)
        return;
    l->load->rc = rc;
    l->load->err = *err;
    wt_err_wrap(&l->load->err, "data set %s", l->load->name);
}

/* ---- shards.idx ---- */

/* On a thread of uv's pool: a large index takes a second to hash. */
static void build(uv_work_t *work) {
    struct loading *l = work->data;
    struct wt_load_dataset *load = l->load;
    struct wt_err err = {0};
    int rc =
        wt_dataset_build(&l->m, (const void *const *)l->part, l->part_len, &load->dataset, &err);
    if (rc < 0)
        fail(l, rc, &err);
}

static void on_built(uv_work_t *work, int status) {
    struct loading *l = work->data;
    l->working = false;
    if (status < 0) {
        struct wt_err err;
        wt_err_set(&err, WT_ECANCELED, "canceled");
        fail(l, WT_ECANCELED, &err);
    }
    end(l);
}

static void start_build(struct loading *l) {
    l->work.data = l;
    l->working = true;
    int rc = uv_queue_work(wt_backend_loop(l->load->tier), &l->work, build, on_built);
    if (rc == 0)
        return;
    l->working = false;
    struct wt_err err;
    fail(l, wt_err_sys(&err, -rc, "its index cannot be put together"), &err);
    end(l);
}

static void next_part(struct loading *l, struct slot *slot);

static void on_part(struct wt_req *req) {
    struct loading *l = req->arg;
    l->in_flight--;
    size_t want = req->len - 1; /* one byte more was asked for: a longer part shows */
    if (req->rc == WT_EMISSING)
        req->rc = req->err.code = WT_ECORRUPT;
    else if (req->rc == 0 && req->got != want)
        req->rc = wt_err_set(&req->err, WT_ECORRUPT, "%s: %zu bytes, its manifest says %zu",
                             req->key, req->got, want);
    if (req->rc < 0)
        fail(l, req->rc, &req->err);
    next_part(l, (struct slot *)req);
    if (l->in_flight)
        return;
    if (l->load->rc < 0 || l->canceled)
        end(l);
    else
        start_build(l);
}

static void next_part(struct loading *l, struct slot *slot) {
    if (l->load->rc < 0 || l->canceled || l->next == l->n_parts)
        return;
    uint32_t i = l->next++;
    struct wt_err err = {0};
    size_t len = (size_t)l->m.part[i].records * WT_IDX_RECORD;
    l->part[i] = l->m.part[i].records <= WT_IDX_PART ? malloc(len + 1) : NULL;
    if (!l->part[i]) {
        fail(l, wt_err_set(&err, WT_ENOMEM, "out of memory for %zu bytes of its index", len), &err);
        return;
    }
    l->part_len[i] = len;
    wt_idx_name(l->load->name, l->m.part[i].hash, slot->key);
    slot->req = (struct wt_req){.op = WT_OP_GET,
                                .key = slot->key,
                                .buf = l->part[i],
                                .len = len + 1,
                                .done = on_part,
                                .arg = l};
    int rc = wt_tier_submit(l->load->tier, &slot->req);
    if (rc < 0)
        fail(l, rc, &slot->req.err);
    else
        l->in_flight++;
}

static int alloc_parts(struct loading *l, struct wt_err *err) {
    l->part = wt_calloc(l->m.n_parts, sizeof *l->part);
    l->part_len = wt_calloc(l->m.n_parts, sizeof *l->part_len);
    if (l->part)
        l->n_parts = l->m.n_parts;
    return l->part && l->part_len ? 0 : wt_err_set(err, WT_ENOMEM, "out of memory for its index");
}

static void start_parts(struct loading *l) {
    struct wt_err err;
    int rc = alloc_parts(l, &err);
    if (rc < 0)
        fail(l, rc, &err);
    for (int i = 0; i < IN_FLIGHT; i++)
        next_part(l, &l->slot[i]);
    if (l->in_flight)
        return;
    if (l->load->rc < 0 || l->canceled)
        end(l);
    else
        start_build(l); /* a data set without parts: build says what it thinks of it */
}

/* ---- the manifest ---- */

static int parse(struct loading *l, struct wt_err *err) {
    int rc = wt_manifest_parse((const char *)l->text, l->text_len, &l->m, err);
    if (rc < 0)
        return wt_err_wrap(err, "%s", l->key);
    if (strcmp(l->m.name, l->load->name) != 0)
        return wt_err_set(err, WT_ECORRUPT, "%s is the manifest of \"%s\"", l->key, l->m.name);
    l->load->manifest_hash = wt_hash(l->text, l->text_len);
    return 0;
}

static int stat_manifest(struct loading *l);

/* 0: going on; else the load is over. */
static int manifest_read(struct loading *l, struct wt_err *err) {
    if (l->manifest.got != l->text_len) { /* replaced since STAT */
        if (++l->tries == TRIES)
            return wt_err_set(err, WT_ECHANGED, "%s changes all the time", l->key);
        free(l->text);
        l->text = NULL;
        int rc = stat_manifest(l);
        if (rc < 0)
            *err = l->manifest.err;
        return rc;
    }
    int rc = parse(l, err);
    if (rc == 0)
        start_parts(l);
    return rc;
}

static void finish_with(struct loading *l, int rc, const struct wt_err *err) {
    fail(l, rc, err);
    end(l);
}

/* A cancel may come too late for the request, but not for us. */
static int result_of(const struct loading *l, struct wt_err *err) {
    if (l->manifest.rc == 0 && l->canceled)
        return wt_err_set(err, WT_ECANCELED, "canceled");
    return l->manifest.rc;
}

static void on_manifest(struct wt_req *req) {
    struct loading *l = req->arg;
    struct wt_err err = req->err;
    int rc = result_of(l, &err);
    if (rc == 0)
        rc = manifest_read(l, &err);
    if (rc < 0)
        finish_with(l, rc, &err);
}

static int get_manifest(struct loading *l, struct wt_err *err) {
    uint64_t size = l->manifest.size;
    if (size > WT_MANIFEST_MAX)
        return wt_err_set(err, WT_ERANGE, "%s has %llu bytes, more than %d", l->key,
                          (unsigned long long)size, WT_MANIFEST_MAX);
    l->text_len = (size_t)size;
    l->text = malloc(l->text_len + 1);
    if (!l->text)
        return wt_err_set(err, WT_ENOMEM, "out of memory for %s", l->key);
    l->manifest = (struct wt_req){.op = WT_OP_GET,
                                  .key = l->key,
                                  .buf = l->text,
                                  .len = l->text_len + 1,
                                  .done = on_manifest,
                                  .arg = l};
    int rc = wt_tier_submit(l->load->tier, &l->manifest);
    if (rc < 0)
        *err = l->manifest.err;
    return rc;
}

static void on_stat(struct wt_req *req) {
    struct loading *l = req->arg;
    struct wt_err err = req->err;
    int rc = result_of(l, &err);
    if (rc == 0)
        rc = get_manifest(l, &err);
    if (rc < 0)
        finish_with(l, rc, &err);
}

static int stat_manifest(struct loading *l) {
    l->manifest = (struct wt_req){.op = WT_OP_STAT, .key = l->key, .done = on_stat, .arg = l};
    return wt_tier_submit(l->load->tier, &l->manifest);
}

/* ---- begin and cancel ---- */

int wt_load_dataset(struct wt_load_dataset *load) {
    load->rc = 0;
    load->err = (struct wt_err){0};
    memset(&load->dataset, 0, sizeof load->dataset);
    load->priv = NULL;
    load->rc = wt_dataset_name_check(load->name, &load->err);
    if (load->rc < 0)
        return load->rc;
    struct loading *l = calloc(1, sizeof *l);
    if (!l)
        return load->rc =
                   wt_err_set(&load->err, WT_ENOMEM, "data set %s: out of memory", load->name);
    l->load = load;
    wt_manifest_name(load->name, l->key);
    int rc = stat_manifest(l);
    if (rc < 0) {
        fail(l, rc, &l->manifest.err);
        free_loading(l);
        return load->rc;
    }
    load->priv = l;
    return 0;
}

void wt_load_dataset_cancel(struct wt_load_dataset *load) {
    struct loading *l = load->priv;
    if (!l || l->canceled)
        return;
    l->canceled = true;
    if (l->working) {
        uv_cancel((uv_req_t *)&l->work); /* when it runs already, its result is dropped */
        return;
    }
    wt_tier_cancel(&l->manifest);
    for (int i = 0; i < IN_FLIGHT; i++)
        wt_tier_cancel(&l->slot[i].req);
}
