/* A fixed set of threads over one ordered queue; see crew.h. Fails only while it is made: no
 * memory, no threads. */
#include "libloader/crew.h"

#include "core/mem.h"
#include "libloader/ranges.h"
#include "libloader/ring.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

struct member {
    struct wt_crew *crew;
    struct wt_worker worker;
    pthread_t thread;
};

struct wt_crew {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    struct wt_task *first; /* sorted by rank, first in first out among equals */
    bool ending;
    unsigned n;
    struct member member[];
};

int wt_thread_start(pthread_t *thread, void *(*run)(void *), void *arg) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

static void *member_run(void *arg) {
    struct member *m = arg;
    struct wt_crew *crew = m->crew;
    pthread_mutex_lock(&crew->mutex);
    while (crew->first || !crew->ending) {
        struct wt_task *task = crew->first;
        if (!task) {
            pthread_cond_wait(&crew->cond, &crew->mutex);
            continue;
        }
        crew->first = task->next;
        pthread_mutex_unlock(&crew->mutex);
        wt_range_begin(task->rank < WT_RANK_DECODE ? "wafertier stage" : "wafertier decode");
        task->run(task, &m->worker);
        wt_range_end();
        pthread_mutex_lock(&crew->mutex);
    }
    pthread_mutex_unlock(&crew->mutex);
    return NULL;
}

int wt_crew_new(unsigned threads, struct wt_crew **out, struct wt_err *err) {
    struct wt_crew *crew = wt_calloc(1, sizeof *crew + threads * sizeof crew->member[0]);
    if (!crew)
        return wt_err_set(err, WT_ENOMEM, "out of memory for %u threads", threads);
    wt_ranges_open();
    pthread_mutex_init(&crew->mutex, NULL);
    pthread_cond_init(&crew->cond, NULL);
    for (; crew->n < threads; crew->n++) {
        struct member *m = &crew->member[crew->n];
        m->crew = crew;
        m->worker.decoder = wt_decoder_new();
        int rc = m->worker.decoder ? wt_thread_start(&m->thread, member_run, m) : ENOMEM;
        if (rc) {
            wt_decoder_free(m->worker.decoder);
            rc = wt_err_sys(err, rc, "starting worker thread %u", crew->n);
            wt_crew_free(crew);
            return rc;
        }
    }
    *out = crew;
    return 0;
}

void wt_crew_free(struct wt_crew *crew) {
    if (!crew)
        return;
    pthread_mutex_lock(&crew->mutex);
    crew->ending = true;
    pthread_cond_broadcast(&crew->cond);
    pthread_mutex_unlock(&crew->mutex);
    for (unsigned i = 0; i < crew->n; i++) {
        pthread_join(crew->member[i].thread, NULL);
        wt_decoder_free(crew->member[i].worker.decoder);
    }
    pthread_cond_destroy(&crew->cond);
    pthread_mutex_destroy(&crew->mutex);
    free(crew);
}

void wt_crew_submit(struct wt_crew *crew, struct wt_task *task) {
    task->queued_ns = wt_now_ns();
    pthread_mutex_lock(&crew->mutex);
    struct wt_task **at = &crew->first;
    while (*at && (*at)->rank <= task->rank)
        at = &(*at)->next;
    task->next = *at;
    *at = task;
    pthread_cond_signal(&crew->cond);
    pthread_mutex_unlock(&crew->mutex);
}

unsigned wt_crew_threads(const struct wt_crew *crew) {
    return crew->n;
}
