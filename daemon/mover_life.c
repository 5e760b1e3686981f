/* How the mover comes and goes; see mover.h. */
#include "daemon/mover_internal.h"

#include <stdlib.h>
#include <string.h>

#define COPY_S 0.05 /* a copy is taken to last until one was measured */

static int make_lanes(struct wt_mover *m, struct wt_err *err) {
    uint32_t per_move = (uint32_t)(m->conf.bytes / WT_PART / m->conf.moves);
    uint32_t n = per_move * m->conf.moves;
    int rc = wt_mem_map(&m->memory, (size_t)n * WT_PART, err);
    if (rc < 0)
        return wt_err_wrap(err, "mover: bytes_in_flight");
    m->lane = wt_calloc(m->conf.moves, sizeof *m->lane);
    m->slots = wt_calloc(n, sizeof *m->slots);
    m->aside = wt_calloc(WT_MOVER_ASIDE, sizeof *m->aside);
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

void wt_mover_on_change(struct wt_mover *m, wt_mover_watch watch, void *arg) {
    m->watch = watch;
    m->watch_arg = arg;
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

void wt_mover_try_close(struct wt_mover *m) {
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
    wt_mover_try_close(m);
}
