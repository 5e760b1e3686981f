/* Warm and evict requests; see requests.h. */
#include "daemon/requests.h"

#include "core/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURN_MS = 100, SLICE = 50000, PROBE_MS = 2000 };

struct wt_requests {
    struct wt_requests_opts o;
    uv_timer_t timer;
    struct wt_request *first;
    size_t count, running;
    uint64_t ever, probed_ms;
    void (*stopped)(void *arg);
    void *stopped_arg;
};

struct wt_requests *wt_requests_new(const struct wt_requests_opts *opts) {
    struct wt_requests *rs = wt_calloc(1, sizeof *rs);
    if (!rs)
        return NULL;
    rs->o = *opts;
    uv_timer_init(opts->loop, &rs->timer);
    rs->timer.data = rs;
    return rs;
}

static void free_request(struct wt_request *r) {
    wt_selection_free(&r->selection);
    free(r->pending);
    free(r);
}

void wt_requests_free(struct wt_requests *rs) {
    while (rs && rs->first) {
        struct wt_request *r = rs->first;
        rs->first = r->next;
        free_request(r);
    }
    free(rs);
}

const struct wt_request *wt_requests_first(const struct wt_requests *rs) {
    return rs->first;
}
size_t wt_requests_running(const struct wt_requests *rs) {
    return rs->running;
}

const struct wt_request *wt_requests_find(const struct wt_requests *rs, const char *id) {
    for (const struct wt_request *r = rs->first; r; r = r->next) {
        char own[32];
        snprintf(own, sizeof own, "%c%" PRIu64, r->evict ? 'e' : 'w', r->number);
        if (strcmp(own, id) == 0)
            return r;
    }
    return NULL;
}

static uint64_t now_ms(const struct wt_requests *rs) {
    return uv_now(rs->o.loop);
}

/* ---- what shards are told ---- */

static void want(struct wt_requests *rs, const struct wt_request *r, bool on) {
    for (uint64_t k = UINT64_MAX; wt_selection_next(&r->selection, &k);) {
        const struct wt_shard_state *s = &r->set->shard[k];
        uint8_t mask = on ? s->want | r->tiers : s->want & (uint8_t)~r->tiers;
        wt_catalog_keep(rs->o.catalog, r->set, k, s->pin, mask);
    }
}

static void bar(const struct wt_request *r, bool on) {
    for (uint64_t k = UINT64_MAX; wt_selection_next(&r->selection, &k);) {
        struct wt_shard_state *s = &r->set->shard[k];
        s->barred = on ? s->barred | r->tiers : s->barred & (uint8_t)~r->tiers;
        if (on)
            s->heat = 0;
    }
}

/* Takes back what the request told its shards, but for what others still want of them. */
static void let_go(struct wt_requests *rs, struct wt_request *r) {
    struct wt_catalog_set *set = r->set;
    if (r->evict)
        bar(r, false);
    else
        want(rs, r, false);
    r->set = NULL;
    set->moves--;
    for (const struct wt_request *o = rs->first; o; o = o->next)
        if (o->set == set && o->evict == r->evict) {
            if (o->evict)
                bar(o, true);
            else if (o->state == WT_REQUEST_RUNNING)
                want(rs, o, true);
        }
    wt_selection_free(&r->selection);
}

/* ---- how shards and requests end ---- */

static void add_reason(struct wt_request *r, int code, const char *text) {
    unsigned i = 0;
    while (i < r->n_reasons && strcmp(r->reason[i].text, text) != 0)
        i++;
    if (i == WT_REASONS)
        i--;
    else if (i == r->n_reasons) {
        r->reason[i] = (struct wt_reason){.code = code};
        snprintf(r->reason[i].text, sizeof r->reason[i].text, "%s", text);
        r->n_reasons++;
    }
    r->reason[i].shards++;
}

