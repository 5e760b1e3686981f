/* What the mover counts and tells of its moves; see mover.h. */
#include "daemon/mover_internal.h"

#include <stdio.h>
#include <string.h>

enum { FRONT = 64 }; /* of the queue, looked at for a copy that will begin soon */

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

uint64_t wt_mover_coming(const struct wt_mover *m, uint32_t tier) {
    return m->coming[tier];
}
uint64_t wt_mover_leaving(const struct wt_mover *m, uint32_t tier) {
    return m->leaving[tier];
}
int64_t wt_mover_net(const struct wt_mover *m, uint32_t tier) {
    return m->net[tier];
}
void wt_mover_moved(const struct wt_mover *m, uint32_t tier, struct wt_moved *out) {
    *out = (struct wt_moved){.net = m->net[tier], .gone = m->gone[tier]};
    for (uint32_t i = 0; i < m->conf.moves; i++) {
        const struct wt_lane *l = &m->lane[i];
        if (!l->move || !l->ctl_busy)
            continue;
        if (l->move->step == WT_STEP_COMMITTING && l->move->to == (int)tier)
            out->committing += l->move->size;
        if (l->move->step == WT_STEP_DROPPING && l->move->drop == (int)tier)
            out->removing += l->move->size;
    }
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

/* ---- moves as they are told ---- */

struct wt_move_info wt_mover_info_of(const struct wt_mover *m, const struct wt_move *v) {
    return (struct wt_move_info){.dataset = v->set->d.m.name,
                                 .shard = v->shard,
                                 .size = v->size,
                                 .from = v->from,
                                 .to = v->to,
                                 .drop = v->drop,
                                 .mends = v->mends,
                                 .step = wt_step_name(v->step),
                                 .done = v->lane ? v->lane->written : 0,
                                 .attempts = v->attempts,
                                 .ms = uv_now(m->loop) - v->queued_ms,
                                 .rc = v->err.code,
                                 .text = v->err.text};
}

struct wt_mover_ended wt_mover_ended_of(const struct wt_mover *m, const struct wt_move *v,
                                        const struct wt_err *err) {
    struct wt_mover_ended e = {.shard = v->shard,
                               .size = v->size,
                               .ms = uv_now(m->loop) - v->queued_ms,
                               .from = v->from,
                               .to = v->to,
                               .drop = v->drop,
                               .rc = err->code,
                               .attempts = v->attempts};
    snprintf(e.dataset, sizeof e.dataset, "%s", v->set->d.m.name);
    snprintf(e.text, sizeof e.text, "%.*s", WT_MOVER_TEXT - 1, err->code ? err->text : "");
    return e;
}

static void each_ended(const struct wt_mover_ended *e,
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
                struct wt_move_info info = wt_mover_info_of(m, m->lane[i].move);
                each(arg, &info);
            }
    if (list == WT_MOVES_WAITING)
        for (const struct wt_move *v = m->waiting; v; v = v->next) {
            struct wt_move_info info = wt_mover_info_of(m, v);
            each(arg, &info);
        }
    if (list == WT_MOVES_RECENT)
        for (uint64_t i = 0; i < m->n_recent && i < WT_MOVER_RECENT; i++)
            each_ended(&m->recent[(m->n_recent - 1 - i) % WT_MOVER_RECENT], each, arg);
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
