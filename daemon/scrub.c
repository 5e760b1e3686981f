/* One copy after the other; see scrub.h. */
#include "daemon/scrub.h"

#include "core/mem.h"
#include "core/sum.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 1 << 20, /* read at a time */
    SLICE = 50000,   /* shards passed over without a copy to read: some milliseconds */
    LOOK_MS = 1000,  /* between looks whether it is idle now, or time for a pass */
};

struct wt_scrub {
    uv_timer_t timer;
    bool timer_open, on, stopping;
    struct wt_tier *tier[WT_TIERS_MAX];
    struct wt_catalog *catalog;
    struct wt_mover *mover;
    const struct wt_scrub_conf *conf;
    const struct wt_log *log;

    bool pass; /* one is under way: */
    uint64_t at, shape;
    uint32_t next_tier; /* of shard `at` */
    uint64_t began_ms;

    struct wt_req req; /* of the copy being read: */
    bool busy;
    struct wt_catalog_set *set; /* counted in its `moves`, so that it stays; NULL: none */
    uint64_t shard, size, off;
    uint32_t held_by;
    char key[WT_OBJECT_NAME];
    struct wt_hash hash;
    struct wt_hasher *hasher;
    uint8_t *buf;

    struct wt_scrub_stats stats;
    void (*damaged)(void *arg, struct wt_catalog_set *set, uint64_t shard, uint32_t tier);
    void *damaged_arg;
    void (*cold)(void *arg, struct wt_catalog_set *set, uint64_t shard, const char *what);
    void *cold_arg;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

static void on_timer(uv_timer_t *timer);

struct wt_scrub *wt_scrub_new(uv_loop_t *loop, struct wt_tier *const *tiers,
                              struct wt_catalog *catalog, struct wt_mover *mover,
                              const struct wt_scrub_conf *conf, const struct wt_log *log) {
    struct wt_scrub *s = wt_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->hasher = wt_hasher_new();
    s->buf = malloc(PIECE);
    if (!s->hasher || !s->buf) {
        wt_scrub_free(s);
        return NULL;
    }
    memcpy(s->tier, tiers, catalog->n_tiers * sizeof *tiers);
    s->catalog = catalog;
    s->mover = mover;
    s->conf = conf;
    s->log = log;
    uv_timer_init(loop, &s->timer);
    s->timer.data = s;
    s->timer_open = true;
    return s;
}

void wt_scrub_free(struct wt_scrub *s) {
    if (!s)
        return;
    wt_hasher_free(s->hasher);
    free(s->buf);
    free(s);
}

void wt_scrub_on_damage(struct wt_scrub *s,
                        void (*damaged)(void *arg, struct wt_catalog_set *set, uint64_t shard,
                                        uint32_t tier),
                        void *arg) {
    s->damaged = damaged;
    s->damaged_arg = arg;
}

void wt_scrub_on_cold(struct wt_scrub *s,
                      void (*cold)(void *arg, struct wt_catalog_set *set, uint64_t shard,
                                   const char *what),
                      void *arg) {
    s->cold = cold;
    s->cold_arg = arg;
}

void wt_scrub_stats(const struct wt_scrub *s, struct wt_scrub_stats *out) {
    *out = s->stats;
}

static void look_again(struct wt_scrub *s, uint64_t ms) {
    if (s->on)
        uv_timer_start(&s->timer, on_timer, ms, 0);
}

/* ---- what was found ---- */

static void copy_is_missing(struct wt_scrub *s) {
    if (s->held_by == 0) {
        s->stats.cold_missing++;
        s->cold(s->cold_arg, s->set, s->shard, "missing");
        return;
    }
    s->stats.missing++;
    wt_catalog_lose(s->catalog, s->set, s->shard, s->held_by);
}

static void copy_is_damaged(struct wt_scrub *s) {
    if (s->held_by == 0) {
        s->stats.cold_damaged++;
        s->cold(s->cold_arg, s->set, s->shard, "damaged");
        return;
    }
    s->stats.damaged++;
    wt_log(s->log, WT_LOG_WARN, "%s: the copy in tier %s is damaged and goes", s->key,
           wt_tier_name(s->tier[s->held_by]));
    s->damaged(s->damaged_arg, s->set, s->shard, s->held_by);
}

static void copy_is_whole(struct wt_scrub *s) {
    struct wt_shard_state *e = &s->set->shard[s->shard];
    s->stats.copies++;
    e->sure = (uint8_t)(e->sure | ((1u << s->held_by) & e->mask));
}

/* A move has begun meanwhile: what was read says nothing about what is there now. */
static void end_copy(struct wt_scrub *s, void (*found)(struct wt_scrub *s)) {
    if (found && s->on && !(s->set->shard[s->shard].flags & WT_SHARD_BUSY))
        found(s);
    s->set->moves--;
    s->set = NULL;
}

/* ---- reading ---- */

/* Moves come first, but not always. */
static uint64_t rate_now(const struct wt_scrub *s) {
    struct wt_mover_stats m;
    wt_mover_stats(s->mover, &m);
    bool idle = m.running + m.queued == 0;
    return idle || s->conf->min_rate > s->conf->rate ? s->conf->rate : s->conf->min_rate;
}

static void read_on(struct wt_scrub *s);
static void try_close(struct wt_scrub *s);

static void on_read(struct wt_req *req) {
    struct wt_scrub *s = req->arg;
    size_t wanted = req->len;
    s->busy = false;
    if (req->rc == WT_EMISSING) {
        end_copy(s, copy_is_missing);
    } else if (req->rc == WT_ECORRUPT || (req->rc == 0 && req->got != wanted)) {
        end_copy(s, copy_is_damaged);
    } else if (req->rc < 0) {
        end_copy(s, NULL); /* its tier's business */
    } else {
        wt_hasher_add(s->hasher, s->buf, req->got);
        s->off += req->got;
        s->stats.bytes += req->got;
        if (s->off == s->size)
            end_copy(s, wt_hash_equal(wt_hasher_end(s->hasher), s->hash) ? copy_is_whole
                                                                         : copy_is_damaged);
    }
    uint64_t rate = rate_now(s);
    look_again(s, rate ? wanted * 1000 / rate + 1 : LOOK_MS);
    try_close(s);
}

static void read_on(struct wt_scrub *s) {
    uint64_t left = s->size - s->off;
    s->req = (struct wt_req){.op = WT_OP_GET,
                             .key = s->key,
                             .off = s->off,
                             .buf = s->buf,
                             .len = left < PIECE ? (size_t)left : (size_t)PIECE,
                             .done = on_read,
                             .arg = s};
    s->busy = wt_tier_submit(s->tier[s->held_by], &s->req) == 0;
    if (s->busy)
        return;
    end_copy(s, NULL);
    look_again(s, LOOK_MS);
}

static void begin_copy(struct wt_scrub *s, struct wt_catalog_set *set, uint64_t shard,
                       uint32_t tier) {
    struct wt_shard_rec rec;
    wt_catalog_rec(set, shard, &rec);
    wt_catalog_key(set, shard, s->key);
    s->set = set;
    s->set->moves++;
    s->shard = shard;
    s->held_by = tier;
    s->size = rec.size;
    s->hash = rec.hash;
    s->off = 0;
    wt_hasher_reset(s->hasher);
    read_on(s);
}

/* ---- a pass ---- */

/* The next tier of this shard to read; n_tiers: none. */
static uint32_t tier_to_read(const struct wt_scrub *s, const struct wt_shard_state *e) {
    uint32_t t = s->next_tier;
    if (e->flags & WT_SHARD_BUSY)
        return s->catalog->n_tiers;
    while (t < s->catalog->n_tiers && (!(e->mask & (1u << t)) || wt_tier_is_down(s->tier[t])))
        t++;
    return t;
}

static void go_on(struct wt_scrub *s) {
    const struct wt_catalog *c = s->catalog;
    if (s->shape != c->shape) { /* shards have other numbers: begin anew */
        s->shape = c->shape;
        s->at = 0;
        s->next_tier = 0;
    }
    for (unsigned n = 0; n < SLICE && s->at < c->shards; n++, s->at++, s->next_tier = 0) {
        uint64_t shard;
        struct wt_catalog_set *set = wt_catalog_at(c, s->at, &shard);
        uint32_t t = tier_to_read(s, &set->shard[shard]);
        if (t == c->n_tiers)
            continue;
        s->next_tier = t + 1;
        begin_copy(s, set, shard, t);
        return;
    }
    if (s->at >= c->shards) {
        s->pass = false;
        s->stats.passes++;
    }
    look_again(s, s->pass ? 1 : LOOK_MS);
}

static void on_timer(uv_timer_t *timer) {
    struct wt_scrub *s = timer->data;
    uint64_t now = uv_now(timer->loop);
    if (s->busy)
        return;
    if (!s->pass && (s->began_ms == 0 || now - s->began_ms >= s->conf->every_ms)) {
        s->pass = true;
        s->began_ms = now;
        s->at = 0;
        s->next_tier = 0;
    }
    if (!s->pass || rate_now(s) == 0)
        look_again(s, LOOK_MS);
    else if (s->set)
        read_on(s);
    else
        go_on(s);
}

/* ---- on, off, the end ---- */

void wt_scrub_enable(struct wt_scrub *s, bool on) {
    s->on = on && !s->stopping;
    uv_timer_stop(&s->timer);
    if (s->set && !s->busy)
        end_copy(s, NULL);
    /* The first pass begins a whole `every` after the start: a restart is no reason to read all. */
    if (s->on && s->began_ms == 0)
        s->began_ms = uv_now(s->timer.loop);
    look_again(s, LOOK_MS);
}

static void on_closed(uv_handle_t *h) {
    struct wt_scrub *s = h->data;
    s->timer_open = false;
    if (s->stopped)
        s->stopped(s->stopped_arg); /* may free s */
}

static void try_close(struct wt_scrub *s) {
    if (s->stopping && !s->busy && !uv_is_closing((uv_handle_t *)&s->timer))
        uv_close((uv_handle_t *)&s->timer, on_closed);
}

void wt_scrub_stop(struct wt_scrub *s, void (*stopped)(void *arg), void *arg) {
    s->stopping = true;
    s->stopped = stopped;
    s->stopped_arg = arg;
    wt_scrub_enable(s, false);
    if (s->busy)
        wt_tier_cancel(&s->req);
    try_close(s);
}
