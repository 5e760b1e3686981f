/* STAT, GET, MAP: results, ranges, what is missing, what changes. */
#include "contract.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE = 3 * 1000 * 1000 + 7 };

static uint8_t *put_object(struct contract *c, const char *key, size_t len, unsigned seed) {
    uint8_t *data = malloc(len + 1);
    contract_fill(data, len, seed);
    assert_int_equal(contract_put(c, key, data, len, 0), 0);
    return data;
}

static void whole(struct contract *c) {
    uint8_t *data = put_object(c, "a/b/object.tar", SIZE, 1);
    uint64_t size = 0;
    assert_int_equal(contract_stat(c, "a/b/object.tar", &size), 0);
    assert_int_equal(size, SIZE);
    uint8_t *buf = malloc(SIZE + 100);
    memset(buf, 0xee, SIZE + 100);
    size_t got;
    assert_int_equal(contract_get(c, "a/b/object.tar", 0, buf, SIZE + 100, &got), 0);
    assert_int_equal(got, SIZE);
    assert_memory_equal(buf, data, SIZE);
    for (size_t i = SIZE; i < SIZE + 100; i++)
        assert_int_equal(buf[i], 0xee);
    free(buf);
    free(data);
}

static void ranges(struct contract *c) {
    uint8_t *data = put_object(c, "r", SIZE, 2);
    static const struct {
        uint64_t off;
        size_t len, got;
    } rows[] = {
        {0, 1, 1},
        {1, 4096, 4096},
        {SIZE - 1, 1, 1},
        {SIZE - 5, 50, 5},
        {SIZE, 10, 0},
        {SIZE + 1000, 10, 0},
        {12345, 0, 0},
        {262143, 2, 2},
        {262144, 262144, 262144},
        {1000, 1000000, 1000000},
        {UINT64_C(1) << 40, 8, 0},
    };
    uint8_t *buf = malloc(SIZE);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t got = 77;
        memset(buf, 0x55, SIZE);
        assert_int_equal(contract_get(c, "r", rows[i].off, buf, rows[i].len, &got), 0);
        assert_int_equal(got, rows[i].got);
        if (got)
            assert_memory_equal(buf, data + rows[i].off, got);
        assert_int_equal(buf[rows[i].got], 0x55);
    }
    free(buf);
    free(data);
}

static void missing(struct contract *c) {
    uint8_t b[16];
    size_t got;
    free(put_object(c, "there/x", 0, 3));
    assert_int_equal(contract_get(c, "nothing", 0, b, 16, &got), WT_EMISSING);
    assert_int_equal(contract_get(c, "no/such/folder/x", 0, b, 16, &got), WT_EMISSING);
    assert_int_equal(contract_get(c, "there", 0, b, 16, &got), WT_EMISSING);
    assert_int_equal(contract_get(c, "there/x/below", 0, b, 16, &got), WT_EMISSING);
    assert_int_equal(contract_stat(c, "nothing", NULL), WT_EMISSING);
    assert_int_equal(contract_stat(c, "there", NULL), WT_EMISSING);
    struct wt_req req = {.op = WT_OP_REMOVE, .key = "nothing"};
    assert_int_equal(contract_do(c, &req), WT_EMISSING);
    assert_non_null(strstr(req.err.text, "nothing"));
    /* Missing is no failure of the tier. */
    for (int i = 0; i < 20; i++)
        assert_int_equal(contract_stat(c, "nothing", NULL), WT_EMISSING);
    assert_false(wt_tier_is_down(c->tier));
    struct wt_tier_stats stats;
    wt_tier_stats(c->tier, &stats);
    assert_int_equal(stats.missing, 27);
    assert_int_equal(stats.errors[WT_OP_STAT], 0);
}

static void empty(struct contract *c) {
    free(put_object(c, "empty", 0, 4));
    uint64_t size = 9;
    assert_int_equal(contract_stat(c, "empty", &size), 0);
    assert_int_equal(size, 0);
    uint8_t b = 7;
    size_t got = 9;
    assert_int_equal(contract_get(c, "empty", 0, &b, 1, &got), 0);
    assert_int_equal(got, 0);
    assert_int_equal(b, 7);
}

