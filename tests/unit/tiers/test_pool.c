/* The worker pool: jobs, hanging ones, replacement and its cap, progress, close with a hanging
 * worker. */
#include "kit.h"

#include "tiers/pool.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    uv_loop_t loop;
    struct wt_pool *pool;
    int stuck;
    bool closed;
};

struct job {
    struct wt_job base; /* first */
    struct fixture *f;
    pthread_mutex_t *gate; /* run() waits for it */
    int sleep_ms;
    atomic_int ran;
    int done;
    atomic_int *discarded;
    int progressed, wanted;
    char *target;
    bool entered;
    bool any_signal;
};

static void on_stuck(void *arg, int delta) {
    ((struct fixture *)arg)->stuck += delta;
}

static void open_pool(struct fixture *f, size_t workers, size_t stuck_max) {
    memset(f, 0, sizeof *f);
    uv_loop_init(&f->loop);
    struct wt_pool_opts opts = {workers, stuck_max, on_stuck, f};
    assert_int_equal(wt_pool_new(&f->loop, &opts, &f->pool, NULL), 0);
}

static void on_closed(void *arg) {
    ((struct fixture *)arg)->closed = true;
}

static void close_pool(struct fixture *f) {
    wt_pool_close(f->pool, on_closed, f);
    assert_true(kit_until(&f->loop, &f->closed, 5000));
    assert_int_equal(uv_loop_close(&f->loop), 0);
}

static void run(struct wt_job *base) {
    struct job *j = (struct job *)base;
    atomic_fetch_add(&j->ran, 1);
    if (j->gate) {
        pthread_mutex_lock(j->gate);
        pthread_mutex_unlock(j->gate);
    }
    if (j->sleep_ms)
        uv_sleep((unsigned)j->sleep_ms);
    if (j->target && wt_job_enter(base)) {
        *j->target = 'x';
        j->entered = true;
        wt_job_leave(base);
    }
}

static void done(struct wt_job *base) {
    ((struct job *)base)->done++;
}

/* Any thread; the job is the test's, so it may be freed here. */
static void discard(struct wt_job *base) {
    struct job *j = (struct job *)base;
    atomic_int *count = j->discarded;
    free(j);
    atomic_fetch_add(count, 1);
}

static struct job *job_new(struct fixture *f, atomic_int *discarded) {
    struct job *j = calloc(1, sizeof *j);
    j->base.run = run;
    j->base.done = done;
    j->base.discard = discard;
    j->f = f;
    j->discarded = discarded;
    return j;
}

static void many_jobs(void **state) {
    (void)state;
    struct fixture f;
    open_pool(&f, 4, 2);
    enum { N = 500 };
    struct job *jobs[N];
    for (int i = 0; i < N; i++) {
        jobs[i] = job_new(&f, NULL);
        assert_int_equal(wt_pool_submit(f.pool, &jobs[i]->base, NULL), 0);
    }
    struct wt_pool_stats stats;
    wt_pool_stats(f.pool, &stats);
    assert_true(stats.threads <= 4);
    assert_true(wt_pool_wait(f.pool, 5000));
    kit_run(&f.loop, 50);
    for (int i = 0; i < N; i++) {
        assert_int_equal(jobs[i]->ran, 1);
        assert_int_equal(jobs[i]->done, 1);
        free(jobs[i]);
    }
    close_pool(&f);
}

static void no_threads_without_jobs(void **state) {
    (void)state;
    struct fixture f;
    open_pool(&f, 4, 2);
    struct wt_pool_stats stats;
    wt_pool_stats(f.pool, &stats);
    assert_int_equal(stats.threads, 0);
    close_pool(&f);
}

static void run_look_at_signals(struct wt_job *base) {
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    ((struct job *)base)->any_signal = !sigismember(&mask, SIGTERM) || !sigismember(&mask, SIGUSR1);
}

static void workers_block_signals(void **state) {
    (void)state;
    struct fixture f;
    open_pool(&f, 1, 1);
    struct job *j = job_new(&f, NULL);
    j->base.run = run_look_at_signals;
    assert_int_equal(wt_pool_submit(f.pool, &j->base, NULL), 0);
    assert_true(wt_pool_wait(f.pool, 5000));
    kit_run(&f.loop, 10);
    assert_int_equal(j->done, 1);
    assert_false(j->any_signal);
    free(j);
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM)); /* ours are as they were */
    close_pool(&f);
}

/* A job that sleeps past its deadline is abandoned; others go on, its late write never comes. */
static void stuck_worker_is_replaced(void **state) {
    (void)state;
    struct fixture f;
    open_pool(&f, 1, 2);
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&gate);
    atomic_int discarded = 0;
    char target = '.';
    struct job *hang = job_new(&f, &discarded);
    hang->gate = &gate;
    hang->target = &target;
    assert_int_equal(wt_pool_submit(f.pool, &hang->base, NULL), 0);
    while (atomic_load(&hang->ran) == 0)
        uv_sleep(1);
    struct job *next = job_new(&f, &discarded);
    assert_int_equal(wt_pool_submit(f.pool, &next->base, NULL), 0);
    kit_run(&f.loop, 30);
    assert_int_equal(next->done, 0); /* the only worker hangs */
    assert_int_equal(wt_job_abandon(&hang->base), WT_ABANDON_LEFT);
    bool done_soon = false;
    for (int i = 0; i < 2000 && !done_soon; i++) {
        kit_run(&f.loop, 1);
        done_soon = next->done == 1;
    }
    assert_true(done_soon);
    assert_int_equal(f.stuck, 0); /* not back for a moment is not stuck yet */
    kit_run(&f.loop, WT_POOL_STUCK_MS * 2);
    assert_int_equal(f.stuck, 1);
    pthread_mutex_unlock(&gate);
    kit_run(&f.loop, 200);
    assert_int_equal(f.stuck, 0);
    assert_int_equal(discarded, 1);
    assert_int_equal(target, '.');
    free(next);
    close_pool(&f);
}

