/*
 * The steps of one move; see mover.h. Each step submits one request (copying: several) whose
 * completion leads to the next:
 *
 *   start -> OPENING -> COPYING -> COMMITTING -> [CHECKING -> DROPPING] -> ENDED
 *     |         |           |            |
 *     v         v           v            v
 *  PURGING  ADOPTING     ABORTING     ADOPTING   the object is there already: its size is compared
 *                           |
 *                        PURGING                 the source was damaged: that copy goes
 *
 * A request that is refused at submit counts as one that failed. Completions never come from inside
 * submit, so no step nests in another; a refusal ends through the same code, at most two steps
 * deep.
 */
#include "daemon/mover_internal.h"

#include <inttypes.h>
#include <string.h>

#define BIT(step) (1u << WT_STEP_##step)

/* The steps that may follow each step: what move.c relies on, as data. */
static const unsigned follows[WT_STEP_COUNT] = {
    [WT_STEP_QUEUED] = BIT(OPENING) | BIT(CHECKING) | BIT(PURGING) | BIT(ENDED),
    [WT_STEP_OPENING] = BIT(COPYING) | BIT(ADOPTING) | BIT(ABORTING) | BIT(ENDED),
    [WT_STEP_COPYING] = BIT(COMMITTING) | BIT(ABORTING),
    [WT_STEP_COMMITTING] = BIT(ADOPTING) | BIT(CHECKING) | BIT(ENDED),
    [WT_STEP_ADOPTING] = BIT(CHECKING) | BIT(PURGING) | BIT(ENDED),
    [WT_STEP_ABORTING] = BIT(PURGING) | BIT(ENDED),
    [WT_STEP_PURGING] = BIT(OPENING) | BIT(ENDED),
    [WT_STEP_CHECKING] = BIT(DROPPING) | BIT(ENDED),
    [WT_STEP_DROPPING] = BIT(ENDED),
};

static const char *const names[WT_STEP_COUNT] = {"queued",     "waiting",  "opening",  "copying",
                                                 "committing", "adopting", "aborting", "purging",
                                                 "checking",   "dropping", "ended"};

const char *wt_step_name(enum wt_step step) {
    return names[step];
}

static void enter(struct wt_lane *l, enum wt_step step) {
    if (!(follows[l->move->step] & (1u << step)))
        wt_log(wt_mover_log(l->move->mover), WT_LOG_ERROR, "move of %s: step %s after %s", l->key,
               names[step], names[l->move->step]);
    l->move->step = step;
}

static void end(struct wt_lane *l) {
    enter(l, WT_STEP_ENDED);
    wt_move_ended(l);
}

/* The first error of an attempt counts. */
static void note_error(struct wt_lane *l, int rc, const struct wt_err *err) {
    if (l->err.code)
        return;
    if (err && err->code)
        l->err = *err;
    else
        wt_err_set(&l->err, rc, "%s: %s", l->key, wt_err_text(rc));
}

/* A commit is asked about before, in verify: a put that is open must be ended. */
static int may_not(struct wt_lane *l, struct wt_req *req) {
    if ((req->op != WT_OP_PUT_OPEN && req->op != WT_OP_REMOVE) || wt_mover_may(l->move->mover))
        return 0;
    return wt_err_set(&req->err, WT_ELOCKED, "%s: the lock is no longer held", l->key);
}

/* One request at a time besides the parts. `done` is called for a refused one as well. */
static void submit(struct wt_lane *l, int tier, struct wt_req req,
                   void (*done)(struct wt_req *req)) {
    l->ctl = req;
    l->ctl.key = l->key;
    l->ctl.done = done;
    l->ctl.arg = l;
    l->ctl_busy = true;
    int rc = may_not(l, &l->ctl);
    if (rc == 0)
        rc = wt_tier_submit(wt_mover_tier(l->move->mover, tier), &l->ctl);
    if (rc == 0)
        return;
    l->ctl.rc = rc;
    if (!l->ctl.err.code)
        wt_err_set(&l->ctl.err, rc, "%s: the request was refused: %s", l->key, wt_err_text(rc));
    done(&l->ctl);
}

static struct wt_lane *lane_of(struct wt_req *req) {
    struct wt_lane *l = req->arg;
    l->ctl_busy = false;
    return l;
}

/* ---- drop ---- */

