/*
 * The core over a backend that the test controls: it answers when told, fails when told, hangs when
 * told. The program brings its own table of backends in place of tiers/registry.c.
 */
#include "kit.h"

#include "tiers/backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the fake backend ---- */

enum { HELD_MAX = 64 };

struct fake {
    bool hold;          /* requests wait for release() */
    bool ignore_cancel; /* as a copy under way does */
    int rc;             /* of what is answered */
    unsigned served, probes, cancels, dropped, aborted;
    struct wt_req *held[HELD_MAX];
    size_t n_held;
};

static struct fake *fake_of(struct wt_tier *tier) {
    return wt_backend_state(tier);
}

static void answer(struct wt_req *req, int rc) {
    req->rc = rc;
    if (rc == 0 && req->op == WT_OP_PUT_OPEN) {
        req->put = calloc(1, sizeof *req->put);
        assert_int_equal(wt_put_init(req->put, req->key, req->size, req->flags), 0);
    }
    if (req->op == WT_OP_PUT_COMMIT || req->op == WT_OP_PUT_ABORT) {
        wt_put_fini(req->put);
        free(req->put);
    }
}

static void fake_op(struct wt_tier *tier, struct wt_req *req) {
    struct fake *f = fake_of(tier);
    f->served++;
    f->probes += req->op == WT_OP_PROBE;
    f->aborted += req->op == WT_OP_PUT_ABORT;
    if (f->hold && req->op != WT_OP_PROBE) {
        assert_true(f->n_held < HELD_MAX);
        f->held[f->n_held++] = req;
        return;
    }
    answer(req, f->rc);
    wt_req_later(req);
}

static void take_held(struct fake *f, struct wt_req *req) {
    for (size_t i = 0; i < f->n_held; i++)
        if (f->held[i] == req)
            f->held[i] = f->held[--f->n_held];
}

static void fake_cancel(struct wt_tier *tier, struct wt_req *req) {
    struct fake *f = fake_of(tier);
    f->cancels++;
    if (f->ignore_cancel)
        return;
    take_held(f, req);
    req->rc = WT_ECANCELED;
    wt_req_later(req);
}

static void fake_drop(struct wt_tier *tier, struct wt_put *put) {
    fake_of(tier)->dropped++;
    wt_put_fini(put);
    free(put);
}

static int fake_open(struct wt_tier *tier, const char *url, struct wt_err *err) {
    if (strcmp(url, "fake:bad") == 0)
        return wt_err_set(err, WT_EINVAL, "bad on purpose");
    wt_backend_set(tier, calloc(1, sizeof(struct fake)));
    if (strcmp(url, "fake:away") == 0) {
        struct wt_err why;
        wt_err_set(&why, WT_EDOWN, "away on purpose");
        wt_backend_down(tier, &why);
    }
    wt_backend_url(tier, "fake:shown");
    return 0;
}

static void fake_close(struct wt_tier *tier) {
    free(fake_of(tier));
    wt_backend_closed(tier);
}

static unsigned fake_caps(const struct wt_tier *tier) {
    (void)tier;
    return WT_CAP_WRITE;
}

static const struct wt_backend fake = {
    .scheme = "fake",
    .help = "fake:",
    .depth = 4,
    .prior_us = 100,
    .open = fake_open,
    .close = fake_close,
    .caps = fake_caps,
    .op = {[WT_OP_STAT] = fake_op,
           [WT_OP_GET] = fake_op,
           [WT_OP_PUT_OPEN] = fake_op,
           [WT_OP_PUT_WRITE] = fake_op,
           [WT_OP_PUT_COMMIT] = fake_op,
           [WT_OP_PUT_ABORT] = fake_op,
           [WT_OP_PROBE] = fake_op},
    .cancel = fake_cancel,
    .drop = fake_drop,
};

const struct wt_backend *const wt_backends[] = {&fake, NULL};

/* ---- harness ---- */

struct env {
    uv_loop_t loop;
    struct wt_tier *tier;
    struct fake *fake;
    bool closed;
    char log[2000];
};

static void on_log(void *arg, enum wt_log_level level, const char *line) {
    struct env *e = arg;
    (void)level;
    if (strlen(e->log) + strlen(line) + 2 < sizeof e->log)
        strcat(strcat(e->log, line), "\n");
}

static struct wt_log log_of(struct env *e) {
    return (struct wt_log){on_log, e, WT_LOG_DEBUG};
}

static void open_env(struct env *e, const struct wt_log *log, const char *url) {
    struct wt_tier_opts opts = {.name = "t", .timeout_ms = 200};
    strcpy(opts.url, url);
    uv_loop_init(&e->loop);
    assert_int_equal(wt_tier_open(&e->loop, &opts, log, &e->tier, NULL), 0);
    e->fake = fake_of(e->tier);
}

