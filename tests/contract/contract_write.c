/* PUT_*, REMOVE: whole or not at all, replace, capacity. */
#include "contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BIG = WT_PART + WT_PART / 2 };

static void invisible_before_commit(struct contract *c) {
    uint8_t *data = malloc(BIG);
    contract_fill(data, BIG, 1);
    struct wt_put *put = contract_put_open(c, "d/s", BIG, 0);
    assert_int_equal(contract_stat(c, "d/s", NULL), WT_EMISSING);
    assert_int_equal(contract_put_write(c, put, data, BIG), 0);
    assert_int_equal(contract_stat(c, "d/s", NULL), WT_EMISSING);
    assert_int_equal(contract_put_end(c, put, WT_OP_PUT_COMMIT), 0);
    uint8_t *buf = malloc(BIG);
    size_t got;
    assert_int_equal(contract_get(c, "d/s", 0, buf, BIG, &got), 0);
    assert_int_equal(got, BIG);
    assert_memory_equal(buf, data, BIG);
    free(buf);
    free(data);
}

static void parts_in_any_order(struct contract *c) {
    uint8_t *data = malloc(BIG);
    contract_fill(data, BIG, 2);
    struct wt_put *put = contract_put_open(c, "o", BIG, 0);
    struct wt_req last = {.op = WT_OP_PUT_WRITE,
                          .put = put,
                          .off = WT_PART,
                          .src = data + WT_PART,
                          .len = BIG - WT_PART};
    assert_int_equal(contract_do(c, &last), 0);
    struct wt_req first = {.op = WT_OP_PUT_WRITE, .put = put, .src = data, .len = WT_PART};
    assert_int_equal(contract_do(c, &first), 0);
    /* Each byte once, and only as a part. */
    assert_int_equal(contract_do(c, &first), WT_EINVAL);
    struct wt_req odd = {.op = WT_OP_PUT_WRITE, .put = put, .off = 5, .src = data, .len = 100};
    assert_int_equal(contract_do(c, &odd), WT_EINVAL);
    assert_int_equal(contract_put_end(c, put, WT_OP_PUT_COMMIT), 0);
    uint8_t *buf = malloc(BIG);
    size_t got;
    assert_int_equal(contract_get(c, "o", 0, buf, BIG, &got), 0);
    assert_memory_equal(buf, data, BIG);
    free(buf);
    free(data);
}

static int count_entry(struct wt_req *req, const struct wt_entry *entry) {
    (void)entry;
    req->size++;
    return 0;
}

static size_t entries(struct contract *c) {
    struct wt_req req = {.op = WT_OP_LIST, .key = "", .on_entry = count_entry};
    assert_int_equal(contract_do(c, &req), 0);
    return req.size;
}

static void abort_leaves_nothing(struct contract *c) {
    uint8_t data[1000] = {1};
    struct wt_put *put = contract_put_open(c, "gone", 1000, 0);
    assert_int_equal(contract_put_write(c, put, data, 1000), 0);
    assert_int_equal(contract_put_end(c, put, WT_OP_PUT_ABORT), 0);
    assert_int_equal(contract_stat(c, "gone", NULL), WT_EMISSING);
    assert_int_equal(entries(c), 0);
    assert_int_equal(contract_put(c, "gone", data, 1000, 0), 0);
}

static void incomplete_commit(struct contract *c) {
    uint8_t *data = malloc(BIG);
    contract_fill(data, BIG, 3);
    struct wt_put *put = contract_put_open(c, "half", BIG, 0);
    assert_int_equal(contract_put_write(c, put, data, WT_PART), 0);
    struct wt_req req = {.op = WT_OP_PUT_COMMIT, .put = put};
    assert_int_equal(contract_do(c, &req), WT_EINVAL);
    assert_non_null(strstr(req.err.text, "half"));
    assert_int_equal(contract_stat(c, "half", NULL), WT_EMISSING);
    assert_int_equal(entries(c), 0);
    free(data);
}