static void on_dropped(struct wt_req *req) {
    struct wt_lane *l = lane_of(req);
    struct wt_move *v = l->move;
    if (req->rc == 0)
        wt_mover_count(v->mover, v->drop, -(int64_t)v->size);
    if (req->rc == 0 || req->rc == WT_EMISSING)
        wt_catalog_lose(wt_mover_catalog(v->mover), v->set, v->shard, (uint32_t)v->drop);
    else {
        note_error(l, req->rc, &req->err);
        v->set->shard[v->shard].sure &= (uint8_t) ~(1u << v->drop); /* it may be gone */
    }
    end(l);
}

static void on_checked(struct wt_req *req) {
    struct wt_lane *l = lane_of(req);
    struct wt_move *v = l->move;
    if (req->rc < 0) {
        note_error(l, req->rc, &req->err);
        if (req->rc == WT_EMISSING)
            l->broken = 0;
    } else if (req->size != v->size) {
        wt_err_set(&l->err, WT_ECORRUPT,
                   "%s: the cold copy has %" PRIu64 " bytes instead of %" PRIu64
                   "; verify the data set",
                   l->key, req->size, v->size);
        l->broken = 0;
    }
    if (l->err.code || l->cancel) {
        note_error(l, WT_ECANCELED, NULL);
        end(l);
        return;
    }
    enter(l, WT_STEP_DROPPING);
    submit(l, v->drop, (struct wt_req){.op = WT_OP_REMOVE}, on_dropped);
}

/* The copy is there, or none was asked for. */
static void copied(struct wt_lane *l) {
    if (l->move->drop < 0) {
        end(l);
        return;
    }
    enter(l, WT_STEP_CHECKING);
    submit(l, 0, (struct wt_req){.op = WT_OP_STAT}, on_checked);
}

/* ---- ends of a copy ---- */

static void open_put(struct wt_lane *l);

/* The damaged copy is gone, or there still: the copy that is asked for replaces it, or waits. */
static void repaired(struct wt_lane *l, const struct wt_req *req) {
    struct wt_move *v = l->move;
    if (req->rc < 0 && req->rc != WT_EMISSING) {
        note_error(l, req->rc, &req->err);
    } else {
        /* Its size is not known: the tier says itself, soon, how much more room it has. */
        wt_catalog_lose(wt_mover_catalog(v->mover), v->set, v->shard, (uint32_t)v->bad);
        v->bad = -1;
    }
    if (l->cancel)
        note_error(l, WT_ECANCELED, NULL);
    if (l->err.code || v->to < 0)
        end(l);
    else
        open_put(l);
}

static void on_purged(struct wt_req *req) {
    struct wt_lane *l = lane_of(req);
    struct wt_move *v = l->move;
    /* Still there: known, so that it is not taken for free room, until it is met again. */
    if (req->rc < 0 && req->rc != WT_EMISSING)
        wt_catalog_hold(wt_mover_catalog(v->mover), v->set, v->shard, (uint32_t)l->purging,
                        wt_mover_now_s(v->mover), false);
    if (v->bad >= 0)
        repaired(l, req);
    else
        end(l);
}

static void purge(struct wt_lane *l, int tier) {
    l->purging = tier;
    enter(l, WT_STEP_PURGING);
    submit(l, tier, (struct wt_req){.op = WT_OP_REMOVE}, on_purged);
}

/* The attempt failed; nothing of it is open any more. */
static void failed(struct wt_lane *l) {
    struct wt_move *v = l->move;
    if (l->broken > 0) {
        wt_catalog_lose(wt_mover_catalog(v->mover), v->set, v->shard, (uint32_t)l->broken);
        if (l->purge && !l->cancel) {
            purge(l, l->broken);
            return;
        }
    }
    end(l);
}

static void on_aborted(struct wt_req *req) {
    struct wt_lane *l = lane_of(req);
    l->put = NULL;
    failed(l);
}

static void abort_put(struct wt_lane *l) {
    enter(l, WT_STEP_ABORTING);
    if (!l->put) {
        failed(l);
        return;
    }
    submit(l, l->move->to, (struct wt_req){.op = WT_OP_PUT_ABORT, .put = l->put}, on_aborted);
}

static void hold(struct wt_lane *l) {
    struct wt_move *v = l->move;
    wt_catalog_hold(wt_mover_catalog(v->mover), v->set, v->shard, (uint32_t)v->to,
                    wt_mover_now_s(v->mover), true);
}

