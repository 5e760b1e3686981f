/*
 * The consumer's side: wl_next and its kin, state, information.
 *
 * Happy path: wl_next takes the batch that is next in order, waiting on the ring's condition until
 * it is READY. Failure modes: an error that a batch carries, or wl_abort, is sticky; all slots held
 * by the caller is told at once and is not.
 */
#include "libloader/open.h"
#include "libloader/ranges.h"
#include "libloader/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LOOK_NS UINT64_C(10000000)
#define FADE_NS UINT64_C(5000000000)

const wl_error *wl_last_error(const wl_loader *l) {
    return l ? &l->last : wt_error_thread();
}

static int stick(struct wl_loader *l, const wl_error *e) {
    l->last = *e;
    l->failed = e->code;
    return e->code;
}

/* ---- waiting for the next batch ---- */

/* What the consumer waits for, for the stall report. Mutex held. */
static enum wt_blame_id find_blame(const struct wl_loader *l, const struct wl_batch *b, int *tier) {
    *tier = -1;
    if (b)
        return WT_BLAME_STAGE;
    enum wt_blame_id blame =
        wt_ring_count(l->ring, WT_SLOT_FREE) ? WT_BLAME_STAGE : WT_BLAME_CONSUMER;
    for (size_t i = 0; i < l->n_tracks; i++) {
        for (unsigned j = 0; j < l->track[i].n_units; j++) {
            const struct wt_unit *u = &l->track[i].unit[j];
            if (u->state != WT_UNIT_LOADING || u->e.epoch != l->consume.epoch ||
                l->consume.step < u->first_step || l->consume.step > u->last_step)
                continue;
            for (size_t c = 0; c < u->n_chunks; c++) {
                bool decoding = false;
                if (u->chunk[c].state != WT_CHUNK_MOVING)
                    continue;
                *tier = wt_fetch_tier(l, &u->chunk[c], &decoding);
                return decoding ? WT_BLAME_DECODE : WT_BLAME_FETCH;
            }
            blame = WT_BLAME_FETCH;
        }
    }
    return blame;
}

/* Waits once, and books the time on what was waited for. What that is changes while nothing wakes
 * us (a fetch is begun, it goes to the next tier), so one look holds for a short time only. What
 * stalls count for fades, so that the report is about now. */
static void stall(struct wl_loader *l, const struct wl_batch *b, uint64_t deadline) {
    int tier;
    enum wt_blame_id blame = find_blame(l, b, &tier), worst = blame;
    uint64_t began = wt_now_ns();
    wt_ring_wait(l->ring, deadline < began + LOOK_NS ? deadline : began + LOOK_NS);
    uint64_t took = wt_now_ns() - began;
    wt_count(&l->meter.stalled_ns[blame], took);
    if (blame == WT_BLAME_FETCH && tier >= 0)
        wt_count(&l->meter.tier[tier].stalled_ns, took);
    for (int i = 0; i < WT_BLAMES; i++)
        l->stalled[i] *= took < FADE_NS ? 1 - (double)took / FADE_NS : 0;
    l->stalled[blame] += (double)took;
    for (int i = 0; i < WT_BLAMES; i++)
        if (l->stalled[i] > l->stalled[worst])
            worst = (enum wt_blame_id)i;
    atomic_store_explicit(&l->meter.blame, (int)worst, memory_order_relaxed);
    if (tier >= 0 || worst != WT_BLAME_FETCH)
        atomic_store_explicit(&l->meter.blame_tier, worst == WT_BLAME_FETCH ? tier : -1,
                              memory_order_relaxed);
}

static int too_many_bad(struct wl_loader *l, const struct wl_batch *b) {
    if (b->epoch != l->bad_epoch) {
        l->bad_epoch = b->epoch;
        l->bad_count = 0;
    }
    l->bad_count += b->n_bad;
    wt_count(&l->meter.bad, b->n_bad);
    uint64_t most = l->o.bad_max ? l->o.bad_max : (l->plan.o.samples + 99) / 100;
    if (l->bad_count <= most)
        return WL_OK;
    wl_error e;
    wt_error_set(&e, WL_ERROR_CORRUPT,
                 "%" PRIu64 " bad samples in epoch %" PRIu64 ", more than the %" PRIu64
                 " that bad_max allows: run 'wafertier verify %s'",
                 l->bad_count, b->epoch, most, l->dataset);
    return stick(l, &e);
}

/* The batch is READY. */
static int deliver(struct wl_loader *l, struct wl_batch *b, wl_batch **out) {
    int rc = b->err.code ? stick(l, &b->err) : too_many_bad(l, b);
    if (rc)
        return rc;
    wt_count(&l->meter.stage[WT_AT_DELIVER].wait_ns, wt_now_ns() - b->ready_ns);
    uint64_t bytes = 0;
    for (size_t i = 0; i < b->n_tensors; i++)
        bytes += b->row_bytes[i] * b->rows;
    wt_count(&l->meter.batches, 1);
    wt_count(&l->meter.samples, b->valid);
    wt_count(&l->meter.bytes, bytes);
    l->by_seq[b->seq % l->ring->n_slots] = NULL;
    l->consume.step++;
    l->consume.seq++;
    wt_ring_deliver(b);
    *out = b;
    return WL_OK;
}

