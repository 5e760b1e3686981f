/* Lifetimes: abort, close in any state, held batches and DLPack tensors, several loaders, waiting,
 * counters, many opens. */
#include "libloader/dlpack.h"

#include "loader_kit.h"
#include <jansson.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct kit_shape shape = {
    .samples = 96, .per_shard = 8, .h = 16, .w = 24, .codec = WT_CODEC_ZSTD, .mask = true};

static int make(void **state) {
    struct kit *k = malloc(sizeof *k);
    assert_non_null(k);
    kit_make(k, &shape);
    *state = k;
    return 0;
}

static int drop(void **state) {
    kit_free(*state);
    free(*state);
    return 0;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void test_slots_run_out(void **state) {
    wl_options o = kit_options(*state);
    o.slots = 3;
    wl_loader *l = kit_open(&o);
    wl_batch *b[3], *more;
    for (int i = 0; i < 3; i++)
        assert_int_equal(wl_next(l, NULL, 20000, &b[i]), WL_OK);
    double t = now();
    assert_int_equal(wl_next(l, NULL, WL_FOREVER, &more), WL_ERROR_EXHAUSTED);
    assert_true(now() - t < 1);
    assert_non_null(strstr(wl_last_error(l)->message, "slots"));
    wl_batch_release(b[1], NULL);
    assert_int_equal(wl_next(l, NULL, 20000, &more), WL_OK); /* not sticky */
    assert_int_equal(wl_batch_slot(more), wl_batch_slot(b[1]));
    kit_check_batch(*state, b[0]);
    wl_batch_release(more, NULL);
    wl_batch_release(b[0], NULL);
    wl_batch_release(b[2], NULL);
    wl_close(l);
}

static void test_batches_outlive_the_loader(void **state) {
    wl_options o = kit_options(*state);
    wl_loader *l = kit_open(&o);
    wl_batch *b;
    assert_int_equal(wl_next(l, NULL, 20000, &b), WL_OK);
    struct wt_dl_managed *image = wl_batch_dlpack(b, "image", NULL),
                         *mask = wl_batch_dlpack(b, "mask", NULL);
    assert_non_null(image);
    assert_non_null(mask);
    assert_null(wl_batch_dlpack(b, "depth", NULL));
    wl_close(l);
    kit_check_batch(*state, b);
    char blob[WL_STATE_MAX];
    size_t len;
    assert_int_equal(wl_batch_state(b, blob, sizeof blob, &len), WL_OK);
    const void *data = wl_batch_tensor(b, "image")->data;
    uint16_t first;
    memcpy(&first, data, sizeof first);
    wl_batch_release(b, NULL);
    assert_ptr_equal(image->tensor.data, data);
    assert_int_equal(image->version.major, 1);
    assert_int_equal(image->tensor.ndim, 3);
    assert_int_equal(image->tensor.shape[0], 16);
    assert_int_equal(image->tensor.strides[0], 16 * 24);
    assert_int_equal(image->tensor.strides[2], 1);
    assert_int_equal(image->tensor.dtype.code, WT_DL_UINT);
    assert_int_equal(image->tensor.dtype.bits, 16);
    assert_int_equal(image->tensor.device.type, WT_DL_CPU);
    assert_memory_equal(image->tensor.data, &first, sizeof first);
    image->deleter(image);
    mask->deleter(mask);
}

/* The same memory for frameworks that know no version; and statistics as text. */
static void test_unversioned_and_stats_text(void **state) {
    wl_options o = kit_options(*state);
    wl_loader *l = kit_open(&o);
    wl_batch *b;
    assert_int_equal(wl_next(l, NULL, 20000, &b), WL_OK);
    struct wt_dl_managed *image = wl_batch_dlpack(b, "image", NULL);
    struct wt_dl_unversioned *old = wl_batch_dlpack_unversioned(b, "image", NULL);
    assert_null(wl_batch_dlpack_unversioned(b, "depth", NULL));
    assert_ptr_equal(old->tensor.data, image->tensor.data);
    assert_int_equal(old->tensor.ndim, image->tensor.ndim);
    assert_memory_equal(old->tensor.shape, image->tensor.shape, 3 * sizeof(int64_t));
    wl_batch_release(b, NULL);
    image->deleter(image);
    old->deleter(old);

    char text[8192], small[16] = "untouched";
    size_t len, again;
    assert_int_equal(wl_stats_json(l, text, sizeof text, &len), WL_OK);
    assert_int_equal(strlen(text), len);
    assert_int_equal(wl_stats_json(l, small, sizeof small, &again), WL_ERROR_INVALID);
    assert_string_equal(small, "untouched");
    assert_int_equal(wl_stats_json(l, NULL, 0, &again), WL_ERROR_INVALID);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    wl_stats s = {.size = sizeof s};
    assert_int_equal(wl_get_stats(l, &s), WL_OK);
    assert_int_equal(json_integer_value(json_object_get(root, "batches")), s.batches);
    assert_int_equal(json_array_size(json_object_get(root, "tiers")), s.tiers);
    assert_int_equal(json_object_size(json_object_get(root, "stages")), 4);
    json_decref(root);
    wl_close(l);
}

static void *delete_later(void *arg) {
    struct wt_dl_managed *t = arg;
    usleep(20000);
    t->deleter(t);
    return NULL;
}

/* A slot that DLPack holds is not reused; the deleter of another thread gives it back. */
static void test_dlpack_holds_slots(void **state) {
    wl_options o = kit_options(*state);
    o.slots = 2;
    wl_loader *l = kit_open(&o);
    wl_batch *b;
    struct wt_dl_managed *t[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wl_next(l, NULL, 20000, &b), WL_OK);
        t[i] = wl_batch_dlpack(b, "image", NULL);
        assert_non_null(t[i]);
        wl_batch_release(b, NULL);
    }
    assert_int_equal(wl_next(l, NULL, WL_FOREVER, &b), WL_ERROR_EXHAUSTED);
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, delete_later, t[i]), 0);
    int rc;
    while ((rc = wl_next(l, NULL, 20000, &b)) == WL_ERROR_EXHAUSTED)
        usleep(1000);
    assert_int_equal(rc, WL_OK);
    wl_batch_release(b, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    wl_close(l);
}

