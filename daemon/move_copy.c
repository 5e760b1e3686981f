/*
 * The bytes of one move: parts are read, several at a time, hashed in order, and written where it
 * is a copy (a proof only reads). Ends with wt_move_parts_done when all is done, or the first error
 * is known and nothing is in flight any more.
 */
#include "daemon/mover_internal.h"

#include <inttypes.h>

static int source_of(const struct wt_lane *l) {
    return l->proof >= 0 ? l->proof : l->move->from;
}

static void part_failed(struct wt_lane *l, const struct wt_req *req, bool source) {
    wt_move_note(l, req->rc, &req->err);
    if (source && l->proof < 0 && l->broken < 0 && wt_err_blame(req->rc) == WT_BLAME_OBJECT) {
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
    wt_move_pump(l);
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
                   wt_tier_name(wt_mover_tier(l->move->mover, source_of(l))), l->move->size);
        if (l->proof < 0) {
            l->broken = l->move->from;
            l->purge = true;
        }
    }
    wt_move_pump(l);
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
    wt_move_note(l, rc, &s->req.err);
}

static void read_part(struct wt_slot *s) {
    struct wt_lane *l = s->lane;
    s->part = l->next_get++;
    uint64_t left = l->move->size - s->part * (uint64_t)WT_PART;
    s->len = left < WT_PART ? (size_t)left : (size_t)WT_PART;
    s->state = WT_SLOT_READING;
    slot_submit(
        s, source_of(l),
        (struct wt_req){.op = WT_OP_GET, .flags = WT_GET_ONCE, .buf = s->buf, .done = on_read});
}

/* Parts may arrive in any order; they are hashed, and written, in theirs. */
static bool write_next(struct wt_lane *l) {
    for (uint32_t i = 0; i < l->n_slots; i++) {
        struct wt_slot *s = &l->slot[i];
        if (s->state != WT_SLOT_READ || s->part != l->next_hash)
            continue;
        wt_hasher_add(l->hasher, s->buf, s->len);
        l->next_hash++;
        if (l->proof >= 0) {
            s->state = WT_SLOT_FREE;
            return true;
        }
        s->state = WT_SLOT_WRITING;
        slot_submit(s, l->move->to,
                    (struct wt_req){
                        .op = WT_OP_PUT_WRITE, .src = s->buf, .put = l->put, .done = on_written});
        return true;
    }
    return false;
}

void wt_move_pump(struct wt_lane *l) {
    if (l->cancel)
        wt_move_note(l, WT_ECANCELED, NULL);
    while (!l->err.code && write_next(l))
        continue;
    for (uint32_t i = 0; i < l->n_slots && !l->err.code && l->next_get < l->parts; i++)
        if (l->slot[i].state == WT_SLOT_FREE)
            read_part(&l->slot[i]);
    if (l->in_flight)
        return;
    wt_move_parts_done(l);
}

void wt_move_rewind(struct wt_lane *l) {
    l->in_flight = 0;
    l->next_get = l->next_hash = l->written = 0;
    wt_hasher_reset(l->hasher);
    for (uint32_t i = 0; i < l->n_slots; i++)
        l->slot[i].state = WT_SLOT_FREE;
}
