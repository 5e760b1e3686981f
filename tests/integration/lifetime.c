/*
 * The loader over a long life: thousands of opens leave memory, threads and descriptors flat; abort
 * wakes every wait; a consumer that stops costs nothing; and the budget holds for a data set a
 * hundred times larger.
 *
 * WAFERTIER_LIFETIME_SCALE divides the amounts (sanitizer builds); above 1 resident memory is not
 * judged, since it is then the sanitizer's.
 */
#include "libloader/dlpack.h"
#include "loader_kit.h"
#include "tools/publish.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    OPENS = 10000,
    OWN_OPENS = 300,
    BIG_SHARDS = 3200,
    BIG_SAMPLES = 16, /* of a shard */
    BIG_SIDE = 360,   /* of an image, u8: shards of 2 MiB, decoded */
    BIG_MEMORY = 64 << 20,
};

static const struct kit_shape shape = {
    .samples = 96, .per_shard = 8, .h = 16, .w = 24, .codec = WT_CODEC_ZSTD, .mask = true};

static unsigned scale(void) {
    const char *text = getenv("WAFERTIER_LIFETIME_SCALE");
    unsigned n = text ? (unsigned)strtoul(text, NULL, 10) : 1;
    return n ? n : 1;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Tiers that can be written, for the leases; `filter` for cold. */
static void configure(const struct kit *k, const char *filter) {
    FILE *f = fopen(k->config, "we");
    assert_non_null(f);
    fprintf(f,
            "tier cold { url = \"file://%s/cold\" filter = \"%s\" }\n"
            "tier warm { url = \"file://%s/warm\" }\ntier hot { url = \"file://%s/hot\" }\n",
            k->root, filter, k->root, k->hot);
    assert_int_equal(fclose(f), 0);
}

static int make(void **state) {
    struct kit *k = malloc(sizeof *k);
    assert_non_null(k);
    kit_make(k, &shape);
    configure(k, "");
    *state = k;
    return 0;
}

static int drop(void **state) {
    kit_free(*state);
    free(*state);
    return 0;
}

/* ---- what a process has ---- */

static unsigned count_entries(const char *path) {
    DIR *d = opendir(path);
    unsigned n = 0;
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* "VmRSS", "VmHWM" in bytes. */
static uint64_t status_bytes(const char *name) {
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    unsigned long long kib = 0;
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0)
            sscanf(line + strlen(name) + 1, "%llu", &kib);
    fclose(f);
    return kib * 1024;
}

static uint64_t peak_from_now(void) {
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (write(fd, "5", 1) != 1)
            print_message("the peak of memory cannot be reset\n");
        close(fd);
    }
    return status_bytes("VmRSS");
}

struct holdings {
    unsigned fds, threads;
    uint64_t rss;
};

static struct holdings look(void) {
    return (struct holdings){.fds = count_entries("/proc/self/fd"),
                             .threads = count_entries("/proc/self/task")};
}

/* Once nothing changes any more: a joined thread's entry may linger, a lease be on its way. */
static struct holdings hold_now(void) {
    struct holdings h = look(), last;
    int quiet = 0;
    for (int i = 0; i < 200 && quiet < 5; i++) {
        usleep(10000);
        last = h;
        h = look();
        quiet = h.fds == last.fds && h.threads == last.threads ? quiet + 1 : 0;
    }
    malloc_trim(0);
    h.rss = status_bytes("VmRSS");
    return h;
}

static void assert_flat(struct holdings before, uint64_t more_rss) {
    struct holdings after = hold_now();
    assert_int_equal(after.fds, before.fds);
    assert_int_equal(after.threads, before.threads);
    if (scale() == 1 && after.rss > before.rss + more_rss)
        fail_msg("resident memory grew from %llu to %llu", (unsigned long long)before.rss,
                 (unsigned long long)after.rss);
}

static unsigned leases(const struct kit *k) {
    char path[200];
    snprintf(path, sizeof path, "%s/cold/.wafertier.leases/wafers", k->root);
    return count_entries(path) - 2;
}

/* ---- opens ---- */

static void open_use_close(wl_context *ctx, const wl_options *o, unsigned i) {
    wl_loader *l;
    wl_batch *b;
    if (wl_open(ctx, o, &l) < 0)
        fail_msg("open %u: %s", i, wl_last_error(NULL)->message);
    if (i % 4 == 1 && wl_next(l, NULL, 20000, &b) == WL_OK)
        wl_batch_release(b, NULL);
    if (i % 64 == 2 && wl_next(l, NULL, 20000, &b) == WL_OK) {
        struct wt_dl_managed *t = wl_batch_dlpack(b, "image", NULL);
        wl_batch_release(b, NULL);
        wl_close(l);
        t->deleter(t);
        return;
    }
    wl_close(l);
}

