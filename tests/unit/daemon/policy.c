/* The policy in a small world: capacities hold, the hottest are up, loops do not churn, scans flush
 * nothing, odd tiers are left alone. */
#include "daemon/policy/policy.h"

#include "daemon/heat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX = 20000, TIERS = 3 };

struct world {
    struct wt_policy_shard shard[MAX];
    float heat[MAX];
    uint32_t heated[MAX], since[MAX];
    uint64_t n;
    struct wt_policy_tier tier[WT_POLICY_TIERS];
    uint32_t n_tiers;
    struct wt_policy_conf conf;
    struct wt_policy *p;
    uint32_t now;
    double half_life;
    struct wt_policy_move move[MAX];
    size_t n_moves;
    uint64_t copies, drops; /* made so far */
};

static const struct wt_policy_conf usual = {.cold_below = 0.01,
                                            .hot_above = 0.1,
                                            .percentile = 0.95,
                                            .high = 1,
                                            .low = 0.9,
                                            .beat = 1.5,
                                            .margin = 1,
                                            .min_stay = 0};

static struct world *make(uint64_t n, uint64_t size, uint32_t n_tiers) {
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->n = n;
    w->n_tiers = n_tiers;
    w->conf = usual;
    w->now = 1000;
    w->half_life = 1e9;
    for (uint64_t i = 0; i < n; i++)
        w->shard[i] = (struct wt_policy_shard){.size = size, .mask = 1};
    for (uint32_t t = 0; t < n_tiers; t++)
        w->tier[t].usable = true;
    w->p = wt_policy_new(n_tiers);
    assert_non_null(w->p);
    return w;
}

static void end(struct world *w) {
    wt_policy_free(w->p);
    free(w);
}

static void get(void *arg, uint64_t i, struct wt_policy_shard *out) {
    struct world *w = arg;
    *out = w->shard[i];
    out->heat = wt_heat_at(w->heat[i], w->heated[i], w->now, w->half_life);
    out->age = w->now - w->since[i];
}

static void on_move(void *arg, const struct wt_policy_move *m) {
    struct world *w = arg;
    assert_true(m->shard < w->n);
    assert_true(m->to >= 0 || m->drop >= 0);
    assert_int_not_equal(m->to, m->drop);
    assert_int_not_equal(m->to, 0); /* cold has it all */
    assert_int_not_equal(m->drop, 0);
    assert_false(w->shard[m->shard].busy);
    for (size_t i = 0; i < w->n_moves; i++)
        assert_int_not_equal(w->move[i].shard, m->shard); /* one move of a shard at a time */
    assert_true(w->n_moves < MAX);
    w->move[w->n_moves++] = *m;
}

/* One pass; its moves are in w->move, and are under way. */
static size_t pass(struct world *w) {
    struct wt_policy_view view = {.shards = w->n, .get = get, .arg = w};
    w->n_moves = 0;
    while (!wt_policy_step(w->p, &w->conf, &view, w->tier, 777, on_move, w))
        continue;
    for (size_t i = 0; i < w->n_moves; i++) {
        const struct wt_policy_move *m = &w->move[i];
        w->shard[m->shard].busy = true;
        if (m->to >= 0)
            w->tier[m->to].used += w->shard[m->shard].size;
        if (m->drop >= 0)
            w->tier[m->drop].leaving += w->shard[m->shard].size;
    }
    return w->n_moves;
}

static void finish(struct world *w) {
    for (size_t i = 0; i < w->n_moves; i++) {
        const struct wt_policy_move *m = &w->move[i];
        struct wt_policy_shard *s = &w->shard[m->shard];
        s->busy = false;
        if (m->to >= 0) {
            assert_false(s->mask & (1u << m->to));
            s->mask |= (uint8_t)(1u << m->to);
            w->since[m->shard] = w->now;
            w->copies++;
        }
        if (m->drop >= 0) {
            assert_true(s->mask & (1u << m->drop));
            s->mask &= (uint8_t) ~(1u << m->drop);
            w->tier[m->drop].used -= s->size;
            w->tier[m->drop].leaving -= s->size;
            w->drops++;
        }
    }
    for (uint32_t t = 1; t < w->n_tiers;
         t++) { /* the accounts are right, and no capacity is exceeded */
        uint64_t used = 0;
        for (uint64_t i = 0; i < w->n; i++)
            used += w->shard[i].mask & (1u << t) ? w->shard[i].size : 0;
        assert_int_equal(used, w->tier[t].used);
    }
}

