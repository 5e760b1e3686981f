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
 * What was copied into cold is read back (PROVING) before anybody counts on it, and so is an object
 * that was there already; a copy that somebody calls damaged is judged by the same step, which then
 * leads to CHECKING and DROPPING, or to the end.
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
    [WT_STEP_QUEUED] = BIT(OPENING) | BIT(CHECKING) | BIT(PURGING) | BIT(PROVING) | BIT(ENDED),
    [WT_STEP_OPENING] = BIT(COPYING) | BIT(ADOPTING) | BIT(ABORTING) | BIT(ENDED),
    [WT_STEP_COPYING] = BIT(COMMITTING) | BIT(ABORTING),
    [WT_STEP_COMMITTING] = BIT(ADOPTING) | BIT(PROVING) | BIT(CHECKING) | BIT(ENDED),
    [WT_STEP_ADOPTING] = BIT(PROVING) | BIT(CHECKING) | BIT(PURGING) | BIT(ENDED),
    [WT_STEP_PROVING] = BIT(CHECKING) | BIT(ENDED),
    [WT_STEP_ABORTING] = BIT(PURGING) | BIT(ENDED),
    [WT_STEP_PURGING] = BIT(OPENING) | BIT(ENDED),
    [WT_STEP_CHECKING] = BIT(DROPPING) | BIT(ENDED),
    [WT_STEP_DROPPING] = BIT(ENDED),
};

static const char *const names[WT_STEP_COUNT] = {"queued",     "waiting",  "opening",  "copying",
                                                 "committing", "adopting", "proving",  "aborting",
                                                 "purging",    "checking", "dropping", "ended"};

const char *wt_step_name(enum wt_step step) {
    return names[step];
}

void wt_move_enter(struct wt_lane *l, enum wt_step step) {
    if (!(follows[l->move->step] & (1u << step)))
        wt_log(wt_mover_log(l->move->mover), WT_LOG_ERROR, "move of %s: step %s after %s", l->key,
               names[step], names[l->move->step]);
    l->move->step = step;
}

void wt_move_end(struct wt_lane *l) {
    wt_move_enter(l, WT_STEP_ENDED);
    wt_move_ended(l);
}

/* The first error of an attempt counts. */
void wt_move_note(struct wt_lane *l, int rc, const struct wt_err *err) {
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
        wt_move_note(l, req->rc, &req->err);
        v->set->shard[v->shard].sure &= (uint8_t) ~(1u << v->drop); /* it may be gone */
    }
    wt_move_end(l);
}

static void on_checked(struct wt_req *req) {
    struct wt_lane *l = lane_of(req);
    struct wt_move *v = l->move;
    if (req->rc < 0) {
        wt_move_note(l, req->rc, &req->err);
        if (req->rc == WT_EMISSING)
            l->broken = 0;
    } else if (req->size != v->size) {
        wt_err_set(&l->err, WT_ECORRUPT,
                   "%s: the copy in tier %s, which everybody counts on, has %" PRIu64
                   " bytes instead of %" PRIu64 "; verify the data set",
                   l->key, wt_tier_name(wt_mover_tier(v->mover, l->truth)), req->size, v->size);
        l->broken = 0;
    }
    if (l->err.code || l->cancel) {
        wt_move_note(l, WT_ECANCELED, NULL);
        wt_move_end(l);
        return;
    }
    wt_move_enter(l, WT_STEP_DROPPING);
    submit(l, v->drop, (struct wt_req){.op = WT_OP_REMOVE}, on_dropped);
}

/* The copy is there, or none was asked for. */
void wt_move_copied(struct wt_lane *l) {
    if (l->move->drop < 0) {
        wt_move_end(l);
        return;
    }
    l->truth = (int)wt_catalog_truth(l->move->set, l->move->shard);
    wt_move_enter(l, WT_STEP_CHECKING);
    submit(l, l->truth, (struct wt_req){.op = WT_OP_STAT}, on_checked);
}

/* ---- ends of a copy ---- */

static void open_put(struct wt_lane *l);

/* The damaged copy is gone, or there still: the copy that is asked for replaces it, or waits. */
static void repaired(struct wt_lane *l, const struct wt_req *req) {
    struct wt_move *v = l->move;
    if (req->rc < 0 && req->rc != WT_EMISSING) {
        wt_move_note(l, req->rc, &req->err);
    } else {
        /* Its size is not known: the tier says itself, soon, how much more room it has. */
        wt_catalog_lose(wt_mover_catalog(v->mover), v->set, v->shard, (uint32_t)v->bad);
        v->bad = -1;
    }
    if (l->cancel)
        wt_move_note(l, WT_ECANCELED, NULL);
    if (l->err.code || v->to < 0)
        wt_move_end(l);
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
        wt_move_end(l);
}

static void purge(struct wt_lane *l, int tier) {
    l->purging = tier;
    wt_move_enter(l, WT_STEP_PURGING);
    submit(l, tier, (struct wt_req){.op = WT_OP_REMOVE}, on_purged);
}

/* The attempt failed; nothing of it is open any more. */
static void failed(struct wt_lane *l) {
    struct wt_move *v = l->move;
    /* Into cold, or out of the only copy that counts: what is damaged stays, for people to save
     * what they can; the next attempt reads another one. */
    bool keep = v->to == 0 || (uint32_t)l->broken == wt_catalog_truth(v->set, v->shard);
    if (l->broken > 0 && l->purge && keep) {
        v->avoid |= (uint8_t)(1u << l->broken);
        wt_move_end(l);
        return;
    }
    if (l->broken > 0) {
        wt_catalog_lose(wt_mover_catalog(v->mover), v->set, v->shard, (uint32_t)l->broken);
        if (l->purge && !l->cancel) {
            purge(l, l->broken);
            return;
        }
    }
    wt_move_end(l);
}

