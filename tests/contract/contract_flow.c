/* The flow of requests: once each, bounded, canceled, late, closed, down and back. */
#include "contract.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 1 << 20, MANY = 1000 };

/* Each request with a buffer of its own and a count of its completions. */
struct tracked {
    struct wt_req req; /* first */
    unsigned calls;
    unsigned *total;
    uint8_t *buf;
};

static void on_tracked(struct wt_req *req) {
    struct tracked *t = (struct tracked *)req;
    t->calls++;
    (*t->total)++;
}

static void put_source(struct contract *c, uint8_t *data) {
    contract_fill(data, SIZE, 11);
    assert_int_equal(contract_put(c, "src", data, SIZE, 0), 0);
}

static struct tracked *make_gets(unsigned n, size_t len, unsigned *total, uint32_t timeout_ms) {
    struct tracked *t = calloc(n, sizeof *t);
    for (unsigned i = 0; i < n; i++) {
        t[i].buf = malloc(len);
        memset(t[i].buf, 0xaa, len);
        t[i].total = total;
        t[i].req = (struct wt_req){.op = WT_OP_GET,
                                   .key = "src",
                                   .buf = t[i].buf,
                                   .len = len,
                                   .timeout_ms = timeout_ms,
                                   .done = on_tracked};
    }
    return t;
}

static void free_gets(struct tracked *t, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        free(t[i].buf);
    free(t);
}

static void beyond_depth(struct contract *c) {
    uint8_t *data = malloc(SIZE);
    put_source(c, data);
    contract_close(c);
    c->opts.depth = 3;
    contract_open(c);
    unsigned total = 0;
    struct tracked *t = make_gets(MANY, 5000, &total, 0);
    for (unsigned i = 0; i < MANY; i++) {
        t[i].req.off = i * 1000;
        assert_int_equal(wt_tier_submit(c->tier, &t[i].req), 0);
        assert_int_equal(t[i].calls, 0);
    }
    struct wt_tier_stats stats;
    wt_tier_stats(c->tier, &stats);
    assert_true(stats.in_flight <= 3);
    assert_int_equal(stats.in_flight + stats.queued, MANY);
    contract_until_count(c, &total, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(t[i].calls, 1);
        assert_int_equal(t[i].req.rc, 0);
        assert_int_equal(t[i].req.got, 5000);
        assert_memory_equal(t[i].buf, data + i * 1000, 5000);
    }
    free_gets(t, MANY);
    free(data);
}

static void queue_bound(struct contract *c) {
    uint8_t *data = malloc(SIZE);
    put_source(c, data);
    free(data);
    enum { TOO_MANY = WT_QUEUE_MAX + 200 };
    unsigned total = 0, accepted = 0;
    struct tracked *t = make_gets(TOO_MANY, 10, &total, 0);
    bool busy = false;
    for (unsigned i = 0; i < TOO_MANY; i++) {
        int rc = wt_tier_submit(c->tier, &t[i].req);
        accepted += rc == 0;
        busy |= rc == WT_EBUSY;
        assert_true(rc == 0 || rc == WT_EBUSY);
    }
    assert_true(busy);
    assert_true(accepted >= WT_QUEUE_MAX);
    contract_until_count(c, &total, accepted);
    for (unsigned i = 0; i < TOO_MANY; i++)
        assert_int_equal(t[i].calls, i < accepted ? 1 : 0);
    /* Room again. */
    uint8_t b[10];
    size_t got;
    assert_int_equal(contract_get(c, "src", 0, b, 10, &got), 0);
    free_gets(t, TOO_MANY);
}

/* After done() the buffer is ours: poison it, and nobody may write there any more. */
static void on_poison(struct wt_req *req) {
    struct tracked *t = (struct tracked *)req;
    memset(t->buf, 0x77, req->len);
    on_tracked(req);
}

static void sleep_on_loop(struct contract *c, unsigned ms) {
    bool over = false;
    uint64_t until = uv_hrtime() + (uint64_t)ms * 1000000;
    while (!over) {
        uv_run(&c->loop, UV_RUN_NOWAIT);
        uv_sleep(1);
        over = uv_hrtime() >= until;
    }
}