static void check_capacity(const struct world *w) {
    for (uint32_t t = 1; t < w->n_tiers; t++)
        if (w->tier[t].capacity)
            assert_true(w->tier[t].used <= w->tier[t].capacity);
}

/* Until nothing is to do any more. */
static void settle(struct world *w) {
    for (int i = 0; i < 1000; i++) {
        if (pass(w) == 0)
            return;
        check_capacity(w);
        finish(w);
    }
    fail_msg("the policy never rests");
}

static void read_shard(struct world *w, uint64_t i, double reads) {
    wt_heat_add(&w->heat[i], &w->heated[i], w->now, w->half_life, (uint64_t)(reads * 1000), 1000);
}

static uint64_t held(const struct world *w, uint32_t tier) {
    uint64_t n = 0;
    for (uint64_t i = 0; i < w->n; i++)
        n += w->shard[i].mask >> tier & 1;
    return n;
}

static uint64_t next_random(uint64_t *x) {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* ---- cases ---- */

static void what_is_read_goes_up(void **state) {
    (void)state;
    struct world *w = make(100, 10, TIERS);
    settle(w);
    assert_int_equal(w->copies, 0); /* nothing was read */
    for (uint64_t i = 0; i < 30; i++)
        read_shard(w, i, 1);
    settle(w);
    assert_int_equal(held(w, 2), 30); /* straight up, no detour */
    assert_int_equal(held(w, 1), 0);
    assert_int_equal(w->copies, 30);
    end(w);
}

static void bands(void **state) {
    (void)state;
    assert_int_equal(wt_policy_band(&usual, 3, 0, 1), 0);
    assert_int_equal(wt_policy_band(&usual, 3, 0.0099, 1), 0);
    assert_int_equal(wt_policy_band(&usual, 3, 0.011, 1), 1);
    assert_int_equal(wt_policy_band(&usual, 3, 0.09, 1), 1);
    assert_int_equal(wt_policy_band(&usual, 3, 0.11, 1), 2);
    assert_int_equal(wt_policy_band(&usual, 3, 11, 100), 2);
    assert_int_equal(wt_policy_band(&usual, 3, 1, 0), 0);
    assert_int_equal(wt_policy_band(&usual, 2, 0.011, 1), 1);
    assert_int_equal(wt_policy_band(&usual, 1, 5, 1), 0);
    assert_int_equal(wt_policy_band(&usual, 4, 0.012, 1), 1);
    assert_int_equal(wt_policy_band(&usual, 4, 0.09, 1), 2);
    assert_int_equal(wt_policy_band(&usual, 4, 0.5, 1), 3);
    struct wt_policy_conf flat = usual;
    flat.cold_below = flat.hot_above = 0;
    assert_int_equal(wt_policy_band(&flat, 3, 1e-5, 1), 2);

    struct world *w = make(300, 10, TIERS);
    for (uint64_t i = 0; i < 300; i++) /* a third each: hot, lukewarm, hardly read */
        read_shard(w, i, i < 100 ? 100 : i < 200 ? 5 : 0.1);
    settle(w);
    for (uint64_t i = 0; i < 300; i++)
        assert_int_equal(w->shard[i].mask, i < 100 ? 5 : i < 200 ? 3 : 1);
    end(w);
}

static void overflow_cascades(void **state) {
    (void)state;
    struct world *w = make(100, 10, TIERS);
    w->tier[2].capacity = 200;
    w->tier[1].capacity = 300;
    for (uint64_t i = 0; i < 100; i++)
        read_shard(w, i, 1 + (double)i / 100);
    settle(w);
    assert_int_equal(held(w, 2), 20);
    assert_int_equal(held(w, 1), 30);
    for (uint64_t i = 0; i < 100; i++) /* the hottest are up; each stands above cold once at most */
        assert_int_equal(w->shard[i].mask, i >= 80 ? 5 : i >= 50 ? 3 : 1);
    end(w);
}

static void equal_heat_does_not_churn(void **state) {
    (void)state;
    struct world *w = make(100, 10, TIERS);
    w->tier[2].capacity = 250;
    w->tier[1].capacity = 250;
    for (int round = 0; round < 50; round++) {
        for (uint64_t i = 0; i < 100; i++)
            read_shard(w, i, 1);
        settle(w);
    }
    assert_int_equal(w->copies, 50);
    assert_int_equal(w->drops, 0);
    end(w);
}

/* One job, every shard once an epoch, in another order each time; half-life four epochs, as the
 * daemon sets it. The worst case for a policy by frequency: what was read at the end of an epoch
 * and again at the begin of the next looks twice as hot as it is. */
static void a_loop_larger_than_the_tier_keeps_its_set(void **state) {
    (void)state;
    enum { N = 200, SECONDS = 5 };
    struct world *w = make(N, 10, TIERS);
    uint64_t x = 88172645463325252u;
    uint64_t order[N];
    w->tier[2].capacity = N * 10 / 4;
    w->tier[1].capacity = N * 10 / 4;
    w->half_life = 4.0 * N * SECONDS;
    uint64_t after_warm_up = 0;
    for (int epoch = 0; epoch < 12; epoch++) {
        for (uint64_t i = 0; i < N; i++)
            order[i] = i;
        for (uint64_t i = N - 1; i > 0; i--) {
            uint64_t j = next_random(&x) % (i + 1), t = order[i];
            order[i] = order[j];
            order[j] = t;
        }
        for (uint64_t i = 0; i < N; i++) {
            w->now += SECONDS;
            read_shard(w, order[i], 1);
            pass(w);
            check_capacity(w);
            finish(w);
        }
        if (epoch == 1)
            after_warm_up = w->copies + w->drops;
    }
    assert_int_equal(w->copies + w->drops, after_warm_up);
    assert_int_equal(held(w, 2), N / 4);
    assert_int_equal(held(w, 1), N / 4);
    end(w);
}

static void a_scan_flushes_nothing(void **state) {
    (void)state;
    struct world *w = make(1000, 10, TIERS);
    w->tier[2].capacity = 500;
    w->tier[1].capacity = 500;
    for (int i = 0; i < 5; i++)
        for (uint64_t k = 0; k < 100; k++)
            read_shard(w, k, 1);
    settle(w);
    uint64_t copies = w->copies;
    for (uint64_t k = 100; k < 1000; k++) {
        read_shard(w, k, 1);
        settle(w);
    }
    assert_int_equal(w->copies, copies);
    for (uint64_t k = 0; k < 100; k++)
        assert_int_not_equal(w->shard[k].mask, 1);
    end(w);
}

static void a_hotter_one_displaces(void **state) {
    (void)state;
    struct world *w = make(30, 10, TIERS);
    w->tier[2].capacity = 100;
    w->tier[1].capacity = 100;
    for (uint64_t i = 0; i < 20; i++)
        read_shard(w, i, 2);
    settle(w);
    assert_int_equal(w->shard[0].mask, 5);
    assert_int_equal(w->shard[9].mask, 5);
    assert_int_equal(w->shard[10].mask, 3);
    read_shard(w, 25, 3.9); /* not enough: 1.5 x 2 + 1 */
    uint64_t before = w->copies;
    settle(w);
    assert_int_equal(w->copies, before);
    read_shard(w, 25, 0.2);
    settle(w);
    assert_int_equal(w->shard[25].mask, 5);
    assert_int_equal(held(w, 2), 10);
    assert_int_equal(w->shard[9].mask & 4, 0); /* of equals the highest number leaves */
    assert_int_equal(held(w, 1), 10);
    end(w);
}

static void room_is_made_before_it_is_used(void **state) {
    (void)state;
    struct world *w = make(30, 10, 2);
    w->tier[1].capacity = 100;
    for (uint64_t i = 0; i < 10; i++)
        read_shard(w, i, 1);
    settle(w);
    read_shard(w, 20, 10);
    assert_int_equal(pass(w), 1); /* the drop alone */
    assert_int_equal(w->move[0].to, -1);
    assert_int_equal(w->move[0].drop, 1);
    struct wt_policy_move drop = w->move[0];
    assert_int_equal(pass(w), 0); /* it is under way: no second victim */
    w->move[0] = drop;
    w->n_moves = 1;
    finish(w);
    assert_int_equal(pass(w), 1);
    assert_int_equal(w->move[0].shard, 20);
    assert_int_equal(w->move[0].to, 1);
    finish(w);
    assert_int_equal(w->tier[1].used, 100);
    end(w);
}

static void leaving_shards_go_one_down(void **state) {
    (void)state;
    struct world *w = make(30, 10, TIERS);
    w->tier[2].capacity = 100;
    for (uint64_t i = 0; i < 10; i++)
        read_shard(w, i, 5);
    settle(w);
    for (uint64_t i = 10; i < 20; i++)
        read_shard(w, i, 50);
    settle(w);
    for (uint64_t i = 0; i < 20; i++)
        assert_int_equal(w->shard[i].mask, i < 10 ? 3 : 5);
    end(w);
}

static void what_stands_twice_leaves_first(void **state) {
    (void)state;
    struct world *w = make(30, 10, TIERS);
    w->tier[2].capacity = 100;
    w->tier[1].capacity = 100;
    for (uint64_t i = 0; i < 10; i++) { /* came up by way of warm: both hold them */
        w->shard[i].mask = 7;
        read_shard(w, i, 100);
    }
    w->tier[2].used = w->tier[1].used = 100;
    for (uint64_t i = 10; i < 14; i++)
        read_shard(w, i, 100);
    settle(w);
    assert_int_equal(held(w, 2), 10);
    for (uint64_t i = 10; i < 14; i++)
        assert_int_equal(w->shard[i].mask, 3);
    unsigned both = 0;
    for (uint64_t i = 0; i < 10; i++) {
        assert_true(w->shard[i].mask & 4);
        both += w->shard[i].mask == 7;
    }
    assert_int_equal(both, 6); /* no more of them left than had to */
    end(w);
}

static void pressure_goes_down_to_the_low_mark(void **state) {
    (void)state;
    struct world *w = make(100, 10, 2);
    w->tier[1].capacity = 1000;
    for (uint64_t i = 0; i < 100; i++)
        read_shard(w, i, (double)(i + 1));
    settle(w);
    assert_int_equal(held(w, 1), 100);
    w->tier[1].capacity = 500;
    pass(w);
    for (size_t i = 0; i < w->n_moves; i++)
        assert_int_equal(w->move[i].to, -1);
    finish(w);
    assert_int_equal(w->tier[1].used, 450);
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(w->shard[i].mask, i >= 55 ? 3 : 1);
    end(w);
}

static void minimum_stay(void **state) {
    (void)state;
    struct world *w = make(30, 10, 2);
    w->tier[1].capacity = 100;
    w->conf.min_stay = 60;
    for (uint64_t i = 0; i < 10; i++)
        read_shard(w, i, 1);
    settle(w);
    read_shard(w, 20, 100);
    w->now += 59;
    settle(w);
    assert_int_equal(w->shard[20].mask, 1);
    w->now += 1;
    settle(w);
    assert_int_equal(w->shard[20].mask, 3);
    end(w);
}

static void pins_and_busy_ones_stay(void **state) {
    (void)state;
    struct world *w = make(30, 10, 2);
    w->tier[1].capacity = 100;
    for (uint64_t i = 0; i < 10; i++)
        read_shard(w, i, 1);
    settle(w);
    for (uint64_t i = 0; i < 9; i++)
        w->shard[i].pin = 2;
    w->shard[9].busy = true; /* or set aside */
    read_shard(w, 20, 100);
    assert_int_equal(pass(w), 0);
    w->shard[9].busy = false;
    read_shard(w, 21, 90);
    settle(w);
    assert_int_equal(w->shard[9].mask, 1);
    assert_int_equal(w->shard[20].mask, 3);
    assert_int_equal(w->shard[21].mask, 1);
    end(w);
}

/* A pinned shard is brought, however cold, and the coldest of the others leave, however young; a
 * barred one is not, however hot. */
static void pinned_ones_come_first(void **state) {
    (void)state;
    struct world *w = make(20, 1000, 3);
    w->tier[2].capacity = 5000;
    w->conf.min_stay = 3600;
    for (uint64_t i = 0; i < 5; i++)
        read_shard(w, i, 10 + (double)i);
    settle(w);
    assert_int_equal(held(w, 2), 5);
    w->shard[18].pin = w->shard[19].pin = 4;
    settle(w);
    assert_int_equal(held(w, 2), 5);
    assert_int_equal(w->shard[18].mask, 5);
    assert_int_equal(w->shard[19].mask, 5);
    assert_false(w->shard[0].mask & 4);
    assert_false(w->shard[1].mask & 4);
    w->shard[10].barred = 4 | 2;
    read_shard(w, 10, 1e6);
    w->now += 7200;
    settle(w);
    assert_int_equal(w->shard[10].mask, 1);
    w->shard[18].pin = w->shard[10].barred = 0;
    settle(w);
    assert_int_equal(w->shard[10].mask, 5);
    end(w);
}

static bool even_only(void *arg, uint64_t shard, uint32_t tier, uint64_t size) {
    (void)arg;
    (void)tier;
    assert_int_equal(size, 1000);
    return shard % 2 == 0;
}

/* What has no room in its quota does not come, and nothing leaves for it. */
static void quotas_are_asked_before_others_leave(void **state) {
    (void)state;
    struct world *w = make(20, 1000, 2);
    w->tier[1].capacity = 4000;
    for (uint64_t i = 0; i < 4; i++)
        read_shard(w, i, 10);
    settle(w);
    assert_int_equal(held(w, 1), 4);
    for (uint64_t i = 11; i < 20; i += 2)
        read_shard(w, i, 1000);
    struct wt_policy_view view = {.shards = w->n, .get = get, .reserve = even_only, .arg = w};
    w->n_moves = 0;
    while (!wt_policy_step(w->p, &w->conf, &view, w->tier, 777, on_move, w))
        continue;
    assert_int_equal(w->n_moves, 0);
    read_shard(w, 12, 1000);
    while (!wt_policy_step(w->p, &w->conf, &view, w->tier, 777, on_move, w))
        continue;
    assert_int_equal(w->n_moves, 1); /* one leaves, for the one that may come */
    assert_int_equal(w->move[0].drop, 1);
    end(w);
}

static void larger_than_the_tier(void **state) {
    (void)state;
    struct world *w = make(10, 10, TIERS);
    w->tier[2].capacity = 50;
    w->tier[1].capacity = 200;
    w->shard[0].size = 51;
    w->shard[1].size = 201;
    for (uint64_t i = 0; i < 10; i++)
        read_shard(w, i, 10);
    settle(w);
    assert_int_equal(w->shard[0].mask, 3);
    assert_int_equal(w->shard[1].mask, 1);
    assert_int_equal(held(w, 2), 5);
    w->tier[2].capacity = 1; /* less than any shard */
    for (int i = 0; i < 5; i++) {
        pass(w);
        finish(w);
    }
    assert_int_equal(held(w, 2), 0);
    end(w);
}

static void tiers_that_are_away(void **state) {
    (void)state;
    struct world *w = make(10, 10, TIERS);
    w->tier[2].usable = false;
    for (uint64_t i = 0; i < 10; i++)
        read_shard(w, i, 1);
    settle(w);
    assert_int_equal(held(w, 2), 0);
    assert_int_equal(held(w, 1), 10); /* the next one takes them */
    w->tier[1].usable = false;
    w->tier[2].usable = true;
    settle(w);
    assert_int_equal(held(w, 2), 10);
    w->tier[2].usable = false;
    w->tier[2].capacity = 10;
    settle(w);
    assert_int_equal(held(w, 2), 10); /* nothing is asked of it */
    end(w);
}

static void retired_shards_leave(void **state) {
    (void)state;
    struct world *w = make(10, 10, TIERS);
    for (uint64_t i = 0; i < 10; i++)
        read_shard(w, i, 10);
    settle(w);
    w->shard[3].unwanted = w->shard[4].unwanted = true;
    settle(w);
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(w->shard[i].mask, i == 3 || i == 4 ? 1 : 5);
    end(w);
}

static void more_candidates_than_it_keeps(void **state) {
    (void)state;
    struct world *w = make(MAX - 1, 10, TIERS);
    w->tier[2].capacity = 5000 * 10;
    for (uint64_t i = 0; i < w->n; i++)
        read_shard(w, i, 1 + (double)(i % 100) / 1000);
    assert_true(pass(w) <= 2 * WT_POLICY_KEEP);
    finish(w);
    while (pass(w))
        finish(w);
    assert_int_equal(held(w, 2), 5000);
    assert_int_equal(held(w, 1), w->n - 5000); /* also those that hot's list never had room for */
    end(w);
}

static void any_world_keeps_its_capacity(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        uint64_t x = seed * UINT64_C(0x9E3779B97F4A7C15);
        struct world *w = make(50 + next_random(&x) % 200, 10, 2 + (uint32_t)(next_random(&x) % 4));
        for (uint64_t i = 0; i < w->n; i++)
            w->shard[i].size = 1 + next_random(&x) % 100;
        for (uint32_t t = 1; t < w->n_tiers; t++)
            w->tier[t].capacity = next_random(&x) % 4000;
        w->conf.high = 0.5 + (double)(next_random(&x) % 50) / 100;
        w->conf.low = w->conf.high - 0.1;
        w->conf.min_stay = (uint32_t)(next_random(&x) % 20);
        w->half_life = 100;
        for (int step = 0; step < 60; step++) {
            for (int r = 0; r < 10; r++)
                read_shard(w, next_random(&x) % w->n, 1 + (double)(next_random(&x) % 50));
            w->now += (uint32_t)(next_random(&x) % 10);
            pass(w);
            check_capacity(w);
            finish(w);
        }
        settle(w);
        end(w);
    }
}

