/*
 * Fetching, on the I/O thread; what needs no tier does without it.
 *
 * Happy path: a kept mapping goes straight to the crew, and what was decoded straight to the unit.
 * Else the cheapest tier that is believed to hold the shard is asked: one that can map gives a
 * mapping; others (and what it will not map) are read, a whole shard in parts of 8 MiB, of a part
 * of a shard first the index and then the bytes. The crew checks and decodes; the chunk is ready.
 * A copy under way, which by what the daemon said is there before our own read would end, is waited
 * for, once, no longer than that read would take: one read of the tier below for both.
 * Failure modes, in one round over the tiers: a tier that lacks the shard is remembered, a damaged
 * copy counted, a tier that is away noted; each time the next one is asked. After the round: was
 * one away, the round is repeated with back-off until timeout_ms (STORAGE). Is the cold copy
 * damaged, it is read once more and what is good of it is taken (bad samples are the stage's
 * business). Is it nowhere: NOT_FOUND. Anything that is our own fault (memory) ends the fetch at
 * once.
 */
#include "libloader/fetch.h"

#include "libloader/report.h"

#include <stdlib.h>
#include <string.h>

enum { BACKOFF_FIRST_MS = 50, BACKOFF_MAX_MS = 2000, LOOK_AGAIN_MS = 2 };

static void attempt(struct wt_fetch *f);
static void ask(struct wt_fetch *f, int tier);
static void advance(struct wt_fetch *f);
static void work(struct wt_fetch *f, enum wt_fetch_step step,
                 void (*run)(struct wt_task *, struct wt_worker *));

static struct wt_fetch *of_post(struct wt_post *post) {
    return (struct wt_fetch *)((char *)post - offsetof(struct wt_fetch, post));
}

static void drop_working(struct wt_fetch *f) {
    wt_buffers_put(&f->l->buffers, f->raw);
    f->raw = NULL;
    if (f->parsed)
        wt_shard_index_free(&f->index);
    f->parsed = false;
}

/* ---- the end ---- */

/* err NULL: the chunk is ready. */
static void finish(struct wt_fetch *f, const wl_error *err) {
    struct wl_loader *l = f->l;
    struct wt_chunk *c = f->chunk;
    drop_working(f);
    if (err)
        wt_chunk_release(l, c);
    wt_lock(l);
    c->state = err ? WT_CHUNK_FAILED : WT_CHUNK_READY;
    struct wt_unit *u = c->unit;
    if (err && !u->err.code)
        u->err = *err;
    if (--u->pending == 0)
        u->state = WT_UNIT_READY;
    f->chunk = NULL;
    wt_fetch_set_step(f, WT_FETCH_IDLE);
    l->idle_fetch[l->n_idle++] = f;
    l->busy--;
    wt_pump(l);
    if (atomic_load(&l->stopping))
        pthread_cond_broadcast(&l->ring->cond);
    wt_unlock(l);
}

static void finish_error(struct wt_fetch *f, int code, const struct wt_err *why) {
    wl_error e;
    wt_error_from(&e, why);
    e.code = (wl_result)code;
    memcpy(e.shard, f->key, sizeof f->key);
    finish(f, &e);
}

static void finish_ready(struct wt_fetch *f) {
    struct wl_loader *l = f->l;
    const struct wt_chunk *c = f->chunk;
    int tier = wt_fetch_tier_of(f);
    uint64_t bytes = wt_chunk_whole(c) ? c->rec.size : c->rec.size - c->rec.index_off + f->span.len;
    if (tier > 0) {
        wt_residency_hint(&l->residency, c->shard, 1u << tier, 1u << tier);
        wt_moves_forget(&l->moves, c->shard);
        wt_count(&l->meter.met, tier == f->hope);
    }
    wt_count(&l->meter.tier[tier].reads, 1);
    wt_count(&l->meter.tier[tier].bytes, bytes);
    wt_reporter_read(l->reporter, c->shard, (unsigned)tier, bytes);
    finish(f, NULL);
}