static void cancel(struct contract *c) {
    uint8_t *data = malloc(SIZE);
    put_source(c, data);
    for (int round = 0; round < 10; round++) {
        unsigned total = 0, canceled = 0;
        struct tracked *t = make_gets(64, SIZE, &total, 0);
        for (unsigned i = 0; i < 64; i++) {
            t[i].req.done = on_poison;
            assert_int_equal(wt_tier_submit(c->tier, &t[i].req), 0);
        }
        for (int turn = 0; turn < round; turn++)
            uv_run(&c->loop, UV_RUN_NOWAIT);
        unsigned before = total;
        for (unsigned i = 0; i < 64; i++)
            wt_tier_cancel(&t[i].req);
        assert_int_equal(total, before); /* never from inside cancel */
        contract_until_count(c, &total, 64);
        sleep_on_loop(c, 20);
        for (unsigned i = 0; i < 64; i++) {
            assert_int_equal(t[i].calls, 1);
            assert_true(t[i].req.rc == 0 || t[i].req.rc == WT_ECANCELED);
            canceled += t[i].req.rc == WT_ECANCELED;
            for (size_t b = 0; b < SIZE; b += 997)
                assert_int_equal(t[i].buf[b], 0x77);
            wt_tier_cancel(&t[i].req); /* completed: nothing happens */
        }
        if (round == 0)
            assert_true(canceled > 0);
        free_gets(t, 64);
    }
    struct wt_req never = {.op = WT_OP_STAT};
    wt_tier_cancel(&never);
    assert_false(wt_tier_is_down(c->tier));
    free(data);
}

static void deadline(struct contract *c) {
    uint8_t *data = malloc(SIZE);
    put_source(c, data);
    contract_close(c);
    c->opts.depth = 1;
    contract_open(c);
    unsigned total = 0, late = 0;
    enum { N = 400 };
    struct tracked *t = make_gets(N, SIZE, &total, 5);
    uint64_t begin = uv_hrtime();
    for (unsigned i = 0; i < N; i++) {
        t[i].req.done = on_poison;
        assert_int_equal(wt_tier_submit(c->tier, &t[i].req), 0);
    }
    contract_until_count(c, &total, N);
    /* Those that waited their turn in vain do not wait for the others. */
    assert_true(uv_hrtime() - begin < UINT64_C(3000000000));
    sleep_on_loop(c, 20);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(t[i].calls, 1);
        assert_true(t[i].req.rc == 0 || t[i].req.rc == WT_ETIMEDOUT);
        late += t[i].req.rc == WT_ETIMEDOUT;
        for (size_t b = 0; b < SIZE; b += 997)
            assert_int_equal(t[i].buf[b], 0x77);
    }
    struct wt_tier_stats stats;
    wt_tier_stats(c->tier, &stats);
    assert_true(late > 0);
    assert_int_equal(stats.timeouts, late);
    free_gets(t, N);
    free(data);
}

static void deadlines_grow(struct contract *c) {
    contract_close(c);
    c->opts.timeout_ms = 500;
    c->opts.min_rate = 1000000;
    contract_open(c);
    assert_int_equal(wt_tier_deadline(c->tier, 0), 500);
    assert_int_equal(wt_tier_deadline(c->tier, 4000000), 4500);
    assert_int_equal(wt_tier_deadline(c->tier, UINT64_MAX), UINT32_MAX);
}

