/*
 * The worker pool; see pool.h for its happy path and failures.
 *
 * States of a job: queued -> running -> finished (waits for the loop). pool->lock guards lists,
 * states and counts; job->lock guards the copies into others' memory. Order: job->lock, then
 * pool->lock.
 */
#include "tiers/pool.h"

#include "core/mem.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { CLOSE_GRACE_MS = 1000 };
enum { JOB_IDLE, JOB_QUEUED, JOB_RUNNING, JOB_FINISHED };

struct job_list {
    struct wt_job *first, *last;
    size_t count;
};

struct wt_worker {
    struct wt_pool *pool;
    pthread_t thread;
    void *scratch;
    bool detached; /* nobody joins it: it frees itself */
    struct wt_worker *next, *prev;
};

struct wt_pool {
    pthread_mutex_t lock;
    pthread_cond_t work;     /* workers wait for jobs */
    pthread_cond_t progress; /* and for the loop's progress() */
    pthread_cond_t calm;     /* wt_pool_wait */
    unsigned refs;           /* the owner and each worker */
    struct wt_pool_opts opts;
    struct job_list queued, running, finished, progressing;
    struct wt_worker *workers, *exited;
    size_t threads, idle, abandoned;
    bool closing, detached; /* detached: the loop is gone for us */

