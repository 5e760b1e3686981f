/*
 * The workers that build shards; see packer.h.
 *
 * A worker takes the next shard number under `dispatch`, which it keeps while it reads a range that
 * has to be read in order. It waits before it takes one until the shard fits the window of results
 * that are not yet fetched. Results lie in slots by shard number, so they are fetched in order
 * whoever is first. A worker's error is the result of its shard.
 */
#include "core/mem.h"
#include "tools/packer.h"
#include "tools/tally.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct slot {
    bool ready;
    int rc;
    struct wt_err err;
    struct wt_shard_out out;
};

struct worker {
    struct wt_builder *builder;
    pthread_t thread;
    struct wt_shard_writer *writer;
    struct wt_image image;
    struct wt_tally tally;
    bool started;
};

struct wt_builder {
    struct wt_source *source;
    const struct wt_pack_plan *plan;
    pthread_mutex_t dispatch;
    uint64_t next; /* shard; under dispatch */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t fetched; /* under lock, with the rest */
    bool stop;
    struct slot *slot;
    uint64_t slots;
    struct worker *worker;
    unsigned threads;
};

static int take_sample(void *arg, const struct wt_sample_in *s, struct wt_err *err) {
    struct worker *w = arg;
    int rc = wt_shard_writer_add(w->writer, s, err);
    return rc < 0 ? rc : wt_tally_add(&w->tally, s, err);
}

/* Waits until shard `next` fits the window; false: stop. */
static bool wait_room(struct wt_builder *b) {
    pthread_mutex_lock(&b->lock);
    while (!b->stop && b->next < b->plan->shards && b->next >= b->fetched + b->slots)
        pthread_cond_wait(&b->changed, &b->lock);
    bool go = !b->stop && b->next < b->plan->shards;
    pthread_mutex_unlock(&b->lock);
    return go;
}

static void put_result(struct wt_builder *b, uint64_t shard, const struct slot *result) {
    pthread_mutex_lock(&b->lock);
    b->slot[shard % b->slots] = *result;
    b->slot[shard % b->slots].ready = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

/* Takes a shard, builds it, leaves the result. False: nothing is left to do. */
static bool build_one(struct worker *w) {
    struct wt_builder *b = w->builder;
    struct slot result = {0};
    pthread_mutex_lock(&b->dispatch);
    if (!wait_room(b)) {
        pthread_mutex_unlock(&b->dispatch);
        return false;
    }
    uint64_t shard = b->next++;
    uint64_t first = b->plan->first[shard], count = b->plan->first[shard + 1] - first;
    bool ordered = b->source->ops->ordered(b->source, first, count);
    if (!ordered)
        pthread_mutex_unlock(&b->dispatch);
    result.rc =
        b->source->ops->read(b->source, &w->image, first, count, take_sample, w, &result.err);
    if (ordered)
        pthread_mutex_unlock(&b->dispatch);
    if (result.rc == 0 && wt_shard_writer_samples(w->writer) > 0)
        result.rc = wt_shard_writer_finish(w->writer, &result.out, &result.err);
    put_result(b, shard, &result);
    return result.rc == 0;
}

static void *run_worker(void *arg) {
    while (build_one(arg)) {
    }
    return NULL;
}

static int start_worker(struct wt_builder *b, struct worker *w, const struct wt_shard_opts *shard,
                        struct wt_err *err) {
    w->builder = b;
    int rc = wt_tally_init(&w->tally, b->source->n_classes,
                           b->source->label_kind == WT_LABEL_MULTIHOT, err);
    if (rc == 0)
        rc = wt_shard_writer_new(shard, &w->writer, err);
    if (rc < 0)
        return rc;
    int sys = pthread_create(&w->thread, NULL, run_worker, w);
    if (sys)
        return wt_err_sys(err, sys, "a worker thread cannot be started");
    w->started = true;
    return 0;
}

static void init_locks(struct wt_builder *b) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&b->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&b->lock, NULL);
    pthread_mutex_init(&b->dispatch, NULL);
}

int wt_builder_start(struct wt_source *source, const struct wt_pack_plan *plan,
                     const struct wt_shard_opts *shard, unsigned threads, struct wt_builder **out,
                     struct wt_err *err) {
    struct wt_builder *b = wt_calloc(1, sizeof *b);
    if (!b)
        return wt_err_set(err, WT_ENOMEM, "no memory for workers");
    *b = (struct wt_builder){
        .source = source, .plan = plan, .threads = threads, .slots = threads + 2};
    init_locks(b);
    b->slot = wt_calloc(b->slots, sizeof *b->slot);
    b->worker = wt_calloc(threads, sizeof *b->worker);
    int rc = b->slot && b->worker ? 0 : wt_err_set(err, WT_ENOMEM, "no memory for workers");
    for (unsigned i = 0; rc == 0 && i < threads; i++)
        rc = start_worker(b, &b->worker[i], shard, err);
    if (rc < 0)
        wt_builder_end(b, NULL, NULL);
    else
        *out = b;
    return rc;
}

static void wait_a_bit(struct wt_builder *b) {
    enum { STEP_NS = 100 * 1000 * 1000 };
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += STEP_NS;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&b->changed, &b->lock, &t);
}

int wt_builder_next(struct wt_builder *b, bool (*stopped)(void *), void *arg,
                    struct wt_shard_out *out, struct wt_err *err) {
    if (b->fetched == b->plan->shards)
        return 0;
    struct slot *slot = &b->slot[b->fetched % b->slots];
    pthread_mutex_lock(&b->lock);
    bool stop = stopped && stopped(arg);
    while (!slot->ready && !stop) {
        wait_a_bit(b);
        stop = stopped && stopped(arg);
    }
    struct slot result = *slot;
    if (!stop) {
        *slot = (struct slot){0};
        b->fetched++;
        pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
    if (stop)
        return wt_err_set(err, WT_ECANCELED, "interrupted");
    if (result.rc < 0) {
        if (err)
            *err = result.err;
        return result.rc;
    }
    *out = result.out;
    return 1;
}

static void free_worker(struct worker *w) {
    wt_shard_writer_free(w->writer);
    wt_image_free(&w->image);
    wt_tally_free(&w->tally);
}

int wt_builder_end(struct wt_builder *b, struct wt_manifest *m, struct wt_err *err) {
    pthread_mutex_lock(&b->lock);
    b->stop = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    for (unsigned i = 0; b->worker && i < b->threads; i++)
        if (b->worker[i].started)
            pthread_join(b->worker[i].thread, NULL);
    int rc = 0;
    for (unsigned i = 1; m && rc == 0 && i < b->threads; i++)
        rc = wt_tally_merge(&b->worker[0].tally, &b->worker[i].tally, err);
    if (m && rc == 0)
        wt_tally_finish(&b->worker[0].tally, m);
    for (unsigned i = 0; b->worker && i < b->threads; i++)
        free_worker(&b->worker[i]);
    for (uint64_t i = 0; b->slot && i < b->slots; i++)
        if (b->slot[i].ready && b->slot[i].rc == 0)
            wt_shard_out_free(&b->slot[i].out);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    pthread_mutex_destroy(&b->dispatch);
    free(b->slot);
    free(b->worker);
    free(b);
    return rc;
}