static void on_adopted(struct wt_req *req) {
    struct wt_lane *l = lane_of(req);
    if (req->rc == 0 && req->size == l->move->size) {
        /* Perhaps the tier has not said yet that it is full to there. */
        wt_mover_count(l->move->mover, l->move->to, (int64_t)l->move->size);
        hold(l); /* published whole, under a name that carries its hash */
        copied(l);
        return;
    }
    if (req->rc < 0) {
        note_error(l, req->rc, &req->err);
        end(l);
        return;
    }
    wt_err_set(&l->err, WT_EEXISTS,
               "%s: an object of %" PRIu64 " bytes stands in its place; removed, tried again",
               l->key, req->size);
    purge(l, l->move->to);
}

static void adopt(struct wt_lane *l) {
    enter(l, WT_STEP_ADOPTING);
    submit(l, l->move->to, (struct wt_req){.op = WT_OP_STAT}, on_adopted);
}

static void on_committed(struct wt_req *req) {
    struct wt_lane *l = lane_of(req);
    l->put = NULL;
    if (req->rc == WT_EEXISTS) {
        adopt(l);
        return;
    }
    if (req->rc < 0) {
        l->move->unknown = true;
        note_error(l, req->rc, &req->err);
        end(l);
        return;
    }
    wt_mover_count(l->move->mover, l->move->to, (int64_t)l->move->size);
    hold(l);
    copied(l);
}

/* Every byte was written: is it the shard? */
static void verify(struct wt_lane *l) {
    struct wt_move *v = l->move;
    if (!wt_hash_equal(wt_hasher_end(l->hasher), l->hash)) {
        wt_err_set(
            &l->err, WT_ECORRUPT,
            "%s: the copy in tier %s is damaged (its bytes do not have the hash in its name)",
            l->key, wt_tier_name(wt_mover_tier(v->mover, v->from)));
        l->broken = v->from;
        l->purge = true;
        abort_put(l);
        return;
    }
    if (!wt_mover_may(v->mover)) {
        wt_err_set(&l->err, WT_ELOCKED, "%s: the lock is no longer held", l->key);
        abort_put(l);
        return;
    }
    enter(l, WT_STEP_COMMITTING);
    submit(l, v->to, (struct wt_req){.op = WT_OP_PUT_COMMIT, .put = l->put}, on_committed);
}

/* ---- copying ---- */

static void pump(struct wt_lane *l);

static void part_failed(struct wt_lane *l, const struct wt_req *req, bool source) {
    note_error(l, req->rc, &req->err);
    if (source && l->broken < 0 && wt_err_blame(req->rc) == WT_BLAME_OBJECT) {
        l->broken = l->move->from;
        l->purge = req->rc == WT_ECORRUPT;
    }
}

static void on_written(struct wt_req *req) {
    struct wt_slot *s = req->arg;
    struct wt_lane *l = s->lane;
    s->state = WT_SLOT_FREE;
    l->in_flight--;
    if (req->rc < 0)
        part_failed(l, req, false);
    else
        l->written += s->len;
    pump(l);
}

static void on_read(struct wt_req *req) {
    struct wt_slot *s = req->arg;
    struct wt_lane *l = s->lane;
    l->in_flight--;
    s->state = req->rc == 0 ? WT_SLOT_READ : WT_SLOT_FREE;
    if (req->rc < 0) {
        part_failed(l, req, true);
    } else if (req->got != s->len) {
        wt_err_set(&l->err, WT_ECORRUPT,
                   "%s: the copy in tier %s is shorter than %" PRIu64 " bytes", l->key,
                   wt_tier_name(wt_mover_tier(l->move->mover, l->move->from)), l->move->size);
        l->broken = l->move->from;
        l->purge = true;
    }
    pump(l);
}

static void slot_submit(struct wt_slot *s, int tier, struct wt_req req) {
    struct wt_lane *l = s->lane;
    s->req = req;
    s->req.key = l->key;
    s->req.arg = s;
    s->req.off = s->part * (uint64_t)WT_PART;
    s->req.len = s->len;
    int rc = wt_tier_submit(wt_mover_tier(l->move->mover, tier), &s->req);
    if (rc == 0) {
        l->in_flight++;
        return;
    }
    s->state = WT_SLOT_FREE;
    note_error(l, rc, &s->req.err);
}

static void read_part(struct wt_slot *s) {
    struct wt_lane *l = s->lane;
    s->part = l->next_get++;
    uint64_t left = l->move->size - s->part * (uint64_t)WT_PART;
    s->len = left < WT_PART ? (size_t)left : (size_t)WT_PART;
    s->state = WT_SLOT_READING;
    slot_submit(
        s, l->move->from,
        (struct wt_req){.op = WT_OP_GET, .flags = WT_GET_ONCE, .buf = s->buf, .done = on_read});
}