    uv_loop_t *loop;
    uv_async_t async;
    uv_timer_t grace; /* closing */
    uv_timer_t watch; /* runs while there are abandoned jobs not yet counted as stuck */
    unsigned handles;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* ---- lists ---- */

static void add(struct job_list *list, struct wt_job *job) {
    job->next = NULL;
    job->prev = list->last;
    if (list->last)
        list->last->next = job;
    else
        list->first = job;
    list->last = job;
    list->count++;
}

static void take(struct job_list *list, struct wt_job *job) {
    if (job->prev)
        job->prev->next = job->next;
    else
        list->first = job->next;
    if (job->next)
        job->next->prev = job->prev;
    else
        list->last = job->prev;
    job->next = job->prev = NULL;
    list->count--;
}

/* ---- life ---- */

static void unref(struct wt_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    unsigned left = --pool->refs;
    pthread_mutex_unlock(&pool->lock);
    if (left)
        return;
    pthread_cond_destroy(&pool->calm);
    pthread_cond_destroy(&pool->progress);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

static void worker_free(struct wt_worker *w) {
    free(w->scratch);
    free(w);
}

static void on_async(uv_async_t *async);

int wt_pool_new(uv_loop_t *loop, const struct wt_pool_opts *opts, struct wt_pool **out,
                struct wt_err *err) {
    struct wt_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return wt_err_set(err, WT_ENOMEM, "out of memory for a worker pool");
    pool->opts = *opts;
    pool->loop = loop;
    pool->refs = 1;
    int rc = uv_async_init(loop, &pool->async, on_async);
    if (rc < 0) {
        free(pool);
        return wt_err_sys(err, -rc, "a worker pool cannot be made");
    }
    uv_timer_init(loop, &pool->grace);
    uv_timer_init(loop, &pool->watch);
    pool->handles = 3;
    pool->async.data = pool->grace.data = pool->watch.data = pool;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->progress, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->calm, &attr);
    pthread_condattr_destroy(&attr);
    *out = pool;
    return 0;
}

/* ---- the worker's side ---- */

/* A job's run is over. With the lock; gives the job back when the loop will not come for it. */
static struct wt_job *finish(struct wt_pool *pool, struct wt_job *job) {
    take(&pool->running, job);
    job->state = JOB_FINISHED;
    job->worker = NULL;
    if (pool->running.count + pool->queued.count == 0)
        pthread_cond_broadcast(&pool->calm);
    if (pool->detached)
        return job;
    add(&pool->finished, job);
    uv_async_send(&pool->async);
    return NULL;
}

static void run_one(struct wt_pool *pool, struct wt_worker *w) {
    struct wt_job *job = pool->queued.first;
    take(&pool->queued, job);
    job->state = JOB_RUNNING;
    job->worker = w;
    add(&pool->running, job);
    pthread_mutex_unlock(&pool->lock);
    job->run(job);
    pthread_mutex_lock(&pool->lock);
    struct wt_job *ours = finish(pool, job);
    if (!ours)
        return;
    pthread_mutex_unlock(&pool->lock);
    pthread_mutex_destroy(&ours->lock);
    ours->discard(ours);
    pthread_mutex_lock(&pool->lock);
}

/* With the lock. A joined worker is freed by the loop. */
static bool leave(struct wt_pool *pool, struct wt_worker *w) {
    pool->threads--;
    if (w->detached)
        return true;
    if (w->prev)
        w->prev->next = w->next;
    else
        pool->workers = w->next;
    if (w->next)
        w->next->prev = w->prev;
    w->next = pool->exited;
    pool->exited = w;
    if (!pool->detached)
        uv_async_send(&pool->async);
    return false;
}

static void *work(void *arg) {
    struct wt_worker *w = arg;
    struct wt_pool *pool = w->pool;
    pthread_mutex_lock(&pool->lock);
    while (!pool->closing || pool->queued.first) {
        if (pool->queued.first) {
            run_one(pool, w);
            continue;
        }
        pool->idle++;
        pthread_cond_wait(&pool->work, &pool->lock);
        pool->idle--;
    }
    bool own = leave(pool, w);
    pthread_mutex_unlock(&pool->lock);
    if (own)
        worker_free(w);
    unref(pool);
    return NULL;
}

bool wt_job_enter(struct wt_job *job) {
    pthread_mutex_lock(&job->lock);
    if (!job->abandoned)
        return true;
    pthread_mutex_unlock(&job->lock);
    return false;
}

void wt_job_leave(struct wt_job *job) {
    pthread_mutex_unlock(&job->lock);
}

bool wt_job_stopped(const struct wt_job *job) {
    return atomic_load(&job->stop);
}

void *wt_job_scratch(struct wt_job *job) {
    if (!job->worker->scratch)
        job->worker->scratch = malloc(WT_POOL_SCRATCH);
    return job->worker->scratch;
}

bool wt_job_progress(struct wt_job *job) {
    struct wt_pool *pool = job->pool;
    pthread_mutex_lock(&pool->lock);
    if (!job->abandoned && !pool->detached) {
        /* It stays in `running`; the loop finds it there by its flag. */
        job->in_progress = true;
        uv_async_send(&pool->async);
        while (job->in_progress && !job->abandoned)
            pthread_cond_wait(&pool->progress, &pool->lock);
    }
    bool goes_on = !job->abandoned && !atomic_load(&job->stop);
    pthread_mutex_unlock(&pool->lock);
    return goes_on;
}

/* ---- the loop's side ---- */

/* Signals belong to the program's threads, never to ours. */
static int spawn(struct wt_pool *pool, struct wt_worker *w) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    int rc = pthread_create(&w->thread, NULL, work, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc == 0) {
        pool->threads++;
        pool->refs++;
    }
    return rc;
}

/* With the lock. */
static int add_worker(struct wt_pool *pool) {
    struct wt_worker *w = calloc(1, sizeof *w);
    if (!w)
        return ENOMEM;
    w->pool = pool;
    int rc = spawn(pool, w);
    if (rc) {
        free(w);
        return rc;
    }
    w->next = pool->workers;
    if (w->next)
        w->next->prev = w;
    pool->workers = w;
    return 0;
}

/* How many threads there may be: those with an abandoned job are replaced, up to the cap. */
static size_t thread_limit(const struct wt_pool *pool) {
    size_t max = pool->opts.stuck_max;
    return pool->opts.workers + (pool->abandoned < max ? pool->abandoned : max);
}

