/* Futures against their own forward walk, the offline optimum against exhaustive search, and
 * foresight in small worlds against both: never more than the optimum allows for, capacities and
 * pins hold, a single job moves nothing after it has warmed up. */
#include "daemon/policy/foresight.h"

#include "daemon/policy/offline.h"
#include "daemon/policy/predict.h"
#include "tools/sim/run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SMALL = 8, KINDS = 6 };

/* ---- futures ---- */

static const struct wt_plan_opts kinds[KINDS] = {
    {.samples = 1000, .seed = 1, .batch = 1, .block = 4, .lanes = 1, .window = 1},
    {.samples = 1000, .seed = 2, .batch = 8, .block = 10, .lanes = 4, .window = 3},
    {.samples = 997, .seed = 3, .batch = 16, .block = 16, .lanes = 8, .window = 2},
    {.samples = 1001,
     .seed = 4,
     .batch = 6,
     .block = 7,
     .lanes = 3,
     .window = 4,
     .tail = WT_TAIL_PAD},
    {.samples = 500, .seed = 5, .batch = 5, .block = 50, .lanes = 5, .window = 1},
    {.samples = 640, .batch = 32, .block = 64, .mode = WT_PLAN_EVAL},
};

/* Shards of 5 to 24 samples. */
static uint64_t make_cum(uint64_t samples, uint64_t cum[512]) {
    uint64_t n = 0;
    for (cum[0] = 0; cum[n] < samples; n++) {
        uint64_t size = 5 + (n * 7919) % 20;
        cum[n + 1] = cum[n] + size < samples ? cum[n] + size : samples;
    }
    return n;
}

struct use {
    uint64_t shard, x;
};

static int by_shard(const void *a, const void *b) {
    const struct use *u = a, *v = b;
    if (u->shard != v->shard)
        return u->shard < v->shard ? -1 : 1;
    return u->x < v->x ? -1 : u->x > v->x;
}

/* All uses, as the walk gives them: nearly in order, a window may begin a little before another. */
static size_t walk(struct wt_future *f, struct use *use, size_t most) {
    struct wt_future_at at = {0};
    size_t n = 0;
    uint64_t window = f->plan.o.window * f->plan.o.block, latest = 0;
    while (wt_future_step(f, &at, &use[n].shard, &use[n].x)) {
        assert_true(use[n].shard < f->shards && use[n].x < 3 * f->span);
        assert_true(use[n].x + window >= latest);
        latest = use[n].x > latest ? use[n].x : latest;
        assert_true(++n < most);
    }
    return n;
}

static void walk_and_inverse_agree(void **state) {
    (void)state;
    static struct use use[8192];
    for (int k = 0; k < KINDS; k++) {
        struct wt_plan plan;
        struct wt_err err;
        uint64_t cum[512];
        assert_int_equal(wt_plan_init(&plan, &kinds[k], &err), 0);
        uint64_t shards = make_cum(kinds[k].samples, cum), seen = 0;
        struct wt_future *f = calloc(1, sizeof *f);
        assert_non_null(f);
        wt_future_init(f, &plan, cum, shards, 3, 0);
        size_t n = walk(f, use, 8192);
        qsort(use, n, sizeof use[0], by_shard);
        for (size_t i = 0; i < n; i++) {
            bool first = i == 0 || use[i - 1].shard != use[i].shard;
            if (!first && use[i - 1].x == use[i].x)
                continue; /* twice in a window */
            uint64_t from = first ? 0 : use[i - 1].x + 1;
            assert_int_equal(wt_future_next(f, use[i].shard, from), use[i].x);
            seen += first;
            if (i + 1 == n || use[i + 1].shard != use[i].shard)
                assert_true(wt_future_next(f, use[i].shard, use[i].x + 1) == WT_FUTURE_NEVER);
        }
        assert_int_equal(seen, shards);
        free(f);
    }
}

