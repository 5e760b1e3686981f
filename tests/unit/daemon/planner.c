/* The planner with a real mover on file tiers: a drain ends at its mark, whenever the tier says how
 * full it is. */
#include "daemon/planner.h"

#include "sets.h"

#include <ftw.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHARDS = 40, SIZE = 1000, MOVES = 4, LATE_MS = 10000 };

struct box {
    char root[64];
    uv_loop_t loop;
    uv_timer_t clock;
    struct wt_tier_opts opts[2];
    struct wt_tier *tier[2];
    struct wt_log log;
    struct wt_catalog catalog;
    struct wt_catalog_set *set;
    struct wt_mover *mover;
    struct wt_planner *planner;
    struct wt_policy_conf conf;
    uint64_t report_ms, until_ms;
    unsigned open;
    bool asks; /* for a figure, whenever a move has begun or ended */
    unsigned asked;
};

/* ---- a cold and a hot tier that hold the same shards ---- */

static void write_object(const struct box *b, const char *tier, uint64_t shard) {
    static const uint8_t bytes[SIZE];
    char key[WT_OBJECT_NAME], path[sizeof b->root + 8 + sizeof key];
    wt_catalog_key(b->set, shard, key);
    snprintf(path, sizeof path, "%s/%s/%s", b->root, tier, key);
    for (char *slash = path + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0700);
    }
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, SIZE, f), SIZE);
    assert_int_equal(fclose(f), 0);
}

static void fill(struct box *b) {
    struct wt_err err = {0};
    struct wt_dataset d = make_set("wafers", 1, SHARDS, SIZE, 0, 0);
    wt_catalog_init(&b->catalog, 2);
    assert_int_equal(wt_catalog_add(&b->catalog, &d, (struct wt_hash){0, 1}, &b->set, &err), 0);
    for (uint64_t i = 0; i < SHARDS; i++) {
        write_object(b, "cold", i);
        write_object(b, "hot", i);
        wt_catalog_hold(&b->catalog, b->set, i, 1, 0, true);
    }
}

static void open_tier(struct box *b, unsigned t, const char *name, const char *filter) {
    struct wt_err err = {0};
    struct wt_tier_opts *o = &b->opts[t];
    char url[sizeof b->root + 16];
    snprintf(url, sizeof url, "file://%s/%s", b->root, name);
    snprintf(o->name, sizeof o->name, "%s", name);
    snprintf(o->url, sizeof o->url, "%s", url);
    snprintf(o->filter, sizeof o->filter, "%s", filter);
    o->capacity = t ? 2 * SHARDS * SIZE : 0;
    if (wt_tier_open(&b->loop, o, &b->log, &b->tier[t], &err) < 0)
        fail_msg("%s", err.text);
}

static void on_change(void *arg, enum wt_move_change change, struct wt_catalog_set *set,
                      const struct wt_move_info *info) {
    struct box *b = arg;
    (void)change;
    (void)set;
    (void)info;
    if (b->asks) {
        wt_planner_ask_usage(b->planner);
        b->asked++;
    }
    wt_planner_kick(b->planner);
}

static void start(struct box *b, const char *filter) {
    struct wt_err err = {0};
    struct wt_mover_conf conf = {
        .moves = MOVES, .queue = 1000, .bytes = (uint64_t)MOVES * WT_PART, .backoff_ms = 10};
    b->conf = (struct wt_policy_conf){.percentile = 0.99,
                                      .cold_below = 0.01,
                                      .hot_above = 0.1,
                                      .high = 0.95,
                                      .low = 0.85,
                                      .beat = 1.1,
                                      .margin = 1};
    b->report_ms = 1000;
    fill(b);
    open_tier(b, 0, "cold", "");
    open_tier(b, 1, "hot", filter);
    assert_int_equal(wt_mover_new(&b->loop, b->tier, &b->catalog, &conf, &b->log, &b->mover, &err),
                     0);
    struct wt_planner_opts opts = {.tiers = b->tier,
                                   .tier_opts = b->opts,
                                   .catalog = &b->catalog,
                                   .mover = b->mover,
                                   .conf = &b->conf,
                                   .report_ms = &b->report_ms};
    b->planner = wt_planner_new(&b->loop, &opts);
    assert_non_null(b->planner);
    wt_mover_on_change(b->mover, on_change, b);
    wt_mover_enable(b->mover, true);
    wt_planner_enable(b->planner, true);
}

