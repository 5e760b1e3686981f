/* Queue, retries and accounts of moves; see mover.h. The steps of one move are in move.c. */
#include "daemon/mover.h"

#include "daemon/mover_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECENT = 64, ASIDE_MAX = 1024, TEXT = 256, QUIET_MS = 60000, FRONT = 64 };

#define COPY_S 0.05 /* a copy is taken to last until one was measured */
#define SMOOTH 8

struct ended {
    char dataset[WT_DATASET_NAME];
    uint64_t shard, size, ms;
    int from, to, drop, rc;
    uint32_t attempts;
    char text[TEXT];
};

struct wt_mover {
    uv_loop_t *loop;
    uv_timer_t timer;   /* retries */
    uv_prepare_t start; /* starts moves outside of anybody's callback */
    bool starting, closing, timer_open, start_open;
    struct wt_tier *tier[WT_TIERS_MAX];
    struct wt_catalog *catalog;
    struct wt_mover_conf conf;
    const struct wt_log *log;
    bool enabled;

    struct wt_mem memory;
    struct wt_lane *lane;
    struct wt_slot *slots;
    struct wt_move *first, **last; /* queued */
    struct wt_move *waiting;       /* by due time */
    struct wt_mover_stats stats;
    double copy_s; /* that a copy from cold takes, smoothed */
    uint64_t coming[WT_TIERS_MAX], leaving[WT_TIERS_MAX];
    int64_t net[WT_TIERS_MAX];
    uint64_t gone[WT_TIERS_MAX];
    uint64_t full_until[WT_TIERS_MAX];

    struct ended recent[RECENT];
    uint64_t n_recent; /* ever */
    struct ended *aside;
    size_t n_aside;