static void seek_finds_every_later_use(void **state) {
    (void)state;
    struct wt_plan plan;
    struct wt_err err;
    uint64_t cum[512], shard, x;
    assert_int_equal(wt_plan_init(&plan, &kinds[1], &err), 0);
    uint64_t n = make_cum(kinds[1].samples, cum);
    struct wt_future *f = calloc(1, sizeof *f);
    assert_non_null(f);
    wt_future_init(f, &plan, cum, n, 2, 0);
    for (uint64_t from = 0; from < 2 * f->span; from += 13) {
        struct wt_future_at all = {0}, some;
        uint64_t want = 0, got = 0;
        while (wt_future_step(f, &all, &shard, &x))
            want += x >= from ? shard + 1 : 0;
        wt_future_seek(f, &some, from);
        while (wt_future_step(f, &some, &shard, &x))
            got += x >= from ? shard + 1 : 0;
        assert_int_equal(got, want);
    }
    free(f);
}

/* ---- the optimum ---- */

/* Fewest misses from request i on with the set `held`, by trying all. */
static unsigned fewest(const uint32_t *object, unsigned n, unsigned i, unsigned held,
                       unsigned capacity, int16_t *memo) {
    if (i == n)
        return 0;
    int16_t *m = &memo[(i << SMALL) | held];
    if (*m >= 0)
        return (unsigned)*m;
    unsigned bit = 1u << object[i], miss = held & bit ? 0 : 1, best = UINT32_MAX;
    unsigned with = held | bit;
    for (unsigned keep = with;; keep = (keep - 1) & with) {
        if ((unsigned)__builtin_popcount(keep) <= capacity) {
            unsigned rest = fewest(object, n, i + 1, keep, capacity, memo);
            best = rest < best ? rest : best;
        }
        if (keep == 0)
            break;
    }
    *m = (int16_t)(best + miss);
    return best + miss;
}

static unsigned exhaustive(const uint32_t *object, unsigned n, unsigned capacity) {
    int16_t *memo = malloc(sizeof *memo * ((size_t)n << SMALL));
    assert_non_null(memo);
    memset(memo, 0xff, sizeof *memo * ((size_t)n << SMALL));
    unsigned best = fewest(object, n, 0, 0, capacity, memo);
    free(memo);
    return best;
}

static struct wt_offline offline(enum wt_offline_policy policy, const struct wt_requests *q,
                                 uint64_t capacity) {
    struct wt_offline out;
    struct wt_err err;
    assert_int_equal(wt_offline_run(policy, q, capacity, &out, &err), 0);
    return out;
}

static void belady_is_the_optimum(void **state) {
    (void)state;
    uint64_t size[SMALL], random = 7;
    uint32_t object[40];
    for (int i = 0; i < SMALL; i++)
        size[i] = 3;
    for (int round = 0; round < 60; round++) {
        unsigned capacity = 1 + (unsigned)round % 4;
        for (int i = 0; i < 40; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            object[i] = (uint32_t)(random >> 40) % SMALL;
        }
        struct wt_requests q = {.object = object, .n = 40, .size = size, .objects = SMALL};
        struct wt_offline belady = offline(WT_BELADY, &q, 3 * capacity);
        unsigned best = exhaustive(object, 40, capacity);
        assert_int_equal(belady.requests - belady.hits, best);
        assert_int_equal(offline(WT_BOUND, &q, 3 * capacity).hit_bytes, belady.hit_bytes);
        assert_true(offline(WT_LRU, &q, 3 * capacity).hits <= belady.hits);
        assert_true(offline(WT_LFU, &q, 3 * capacity).hits <= belady.hits);
        assert_true(offline(WT_FIXED, &q, 3 * capacity).hits <= belady.hits);
    }
}

