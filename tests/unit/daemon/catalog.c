/* The catalog: accounts of bytes and shards, generations, numbers. */
#include "daemon/catalog.h"
#include "sets.h"

struct changes {
    unsigned hold, lose;
};

static void on_change(void *arg, const struct wt_catalog_set *set, uint64_t shard, uint32_t tier,
                      bool held) {
    struct changes *c = arg;
    (void)set;
    (void)shard;
    (void)tier;
    *(held ? &c->hold : &c->lose) += 1;
}

static struct wt_catalog_set *add(struct wt_catalog *c, struct wt_dataset d, uint64_t manifest) {
    struct wt_catalog_set *set;
    struct wt_err err = {0};
    assert_int_equal(wt_catalog_add(c, &d, (struct wt_hash){manifest, 0}, &set, &err), 0);
    assert_null(d.idx); /* taken over */
    return set;
}

static void accounts(void **state) {
    (void)state;
    struct wt_catalog c;
    struct changes seen = {0};
    wt_catalog_init(&c, 3);
    c.changed = on_change;
    c.arg = &seen;
    struct wt_catalog_set *a = add(&c, make_set("a", 1, 10, 1000, 1, 0), 1);
    assert_int_equal(a->shard[3].mask, 1);
    wt_catalog_hold(&c, a, 3, 2, 77, true);
    wt_catalog_hold(&c, a, 3, 2, 99, true);
    wt_catalog_hold(&c, a, 3, 1, 77, false);
    assert_int_equal(a->shard[3].mask, 7);
    assert_int_equal(a->shard[3].sure, 5);
    assert_int_equal(a->shard[3].since, 77);
    assert_int_equal(c.used[2], 1000);
    assert_int_equal(c.held[1], 1);
    assert_int_equal(a->held[2], 1);
    wt_catalog_lose(&c, a, 3, 2);
    wt_catalog_lose(&c, a, 3, 2);
    wt_catalog_lose(&c, a, 3, 0); /* cold is never lost */
    assert_int_equal(a->shard[3].mask, 3);
    assert_int_equal(a->shard[3].sure, 1);
    assert_int_equal(c.used[2], 0);
    assert_int_equal(seen.hold, 2);
    assert_int_equal(seen.lose, 1);
    wt_catalog_free(&c);
}

static struct wt_dataset landed_set(uint64_t generation, const char *home) {
    struct wt_dataset d = make_set("a", generation, 4, 1000, 1, 0);
    snprintf(d.m.home, sizeof d.m.home, "%s", home);
    return d;
}

/* Landed, flushed shard by shard, and at home in cold with the next generation. */
static void homes(void **state) {
    (void)state;
    struct wt_catalog c;
    struct wt_tier_opts tiers[3] = {{.name = "cold"}, {.name = "warm"}, {.name = "hot"}};
    wt_catalog_init(&c, 3);
    c.tiers = tiers;
    struct wt_catalog_set *a = add(&c, landed_set(1, "warm"), 1);
    assert_int_equal(a->home, 1);
    assert_int_equal(a->dirty, 4);
    assert_int_equal(a->shard[2].mask, 2); /* believed, not seen */
    assert_int_equal(a->shard[2].sure, 0);
    assert_int_equal(c.landed[1], 4000);
    assert_int_equal(c.used[1], 4000);
    assert_int_equal(wt_catalog_truth(a, 2), 1);
    assert_true(wt_catalog_landed(a, 2, 1));
    assert_int_equal(wt_catalog_bound(a, 2), 2);
    for (uint64_t i = 0; i < 4; i++)
        wt_catalog_hold(&c, a, i, 0, 5, true);
    wt_catalog_hold(&c, a, 0, 0, 5, true);
    assert_int_equal(a->dirty, 0);
    assert_int_equal(wt_catalog_truth(a, 2), 0);
    assert_true(wt_catalog_landed(a, 2, 1)); /* until a manifest says so */
    wt_catalog_lose(&c, a, 3, 1);
    assert_int_equal(c.landed[1], 3000);

    struct wt_catalog_set *b = add(&c, landed_set(2, ""), 2);
    assert_int_equal(b->home, 0);
    assert_int_equal(b->dirty, 0);
    assert_int_equal(b->shard[2].mask, 3);
    assert_int_equal(b->shard[3].mask, 1);
    assert_false(wt_catalog_landed(b, 2, 1));
    assert_int_equal(wt_catalog_bound(b, 2), 0);
    assert_int_equal(c.landed[1], 0);
    assert_int_equal(c.used[1], 3000);

    /* The same shards, landed again: cold is known to have them. Then a tier that is not there. */
    struct wt_catalog_set *e = add(&c, landed_set(3, "warm"), 3);
    assert_int_equal(e->dirty, 0);
    assert_int_equal(e->shard[3].mask, 1);
    assert_int_equal(c.landed[1], 3000);
    struct wt_dataset d = make_set("b", 1, 2, 1000, 9, 0);
    snprintf(d.m.home, sizeof d.m.home, "attic");
    struct wt_catalog_set *f = add(&c, d, 4);
    assert_int_equal(f->home, -1);
    assert_int_equal(f->dirty, 2);
    assert_int_equal(f->shard[0].mask, 0);
    wt_catalog_free(&c);
}

