/* Believed copies are looked up; see reconcile.h. */
#include "daemon/reconcile.h"

#include "core/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROBES = 32, SLICE = 50000, FINDS_MAX = 4096 };

struct probe {
    struct wt_reconcile *r;
    struct wt_req req;
    struct wt_catalog_set *set; /* counted in its `moves`, so that it stays */
    uint64_t shard;
    uint32_t tier;
    char key[WT_OBJECT_NAME];
    bool busy;
};

struct find { /* a LIST to do */
    struct find *next;
    char name[WT_DATASET_NAME];
    uint32_t tier;
    bool told; /* that it failed */
};

struct wt_reconcile {
    uv_timer_t timer;
    bool timer_open, stopping;
    struct wt_tier *tier[WT_TIERS_MAX];
    struct wt_catalog *catalog;
    const struct wt_log *log;
    uint64_t at, shape; /* next shard of all, valid for this shape of the catalog */
    bool pass, again;   /* a pass is under way; one more is to follow */
    bool left;          /* there may be copies that are not sure */
    uint8_t doubt;      /* tiers of which nothing is sure: the pass says so, shard by shard, */
    uint64_t doubted;   /* up to this one */
    struct probe probe[PROBES];
    unsigned probing;
    struct find *first, **last;
    struct find *failed; /* tried again at the next kick */
    size_t finds;
    struct wt_req list;
    char prefix[WT_OBJECT_NAME];
    bool listing;
    uint64_t confirmed, lost, found;
    void (*damaged)(void *arg, struct wt_catalog_set *set, uint64_t shard, uint32_t tier);
    void *damaged_arg;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

static void on_timer(uv_timer_t *timer);

struct wt_reconcile *wt_reconcile_new(uv_loop_t *loop, struct wt_tier *const *tiers,
                                      struct wt_catalog *catalog, const struct wt_log *log) {
    struct wt_reconcile *r = wt_calloc(1, sizeof *r);
    if (!r)
        return NULL;
    for (unsigned i = 0; i < PROBES; i++)
        r->probe[i].r = r;
    memcpy(r->tier, tiers, catalog->n_tiers * sizeof *tiers);
    r->catalog = catalog;
    r->log = log;
    r->last = &r->first;
    uv_timer_init(loop, &r->timer);
    r->timer.data = r;
    r->timer_open = true;
    return r;
}

static void on_closed(uv_handle_t *h) {
    struct wt_reconcile *r = h->data;
    r->timer_open = false;
    if (r->stopped)
        r->stopped(r->stopped_arg); /* may free r */
}

static void try_close(struct wt_reconcile *r) {
    if (r->stopping && r->probing == 0 && !r->listing && !uv_is_closing((uv_handle_t *)&r->timer))
        uv_close((uv_handle_t *)&r->timer, on_closed);
}

void wt_reconcile_on_damage(struct wt_reconcile *r,
                            void (*damaged)(void *arg, struct wt_catalog_set *set, uint64_t shard,
                                            uint32_t tier),
                            void *arg) {
    r->damaged = damaged;
    r->damaged_arg = arg;
}

static void later(struct wt_reconcile *r) {
    if (!r->stopping && !uv_is_active((uv_handle_t *)&r->timer))
        uv_timer_start(&r->timer, on_timer, 1, 0);
}

/* ---- STAT of what is believed ---- */

static void on_stat(struct wt_req *req) {
    struct probe *p = req->arg;
    struct wt_reconcile *r = p->r;
    p->busy = false;
    r->probing--;
    p->set->moves--;
    struct wt_shard_state *e = &p->set->shard[p->shard];
    bool moving = e->flags & WT_SHARD_BUSY;
    bool anew = e->sure & (1u << p->tier); /* a move has made it since we asked */
    if (req->rc == 0 && req->size == wt_catalog_size(p->set, p->shard)) {
        e->sure = (uint8_t)(e->sure | ((1u << p->tier) & e->mask));
        r->confirmed++;
    } else if (anew) {
        /* the answer is of what was there before */
    } else if (!moving && req->rc == 0 && r->damaged) {
        r->damaged(r->damaged_arg, p->set, p->shard, p->tier);
        r->lost++;
    } else if (!moving && (req->rc == WT_EMISSING || req->rc == WT_ECORRUPT)) {
        r->lost += e->mask >> p->tier & 1; /* it may have been asked about twice */
        wt_catalog_lose(r->catalog, p->set, p->shard, p->tier);
    } /* else: the tier did not answer; the next kick asks again */
    later(r);
    try_close(r);
}

static bool submit_probe(struct probe *p, struct wt_catalog_set *set, uint64_t shard,
                         uint32_t tier) {
    p->set = set;
    p->shard = shard;
    p->tier = tier;
    wt_catalog_key(set, shard, p->key);
    p->req = (struct wt_req){.op = WT_OP_STAT, .key = p->key, .done = on_stat, .arg = p};
    if (wt_tier_submit(p->r->tier[tier], &p->req) < 0)
        return false;
    p->busy = true;
    p->r->probing++;
    set->moves++;
    return true;
}

static struct probe *free_probe(struct wt_reconcile *r) {
    for (unsigned i = 0; i < PROBES; i++)
        if (!r->probe[i].busy)
            return &r->probe[i];
    return NULL;
}

/* One probe for each believed copy of the shard. false: no probe is free. */
static bool look_at(struct wt_reconcile *r, struct wt_catalog_set *set, uint64_t shard) {
    uint8_t doubt = set->shard[shard].mask & (uint8_t)~set->shard[shard].sure;
    r->left = r->left || doubt;
    for (uint32_t t = 1; doubt && t < r->catalog->n_tiers; t++) {
        if (!(doubt & (1u << t)) || wt_tier_is_down(r->tier[t]))
            continue;
        struct probe *p = free_probe(r);
        if (!p)
            return false; /* the shard is looked at again; one in flight twice does no harm */
        submit_probe(p, set, shard, t);
    }
    return true;
}

static void pass(struct wt_reconcile *r) {
    if (r->shape != r->catalog->shape) {
        r->shape = r->catalog->shape;
        r->at = r->doubted = 0;
    }
    for (unsigned n = 0; n < SLICE && r->at < r->catalog->shards; n++, r->at++) {
        uint64_t shard;
        struct wt_catalog_set *set = wt_catalog_at(r->catalog, r->at, &shard);
        if (r->at == r->doubted) { /* once, also where the look has to be repeated */
            set->shard[shard].sure &= (uint8_t)~r->doubt;
            r->doubted++;
        }
        if (!look_at(r, set, shard))
            return; /* a probe's end goes on */
    }
    if (r->at < r->catalog->shards) {
        later(r);
        return;
    }
    r->doubt = 0;
    r->pass = r->again;
    r->again = false;
    r->at = 0;
    if (r->pass)
        later(r);
}

/* ---- LIST of what is not known ---- */

static int on_entry(struct wt_req *req, const struct wt_entry *entry) {
    struct wt_reconcile *r = req->arg;
    char name[WT_DATASET_NAME];
    uint64_t shard;
    struct wt_hash hash;
    if (entry->unpublished || wt_shard_name_parse(entry->key, name, &shard, &hash) < 0)
        return 0;
    struct wt_catalog_set *set = wt_catalog_find(r->catalog, name, 0);
    struct wt_shard_rec rec;
    if (!set || shard >= set->d.m.shards)
        return 0;
    wt_catalog_rec(set, shard, &rec);
    if (!wt_hash_equal(rec.hash, hash))
        return 0;
    if (rec.size != entry->size) {
        /* A STAT tells whether that is still so: a move may have made it anew since. */
        wt_catalog_hold(r->catalog, set, shard, r->first->tier, wt_clock_now(&r->catalog->clock),
                        false);
        set->shard[shard].sure &= (uint8_t) ~(1u << r->first->tier);
        return 0;
    }
    r->found += !(set->shard[shard].mask & (1u << r->first->tier));
    /* Believed, not sure: what is listed may have been removed since. */
    wt_catalog_hold(r->catalog, set, shard, r->first->tier, wt_clock_now(&r->catalog->clock),
                    false);
    return 0;
}

static struct find *pop_find(struct wt_reconcile *r) {
    struct find *f = r->first;
    r->first = f->next;
    if (!r->first)
        r->last = &r->first;
    r->finds--;
    return f;
}

static void fail_find(struct wt_reconcile *r) {
    struct find *f = pop_find(r);
    f->next = r->failed;
    r->failed = f;
}

static void free_finds(struct find *list) {
    while (list) {
        struct find *next = list->next;
        free(list);
        list = next;
    }
}

static void on_listed(struct wt_req *req) {
    struct wt_reconcile *r = req->arg;
    r->listing = false;
    if (req->rc < 0 && req->rc != WT_EMISSING) {
        if (req->rc != WT_ECANCELED && !r->first->told)
            wt_log(r->log, WT_LOG_WARN,
                   "copies of data set %s cannot be looked for now, tried again later: %s",
                   r->first->name, req->err.text);
        r->first->told = true;
        fail_find(r);
    } else {
        free(pop_find(r));
        wt_reconcile_kick(r);
    }
    later(r);
    try_close(r);
}

static void find_next(struct wt_reconcile *r) {
    while (r->first && !r->listing) {
        snprintf(r->prefix, sizeof r->prefix, "%s/shards/", r->first->name);
        r->list = (struct wt_req){
            .op = WT_OP_LIST, .key = r->prefix, .on_entry = on_entry, .done = on_listed, .arg = r};
        r->listing = wt_tier_submit(r->tier[r->first->tier], &r->list) == 0;
        if (!r->listing)
            fail_find(r);
    }
}

static void add_find(struct wt_reconcile *r, struct find *f) {
    f->next = NULL;
    *r->last = f;
    r->last = &f->next;
    r->finds++;
}

void wt_reconcile_find(struct wt_reconcile *r, const struct wt_catalog_set *set) {
    for (uint32_t t = 1; t < r->catalog->n_tiers && r->finds < FINDS_MAX; t++) {
        struct find *f = wt_calloc(1, sizeof *f);
        if (!f)
            return;
        snprintf(f->name, sizeof f->name, "%s", set->d.m.name);
        f->tier = t;
        add_find(r, f);
    }
    later(r);
}

static void find_again(struct wt_reconcile *r) {
    while (r->failed) {
        struct find *f = r->failed;
        r->failed = f->next;
        add_find(r, f);
    }
}

/* ---- driving it ---- */

static void on_timer(uv_timer_t *timer) {
    struct wt_reconcile *r = timer->data;
    find_next(r);
    if (r->pass)
        pass(r);
}

void wt_reconcile_kick(struct wt_reconcile *r) {
    r->again = r->pass; /* what it has passed already may be asked for */
    find_again(r);
    if (r->pass)
        return;
    r->pass = true;
    r->left = false;
    r->at = r->doubted = 0;
    later(r);
}

void wt_reconcile_doubtful(struct wt_reconcile *r) {
    r->left = true;
}

void wt_reconcile_again(struct wt_reconcile *r) {
    find_again(r);
    if (r->left)
        wt_reconcile_kick(r);
    else if (r->first)
        later(r);
}

void wt_reconcile_doubt(struct wt_reconcile *r, uint32_t tier) {
    r->doubt |= (uint8_t)(1u << tier);
    r->pass = false; /* from the first shard on */
    wt_reconcile_kick(r);
}

void wt_reconcile_stats(const struct wt_reconcile *r, struct wt_reconcile_stats *out) {
    *out = (struct wt_reconcile_stats){.confirmed = r->confirmed,
                                       .lost = r->lost,
                                       .found = r->found,
                                       .busy = r->pass || r->probing || r->first};
}

void wt_reconcile_stop(struct wt_reconcile *r, void (*stopped)(void *arg), void *arg) {
    r->stopping = true;
    r->pass = r->again = false;
    r->stopped = stopped;
    r->stopped_arg = arg;
    uv_timer_stop(&r->timer);
    for (unsigned i = 0; i < PROBES; i++)
        if (r->probe[i].busy)
            wt_tier_cancel(&r->probe[i].req);
    if (r->listing)
        wt_tier_cancel(&r->list);
    try_close(r);
}

void wt_reconcile_free(struct wt_reconcile *r) {
    if (!r)
        return;
    free_finds(r->first);
    free_finds(r->failed);
    free(r);
}