static void simple_policies_do_what_they_say(void **state) {
    (void)state;
    const uint64_t size[4] = {1, 1, 1, 5};
    const uint32_t object[] = {0, 1, 0, 2, 1, 0, 3, 0};
    struct wt_requests q = {.object = object, .n = 8, .size = size, .objects = 4};
    assert_int_equal(offline(WT_LRU, &q, 2).hits, 2);   /* 0 at 2, then 1 went, then 0, and at 7 */
    assert_int_equal(offline(WT_LFU, &q, 2).hits, 3);   /* 0 stays */
    assert_int_equal(offline(WT_FIXED, &q, 2).hits, 4); /* 0 and 1 stay */
    assert_int_equal(offline(WT_LRU, &q, 0).hits, 0);
    q.from = 7;
    assert_int_equal(offline(WT_FIXED, &q, 2).requests, 1);
}

/* ---- worlds ---- */

static double play(const struct wt_sim_mix *mix, const double part[2], double rate,
                   struct wt_world_count *count, struct wt_sim_load *load, uint64_t *capacity) {
    struct wt_err err;
    struct wt_world w;
    assert_int_equal(wt_sim_mix_sizes(mix, load, &err), 0);
    assert_int_equal(wt_sim_mix_requests(mix, load, &err), 0);
    struct wt_world_conf conf = {.n_tiers = part[1] > 0 ? 3 : 2,
                                 .bandwidth = {rate},
                                 .policy = {.high = 1, .low = 1, .beat = 1.1, .margin = 1}};
    conf.capacity[1] = (uint64_t)(part[0] * (double)load->bytes);
    conf.capacity[2] = (uint64_t)(part[1] * (double)load->bytes);
    *capacity = conf.capacity[1] + conf.capacity[2];
    assert_int_equal(wt_world_init(&w, &conf, load->size, load->objects, &err), 0);
    assert_int_equal(wt_sim_run_mix(mix, &w, load, &err), 0);
    for (uint32_t t = 1; t < conf.n_tiers; t++)
        assert_true(w.used[t] <= conf.capacity[t]);
    *count = w.count;
    assert_int_equal(count->reads, load->n - load->from);
    wt_world_free(&w);
    struct wt_requests q = {.object = load->object,
                            .n = load->n,
                            .size = load->size,
                            .objects = load->objects,
                            .from = load->from};
    struct wt_offline best = offline(WT_BOUND, &q, *capacity);
    return (double)wt_world_cold(count) / (double)(best.bytes - best.hit_bytes);
}

static double ratio_of(struct wt_sim_mix mix, double low, double high, double rate,
                       struct wt_world_count *count) {
    struct wt_sim_load load = {0};
    uint64_t capacity;
    double r = play(&mix, (double[2]){low, high}, rate, count, &load, &capacity);
    wt_sim_load_free(&load);
    return r;
}

static const struct wt_sim_mix usual = {
    .jobs = 2, .shards = 300, .epochs = 8, .seed = 1, .mean = 1000, .prefetch = 1, .epoch_s = 3600};

static void tiny_worlds_reach_the_exhaustive_optimum(void **state) {
    (void)state;
    uint64_t ours = 0, best = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct wt_sim_mix mix = {.jobs = 2,
                                 .shards = SMALL,
                                 .epochs = 4,
                                 .seed = seed,
                                 .mean = 1,
                                 .offset = WT_SIM_NONE,
                                 .prefetch = 1,
                                 .epoch_s = 3600};
        struct wt_sim_load load = {0};
        struct wt_world_count count;
        uint64_t capacity;
        play(&mix, (double[2]){0.25, 0}, 0, &count, &load, &capacity);
        struct wt_requests q = {
            .object = load.object, .n = load.n, .size = load.size, .objects = SMALL};
        unsigned all = exhaustive(load.object, (unsigned)load.n, (unsigned)capacity);
        struct wt_offline belady = offline(WT_BELADY, &q, capacity);
        assert_int_equal(belady.requests - belady.hits, all);
        q.from = load.from;
        belady = offline(WT_BELADY, &q, capacity);
        best += belady.requests - belady.hits;
        ours += wt_world_cold(&count);
        wt_sim_load_free(&load);
    }
    assert_true((double)ours <= 1.02 * (double)best);
}