static void numbers(void **state) {
    (void)state;
    struct wt_catalog c;
    wt_catalog_init(&c, 2);
    struct wt_catalog_set *sets[3] = {add(&c, make_set("a", 1, 5, 10, 1, 0), 1),
                                      add(&c, make_set("b", 1, 1, 10, 1, 0), 2),
                                      add(&c, make_set("c", 1, 7, 10, 1, 0), 3)};
    static const int expect[13] = {0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2};
    assert_int_equal(c.shards, 13);
    for (uint64_t i = 0; i < 13; i++) {
        uint64_t shard;
        struct wt_catalog_set *s = wt_catalog_at(&c, i, &shard);
        assert_ptr_equal(s, sets[expect[i]]);
        assert_int_equal(s->base + shard, i);
    }
    assert_ptr_equal(wt_catalog_find(&c, "b", 0), sets[1]);
    assert_ptr_equal(wt_catalog_find(&c, "b", 1), sets[1]);
    assert_null(wt_catalog_find(&c, "b", 2));
    assert_null(wt_catalog_find(&c, "d", 0));
    wt_catalog_free(&c);
}

static void generations(void **state) {
    (void)state;
    struct wt_catalog c;
    wt_catalog_init(&c, 3);
    struct wt_catalog_set *one = add(&c, make_set("a", 1, 10, 1000, 1, 4), 1);
    for (uint64_t i = 0; i < 10; i++)
        wt_catalog_hold(&c, one, i, 2, 5, true);
    one->shard[2].heat = 3;
    one->shard[1].flags = WT_SHARD_BUSY;
    one->jobs = 1;
    assert_ptr_equal(add(&c, make_set("a", 1, 10, 1000, 1, 4), 1),
                     one); /* the same manifest: nothing new */
    uint64_t shape = c.shape;
    struct wt_catalog_set *two = add(&c, make_set("a", 2, 12, 1000, 9, 4), 2);
    assert_ptr_not_equal(two, one);
    assert_int_not_equal(c.shape, shape);
    assert_true(one->retired);
    assert_int_equal(two->held[2], 3); /* of four equal ones, the moving one stays behind */
    assert_int_equal(one->held[2], 7);
    assert_int_equal(c.used[2], 10000);
    assert_true(two->shard[2].heat > 2);
    assert_int_equal(two->shard[1].mask, 1);
    assert_ptr_equal(wt_catalog_find(&c, "a", 0), two);
    assert_ptr_equal(wt_catalog_find(&c, "a", 1), one);
    assert_ptr_equal(wt_catalog_home(&c, one, 2), two);
    assert_ptr_equal(wt_catalog_home(&c, one, 7), one);
    assert_ptr_equal(wt_catalog_home(&c, two, 7), two);
    one->shard[1].flags = 0; /* its move has ended: over it goes; what only the old one has stays */
    wt_catalog_hand_on(&c, one, 1);
    wt_catalog_hand_on(&c, one, 7);
    assert_int_equal(two->shard[1].mask, 5);
    assert_int_equal(two->shard[1].sure, 5);
    assert_int_equal(one->shard[1].mask, 1);
    assert_int_equal(one->shard[7].mask, 5);
    assert_int_equal(two->held[2], 4);
    assert_int_equal(one->held[2], 6);
    assert_int_equal(c.used[2], 10000);
    wt_catalog_reap(&c);
    assert_int_equal(c.n_sets, 2); /* a job reads it */
    one->jobs = 0;
    for (uint64_t i = 0; i < 10; i++)
        wt_catalog_lose(&c, one, i, 2);
    one->moves = 1;
    wt_catalog_reap(&c);
    assert_int_equal(c.n_sets, 2);
    one->moves = 0;
    wt_catalog_reap(&c);
    assert_int_equal(c.n_sets, 1);
    assert_int_equal(c.shards, 12);
    assert_int_equal(two->base, 0);
    assert_int_equal(c.used[2], 4000);
    wt_catalog_free(&c);
}

static void what_is_kept_and_what_quotas_leave(void **state) {
    (void)state;
    struct wt_catalog c;
    wt_catalog_init(&c, 3);
    struct wt_catalog_set *a = add(&c, make_set("a", 1, 10, 1000, 1, 0), 1);
    uint64_t size = wt_catalog_size(a, 0);
    assert_int_equal(wt_catalog_unkept(a, 0, 10, 2), 10 * size);
    wt_catalog_keep(&c, a, 3, 4, 0);
    wt_catalog_keep(&c, a, 3, 4, 4); /* pinned and wanted: once */
    wt_catalog_keep(&c, a, 4, 0, 2 | 4);
    assert_int_equal(c.kept[2], 2 * size);
    assert_int_equal(c.kept[1], size);
    assert_int_equal(a->kept, 2);
    assert_int_equal(wt_catalog_unkept(a, 0, 10, 2), 8 * size);
    assert_int_equal(wt_catalog_unkept(a, 3, 5, 1), size);
    wt_catalog_hold(&c, a, 0, 2, 1, true);
    wt_catalog_quota(a, 2, 2 * size);
    assert_true(a->limited);
    assert_true(wt_catalog_room(a, 2, size));
    assert_false(wt_catalog_room(a, 2, size + 1));
    a->coming[2] = size;
    assert_false(wt_catalog_room(a, 2, 1));
    assert_true(wt_catalog_room(a, 1, UINT64_MAX));
    wt_catalog_quota(a, 2, UINT64_MAX);
    assert_false(a->limited);
    a->coming[2] = 0;
    /* a new generation has its pins, and nobody's requests; the accounts follow */
    struct wt_catalog_set *b = add(&c, make_set("a", 2, 10, 1000, 1, 0), 2);
    assert_int_equal(b->shard[3].pin, 4);
    assert_int_equal(b->shard[3].want | b->shard[4].want, 0);
    assert_int_equal(c.kept[2], size);
    assert_int_equal(c.kept[1], 0);
    assert_int_equal(a->kept, 0);
    assert_int_equal(b->used[2], size);
    assert_int_equal(a->used[2], 0);
    wt_catalog_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(accounts), cmocka_unit_test(homes),
                                       cmocka_unit_test(what_is_kept_and_what_quotas_leave),
                                       cmocka_unit_test(numbers), cmocka_unit_test(generations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