static void map(struct contract *c) {
    struct wt_req req = {.op = WT_OP_MAP, .key = "m"};
    if (!(wt_tier_caps(c->tier) & WT_CAP_MAP)) {
        assert_int_equal(contract_do(c, &req), WT_EUNSUPPORTED);
        return;
    }
    assert_int_equal(contract_do(c, &req), WT_EMISSING);
    uint8_t *data = put_object(c, "m", SIZE, 5);
    assert_int_equal(contract_do(c, &req), 0);
    struct wt_map *first = req.map;
    assert_int_equal(contract_do(c, &req), 0);
    struct wt_map *second = req.map;
    /* While it is held, the mapping is kept: the same memory. */
    assert_ptr_equal(wt_map_view(first).data, wt_map_view(second).data);
    assert_int_equal(wt_map_view(first).size, SIZE);
    wt_map_release(first);
    struct wt_req gone = {.op = WT_OP_REMOVE, .key = "m"};
    assert_int_equal(contract_do(c, &gone), 0);
    uint8_t *other = put_object(c, "m", SIZE, 6);
    assert_memory_equal(wt_map_view(second).data, data, SIZE); /* still the removed one */
    assert_int_equal(contract_do(c, &req), 0);
    assert_memory_equal(wt_map_view(req.map).data, other, SIZE);
    wt_map_release(req.map);
    free(put_object(c, "m0", 0, 7));
    struct wt_req nothing = {.op = WT_OP_MAP, .key = "m0"};
    assert_int_equal(contract_do(c, &nothing), 0);
    assert_int_equal(wt_map_view(nothing.map).size, 0);
    wt_map_release(nothing.map);
    /* A map outlives its tier. */
    contract_close(c);
    assert_memory_equal(wt_map_view(second).data, data, SIZE);
    wt_map_release(second);
    wt_map_release(NULL);
    free(data);
    free(other);
}

static void removed_under_reader(struct contract *c) {
    uint8_t *data = put_object(c, "x", SIZE, 8);
    uint8_t *buf = malloc(SIZE);
    for (int i = 0; i < 20; i++) {
        bool done = false;
        struct wt_req get = {.op = WT_OP_GET,
                             .key = "x",
                             .buf = buf,
                             .len = SIZE,
                             .done = contract_flag,
                             .arg = &done};
        struct wt_req del = {.op = WT_OP_REMOVE, .key = "x"};
        memset(buf, 0, SIZE);
        assert_int_equal(wt_tier_submit(c->tier, &get), 0);
        assert_int_equal(contract_do(c, &del), 0);
        contract_until(c, &done);
        /* All of it, or nothing at all; never a part. */
        if (get.rc == 0) {
            assert_int_equal(get.got, SIZE);
            assert_memory_equal(buf, data, SIZE);
        } else {
            assert_true(get.rc == WT_EMISSING || get.rc == WT_ECHANGED);
        }
        assert_int_equal(contract_put(c, "x", data, SIZE, 0), 0);
    }
    free(buf);
    free(data);
}

static void counters(struct contract *c) {
    uint8_t *data = put_object(c, "n", 100000, 9);
    uint8_t buf[1000];
    size_t got;
    for (int i = 0; i < 10; i++)
        assert_int_equal(contract_get(c, "n", 99500, buf, 1000, &got), 0);
    struct wt_tier_stats stats;
    wt_tier_stats(c->tier, &stats);
    assert_int_equal(stats.ops[WT_OP_GET], 10);
    assert_int_equal(stats.bytes_read, 5000);
    assert_int_equal(stats.bytes_written, 100000);
    assert_int_equal(stats.in_flight, 0);
    assert_int_equal(stats.queued, 0);
    assert_true(stats.latency_us > 0);
    double cost = wt_tier_cost(c->tier, 1 << 20);
    assert_true(cost > 0 && cost < 1e9);
    assert_true(wt_tier_cost(c->tier, 64 << 20) > cost);
    free(data);
}

const struct contract_tests contract_read_tests[] = {
    {"whole object", whole},
    {"ranges, also past the end", ranges},
    {"missing objects", missing},
    {"empty object", empty},
    {"map", map},
    {"removed under a reader", removed_under_reader},
    {"counters and cost", counters},
    {NULL, NULL},
};