    wt_mover_watch watch;
    void *watch_arg;
    bool (*may)(void *arg); /* change a tier */
    void *may_arg;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

struct wt_tier *wt_mover_tier(const struct wt_mover *m, int tier) {
    return m->tier[tier];
}
struct wt_catalog *wt_mover_catalog(const struct wt_mover *m) {
    return m->catalog;
}
const struct wt_log *wt_mover_log(const struct wt_mover *m) {
    return m->log;
}
uint32_t wt_mover_now_s(const struct wt_mover *m) {
    return wt_clock_now(&m->catalog->clock);
}

/* ---- new, free, stop ---- */

static void on_timer(uv_timer_t *timer);
static void on_start(uv_prepare_t *start);

static int make_lanes(struct wt_mover *m, struct wt_err *err) {
    uint32_t per_move = (uint32_t)(m->conf.bytes / WT_PART / m->conf.moves);
    uint32_t n = per_move * m->conf.moves;
    int rc = wt_mem_map(&m->memory, (size_t)n * WT_PART, err);
    if (rc < 0)
        return wt_err_wrap(err, "mover: bytes_in_flight");
    m->lane = wt_calloc(m->conf.moves, sizeof *m->lane);
    m->slots = wt_calloc(n, sizeof *m->slots);
    m->aside = wt_calloc(ASIDE_MAX, sizeof *m->aside);
    if (!m->lane || !m->slots || !m->aside)
        return wt_err_set(err, WT_ENOMEM, "mover: out of memory");
    for (uint32_t i = 0; i < m->conf.moves; i++) {
        struct wt_lane *l = &m->lane[i];
        l->slot = &m->slots[(size_t)i * per_move];
        l->n_slots = per_move;
        l->hasher = wt_hasher_new();
        if (!l->hasher)
            return wt_err_set(err, WT_ENOMEM, "mover: out of memory");
        for (uint32_t k = 0; k < per_move; k++)
            l->slot[k] = (struct wt_slot){
                .lane = l, .buf = (uint8_t *)m->memory.ptr + ((size_t)i * per_move + k) * WT_PART};
    }
    return 0;
}

int wt_mover_new(uv_loop_t *loop, struct wt_tier *const *tiers, struct wt_catalog *catalog,
                 const struct wt_mover_conf *conf, const struct wt_log *log, struct wt_mover **out,
                 struct wt_err *err) {
    if (conf->moves == 0 || conf->bytes / WT_PART < conf->moves)
        return wt_err_set(err, WT_EINVAL,
                          "mover: bytes in flight must allow %d bytes for each move", WT_PART);
    struct wt_mover *m = wt_calloc(1, sizeof *m);
    if (!m)
        return wt_err_set(err, WT_ENOMEM, "mover: out of memory");
    m->loop = loop;
    m->catalog = catalog;
    m->conf = *conf;
    m->log = log;
    m->last = &m->first;
    m->copy_s = COPY_S;
    memcpy(m->tier, tiers, catalog->n_tiers * sizeof *tiers);
    int rc = make_lanes(m, err);
    if (rc < 0) {
        wt_mover_free(m);
        return rc;
    }
    uv_timer_init(loop, &m->timer);
    uv_prepare_init(loop, &m->start);
    m->timer.data = m->start.data = m;
    m->timer_open = m->start_open = true;
    *out = m;
    return 0;
}

static struct wt_move_info info_of(const struct wt_mover *m, const struct wt_move *v) {
    return (struct wt_move_info){.dataset = v->set->d.m.name,
                                 .shard = v->shard,
                                 .size = v->size,
                                 .from = v->from,
                                 .to = v->to,
                                 .drop = v->drop,
                                 .step = wt_step_name(v->step),
                                 .done = v->lane ? v->lane->written : 0,
                                 .attempts = v->attempts,
                                 .ms = uv_now(m->loop) - v->queued_ms,
                                 .rc = v->err.code,
                                 .text = v->err.text};
}

void wt_mover_on_change(struct wt_mover *m, wt_mover_watch watch, void *arg) {
    m->watch = watch;
    m->watch_arg = arg;
}

static void tell(struct wt_mover *m, struct wt_catalog_set *set, enum wt_move_change change,
                 const struct wt_move_info *info) {
    if (m->watch)
        m->watch(m->watch_arg, change, set, info);
}

void wt_mover_guard(struct wt_mover *m, bool (*may)(void *arg), void *arg) {
    m->may = may;
    m->may_arg = arg;
}

bool wt_mover_may(const struct wt_mover *m) {
    return !m->may || m->may(m->may_arg);
}

void wt_mover_tune(struct wt_mover *m, const struct wt_mover_conf *conf) {
    m->conf.queue = conf->queue;
    m->conf.retries = conf->retries;
    m->conf.backoff_ms = conf->backoff_ms;
    m->conf.backoff_max_ms = conf->backoff_max_ms;
}

void wt_mover_free(struct wt_mover *m) {
    if (!m)
        return;
    for (uint32_t i = 0; m->lane && i < m->conf.moves; i++)
        wt_hasher_free(m->lane[i].hasher);
    free(m->lane);
    free(m->slots);
    free(m->aside);
    wt_mem_unmap(&m->memory);
    free(m);
}

static void try_stopped(struct wt_mover *m) {
    if (m->closing && !m->timer_open && !m->start_open && m->stopped) {
        void (*stopped)(void *arg) = m->stopped;
        m->stopped = NULL;
        stopped(m->stopped_arg); /* may free m */
    }
}

static void on_timer_closed(uv_handle_t *h) {
    struct wt_mover *m = h->data;
    m->timer_open = false;
    try_stopped(m);
}
static void on_start_closed(uv_handle_t *h) {
    struct wt_mover *m = h->data;
    m->start_open = false;
    try_stopped(m);
}

static void try_close(struct wt_mover *m) {
    if (!m->closing || m->stats.running)
        return;
    if (m->timer_open && !uv_is_closing((uv_handle_t *)&m->timer))
        uv_close((uv_handle_t *)&m->timer, on_timer_closed);
    if (m->start_open && !uv_is_closing((uv_handle_t *)&m->start))
        uv_close((uv_handle_t *)&m->start, on_start_closed);
}

void wt_mover_stop(struct wt_mover *m, void (*stopped)(void *arg), void *arg) {
    m->stopped = stopped;
    m->stopped_arg = arg;
    m->closing = true;
    wt_mover_enable(m, false);
    try_close(m);
}

/* ---- accounts ---- */

/* Until the move ends its bytes count as coming, also when they are there already: the sum errs to
 * the safe side. */
static void account(struct wt_mover *m, struct wt_move *v) {
    v->comes = v->to >= 0 && !(v->set->shard[v->shard].mask & (1u << v->to));
    if (v->comes) {
        m->coming[v->to] += v->size;
        v->set->coming[v->to] += v->size;
    }
    if (v->drop >= 0) {
        m->leaving[v->drop] += v->size;
        v->set->leaving[v->drop] += v->size;
    }
    v->set->moves++;
    v->set->shard[v->shard].flags |= WT_SHARD_BUSY;
}

static void release(struct wt_mover *m, struct wt_move *v) {
    if (v->comes) {
        m->coming[v->to] -= v->size;
        v->set->coming[v->to] -= v->size;
    }
    if (v->drop >= 0) {
        m->leaving[v->drop] -= v->size;
        v->set->leaving[v->drop] -= v->size;
    }
    v->set->moves--;
    v->set->shard[v->shard].flags &= (uint8_t)~WT_SHARD_BUSY;
    free(v);
}

uint64_t wt_mover_coming(const struct wt_mover *m, uint32_t tier) {
    return m->coming[tier];
}
uint64_t wt_mover_leaving(const struct wt_mover *m, uint32_t tier) {
    return m->leaving[tier];
}
int64_t wt_mover_net(const struct wt_mover *m, uint32_t tier) {
    return m->net[tier];
}
uint64_t wt_mover_gone(const struct wt_mover *m, uint32_t tier) {
    return m->gone[tier];
}
void wt_mover_count(struct wt_mover *m, int tier, int64_t bytes) {
    m->net[tier] += bytes;
    m->gone[tier] += bytes < 0 ? (uint64_t)-bytes : 0;
}
bool wt_mover_full(const struct wt_mover *m, uint32_t tier) {
    return uv_now(m->loop) < m->full_until[tier];
}
bool wt_mover_idle(const struct wt_mover *m) {
    return m->stats.running == 0;
}
void wt_mover_stats(const struct wt_mover *m, struct wt_mover_stats *out) {
    *out = m->stats;
}

/* ---- how moves end ---- */

static struct ended ended_of(const struct wt_mover *m, const struct wt_move *v,
                             const struct wt_err *err) {
    struct ended e = {.shard = v->shard,
                      .size = v->size,
                      .ms = uv_now(m->loop) - v->queued_ms,
                      .from = v->from,
                      .to = v->to,
                      .drop = v->drop,
                      .rc = err->code,
                      .attempts = v->attempts};
    snprintf(e.dataset, sizeof e.dataset, "%s", v->set->d.m.name);
    snprintf(e.text, sizeof e.text, "%.*s", TEXT - 1, err->code ? err->text : "");
    return e;
}

static void set_aside(struct wt_mover *m, struct wt_move *v, const struct wt_err *err) {
    v->set->shard[v->shard].flags |= WT_SHARD_ASIDE;
    if (m->n_aside < ASIDE_MAX)
        m->aside[m->n_aside++] = ended_of(m, v, err);
    wt_log(m->log, WT_LOG_WARN,
           "shard %" PRIu64 " of %s is set aside until a reload, after %u attempts: %s", v->shard,
           v->set->d.m.name, v->attempts, err->text);
}

static void wait_for_retry(struct wt_mover *m, struct wt_move *v, uint64_t pause) {
    v->due_ms = uv_now(m->loop) + pause;
    v->step = WT_STEP_WAITING;
    struct wt_move **at = &m->waiting;
    while (*at && (*at)->due_ms <= v->due_ms)
        at = &(*at)->next;
    v->next = *at;
    *at = v;
    m->stats.waiting++;
    m->stats.retried++;
    uv_timer_start(&m->timer, on_timer, m->waiting->due_ms - uv_now(m->loop), 0);
}

enum verdict { DONE, CANCELED, REFUSED, RETRY_NOW, RETRY_LATER, GIVE_UP, ASIDE };

static enum verdict judge(const struct wt_mover *m, const struct wt_lane *l) {
    const struct wt_move *v = l->move;
    if (l->err.code == 0)
        return DONE;
    if (l->cancel || !m->enabled)
        return CANCELED;
    if (l->err.code == WT_EFULL)
        return REFUSED;
    if (l->broken == 0 || l->err.code == WT_EINVAL || l->err.code == WT_EUNSUPPORTED ||
        l->err.code == WT_ERANGE)
        return ASIDE;
    if (v->attempts > m->conf.retries) {
        bool down = wt_tier_is_down(m->tier[0]) ||
                    (v->to >= 0 && wt_tier_is_down(m->tier[v->to])) ||
                    (v->drop >= 0 && wt_tier_is_down(m->tier[v->drop]));
        return down ? GIVE_UP : ASIDE; /* it is not the shard's fault */
    }
    return l->broken > 0 || l->err.code == WT_EEXISTS ? RETRY_NOW : RETRY_LATER;
}

static uint64_t pause_after(const struct wt_mover *m, uint32_t attempts) {
    uint64_t pause = m->conf.backoff_ms;
    for (uint32_t i = 1; i < attempts && pause < m->conf.backoff_max_ms; i++)
        pause *= 2;
    return pause < m->conf.backoff_max_ms ? pause : m->conf.backoff_max_ms;
}

static void finish(struct wt_mover *m, struct wt_move *v, const struct wt_err *err,
                   enum verdict verdict) {
    m->recent[m->n_recent++ % RECENT] = ended_of(m, v, err);
    if (verdict == DONE) {
        m->stats.done++;
        m->stats.bytes += v->from >= 0 ? v->size : 0;
        m->stats.from_cold += v->from == 0 ? v->size : 0;
    } else if (verdict == CANCELED) {
        m->stats.canceled++;
    } else if (verdict == REFUSED) {
        m->stats.refused++;
        uint64_t *full_until = &m->full_until[v->to >= 0 ? v->to : 0];
        /* A tier that stays full is told once, not for each shard that waits. */
        bool news = *full_until == 0 || uv_now(m->loop) > *full_until + QUIET_MS;
        *full_until = uv_now(m->loop) + m->conf.backoff_ms;
        wt_log(m->log, news ? WT_LOG_INFO : WT_LOG_DEBUG,
               "shard %" PRIu64 " of %s waits for room: %s", v->shard, v->set->d.m.name, err->text);
    } else {
        m->stats.failed++;
        if (verdict == GIVE_UP)
            wt_log(m->log, WT_LOG_WARN, "move of shard %" PRIu64 " of %s given up: %s", v->shard,
                   v->set->d.m.name, err->text);
    }
    if (verdict == ASIDE)
        set_aside(m, v, err);
    if (verdict != DONE && v->unknown) {
        wt_mover_count(m, v->to, (int64_t)v->size);
        wt_catalog_hold(m->catalog, v->set, v->shard, (uint32_t)v->to,
                        wt_clock_now(&m->catalog->clock), false);
    }
    struct wt_catalog_set *set = v->set;
    struct wt_move_info info = info_of(m, v);
    info.rc = err->code;
    info.text = err->text;
    release(m, v);
    tell(m, set,
         verdict == DONE    ? WT_MOVE_DONE
         : verdict == ASIDE ? WT_MOVE_ASIDE
                            : WT_MOVE_FAILED,
         &info);
}

static void wake(struct wt_mover *m) {
    if (m->starting || !m->enabled || m->closing)
        return;
    m->starting = true;
    uv_prepare_start(&m->start, on_start);
}

void wt_move_ended(struct wt_lane *lane) {
    struct wt_move *v = lane->move;
    struct wt_mover *m = v->mover;
    enum verdict verdict = judge(m, lane);
    struct wt_err err = lane->err;
    lane->move = NULL;
    v->lane = NULL;
    m->stats.running--;
    if (verdict == DONE && v->from == 0)
        m->copy_s += ((double)(uv_now(m->loop) - v->begun_ms) / 1000 - m->copy_s) / SMOOTH;
    if (verdict == RETRY_NOW || verdict == RETRY_LATER) {
        v->err = err;
        wait_for_retry(m, v, verdict == RETRY_NOW ? 0 : pause_after(m, v->attempts));
    } else {
        finish(m, v, &err, verdict);
    }
    wake(m);
    try_close(m);
}

/* ---- queue ---- */

/* Removals make room for copies; among copies the earliest deadline is first, and those without
 * one keep their order at the end. */
static uint64_t urgency(const struct wt_move *v) {
    return v->to < 0 ? 0 : v->deadline_ms;
}

static void enqueue(struct wt_mover *m, struct wt_move *v) {
    struct wt_move **at = m->last; /* most often the end is right */
    if (urgency(v) != UINT64_MAX)
        for (at = &m->first; *at && urgency(*at) <= urgency(v);)
            at = &(*at)->next;
    v->step = WT_STEP_QUEUED;
    v->next = *at;
    *at = v;
    if (!v->next)
        m->last = &v->next;
    m->stats.queued++;
    wake(m);
}

static struct wt_move *dequeue(struct wt_mover *m) {
    struct wt_move *v = m->first;
    m->first = v->next;
    if (!m->first)
        m->last = &m->first;
    m->stats.queued--;
    return v;
}

static void on_timer(uv_timer_t *timer) {
    struct wt_mover *m = timer->data;
    while (m->waiting && m->waiting->due_ms <= uv_now(m->loop)) {
        struct wt_move *v = m->waiting;
        m->waiting = v->next;
        m->stats.waiting--;
        enqueue(m, v);
    }
    if (m->waiting)
        uv_timer_start(&m->timer, on_timer, m->waiting->due_ms - uv_now(m->loop), 0);
}

static struct wt_lane *free_lane(struct wt_mover *m) {
    for (uint32_t i = 0; i < m->conf.moves; i++)
        if (!m->lane[i].move)
            return &m->lane[i];
    return NULL;
}

/* The use that it was staged for has come: to copy it now would be a second read of cold. */
static bool is_late(const struct wt_mover *m, const struct wt_move *v) {
    return v->to >= 0 && v->deadline_ms < uv_now(m->loop);
}

static void forget_late(struct wt_mover *m, struct wt_move *v) {
    struct wt_err err = {.code = WT_ECANCELED, .text = "its shard is being read already"};
    m->stats.late++;
    finish(m, v, &err, CANCELED);
}

static void on_start(uv_prepare_t *start) {
    struct wt_mover *m = start->data;
    uv_prepare_stop(start);
    m->starting = false;
    struct wt_lane *l;
    while (m->enabled && m->first && (l = free_lane(m))) {
        struct wt_move *v = dequeue(m);
        if (is_late(m, v)) {
            forget_late(m, v);
            continue;
        }
        v->attempts++;
        v->begun_ms = uv_now(m->loop);
        v->lane = l;
        l->move = v;
        m->stats.running++;
        if (v->attempts == 1) {
            struct wt_move_info info = info_of(m, v);
            tell(m, v->set, WT_MOVE_STARTED, &info);
        }
        wt_move_start(l); /* may have ended already */
    }
}

int wt_mover_add(struct wt_mover *m, struct wt_catalog_set *set, uint64_t shard, int to, int drop) {
    return wt_mover_add_due(m, set, shard, to, drop, UINT64_MAX);
}

void wt_mover_pace(const struct wt_mover *m, double *copy_s, uint32_t *moves, uint32_t *queued) {
    *copy_s = m->copy_s;
    *moves = m->conf.moves;
    *queued = 0;
    for (const struct wt_move *v = m->first; v; v = v->next)
        *queued += v->to >= 0;
}

static int new_move(struct wt_mover *m, struct wt_catalog_set *set, uint64_t shard,
                    struct wt_move **out) {
    if (!m->enabled || set->shard[shard].flags & (WT_SHARD_BUSY | WT_SHARD_ASIDE) ||
        m->stats.queued + m->stats.waiting >= m->conf.queue)
        return WT_EBUSY;
    struct wt_move *v = wt_calloc(1, sizeof *v);
    if (!v)
        return WT_ENOMEM;
    *v = (struct wt_move){.mover = m,
                          .set = set,
                          .shard = shard,
                          .size = wt_catalog_size(set, shard),
                          .from = -1,
                          .to = -1,
                          .drop = -1,
                          .bad = -1,
                          .queued_ms = uv_now(m->loop),
                          .deadline_ms = UINT64_MAX};
    *out = v;
    return 0;
}

int wt_mover_add_due(struct wt_mover *m, struct wt_catalog_set *set, uint64_t shard, int to,
                     int drop, uint64_t due_ms) {
    struct wt_move *v;
    int rc = new_move(m, set, shard, &v);
    if (rc < 0)
        return rc;
    v->to = to;
    v->drop = drop;
    v->deadline_ms = due_ms;
    account(m, v);
    enqueue(m, v);
    return 0;
}

int wt_mover_repair(struct wt_mover *m, struct wt_catalog_set *set, uint64_t shard, uint32_t tier,
                    bool anew) {
    struct wt_move *v;
    int rc = new_move(m, set, shard, &v);
    if (rc < 0)
        return rc;
    wt_catalog_lose(m->catalog, set, shard, tier);
    v->bad = (int)tier;
    v->to = anew ? (int)tier : -1;
    account(m, v);
    enqueue(m, v);
    return 0;
}

static void forget_list(struct wt_mover *m, struct wt_move *list) {
    struct wt_err err = {.code = WT_ECANCELED, .text = "canceled"};
    while (list) {
        struct wt_move *next = list->next;
        finish(m, list, &err, CANCELED);
        list = next;
    }
}

void wt_mover_enable(struct wt_mover *m, bool on) {
    m->enabled = on && !m->closing;
    if (m->enabled)
        return;
    struct wt_move *queued = m->first, *waiting = m->waiting;
    m->first = m->waiting = NULL;
    m->last = &m->first;
    m->stats.queued = m->stats.waiting = 0;
    forget_list(m, queued);
    forget_list(m, waiting);
    for (uint32_t i = 0; i < m->conf.moves; i++)
        if (m->lane[i].move)
            wt_move_cancel(&m->lane[i]);
}

void wt_mover_forgive(struct wt_mover *m) {
    m->n_aside = 0;
    for (size_t i = 0; i < m->catalog->n_sets; i++)
        for (uint64_t k = 0; k < m->catalog->set[i]->d.m.shards; k++)
            m->catalog->set[i]->shard[k].flags &= (uint8_t)~WT_SHARD_ASIDE;
}

/* ---- what is going on ---- */

static void each_ended(const struct ended *e,
                       void (*each)(void *arg, const struct wt_move_info *info), void *arg) {
    struct wt_move_info info = {.dataset = e->dataset,
                                .shard = e->shard,
                                .size = e->size,
                                .from = e->from,
                                .to = e->to,
                                .drop = e->drop,
                                .step = wt_step_name(WT_STEP_ENDED),
                                .attempts = e->attempts,
                                .ms = e->ms,
                                .rc = e->rc,
                                .text = e->text};
    each(arg, &info);
}

void wt_mover_list(const struct wt_mover *m, enum wt_move_list list,
                   void (*each)(void *arg, const struct wt_move_info *info), void *arg) {
    if (list == WT_MOVES_RUNNING)
        for (uint32_t i = 0; i < m->conf.moves; i++)
            if (m->lane[i].move) {
                struct wt_move_info info = info_of(m, m->lane[i].move);
                each(arg, &info);
            }
    if (list == WT_MOVES_WAITING)
        for (const struct wt_move *v = m->waiting; v; v = v->next) {
            struct wt_move_info info = info_of(m, v);
            each(arg, &info);
        }
    if (list == WT_MOVES_RECENT)
        for (uint64_t i = 0; i < m->n_recent && i < RECENT; i++)
            each_ended(&m->recent[(m->n_recent - 1 - i) % RECENT], each, arg);
    if (list == WT_MOVES_ASIDE)
        for (size_t i = 0; i < m->n_aside; i++)
            each_ended(&m->aside[i], each, arg);
}

static const struct wt_move *find_running(const struct wt_mover *m,
                                          const struct wt_catalog_set *set, uint64_t shard) {
    for (uint32_t i = 0; i < m->conf.moves; i++) {
        const struct wt_move *v = m->lane[i].move;
        if (v && v->set == set && v->shard == shard)
            return v;
    }
    return NULL;
}

int wt_mover_target(const struct wt_mover *m, const struct wt_catalog_set *set, uint64_t shard) {
    bool busy = set->shard[shard].flags & WT_SHARD_BUSY;
    const struct wt_move *v = busy ? find_running(m, set, shard) : NULL;
    return v ? v->to : -1;
}

/* As fast as until now; before anything was written, as copies usually are. One that takes longer
 * than these may take as long again: it may stand still. */
static uint64_t left_of(const struct wt_mover *m, const struct wt_move *v) {
    uint64_t gone = uv_now(m->loop) - v->begun_ms, usual = (uint64_t)(m->copy_s * 1000) + 1;
    uint64_t written = v->lane->written;
    if (written && written < v->size)
        return (uint64_t)((double)gone * (double)(v->size - written) / (double)written) + 1;
    return gone < usual ? usual - gone : gone;
}

int wt_mover_expect(const struct wt_mover *m, const struct wt_catalog_set *set, uint64_t shard,
                    uint64_t *left_ms) {
    if (!(set->shard[shard].flags & WT_SHARD_BUSY))
        return -1;
    const struct wt_move *v = find_running(m, set, shard);
    if (v) {
        *left_ms = left_of(m, v);
        return v->to;
    }
    uint32_t ahead = m->stats.running, looked = 0;
    for (v = m->first; v && looked < FRONT && !(v->set == set && v->shard == shard); v = v->next) {
        ahead += v->to >= 0;
        looked++;
    }
    if (!v || looked == FRONT || v->to < 0)
        return -1;
    uint64_t begins = (uint64_t)(m->copy_s * 1000 * (ahead / m->conf.moves));
    *left_ms = begins + (uint64_t)(m->copy_s * 1000) + 1;
    return v->deadline_ms >= uv_now(m->loop) + begins ? v->to : -1;
}

const char *wt_mover_why_aside(const struct wt_mover *m, const struct wt_catalog_set *set,
                               uint64_t shard, int *code) {
    for (size_t i = m->n_aside; i-- > 0;)
        if (m->aside[i].shard == shard && strcmp(m->aside[i].dataset, set->d.m.name) == 0) {
            *code = m->aside[i].rc;
            return m->aside[i].text;
        }
    return NULL;
}