static void no_replace(struct contract *c) {
    uint8_t a[10] = "first", b[10] = "second", buf[10];
    assert_int_equal(contract_put(c, "k", a, 10, 0), 0);
    assert_int_equal(contract_put(c, "k", b, 10, 0), WT_EEXISTS);
    /* Two under way: one of them wins, the other one's commit says so. */
    struct wt_put *one = contract_put_open(c, "k2", 10, 0);
    struct wt_put *two = contract_put_open(c, "k2", 10, 0);
    assert_int_equal(contract_put_write(c, one, a, 10), 0);
    assert_int_equal(contract_put_write(c, two, b, 10), 0);
    assert_int_equal(contract_put_end(c, two, WT_OP_PUT_COMMIT), 0);
    assert_int_equal(contract_put_end(c, one, WT_OP_PUT_COMMIT), WT_EEXISTS);
    size_t got;
    assert_int_equal(contract_get(c, "k2", 0, buf, 10, &got), 0);
    assert_memory_equal(buf, b, 10);
    assert_int_equal(contract_get(c, "k", 0, buf, 10, &got), 0);
    assert_memory_equal(buf, a, 10);
    assert_int_equal(entries(c), 2);
}

/* Readers beside replacing writers see one version whole, never a mixture. */
struct replacing {
    struct contract *c;
    unsigned reads, stop;
    bool bad;
    struct wt_req req[4];
    uint8_t buf[4][4096];
};

static void again(struct wt_req *req) {
    struct replacing *r = req->arg;
    const uint8_t *buf = req->buf;
    if (req->rc != 0 || req->got != 4096)
        r->bad = true;
    for (size_t i = 1; i < req->got; i++)
        r->bad |= buf[i] != buf[0];
    r->reads++;
    if (r->stop || wt_tier_submit(r->c->tier, req) < 0)
        r->stop++;
}

static void replace_is_atomic(struct contract *c) {
    uint8_t data[4096];
    memset(data, 0, sizeof data);
    assert_int_equal(contract_put(c, "manifest.json", data, sizeof data, 0), 0);
    struct replacing r = {.c = c};
    for (int i = 0; i < 4; i++) {
        r.req[i] = (struct wt_req){.op = WT_OP_GET,
                                   .key = "manifest.json",
                                   .buf = r.buf[i],
                                   .len = 4096,
                                   .done = again,
                                   .arg = &r};
        assert_int_equal(wt_tier_submit(c->tier, &r.req[i]), 0);
    }
    for (int i = 1; i <= 30; i++) {
        memset(data, i, sizeof data);
        assert_int_equal(contract_put(c, "manifest.json", data, sizeof data, WT_PUT_REPLACE), 0);
    }
    r.stop = 1;
    contract_until_count(c, &r.stop, 5);
    assert_false(r.bad);
    assert_true(r.reads > 30);
    uint8_t buf[4096];
    size_t got;
    assert_int_equal(contract_get(c, "manifest.json", 0, buf, sizeof buf, &got), 0);
    assert_memory_equal(buf, data, sizeof data);
}

static void removing(struct contract *c) {
    uint8_t data[100] = {0};
    assert_int_equal(contract_put(c, "a/b/c", data, 100, 0), 0);
    struct wt_req req = {.op = WT_OP_REMOVE, .key = "a/b/c"};
    assert_int_equal(contract_do(c, &req), 0);
    assert_int_equal(contract_do(c, &req), WT_EMISSING);
    assert_int_equal(contract_stat(c, "a/b/c", NULL), WT_EMISSING);
    struct wt_req folder = {.op = WT_OP_REMOVE, .key = "a/b"};
    assert_int_equal(contract_do(c, &folder), WT_EMISSING);
    assert_int_equal(contract_put(c, "a/b/c", data, 100, 0), 0);
}

static void usage_is(struct contract *c, uint64_t used, uint64_t capacity) {
    struct wt_req req = {.op = WT_OP_USAGE};
    assert_int_equal(contract_do(c, &req), 0);
    assert_int_equal(req.used, used);
    assert_int_equal(req.capacity, capacity);
}