/* ---- abort ---- */

struct waiter {
    wl_loader *l;
    int rc;
    double ended;
};

static void *wait_for_batch(void *arg) {
    struct waiter *w = arg;
    wl_batch *b;
    while ((w->rc = wl_next(w->l, NULL, WL_FOREVER, &b)) >= 0)
        if (w->rc == WL_OK)
            wl_batch_release(b, NULL);
    w->ended = now();
    return NULL;
}

static void test_abort(void **state) {
    struct kit *k = *state;
    wl_options o = kit_options(k);
    o.epochs = 0;
    struct waiter w = {.l = kit_open(&o)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_batch, &w), 0);
    usleep(50000);
    double t = now();
    wl_abort(w.l);
    pthread_join(thread, NULL);
    assert_int_equal(w.rc, WL_ERROR_ABORTED);
    assert_true(w.ended - t < 0.1);
    wl_batch *b;
    assert_int_equal(wl_next(w.l, NULL, WL_FOREVER, &b), WL_ERROR_ABORTED);
    wl_close(w.l);
}

/* Nothing comes: the cold tier is gone and the timeout is long. */
static void test_abort_while_storage_is_away(void **state) {
    struct kit *k = *state;
    wl_options o = kit_options(k);
    o.epochs = 0;
    o.timeout_ms = 60000;
    o.lanes = o.window = 1;
    char here[160], there[160];
    snprintf(here, sizeof here, "%s/cold/wafers/shards", k->root);
    snprintf(there, sizeof there, "%s/away", k->root);
    struct waiter w = {.l = kit_open(&o)};
    assert_int_equal(rename(here, there), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_batch, &w), 0);
    usleep(200000);
    double t = now();
    wl_abort(w.l);
    pthread_join(thread, NULL);
    assert_int_equal(rename(there, here), 0);
    assert_true(w.ended - t < 0.1 || w.rc != WL_ERROR_ABORTED);
    t = now();
    wl_close(w.l);
    assert_true(now() - t < 5);
}

/* ---- closing ---- */

static void test_close_in_any_state(void **state) {
    wl_options o = kit_options(*state);
    o.epochs = 0;
    for (int i = 0; i < 40; i++) {
        wl_loader *l = kit_open(&o);
        wl_batch *b = NULL;
        wl_batch *held = NULL;
        for (int j = 0; j < i % 9; j++) {
            if (wl_next(l, NULL, 20000, &b) != WL_OK)
                continue;
            if (held)
                wl_batch_release(held, NULL);
            held = b;
        }
        if (i % 3 == 1)
            usleep((useconds_t)(i * 100));
        wl_close(l);
        if (held)
            kit_check_batch(*state, held);
        wl_batch_release(held, NULL);
    }
    wl_close(NULL);
    wl_context_close(NULL);
    wl_batch_release(NULL, NULL);
}