static void the_same_input_gives_the_same_moves(void **state) {
    (void)state;
    struct wt_policy_move first[200];
    size_t n = 0;
    for (uint64_t budget = 1; budget < 300; budget += 13) {
        struct world *w = make(100, 10, TIERS);
        w->tier[2].capacity = 100;
        for (uint64_t i = 0; i < 100; i++)
            read_shard(w, i, 1 + (double)(i * 7 % 10));
        struct wt_policy_view view = {.shards = w->n, .get = get, .arg = w};
        while (!wt_policy_step(w->p, &w->conf, &view, w->tier, budget, on_move, w))
            continue;
        if (budget == 1) {
            n = w->n_moves;
            assert_true(n > 10 && n < 200);
            memcpy(first, w->move, n * sizeof *first);
        }
        assert_int_equal(w->n_moves, n);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(w->move[i].shard, first[i].shard);
            assert_int_equal(w->move[i].to, first[i].to);
        }
        end(w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_goes_up),
        cmocka_unit_test(bands),
        cmocka_unit_test(overflow_cascades),
        cmocka_unit_test(equal_heat_does_not_churn),
        cmocka_unit_test(a_loop_larger_than_the_tier_keeps_its_set),
        cmocka_unit_test(a_scan_flushes_nothing),
        cmocka_unit_test(a_hotter_one_displaces),
        cmocka_unit_test(room_is_made_before_it_is_used),
        cmocka_unit_test(leaving_shards_go_one_down),
        cmocka_unit_test(what_stands_twice_leaves_first),
        cmocka_unit_test(pressure_goes_down_to_the_low_mark),
        cmocka_unit_test(minimum_stay),
        cmocka_unit_test(pins_and_busy_ones_stay),
        cmocka_unit_test(pinned_ones_come_first),
        cmocka_unit_test(quotas_are_asked_before_others_leave),
        cmocka_unit_test(larger_than_the_tier),
        cmocka_unit_test(tiers_that_are_away),
        cmocka_unit_test(retired_shards_leave),
        cmocka_unit_test(more_candidates_than_it_keeps),
        cmocka_unit_test(any_world_keeps_its_capacity),
        cmocka_unit_test(the_same_input_gives_the_same_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