/* ---- rounds ---- */

static void on_delay(struct wt_delay *delay) {
    struct wt_fetch *f = (struct wt_fetch *)((char *)delay - offsetof(struct wt_fetch, delay));
    wt_count(&f->l->meter.retries, 1);
    f->tried = 0;
    f->away = f->cold_bad = f->home_bad = f->cold_missing = false;
    attempt(f);
}

static void wait_and_retry(struct wt_fetch *f) {
    uint64_t now = wt_now_ns();
    if (!f->trouble_ns)
        f->trouble_ns = now;
    if (now - f->trouble_ns >= (uint64_t)f->l->o.timeout_ms * 1000000) {
        wt_err_wrap(&f->why, "shard %s: no tier that holds it answered for %d ms", f->key,
                    f->l->o.timeout_ms);
        finish_error(f, WL_ERROR_STORAGE, &f->why);
        return;
    }
    uint64_t left = (uint64_t)f->l->o.timeout_ms - (now - f->trouble_ns) / 1000000;
    uint64_t ms = f->backoff_ms < left ? f->backoff_ms : left;
    f->backoff_ms =
        f->backoff_ms * 2 > BACKOFF_MAX_MS ? (unsigned)BACKOFF_MAX_MS : f->backoff_ms * 2;
    wt_fetch_set_step(f, WT_FETCH_WAIT);
    f->delay.run = on_delay;
    wt_context_delay(f->l->ctx, &f->delay, ms);
}

/* The tier whose copy decides what is good: cold, or the home of what cold does not have yet. */
static unsigned truth_of(const struct wt_fetch *f) {
    return f->cold_missing ? f->l->home : 0;
}

static void round_over(struct wt_fetch *f) {
    f->cold_bad = f->cold_bad || (f->home_bad && f->cold_missing);
    if (f->away) {
        wait_and_retry(f);
    } else if (f->cold_bad && !f->salvage) {
        f->salvage = true;
        f->tried = ~(1u << truth_of(f));
        f->cold_bad = f->home_bad = false;
        attempt(f);
    } else if (f->cold_bad) {
        /* Not even its index can be read: every sample of it is bad, and the stage says so. */
        wt_chunk_release(f->l, f->chunk);
        wt_chunk_records(f->l, f->chunk);
        f->span.len = 0;
        atomic_store_explicit(&f->tier, (int)truth_of(f), memory_order_relaxed);
        finish_ready(f);
    } else {
        wt_err_wrap(&f->why, "shard %s is in no tier", f->key);
        finish_error(f, WL_ERROR_NOT_FOUND, &f->why);
    }
}

static bool is_ours(int rc) { /* asking another tier would not help */
    return wt_err_blame(rc) == WT_BLAME_CALLER && rc != WT_EBUSY && rc != WT_ECANCELED &&
           rc != WT_ERANGE && rc != WT_ESYSTEM;
}

static void count_failure(struct wt_fetch *f, int tier) {
    struct wl_loader *l = f->l;
    if (f->rc == WT_EMISSING) {
        wt_count(&l->meter.tier[tier].misses, 1);
        if (tier > 0) {
            wt_moves_forget(&l->moves, f->chunk->shard);
            wt_residency_missed(&l->residency, f->chunk->shard, (unsigned)tier);
            wt_reporter_lost(l->reporter, f->chunk->shard, (unsigned)tier, false);
        }
    } else if (f->rc != WT_ECANCELED) {
        wt_count(&l->meter.tier[tier].failures, 1);
        if (wt_err_blame(f->rc) == WT_BLAME_OBJECT) {
            wt_log(&l->ctx->log, WT_LOG_WARN,
                   "loader: tier %s: shard %s: %s; the next copy is read",
                   wt_tier_name(l->ctx->tier[tier]), f->key, f->err.text);
            wt_reporter_lost(l->reporter, f->chunk->shard, (unsigned)tier, f->rc == WT_ECORRUPT);
        }
    }
}

