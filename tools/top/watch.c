/* The asking thread; see watch.h. */
#include "tools/top/watch.h"

#include "core/http.h"
#include "core/mem.h"
#include "tools/progress.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct wt_top_watch {
    struct wt_daemon_link link;
    uint64_t interval_ms;
    pthread_t thread;
    pthread_mutex_t lock; /* of what stands below */
    pthread_cond_t wake;
    struct wt_top_answer box;
    bool full, stopping;
    int ready; /* eventfd */
};

void wt_top_answer_free(struct wt_top_answer *a) {
    json_decref(a->stats);
    json_decref(a->jobs);
    json_decref(a->moves);
    *a = (struct wt_top_answer){0};
}

int wt_top_ask(struct wt_daemon_link *link, struct wt_top_answer *a, struct wt_err *err) {
    *a = (struct wt_top_answer){.at = wt_now()};
    int rc = wt_daemon_call(link, "GET", "/v1/stats", NULL, &a->stats, err);
    if (rc == 0)
        rc = wt_daemon_call(link, "GET", "/v1/jobs", NULL, &a->jobs, err);
    if (rc == 0)
        rc = wt_daemon_call(link, "GET", "/v1/moves", NULL, &a->moves, err);
    if (rc < 0) {
        double at = a->at;
        wt_top_answer_free(a);
        a->at = at;
        snprintf(a->error, sizeof a->error, "%s", err->text);
    }
    return rc;
}

/* Waits for the next round; false: it is time to end. */
static bool rest(struct wt_top_watch *w) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + w->interval_ms % 1000 * 1000000;
    until.tv_sec += (time_t)(w->interval_ms / 1000 + ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_mutex_lock(&w->lock);
    while (!w->stopping && pthread_cond_timedwait(&w->wake, &w->lock, &until) != ETIMEDOUT)
        ;
    bool go_on = !w->stopping;
    pthread_mutex_unlock(&w->lock);
    return go_on;
}

static void *work(void *arg) {
    struct wt_top_watch *w = arg;
    do {
        struct wt_top_answer a;
        struct wt_err err = {0};
        uint64_t one = 1;
        wt_top_ask(&w->link, &a, &err);
        pthread_mutex_lock(&w->lock);
        wt_top_answer_free(&w->box); /* nobody has looked at it */
        w->box = a;
        w->full = true;
        pthread_mutex_unlock(&w->lock);
        if (write(w->ready, &one, sizeof one) < 0)
            break; /* cannot be: the counter never comes near its end */
    } while (rest(w));
    return NULL;
}

int wt_top_watch_start(struct wt_daemon_link *link, uint64_t interval_ms, struct wt_top_watch **out,
                       struct wt_err *err) {
    struct wt_top_watch *w = wt_calloc(1, sizeof *w);
    pthread_condattr_t attr;
    if (!w)
        return wt_err_set(err, WT_ENOMEM, "out of memory");
    w->interval_ms = interval_ms;
    w->ready = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (w->ready < 0) {
        int sys = errno;
        free(w);
        return wt_err_sys(err, sys, "an event cannot be made");
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &attr);
    pthread_condattr_destroy(&attr);
    w->link = *link;
    int sys = pthread_create(&w->thread, NULL, work, w);
    if (sys) {
        pthread_cond_destroy(&w->wake);
        pthread_mutex_destroy(&w->lock);
        close(w->ready);
        free(w);
        return wt_err_sys(err, sys, "a thread cannot be started");
    }
    *link = (struct wt_daemon_link){0};
    *out = w;
    return 0;
}

int wt_top_watch_fd(const struct wt_top_watch *w) {
    return w->ready;
}

bool wt_top_watch_take(struct wt_top_watch *w, struct wt_top_answer *a) {
    uint64_t n;
    if (read(w->ready, &n, sizeof n) != (ssize_t)sizeof n)
        return false;
    pthread_mutex_lock(&w->lock);
    bool got = w->full;
    if (got) {
        *a = w->box;
        w->box = (struct wt_top_answer){0};
        w->full = false;
    }
    pthread_mutex_unlock(&w->lock);
    return got;
}

void wt_top_watch_stop(struct wt_top_watch *w) {
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    wt_http_abort(w->link.http); /* a call that hangs ends */
    pthread_join(w->thread, NULL);
    wt_daemon_close(&w->link);
    wt_top_answer_free(&w->box);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    close(w->ready);
    free(w);
}