/* All shards, so that whatever a context keeps of each is there. */
static void read_all(const struct kit *k, wl_context *ctx) {
    wl_options o = kit_options(k);
    struct kit_epoch e = {.batch = o.batch};
    wl_loader *l;
    o.tail = WL_TAIL_PAD;
    assert_int_equal(wl_open(ctx, &o, &l), WL_OK);
    kit_read_epoch(k, l, &e);
    kit_epoch_free(&e);
    wl_close(l);
}

static wl_context *open_context(const struct kit *k) {
    wl_context_options co = WL_CONTEXT_OPTIONS_INIT;
    wl_context *ctx;
    co.config = k->config;
    co.threads = 2;
    co.memory = 256 << 20;
    assert_int_equal(wl_context_open(&co, &ctx), WL_OK);
    return ctx;
}

static void opens_on_one_context(void **state) {
    struct kit *k = *state;
    wl_options o = kit_options(k);
    open_use_close(NULL, &o, 0); /* what is made once by libraries is there now */
    struct holdings without = hold_now();
    wl_context *ctx = open_context(k);
    unsigned n = OPENS / scale();
    read_all(k, ctx);
    for (unsigned i = 0; i < n / 10; i++)
        open_use_close(ctx, &o, i);
    struct holdings before = hold_now();
    double began = now();
    for (unsigned i = 0; i < n; i++)
        open_use_close(ctx, &o, i);
    print_message("%u opens, %.2f ms each\n", n, (now() - began) * 1000 / n);
    before.threads = count_entries("/proc/self/task"); /* the tiers' workers come as needed, ... */
    assert_flat(before, 4 << 20);
    wl_context_close(ctx);
    assert_flat(without, 8 << 20); /* ... and go */
    assert_int_equal(leases(k), 0);
}

static void opens_with_contexts_of_their_own(void **state) {
    struct kit *k = *state;
    wl_options o = kit_options(k);
    unsigned n = OWN_OPENS / (scale() > 10 ? 10 : scale());
    for (unsigned i = 0; i < 20; i++)
        open_use_close(NULL, &o, i);
    struct holdings before = hold_now();
    for (unsigned i = 0; i < n; i++)
        open_use_close(NULL, &o, i);
    assert_flat(before, 8 << 20);
    assert_int_equal(leases(k), 0);
}

/* Where cold is read-only, leases go where the configuration says. */
static void leases_have_a_place_of_their_own(void **state) {
    struct kit *k = *state;
    wl_options o = kit_options(k);
    wl_loader *l;
    char path[200];
    FILE *f = fopen(k->config, "we");
    assert_non_null(f);
    fprintf(f,
            "leases = \"file://%s/elsewhere\"\n"
            "tier cold { url = \"file://%s/cold\" read_only = true }\n",
            k->root, k->root);
    assert_int_equal(fclose(f), 0);
    snprintf(path, sizeof path, "%s/elsewhere/.wafertier.leases/wafers", k->root);
    assert_int_equal(wl_open(NULL, &o, &l), WL_OK);
    double until = now() + 10;
    while ((access(path, F_OK) < 0 || count_entries(path) < 3) && now() < until)
        usleep(10000);
    assert_int_equal(count_entries(path), 3);
    wl_close(l);
    assert_int_equal(count_entries(path), 2);
    assert_int_equal(leases(k), 0);
    configure(k, "");
}

/* ---- abort ---- */

struct waiter {
    wl_loader *l;
    pthread_t thread;
    int rc;
    double ended;
};

static void *wait_for_batches(void *arg) {
    struct waiter *w = arg;
    wl_batch *b;
    while ((w->rc = wl_next(w->l, NULL, WL_FOREVER, &b)) >= 0)
        if (w->rc == WL_OK)
            wl_batch_release(b, NULL);
    w->ended = now();
    return NULL;
}

/* Sanitizers and loaded machines make threads late; what is promised is judged without them. */
static double promised(double seconds) {
    return scale() == 1 ? seconds : seconds * 10;
}

static void abort_in(struct kit *k, const char *filter, int waiters, unsigned after_ms) {
    struct waiter w[4];
    assert_true(waiters <= 4);
    configure(k, filter);
    wl_context *ctx = open_context(k);
    wl_options o = kit_options(k);
    o.epochs = 0;
    o.timeout_ms = 600000;
    for (int i = 0; i < waiters; i++) {
        if (wl_open(ctx, &o, &w[i].l) < 0)
            fail_msg("%s: %s", filter, wl_last_error(NULL)->message);
        assert_int_equal(pthread_create(&w[i].thread, NULL, wait_for_batches, &w[i]), 0);
    }
    usleep(after_ms * 1000);
    double began = now();
    for (int i = 0; i < waiters; i++)
        wl_abort(w[i].l);
    for (int i = 0; i < waiters; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].rc, WL_ERROR_ABORTED);
        if (w[i].ended - began > promised(0.1))
            fail_msg("'%s': woken after %.0f ms", filter, (w[i].ended - began) * 1000);
    }
    began = now();
    for (int i = 0; i < waiters; i++)
        wl_close(w[i].l);
    wl_context_close(ctx);
    if (now() - began > promised(2))
        fail_msg("'%s': closed after %.0f ms", filter, (now() - began) * 1000);
}