/* Parts may arrive in any order; they are hashed and written in theirs. */
static bool write_next(struct wt_lane *l) {
    for (uint32_t i = 0; i < l->n_slots; i++) {
        struct wt_slot *s = &l->slot[i];
        if (s->state != WT_SLOT_READ || s->part != l->next_hash)
            continue;
        wt_hasher_add(l->hasher, s->buf, s->len);
        l->next_hash++;
        s->state = WT_SLOT_WRITING;
        slot_submit(s, l->move->to,
                    (struct wt_req){
                        .op = WT_OP_PUT_WRITE, .src = s->buf, .put = l->put, .done = on_written});
        return true;
    }
    return false;
}

static void pump(struct wt_lane *l) {
    if (l->cancel)
        note_error(l, WT_ECANCELED, NULL);
    while (!l->err.code && write_next(l))
        continue;
    for (uint32_t i = 0; i < l->n_slots && !l->err.code && l->next_get < l->parts; i++)
        if (l->slot[i].state == WT_SLOT_FREE)
            read_part(&l->slot[i]);
    if (l->in_flight)
        return;
    if (l->err.code)
        abort_put(l);
    else
        verify(l);
}

static void on_opened(struct wt_req *req) {
    struct wt_lane *l = lane_of(req);
    if (req->rc == WT_EEXISTS) {
        adopt(l);
        return;
    }
    if (req->rc < 0) {
        note_error(l, req->rc, &req->err);
        end(l);
        return;
    }
    l->put = req->put;
    if (l->cancel) {
        note_error(l, WT_ECANCELED, NULL);
        abort_put(l);
        return;
    }
    enter(l, WT_STEP_COPYING);
    pump(l);
}

/* ---- start and cancel ---- */

/* The cheapest tier that holds the shard and is up; cold, up or not, when there is no other. */
static int pick_source(const struct wt_move *v) {
    uint8_t mask = v->set->shard[v->shard].mask;
    int best = 0;
    double best_cost = wt_tier_cost(wt_mover_tier(v->mover, 0), v->size);
    for (int t = 1; t < (int)wt_mover_catalog(v->mover)->n_tiers; t++) {
        struct wt_tier *tier = wt_mover_tier(v->mover, t);
        if (!(mask & (1u << t)) || t == v->to || wt_tier_is_down(tier))
            continue;
        double cost = wt_tier_cost(tier, v->size);
        if (cost < best_cost) {
            best = t;
            best_cost = cost;
        }
    }
    return best;
}

static void prepare(struct wt_lane *l) {
    struct wt_move *v = l->move;
    struct wt_shard_rec rec;
    wt_catalog_rec(v->set, v->shard, &rec);
    wt_shard_name(v->set->d.m.name, v->shard, &rec, l->key);
    l->hash = rec.hash;
    l->put = NULL;
    l->ctl_busy = false;
    l->in_flight = 0;
    l->parts = (rec.size + WT_PART - 1) / WT_PART;
    l->next_get = l->next_hash = l->written = 0;
    l->err = (struct wt_err){0};
    l->broken = -1;
    l->purge = l->cancel = false;
    wt_hasher_reset(l->hasher);
    for (uint32_t i = 0; i < l->n_slots; i++)
        l->slot[i].state = WT_SLOT_FREE;
}

static void open_put(struct wt_lane *l) {
    struct wt_move *v = l->move;
    v->from = pick_source(v);
    enter(l, WT_STEP_OPENING);
    submit(l, v->to, (struct wt_req){.op = WT_OP_PUT_OPEN, .size = v->size}, on_opened);
}

void wt_move_start(struct wt_lane *l) {
    struct wt_move *v = l->move;
    prepare(l);
    v->from = -1;
    if (v->bad >= 0) {
        purge(l, v->bad);
        return;
    }
    if (v->to < 0 || (v->set->shard[v->shard].mask & (1u << v->to))) {
        copied(l);
        return;
    }
    open_put(l);
}

void wt_move_cancel(struct wt_lane *l) {
    l->cancel = true;
    /* What publishes, takes back or removes is let end: it is short, and its outcome is then known.
     */
    bool open = l->move->step == WT_STEP_OPENING || l->move->step == WT_STEP_CHECKING;
    if (l->ctl_busy && open)
        wt_tier_cancel(&l->ctl);
    for (uint32_t i = 0; i < l->n_slots; i++)
        if (l->slot[i].state == WT_SLOT_READING || l->slot[i].state == WT_SLOT_WRITING)
            wt_tier_cancel(&l->slot[i].req);
}
