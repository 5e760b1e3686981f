/*
 * Units: which chunks a window (or a ranged step) needs, and where a lane position is among them;
 * see internal.h.
 *
 * A window's pieces are blocks; a block is one contiguous run of ordinals and so one or a few shard
 * ranges: chunks, in lane order. A ranged step's rows are sorted by ordinal; adjacent ones share a
 * chunk. What a chunk reads depends on nothing but its range.
 */
#include "libloader/internal.h"

#include <stdlib.h>
#include <string.h>

static int add_range(struct wl_loader *l, struct wt_unit *u, uint64_t first, uint64_t count,
                     uint64_t at) {
    uint64_t shard = wt_dataset_find(&l->ds, first);
    while (count) {
        size_t old = u->cap;
        if (wt_grow(&u->chunk, &u->cap, u->n_chunks + 1, sizeof *u->chunk) < 0)
            return WT_ENOMEM;
        if (u->cap > old)
            memset(u->chunk + old, 0, (u->cap - old) * sizeof *u->chunk);
        struct wt_chunk *c = &u->chunk[u->n_chunks++];
        uint64_t end = l->ds.cum[shard + 1], n = end - first < count ? end - first : count;
        *c = (struct wt_chunk){.unit = u,
                               .shard = shard,
                               .first = (uint32_t)(first - l->ds.cum[shard]),
                               .count = (uint32_t)n,
                               .at = at};
        wt_dataset_rec(&l->ds, shard, &c->rec);
        first += n;
        at += n;
        count -= n;
        shard++;
    }
    return 0;
}

static int window_chunks(struct wl_loader *l, struct wt_track *t, struct wt_unit *u) {
    for (uint64_t i = 0; i < u->w.n_pieces; i++) {
        struct wt_piece p = wt_epoch_piece(&u->e, t->lane, u->w.piece_first + i);
        if (add_range(l, u, p.first, p.count, p.lane_pos) < 0)
            return WT_ENOMEM;
    }
    return 0;
}

