/*
 * Reading the indices of a data set's shards; see places.h.
 *
 *   select -> a survey that is ready -> answered
 *          -> none: one begins, or is under way -> the caller waits -> answered when it ends
 *
 * Indices are read in batches: all of a batch have arrived before the next is asked for, so shards
 * are taken in order and memory is bounded.
 */
#include "daemon/places.h"

#include "core/mem.h"
#include "daemon/survey.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, KEPT = 16, WAITING_MAX = 256, BATCH_BYTES = 64 << 20 };

struct waiting {
    struct waiting *next;
    struct wt_selector selector;
    wt_places_done done;
    void *arg;
};

struct reading { /* one index */
    struct read *r;
    struct wt_req req;
    char key[WT_OBJECT_NAME];
    uint8_t *buf;
    struct wt_shard_rec rec;
};

struct read { /* the survey of a generation */
    struct wt_places *p;
    char name[WT_DATASET_NAME];
    struct wt_hash manifest;
    struct wt_catalog_set *set; /* while it reads: counted in its `moves`, so that it stays */
    struct wt_survey *survey;
    struct waiting *first;
    size_t n_waiting;
    uint64_t next; /* shard */
    struct reading slot[BATCH];
    unsigned n_slots, in_flight;
    bool ready;
    int rc;
    struct wt_err err;
};