static void on_aborted(struct wt_req *req) {
    struct wt_lane *l = lane_of(req);
    l->put = NULL;
    failed(l);
}

static void abort_put(struct wt_lane *l) {
    wt_move_enter(l, WT_STEP_ABORTING);
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
    if (req->rc == 0 && req->size == l->move->size && l->move->to == 0) {
        wt_move_prove(l, 0);
        return;
    }
    if (req->rc == 0 && req->size == l->move->size) {
        /* Perhaps the tier has not said yet that it is full to there. */
        wt_mover_count(l->move->mover, l->move->to, (int64_t)l->move->size);
        hold(l); /* published whole, under a name that carries its hash */
        wt_move_copied(l);
        return;
    }
    if (req->rc < 0) {
        wt_move_note(l, req->rc, &req->err);
        wt_move_end(l);
        return;
    }
    wt_err_set(&l->err, WT_EEXISTS,
               "%s: an object of %" PRIu64 " bytes stands in its place; replaced, tried again",
               l->key, req->size);
    if (l->move->to == 0) { /* nothing goes from cold before the right bytes are at hand */
        l->move->anew = true;
        wt_move_end(l);
        return;
    }
    purge(l, l->move->to);
}

static void adopt(struct wt_lane *l) {
    wt_move_enter(l, WT_STEP_ADOPTING);
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
        l->move->unknown = l->move->to != 0; /* cold is proved before it is believed in */
        l->move->proves = l->move->to == 0;
        wt_move_note(l, req->rc, &req->err);
        wt_move_end(l);
        return;
    }
    wt_mover_count(l->move->mover, l->move->to, (int64_t)l->move->size);
    if (l->move->to == 0) {
        wt_move_prove(l, 0);
        return;
    }
    hold(l);
    wt_move_copied(l);
}

/* ---- copying ---- */

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
    wt_move_enter(l, WT_STEP_COMMITTING);
    submit(l, v->to, (struct wt_req){.op = WT_OP_PUT_COMMIT, .put = l->put}, on_committed);
}

void wt_move_parts_done(struct wt_lane *l) {
    if (l->proof >= 0)
        wt_move_proved(l);
    else if (l->err.code)
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
        wt_move_note(l, req->rc, &req->err);
        wt_move_end(l);
        return;
    }
    l->put = req->put;
    if (l->cancel) {
        wt_move_note(l, WT_ECANCELED, NULL);
        abort_put(l);
        return;
    }
    wt_move_enter(l, WT_STEP_COPYING);
    wt_move_pump(l);
}

/* ---- start and cancel ---- */

/* The cheapest tier that holds the shard, was not found damaged, and is up; failing that one that
 * is down; -1: none. */
static int pick_source(const struct wt_move *v) {
    uint8_t mask = v->set->shard[v->shard].mask & (uint8_t)~v->avoid;
    int best = -1, any = -1;
    double best_cost = 0;
    for (int t = 0; t < (int)wt_mover_catalog(v->mover)->n_tiers; t++) {
        struct wt_tier *tier = wt_mover_tier(v->mover, t);
        if (!(mask & (1u << t)) || t == v->to)
            continue;
        any = any < 0 ? t : any;
        double cost = wt_tier_cost(tier, v->size);
        if (!wt_tier_is_down(tier) && (best < 0 || cost < best_cost)) {
            best = t;
            best_cost = cost;
        }
    }
    return best >= 0 ? best : any;
}

static void prepare(struct wt_lane *l) {
    struct wt_move *v = l->move;
    struct wt_shard_rec rec;
    wt_catalog_rec(v->set, v->shard, &rec);
    wt_shard_name(v->set->d.m.name, v->shard, &rec, l->key);
    l->hash = rec.hash;
    l->put = NULL;
    l->ctl_busy = false;
    l->parts = (rec.size + WT_PART - 1) / WT_PART;
    l->err = (struct wt_err){0};
    l->broken = -1;
    l->purge = l->cancel = false;
    l->proof = -1;
    wt_move_rewind(l);
}

static void open_put(struct wt_lane *l) {
    struct wt_move *v = l->move;
    v->from = pick_source(v);
    if (v->from < 0) {
        l->err = v->err; /* of the last copy that there was */
        if (!v->err.code)
            wt_err_set(&l->err, WT_EMISSING, "%s: no other tier has a copy of it", l->key);
        l->broken = 0;
        wt_move_end(l);
        return;
    }
    wt_move_enter(l, WT_STEP_OPENING);
    submit(l, v->to,
           (struct wt_req){
               .op = WT_OP_PUT_OPEN, .size = v->size, .flags = v->anew ? WT_PUT_REPLACE : 0},
           on_opened);
}

void wt_move_start(struct wt_lane *l) {
    struct wt_move *v = l->move;
    prepare(l);
    v->from = v->check;
    if (v->check >= 0) {
        wt_move_prove(l, v->check);
        return;
    }
    if (v->bad >= 0) {
        purge(l, v->bad);
        return;
    }
    if (v->proves) {
        v->proves = false;
        wt_move_prove(l, 0);
        return;
    }
    if (v->to < 0 || (!v->anew && (v->set->shard[v->shard].mask & (1u << v->to)))) {
        wt_move_copied(l);
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