/* ---- a copy under way ---- */

static void on_look(struct wt_delay *delay) {
    struct wt_fetch *f = (struct wt_fetch *)((char *)delay - offsetof(struct wt_fetch, delay));
    ask(f, f->hope);
}

static void look_at(struct wt_fetch *f, uint64_t when_ns) {
    uint64_t now = wt_now_ns(), wait = when_ns > now ? when_ns - now : 0;
    wt_fetch_set_step(f, WT_FETCH_AWAIT);
    atomic_store_explicit(&f->tier, f->hope, memory_order_relaxed);
    f->delay.run = on_look;
    wt_context_delay(f->l->ctx, &f->delay, (wait + 999999) / 1000000);
}

/* It takes longer than it was said to: while there is time it is looked for again. */
static bool look_again(struct wt_fetch *f, int tier) {
    uint64_t now = wt_now_ns(), late = now > f->look_ns ? now - f->look_ns : 0;
    uint64_t next = (late ? now : f->look_ns) + LOOK_AGAIN_MS * UINT64_C(1000000) + late / 4;
    if (f->rc != WT_EMISSING || !f->hope || tier != f->hope || next >= f->until_ns)
        return false;
    look_at(f, next);
    return true;
}

/* Would `tier` be read although a copy comes to a higher one sooner? Then that is waited for. */
static bool await_copy(struct wt_fetch *f, int tier, const struct wt_coming *c) {
    struct wl_context *ctx = f->l->ctx;
    uint64_t size = f->chunk->rec.size;
    if ((int)c->tier <= tier || f->tried >> c->tier & 1 ||
        !wt_coming_sooner(c, wt_now_ns(), wt_tier_cost(ctx->tier[tier], size),
                          wt_tier_cost(ctx->tier[c->tier], size), &f->look_ns, &f->until_ns))
        return false;
    f->hope = (int)c->tier;
    wt_count(&f->l->meter.waits, 1);
    look_at(f, f->look_ns);
    return true;
}

/* ---- attempts ---- */

static void attempt_failed(struct wt_fetch *f) {
    int tier = wt_fetch_tier_of(f);
    drop_working(f);
    if (f->chunk->kept)
        wt_keeper_forget(f->l->ctx->keeper, f->chunk->rec.hash, 1u << tier);
    wt_chunk_release(f->l, f->chunk);
    if (look_again(f, tier))
        return;
    count_failure(f, tier);
    if (is_ours(f->rc)) {
        wt_err_wrap(&f->err, "shard %s", f->key);
        finish_error(f, wt_error_code(f->rc), &f->err);
        return;
    }
    f->tried |= 1u << tier;
    if (tier == 0 || !f->why.code)
        f->why = f->err;
    if (wt_err_blame(f->rc) != WT_BLAME_OBJECT && f->rc != WT_ERANGE)
        f->away = true;
    else if (tier == 0 && f->rc == WT_EMISSING)
        f->cold_missing = true;
    else if (tier == 0)
        f->cold_bad = true;
    else if ((unsigned)tier == f->l->home && f->rc != WT_EMISSING)
        f->home_bad = true;
    attempt(f);
}

/* not_yet: bits of tiers to which a copy is on its way. */
static int choose_tier(struct wt_fetch *f, unsigned not_yet) {
    struct wl_context *ctx = f->l->ctx;
    double cost[WT_TIERS_MAX];
    for (unsigned i = 0; i < ctx->n_tiers; i++) {
        cost[i] = wt_tier_cost(ctx->tier[i], f->chunk->rec.size);
        atomic_store_explicit(&ctx->down[i], wt_tier_is_down(ctx->tier[i]), memory_order_relaxed);
    }
    unsigned absent = wt_residency_absent(&f->l->residency, f->chunk->shard) | (not_yet & ~1u);
    int tier = wt_residency_pick(cost, ctx->n_tiers, f->tried | absent);
    return tier >= 0 ? tier : wt_residency_pick(cost, ctx->n_tiers, f->tried);
}