static void one_job_keeps_a_fixed_set(void **state) {
    (void)state;
    struct wt_sim_mix mix = usual;
    struct wt_world_count count;
    mix.jobs = 1;
    for (int sizes = 0; sizes < 2; sizes++) {
        mix.sizes = sizes;
        assert_true(ratio_of(mix, 0.25, 0, 0, &count) < 1.005);
        assert_int_equal(count.dropped, 0);
        assert_int_equal(count.copies, 0);
    }
}

static void several_jobs_come_near_the_optimum(void **state) {
    (void)state;
    struct wt_sim_mix mix = usual;
    struct wt_world_count count;
    for (uint32_t jobs = 2; jobs <= 4; jobs++)
        for (int sizes = 0; sizes < 2; sizes++) {
            mix.jobs = jobs;
            mix.sizes = sizes;
            assert_true(ratio_of(mix, 0.25, 0, 0, &count) < 1.02);
            assert_true(ratio_of(mix, 0.15, 0.10, 0, &count) < 1.03);
        }
}

/* Cold gives 1.2 times what the jobs ask for: twice what the optimum needs, and less than they ask
 * for before anything is cached. */
static void limited_bandwidth_costs_little(void **state) {
    (void)state;
    struct wt_sim_mix mix = usual;
    struct wt_world_count count;
    double asked = 1000.0 * 300 / 3600;
    mix.prefetch = 4;
    mix.sizes = WT_SIM_LOGNORMAL;
    assert_true(ratio_of(mix, 0.25, 0, 2 * asked * 1.1 * 1.2, &count) < 1.10);
    mix.jobs = 4;
    assert_true(ratio_of(mix, 0.25, 0, 4 * asked * 1.1 * 0.9, &count) < 1.10);
}

static void a_choked_cold_tier_does_not_drain_the_cache(void **state) {
    (void)state;
    struct wt_sim_mix mix = usual;
    struct wt_world_count count;
    mix.jobs = 4;
    mix.prefetch = 4;
    mix.epochs = 12;
    double asked = 4 * 1000.0 * 300 / 3600; /* cold gives three tenths of it */
    assert_true(ratio_of(mix, 0.5, 0, 0.3 * asked, &count) < 1.5);
}

/* ---- by hand ---- */

struct hand { /* ten shards of ten bytes, two tiers above cold */
    struct wt_policy_shard shard[10];
    struct wt_policy_tier tier[3];
    struct wt_foresight *f;
    struct wt_foresight_move move[64];
    size_t moves;
    bool refuse;
    uint64_t cum[11];
};

static void get_hand(void *arg, uint64_t i, struct wt_policy_shard *out) {
    *out = ((struct hand *)arg)->shard[i];
}

static bool take_hand(void *arg, const struct wt_foresight_move *m) {
    struct hand *h = arg;
    if (h->refuse || h->moves == 64)
        return false;
    h->move[h->moves++] = *m;
    h->shard[m->shard].busy = true;
    return true;
}

static void run_hand(struct hand *h, const struct wt_foresight_pace *pace, double now) {
    static const struct wt_policy_conf conf = {.high = 1, .low = 1};
    struct wt_policy_view view = {.shards = 10, .get = get_hand, .arg = h};
    double wake;
    h->moves = 0;
    wt_foresight_run(h->f, &conf, &view, h->tier, pace, now, 100000, take_hand, h, &wake);
}