/* With the lock: a worker for each job that waits, within the limit. */
static int want_worker(struct wt_pool *pool) {
    if (pool->queued.count <= pool->idle || pool->threads >= thread_limit(pool))
        return 0;
    return add_worker(pool);
}

int wt_pool_submit(struct wt_pool *pool, struct wt_job *job, struct wt_err *err) {
    job->pool = pool;
    job->worker = NULL;
    job->abandoned = job->in_progress = job->stuck = false;
    atomic_store(&job->stop, false);
    pthread_mutex_init(&job->lock, NULL);
    pthread_mutex_lock(&pool->lock);
    job->state = JOB_QUEUED;
    add(&pool->queued, job);
    int rc = want_worker(pool);
    if (rc && pool->threads == 0) {
        take(&pool->queued, job);
        job->state = JOB_IDLE;
    } else {
        rc = 0; /* fewer workers than wanted do as well */
        pthread_cond_signal(&pool->work);
    }
    pthread_mutex_unlock(&pool->lock);
    if (rc == 0)
        return 0;
    pthread_mutex_destroy(&job->lock);
    return wt_err_sys(err, rc, "no worker thread can be started");
}

static void to_owner(struct wt_job *job) {
    job->state = JOB_IDLE;
    pthread_mutex_destroy(&job->lock);
}

bool wt_job_stop(struct wt_job *job) {
    struct wt_pool *pool = job->pool;
    atomic_store(&job->stop, true);
    pthread_mutex_lock(&pool->lock);
    bool waiting = job->state == JOB_QUEUED;
    if (waiting)
        take(&pool->queued, job);
    pthread_mutex_unlock(&pool->lock);
    if (waiting)
        to_owner(job);
    return waiting;
}

static void on_watch(uv_timer_t *timer) {
    struct wt_pool *pool = timer->data;
    uint64_t old = uv_hrtime() - (uint64_t)WT_POOL_STUCK_MS * 1000000;
    int found = 0, left = 0;
    pthread_mutex_lock(&pool->lock);
    for (struct wt_job *job = pool->running.first; job; job = job->next) {
        if (!job->abandoned || job->stuck)
            continue;
        job->stuck = job->abandoned_ns <= old;
        found += job->stuck;
        left += !job->stuck;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!left)
        uv_timer_stop(timer);
    if (found && pool->opts.on_stuck)
        pool->opts.on_stuck(pool->opts.arg, found);
}

enum wt_abandon wt_job_abandon(struct wt_job *job) {
    struct wt_pool *pool = job->pool;
    if (wt_job_stop(job))
        return WT_ABANDON_DROPPED;
    pthread_mutex_lock(&job->lock);
    pthread_mutex_lock(&pool->lock);
    bool running = job->state == JOB_RUNNING;
    if (running) {
        job->abandoned = true;
        job->abandoned_ns = uv_hrtime();
        pool->abandoned++;
        pthread_cond_broadcast(&pool->progress);
        want_worker(pool); /* failing that, the others serve the queue */
    }
    pthread_mutex_unlock(&pool->lock);
    pthread_mutex_unlock(&job->lock);
    if (!running)
        return WT_ABANDON_ENDED;
    if (!uv_is_active((uv_handle_t *)&pool->watch))
        uv_timer_start(&pool->watch, on_watch, WT_POOL_STUCK_MS, WT_POOL_STUCK_MS / 2);
    return WT_ABANDON_LEFT;
}

bool wt_pool_wait(struct wt_pool *pool, unsigned ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&pool->lock);
    int rc = 0;
    while (pool->running.count + pool->queued.count && rc == 0)
        rc = pthread_cond_timedwait(&pool->calm, &pool->lock, &until);
    bool calm = pool->running.count + pool->queued.count == 0;
    pthread_mutex_unlock(&pool->lock);
    return calm;
}