static void on_closed(void *arg) {
    ((struct env *)arg)->closed = true;
}

static void close_env(struct env *e) {
    wt_tier_close(e->tier, on_closed, e);
    assert_true(kit_until(&e->loop, &e->closed, 5000));
    assert_int_equal(uv_loop_close(&e->loop), 0);
}

static void on_done(struct wt_req *req) {
    *(bool *)req->arg = true;
}

static int do_req(struct env *e, struct wt_req *req) {
    bool done = false;
    req->done = on_done;
    req->arg = &done;
    int rc = wt_tier_submit(e->tier, req);
    if (rc < 0)
        return rc;
    assert_false(done);
    assert_true(kit_until(&e->loop, &done, 5000));
    return req->rc;
}

static int stat_key(struct env *e, struct wt_req *req) {
    *req = (struct wt_req){.op = WT_OP_STAT, .key = "k"};
    return do_req(e, req);
}

/* The last one may close the tier, and with it the fake. */
static void release(struct env *e, int rc) {
    for (size_t n = e->fake->n_held; n > 0; n--) {
        struct wt_req *req = e->fake->held[n - 1];
        e->fake->n_held = n - 1;
        answer(req, rc);
        wt_req_complete(req);
    }
}

/* ---- tests ---- */

static void late_request(void **state) {
    (void)state;
    struct env e = {0};
    open_env(&e, NULL, "fake:");
    e.fake->hold = true;
    struct wt_req req;
    uint64_t begin = uv_hrtime();
    assert_int_equal(stat_key(&e, &req), WT_ETIMEDOUT);
    uint64_t ms = (uv_hrtime() - begin) / 1000000;
    assert_true(ms >= 199 && ms < 1000);
    assert_int_equal(req.err.code, WT_ETIMEDOUT);
    assert_non_null(strstr(req.err.text, "tier t (fake:shown): k: "));
    assert_int_equal(e.fake->cancels, 1);
    /* Its own limit instead of the tier's. */
    struct wt_req brief = {.op = WT_OP_STAT, .key = "k", .timeout_ms = 30};
    begin = uv_hrtime();
    assert_int_equal(do_req(&e, &brief), WT_ETIMEDOUT);
    assert_true((uv_hrtime() - begin) / 1000000 < 150);
    close_env(&e);
}

/* A copy that has begun is waited for; its success is the result, its end is not forced. */
static void real_result_wins(void **state) {
    (void)state;
    struct env e = {0};
    open_env(&e, NULL, "fake:");
    e.fake->hold = e.fake->ignore_cancel = true;
    bool done = false;
    struct wt_req req = {
        .op = WT_OP_STAT, .key = "k", .timeout_ms = 20, .done = on_done, .arg = &done};
    assert_int_equal(wt_tier_submit(e.tier, &req), 0);
    kit_run(&e.loop, 100);
    assert_false(done);
    wt_tier_cancel(&req); /* asked already: once is enough */
    assert_int_equal(e.fake->cancels, 1);
    release(&e, 0);
    assert_true(done);
    assert_int_equal(req.rc, 0);
    close_env(&e);
}

static void failures_trip_and_probes_heal(void **state) {
    (void)state;
    struct env e = {0};
    struct wt_log log = log_of(&e);
    open_env(&e, &log, "fake:");
    e.fake->rc = WT_EIO;
    struct wt_req req;
    for (int i = 0; i < 3; i++)
        assert_int_equal(stat_key(&e, &req), WT_EIO);
    assert_true(wt_tier_is_down(e.tier));
    assert_true(isinf(wt_tier_cost(e.tier, 1)));
    unsigned served = e.fake->served;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(stat_key(&e, &req), WT_EDOWN);
        assert_non_null(strstr(req.err.text, "input/output error")); /* and why */
    }
    assert_true(e.fake->served - served <= 2); /* probes at most */
    /* Ever fewer probes while it stays away. */
    unsigned before = e.fake->probes;
    kit_run(&e.loop, 1000);
    assert_in_range(e.fake->probes - before, 2, 5);
    e.fake->rc = 0;
    bool up = false;
    for (int i = 0; i < 3000 && !up; i++) {
        kit_run(&e.loop, 1);
        up = !wt_tier_is_down(e.tier);
    }
    assert_true(up);
    assert_int_equal(stat_key(&e, &req), 0);
    assert_non_null(strstr(e.log, "tier t (fake:shown) is down"));
    assert_non_null(strstr(e.log, "is back"));
    close_env(&e);
}