static void close_in_flight(struct contract *c) {
    uint8_t *data = malloc(SIZE);
    put_source(c, data);
    for (int round = 0; round < 5; round++) {
        unsigned total = 0;
        struct tracked *t = make_gets(200, SIZE / 4, &total, 0);
        for (unsigned i = 0; i < 200; i++) {
            t[i].req.done = on_poison;
            assert_int_equal(wt_tier_submit(c->tier, &t[i].req), 0);
        }
        for (int turn = 0; turn < round; turn++)
            uv_run(&c->loop, UV_RUN_NOWAIT);
        contract_close(c);
        assert_int_equal(total, 200);
        for (unsigned i = 0; i < 200; i++) {
            assert_int_equal(t[i].calls, 1);
            assert_true(t[i].req.rc == 0 || t[i].req.rc == WT_ECANCELED);
            assert_int_equal(t[i].buf[SIZE / 4 - 1], 0x77);
        }
        free_gets(t, 200);
        contract_open(c);
    }
    free(data);
}

/* done() may submit, and may close the tier. */
static void on_chain(struct wt_req *req) {
    struct tracked *t = (struct tracked *)req;
    (*t->total)++;
    struct contract *c = req->arg;
    if (*t->total < 50)
        assert_int_equal(wt_tier_submit(c->tier, req), 0);
    else
        wt_tier_close(c->tier, NULL, NULL);
}

static void submit_and_close_from_done(struct contract *c) {
    uint8_t *data = malloc(SIZE);
    put_source(c, data);
    unsigned total = 0;
    struct tracked *t = make_gets(1, 100, &total, 0);
    t->req.done = on_chain;
    t->req.arg = c;
    assert_int_equal(wt_tier_submit(c->tier, &t->req), 0);
    contract_until_count(c, &total, 50);
    uv_run(&c->loop, UV_RUN_DEFAULT); /* ends when the tier is gone */
    assert_int_equal(total, 50);
    c->tier = NULL;
    free_gets(t, 1);
    free(data);
}

static void bad_requests(struct contract *c) {
    static const char *const keys[] = {
        "",    "/abs", "a//b",   "../up", "a/../b", "a/..", ".",        "..",
        "a/.", "a/",   "sp ace", "nul\n", "a/b\\c", "x*y",  "\xc3\xa4", NULL,
    };
    uint8_t b[4];
    for (size_t i = 0; keys[i]; i++) {
        struct wt_req req = {.op = WT_OP_GET, .key = keys[i], .buf = b, .len = 4};
        assert_int_equal(contract_do(c, &req), WT_EINVAL);
        struct wt_req put = {.op = WT_OP_PUT_OPEN, .key = keys[i], .size = 4};
        assert_int_equal(contract_do(c, &put), WT_EINVAL);
        assert_true(put.err.text[0] != '\0');
    }
    char longest[WT_KEY_SIZE + 1];
    memset(longest, 'k', sizeof longest);
    longest[WT_KEY_SIZE] = '\0';
    assert_int_equal(contract_stat(c, longest, NULL), WT_EINVAL);
    longest[WT_KEY_SIZE - 1] = '\0';
    assert_int_equal(contract_stat(c, longest, NULL), WT_EMISSING);
    struct wt_req no_key = {.op = WT_OP_STAT};
    assert_int_equal(contract_do(c, &no_key), WT_EINVAL);
    struct wt_req no_buf = {.op = WT_OP_GET, .key = "k", .len = 10};
    assert_int_equal(contract_do(c, &no_buf), WT_EINVAL);
    struct wt_req no_put = {.op = WT_OP_PUT_WRITE, .src = b, .len = 4};
    assert_int_equal(contract_do(c, &no_put), WT_EINVAL);
    struct wt_req no_owner = {.op = WT_OP_LOCK, .key = "k", .ttl_ms = 1};
    assert_int_equal(contract_do(c, &no_owner), WT_EINVAL);
    struct wt_req far = {.op = WT_OP_GET, .key = "k", .off = UINT64_MAX, .buf = b, .len = 4};
    assert_int_equal(contract_do(c, &far), WT_EINVAL);
    struct wt_req no_op = {.op = WT_OP_COUNT};
    assert_int_equal(contract_do(c, &no_op), WT_EINVAL);
    assert_non_null(strstr(no_op.err.text, "tier subject ("));
    struct wt_req no_done = {.op = WT_OP_STAT, .key = "k"};
    assert_int_equal(wt_tier_submit(c->tier, &no_done), WT_EINVAL);
}