static int setup(void **state) {
    struct box *b = calloc(1, sizeof *b);
    assert_non_null(b);
    snprintf(b->root, sizeof b->root, "/tmp/wt-planner-XXXXXX");
    assert_non_null(mkdtemp(b->root));
    assert_int_equal(uv_loop_init(&b->loop), 0);
    *state = b;
    return 0;
}

static void on_stopped(void *arg) {
    ((struct box *)arg)->open--;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int teardown(void **state) {
    struct box *b = *state;
    b->asks = false;
    b->open = 2;
    wt_planner_stop(b->planner, on_stopped, b);
    wt_mover_stop(b->mover, on_stopped, b);
    while (b->open)
        uv_run(&b->loop, UV_RUN_ONCE);
    for (unsigned t = 0; t < 2; t++)
        wt_tier_close(b->tier[t], NULL, NULL);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    wt_planner_free(b->planner);
    wt_mover_free(b->mover);
    wt_catalog_free(&b->catalog);
    nftw(b->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(b);
    return 0;
}

/* ---- the course of a test ---- */

static void on_clock(uv_timer_t *clock) {
    (void)clock; /* the loop turns */
}

static void on_clock_closed(uv_handle_t *h) {
    ((struct box *)h->data)->open--;
}

static void run_for(struct box *b, uint64_t ms) {
    uv_timer_init(&b->loop, &b->clock);
    b->clock.data = b;
    uv_timer_start(&b->clock, on_clock, 1, 1);
    uv_update_time(&b->loop);
    for (uint64_t end = uv_now(&b->loop) + ms; uv_now(&b->loop) < end;)
        uv_run(&b->loop, UV_RUN_ONCE);
    b->open = 1;
    uv_close((uv_handle_t *)&b->clock, on_clock_closed);
    while (b->open)
        uv_run(&b->loop, UV_RUN_ONCE);
}

/* The capacity shrinks to half of what is there; what is left when nothing moves any more. */
static uint64_t drained(struct box *b) {
    run_for(b, 200); /* the first figure has come */
    assert_int_equal(b->catalog.held[1], SHARDS);
    b->opts[1].capacity = SHARDS / 2 * SIZE;
    wt_planner_reload(b->planner);
    for (uint64_t n = 0; b->catalog.held[1] > 17; n++) {
        run_for(b, 20);
        assert_true(n < LATE_MS / 20);
    }
    b->asks = false;
    run_for(b, 500); /* what is asked still is answered, and passes follow */
    return b->catalog.held[1];
}

static void a_drain_ends_at_its_mark(void **state) {
    struct box *b = *state;
    start(b, "delay remove=10ms");
    assert_int_equal(drained(b), 17); /* 0.85 of 20 */
}

static void a_figure_in_the_middle_of_a_drain_takes_no_more_away(void **state) {
    struct box *b = *state;
    b->asks = true;
    start(b, "delay remove=10ms");
    assert_int_equal(drained(b), 17);
    assert_true(b->asked > MOVES);
}

static void a_figure_that_comes_late_takes_no_more_away(void **state) {
    struct box *b = *state;
    b->asks = true;
    start(b, "delay remove=5ms..15ms usage=25ms");
    assert_int_equal(drained(b), 17);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_drain_ends_at_its_mark, setup, teardown),
        cmocka_unit_test_setup_teardown(a_figure_in_the_middle_of_a_drain_takes_no_more_away, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_figure_that_comes_late_takes_no_more_away, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
