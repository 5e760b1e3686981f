/* The suite's harness: a fresh tier for each test, bounded waits, requests made blocking. */
#include "contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int contract_setup(void **state) {
    struct contract *c = *state;
    memset(&c->opts, 0, sizeof c->opts);
    snprintf(c->opts.name, sizeof c->opts.name, "subject");
    c->tier = NULL;
    if (!c->fixture->make(&c->opts, &c->place))
        return -1;
    assert_int_equal(uv_loop_init(&c->loop), 0);
    contract_open(c);
    return 0;
}

int contract_teardown(void **state) {
    struct contract *c = *state;
    if (c->tier)
        contract_close(c);
    /* What a failed test left behind must not hide its failure. */
    uv_run(&c->loop, UV_RUN_NOWAIT);
    int rc = uv_loop_close(&c->loop);
    c->fixture->drop(c->place);
    return rc;
}

void contract_open(struct contract *c) {
    struct wt_err err = {0};
    if (wt_tier_open(&c->loop, &c->opts, NULL, &c->tier, &err) < 0)
        fail_msg("%s", err.text);
}

static void on_closed(void *arg) {
    ((struct contract *)arg)->closed = true;
}

void contract_close(struct contract *c) {
    c->closed = false;
    wt_tier_close(c->tier, on_closed, c);
    contract_until(c, &c->closed);
    c->tier = NULL;
}

static void on_too_long(uv_timer_t *timer) {
    *(bool *)timer->data = true;
}

static void guard(struct contract *c, bool (*over)(const void *), const void *what) {
    bool late = false;
    uv_timer_t timer;
    uv_timer_init(&c->loop, &timer);
    timer.data = &late;
    uv_timer_start(&timer, on_too_long, CONTRACT_WAIT_MS, 0);
    while (!over(what) && !late)
        uv_run(&c->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&c->loop, UV_RUN_NOWAIT);
    if (late)
        fail_msg("nothing came within %d ms", CONTRACT_WAIT_MS);
}

static bool flag_is_set(const void *flag) {
    return *(const bool *)flag;
}

void contract_until(struct contract *c, const bool *flag) {
    guard(c, flag_is_set, flag);
}

struct counting {
    const unsigned *count;
    unsigned want;
};

static bool counted(const void *what) {
    const struct counting *x = what;
    return *x->count >= x->want;
}

void contract_until_count(struct contract *c, const unsigned *count, unsigned want) {
    struct counting x = {count, want};
    guard(c, counted, &x);
}

void contract_flag(struct wt_req *req) {
    *(bool *)req->arg = true;
}

int contract_do(struct contract *c, struct wt_req *req) {
    bool done = false;
    req->done = contract_flag;
    req->arg = &done;
    int rc = wt_tier_submit(c->tier, req);
    assert_false(done); /* never from inside submit */
    if (rc < 0)
        return rc;
    contract_until(c, &done);
    if (req->rc < 0) {
        assert_int_equal(req->err.code, req->rc);
        assert_non_null(strstr(req->err.text, "tier subject ("));
    }
    return req->rc;
}

struct wt_put *contract_put_open(struct contract *c, const char *key, uint64_t size,
                                 unsigned flags) {
    struct wt_req req = {.op = WT_OP_PUT_OPEN, .key = key, .size = size, .flags = flags};
    if (contract_do(c, &req) < 0)
        fail_msg("%s", req.err.text);
    return req.put;
}

int contract_put_write(struct contract *c, struct wt_put *put, const void *data, size_t len) {
    for (size_t off = 0; off < len;) {
        size_t n = len - off < WT_PART ? len - off : (size_t)WT_PART;
        struct wt_req req = {.op = WT_OP_PUT_WRITE,
                             .put = put,
                             .off = off,
                             .src = (const char *)data + off,
                             .len = n};
        int rc = contract_do(c, &req);
        if (rc < 0)
            return rc;
        off += n;
    }
    return 0;
}