static void wait_for_state(struct contract *c, bool down) {
    for (int i = 0; i < 5000 && wt_tier_is_down(c->tier) != down; i++)
        sleep_on_loop(c, 2);
    assert_int_equal(wt_tier_is_down(c->tier), down);
}

static void down_and_back(struct contract *c) {
    if (!c->fixture->away)
        skip();
    uint8_t b[10] = "x";
    size_t got;
    assert_int_equal(contract_put(c, "k", b, 10, 0), 0);
    c->fixture->away(c->place);
    for (int i = 0; i < 10; i++)
        assert_int_equal(contract_get(c, "k", 0, b, 10, &got), WT_EDOWN);
    assert_true(wt_tier_is_down(c->tier));
    assert_true(isinf(wt_tier_cost(c->tier, 1000)));
    /* At once, not after a look. */
    uint64_t begin = uv_hrtime();
    for (int i = 0; i < 100; i++)
        assert_int_equal(contract_stat(c, "k", NULL), WT_EDOWN);
    assert_true(uv_hrtime() - begin < UINT64_C(1000000000));
    struct wt_req probe = {.op = WT_OP_PROBE};
    assert_int_equal(contract_do(c, &probe), WT_EDOWN);
    c->fixture->back(c->place);
    wait_for_state(c, false);
    assert_int_equal(contract_get(c, "k", 0, b, 10, &got), 0);
    struct wt_tier_stats stats;
    wt_tier_stats(c->tier, &stats);
    assert_int_equal(stats.down_count, 1);
}

static void opened_while_away(struct contract *c) {
    if (!c->fixture->away)
        skip();
    uint8_t b[10] = "x";
    size_t got;
    assert_int_equal(contract_put(c, "k", b, 10, 0), 0);
    contract_close(c);
    c->fixture->away(c->place);
    c->opts.read_only = true; /* a root that is away is not made anew */
    contract_open(c);
    assert_true(wt_tier_is_down(c->tier));
    assert_int_equal(contract_get(c, "k", 0, b, 10, &got), WT_EDOWN);
    c->fixture->back(c->place);
    wait_for_state(c, false);
    assert_int_equal(wt_tier_caps(c->tier) & WT_CAP_MAP, c->fixture->caps & WT_CAP_MAP);
    assert_int_equal(contract_get(c, "k", 0, b, 10, &got), 0);
}

static void put_while_down(struct contract *c) {
    if (!c->fixture->away)
        skip();
    uint8_t b[10] = "x";
    struct wt_put *one = contract_put_open(c, "one", 10, 0);
    struct wt_put *two = contract_put_open(c, "two", 10, 0);
    assert_int_equal(contract_put_write(c, one, b, 10), 0);
    c->fixture->away(c->place);
    for (int i = 0; i < 5; i++)
        contract_stat(c, "k", NULL);
    assert_true(wt_tier_is_down(c->tier));
    /* Both end; nothing leaks, nothing appears. */
    assert_int_equal(contract_put_end(c, one, WT_OP_PUT_COMMIT), WT_EDOWN);
    contract_put_end(c, two, WT_OP_PUT_ABORT);
    c->fixture->back(c->place);
    wait_for_state(c, false);
    assert_int_equal(contract_stat(c, "one", NULL), WT_EMISSING);
    assert_int_equal(contract_put(c, "one", b, 10, 0), 0);
}

const struct contract_tests contract_flow_tests[] = {
    {"many requests beyond the depth", beyond_depth},
    {"the queue is bounded", queue_bound},
    {"cancel: nobody writes afterwards", cancel},
    {"deadline: nobody writes afterwards", deadline},
    {"deadlines grow with bytes", deadlines_grow},
    {"close with requests in flight", close_in_flight},
    {"submit and close from done()", submit_and_close_from_done},
    {"bad keys and requests", bad_requests},
    {"down and back", down_and_back},
    {"opened while it is away", opened_while_away},
    {"puts end while it is down", put_while_down},
    {NULL, NULL},
};