static int compare_u64(const void *a, const void *b) {
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

static int ranged_chunks(struct wl_loader *l, struct wt_track *t, struct wt_unit *u) {
    uint64_t *ordinal = wt_calloc((size_t)u->count, sizeof *ordinal);
    if (!ordinal)
        return WT_ENOMEM;
    for (uint64_t i = 0; i < u->count; i++)
        ordinal[i] = wt_epoch_sample(&u->e, t->lane, u->pos + i);
    qsort(ordinal, (size_t)u->count, sizeof *ordinal, compare_u64);
    int rc = 0;
    for (uint64_t i = 0, n; i < u->count && !rc; i += n) {
        for (n = 1; i + n < u->count && ordinal[i + n] == ordinal[i] + n;)
            n++;
        rc = add_range(l, u, ordinal[i], n, ordinal[i]);
    }
    free(ordinal);
    return rc;
}

/* Sets the unit's window and its steps; false when this rank needs nothing of it. */
static bool set_window(struct wl_loader *l, struct wt_track *t, struct wt_unit *u) {
    uint64_t steps = wt_loader_steps(l, t->epoch), base = wt_loader_step_pos(l, t->epoch, 0);
    uint64_t share = l->plan.lane_batch;
    if (l->ranged) {
        uint64_t pos = wt_loader_step_pos(l, t->epoch, t->next);
        u->pos = pos + t->a;
        u->count =
            u->pos >= t->samples ? 0 : (pos + t->b < t->samples ? pos + t->b : t->samples) - u->pos;
        u->first_step = u->last_step = t->next;
        return u->count > 0;
    }
    u->w = wt_epoch_window(&u->e, t->lane, t->next);
    u->pos = u->w.pos;
    u->count = u->w.count;
    uint64_t last = u->pos + u->count - 1;
    if (last < base)
        return false;
    u->first_step = u->pos <= base ? 0 : (u->pos - base) / share;
    u->last_step = (last - base) / share;
    if (u->last_step >= steps)
        u->last_step = steps - 1;
    return u->first_step < steps;
}

/* The first window of an epoch that holds a position from next_step on. */
static void find_first(struct wl_loader *l, struct wt_track *t, const struct wt_epoch *e) {
    t->fresh = false;
    if (l->ranged) {
        t->next = t->next_step;
        return;
    }
    uint64_t pos = wt_loader_step_pos(l, t->epoch, t->next_step);
    t->next = pos < t->samples ? wt_epoch_window_of(e, t->lane, pos) : wt_epoch_windows(e, t->lane);
}

static void next_epoch(struct wl_loader *l, struct wt_track *t) {
    t->epoch++;
    t->next = t->next_step = 0;
    t->fresh = true;
    t->done = l->o.epochs && t->epoch >= l->o.epochs;
}

static uint64_t windows(const struct wl_loader *l, const struct wt_track *t,
                        const struct wt_epoch *e) {
    return l->ranged ? wt_loader_steps(l, t->epoch) : wt_epoch_windows(e, t->lane);
}

static bool fill(struct wl_loader *l, struct wt_track *t, struct wt_unit *u) {
    u->n_chunks = u->started = 0;
    u->err.code = WL_OK;
    if (u->first_step < t->next_step)
        u->first_step = t->next_step;
    u->steps_left = u->last_step - u->first_step + 1;
    u->need = t->epoch * (l->plan.steps + 1) + u->first_step;
    int rc = l->ranged ? ranged_chunks(l, t, u) : window_chunks(l, t, u);
    if (rc < 0) {
        u->n_chunks = 0;
        wt_error_set(&u->err, WL_ERROR_MEMORY, "out of memory for the list of what a window needs");
    }
    u->pending = u->n_chunks;
    u->since_ns = wt_now_ns();
    u->state = u->pending ? WT_UNIT_LOADING : WT_UNIT_READY;
    return true;
}

bool wt_unit_next(struct wl_loader *l, struct wt_track *t, struct wt_unit *u) {
    while (!t->done) {
        u->e = wt_plan_epoch(&l->plan, t->epoch);
        if (t->fresh)
            find_first(l, t, &u->e);
        bool use = t->next < windows(l, t, &u->e) && t->next_step < wt_loader_steps(l, t->epoch);
        if (!use ||
            (!l->ranged && wt_epoch_window(&u->e, t->lane, t->next).pos >=
                               wt_loader_step_pos(l, t->epoch, wt_loader_steps(l, t->epoch)))) {
            /* A lane without samples of this rank would go through epochs for ever: it has nothing
             * to load. */
            if (t->samples == 0 || (l->ranged && t->a >= t->samples))
                t->done = true;
            else
                next_epoch(l, t);
            continue;
        }
        if (t->epoch > l->newest_epoch) {
            l->newest_epoch = t->epoch;
            wt_residency_forget(&l->residency);
        }
        use = set_window(l, t, u);
        t->next++;
        if (use)
            return fill(l, t, u);
    }
    return false;
}

void wt_chunk_release(struct wl_loader *l, struct wt_chunk *c) {
    if (c->slice)
        free(c->slice);
    else if (c->index == &c->own)
        wt_shard_index_free(&c->own);
    c->slice = NULL;
    c->index = NULL;
    if (c->kept)
        wt_keeper_put(l->ctx->keeper, c->kept);
    c->kept = NULL;
    wt_buffers_put(&l->buffers, c->buf);
    c->buf = NULL;
    free(c->bad);
    c->bad = NULL;
    c->data = NULL;
}

void wt_unit_release(struct wl_loader *l, struct wt_unit *u) {
    for (size_t i = 0; i < u->n_chunks; i++)
        wt_chunk_release(l, &u->chunk[i]);
    u->n_chunks = 0;
    u->state = WT_UNIT_IDLE;
}

void wt_unit_free(struct wt_unit *u) {
    free(u->chunk);
}

struct wt_chunk *wt_unit_locate(const struct wl_loader *l, const struct wt_unit *u, uint32_t lane,
                                uint64_t pos, uint32_t *sample) {
    uint64_t at = l->ranged ? wt_epoch_sample(&u->e, lane, pos) : wt_window_source(&u->w, pos);
    size_t low = 0, high = u->n_chunks;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (u->chunk[mid].at <= at)
            low = mid;
        else
            high = mid;
    }
    *sample = (uint32_t)(at - u->chunk[low].at);
    return &u->chunk[low];
}