int contract_put_end(struct contract *c, struct wt_put *put, enum wt_op op) {
    struct wt_req req = {.op = op, .put = put};
    return contract_do(c, &req);
}

int contract_put(struct contract *c, const char *key, const void *data, size_t len,
                 unsigned flags) {
    struct wt_req req = {.op = WT_OP_PUT_OPEN, .key = key, .size = len, .flags = flags};
    int rc = contract_do(c, &req);
    if (rc < 0)
        return rc;
    rc = contract_put_write(c, req.put, data, len);
    if (rc < 0) {
        contract_put_end(c, req.put, WT_OP_PUT_ABORT);
        return rc;
    }
    return contract_put_end(c, req.put, WT_OP_PUT_COMMIT);
}

int contract_get(struct contract *c, const char *key, uint64_t off, void *buf, size_t len,
                 size_t *got) {
    struct wt_req req = {.op = WT_OP_GET, .key = key, .off = off, .buf = buf, .len = len};
    int rc = contract_do(c, &req);
    *got = req.got;
    return rc;
}

int contract_stat(struct contract *c, const char *key, uint64_t *size) {
    struct wt_req req = {.op = WT_OP_STAT, .key = key};
    int rc = contract_do(c, &req);
    if (rc == 0 && size)
        *size = req.size;
    return rc;
}

void contract_fill(uint8_t *data, size_t len, unsigned seed) {
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (size_t i = 0; i < len; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        data[i] = (uint8_t)(x >> 56);
    }
}

/* ---- every test over every fixture ---- */

struct bound_test {
    struct contract c;
    void (*run)(struct contract *c);
};

static void run_bound(void **state) {
    struct bound_test *t = *state;
    t->run(&t->c);
}

enum { MAX_TESTS = 100 };

static size_t gather(const struct contract_fixture *fixture, const struct contract_tests *tests,
                     struct bound_test *bound, struct CMUnitTest *unit) {
    size_t n = 0;
    for (; tests[n].name; n++) {
        bound[n] = (struct bound_test){.c = {.fixture = fixture}, .run = tests[n].run};
        unit[n] = (struct CMUnitTest){tests[n].name, run_bound, contract_setup, contract_teardown,
                                      &bound[n]};
    }
    return n;
}

static int run_fixture(const struct contract_fixture *fixture) {
    struct CMUnitTest *unit = calloc(MAX_TESTS, sizeof *unit);
    struct bound_test *bound = calloc(MAX_TESTS, sizeof *bound);
    const struct contract_tests *const topics[] = {contract_read_tests, contract_write_tests,
                                                   contract_flow_tests, contract_other_tests};
    size_t n = 0;
    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++)
        n += gather(fixture, topics[i], bound + n, unit + n);
    int rc = _cmocka_run_group_tests(fixture->name, unit, n, NULL, NULL);
    free(bound);
    free(unit);
    return rc;
}

/* One fixture by name, or all. */
/* Its servers run, its folders are there; if not, make() said why. */
static bool is_there(const struct contract_fixture *fixture) {
    struct wt_tier_opts opts = {.name = "subject"};
    void *place;
    if (!fixture->make(&opts, &place))
        return false;
    fixture->drop(place);
    return true;
}

int main(int argc, char **argv) {
    int failed = 0, ran = 0, skipped = 0;
    for (size_t i = 0; contract_fixtures[i]; i++) {
        if (argc >= 2 && strcmp(argv[1], contract_fixtures[i]->name) != 0)
            continue;
        if (!is_there(contract_fixtures[i])) {
            skipped++;
            continue;
        }
        failed += run_fixture(contract_fixtures[i]);
        ran++;
    }
    if (!ran && !skipped)
        print_error("no fixture is called %s\n", argv[1]);
    return failed ? 1 : ran ? 0 : skipped ? 77 : 1;
}
