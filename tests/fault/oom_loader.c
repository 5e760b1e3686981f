/*
 * Out of memory in the loader: open, every batch of an epoch, close. Each run ends with an error,
 * or with all batches right; in bounded time.
 */
#include "oom.h"

#include "tests/integration/loader_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 6000, WAIT_MS = 20000 };

/* The library's error as one of core's, which is what oom_each judges. */
static int take_error(const wl_error *e, struct wt_err *err) {
    static const struct {
        int from, to;
    } codes[] = {{WL_ERROR_MEMORY, WT_ENOMEM},       {WL_ERROR_SYSTEM, WT_ESYSTEM},
                 {WL_ERROR_STORAGE, WT_EDOWN},       {WL_ERROR_CORRUPT, WT_ECORRUPT},
                 {WL_ERROR_INVALID, WT_EINVAL},      {WL_ERROR_NOT_FOUND, WT_EMISSING},
                 {WL_ERROR_UNSUPPORTED, WT_EFORMAT}, {WL_ERROR_ABORTED, WT_ECANCELED}};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if ((int)e->code == codes[i].from)
            return wt_err_set(err, codes[i].to, "%s", e->message);
    return wt_err_set(err, WT_EINVAL, "%d: %s", (int)e->code, e->message);
}

static int read_all(const struct kit *k, wl_loader *l, struct wt_err *err) {
    uint64_t valid = 0;
    int rc;
    do {
        wl_batch *b = NULL;
        rc = wl_next(l, NULL, WAIT_MS, &b);
        if (rc == WL_NOT_READY)
            fail_msg("it hangs after %s failed", oom_failed());
        if (rc == WL_OK) {
            const wl_tensor *v = wl_batch_tensor(b, "valid");
            for (uint64_t i = 0; i < wl_batch_size(b); i++)
                valid += ((const uint8_t *)v->data)[i];
            kit_check_batch(k, b);
            wl_batch_release(b, NULL);
        }
    } while (rc == WL_OK || rc == WL_END_OF_EPOCH);
    if (rc < 0)
        return take_error(wl_last_error(l), err);
    assert_int_equal(valid, k->shape.samples);
    return 0;
}

static int run(void *arg, struct wt_err *err) {
    const struct kit *k = arg;
    wl_options o = kit_options(k);
    wl_loader *l = NULL;
    o.tail = WL_TAIL_PAD;
    o.threads = 1;
    o.timeout_ms = 3000;
    o.memory = 64 << 20;
    if (wl_open(NULL, &o, &l) < 0)
        return take_error(wl_last_error(NULL), err);
    int rc = read_all(k, l, err);
    wl_close(l);
    return rc;
}

static void load(const char *name, enum wt_codec codec, bool hot) {
    static struct kit k;
    kit_make(&k, &(struct kit_shape){
                     .samples = 40, .per_shard = 10, .h = 8, .w = 8, .codec = codec, .mask = true});
    if (hot)
        kit_copy_all(&k, 2);
    assert_true(oom_each(&(struct oom_case){.name = name, .run = run, .arg = &k, .most = MOST}) >
                50);
    kit_free(&k);
}

static void load_tar(void **state) {
    (void)state;
    load("load .tar from cold", WT_CODEC_TAR, false);
}
static void load_zstd(void **state) {
    (void)state;
    load("load .tar.zst from cold", WT_CODEC_ZSTD, false);
}
static void load_mapped(void **state) {
    (void)state;
    load("load .tar from hot", WT_CODEC_TAR, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_tar),
        cmocka_unit_test(load_zstd),
        cmocka_unit_test(load_mapped),
    };
    oom_init();
    alarm(580);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
