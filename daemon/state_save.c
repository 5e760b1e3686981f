/*
 * The snapshot, written piece by piece; see state.h.
 *
 * Happy path: the journal goes first; then some thousand shards at a time are encoded on the loop
 * and written by a worker, so that neither the loop waits nor the memory for all of them is needed.
 * What changes meanwhile stands in the new journal, whichever side of the change a piece shows:
 * the last note of a shard and tier is what counts. Shards that get other numbers (a data set comes
 * or goes) make it begin anew. Failures: the file beside is removed, a warning tells, and the older
 * snapshot with all its journals stays.
 */
#include "daemon/heat.h"
#include "daemon/state_internal.h"

#include <stdlib.h>

enum { PIECE = 16384 }; /* shards: half a MiB at most, encoded in a millisecond */

static uint64_t pieces_of(uint64_t n) {
    return (n + PIECE - 1) / PIECE;
}

/* ---- encoding ---- */

static int add_set_head(struct wt_bytes *b, const char *name) {
    uint8_t head[WT_DATASET_NAME + 8] = {0};
    memcpy(head, name, strnlen(name, WT_DATASET_NAME - 1));
    return wt_bytes_add(b, head, sizeof head);
}

static int add_rec(struct wt_bytes *b, const struct wt_state_rec *r) {
    uint8_t rec[WT_STATE_RECORD];
    wt_state_rec_encode(r, rec);
    return wt_bytes_add(b, rec, sizeof rec);
}

static int encode_shards(struct wt_bytes *b, const struct wt_catalog_set *set, uint64_t first,
                         uint64_t end) {
    int rc = add_set_head(b, set->d.m.name);
    size_t count_at = b->len - 8;
    uint64_t count = 0;
    for (uint64_t i = first; i < end && rc == 0; i++) {
        const struct wt_shard_state *e = &set->shard[i];
        if (e->mask == 1 && e->heat < WT_HEAT_FLOOR && e->pin == 0)
            continue;
        struct wt_shard_rec rec;
        wt_catalog_rec(set, i, &rec);
        struct wt_state_rec r = {.shard = i,
                                 .hash = rec.hash.lo,
                                 .heat = e->heat,
                                 .heated = e->heated,
                                 .since = e->since,
                                 .kind = WT_STATE_ENTRY,
                                 .tiers = e->mask,
                                 .pin = e->pin};
        rc = add_rec(b, &r);
        count++;
    }
    if (rc == 0)
        wt_put64(b->data + count_at, count);
    return rc;
}

static int encode_pending(struct wt_bytes *b, const struct wt_state_set *set, uint64_t first,
                          uint64_t end) {
    int rc = add_set_head(b, set->name);
    if (rc == 0)
        wt_put64(b->data + b->len - 8, end - first);
    for (uint64_t i = first; i < end && rc == 0; i++)
        rc = add_rec(b, &set->rec[i]);
    return rc;
}

static int encode_head(struct wt_state *s) {
    const struct wt_catalog *c = s->save.catalog;
    uint64_t n = 0;
    for (size_t i = 0; i < c->n_sets; i++)
        n += pieces_of(c->set[i]->d.m.shards);
    for (size_t i = 0; i < s->pending.n; i++)
        n += pieces_of(s->pending.set[i].n);
    return wt_state_head_encode(&s->save.piece, "WTSNAP1\n", s->tier, s->n_tiers, s->save.sequence,
                                n);
}

/* One piece of it; moves on to the next data set behind the last. */
static int step(struct saving *v, uint64_t n, size_t *which, uint64_t *end) {
    *end = n - v->at < PIECE ? n : v->at + PIECE;
    if (*end > v->at)
        return 1;
    v->at = 0;
    ++*which;
    return 0;
}

/* The next piece; `last` when there is none any more: then it is the sum of all. */
static int encode_piece(struct wt_state *s) {
    struct saving *v = &s->save;
    const struct wt_catalog *c = v->catalog;
    uint64_t end;
    int rc;
    while (v->set < c->n_sets) {
        const struct wt_catalog_set *set = c->set[v->set];
        if (!step(v, set->d.m.shards, &v->set, &end))
            continue;
        rc = encode_shards(&v->piece, set, v->at, end);
        v->at = end;
        return rc;
    }
    while (v->pending < s->pending.n) {
        const struct wt_state_set *set = &s->pending.set[v->pending];
        if (!step(v, set->n, &v->pending, &end))
            continue;
        rc = encode_pending(&v->piece, set, v->at, end);
        v->at = end;
        return rc;
    }
    v->last = true;
    return 0;
}

/* ---- beginning, and beginning anew ---- */