static int aborted(struct wl_loader *l) {
    wl_error e;
    wt_error_set(&e, WL_ERROR_ABORTED, "wl_abort was called");
    return stick(l, &e);
}

/* What can be said without a batch: an end or an error; WL_NOT_READY: look for the batch. */
static int before_batch(struct wl_loader *l) {
    if (l->failed)
        return l->failed;
    if (atomic_load(&l->aborted))
        return aborted(l);
    if (l->o.epochs && l->consume.epoch >= l->o.epochs)
        return WL_END;
    if (l->consume.step >= wt_loader_steps(l, l->consume.epoch)) {
        l->consume.epoch++;
        l->consume.step = 0;
        wt_reporter_poke(l->reporter);
        return WL_END_OF_EPOCH;
    }
    return WL_NOT_READY;
}

static struct wl_batch *wanted(const struct wl_loader *l) {
    struct wl_batch *b = l->by_seq[l->consume.seq % l->ring->n_slots];
    return b && b->seq == l->consume.seq ? b : NULL;
}

static int exhausted(struct wl_loader *l) {
    return wt_error_set(&l->last, WL_ERROR_EXHAUSTED,
                        "all %u batches are held: release one (wl_batch_release, or the deleter of "
                        "its DLPack tensors), or "
                        "raise 'slots'",
                        l->ring->n_slots);
}

static int next_locked(struct wl_loader *l, int timeout_ms, wl_batch **out) {
    uint64_t began = wt_now_ns();
    uint64_t deadline = timeout_ms < 0 ? UINT64_MAX : began + (uint64_t)timeout_ms * 1000000;
    bool stalled = false;
    int rc;
    for (;;) {
        rc = before_batch(l);
        if (rc != WL_NOT_READY)
            break;
        struct wl_batch *b = wanted(l);
        if (b && b->state == WT_SLOT_READY) {
            rc = deliver(l, b, out);
            break;
        }
        if (wt_ring_count(l->ring, WT_SLOT_HELD) == l->ring->n_slots) {
            rc = exhausted(l);
            break;
        }
        if (timeout_ms == 0 || wt_now_ns() >= deadline)
            break;
        if (!stalled)
            wt_range_begin("wafertier wait");
        stalled = true;
        stall(l, b, deadline);
    }
    if (stalled) {
        wt_range_end();
        wt_count(&l->meter.stall_ns, wt_now_ns() - began);
    }
    return rc;
}

static int next_batch(struct wl_loader *l, int timeout_ms, wl_batch **out) {
    uint64_t began = wt_now_ns();
    if (l->into) {
        wt_ring_release(l->into);
        l->into = NULL;
    }
    wt_lock(l);
    l->started = true;
    int rc = next_locked(l, timeout_ms, out);
    wt_unlock(l);
    wt_count(&l->meter.stage[WT_AT_DELIVER].busy_ns, wt_now_ns() - began);
    return rc;
}

int wl_next(wl_loader *l, void *stream, int timeout_ms, wl_batch **out) {
    (void)stream; /* host batches are complete when they are given */
    if (!l || !out)
        return wt_error_set(wt_error_thread(), WL_ERROR_INVALID,
                            "wl_next: loader and out are needed");
    return next_batch(l, timeout_ms, out);
}

/* ---- into the caller's tensors ---- */

static const struct wt_tensor_spec *find_spec(const struct wl_loader *l, const char *name,
                                              size_t *at) {
    for (size_t i = 0; i < l->ring->n_tensors; i++) {
        if (name && strcmp(l->ring->spec[i].name, name) == 0) {
            *at = i;
            return &l->ring->spec[i];
        }
    }
    return NULL;
}

static int check_destinations(struct wl_loader *l, const wl_destination *dst, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t at;
        if (!find_spec(l, dst[i].field, &at))
            return wt_error_set(&l->last, WL_ERROR_INVALID,
                                "wl_next_into: the batch has no tensor '%s'",
                                dst[i].field ? dst[i].field : "(NULL)");
        size_t want = l->ring->row_bytes[at] * l->rows;
        if (!dst[i].data || dst[i].bytes != want)
            return wt_error_set(&l->last, WL_ERROR_INVALID,
                                "wl_next_into: tensor '%s' has %zu bytes, the destination %zu",
                                dst[i].field, want, dst[i].data ? dst[i].bytes : 0);
    }
    return WL_OK;
}

int wl_next_into(wl_loader *l, void *stream, int timeout_ms, const wl_destination *dst, size_t n,
                 wl_batch **info) {
    if (!l || (n && !dst))
        return wt_error_set(wt_error_thread(), WL_ERROR_INVALID,
                            "wl_next_into: loader and destinations are needed");
    int rc = check_destinations(l, dst, n);
    wl_batch *b = NULL;
    if (rc == WL_OK)
        rc = next_batch(l, timeout_ms, &b);
    if (rc != WL_OK)
        return rc;
    for (size_t i = 0; i < n; i++) {
        size_t at = 0;
        find_spec(l, dst[i].field, &at);
        l->ring->accel->copy(dst[i].data, b->tensor[at].data, dst[i].bytes, stream);
    }
    if (info) {
        l->into = b;
        *info = b;
    } else {
        wt_ring_release(b);
    }
    return WL_OK;
}