static void shard_failed(struct wt_request *r, uint64_t shard, int code, const char *text) {
    r->failed++;
    r->failed_bytes += wt_catalog_size(r->set, shard);
    add_reason(r, code, text);
}

static void fail_rest(struct wt_request *r, int code, const char *text) {
    for (size_t i = 0; i < r->n_pending; i++)
        shard_failed(r, r->pending[i], code, text);
    r->n_pending = 0;
}

static void end(struct wt_requests *rs, struct wt_request *r, enum wt_request_state state) {
    r->state = state;
    r->ended_ms = now_ms(rs);
    rs->running--;
    free(r->pending);
    r->pending = NULL;
    r->n_pending = 0;
    if (r->evict && state != WT_REQUEST_CANCELED)
        bar(r, true); /* what was read meanwhile does not count either */
    else
        let_go(rs, r);
    wt_planner_kick(rs->o.planner);
    rs->o.ended(rs->o.arg, r);
}

/* ---- progress ---- */

enum step { STAYS, DONE, FAILED };

static enum step step_warm(struct wt_request *r, const struct wt_shard_state *s) {
    if (s->mask & s->sure & r->tiers)
        return DONE;
    return s->flags & WT_SHARD_ASIDE ? FAILED : STAYS;
}

static enum step step_evict(struct wt_requests *rs, struct wt_request *r,
                            const struct wt_shard_state *s, uint64_t shard) {
    uint8_t there = s->mask & r->tiers;
    if (s->flags & WT_SHARD_BUSY)
        return STAYS;
    if (!there)
        return DONE;
    if (s->flags & WT_SHARD_ASIDE)
        return FAILED;
    int tier = 31 - __builtin_clz(there);
    wt_mover_add(rs->o.mover, r->set, shard, -1, tier); /* refused: the next turn tries again */
    return STAYS;
}

static void fail_aside(struct wt_requests *rs, struct wt_request *r, uint64_t shard) {
    int code = WT_EIO;
    const char *text = wt_mover_why_aside(rs->o.mover, r->set, shard, &code);
    shard_failed(r, shard, code, text ? text : "it was set aside; see GET /v1/moves, then reload");
}

static void turn(struct wt_requests *rs, struct wt_request *r) {
    uint64_t before = r->done + r->failed;
    for (unsigned n = 0; n < SLICE && n < r->n_pending + 1 && r->n_pending; n++) {
        if (r->at >= r->n_pending)
            r->at = 0;
        uint64_t shard = r->pending[r->at];
        const struct wt_shard_state *s = &r->set->shard[shard];
        enum step step = r->evict ? step_evict(rs, r, s, shard) : step_warm(r, s);
        if (step == STAYS) {
            r->at++;
            continue;
        }
        r->pending[r->at] = r->pending[--r->n_pending];
        if (step == FAILED) {
            fail_aside(rs, r, shard);
        } else {
            r->done++;
            r->done_bytes += wt_catalog_size(r->set, shard);
        }
    }
    if (r->done + r->failed != before) {
        r->progress_ms = now_ms(rs);
        r->waits = (struct wt_reason){0};
    }
}

/* Too long without one step: with the reason why the moves failed, or were not even given. */
static void give_up(struct wt_requests *rs, struct wt_request *r) {
    uint64_t size = wt_catalog_size(r->set, r->pending[0]);
    uint32_t tier = 31 - (uint32_t)__builtin_clz(r->tiers);
    if (r->waits.code)
        fail_rest(r, r->waits.code, r->waits.text);
    else if (!r->evict && !wt_planner_room(rs->o.planner, tier, size))
        fail_rest(r, WT_EFULL,
                  "the tier has no room: what others put there, or what is kept there, stays");
    else
        fail_rest(r, WT_ETIMEDOUT, "nothing came forward for as long as asked");
}

