/* Queue, retries and ends of moves; see mover.h. The steps of one move are in move.c, the begin and
 * the end of the mover in mover_life.c, what it tells in mover_list.c. */
#include "daemon/mover.h"

#include "daemon/mover_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { QUIET_MS = 60000 };

#define SMOOTH 8

static void on_timer(uv_timer_t *timer);
static void on_start(uv_prepare_t *start);

static void tell(struct wt_mover *m, struct wt_catalog_set *set, enum wt_move_change change,
                 const struct wt_move_info *info) {
    if (m->watch)
        m->watch(m->watch_arg, change, set, info);
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

void wt_mover_drop_too(struct wt_move *v, int tier) {
    v->drop = tier;
    v->mover->leaving[tier] += v->size;
    v->set->leaving[tier] += v->size;
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
    wt_catalog_hand_on(m->catalog, v->set, v->shard);
    free(v);
}

/* ---- how moves end ---- */

static void set_aside(struct wt_mover *m, struct wt_move *v, const struct wt_err *err) {
    v->set->shard[v->shard].flags |= WT_SHARD_ASIDE;
    if (m->n_aside < WT_MOVER_ASIDE)
        m->aside[m->n_aside++] = wt_mover_ended_of(m, v, err);
    wt_log(m->log, WT_LOG_WARN,
           "shard %" PRIu64 " of %s is set aside until a reload, after %u attempts: %s", v->shard,
           v->set->d.m.name, v->attempts, err->text);
}

/* Its trouble is over: the cold copy is whole again. */
static void pardon(struct wt_mover *m, const struct wt_move *v) {
    size_t kept = 0;
    v->set->shard[v->shard].flags &= (uint8_t)~WT_SHARD_ASIDE;
    for (size_t i = 0; i < m->n_aside; i++)
        if (m->aside[i].shard != v->shard || strcmp(m->aside[i].dataset, v->set->d.m.name) != 0)
            m->aside[kept++] = m->aside[i];
    m->n_aside = kept;
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
    if (v->check >= 0)
        return GIVE_UP; /* the copy is as it was */
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
    m->recent[m->n_recent++ % WT_MOVER_RECENT] = wt_mover_ended_of(m, v, err);
    if (verdict == DONE) {
        m->stats.done++;
        m->stats.bytes += v->to >= 0 && v->from >= 0 ? v->size : 0;
        m->stats.checked += v->check >= 0;
        m->stats.flushed += v->to == 0 && !v->mends;
        m->stats.mended += v->mends;
        if (v->mends)
            pardon(m, v);
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
    else if (verdict != DONE && v->mends) /* its other copies may be the last ones */
        v->set->shard[v->shard].flags |= WT_SHARD_ASIDE;
    if (verdict != DONE && v->unknown) {
        wt_mover_count(m, v->to, (int64_t)v->size);
        wt_catalog_hold(m->catalog, v->set, v->shard, (uint32_t)v->to,
                        wt_clock_now(&m->catalog->clock), false);
    }
    struct wt_catalog_set *set = v->set;
    struct wt_move_info info = wt_mover_info_of(m, v);
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
    wt_mover_try_close(m);
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
            struct wt_move_info info = wt_mover_info_of(m, v);
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
                    uint8_t hindrance, struct wt_move **out) {
    if (!m->enabled || set->shard[shard].flags & hindrance ||
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
                          .check = -1,
                          .queued_ms = uv_now(m->loop),
                          .deadline_ms = UINT64_MAX};
    *out = v;
    return 0;
}

int wt_mover_add_due(struct wt_mover *m, struct wt_catalog_set *set, uint64_t shard, int to,
                     int drop, uint64_t due_ms) {
    struct wt_move *v;
    if (drop >= 0 && wt_catalog_landed(set, shard, (uint32_t)drop))
        return WT_EBUSY;
    int rc = new_move(m, set, shard, WT_SHARD_BUSY | WT_SHARD_ASIDE, &v);
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
    if (wt_catalog_truth(set, shard) == tier)
        return WT_EINVAL;
    int rc = new_move(m, set, shard, WT_SHARD_BUSY | WT_SHARD_ASIDE, &v);
    if (rc < 0)
        return rc;
    wt_catalog_lose(m->catalog, set, shard, tier);
    v->bad = (int)tier;
    v->to = anew ? (int)tier : -1;
    account(m, v);
    enqueue(m, v);
    return 0;
}

static int queue_up(struct wt_mover *m, struct wt_move *v) {
    account(m, v);
    enqueue(m, v);
    return 0;
}

int wt_mover_to_cold(struct wt_mover *m, struct wt_catalog_set *set, uint64_t shard) {
    struct wt_move *v;
    int rc = new_move(m, set, shard, WT_SHARD_BUSY | WT_SHARD_ASIDE, &v);
    if (rc < 0)
        return rc;
    v->to = 0;
    return queue_up(m, v);
}

int wt_mover_mend(struct wt_mover *m, struct wt_catalog_set *set, uint64_t shard) {
    struct wt_move *v;
    if (!(set->shard[shard].mask & (uint8_t)~1u))
        return WT_EMISSING;
    int rc = new_move(m, set, shard, WT_SHARD_BUSY, &v);
    if (rc < 0)
        return rc;
    v->to = 0;
    v->anew = v->mends = true;
    return queue_up(m, v);
}

int wt_mover_check(struct wt_mover *m, struct wt_catalog_set *set, uint64_t shard, uint32_t tier) {
    struct wt_move *v;
    int rc = new_move(m, set, shard, WT_SHARD_BUSY | WT_SHARD_ASIDE, &v);
    if (rc < 0)
        return rc;
    v->check = (int)tier;
    return queue_up(m, v);
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
