/*
 * Threads of a tier's own for calls that may block: a mount that hangs blocks this pool and nobody
 * else.
 *
 * Happy path: wt_pool_submit -> run() on a worker -> done() on the loop. Workers start when they
 * are needed, up to opts.workers. A job whose call hangs is abandoned: done() will not come; its
 * worker is replaced (up to opts.stuck_max replacements) and, when it is not back after
 * WT_POOL_STUCK_MS, counted as stuck; when its call returns after all, discard() frees what the job
 * holds. A job touches memory of others only
 * between wt_job_enter and wt_job_leave, which fails once the job is abandoned: that is how a late
 * worker never writes to a caller's buffer. Close: no new jobs; waits up to a second for the
 * workers, then leaves the hanging ones to themselves: they hold a reference to the pool and
 * discard their job when they return.
 *
 * Thread rule: everything on the loop's thread, but for wt_job_enter/leave/stopped, wt_job_scratch
 * and wt_job_progress, which run() calls.
 */
#ifndef WT_TIERS_POOL_H
#define WT_TIERS_POOL_H

#include "core/err.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct wt_pool;
struct wt_worker;

enum {
    WT_POOL_SCRATCH = 256 << 10,
    WT_POOL_STUCK_MS = 500, /* an abandoned job's worker that is not back by then is stuck */
};

struct wt_job {
    /* set by the owner; the job lives until done() or discard() */
    void (*run)(struct wt_job *job);
    void (*progress)(struct wt_job *job); /* on the loop, see wt_job_progress; may be NULL */
    void (*done)(struct wt_job *job);
    void (*discard)(struct wt_job *job); /* any thread */

    /* the pool's */
    struct wt_pool *pool;
    struct wt_worker *worker;
    struct wt_job *next, *prev;
    int state;
    bool abandoned; /* under `lock` and the pool's */
    bool stuck;     /* told by on_stuck; loop only */
    uint64_t abandoned_ns;
    bool in_progress; /* the loop has yet to run progress() */
    atomic_bool stop; /* run() should end soon */
    pthread_mutex_t lock;
};

struct wt_pool_opts {
    size_t workers;
    size_t stuck_max;
    void (*on_stuck)(void *arg, int delta); /* on the loop */
    void *arg;
};

struct wt_pool_stats {
    size_t threads, abandoned, queued;
};

int wt_pool_new(uv_loop_t *loop, const struct wt_pool_opts *opts, struct wt_pool **out,
                struct wt_err *err);
/* 0; or WT_ESYSTEM when not even one thread can be had: the job is the owner's again. */
int wt_pool_submit(struct wt_pool *pool, struct wt_job *job, struct wt_err *err);

enum wt_abandon {
    WT_ABANDON_DROPPED, /* it had not begun: the job is the owner's again, discard it */
    WT_ABANDON_LEFT,    /* its worker has it; discard() will come, done() will not */
    WT_ABANDON_ENDED,   /* its run is over: done() comes soon */
};
enum wt_abandon wt_job_abandon(struct wt_job *job);
/* Only asks run() to end soon; true when the job had not begun and is the owner's again. */
bool wt_job_stop(struct wt_job *job);

/* Between these two the job is not abandoned; false: it is, touch nothing. Short, never a blocking
 * call. */
bool wt_job_enter(struct wt_job *job);
void wt_job_leave(struct wt_job *job);
/* Has the owner asked for an early end? */
bool wt_job_stopped(const struct wt_job *job);
/* WT_POOL_SCRATCH bytes of the worker's own; NULL when out of memory. */
void *wt_job_scratch(struct wt_job *job);
/* Runs job->progress on the loop and waits until it has returned; false: the job was abandoned,
 * end. */
bool wt_job_progress(struct wt_job *job);

/* Waits on the calling thread, at most ms, until every submitted job's run has ended; false: not
 * yet. */
bool wt_pool_wait(struct wt_pool *pool, unsigned ms);

void wt_pool_stats(struct wt_pool *pool, struct wt_pool_stats *out);
/* `closed` on the loop, when nothing of the pool is on the loop any more. No job may be waited for.
 */
void wt_pool_close(struct wt_pool *pool, void (*closed)(void *arg), void *arg);

#endif