static int join_hand(struct hand *h, uint64_t seed, uint64_t epochs) {
    struct wt_plan_opts o = {
        .samples = 10, .seed = seed, .batch = 1, .block = 1, .lanes = 1, .window = 1};
    struct wt_horizon_opts opts = {.cum = h->cum, .shards = 10, .epochs = epochs};
    struct wt_err err;
    assert_int_equal(wt_plan_init(&opts.plan, &o, &err), 0);
    int job = wt_horizon_join(wt_foresight_horizon(h->f), &opts, 0);
    assert_true(job >= 0);
    wt_foresight_sweep(h->f);
    return job;
}

static struct hand *new_hand(uint64_t capacity) {
    struct hand *h = calloc(1, sizeof *h);
    assert_non_null(h);
    h->f = wt_foresight_new(3);
    assert_non_null(h->f);
    assert_true(wt_foresight_resize(h->f, 10));
    for (uint64_t i = 0; i <= 10; i++)
        h->cum[i] = i;
    for (int i = 0; i < 10; i++)
        h->shard[i] = (struct wt_policy_shard){.size = 10, .mask = 1};
    for (int t = 0; t < 3; t++)
        h->tier[t] = (struct wt_policy_tier){.capacity = t ? capacity : 0, .usable = true};
    return h;
}

static void free_hand(struct hand *h) {
    wt_foresight_free(h->f);
    free(h);
}

static const struct wt_foresight_pace at_once = {.react = 2.5, .moves = 4, .half_life = 100};

static void report_hand(struct hand *h, int job) { /* one shard a second, four were read */
    wt_horizon_report(wt_foresight_horizon(h->f), job, 2, 2, 2);
    wt_horizon_report(wt_foresight_horizon(h->f), job, 4, 4, 4);
}

static void stages_what_comes_and_no_more(void **state) {
    (void)state;
    struct hand *h = new_hand(20);
    int job = join_hand(h, 1, 0);
    report_hand(h, job);
    run_hand(h, &at_once, 4);
    assert_int_equal(h->moves, 3); /* those of the next 2.5 seconds */
    for (size_t i = 0; i < h->moves; i++) {
        assert_true(h->move[i].to == (i < 2 ? 2 : 1) && h->move[i].drop == -1);
        assert_true(h->move[i].due >= 4 - 1e-6 && h->move[i].due <= 6.5);
        assert_int_equal(h->move[i].job, job);
    }
    run_hand(h, &at_once, 4); /* once is enough */
    assert_int_equal(h->moves, 0);
    free_hand(h);
}

static void leaves_to_the_reader_what_would_be_late(void **state) {
    (void)state;
    struct hand *h = new_hand(100);
    int job = join_hand(h, 1, 0);
    report_hand(h, job);
    struct wt_foresight_pace slow = {.copy = 3, .moves = 4, .half_life = 100};
    run_hand(h, &slow, 4);
    for (size_t i = 0; i < h->moves; i++)
        assert_true(h->move[i].due >= 7 - 1e-6);
    struct wt_foresight_stats s;
    wt_foresight_stats(h->f, &s);
    assert_true(h->moves > 0 && s.late >= 2);
    free_hand(h);
}

static void shards_used_once_stay_in_cold(void **state) {
    (void)state;
    struct hand *h = new_hand(100);
    report_hand(h, join_hand(h, 1, 1)); /* a single epoch */
    run_hand(h, &at_once, 4);
    assert_int_equal(h->moves, 0);
    free_hand(h);
}

static void pins_bars_and_dead_tiers_hold(void **state) {
    (void)state;
    struct hand *h = new_hand(10); /* one shard a tier */
    int a = join_hand(h, 1, 0), b = join_hand(h, 2, 0);
    h->tier[1].usable = false;
    h->tier[2].used = 10;
    h->shard[0].mask = 1 | 4;
    h->shard[0].pin = 4;
    report_hand(h, a);
    report_hand(h, b);
    for (double t = 4; t < 9; t += 0.5)
        run_hand(h, &at_once, t);
    assert_int_equal(h->moves, 0);
    for (int i = 0; i < 10; i++) /* no pin, but nothing may enter */
        h->shard[i].barred = 4;
    h->shard[0].pin = 0;
    report_hand(h, a);
    run_hand(h, &at_once, 4);
    assert_int_equal(h->moves, 0);
    free_hand(h);
}