static void full_then_room(struct contract *c) {
    enum { OBJECT = 100000 };
    uint8_t *data = calloc(1, OBJECT);
    assert_int_equal(contract_put(c, "before", data, OBJECT, 0), 0);
    contract_close(c);
    c->opts.capacity = 3 * OBJECT + 10;
    contract_open(c);
    assert_int_equal(contract_put(c, "one", data, OBJECT, 0), 0);
    /* What is under way counts as well. */
    struct wt_put *put = contract_put_open(c, "two", OBJECT, 0);
    struct wt_req req = {.op = WT_OP_PUT_OPEN, .key = "three", .size = OBJECT};
    assert_int_equal(contract_do(c, &req), WT_EFULL);
    assert_int_equal(contract_put_end(c, put, WT_OP_PUT_ABORT), 0);
    assert_int_equal(contract_put(c, "two", data, OBJECT, 0), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(contract_put(c, "three", data, OBJECT, 0), WT_EFULL);
    assert_false(wt_tier_is_down(c->tier)); /* full is not down */
    usage_is(c, 3 * OBJECT, 3 * OBJECT + 10);
    struct wt_req del = {.op = WT_OP_REMOVE, .key = "before"};
    assert_int_equal(contract_do(c, &del), 0);
    assert_int_equal(contract_put(c, "three", data, OBJECT, 0), 0);
    usage_is(c, 3 * OBJECT, 3 * OBJECT + 10);
    struct wt_req huge = {.op = WT_OP_PUT_OPEN, .key = "huge", .size = UINT64_C(1) << 62};
    int rc = contract_do(c, &huge);
    assert_true(rc == WT_EFULL || rc == WT_ERANGE);
    struct wt_req huger = {.op = WT_OP_PUT_OPEN, .key = "huge", .size = UINT64_MAX};
    rc = contract_do(c, &huger);
    assert_true(rc == WT_EFULL || rc == WT_ERANGE);
    free(data);
}

static void usage_without_limit(struct contract *c) {
    uint8_t data[5000] = {0};
    assert_int_equal(contract_put(c, "u/1", data, 5000, 0), 0);
    struct wt_req req = {.op = WT_OP_USAGE};
    assert_int_equal(contract_do(c, &req), 0);
    assert_int_equal(req.used, 5000);
    assert_int_equal(contract_put(c, "u/2", data, 1000, 0), 0);
    assert_int_equal(contract_put(c, "u/2", data, 300, WT_PUT_REPLACE), 0);
    assert_int_equal(contract_do(c, &req), 0);
    assert_int_equal(req.used, 5300);
}

static void read_only(struct contract *c) {
    uint8_t data[10] = "x", buf[10];
    size_t got;
    assert_int_equal(contract_put(c, "k", data, 10, 0), 0);
    contract_close(c);
    c->opts.read_only = true;
    contract_open(c);
    assert_int_equal(wt_tier_caps(c->tier) & (WT_CAP_WRITE | WT_CAP_LOCK), 0);
    struct wt_req put = {.op = WT_OP_PUT_OPEN, .key = "n", .size = 10};
    assert_int_equal(contract_do(c, &put), WT_EDENIED);
    struct wt_req del = {.op = WT_OP_REMOVE, .key = "k"};
    assert_int_equal(contract_do(c, &del), WT_EDENIED);
    struct wt_req lock = {.op = WT_OP_LOCK, .key = "l", .owner = "me", .ttl_ms = 1000};
    assert_int_equal(contract_do(c, &lock), WT_EDENIED);
    assert_int_equal(contract_get(c, "k", 0, buf, 10, &got), 0);
    assert_memory_equal(buf, data, 10);
}

static void left_open_at_close(struct contract *c) {
    uint8_t data[100] = {0};
    struct wt_put *put = contract_put_open(c, "left", 100, 0);
    contract_put_open(c, "left2", UINT32_C(50) << 20, 0);
    assert_int_equal(contract_put_write(c, put, data, 100), 0);
    contract_close(c);
    contract_open(c);
    assert_int_equal(entries(c), 0);
}

const struct contract_tests contract_write_tests[] = {
    {"a put is invisible before its commit", invisible_before_commit},
    {"parts in any order, each once", parts_in_any_order},
    {"an abort leaves nothing", abort_leaves_nothing},
    {"an incomplete commit leaves nothing", incomplete_commit},
    {"no replacing", no_replace},
    {"replacing is atomic", replace_is_atomic},
    {"remove", removing},
    {"full, then room again", full_then_room},
    {"usage without a limit", usage_without_limit},
    {"read only", read_only},
    {"puts left open at the close", left_open_at_close},
    {NULL, NULL},
};