static void queued_are_refused_when_it_goes_down(void **state) {
    (void)state;
    struct env e = {0};
    open_env(&e, NULL, "fake:");
    e.fake->hold = true;
    bool done[10] = {false};
    struct wt_req req[10];
    for (int i = 0; i < 10; i++) {
        req[i] = (struct wt_req){
            .op = WT_OP_STAT, .key = "k", .timeout_ms = 4000, .done = on_done, .arg = &done[i]};
        assert_int_equal(wt_tier_submit(e.tier, &req[i]), 0);
    }
    struct wt_tier_stats stats;
    wt_tier_stats(e.tier, &stats);
    assert_int_equal(stats.in_flight, 4);
    assert_int_equal(stats.queued, 6);
    struct wt_err why;
    wt_err_set(&why, WT_EDOWN, "its host is gone");
    wt_backend_down(e.tier, &why);
    assert_true(kit_until(&e.loop, &done[9], 1000));
    for (int i = 4; i < 10; i++) {
        assert_true(done[i]);
        assert_int_equal(req[i].rc, WT_EDOWN);
        assert_non_null(strstr(req[i].err.text, "its host is gone"));
    }
    assert_false(done[0]); /* at the backend: its business */
    release(&e, 0);
    assert_true(done[0]);
    assert_false(wt_tier_is_down(e.tier)); /* it answers */
    close_env(&e);
}