static void a_departed_job_counts_for_nothing(void **state) {
    (void)state;
    struct hand *h = new_hand(100);
    int job = join_hand(h, 1, 0);
    report_hand(h, job);
    struct wt_horizon *z = wt_foresight_horizon(h->f);
    assert_true(wt_foresight_knows(h->f, 3));
    wt_horizon_depart(z, job, true);
    assert_false(wt_foresight_knows(h->f, 3));
    assert_int_equal(wt_horizon_live(z), 0);
    run_hand(h, &at_once, 4);
    assert_int_equal(h->moves, 0);
    wt_horizon_depart(z, job, false);
    run_hand(h, &at_once, 4);
    assert_true(h->moves > 0);
    free_hand(h);
}

static void a_refused_stage_is_offered_again(void **state) {
    (void)state;
    struct hand *h = new_hand(100);
    report_hand(h, join_hand(h, 1, 0));
    h->refuse = true;
    run_hand(h, &at_once, 4);
    assert_int_equal(h->moves, 0);
    h->refuse = false;
    run_hand(h, &at_once, 4);
    assert_int_equal(h->moves, 3);
    free_hand(h);
}

static void order_is_checked_against_reads(void **state) {
    (void)state;
    struct hand *h = new_hand(100);
    int job = join_hand(h, 1, 0);
    report_hand(h, job);
    struct wt_horizon *z = wt_foresight_horizon(h->f);
    unsigned near = 0;
    for (uint64_t s = 0; s < 10; s++)
        near += wt_horizon_fits(z, job, s);
    assert_int_equal(near, 3); /* those between its last two reports, with both ends */
    free_hand(h);
}

static void predictions_agree_with_simulations(void **state) {
    (void)state;
    struct wt_predict_job one = {.bytes = 1000, .epoch_s = 10}, many[8];
    assert_true(fabs(wt_predict(&one, 1, 250) - 0.75) < 1e-9);
    assert_true(wt_predict(&one, 1, 1000) <= 0);
    assert_true(wt_predict(&one, 0, 1000) >= 1);
    for (int i = 0; i < 8; i++)
        many[i] = one;
    /* policy-oracle of N = 1000: 0.4945, 0.5596, 0.5832 hit at a quarter */
    assert_true(fabs(1 - wt_predict(many, 2, 250) - 0.4945) < 0.025);
    assert_true(fabs(1 - wt_predict(many, 4, 250) - 0.5596) < 0.025);
    assert_true(fabs(1 - wt_predict(many, 8, 250) - 0.5832) < 0.025);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walk_and_inverse_agree),
        cmocka_unit_test(seek_finds_every_later_use),
        cmocka_unit_test(belady_is_the_optimum),
        cmocka_unit_test(simple_policies_do_what_they_say),
        cmocka_unit_test(tiny_worlds_reach_the_exhaustive_optimum),
        cmocka_unit_test(one_job_keeps_a_fixed_set),
        cmocka_unit_test(several_jobs_come_near_the_optimum),
        cmocka_unit_test(limited_bandwidth_costs_little),
        cmocka_unit_test(a_choked_cold_tier_does_not_drain_the_cache),
        cmocka_unit_test(stages_what_comes_and_no_more),
        cmocka_unit_test(leaves_to_the_reader_what_would_be_late),
        cmocka_unit_test(shards_used_once_stay_in_cold),
        cmocka_unit_test(pins_bars_and_dead_tiers_hold),
        cmocka_unit_test(a_departed_job_counts_for_nothing),
        cmocka_unit_test(a_refused_stage_is_offered_again),
        cmocka_unit_test(order_is_checked_against_reads),
        cmocka_unit_test(predictions_agree_with_simulations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