void wl_abort(wl_loader *l) {
    if (!l)
        return;
    wt_lock(l);
    atomic_store(&l->aborted, true);
    pthread_cond_broadcast(&l->ring->cond);
    wt_unlock(l);
}

/* ---- state ---- */

int wl_state_save(const wl_loader *l, void *buf, size_t size, size_t *len) {
    if (!l || !buf || !len)
        return wt_error_set(wt_error_thread(), WL_ERROR_INVALID,
                            "wl_state_save: loader, buffer and len are needed");
    struct wt_err err = {0};
    wt_lock((wl_loader *)l);
    struct wt_state s = l->ring->base;
    s.epoch = l->consume.epoch;
    s.done = wt_loader_step_pos(l, l->consume.epoch, l->consume.step);
    wt_unlock((wl_loader *)l);
    return wt_state_encode(&s, buf, size, len, &err) ? wt_error_from(wt_error_thread(), &err)
                                                     : WL_OK;
}

/* What the options left open is taken from the state; all else must agree. */
static int adopt(struct wl_loader *l, const struct wt_state *s, struct wt_plan_opts *asked,
                 struct wt_err *err) {
    struct wt_state mine = l->ring->base;
    mine.block = l->o.block;
    mine.lanes = l->o.mode == WL_MODE_EVAL ? 0 : l->o.lanes;
    mine.window = l->o.window;
    int rc = wt_state_match(s, &mine, err);
    if (rc)
        return rc;
    if (s->lanes == 0 || l->o.batch % s->lanes)
        return wt_err_set(err, WT_EINVAL,
                          "the state was saved with lanes %u, which do not divide batch %" PRIu64,
                          s->lanes, l->o.batch);
    *asked = l->asked;
    asked->block = s->block;
    asked->lanes = s->lanes;
    asked->window = s->window;
    if (s->done > s->samples + l->o.batch || s->block == 0 || s->window == 0)
        return wt_err_set(err, WT_EINVAL,
                          "the state's position (%" PRIu64
                          " samples of each lane) is beyond the data set",
                          s->done);
    return 0;
}

static int restart(struct wl_loader *l, const struct wt_state *s, const struct wt_plan_opts *asked,
                   struct wt_err *err) {
    struct wt_plan plan;
    int rc = wt_plan_init(&plan, asked, err);
    if (rc)
        return rc;
    wt_engine_stop(l);
    wt_lock(l);
    l->asked = *asked;
    rc = wt_loader_plan(l, err);
    l->ring->base.block = l->plan.o.block;
    l->ring->base.lanes = l->plan.o.lanes;
    l->ring->base.window = l->plan.o.window;
    wt_memory_release(l);
    if (!rc)
        rc = wt_memory_reserve(l, l->ring_bytes, err);
    wt_unlock(l);
    return rc ? rc : wt_engine_start(l, s->epoch, s->done, err);
}

int wl_state_load(wl_loader *l, const void *buf, size_t len) {
    struct wt_state s;
    struct wt_plan_opts asked;
    struct wt_err err = {0};
    if (!l || !buf)
        return wt_error_set(wt_error_thread(), WL_ERROR_INVALID,
                            "wl_state_load: loader and buffer are needed");
    if (l->started)
        return wt_error_set(&l->last, WL_ERROR_INVALID,
                            "wl_state_load comes before the first wl_next");
    if (wt_state_decode(buf, len, &s, &err) || adopt(l, &s, &asked, &err)) {
        wt_error_from(&l->last, &err);
        l->last.code = WL_ERROR_STATE;
        return WL_ERROR_STATE;
    }
    if (restart(l, &s, &asked, &err)) {
        wl_error e;
        wt_error_from(&e, &err);
        return stick(l, &e);
    }
    return WL_OK;
}

/* ---- information ---- */

void wl_get_info(const wl_loader *l, wl_info *info) {
    *info = (wl_info){.dataset = l->dataset,
                      .generation = l->ds.m.generation,
                      .samples = l->ds.m.samples,
                      .shards = l->ds.m.shards,
                      .stored_bytes = l->ds.m.stored_bytes,
                      .steps = l->plan.steps,
                      .rank_batch = l->rows,
                      .lanes = l->plan.o.lanes,
                      .window = l->plan.o.window,
                      .block = l->plan.o.block,
                      .rank = l->o.rank,
                      .world = l->o.world,
                      .classes = l->ds.m.n_classes,
                      .multihot = l->ds.m.label_kind == WT_LABEL_MULTIHOT,
                      .memory = atomic_load(&l->reserved),
                      .ranged = l->ranged};
}

const char *wl_class_name(const wl_loader *l, uint32_t c) {
    return c < l->ds.m.n_classes ? l->ds.m.classes[c] : NULL;
}
