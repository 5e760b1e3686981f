/*
 * The reporter; see report.h.
 *
 * Happy path: POST /v1/jobs registers; every report_ms, and when poked, POST progress with the
 * reads since the last one and the shards that come next; the answer's hints go to the
 * fetches (hints.h). On close a last report and DELETE. Failure modes: no daemon: tried
 * every few seconds, silently but for a debug line; one that forgot us: registered again at once;
 * reads beyond a bound are dropped, for a daemon that was away long does not need them.
 */
#include "libloader/report.h"

#include "core/http.h"
#include "core/json.h"
#include "libloader/hints.h"
#include "libloader/quarantine.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    READS_MAX = 65536,
    LOST_MAX = 1024,
    BAD_MAX = 16,
    ROWS_MAX = 4096,
    NEXT_MAX = 1024,
    RETRY_MS = 3000,
    CALL_MS = 2000,
    LAST_MS = 500,
    PATIENCE_MS = 700
};

struct reading {
    uint64_t shard, bytes;
    uint32_t tier, ranges;
};

struct lost_copy {
    uint64_t shard;
    uint32_t tier;
    bool damaged;
};

struct wt_reporter {
    struct wl_loader *l;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool stop, poked, ended;
    struct reading *reads; /* guarded by the mutex */
    size_t n_reads, cap;
    struct lost_copy lost[LOST_MAX]; /* more than that is told the next time it happens */
    size_t n_lost;
    /* the thread's own */
    struct wt_http *http;
    char id[64];
    uint64_t report_ms;
    size_t told_bad; /* of the loader's bad samples: so many has the daemon */
};

static int connect_to(const struct wl_context *ctx, struct wt_http **out, struct wt_err *err) {
    return wt_http_open(&(struct wt_http_where){.address = ctx->conf.control,
                                                .token_file = ctx->conf.control_token_file,
                                                .ca = ctx->conf.control_ca},
                        out, err);
}

static int compare_reads(const void *a, const void *b) {
    const struct reading *x = a, *y = b;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    return x->tier < y->tier ? -1 : x->tier > y->tier;
}

/* ---- calls ---- */

/* The parsed answer, or NULL; *status 0 when there was none. */
static json_t *call(struct wt_reporter *r, struct wt_http *http, const char *method,
                    const char *path, json_t *body, unsigned timeout_ms, long *status) {
    size_t len = 0;
    char *text = body ? wt_json_dump(body, JSON_COMPACT, &len) : NULL, *reply = NULL;
    struct wt_err err = {0};
    json_t *answer = NULL;
    *status = 0;
    if (!body || text) {
        int rc = wt_http_call(http, method, path, text, timeout_ms, status, &reply, &len, &err);
        if (rc)
            wt_log(&r->l->ctx->log, WT_LOG_DEBUG, "loader: daemon: %s", err.text);
        else
            wt_json_load(reply, len, 0, &answer, NULL);
    }
    free(text);
    free(reply);
    return answer;
}

static json_t *tier_names(const struct wl_context *ctx) {
    json_t *names = json_array();
    for (unsigned i = 0; i < ctx->n_tiers; i++)
        json_array_append_new(names, json_string(ctx->conf.tier[i].name));
    return names;
}

static json_t *registration(struct wl_loader *l) {
    wt_lock(l);
    struct wt_plan_opts p = l->plan.o;
    uint64_t epoch = l->consume.epoch;
    wt_unlock(l);
    return json_pack(
        "{s:s, s:s, s:I, s:o, s:i, s:I, s:I, s:I, s:{s:i, s:I, s:I, s:I, s:I, s:I, s:s, s:s}}",
        "name", l->job, "dataset", l->dataset, "generation", (json_int_t)l->ds.m.generation,
        "tiers", tier_names(l->ctx), "world", l->o.world, "seed", (json_int_t)l->o.seed, "epoch",
        (json_int_t)epoch, "epochs", (json_int_t)l->o.epochs, "plan", "version",
        (int)WT_PLAN_VERSION, "samples", (json_int_t)p.samples, "batch", (json_int_t)p.batch,
        "block", (json_int_t)p.block, "lanes", (json_int_t)p.lanes, "window", (json_int_t)p.window,
        "tail", p.tail == WT_TAIL_PAD ? "pad" : "drop", "mode",
        p.mode == WT_PLAN_EVAL ? "eval" : "train");
}