static void abort_wakes_all(void **state) {
    abort_in(*state, "", 4, 30);                            /* batches come all the time */
    abort_in(*state, "delay read=0ms..20ms seed=3", 4, 50); /* now and then */
    /* One waiter: its first two reads are those of the manifest and the index. */
    abort_in(*state, "fault read=HANG:every3", 1, 100);
    abort_in(*state, "fault read=IO:every3", 1, 300);
    configure(*state, "");
}

/* ---- close in any state ---- */

static void *delete_soon(void *arg) {
    struct wt_dl_managed *t = arg;
    usleep(2000);
    t->deleter(t);
    return NULL;
}

static void close_with_tensors_held(void **state) {
    struct kit *k = *state;
    wl_options o = kit_options(k);
    o.epochs = 1;
    unsigned n = 200 / (scale() > 10 ? 10 : scale());
    for (unsigned i = 0; i < n; i++) {
        wl_loader *l;
        wl_batch *b[3] = {NULL};
        struct wt_dl_managed *t = NULL;
        pthread_t thread;
        configure(k, i % 5 == 3 ? "delay read=1ms..9ms" : "");
        assert_int_equal(wl_open(NULL, &o, &l), WL_OK);
        for (unsigned j = 0; j < i % 4; j++)
            if (wl_next(l, NULL, i % 5 == 3 ? 3 : 20000, &b[j]) != WL_OK)
                b[j] = NULL;
        if (b[0]) {
            t = wl_batch_dlpack(b[0], "mask", NULL);
            assert_non_null(t);
            assert_int_equal(pthread_create(&thread, NULL, delete_soon, t), 0);
        }
        if (i % 3 == 0)
            wl_abort(l);
        if (i % 2)
            wl_batch_release(b[0], NULL);
        wl_close(l);
        if (!(i % 2) && b[0])
            kit_check_batch(k, b[0]);
        for (unsigned j = i % 2; j < 3; j++)
            wl_batch_release(b[j], NULL);
        if (t)
            pthread_join(thread, NULL);
    }
    configure(k, "");
}

/* ---- a consumer that stops ---- */