static void opened_away(void **state) {
    (void)state;
    struct env e = {0};
    open_env(&e, NULL, "fake:away");
    assert_true(wt_tier_is_down(e.tier));
    struct wt_req req;
    assert_int_equal(stat_key(&e, &req), WT_EDOWN);
    assert_non_null(strstr(req.err.text, "away on purpose"));
    kit_run(&e.loop, 300);
    assert_false(wt_tier_is_down(e.tier));
    close_env(&e);
    uv_loop_t loop;
    uv_loop_init(&loop);
    struct wt_tier_opts opts = {.name = "t", .url = "fake:bad"};
    struct wt_tier *tier = NULL;
    struct wt_err err;
    assert_int_equal(wt_tier_open(&loop, &opts, NULL, &tier, &err), WT_EINVAL);
    assert_string_equal(err.text, "tier t: bad on purpose");
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void stuck_workers_take_it_down(void **state) {
    (void)state;
    struct env e = {0};
    open_env(&e, NULL, "fake:");
    for (int i = 0; i < WT_STUCK_MAX - 1; i++)
        wt_backend_stuck(e.tier, 1);
    assert_false(wt_tier_is_down(e.tier));
    wt_backend_stuck(e.tier, 1);
    assert_true(wt_tier_is_down(e.tier));
    kit_run(&e.loop, 400);
    assert_int_equal(e.fake->probes, 0); /* it would hang as well */
    assert_true(wt_tier_is_down(e.tier));
    wt_backend_stuck(e.tier, -1);
    bool up = false;
    for (int i = 0; i < 3000 && !up; i++) {
        kit_run(&e.loop, 1);
        up = !wt_tier_is_down(e.tier);
    }
    assert_true(up);
    wt_backend_stuck(e.tier, -(WT_STUCK_MAX - 1));
    close_env(&e);
}

static struct wt_put *open_put(struct env *e, uint64_t size) {
    struct wt_req req = {.op = WT_OP_PUT_OPEN, .key = "p", .size = size};
    assert_int_equal(do_req(e, &req), 0);
    return req.put;
}

static void puts_are_booked(void **state) {
    (void)state;
    struct env e = {0};
    open_env(&e, NULL, "fake:");
    struct wt_put *put = open_put(&e, 10);
    e.fake->hold = true;
    bool done = false;
    struct wt_req write = {.op = WT_OP_PUT_WRITE,
                           .put = put,
                           .src = "0123456789",
                           .len = 10,
                           .done = on_done,
                           .arg = &done};
    assert_int_equal(wt_tier_submit(e.tier, &write), 0);
    /* Its writes come first. */
    struct wt_req commit = {.op = WT_OP_PUT_COMMIT, .put = put};
    assert_int_equal(do_req(&e, &commit), WT_EINVAL);
    release(&e, WT_EIO);
    assert_true(done);
    assert_int_equal(wt_put_check(put, NULL), WT_EINVAL); /* the failed part is not written */
    e.fake->hold = false;
    assert_int_equal(do_req(&e, &write), 0);
    assert_int_equal(wt_put_check(put, NULL), 0);
    /* A commit that never reaches the backend still ends the put. */
    e.fake->hold = true;
    bool over[5] = {false};
    struct wt_req stats[4];
    for (int i = 0; i < 4; i++) {
        stats[i] = (struct wt_req){.op = WT_OP_STAT, .key = "k", .done = on_done, .arg = &over[i]};
        assert_int_equal(wt_tier_submit(e.tier, &stats[i]), 0);
    }
    commit.done = on_done;
    commit.arg = &over[4];
    assert_int_equal(wt_tier_submit(e.tier, &commit), 0);
    wt_tier_cancel(&commit);
    assert_true(kit_until(&e.loop, &over[4], 1000));
    assert_int_equal(commit.rc, WT_ECANCELED);
    assert_int_equal(e.fake->dropped, 1);
    release(&e, 0);
    e.fake->hold = false;
    /* One left open is dropped by the close; its fake counts are read before they go. */
    open_put(&e, 20);
    struct wt_put *other = open_put(&e, 0);
    struct wt_req abort_it = {.op = WT_OP_PUT_ABORT, .put = other};
    assert_int_equal(do_req(&e, &abort_it), 0);
    assert_int_equal(e.fake->aborted, 1);
    close_env(&e); /* leaks are the sanitizer's to find */
}

static void queue_deadline_grows_with_what_is_ahead(void **state) {
    (void)state;
    struct env e = {0};
    open_env(&e, NULL, "fake:"); /* 200 ms + bytes / 8 MiB/s */
    e.fake->hold = true;
    static uint8_t buf[8 << 20];
    bool done[2] = {false};
    struct wt_req big = {.op = WT_OP_GET,
                         .key = "k",
                         .buf = buf,
                         .len = sizeof buf,
                         .done = on_done,
                         .arg = &done[0]};
    struct wt_req small = {
        .op = WT_OP_GET, .key = "k", .buf = buf, .len = 1, .done = on_done, .arg = &done[1]};
    assert_int_equal(wt_tier_submit(e.tier, &big), 0);
    assert_int_equal(wt_tier_submit(e.tier, &small), 0);
    kit_run(&e.loop, 700);
    assert_false(done[1]);
    assert_true(kit_until(&e.loop, &done[1], 1500));
    assert_int_equal(small.rc, WT_ETIMEDOUT);
    close_env(&e);
    assert_true(done[0]);
}

static void nothing_unsupported(void **state) {
    (void)state;
    struct env e = {0};
    open_env(&e, NULL, "fake:");
    struct wt_req list = {.op = WT_OP_USAGE};
    assert_int_equal(do_req(&e, &list), WT_EUNSUPPORTED);
    struct wt_req map = {.op = WT_OP_MAP, .key = "k"};
    assert_int_equal(do_req(&e, &map), WT_EUNSUPPORTED);
    wt_tier_close(e.tier, on_closed, &e);
    struct wt_req late = {.op = WT_OP_STAT, .key = "k", .done = on_done};
    assert_int_equal(wt_tier_submit(e.tier, &late), WT_ECANCELED);
    assert_true(kit_until(&e.loop, &e.closed, 1000));
    assert_int_equal(uv_loop_close(&e.loop), 0);
}

static void completes_when_canceled_at_close(void **state) {
    (void)state;
    struct env e = {0};
    open_env(&e, NULL, "fake:");
    e.fake->hold = e.fake->ignore_cancel = true;
    bool done[6] = {false};
    struct wt_req req[6];
    for (int i = 0; i < 6; i++) {
        req[i] = (struct wt_req){
            .op = WT_OP_STAT, .key = "k", .timeout_ms = 10000, .done = on_done, .arg = &done[i]};
        assert_int_equal(wt_tier_submit(e.tier, &req[i]), 0);
    }
    wt_tier_close(e.tier, on_closed, &e);
    assert_false(done[5]);
    kit_run(&e.loop, 50);
    assert_true(done[4] && done[5]); /* those that waited */
    assert_false(e.closed);          /* the gate waits for the others */
    release(&e, WT_ECANCELED);
    assert_true(kit_until(&e.loop, &e.closed, 1000));
    for (int i = 0; i < 6; i++)
        assert_int_equal(req[i].rc, WT_ECANCELED);
    assert_int_equal(uv_loop_close(&e.loop), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_request),
        cmocka_unit_test(real_result_wins),
        cmocka_unit_test(failures_trip_and_probes_heal),
        cmocka_unit_test(queued_are_refused_when_it_goes_down),
        cmocka_unit_test(opened_away),
        cmocka_unit_test(stuck_workers_take_it_down),
        cmocka_unit_test(puts_are_booked),
        cmocka_unit_test(queue_deadline_grows_with_what_is_ahead),
        cmocka_unit_test(nothing_unsupported),
        cmocka_unit_test(completes_when_canceled_at_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