static void enroll(struct wt_reporter *r) {
    long status;
    json_t *body = registration(r->l);
    json_t *answer = body ? call(r, r->http, "POST", "/v1/jobs", body, CALL_MS, &status) : NULL;
    const char *id =
        answer && status == 200 ? json_string_value(json_object_get(answer, "id")) : NULL;
    if (id && strlen(id) < sizeof r->id && !strpbrk(id, "/?#% ")) {
        strcpy(r->id, id);
        json_int_t ms = json_integer_value(json_object_get(answer, "report_ms"));
        r->report_ms = ms >= 10 && ms <= 60000 ? (uint64_t)ms : 1000;
    }
    json_decref(answer);
    json_decref(body);
}

/* ---- what is told ---- */

/* Takes the readings since the last report, aggregated; at most ROWS_MAX, the rest stays. */
static json_t *take_reads(struct wt_reporter *r) {
    json_t *rows = json_array();
    pthread_mutex_lock(&r->mutex);
    size_t n = r->n_reads, used = 0, rows_n = 0;
    if (n)
        qsort(r->reads, n, sizeof *r->reads, compare_reads);
    while (used < n && rows_n < ROWS_MAX) {
        struct reading sum = r->reads[used++];
        for (; used < n && compare_reads(&sum, &r->reads[used]) == 0; used++) {
            sum.bytes += r->reads[used].bytes;
            sum.ranges += r->reads[used].ranges;
        }
        json_array_append_new(rows, json_pack("[I, s, I, I]", (json_int_t)sum.shard,
                                              r->l->ctx->conf.tier[sum.tier].name,
                                              (json_int_t)sum.ranges, (json_int_t)sum.bytes));
        rows_n++;
    }
    r->n_reads = n - used;
    if (r->n_reads)
        memmove(r->reads, r->reads + used, r->n_reads * sizeof *r->reads);
    pthread_mutex_unlock(&r->mutex);
    return rows;
}

static json_t *take_lost(struct wt_reporter *r) {
    json_t *rows = json_array();
    pthread_mutex_lock(&r->mutex);
    for (size_t i = 0; i < r->n_lost; i++)
        json_array_append_new(rows, json_pack("[I, s, s]", (json_int_t)r->lost[i].shard,
                                              r->l->ctx->conf.tier[r->lost[i].tier].name,
                                              r->lost[i].damaged ? "damaged" : "missing"));
    r->n_lost = 0;
    pthread_mutex_unlock(&r->mutex);
    return rows;
}

/* Bad samples that were not told yet: [shard's object name, key]. */
static json_t *take_bad(struct wt_reporter *r) {
    wl_bad_sample bad[BAD_MAX];
    json_t *rows = json_array();
    size_t all = wt_quarantine_list(r->l->quarantine, r->told_bad, bad, BAD_MAX);
    for (size_t i = 0; r->told_bad < all && i < BAD_MAX; i++, r->told_bad++)
        json_array_append_new(rows, json_pack("[s, o]", bad[i].shard, wt_json_string(bad[i].key)));
    return rows;
}

static void add_piece(const struct wl_loader *l, const struct wt_piece *p, json_t *next) {
    uint64_t end = p->first + p->count;
    for (uint64_t s = wt_dataset_find(&l->ds, p->first); s < l->ds.m.shards && l->ds.cum[s] < end;
         s++)
        json_array_append_new(next, json_integer((json_int_t)s));
}

/* A track's coming windows, into the next epoch where there is one. Mutex held. */
static void add_track(const struct wl_loader *l, const struct wt_track *t, size_t most,
                      json_t *next) {
    size_t end = json_array_size(next) + most;
    uint64_t epoch = t->epoch, step = t->fresh ? t->next_step : t->next;
    for (int round = 0; round < 2 && !t->done && !(l->o.epochs && epoch >= l->o.epochs);
         round++, epoch++, step = 0) {
        struct wt_epoch e = wt_plan_epoch(&l->plan, epoch);
        uint64_t windows = wt_epoch_windows(&e, t->lane), w = step;
        if (round || l->ranged || t->fresh) {
            uint64_t pos = wt_loader_step_pos(l, epoch, step);
            w = pos < t->samples ? wt_epoch_window_of(&e, t->lane, pos) : windows;
        }
        for (; w < windows; w++) {
            struct wt_window win = wt_epoch_window(&e, t->lane, w);
            for (uint64_t i = 0; i < win.n_pieces; i++) {
                if (json_array_size(next) >= end)
                    return;
                struct wt_piece p = wt_epoch_piece(&e, t->lane, win.piece_first + i);
                add_piece(l, &p, next);
            }
        }
    }
}