static void replacements_are_capped(void **state) {
    (void)state;
    struct fixture f;
    open_pool(&f, 2, 3);
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&gate);
    atomic_int discarded = 0;
    enum { N = 10 };
    struct job *jobs[N];
    for (int i = 0; i < N; i++) {
        jobs[i] = job_new(&f, &discarded);
        jobs[i]->gate = &gate;
        assert_int_equal(wt_pool_submit(f.pool, &jobs[i]->base, NULL), 0);
    }
    int left = 0, dropped = 0;
    for (int round = 0; round < 5; round++) {
        uv_sleep(50);
        for (int i = 0; i < N; i++) {
            if (!jobs[i] || atomic_load(&jobs[i]->ran) == 0)
                continue;
            assert_int_equal(wt_job_abandon(&jobs[i]->base), WT_ABANDON_LEFT);
            jobs[i] = NULL;
            left++;
        }
    }
    struct wt_pool_stats stats;
    wt_pool_stats(f.pool, &stats);
    assert_int_equal(stats.threads, 5); /* 2 + 3, no more */
    assert_int_equal(left, 5);
    for (int i = 0; i < N; i++) {
        if (!jobs[i])
            continue;
        assert_int_equal(wt_job_abandon(&jobs[i]->base), WT_ABANDON_DROPPED);
        free(jobs[i]);
        dropped++;
    }
    assert_int_equal(dropped, 5);
    kit_run(&f.loop, WT_POOL_STUCK_MS * 2);
    assert_int_equal(f.stuck, 5);
    pthread_mutex_unlock(&gate);
    kit_run(&f.loop, 200);
    assert_int_equal(f.stuck, 0);
    assert_int_equal(discarded, 5);
    close_pool(&f);
}

static void close_leaves_hanging_worker(void **state) {
    (void)state;
    struct fixture f;
    open_pool(&f, 1, 1);
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&gate);
    atomic_int discarded = 0;
    struct job *hang = job_new(&f, &discarded);
    hang->gate = &gate;
    assert_int_equal(wt_pool_submit(f.pool, &hang->base, NULL), 0);
    while (atomic_load(&hang->ran) == 0)
        uv_sleep(1);
    assert_int_equal(wt_job_abandon(&hang->base), WT_ABANDON_LEFT);
    uint64_t begin = uv_hrtime();
    close_pool(&f);
    uint64_t took = uv_hrtime() - begin;
    assert_true(took > UINT64_C(500000000) && took < UINT64_C(3000000000));
    assert_int_equal(discarded, 0);
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < 2000 && atomic_load(&discarded) == 0; i++)
        uv_sleep(1);
    assert_int_equal(discarded, 1);
    uv_sleep(20); /* its last steps */
}

/* ---- progress ---- */

static void run_progress(struct wt_job *base) {
    struct job *j = (struct job *)base;
    while (wt_job_progress(base))
        atomic_fetch_add(&j->ran, 1);
}

static void progress(struct wt_job *base) {
    struct job *j = (struct job *)base;
    if (++j->progressed == j->wanted)
        wt_job_stop(base);
}

static void progress_takes_turns(void **state) {
    (void)state;
    struct fixture f;
    open_pool(&f, 2, 1);
    struct job *j = job_new(&f, NULL);
    j->base.run = run_progress;
    j->base.progress = progress;
    j->wanted = 100;
    assert_int_equal(wt_pool_submit(f.pool, &j->base, NULL), 0);
    for (int i = 0; i < 5000 && j->done == 0; i++)
        kit_run(&f.loop, 1);
    assert_int_equal(j->done, 1);
    assert_int_equal(j->progressed, 100);
    assert_int_equal(j->ran, 99);
    free(j);
    close_pool(&f);
}

static void progress_ends_when_abandoned(void **state) {
    (void)state;
    struct fixture f;
    open_pool(&f, 1, 1);
    atomic_int discarded = 0;
    struct job *j = job_new(&f, &discarded);
    j->base.run = run_progress;
    j->base.progress = progress;
    assert_int_equal(wt_pool_submit(f.pool, &j->base, NULL), 0);
    kit_run(&f.loop, 50);
    assert_true(j->progressed > 0);
    assert_int_equal(wt_job_abandon(&j->base), WT_ABANDON_LEFT);
    kit_run(&f.loop, 100);
    assert_int_equal(discarded, 1);
    assert_int_equal(f.stuck, 0);
    close_pool(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_jobs),
        cmocka_unit_test(no_threads_without_jobs),
        cmocka_unit_test(workers_block_signals),
        cmocka_unit_test(stuck_worker_is_replaced),
        cmocka_unit_test(replacements_are_capped),
        cmocka_unit_test(close_leaves_hanging_worker),
        cmocka_unit_test(progress_takes_turns),
        cmocka_unit_test(progress_ends_when_abandoned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