struct wt_places {
    struct wt_tier *tier[WT_TIERS_MAX];
    struct wt_catalog *catalog;
    struct read *read[KEPT];
    unsigned n, reading;
    bool stopping;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

struct wt_places *wt_places_new(struct wt_tier *const *tiers, struct wt_catalog *catalog) {
    struct wt_places *p = wt_calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->catalog = catalog;
    memcpy(p->tier, tiers, catalog->n_tiers * sizeof *tiers);
    return p;
}

static void free_read(struct read *r) {
    wt_survey_free(r->survey);
    free(r);
}

void wt_places_free(struct wt_places *p) {
    for (unsigned i = 0; p && i < p->n; i++)
        free_read(p->read[i]);
    free(p);
}

/* ---- answers ---- */

static void refuse(wt_places_done done, void *arg, const struct wt_err *err) {
    done(arg, err->code, err, NULL, NULL);
}

/* Counts what it selects, and hands it over. */
static void answer(struct wt_catalog_set *set, struct wt_selection *s, wt_places_done done,
                   void *arg) {
    for (size_t i = 0; i < s->n; i++)
        for (uint64_t k = s->range[i].first; k < s->range[i].end; k++, s->shards++)
            s->bytes += wt_catalog_size(set, k);
    done(arg, 0, NULL, set, s);
}

static void answer_from(const struct wt_survey *survey, struct wt_catalog_set *set,
                        const struct wt_selector *sel, wt_places_done done, void *arg) {
    struct wt_selection s = {0};
    struct wt_err err;
    int rc = wt_survey_find(survey, sel->lot, sel->wafer, &s);
    if (rc == 0) {
        answer(set, &s, done, arg);
        return;
    }
    wt_selection_free(&s);
    if (rc == WT_EMISSING && sel->wafer[0])
        wt_err_set(&err, rc, "data set %s has no wafer '%s' in lot '%s'", sel->dataset, sel->wafer,
                   sel->lot);
    else if (rc == WT_EMISSING)
        wt_err_set(&err, rc, "data set %s has no lot '%s'", sel->dataset, sel->lot);
    else
        wt_err_set(&err, rc, "no memory to select shards of %s", sel->dataset);
    refuse(done, arg, &err);
}

static void answer_whole(struct wt_catalog_set *set, wt_places_done done, void *arg) {
    struct wt_selection s = {0};
    struct wt_err err;
    if (wt_selection_add(&s, 0, set->d.m.shards) == 0) {
        s.shards = set->d.m.shards;
        s.bytes = set->d.m.stored_bytes;
        done(arg, 0, NULL, set, &s);
        return;
    }
    wt_err_set(&err, WT_ENOMEM, "no memory to select shards of %s", set->d.m.name);
    refuse(done, arg, &err);
}

/* ---- reading ---- */

static void remove_read(struct wt_places *p, struct read *r) {
    for (unsigned i = 0; i < p->n; i++)
        if (p->read[i] == r) {
            p->read[i] = p->read[--p->n];
            free_read(r);
            return;
        }
}

/* All is read, or something failed: those who wait are told. */
static void end(struct read *r) {
    struct wt_places *p = r->p;
    struct waiting *list = r->first;
    struct wt_catalog_set *set = r->set;
    set->moves--;
    r->set = NULL;
    r->first = NULL;
    r->ready = r->rc == 0;
    p->reading--;
    struct wt_err err = r->err;
    if (set->retired && !err.code)
        wt_err_set(&err, WT_ECHANGED, "data set %s was replaced meanwhile; ask again", r->name);
    while (list) {
        struct waiting *w = list;
        list = w->next;
        if (err.code)
            refuse(w->done, w->arg, &err);
        else
            answer_from(r->survey, set, &w->selector, w->done, w->arg);
        free(w);
    }
    if (!r->ready)
        remove_read(p, r);
    if (p->stopping && p->reading == 0 && p->stopped) {
        void (*stopped)(void *arg) = p->stopped;
        p->stopped = NULL;
        stopped(p->stopped_arg); /* may free p */
    }
}

static void fail(struct read *r, int rc, const struct wt_err *err) {
    if (r->rc < 0)
        return;
    r->rc = rc;
    r->err = *err;
    wt_err_wrap(&r->err, "reading which shards of %s hold which wafers", r->name);
}

static int take(struct read *r, uint64_t shard, const struct reading *s, struct wt_err *err) {
    struct wt_shard_index x;
    int rc = wt_shard_index_parse(s->buf, s->req.len, s->rec.index_off, s->rec.size, s->rec.codec,
                                  &x, err);
    if (rc < 0)
        return wt_err_wrap(err, "%s", s->key);
    rc = wt_survey_add(r->survey, shard, &x);
    wt_shard_index_free(&x);
    return rc < 0 ? wt_err_set(err, rc, "no memory for its wafers") : 0;
}

static void read_batch(struct read *r);

static void batch_ended(struct read *r) {
    struct wt_err err = {0};
    for (unsigned i = 0; i < r->n_slots; i++) {
        if (r->rc == 0 && take(r, r->next + i, &r->slot[i], &err) < 0)
            fail(r, err.code, &err);
        free(r->slot[i].buf);
    }
    r->next += r->n_slots;
    r->n_slots = 0;
    if (r->p->stopping) {
        wt_err_set(&err, WT_ECANCELED, "the daemon is stopping");
        fail(r, WT_ECANCELED, &err);
    }
    if (r->rc < 0 || r->next == r->set->d.m.shards)
        end(r);
    else
        read_batch(r);
}

static void on_index(struct wt_req *req) {
    struct reading *s = req->arg;
    struct read *r = s->r;
    struct wt_err err = req->err;
    if (req->rc == 0 && req->got != req->len)
        wt_err_set(&err, WT_ECORRUPT, "%s is shorter than its data set says", s->key);
    if (err.code)
        fail(r, err.code, &err);
    if (--r->in_flight == 0)
        batch_ended(r);
}

static bool submit(struct read *r, uint64_t shard, uint64_t len, const struct wt_shard_rec *rec) {
    struct reading *s = &r->slot[r->n_slots];
    struct wt_err err;
    *s = (struct reading){.r = r, .rec = *rec, .buf = malloc((size_t)len)};
    if (!s->buf) {
        fail(r, wt_err_set(&err, WT_ENOMEM, "no memory for an index of %" PRIu64 " bytes", len),
             &err);
        return false;
    }
    wt_catalog_key(r->set, shard, s->key);
    s->req = (struct wt_req){.op = WT_OP_GET,
                             .key = s->key,
                             .off = rec->index_off,
                             .buf = s->buf,
                             .len = (size_t)len,
                             .done = on_index,
                             .arg = s};
    int rc = wt_tier_submit(r->p->tier[wt_catalog_truth(r->set, shard)], &s->req);
    if (rc < 0) {
        if (!s->req.err.code)
            wt_err_set(&s->req.err, rc, "%s: %s", s->key, wt_err_text(rc));
        fail(r, rc, &s->req.err);
        free(s->buf);
        return false;
    }
    r->n_slots++;
    r->in_flight++;
    return true;
}

static void read_batch(struct read *r) {
    uint64_t bytes = 0;
    for (uint64_t k = r->next; k < r->set->d.m.shards && r->n_slots < BATCH; k++) {
        struct wt_shard_rec rec;
        wt_catalog_rec(r->set, k, &rec);
        uint64_t len = rec.size - rec.index_off;
        if (r->n_slots && bytes + len > BATCH_BYTES)
            break;
        bytes += len;
        if (!submit(r, k, len, &rec))
            break;
    }
    if (r->in_flight == 0)
        batch_ended(r);
}

/* ---- select ---- */

static struct read *find_read(struct wt_places *p, const struct wt_catalog_set *set) {
    for (unsigned i = 0; i < p->n; i++)
        if (strcmp(p->read[i]->name, set->d.m.name) == 0 &&
            wt_hash_equal(p->read[i]->manifest, set->manifest))
            return p->read[i];
    return NULL;
}

/* Forgets a survey that is not being read, the oldest, where there is no place for one more. */
static bool make_place(struct wt_places *p) {
    for (unsigned i = 0; i < p->n && p->n == KEPT; i++)
        if (p->read[i]->ready) {
            free_read(p->read[i]);
            memmove(&p->read[i], &p->read[i + 1], (p->n - i - 1) * sizeof p->read[0]);
            p->n--;
        }
    return p->n < KEPT;
}

static int new_read(struct wt_places *p, struct wt_catalog_set *set, struct read **out) {
    if (!make_place(p))
        return WT_EBUSY;
    struct read *r = wt_calloc(1, sizeof *r);
    struct wt_survey *survey = r ? wt_survey_new() : NULL;
    if (!survey) {
        free(r);
        return WT_ENOMEM;
    }
    r->p = p;
    r->survey = survey;
    r->set = set;
    r->manifest = set->manifest;
    snprintf(r->name, sizeof r->name, "%s", set->d.m.name);
    set->moves++;
    p->read[p->n++] = r;
    p->reading++;
    *out = r;
    return 0;
}

static int wait_for(struct read *r, const struct wt_selector *selector, wt_places_done done,
                    void *arg) {
    if (r->n_waiting >= WAITING_MAX)
        return WT_EBUSY;
    struct waiting *w = wt_calloc(1, sizeof *w);
    if (!w)
        return WT_ENOMEM;
    *w = (struct waiting){.next = r->first, .selector = *selector, .done = done, .arg = arg};
    r->first = w;
    r->n_waiting++;
    return 0;
}

void wt_places_select(struct wt_places *p, const struct wt_selector *selector, wt_places_done done,
                      void *arg) {
    struct wt_err err = {0};
    struct wt_catalog_set *set = wt_catalog_find(p->catalog, selector->dataset, 0);
    if (p->stopping || !set) {
        if (p->stopping)
            wt_err_set(&err, WT_ECANCELED, "the daemon is stopping");
        else
            wt_err_set(&err, WT_EMISSING, "there is no data set %s; see GET /v1/datasets",
                       selector->dataset);
        refuse(done, arg, &err);
        return;
    }
    if (!selector->lot[0]) {
        answer_whole(set, done, arg);
        return;
    }
    struct read *r = find_read(p, set);
    if (r && r->ready) {
        answer_from(r->survey, set, selector, done, arg);
        return;
    }
    bool begin = !r;
    int rc = begin ? new_read(p, set, &r) : 0;
    if (rc == 0)
        rc = wait_for(r, selector, done, arg);
    if (rc < 0) {
        wt_err_set(&err, rc,
                   rc == WT_EBUSY ? "too many selections of lots and wafers at a time; try later"
                                  : "no memory to select lots and wafers");
        refuse(done, arg, &err);
    }
    if (begin && r)
        read_batch(r);
}

void wt_places_stop(struct wt_places *p, void (*stopped)(void *arg), void *arg) {
    p->stopping = true;
    p->stopped = stopped;
    p->stopped_arg = arg;
    for (unsigned i = 0; i < p->n; i++)
        for (unsigned k = 0; k < p->read[i]->n_slots && p->read[i]->set; k++)
            wt_tier_cancel(&p->read[i]->slot[k].req);
    if (p->reading == 0) {
        p->stopped = NULL;
        stopped(arg);
    }
}