/* Where the next fetch of a track begins: an epoch and a lane position. Mutex held. */
static json_t *fetched(const struct wl_loader *l, const struct wt_track *t) {
    struct wt_epoch e = wt_plan_epoch(&l->plan, t->epoch);
    uint64_t epoch = t->epoch, pos = 0;
    if (t->fresh || l->ranged)
        pos = wt_loader_step_pos(l, epoch, t->fresh ? t->next_step : t->next);
    else if (t->next < wt_epoch_windows(&e, t->lane))
        pos = wt_epoch_window(&e, t->lane, t->next).pos;
    else
        epoch++;
    return json_pack("[I, I]", (json_int_t)epoch, (json_int_t)pos);
}

static json_t *coming(struct wl_loader *l, uint64_t *epoch, uint64_t *step, json_t **place) {
    json_t *next = json_array();
    wt_lock(l);
    *epoch = l->consume.epoch;
    *step = l->consume.step;
    *place = l->n_tracks ? fetched(l, &l->track[0]) : json_null();
    for (size_t i = 0; i < l->n_tracks; i++)
        add_track(l, &l->track[i], NEXT_MAX / l->n_tracks + 1, next);
    wt_unlock(l);
    return next;
}

static double seconds(const _Atomic uint64_t *ns) {
    return (double)atomic_load_explicit(ns, memory_order_relaxed) / 1e9;
}

/* What the consumer waited for, in sums since the loader was opened. */
static json_t *stalls(const struct wl_loader *l) {
    const _Atomic uint64_t *ns = l->meter.stalled_ns;
    return json_pack("{s:f, s:f, s:f, s:f}", "fetch", seconds(&ns[WT_BLAME_FETCH]), "decode",
                     seconds(&ns[WT_BLAME_DECODE]), "stage", seconds(&ns[WT_BLAME_STAGE]),
                     "consumer", seconds(&ns[WT_BLAME_CONSUMER]));
}

static json_t *stalls_by_tier(const struct wl_loader *l) {
    json_t *tiers = json_object();
    for (unsigned i = 0; i < l->ctx->n_tiers; i++)
        json_object_set_new(tiers, l->ctx->conf.tier[i].name,
                            json_real(seconds(&l->meter.tier[i].stalled_ns)));
    return tiers;
}

static void progress(struct wt_reporter *r, struct wt_http *http, unsigned timeout_ms) {
    uint64_t epoch, step;
    size_t told = r->told_bad;
    json_t *place, *next = coming(r->l, &epoch, &step, &place);
    json_t *body = json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "epoch",
                             (json_int_t)epoch, "step", (json_int_t)step, "fetched", place, "reads",
                             take_reads(r), "lost", take_lost(r), "bad", take_bad(r), "next", next,
                             "stalled", stalls(r->l), "stalled_tiers", stalls_by_tier(r->l));
    char path[128];
    long status = 0;
    snprintf(path, sizeof path, "/v1/jobs/%s/progress", r->id);
    json_t *answer = body ? call(r, http, "POST", path, body, timeout_ms, &status) : NULL;
    if (status != 200)
        r->told_bad = told;
    if (status == 404) {
        r->id[0] = '\0';
        r->told_bad = 0; /* it knows nothing of us */
    } else if (answer && status == 200) {
        wt_hints_take(r->l, answer);
    }
    json_decref(answer);
    json_decref(body);
}

/* ---- the thread ---- */

static struct timespec in_ms(uint64_t ms) {
    uint64_t due = wt_now_ns() + ms * 1000000;
    return (struct timespec){.tv_sec = (time_t)(due / 1000000000u),
                             .tv_nsec = (long)(due % 1000000000u)};
}