static int begin(struct wt_state *s) {
    struct saving *v = &s->save;
    if (v->fd >= 0)
        wt_state_write_abandon(s->dir, "snapshot", v->fd);
    v->shape = v->catalog->shape;
    v->state_shape = s->shape;
    v->set = v->pending = 0;
    v->at = 0;
    v->last = false;
    wt_hasher_reset(v->hasher);
    v->piece.len = 0;
    int rc = encode_head(s);
    if (rc < 0)
        wt_err_set(&v->err, rc, "no memory for a snapshot");
    v->fd = -1;
    return rc < 0 ? rc : wt_state_write_begin(s->dir, "snapshot", &v->fd, &v->err);
}

static void end(struct wt_state *s) {
    struct saving *v = &s->save;
    v->on = false;
    if (v->fd >= 0)
        wt_state_write_abandon(s->dir, "snapshot", v->fd);
    wt_bytes_free(&v->piece);
    wt_hasher_free(v->hasher);
    v->hasher = NULL;
    if (v->rc == 0) {
        state_remove_journals(s, v->sequence);
        s->warned = false;
    } else if (!v->canceled) {
        state_warn_once(s, &v->err);
    }
}

/* The journal goes first: what changes while the snapshot is written stands in the new one. */
static int start(struct wt_state *s, const struct wt_catalog *c, uv_loop_t *loop) {
    struct saving *v = &s->save;
    *v = (struct saving){.on = true, .catalog = c, .loop = loop, .fd = -1};
    v->hasher = wt_hasher_new();
    v->rc = v->hasher ? 0 : wt_err_set(&v->err, WT_ENOMEM, "no memory for a snapshot");
    if (v->rc == 0)
        v->rc = state_next_journal(s, &v->err);
    v->sequence = s->sequence;
    if (v->rc == 0)
        v->rc = begin(s);
    return v->rc;
}

/* ---- writing ---- */

static void write_piece(struct wt_state *s) {
    struct saving *v = &s->save;
    uint8_t sum[8];
    wt_hasher_add(v->hasher, v->piece.data, v->piece.len);
    v->rc = wt_state_write_more(v->fd, v->piece.data, v->piece.len, &v->err);
    if (v->rc < 0 || !v->last)
        return;
    wt_put64(sum, wt_hasher_end64(v->hasher));
    v->rc = wt_state_write_more(v->fd, sum, sizeof sum, &v->err);
    if (v->rc == 0) {
        v->rc = wt_state_write_end(s->dir, "snapshot", v->fd, &v->err);
        v->fd = -1; /* also on failure */
    }
}

/* The piece is empty but for the head of a file that has just begun. */
static void next_piece(struct wt_state *s) {
    struct saving *v = &s->save;
    if (v->shape != v->catalog->shape || v->state_shape != s->shape)
        v->rc = begin(s);
    if (v->rc == 0 && encode_piece(s) < 0)
        v->rc = wt_err_set(&v->err, WT_ENOMEM, "no memory for a snapshot");
}

int wt_state_save(struct wt_state *s, const struct wt_catalog *c, struct wt_err *err) {
    struct saving *v = &s->save;
    start(s, c, NULL);
    while (v->rc == 0 && !v->last) {
        next_piece(s);
        if (v->rc == 0)
            write_piece(s);
        v->piece.len = 0;
    }
    if (v->rc < 0 && err) {
        *err = v->err;
        wt_err_wrap(err, "%s", s->folder);
    }
    v->canceled = err != NULL; /* told to the caller, then */
    end(s);
    return v->rc;
}

static void work(uv_work_t *w) {
    write_piece(w->data);
}

static void worked(uv_work_t *w, int status);

static void go_on(struct wt_state *s) {
    struct saving *v = &s->save;
    if (v->canceled && v->rc == 0 && !v->last)
        v->rc = wt_err_set(&v->err, WT_ECANCELED, "canceled");
    if (v->rc == 0 && !v->last) {
        next_piece(s);
        if (v->rc == 0 && uv_queue_work(v->loop, &v->work, work, worked) == 0)
            return;
        if (v->rc == 0)
            v->rc = wt_err_set(&v->err, WT_ESYSTEM, "no worker for a snapshot");
    }
    end(s);
}

static void worked(uv_work_t *w, int status) {
    struct wt_state *s = w->data;
    s->save.piece.len = 0;
    if (status < 0 && s->save.rc == 0)
        s->save.rc = wt_err_set(&s->save.err, WT_ECANCELED, "canceled");
    go_on(s);
}

void wt_state_save_later(struct wt_state *s, const struct wt_catalog *c, uv_loop_t *loop) {
    if (s->save.on)
        return;
    start(s, c, loop);
    s->save.work.data = s;
    go_on(s);
}

void wt_state_save_cancel(struct wt_state *s) {
    s->save.canceled = s->save.on;
}

bool wt_state_saving(const struct wt_state *s) {
    return s->save.on;
}

void state_save_free(struct wt_state *s) {
    if (s->save.on)
        end(s);
}
