/* Opens, consumes, waits for rest; any error of the loader ends the program. See ours.h. */
#include "bench/loader/ours.h"

#include "bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void pause_for(double seconds) {
    double end = now() + seconds;
    struct timespec t = {.tv_sec = (time_t)end,
                         .tv_nsec = (long)((end - (double)(time_t)end) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
}

static void write_conf(const char *folder, char path[1024]) {
    snprintf(path, 1024, "%s/loader.conf", folder);
    FILE *f = fopen(path, "w");
    if (!f || fprintf(f, "tier \"cold\" { url = \"file://%s\" }\n", folder) < 0 || fclose(f) != 0)
        bench_die("%s cannot be written", path);
}

void ours_open(struct ours *o, const struct set *s, const struct ours_opts *opts) {
    char path[1024];
    write_conf(opts->folder, path);
    *o = (struct ours){.set = s, .seed = 1, .slots = opts->slots};
    wl_options w = WL_OPTIONS_INIT;
    w.config = path;
    w.dataset = opts->dataset;
    w.epochs = 0;
    w.batch = opts->batch;
    w.seed = o->seed;
    w.rank = 0;
    w.world = 1;
    w.slots = opts->slots;
    w.threads = (int)opts->threads;
    w.accel = WL_ACCEL_HOST;
    w.verify_every_read = opts->verify;
    if (wl_open(NULL, &w, &o->l) < 0)
        bench_die("wl_open: %s", wl_last_error(NULL)->message);
    wl_get_info(o->l, &o->info);
}

void ours_close(struct ours *o) {
    wl_close(o->l);
}

/* NULL at an epoch's end. */
static wl_batch *next(struct ours *o) {
    enum { PATIENCE_MS = 60000 };
    wl_batch *b;
    int rc = wl_next(o->l, NULL, PATIENCE_MS, &b);
    if (rc == WL_END_OF_EPOCH)
        return NULL;
    if (rc != WL_OK)
        bench_die("wl_next: %s: %s", wl_result_name(rc), wl_last_error(o->l)->message);
    return b;
}

/* At rest: slots full, nothing on its way; seen twice running. Looking costs CPU time too. */
static void rest(struct ours *o) {
    for (int calm = 0; calm < 2;) {
        wl_stats s = {.size = sizeof s};
        wl_get_stats(o->l, &s);
        bool busy = s.fetch.queue || s.decode.queue || s.stage.queue || s.deliver.queue < o->slots;
        calm = busy ? 0 : calm + 1;
        pause_for(300e-6);
    }
}

static void check_rows(const struct set *s, const wl_batch *b, const uint64_t *order) {
    const uint64_t *id = wl_batch_tensor(b, "sample_id")->data;
    const uint8_t *image = wl_batch_tensor(b, "image")->data;
    for (uint64_t i = 0; i < wl_batch_size(b); i++) {
        struct set_place at = set_find(s, order[i]);
        if (id[i] != at.shard->index.id[at.sample] ||
            memcmp(at.shard->tar + at.off, image + i * s->row, s->row) != 0)
            bench_die("row %llu of step %llu is not what the plan says", (unsigned long long)i,
                      (unsigned long long)wl_batch_step(b));
    }
}

void ours_check_epoch(struct ours *o) {
    uint64_t *order = set_order(&o->info, o->seed, o->epoch++);
    for (wl_batch *b; (b = next(o));) {
        check_rows(o->set, b, order + wl_batch_step(b) * o->info.rank_batch);
        wl_batch_release(b, NULL);
    }
    free(order);
    rest(o);
}

void ours_epoch(struct ours *o) {
    for (wl_batch *b; (b = next(o));)
        wl_batch_release(b, NULL);
    o->epoch++;
    rest(o);
}

double ours_consume(struct ours *o, double *at, double work) {
    double waited = 0;
    for (;;) {
        double began = now();
        wl_batch *b = next(o);
        double ended = now();
        waited += ended - began;
        if (!b)
            break;
        if (at)
            at[wl_batch_step(b)] = ended;
        if (work > 0)
            pause_for(work);
        wl_batch_release(b, NULL);
    }
    o->epoch++;
    return waited;
}
