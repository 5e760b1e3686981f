/*
 * Reading a copy back and judging it by the hash in its name: one that was just made in cold, and
 * one that somebody called damaged; see move.c for where it stands among the steps.
 *
 * Happy path: the copy is whole: cold is believed in, or the copy stays. Failures: cold does not
 * read back: the next attempt replaces it; a copy that is damaged is dropped, after the look at
 * cold that every drop takes, but for the only one that counts, which stays for people to save; a
 * tier that does not answer leaves everything as it was.
 */
#include "daemon/mover_internal.h"

#include <inttypes.h>

void wt_move_prove(struct wt_lane *l, int tier) {
    wt_move_enter(l, WT_STEP_PROVING);
    wt_move_rewind(l);
    l->proof = tier;
    wt_move_pump(l);
}

static void cold_proved(struct wt_lane *l, bool whole) {
    struct wt_move *v = l->move;
    if (whole) {
        wt_catalog_hold(wt_mover_catalog(v->mover), v->set, v->shard, 0, wt_mover_now_s(v->mover),
                        true);
        wt_move_copied(l);
        return;
    }
    /* What lies there is not the shard, whoever put it: not to be adopted again. A tier that does
     * not answer says nothing of it: it may be good. */
    bool bad = wt_err_blame(l->err.code) == WT_BLAME_OBJECT;
    v->anew = v->anew || bad;
    v->proves = !bad;
    wt_move_end(l);
}

static void judge_copy(struct wt_lane *l, bool whole) {
    struct wt_move *v = l->move;
    struct wt_catalog *c = wt_mover_catalog(v->mover);
    uint32_t tier = (uint32_t)l->proof;
    uint8_t bit = (uint8_t)(1u << tier);
    if (whole) {
        v->set->shard[v->shard].sure |= v->set->shard[v->shard].mask & bit;
        wt_move_end(l);
        return;
    }
    bool counts = wt_catalog_truth(v->set, v->shard) == tier;
    if (!counts && l->err.code == WT_EMISSING) {
        wt_catalog_lose(c, v->set, v->shard, tier);
        l->err = (struct wt_err){0};
    } else if (!counts && l->err.code == WT_ECORRUPT) {
        wt_log(wt_mover_log(v->mover), WT_LOG_WARN, "%s; it is dropped", l->err.text);
        l->err = (struct wt_err){0};
        wt_mover_drop_too(v, (int)tier);
        wt_move_copied(l);
        return;
    }
    wt_move_end(l);
}

void wt_move_proved(struct wt_lane *l) {
    struct wt_move *v = l->move;
    if (!l->err.code && !wt_hash_equal(wt_hasher_end(l->hasher), l->hash))
        wt_err_set(
            &l->err, WT_ECORRUPT,
            "%s: the copy in tier %s is damaged (its bytes do not have the hash in its name)",
            l->key, wt_tier_name(wt_mover_tier(v->mover, l->proof)));
    if (v->check >= 0)
        judge_copy(l, !l->err.code);
    else
        cold_proved(l, !l->err.code);
}