static void look_after(struct wt_requests *rs, struct wt_request *r) {
    if (r->set->retired) {
        fail_rest(r, WT_ECHANGED, "the data set was replaced by a new generation");
    } else {
        turn(rs, r);
        if (r->n_pending && now_ms(rs) - r->progress_ms >= r->patience_ms)
            give_up(rs, r);
    }
    if (r->n_pending == 0)
        end(rs, r, r->failed ? WT_REQUEST_FAILED : WT_REQUEST_DONE);
}

/* Which copies there are is asked again, for a tier may have been away. */
static void probe(struct wt_requests *rs) {
    if (now_ms(rs) - rs->probed_ms < PROBE_MS)
        return;
    rs->probed_ms = now_ms(rs);
    wt_reconcile_kick(rs->o.reconcile);
}

static void on_timer(uv_timer_t *timer) {
    struct wt_requests *rs = timer->data;
    bool busy = false, running = false;
    for (struct wt_request *r = rs->first; r; r = r->next) {
        if (r->state == WT_REQUEST_RUNNING)
            look_after(rs, r);
        else if (r->set && now_ms(rs) - r->ended_ms >= r->hold_ms)
            let_go(rs, r);
        running = running || r->state == WT_REQUEST_RUNNING;
        busy = busy || r->set;
    }
    if (running) {
        wt_planner_kick(rs->o.planner);
        probe(rs);
    }
    if (!busy)
        uv_timer_stop(timer);
}

/* ---- begin ---- */

int wt_requests_fit(const struct wt_requests *rs, const struct wt_catalog_set *set,
                    const struct wt_selection *s, uint32_t tier, struct wt_err *err) {
    uint64_t more = 0, mark = wt_planner_mark(rs->o.planner, tier);
    uint64_t kept = rs->o.catalog->kept[tier] + rs->o.catalog->landed[tier];
    for (size_t i = 0; i < s->n; i++)
        more += wt_catalog_unkept(set, s->range[i].first, s->range[i].end, tier);
    if (kept <= mark && more <= mark - kept)
        return 0;
    return wt_err_set(err, WT_EFULL,
                      "it needs %" PRIu64 " bytes more in the tier, which takes %" PRIu64
                      " of which %" PRIu64
                      " are pinned, landed or asked for; unpin some, or select "
                      "less",
                      more, mark, kept);
}

static int check_free(const struct wt_request *r, struct wt_err *err) {
    uint64_t kept = 0, landed = 0;
    for (uint64_t k = UINT64_MAX; wt_selection_next(&r->selection, &k);)
        landed += r->set->home > 0 && (r->tiers & (1u << r->set->home)) &&
                  wt_catalog_landed(r->set, k, (uint32_t)r->set->home);
    if (landed)
        return wt_err_set(err, WT_EEXISTS,
                          "%" PRIu64 " of its shards were landed there and are not flushed to cold "
                          "yet; wait for the flush, or run 'wafertier flush %s'",
                          landed, r->set->d.m.name);
    for (uint64_t k = UINT64_MAX; r->set->kept && wt_selection_next(&r->selection, &k);)
        kept += ((r->set->shard[k].pin | r->set->shard[k].want) & r->tiers) != 0;
    return kept ? wt_err_set(err, WT_EEXISTS,
                             "%" PRIu64 " of its shards are pinned there or being warmed; unpin "
                             "them or cancel that first",
                             kept)
                : 0;
}

/* Those that there is something to do about. What is in the tier already is asked for again. */
static int collect(struct wt_request *r, struct wt_err *err) {
    r->pending = malloc((size_t)(r->selection.shards + 1) * sizeof *r->pending);
    if (!r->pending)
        return wt_err_set(err, WT_ENOMEM, "no memory for %" PRIu64 " shards", r->selection.shards);
    for (uint64_t k = UINT64_MAX; wt_selection_next(&r->selection, &k);) {
        struct wt_shard_state *s = &r->set->shard[k];
        if (r->evict && !(s->mask & r->tiers) && !(s->flags & WT_SHARD_BUSY))
            continue;
        if (!r->evict)
            s->sure &= (uint8_t)~r->tiers;
        r->pending[r->n_pending++] = k;
        if (r->evict)
            r->total_bytes += wt_catalog_size(r->set, k);
    }
    if (!r->evict)
        r->total_bytes = r->selection.bytes;
    r->total = r->n_pending;
    return 0;
}

