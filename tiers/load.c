/*
 * Reading a data set from a tier; see load.h.
 *
 * Happy path: STAT and GET of the manifest -> parse -> GET of the parts of shards.idx, IN_FLIGHT at
 * a time, each checked and put in its place on a thread of uv's pool (pure computing) -> done().
 * Failures: the first error stops further requests; done() comes when none is in flight and no
 * thread works. A manifest that is replaced between STAT and GET is read again. A part that the
 * manifest names and that is not there makes the data set damaged, not missing.
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
    struct wt_dataset_parts parts;
    uint32_t next;      /* part to ask for */
    unsigned in_flight; /* requests and threads */
    struct slot {
        struct wt_req req;
        struct loading *l;
        uint32_t part;
        char key[WT_OBJECT_NAME];
        uint8_t *buf; /* of `cap` bytes: a part and one more */
        size_t cap;
        bool working;
        uv_work_t work;
        int rc;
        struct wt_err err;
    } slot[IN_FLIGHT];
};

static void free_loading(struct loading *l) {
    for (int i = 0; i < IN_FLIGHT; i++)
        free(l->slot[i].buf);
    wt_dataset_abandon(&l->parts);
    free(l->text);
    wt_manifest_free(&l->m);
    free(l);
}

/* The only way out. `load` may be gone after done(). */
static void end(struct loading *l) {
    struct wt_load_dataset *load = l->load;
    if (load->rc == 0 && l->canceled)
        load->rc = wt_err_set(&load->err, WT_ECANCELED, "data set %s: canceled", load->name);
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

static void next_part(struct slot *slot);

/* No part is left, or something failed. */
static void finish(struct loading *l) {
    struct wt_err err = {0};
    if (l->load->rc == 0 && !l->canceled &&
        wt_dataset_end(&l->parts, &l->m, &l->load->dataset, &err) < 0)
        fail(l, err.code, &err);
    end(l);
}

static void part_ended(struct slot *slot, int rc, const struct wt_err *err) {
    struct loading *l = slot->l;
    l->in_flight--;
    if (rc < 0)
        fail(l, rc, err);
    next_part(slot);
    if (l->in_flight == 0)
        finish(l);
}

/* On a thread of uv's pool: all of a large index take a second to hash. */
static void check(uv_work_t *work) {
    struct slot *slot = work->data;
    slot->rc =
        wt_dataset_part(&slot->l->parts, slot->part, slot->buf, slot->req.len - 1, &slot->err);
}

static void on_checked(uv_work_t *work, int status) {
    struct slot *slot = work->data;
    slot->working = false;
    if (status < 0)
        slot->rc = wt_err_set(&slot->err, WT_ECANCELED, "canceled");
    part_ended(slot, slot->rc, &slot->err);
}

static void on_part(struct wt_req *req) {
    struct slot *slot = req->arg;
    struct loading *l = slot->l;
    size_t want = req->len - 1; /* one byte more was asked for: a longer part shows */
    if (req->rc == WT_EMISSING)
        req->rc = req->err.code = WT_ECORRUPT;
    else if (req->rc == 0 && req->got != want)
        req->rc = wt_err_set(&req->err, WT_ECORRUPT, "%s: %zu bytes, its manifest says %zu",
                             req->key, req->got, want);
    if (req->rc == 0 && l->load->rc == 0 && !l->canceled) {
        slot->err = (struct wt_err){0};
        slot->work.data = slot;
        int rc = uv_queue_work(wt_backend_loop(l->load->tier), &slot->work, check, on_checked);
        slot->working = rc == 0;
        if (slot->working)
            return;
        req->rc = wt_err_sys(&req->err, -rc, "its index cannot be put together");
    }
    part_ended(slot, req->rc, &req->err);
}

static int ask_for(struct slot *slot, struct wt_err *err) {
    struct loading *l = slot->l;
    const struct wt_idx_part *part = &l->m.part[slot->part];
    size_t len = (size_t)part->records * WT_IDX_RECORD;
    if (wt_grow(&slot->buf, &slot->cap, len + 1, 1) < 0)
        return wt_err_set(err, WT_ENOMEM, "out of memory for %zu bytes of its index", len);
    wt_idx_name(l->load->name, part->hash, slot->key);
    slot->req = (struct wt_req){.op = WT_OP_GET,
                                .key = slot->key,
                                .buf = slot->buf,
                                .len = len + 1,
                                .done = on_part,
                                .arg = slot};
    int rc = wt_tier_submit(l->load->tier, &slot->req);
    if (rc < 0)
        *err = slot->req.err;
    return rc;
}

static void next_part(struct slot *slot) {
    struct loading *l = slot->l;
    struct wt_err err = {0};
    if (l->load->rc < 0 || l->canceled || l->next == l->parts.m->n_parts)
        return;
    slot->part = l->next++;
    int rc = ask_for(slot, &err);
    if (rc < 0)
        fail(l, rc, &err);
    else
        l->in_flight++;
}

static void start_parts(struct loading *l) {
    struct wt_err err;
    int rc = wt_dataset_begin(&l->m, &l->parts, &err);
    if (rc < 0)
        fail(l, rc, &err);
    for (int i = 0; i < IN_FLIGHT; i++) {
        l->slot[i].l = l;
        next_part(&l->slot[i]);
    }
    if (l->in_flight == 0)
        finish(l);
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
    const struct wt_hash *known = l->load->known;
    int rc = parse(l, err);
    l->load->unchanged = rc == 0 && known && wt_hash_equal(*known, l->load->manifest_hash);
    if (l->load->unchanged)
        end(l);
    else if (rc == 0)
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
    load->unchanged = false;
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
    wt_tier_cancel(&l->manifest);
    for (int i = 0; i < IN_FLIGHT; i++)
        if (l->slot[i].working)
            uv_cancel((uv_req_t *)&l->slot[i].work); /* one that runs already is waited for */
        else
            wt_tier_cancel(&l->slot[i].req);
}
