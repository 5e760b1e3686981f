/* The file: backend on a mount that hangs, dies and comes back: a real one (FUSE), when run as
 * root. */
#include "fuse_kit.h"
#include "kit.h"

#include "tiers/tier.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct env {
    char folder[256], mount[300];
    struct fuse_kit *fuse;
    uv_loop_t loop;
    struct wt_tier *tier;
    bool closed;
};

static void mount_it(struct env *e, bool mute) {
    const char *why = NULL;
    e->fuse = fuse_kit_mount(e->mount, mute, &why);
    if (!e->fuse) {
        print_message("SKIPPED: %s\n", why);
        skip();
    }
}

static int make_env(void **state) {
    struct env *e = calloc(1, sizeof *e);
    kit_make_folder(e->folder);
    snprintf(e->mount, sizeof e->mount, "%s/mount", e->folder);
    assert_int_equal(mkdir(e->mount, 0755), 0);
    uv_loop_init(&e->loop);
    *state = e;
    return 0;
}

static void on_closed(void *arg) {
    ((struct env *)arg)->closed = true;
}

static int drop_env(void **state) {
    struct env *e = *state;
    if (e->tier) {
        wt_tier_close(e->tier, on_closed, e);
        assert_true(kit_until(&e->loop, &e->closed, 10000));
    }
    fuse_kit_unmount(e->fuse);
    uv_sleep(100); /* workers that were left behind return now, and free what they hold */
    int rc = uv_loop_close(&e->loop);
    kit_remove_folder(e->folder);
    free(e);
    return rc;
}

static void open_tier(struct env *e) {
    struct wt_tier_opts opts = {.name = "warm", .timeout_ms = 300};
    snprintf(opts.url, sizeof opts.url, "file://%s/tier", e->mount);
    struct wt_err err = {0};
    if (wt_tier_open(&e->loop, &opts, NULL, &e->tier, &err) < 0)
        fail_msg("%s", err.text);
}

static void on_done(struct wt_req *req) {
    *(bool *)req->arg = true;
}

static int get(struct env *e, uint8_t *buf, size_t len, struct wt_req *req) {
    bool done = false;
    *req = (struct wt_req){
        .op = WT_OP_GET, .key = "object", .buf = buf, .len = len, .done = on_done, .arg = &done};
    int rc = wt_tier_submit(e->tier, req);
    if (rc < 0)
        return rc;
    assert_true(kit_until(&e->loop, &done, 10000));
    return req->rc;
}

static void data_is_right(const uint8_t *buf, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (buf[i] != (uint8_t)(i * 7))
            fail_msg("byte %zu is %d", i, buf[i]);
}

static bool wait_up(struct env *e, unsigned ms) {
    for (unsigned i = 0; i < ms && wt_tier_is_down(e->tier); i++)
        kit_run(&e->loop, 1);
    return !wt_tier_is_down(e->tier);
}

/* An open of a tier whose mount answers nothing comes back; the tier is down. */
static void mute_mount(void **state) {
    struct env *e = *state;
    mount_it(e, true);
    uint64_t begin = uv_hrtime();
    open_tier(e);
    assert_true(uv_hrtime() - begin < UINT64_C(4000000000));
    assert_true(wt_tier_is_down(e->tier));
    uint8_t b[10];
    struct wt_req req;
    assert_int_equal(get(e, b, 10, &req), WT_EDOWN);
    kit_run(&e->loop, 1500);
    struct wt_tier_stats stats;
    wt_tier_stats(e->tier, &stats);
    assert_in_range(stats.stuck, 1, 10);
}

static void hanging_read(void **state) {
    struct env *e = *state;
    mount_it(e, false);
    open_tier(e);
    assert_false(wt_tier_is_down(e->tier));
    assert_int_equal(wt_tier_caps(e->tier) & WT_CAP_MAP, 0);
    uint8_t *buf = calloc(1, FUSE_KIT_SIZE);
    struct wt_req req;
    assert_int_equal(get(e, buf, FUSE_KIT_SIZE, &req), 0);
    assert_int_equal(req.got, FUSE_KIT_SIZE);
    data_is_right(buf, FUSE_KIT_SIZE);
    fuse_kit_hang(e->fuse, true, false);
    uint64_t begin = uv_hrtime();
    assert_int_equal(get(e, buf, 1 << 20, &req), WT_ETIMEDOUT);
    assert_true(uv_hrtime() - begin < UINT64_C(1500000000));
    memset(buf, 0x77, FUSE_KIT_SIZE);
    /* The others are served meanwhile, by other workers. */
    bool done = false;
    struct wt_req stat_req = {.op = WT_OP_STAT, .key = "object", .done = on_done, .arg = &done};
    assert_int_equal(wt_tier_submit(e->tier, &stat_req), 0);
    assert_true(kit_until(&e->loop, &done, 1000));
    assert_int_equal(stat_req.rc, 0);
    kit_run(&e->loop, 1000);
    struct wt_tier_stats stats;
    wt_tier_stats(e->tier, &stats);
    assert_int_equal(stats.stuck, 1);
    /* The read returns at last: nobody writes into our buffer any more. */
    fuse_kit_hang(e->fuse, false, false);
    kit_run(&e->loop, 300);
    wt_tier_stats(e->tier, &stats);
    assert_int_equal(stats.stuck, 0);
    for (size_t i = 0; i < FUSE_KIT_SIZE; i++)
        assert_int_equal(buf[i], 0x77);
    assert_int_equal(get(e, buf, 1000, &req), 0);
    data_is_right(buf, 1000);
    free(buf);
}