/* Forgets the oldest that has ended and holds nothing. */
static bool make_place(struct wt_requests *rs) {
    struct wt_request **at = &rs->first, **oldest = NULL;
    if (rs->count < WT_REQUESTS_MAX)
        return true;
    for (; *at; at = &(*at)->next)
        if (!(*at)->set)
            oldest = at;
    if (!oldest)
        return false;
    struct wt_request *r = *oldest;
    *oldest = r->next;
    free_request(r);
    rs->count--;
    return true;
}

static void begin(struct wt_requests *rs, struct wt_request *r) {
    r->number = ++rs->ever;
    r->began_ms = r->progress_ms = now_ms(rs);
    r->set->moves++;
    r->next = rs->first;
    rs->first = r;
    rs->count++;
    rs->running++;
    if (r->evict)
        bar(r, true);
    else
        want(rs, r, true);
    rs->probed_ms = now_ms(rs);
    wt_reconcile_kick(rs->o.reconcile);
    wt_planner_kick(rs->o.planner);
    uv_timer_start(&rs->timer, on_timer, 1, TURN_MS);
}

int wt_requests_add(struct wt_requests *rs, const struct wt_request *template,
                    struct wt_catalog_set *set, struct wt_selection *selection,
                    const struct wt_request **out, struct wt_err *err) {
    bool place = make_place(rs);
    struct wt_request *r = place ? wt_calloc(1, sizeof *r) : NULL;
    if (!r) {
        wt_selection_free(selection);
        return place ? wt_err_set(err, WT_ENOMEM, "no memory for a request")
                     : wt_err_set(err, WT_EBUSY, "%d requests run already; try later",
                                  WT_REQUESTS_MAX);
    }
    *r = *template;
    r->set = set;
    r->selection = *selection;
    uint32_t tier = 31 - (uint32_t)__builtin_clz(r->tiers);
    int rc = r->evict ? check_free(r, err) : wt_requests_fit(rs, set, &r->selection, tier, err);
    if (rc == 0)
        rc = collect(r, err);
    if (rc < 0) {
        free_request(r);
        return rc;
    }
    begin(rs, r);
    *out = r;
    return 0;
}

/* ---- from outside ---- */

void wt_requests_cancel(struct wt_requests *rs, const struct wt_request *request) {
    for (struct wt_request *r = rs->first; r; r = r->next)
        if (r == request && r->state == WT_REQUEST_RUNNING)
            end(rs, r, WT_REQUEST_CANCELED);
}

void wt_requests_abort(struct wt_requests *rs, const char *why) {
    for (struct wt_request *r = rs->first; r; r = r->next)
        if (r->state == WT_REQUEST_RUNNING) {
            fail_rest(r, WT_ELOCKED, why);
            end(rs, r, WT_REQUEST_FAILED);
        }
}

void wt_requests_trouble(struct wt_requests *rs, const struct wt_catalog_set *set, int code,
                         const char *text) {
    for (struct wt_request *r = rs->first; r; r = r->next)
        if (r->state == WT_REQUEST_RUNNING && r->set == set) {
            r->waits.code = code;
            snprintf(r->waits.text, sizeof r->waits.text, "%s", text);
        }
}

static void on_closed(uv_handle_t *h) {
    struct wt_requests *rs = h->data;
    rs->stopped(rs->stopped_arg); /* may free rs */
}

void wt_requests_stop(struct wt_requests *rs, void (*stopped)(void *arg), void *arg) {
    rs->stopped = stopped;
    rs->stopped_arg = arg;
    uv_close((uv_handle_t *)&rs->timer, on_closed);
}