static void deliver(struct wt_pool *pool, struct wt_job *job) {
    bool abandoned = job->abandoned, stuck = job->stuck;
    to_owner(job);
    if (!abandoned) {
        job->done(job);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->abandoned--;
    pthread_mutex_unlock(&pool->lock);
    job->discard(job);
    if (stuck && pool->opts.on_stuck)
        pool->opts.on_stuck(pool->opts.arg, -1);
}

static struct wt_job *next_finished(struct wt_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    struct wt_job *job = pool->finished.first;
    if (job)
        take(&pool->finished, job);
    pthread_mutex_unlock(&pool->lock);
    return job;
}

static struct wt_job *next_progress(struct wt_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    struct wt_job *job = pool->running.first;
    while (job && !(job->in_progress && !job->abandoned))
        job = job->next;
    pthread_mutex_unlock(&pool->lock);
    return job;
}

static void run_progress(struct wt_pool *pool) {
    struct wt_job *job;
    while ((job = next_progress(pool))) {
        job->progress(job);
        pthread_mutex_lock(&pool->lock);
        job->in_progress = false;
        pthread_cond_broadcast(&pool->progress);
        pthread_mutex_unlock(&pool->lock);
    }
}

static void join_exited(struct wt_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    struct wt_worker *w = pool->exited;
    pool->exited = NULL;
    pthread_mutex_unlock(&pool->lock);
    while (w) {
        struct wt_worker *next = w->next;
        pthread_join(w->thread, NULL);
        worker_free(w);
        w = next;
    }
}

/* ---- close ---- */

static void on_handle_closed(uv_handle_t *handle) {
    struct wt_pool *pool = handle->data;
    if (--pool->handles)
        return;
    void (*closed)(void *) = pool->closed;
    void *arg = pool->closed_arg;
    unref(pool);
    closed(arg);
}

/* With the lock: those that hang are nobody's now, and nobody wakes the loop any more. */
static void detach_rest(struct wt_pool *pool) {
    pool->detached = true;
    for (struct wt_worker *w = pool->workers; w; w = w->next) {
        w->detached = true;
        pthread_detach(w->thread);
    }
    for (struct wt_job *job = pool->running.first; job; job = job->next)
        atomic_store(&job->stop, true);
    pthread_cond_broadcast(&pool->progress);
}

static void close_now(struct wt_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    bool again = pool->detached;
    if (!again)
        detach_rest(pool);
    pthread_mutex_unlock(&pool->lock);
    if (again)
        return;
    join_exited(pool);
    struct wt_job *job;
    while ((job = next_finished(pool)))
        deliver(pool, job);
    uv_close((uv_handle_t *)&pool->async, on_handle_closed);
    uv_close((uv_handle_t *)&pool->grace, on_handle_closed);
    uv_close((uv_handle_t *)&pool->watch, on_handle_closed);
}

static void on_grace(uv_timer_t *timer) {
    close_now(timer->data);
}

static void close_when_calm(struct wt_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    bool calm = pool->closing && pool->threads == 0 && !pool->finished.first;
    pthread_mutex_unlock(&pool->lock);
    if (calm)
        close_now(pool);
}

static void on_async(uv_async_t *async) {
    struct wt_pool *pool = async->data;
    run_progress(pool);
    struct wt_job *job;
    while ((job = next_finished(pool)))
        deliver(pool, job);
    join_exited(pool);
    close_when_calm(pool);
}

void wt_pool_close(struct wt_pool *pool, void (*closed)(void *arg), void *arg) {
    pool->closed = closed;
    pool->closed_arg = arg;
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    uv_timer_start(&pool->grace, on_grace, CLOSE_GRACE_MS, 0);
    uv_async_send(&pool->async);
}

void wt_pool_stats(struct wt_pool *pool, struct wt_pool_stats *out) {
    pthread_mutex_lock(&pool->lock);
    *out = (struct wt_pool_stats){pool->threads, pool->abandoned, pool->queued.count};
    pthread_mutex_unlock(&pool->lock);
}