static unsigned count_entries(const char *path) {
    DIR *d = opendir(path);
    unsigned n = 0;
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void test_many_opens(void **state) {
    wl_options o = kit_options(*state);
    wl_loader *l = kit_open(&o); /* what is made once by libraries is there now */
    wl_close(l);
    unsigned fds = count_entries("/proc/self/fd"), threads = count_entries("/proc/self/task");
    for (int i = 0; i < 200; i++) {
        wl_batch *b;
        l = kit_open(&o);
        if (i % 2 && wl_next(l, NULL, 20000, &b) == WL_OK)
            wl_batch_release(b, NULL);
        wl_close(l);
    }
    assert_int_equal(count_entries("/proc/self/fd"), fds);
    for (int i = 0; i < 100 && count_entries("/proc/self/task") != threads; i++)
        usleep(10000); /* a joined thread's entry may linger */
    assert_int_equal(count_entries("/proc/self/task"), threads);
}

/* ---- contexts ---- */

static void test_loaders_share_a_context(void **state) {
    struct kit *k = *state;
    wl_context_options co = WL_CONTEXT_OPTIONS_INIT;
    co.config = k->config;
    co.threads = 3;
    co.memory = 512 << 20;
    wl_context *ctx;
    assert_int_equal(wl_context_open(&co, &ctx), WL_OK);
    wl_options o = kit_options(k), eval = o;
    o.tail = WL_TAIL_PAD;
    eval.mode = WL_MODE_EVAL;
    wl_loader *train, *test;
    assert_int_equal(wl_open(ctx, &o, &train), WL_OK);
    assert_int_equal(wl_open(ctx, &eval, &test), WL_OK);
    wl_context_close(ctx); /* stays for its loaders */
    struct kit_epoch a = {.batch = o.batch}, b = {.batch = o.batch};
    kit_read_epoch(k, test, &b);
    kit_read_epoch(k, train, &a);
    kit_all_once(k, &a);
    kit_all_once(k, &b);
    wl_close(train);
    wl_close(test);
    kit_epoch_free(&a);
    kit_epoch_free(&b);
}

static void test_budget_is_shared(void **state) {
    struct kit *k = *state;
    wl_options o = kit_options(k);
    wl_loader *l = kit_open(&o);
    wl_info info;
    wl_get_info(l, &info);
    wl_close(l);
    wl_context_options co = WL_CONTEXT_OPTIONS_INIT;
    co.config = k->config;
    co.memory = info.memory + 4096;
    wl_context *ctx;
    assert_int_equal(wl_context_open(&co, &ctx), WL_OK);
    wl_loader *first, *second;
    assert_int_equal(wl_open(ctx, &o, &first), WL_OK);
    assert_int_equal(wl_open(ctx, &o, &second), WL_ERROR_MEMORY);
    wl_close(first);
    assert_int_equal(wl_open(ctx, &o, &second), WL_OK);
    wl_close(second);
    wl_context_close(ctx);
}

/* ---- the rest of the API ---- */

static void test_next_into(void **state) {
    struct kit *k = *state;
    wl_options o = kit_options(k);
    o.slots = 2;
    o.epochs = 1;
    wl_loader *l = kit_open(&o), *same = kit_open(&o);
    static uint16_t image[16][16 * 24];
    static int32_t label[16];
    wl_destination dst[] = {{"image", image, sizeof image}, {"label", label, sizeof label}};
    wl_batch *info, *b;
    int rc, steps = 0;
    while ((rc = wl_next_into(l, NULL, 20000, dst, 2, steps % 2 ? &info : NULL)) == WL_OK) {
        assert_int_equal(wl_next(same, NULL, 20000, &b), WL_OK);
        assert_memory_equal(image, wl_batch_tensor(b, "image")->data, sizeof image);
        assert_memory_equal(label, wl_batch_tensor(b, "label")->data, sizeof label);
        if (steps % 2)
            assert_string_equal(wl_batch_key(info, 5), wl_batch_key(b, 5));
        wl_batch_release(b, NULL);
        steps++;
    }
    assert_int_equal(rc, WL_END_OF_EPOCH);
    assert_int_equal(steps, 6);
    dst[0].bytes--;
    assert_int_equal(wl_next_into(l, NULL, 0, dst, 2, NULL), WL_ERROR_INVALID);
    wl_close(l);
    wl_close(same);
}

static void test_timeouts(void **state) {
    wl_options o = kit_options(*state);
    o.epochs = 1;
    wl_loader *l = kit_open(&o);
    wl_batch *b;
    int rc, polls = 0;
    while ((rc = wl_next(l, NULL, 0, &b)) == WL_NOT_READY && polls++ < 10000)
        usleep(1000);
    assert_int_equal(rc, WL_OK);
    wl_batch_release(b, NULL);
    wl_close(l);
}

static void test_stats_and_info(void **state) {
    struct kit *k = *state;
    wl_options o = kit_options(k);
    o.tail = WL_TAIL_PAD;
    wl_loader *l = kit_open(&o);
    struct kit_epoch e = {.batch = o.batch};
    kit_read_epoch(k, l, &e);
    wl_stats s = kit_stats(l);
    assert_int_equal(s.batches, e.steps);
    assert_int_equal(s.samples, shape.samples);
    assert_true(s.bytes > e.steps * 16 * 16 * 24 * 3);
    assert_true(s.fetch.busy_s > 0 && s.decode.busy_s > 0 && s.stage.busy_s > 0);
    assert_true(s.stall_s > 0 && s.stall_s <= s.elapsed_s);
    assert_true(strlen(s.blame) > 0);
    s.size = 0;
    assert_int_equal(wl_get_stats(l, &s), WL_ERROR_INVALID);
    wl_info info;
    wl_get_info(l, &info);
    assert_int_equal(info.samples, 96);
    assert_int_equal(info.shards, 12);
    assert_int_equal(info.block, 8);
    assert_int_equal(info.classes, 5);
    assert_string_equal(wl_class_name(l, 4), "scratch");
    assert_null(wl_class_name(l, 5));
    wl_close(l);
    kit_epoch_free(&e);
}

static void test_multihot(void **state) {
    (void)state;
    struct kit k;
    struct kit_shape s = shape;
    s.multihot = 8;
    s.codec = WT_CODEC_TAR;
    kit_make(&k, &s);
    wl_options o = kit_options(&k);
    o.tail = WL_TAIL_PAD;
    o.block = 3; /* parts of shards: a cut-down index */
    wl_loader *l = kit_open(&o);
    struct kit_epoch e = {.batch = o.batch};
    kit_read_epoch(&k, l, &e);
    kit_all_once(&k, &e);
    wl_info info;
    wl_get_info(l, &info);
    assert_int_equal(info.multihot, 1);
    wl_close(l);
    kit_epoch_free(&e);
    kit_free(&k);
}

/* A control socket that nobody listens on costs nothing and says nothing. */
static _Atomic int lines;
static void count_lines(void *arg, int level, const char *line) {
    (void)arg;
    (void)line;
    if (level <= 1)
        lines++;
}

static void test_no_daemon(void **state) {
    struct kit *k = *state;
    char text[256];
    snprintf(text, sizeof text, "control = \"unix:%s/nobody.sock\"\n", k->root);
    kit_config(k, text);
    wl_options o = kit_options(k);
    o.log = count_lines;
    o.tail = WL_TAIL_PAD;
    wl_loader *l = kit_open(&o);
    struct kit_epoch e = {.batch = o.batch};
    kit_read_epoch(k, l, &e);
    double t = now();
    wl_close(l);
    assert_true(now() - t < 2);
    assert_int_equal(lines, 0);
    kit_epoch_free(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_run_out),
        cmocka_unit_test(test_batches_outlive_the_loader),
        cmocka_unit_test(test_dlpack_holds_slots),
        cmocka_unit_test(test_unversioned_and_stats_text),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_abort_while_storage_is_away),
        cmocka_unit_test(test_close_in_any_state),
        cmocka_unit_test(test_many_opens),
        cmocka_unit_test(test_loaders_share_a_context),
        cmocka_unit_test(test_budget_is_shared),
        cmocka_unit_test(test_next_into),
        cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_stats_and_info),
        cmocka_unit_test(test_multihot),
        cmocka_unit_test(test_no_daemon),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