/* Sleeps; true when it is to go on. */
static bool rest(struct wt_reporter *r, uint64_t ms) {
    struct timespec t = in_ms(ms);
    pthread_mutex_lock(&r->mutex);
    while (!r->stop && !(r->poked && r->id[0]))
        if (pthread_cond_timedwait(&r->cond, &r->mutex, &t) != 0)
            break;
    r->poked = false;
    bool go_on = !r->stop;
    pthread_mutex_unlock(&r->mutex);
    return go_on;
}

/* On a connection of its own: the first one is aborted so that closing never waits for a slow
 * daemon. */
static void farewell(struct wt_reporter *r) {
    struct wt_http *http;
    if (!r->id[0] || connect_to(r->l->ctx, &http, NULL) < 0)
        return;
    progress(r, http, LAST_MS);
    if (r->id[0]) {
        char path[128];
        long status;
        snprintf(path, sizeof path, "/v1/jobs/%s", r->id);
        json_decref(call(r, http, "DELETE", path, NULL, LAST_MS, &status));
    }
    wt_http_free(http);
}

static void *reporter_run(void *arg) {
    struct wt_reporter *r = arg;
    bool go_on = true;
    while (go_on) {
        if (!r->id[0])
            enroll(r);
        if (r->id[0]) {
            progress(r, r->http, CALL_MS);
            if (!r->id[0]) /* forgotten: by one that was started anew, most often */
                enroll(r);
        }
        go_on = rest(r, r->id[0] ? r->report_ms : RETRY_MS);
    }
    farewell(r);
    pthread_mutex_lock(&r->mutex);
    r->ended = true;
    pthread_cond_signal(&r->cond);
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

int wt_reporter_new(struct wl_loader *l, struct wt_reporter **out, struct wt_err *err) {
    *out = NULL;
    if (!l->ctx->conf.control[0] || l->o.rank != 0)
        return 0;
    struct wt_reporter *r = wt_calloc(1, sizeof *r);
    if (!r)
        return wt_err_set(err, WT_ENOMEM, "out of memory for the daemon's reporter");
    r->l = l;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->cond, &attr);
    pthread_condattr_destroy(&attr);
    int rc = connect_to(l->ctx, &r->http, err);
    if (!rc) {
        int no = wt_thread_start(&r->thread, reporter_run, r);
        if (no)
            rc = wt_err_sys(err, no, "starting the daemon's reporter");
    }
    if (rc) {
        wt_http_free(r->http);
        pthread_cond_destroy(&r->cond);
        pthread_mutex_destroy(&r->mutex);
        free(r);
        return rc;
    }
    *out = r;
    return 0;
}

void wt_reporter_free(struct wt_reporter *r) {
    if (!r)
        return;
    pthread_mutex_lock(&r->mutex);
    r->stop = true;
    pthread_cond_signal(&r->cond);
    struct timespec t = in_ms(PATIENCE_MS);
    while (!r->ended && pthread_cond_timedwait(&r->cond, &r->mutex, &t) == 0)
        continue;
    pthread_mutex_unlock(&r->mutex);
    wt_http_abort(r->http);
    pthread_join(r->thread, NULL);
    wt_http_free(r->http);
    pthread_cond_destroy(&r->cond);
    pthread_mutex_destroy(&r->mutex);
    free(r->reads);
    free(r);
}

void wt_reporter_read(struct wt_reporter *r, uint64_t shard, unsigned tier, uint64_t bytes) {
    if (!r)
        return;
    pthread_mutex_lock(&r->mutex);
    if (r->n_reads < READS_MAX &&
        wt_grow(&r->reads, &r->cap, r->n_reads + 1, sizeof *r->reads) == 0)
        r->reads[r->n_reads++] =
            (struct reading){.shard = shard, .bytes = bytes, .tier = tier, .ranges = 1};
    pthread_mutex_unlock(&r->mutex);
}

void wt_reporter_lost(struct wt_reporter *r, uint64_t shard, unsigned tier, bool damaged) {
    if (!r)
        return;
    pthread_mutex_lock(&r->mutex);
    if (r->n_lost < LOST_MAX)
        r->lost[r->n_lost++] = (struct lost_copy){shard, tier, damaged};
    pthread_mutex_unlock(&r->mutex);
}

void wt_reporter_poke(struct wt_reporter *r) {
    if (!r)
        return;
    pthread_mutex_lock(&r->mutex);
    r->poked = true;
    pthread_cond_signal(&r->cond);
    pthread_mutex_unlock(&r->mutex);
}