static void hangs_then_recovers(void **state) {
    struct env *e = *state;
    mount_it(e, false);
    open_tier(e);
    uint8_t *buf = calloc(1, 1000);
    struct wt_req req;
    fuse_kit_hang(e->fuse, false, true);
    for (int i = 0; i < 3; i++)
        assert_int_equal(get(e, buf, 1000, &req), WT_ETIMEDOUT);
    assert_true(wt_tier_is_down(e->tier));
    assert_int_equal(get(e, buf, 1000, &req), WT_EDOWN);
    fuse_kit_hang(e->fuse, false, false);
    assert_true(wait_up(e, 10000));
    assert_int_equal(get(e, buf, 1000, &req), 0);
    data_is_right(buf, 1000);
    free(buf);
}

/* What a network mount says when its servers are lost, or came back without it. */
static void fails_then_recovers(void **state) {
    static const int errors[] = {EIO, ESTALE, ENOTCONN};
    struct env *e = *state;
    mount_it(e, false);
    open_tier(e);
    uint8_t *buf = calloc(1, 1000);
    struct wt_req req;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        assert_int_equal(get(e, buf, 1000, &req), 0);
        fuse_kit_fail(e->fuse, errors[i]);
        for (int k = 0; k < 3; k++) {
            int rc = get(e, buf, 1000, &req);
            if (rc != WT_EDOWN && rc != WT_EIO)
                fail_msg("errno %d is %d: %s", errors[i], rc, req.err.text);
        }
        assert_true(wt_tier_is_down(e->tier));
        fuse_kit_fail(e->fuse, 0);
        assert_true(wait_up(e, 10000));
        assert_int_equal(get(e, buf, 1000, &req), 0);
        data_is_right(buf, 1000);
    }
    free(buf);
}

static void dies_and_is_mounted_again(void **state) {
    struct env *e = *state;
    mount_it(e, false);
    open_tier(e);
    uint8_t *buf = calloc(1, 1000);
    struct wt_req req;
    assert_int_equal(get(e, buf, 1000, &req), 0);
    fuse_kit_kill(e->fuse);
    for (int i = 0; i < 4; i++)
        assert_int_equal(get(e, buf, 1000, &req), WT_EDOWN);
    assert_true(wt_tier_is_down(e->tier));
    fuse_kit_unmount(e->fuse);
    e->fuse = NULL;
    kit_run(&e->loop, 300);
    assert_true(wt_tier_is_down(e->tier)); /* the empty mount point is not taken for the tier */
    struct stat st;
    char root[400];
    snprintf(root, sizeof root, "%s/tier", e->mount);
    assert_int_equal(stat(root, &st), -1); /* nor is a root made in it */
    mount_it(e, false);
    assert_true(wait_up(e, 10000));
    assert_int_equal(get(e, buf, 1000, &req), 0);
    data_is_right(buf, 1000);
    free(buf);
}

/* A close does not wait for ever for a worker that hangs. */
static void closes_while_it_hangs(void **state) {
    struct env *e = *state;
    mount_it(e, false);
    open_tier(e);
    fuse_kit_hang(e->fuse, true, false);
    uint8_t *buf = calloc(1, 1000);
    bool done = false;
    struct wt_req req = {
        .op = WT_OP_GET, .key = "object", .buf = buf, .len = 1000, .done = on_done, .arg = &done};
    assert_int_equal(wt_tier_submit(e->tier, &req), 0);
    kit_run(&e->loop, 50);
    wt_tier_close(e->tier, on_closed, e);
    assert_true(kit_until(&e->loop, &e->closed, 3000));
    assert_true(done);
    assert_int_equal(req.rc, WT_ECANCELED);
    free(buf);
    e->tier = NULL;
    e->closed = false;
    fuse_kit_hang(e->fuse, false, false);
    uv_sleep(100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(mute_mount, make_env, drop_env),
        cmocka_unit_test_setup_teardown(hanging_read, make_env, drop_env),
        cmocka_unit_test_setup_teardown(hangs_then_recovers, make_env, drop_env),
        cmocka_unit_test_setup_teardown(fails_then_recovers, make_env, drop_env),
        cmocka_unit_test_setup_teardown(dies_and_is_mounted_again, make_env, drop_env),
        cmocka_unit_test_setup_teardown(closes_while_it_hangs, make_env, drop_env),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