static double cpu_seconds(void) {
    struct rusage u;
    assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void a_stopped_consumer_costs_nothing(void **state) {
    struct kit *k = *state;
    wl_options o = kit_options(k);
    o.epochs = 0;
    wl_loader *l = kit_open(&o);
    wl_batch *b;
    assert_int_equal(wl_next(l, NULL, 20000, &b), WL_OK);
    usleep(500000); /* the ring fills up */
    uint64_t bytes = kit_bytes_read(l);
    double before = cpu_seconds();
    usleep(1000000);
    double used = cpu_seconds() - before;
    print_message("%.1f ms of CPU in a second\n", used * 1000);
    assert_true(used < promised(0.01));
    assert_int_equal(kit_bytes_read(l), bytes);
    wl_batch_release(b, NULL);
    assert_int_equal(wl_next(l, NULL, 20000, &b), WL_OK); /* and it goes on */
    wl_batch_release(b, NULL);
    wl_close(l);
}

/* ---- budgets ---- */

static void add_samples(struct wt_shard_writer *w, uint64_t shard, uint8_t *image) {
    struct wt_err err = {0};
    for (uint64_t i = 0; i < BIG_SAMPLES; i++) {
        char key[64];
        uint64_t id = shard * BIG_SAMPLES + i;
        snprintf(key, sizeof key, "lot/w%llu/s%llu", (unsigned long long)shard,
                 (unsigned long long)i);
        memcpy(image, &id, sizeof id);
        struct wt_tensor t = {
            .name = "", .shape = {WT_DTYPE_U8, 2, {BIG_SIDE, BIG_SIDE}}, .data = image};
        struct wt_sample_in in = {
            .key = key, .id = id, .label = WT_UNLABELLED, .tensors = &t, .n_tensors = 1};
        if (wt_shard_writer_add(w, &in, &err) < 0)
            fail_msg("%s", err.text);
    }
}

/* Flat images: large when decoded, next to nothing as they lie there. */
static void make_big(const struct kit *k, uint64_t shards) {
    struct wt_err err = {0};
    struct wt_target target;
    struct wt_publish p;
    struct wt_shard_writer *w;
    struct wt_manifest m = {.lots = 1, .wafers = (uint32_t)shards, .n_fields = 1};
    char url[200];
    uint8_t *image = calloc(BIG_SIDE, BIG_SIDE);
    assert_non_null(image);
    m.field[0].shape = (struct wt_shape){WT_DTYPE_U8, 2, {BIG_SIDE, BIG_SIDE}};
    snprintf(url, sizeof url, "file://%s/cold", k->root);
    int rc = wt_target_open(&(struct wt_target_opts){.url = url}, &target, &err);
    if (rc == 0)
        rc = wt_shard_writer_new(&(struct wt_shard_opts){.codec = WT_CODEC_ZSTD, .level = 1}, &w,
                                 &err);
    if (rc == 0)
        rc = wt_publish_begin(&p, &target, "big", false, &err);
    for (uint64_t s = 0; rc == 0 && s < shards; s++) {
        struct wt_shard_out out;
        add_samples(w, s, image);
        rc = wt_shard_writer_finish(w, &out, &err);
        if (rc == 0)
            rc = wt_publish_shard(&p, WT_CODEC_ZSTD, &out, &err);
        wt_shard_out_free(&out);
    }
    if (rc == 0)
        rc = wt_publish_commit(&p, &m, &err);
    if (rc < 0)
        fail_msg("%s", err.text);
    wt_manifest_free(&m);
    wt_publish_end(&p);
    wt_shard_writer_free(w);
    wt_target_close(&target);
    free(image);
}

static void check_big(const wl_batch *b) {
    const uint64_t *id = wl_batch_tensor(b, "sample_id")->data;
    const uint8_t *image = wl_batch_tensor(b, "image")->data;
    for (uint64_t row = 0; row < wl_batch_size(b); row++) {
        const uint8_t *at = image + row * BIG_SIDE * BIG_SIDE;
        assert_memory_equal(at, &id[row], sizeof *id);
        assert_int_equal(at[BIG_SIDE * BIG_SIDE - 1], 0);
    }
}

/* Reads steps of the epoch (0: all of it); the most that was resident above the beginning is judged
 * against what the loader says that it took. */
static void read_big(const struct kit *k, uint64_t memory, uint64_t batch, uint64_t steps,
                     bool ranged) {
    wl_options o = kit_options(k);
    o.dataset = "big";
    o.memory = memory;
    o.batch = batch;
    o.slots = 2;
    o.lanes = 1;
    o.window = 2;
    malloc_trim(0);
    uint64_t before = peak_from_now();
    wl_loader *l = kit_open(&o);
    wl_info info;
    wl_batch *b;
    wl_get_info(l, &info);
    uint64_t done = 0;
    int rc = WL_OK;
    while ((steps == 0 || done < steps) && (rc = wl_next(l, NULL, 60000, &b)) == WL_OK) {
        check_big(b);
        wl_batch_release(b, NULL);
        done++;
    }
    if (rc < 0)
        fail_msg("%s: %s", wl_result_name(rc), wl_last_error(l)->message);
    wl_get_info(l, &info);
    uint64_t peak = status_bytes("VmHWM") - before;
    wl_close(l);
    print_message("%llu of %llu steps, %s: budget %.1f MiB, taken %.1f MiB, resident %.1f MiB\n",
                  (unsigned long long)done, (unsigned long long)info.steps,
                  info.ranged ? "ranged" : "windows", (double)memory / (1 << 20),
                  (double)info.memory / (1 << 20), (double)peak / (1 << 20));
    assert_int_equal(info.ranged, ranged);
    assert_true(info.memory <= memory);
    assert_int_equal(done, steps ? steps : info.steps);
    /* Threads' stacks, the tiers' workers and what libraries keep are beside the budget. */
    if (scale() == 1 && peak > info.memory + (12 << 20))
        fail_msg("%llu bytes were resident, %llu taken", (unsigned long long)peak,
                 (unsigned long long)info.memory);
}

static void budgets_hold(void **state) {
    struct kit *k = *state;
    uint64_t shards = BIG_SHARDS / scale();
    make_big(k, shards < 64 ? 64 : shards);
    read_big(k, BIG_MEMORY, 16, 0, false);
    read_big(k, BIG_MEMORY / 4, 4, 2000 / scale() + 10, true);
}

int main(void) {
    /* On tmpfs: what is measured is the loader, not a disk's syncs. */
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(budgets_hold), /* first, in a small process */
        cmocka_unit_test(opens_on_one_context),
        cmocka_unit_test(opens_with_contexts_of_their_own),
        cmocka_unit_test(leases_have_a_place_of_their_own),
        cmocka_unit_test(abort_wakes_all),
        cmocka_unit_test(close_with_tensors_held),
        cmocka_unit_test(a_stopped_consumer_costs_nothing),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
