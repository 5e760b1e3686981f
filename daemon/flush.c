/* Which shards go to cold, and when a set has all there; see flush.h. */
#include "daemon/flush.h"

#include "core/mem.h"
#include "daemon/successor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    AT_ONCE = 2,     /* moves of ours in the mover's queue */
    SLICE = 50000,   /* shards looked at in a turn */
    PAUSE_MS = 5000, /* after a round that found nothing to do, or a failure */
};

struct wt_flush {
    struct wt_flush_opts o;
    uv_timer_t timer;
    bool timer_open, stopping;
    uint64_t rest_ms;            /* nothing is done before */
    unsigned moves;              /* ours, under way */
    size_t n;                    /* the round: set, */
    uint64_t at;                 /* shard, */
    uint64_t shape;              /* valid for this shape of the catalog, */
    bool found;                  /* and whether it found something to do */
    char stuck[WT_DATASET_NAME]; /* told that it cannot be flushed */
    uint64_t stuck_generation;
    struct wt_successor successor;
    struct wt_flush_stats stats;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

static void on_timer(uv_timer_t *timer);

struct wt_flush *wt_flush_new(const struct wt_flush_opts *opts) {
    struct wt_flush *f = wt_calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->o = *opts;
    uv_timer_init(opts->loop, &f->timer);
    f->timer.data = f;
    f->timer_open = true;
    return f;
}

void wt_flush_free(struct wt_flush *f) {
    free(f);
}

void wt_flush_stats(const struct wt_flush *f, struct wt_flush_stats *out) {
    *out = f->stats;
}

static void again(struct wt_flush *f, uint64_t ms) {
    if (!f->stopping)
        uv_timer_start(&f->timer, on_timer, ms, 0);
}

static void failed(struct wt_flush *f, const char *dataset, uint64_t generation, const char *text) {
    f->rest_ms = uv_now(f->o.loop) + PAUSE_MS;
    if (strcmp(f->stuck, dataset) == 0 && f->stuck_generation == generation)
        return;
    f->stats.failures++;
    snprintf(f->stuck, sizeof f->stuck, "%s", dataset);
    f->stuck_generation = generation;
    wt_log(f->o.log, WT_LOG_WARN, "data set %s is not flushed to cold yet: %s", dataset, text);
    f->o.told(f->o.arg, false, dataset, generation, text);
}

/* ---- the manifest ---- */

static void try_close(struct wt_flush *f);

static void on_published(struct wt_successor *s, int rc, const struct wt_err *err) {
    struct wt_flush *f = s->arg;
    if (rc == 0) {
        f->stats.sets++;
        wt_log(f->o.log, WT_LOG_INFO, "data set %s is flushed: generation %" PRIu64 " is in cold",
               s->name, s->generation + 1);
        f->o.told(f->o.arg, true, s->name, s->generation + 1, "all of it is in cold");
    } else if (rc != WT_ECHANGED && !f->stopping) {
        failed(f, s->name, s->generation, err->text);
    }
    f->rest_ms = uv_now(f->o.loop) + PAUSE_MS; /* the new one is loaded meanwhile */
    if (!f->stopping && (rc == 0 || rc == WT_ECHANGED))
        wt_datasets_want(f->o.datasets, s->name, NULL, NULL, NULL);
    try_close(f);
}

static bool may(void *arg) {
    const struct wt_flush *f = arg;
    return f->o.may(f->o.arg);
}

static void publish(struct wt_flush *f, const struct wt_catalog_set *set) {
    struct wt_successor *s = &f->successor;
    *s = (struct wt_successor){.cold = f->o.cold,
                               .manifest = set->manifest,
                               .generation = set->d.m.generation,
                               .now_s = (uint64_t)time(NULL),
                               .may = may,
                               .done = on_published,
                               .arg = f};
    snprintf(s->name, sizeof s->name, "%s", set->d.m.name);
    wt_successor_start(s);
}

/* ---- shards ---- */

/* false: the mover takes no more now. */
static bool take(struct wt_flush *f, struct wt_catalog_set *set, uint64_t shard) {
    const struct wt_shard_state *s = &set->shard[shard];
    if (s->mask & 1)
        return true;
    if (s->flags & WT_SHARD_ASIDE)
        failed(f, set->d.m.name, set->d.m.generation,
               "some of its shards are set aside; see 'wafertier moves', then reload");
    if (s->flags & (WT_SHARD_BUSY | WT_SHARD_ASIDE))
        return true;
    if (wt_mover_to_cold(f->o.mover, set, shard) < 0)
        return false;
    f->moves++;
    f->found = true;
    return true;
}

static bool is_ours(const struct wt_catalog_set *set) {
    return set->home > 0 && !set->retired;
}

static void turn(struct wt_flush *f) {
    struct wt_catalog *c = f->o.catalog;
    if (f->shape != c->shape) {
        f->shape = c->shape;
        f->n = 0;
        f->at = 0;
    }
    for (unsigned k = 0; k < SLICE && f->moves < AT_ONCE && f->n < c->n_sets; k++) {
        struct wt_catalog_set *set = c->set[f->n];
        if (is_ours(set) && set->dirty == 0 && !f->successor.busy) {
            publish(f, set); /* may have ended already */
            return;
        }
        if (!is_ours(set) || set->dirty == 0 || f->at == set->d.m.shards) {
            f->n++;
            f->at = 0;
        } else if (take(f, set, f->at)) {
            f->at++;
        } else {
            return;
        }
    }
    if (f->n < c->n_sets) {
        if (f->moves < AT_ONCE)
            again(f, 1);
        return;
    }
    if (!f->found && f->moves == 0)
        f->rest_ms = uv_now(f->o.loop) + PAUSE_MS;
    f->found = false;
    f->n = 0;
}

static bool anything(const struct wt_catalog *c) {
    for (size_t i = 0; i < c->n_sets; i++)
        if (is_ours(c->set[i]))
            return true;
    return false;
}

static void on_timer(uv_timer_t *timer) {
    struct wt_flush *f = timer->data;
    if (!f->stopping && !f->successor.busy && f->o.may(f->o.arg) && uv_now(f->o.loop) >= f->rest_ms)
        turn(f);
}

void wt_flush_look(struct wt_flush *f) {
    if (anything(f->o.catalog) && !uv_is_active((uv_handle_t *)&f->timer))
        again(f, 0);
}

void wt_flush_ended(struct wt_flush *f, const struct wt_move_info *info) {
    if (info->to != 0 || info->mends || f->moves == 0)
        return;
    f->moves--;
    if (info->rc == 0)
        again(f, 0);
    else
        f->rest_ms = uv_now(f->o.loop) + PAUSE_MS;
}

/* ---- the end ---- */

static void on_closed(uv_handle_t *h) {
    struct wt_flush *f = h->data;
    f->timer_open = false;
    f->stopped(f->stopped_arg); /* may free f */
}

static void try_close(struct wt_flush *f) {
    if (f->stopping && !f->successor.busy && f->timer_open &&
        !uv_is_closing((uv_handle_t *)&f->timer))
        uv_close((uv_handle_t *)&f->timer, on_closed);
}

void wt_flush_stop(struct wt_flush *f, void (*stopped)(void *arg), void *arg) {
    f->stopping = true;
    f->stopped = stopped;
    f->stopped_arg = arg;
    uv_timer_stop(&f->timer);
    wt_successor_cancel(&f->successor);
    try_close(f);
}