/* ---- the steps ---- */

static void work(struct wt_fetch *f, enum wt_fetch_step step,
                 void (*run)(struct wt_task *, struct wt_worker *)) {
    wt_fetch_set_step(f, step);
    f->rc = 0;
    f->task.run = run;
    wt_crew_submit(f->l->ctx->crew, &f->task);
}

static void ask(struct wt_fetch *f, int tier) {
    f->rc = 0;
    f->err.code = 0;
    if (atomic_load(&f->l->stopping)) {
        struct wt_err err;
        wt_err_set(&err, WT_ECANCELED, "the loader is closing");
        finish_error(f, WL_ERROR_ABORTED, &err);
        return;
    }
    atomic_store_explicit(&f->tier, tier, memory_order_relaxed);
    if (f->l->ctx->caps[tier] & WT_CAP_MAP)
        wt_fetch_map(f);
    else
        work(f, WT_FETCH_ROOM, wt_decode_room);
}

static void attempt(struct wt_fetch *f) {
    struct wt_coming c;
    bool stopping = atomic_load(&f->l->stopping),
         comes = !f->hope && wt_moves_find(&f->l->moves, f->chunk->shard, &c);
    int tier = stopping ? -1 : choose_tier(f, comes && c.end_ns > wt_now_ns() ? 1u << c.tier : 0);
    if (tier < 0 && !stopping)
        round_over(f);
    else if (stopping || !comes || !await_copy(f, tier, &c))
        ask(f, tier);
}

/* What comes after a step that went well. */
static void advance(struct wt_fetch *f) {
    const struct wt_shard_rec *rec = &f->chunk->rec;
    bool whole = wt_chunk_whole(f->chunk), plain = rec->codec == WT_CODEC_TAR;
    switch (wt_fetch_step_of(f)) {
    case WT_FETCH_ROOM:
        if (whole)
            wt_fetch_read(f, WT_FETCH_BODY, plain ? f->chunk->buf->mem.ptr : f->raw->mem.ptr, 0,
                          rec->size);
        else
            wt_fetch_read(f, WT_FETCH_TAIL, f->raw->mem.ptr, rec->index_off, rec->size);
        break;
    case WT_FETCH_TAIL:
        work(f, WT_FETCH_PARSE, wt_decode_tail);
        break;
    case WT_FETCH_PARSE:
        wt_fetch_read(f, WT_FETCH_BODY, plain ? f->chunk->buf->mem.ptr : f->raw->mem.ptr,
                      f->span.off, f->span.off + f->span.len);
        break;
    case WT_FETCH_MAP:
    case WT_FETCH_BODY:
        work(f, WT_FETCH_DECODE, wt_decode_run);
        break;
    case WT_FETCH_DECODE: /* ended in wt_fetch_decoded */
    case WT_FETCH_IDLE:
    case WT_FETCH_WAIT:
    case WT_FETCH_AWAIT:
        break;
    }
}

void wt_fetch_read_done(struct wt_fetch *f) {
    if (f->rc == WT_EUNSUPPORTED &&
        wt_fetch_step_of(f) == WT_FETCH_MAP) { /* not this one: read it */
        f->err.code = 0;
        work(f, WT_FETCH_ROOM, wt_decode_room);
    } else if (f->rc) {
        attempt_failed(f);
    } else {
        advance(f);
    }
}

static void on_task_done(struct wt_post *post) {
    struct wt_fetch *f = of_post(post);
    if (f->rc)
        attempt_failed(f);
    else
        advance(f);
}

static void on_start(struct wt_post *post) {
    struct wt_fetch *f = of_post(post);
    post->run = on_task_done;
    attempt(f);
}

