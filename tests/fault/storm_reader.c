/*
 * The storm's loader, on a thread of its own: for each batch that it delivers, the batch of a
 * loader on a plain folder, which no fault can reach, must be the same to the byte; at the end of
 * an epoch every sample must have come once.
 */
#include "storm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 64, PATIENCE_MS = 90000, PAUSE_US = 15000 };

static void fail_reading(struct storm_reader *r, const char *what, const char *more) {
    snprintf(r->failure, sizeof r->failure, "epoch %llu, after %llu batches: %s%s%s",
             (unsigned long long)r->epochs, (unsigned long long)r->batches, what, more ? ": " : "",
             more ? more : "");
}

static const wl_tensor *tensor(const wl_batch *b, const char *name, size_t *bytes) {
    const wl_tensor *t = wl_batch_tensor(b, name);
    *bytes = wl_dtype_size(t->dtype);
    for (int i = 0; i < t->ndim; i++)
        *bytes *= (size_t)t->shape[i];
    return t;
}

static const char *difference(const wl_batch *a, const wl_batch *b) {
    static const char *const names[] = {"valid", "sample_id", "label", "size", "image"};
    if (wl_batch_epoch(a) != wl_batch_epoch(b) || wl_batch_step(a) != wl_batch_step(b))
        return "the step";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t n, m;
        const wl_tensor *x = tensor(a, names[i], &n), *y = tensor(b, names[i], &m);
        if (n != m || memcmp(x->data, y->data, n) != 0)
            return names[i];
    }
    for (uint64_t row = 0; row < wl_batch_size(a); row++)
        if (strcmp(wl_batch_key(a, row), wl_batch_key(b, row)) != 0)
            return "a key";
    return NULL;
}

static void note_samples(struct storm_reader *r, const wl_batch *b) {
    const uint8_t *valid = wl_batch_tensor(b, "valid")->data;
    const uint64_t *id = wl_batch_tensor(b, "sample_id")->data;
    for (uint64_t row = 0; row < wl_batch_size(b); row++) {
        if (!valid[row])
            continue;
        if (r->came == r->samples)
            fail_reading(r, "more samples than the data set has", NULL);
        else
            r->id[r->came++] = id[row];
    }
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void end_epoch(struct storm_reader *r) {
    qsort(r->id, r->came, sizeof r->id[0], by_value);
    if (r->came < r->samples)
        fail_reading(r, "a sample did not come", NULL);
    for (uint64_t i = 1; i < r->came; i++)
        if (r->id[i] == r->id[i - 1])
            fail_reading(r, "a sample came twice", NULL);
    r->came = 0;
    r->epochs++;
}

static void compare(struct storm_reader *r, wl_batch *real, wl_batch *plain) {
    const char *what = difference(real, plain);
    if (what)
        fail_reading(r, "a batch differs from the one without faults in", what);
    note_samples(r, real);
    r->batches++;
}

/* false: the end, good or bad. */
static bool read_one(struct storm_reader *r) {
    wl_batch *real = NULL, *plain = NULL;
    uint64_t began = kit_now();
    int rc = wl_next(r->real, NULL, PATIENCE_MS, &real);
    uint64_t took = kit_now() - began;
    if (took > r->longest_ms)
        r->longest_ms = took;
    int other = wl_next(r->plain, NULL, PATIENCE_MS, &plain);
    if (rc == WL_OK && other == WL_OK)
        compare(r, real, plain);
    else if (rc < 0)
        fail_reading(r, "the loader fails", wl_last_error(r->real)->message);
    else if (rc != other)
        fail_reading(r, wl_result_name(rc), wl_result_name(other));
    else if (rc != WL_END_OF_EPOCH)
        fail_reading(r, wl_result_name(rc), NULL);
    wl_batch_release(real, NULL);
    wl_batch_release(plain, NULL);
    if (r->failure[0])
        return false;
    if (rc == WL_END_OF_EPOCH)
        end_epoch(r);
    return rc != WL_END_OF_EPOCH || !r->stop;
}

static void *run(void *arg) {
    struct storm_reader *r = arg;
    while (read_one(r))
        usleep(PAUSE_US);
    r->ended = true;
    return NULL;
}

static wl_loader *open_one(const char *conf, uint64_t seed) {
    wl_options o = WL_OPTIONS_INIT;
    wl_loader *l;
    o.config = conf;
    o.dataset = STORM_SET;
    o.batch = BATCH;
    o.epochs = 0;
    o.seed = seed;
    o.tail = WL_TAIL_PAD;
    o.rank = 0;
    o.world = 1;
    o.threads = 1;
    o.lanes = 2;
    o.window = 2;
    o.memory = 128 << 20;
    o.timeout_ms = PATIENCE_MS;
    if (wl_open(NULL, &o, &l) < 0)
        fail_msg("%s", wl_last_error(NULL)->message);
    return l;
}

void storm_reader_start(struct storm_reader *r, const char *conf, const char *plain_conf,
                        uint64_t seed) {
    wl_info info;
    r->real = open_one(conf, seed);
    r->plain = open_one(plain_conf, seed);
    wl_get_info(r->plain, &info);
    r->samples = info.samples;
    r->id = calloc(r->samples, sizeof r->id[0]);
    assert_non_null(r->id);
    assert_int_equal(pthread_create(&r->thread, NULL, run, r), 0);
    r->started = true;
}

void storm_reader_stop(struct storm_reader *r) {
    if (!r->started)
        return;
    r->started = false;
    r->stop = true;
    pthread_join(r->thread, NULL);
    wl_close(r->real);
    wl_close(r->plain);
    free(r->id);
}

void storm_reader_advance(struct storm_reader *r, unsigned n, unsigned ms) {
    uint64_t goal = r->batches + n, end = kit_now() + ms;
    while (r->batches < goal && !r->ended && kit_now() < end)
        kit_sleep(5);
    if (r->ended)
        fail_msg("%s", r->failure);
    if (r->batches < goal)
        fail_msg("no batch for %u ms after %llu", ms, (unsigned long long)r->batches);
}
