/*
 * The context's worker threads: they decode, verify and stage. Tasks are their owners' memory; the
 * one with the smallest rank runs first (staging before decoding, what is needed soon before what
 * is needed later). Threads block all signals.
 */
#ifndef WT_LOADER_CREW_H
#define WT_LOADER_CREW_H

#include "core/err.h"
#include "core/shard.h"

#include <pthread.h>
#include <stdint.h>

struct wt_worker { /* what a task may use while it runs */
    struct wt_decoder *decoder;
};

struct wt_task {
    uint64_t rank;
    void (*run)(struct wt_task *task, struct wt_worker *worker);
    uint64_t queued_ns; /* set by submit */
    struct wt_task *next;
};

enum { WT_CREW_MAX = 256 };
#define WT_RANK_STAGE  UINT64_C(0)
#define WT_RANK_DECODE (UINT64_C(1) << 63)

struct wt_crew;
int wt_crew_new(unsigned threads, struct wt_crew **out, struct wt_err *err);
/* Runs what is still queued, then joins. NULL is fine. */
void wt_crew_free(struct wt_crew *crew);
void wt_crew_submit(struct wt_crew *crew, struct wt_task *task); /* any thread */
unsigned wt_crew_threads(const struct wt_crew *crew);

/* pthread_create with all signals blocked in the new thread: they stay the program's. 0 or an
 * errno. */
int wt_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