void wt_fetch_decoded(struct wt_fetch *f) {
    if (f->rc)
        wt_context_post(f->l->ctx, &f->post);
    else
        finish_ready(f);
}

void wt_fetch_start(struct wl_loader *l, struct wt_chunk *c) {
    struct wt_fetch *f = l->idle_fetch[--l->n_idle];
    c->state = WT_CHUNK_MOVING;
    l->busy++;
    wt_count(&l->meter.stage[WT_AT_FETCH].wait_ns, wt_now_ns() - c->unit->since_ns);
    f->chunk = c;
    f->tried = 0;
    f->away = f->cold_bad = f->home_bad = f->cold_missing = f->salvage = false;
    f->trouble_ns = 0;
    f->backoff_ms = BACKOFF_FIRST_MS;
    f->why.code = 0;
    f->task.rank = WT_RANK_DECODE | c->unit->need;
    f->hope = 0;
    atomic_store_explicit(&f->tier, -1, memory_order_relaxed);
    wt_shard_name(l->dataset, c->shard, &c->rec, f->key);
    c->kept = wt_keeper_get(l->ctx->keeper, c->rec.hash);
    f->post.run = c->kept ? on_task_done : on_start;
    if (!c->kept) {
        wt_context_post(l->ctx, &f->post);
        return;
    }
    atomic_store_explicit(&f->tier, (int)c->kept->tier, memory_order_relaxed);
    wt_count(&l->meter.joins, 1);
    work(f, WT_FETCH_DECODE, wt_decode_run);
}

/* ---- all fetches of a loader ---- */

static void on_cancel(struct wt_post *post) {
    struct wl_loader *l = (struct wl_loader *)((char *)post - offsetof(struct wl_loader, cancel));
    for (unsigned i = 0; i < l->n_fetches; i++)
        for (unsigned j = 0; j < WT_FETCH_REQS; j++)
            if (l->fetches[i].flying[j])
                wt_tier_cancel(&l->fetches[i].req[j]);
    wt_context_flush(l->ctx);
    wt_lock(l);
    l->busy--;
    pthread_cond_broadcast(&l->ring->cond);
    wt_unlock(l);
}

void wt_fetch_cancel_all(struct wl_loader *l) {
    l->cancel.run = on_cancel;
    l->busy++;
    wt_context_post(l->ctx, &l->cancel);
}

int wt_fetches_new(struct wl_loader *l, unsigned n, struct wt_err *err) {
    l->fetches = wt_calloc(n, sizeof *l->fetches);
    l->idle_fetch = wt_calloc(n, sizeof *l->idle_fetch);
    if (!l->fetches || !l->idle_fetch)
        return wt_err_set(err, WT_ENOMEM, "out of memory for %u reads in flight", n);
    for (unsigned i = 0; i < n; i++) {
        l->fetches[i].l = l;
        l->idle_fetch[i] = &l->fetches[i];
    }
    l->n_fetches = l->n_idle = n;
    return 0;
}

void wt_fetches_free(struct wl_loader *l) {
    free(l->fetches);
    free(l->idle_fetch);
    l->fetches = NULL;
    l->idle_fetch = NULL;
    l->n_fetches = l->n_idle = 0;
}

int wt_fetch_tier(const struct wl_loader *l, const struct wt_chunk *c, bool *decoding) {
    for (unsigned i = 0; i < l->n_fetches; i++) {
        if (l->fetches[i].chunk != c)
            continue;
        *decoding = wt_fetch_step_of(&l->fetches[i]) == WT_FETCH_DECODE;
        return wt_fetch_tier_of(&l->fetches[i]);
    }
    *decoding = false;
    return -1;
}

uint64_t wt_fetch_decoding(const struct wl_loader *l) {
    uint64_t n = 0;
    for (unsigned i = 0; i < l->n_fetches; i++)
        n += wt_fetch_step_of(&l->fetches[i]) == WT_FETCH_DECODE;
    return n;
}
