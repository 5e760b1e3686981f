/*
 * The part of libuv that the daemon and the core of the tiers use, on the virtual clock; and what a
 * process asks of its machine (time, its number, random bytes). These names win over those of the
 * shared libraries when the test is linked, so the daemon is the one that runs in production.
 *
 * Happy path: a turn does what uv_run does between two sleeps: callbacks of what came in, of
 * handles that closed, of timers that are due, idle, prepare; in this order, so that a process
 * which was frozen while it slept sees what came in before its timers run, as in epoll_wait. Work
 * for the pool is done by an event somewhat later, and told by a letter. Nothing here fails; what
 * the daemon asks of libuv beyond this does not link.
 */
#include "sim.h"

#include "core/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { ACTIVE = 1, CLOSING = 2 };

/* uv_hrtime and time have no argument: the world whose process runs, or the last that did. */
static struct sim_world *the_world;

static struct sim_loop *loop_of(const uv_loop_t *uv) {
    return uv->data;
}

void sim_loop_init(struct sim_loop *l, struct sim_process *p) {
    memset(l, 0, sizeof *l);
    l->uv.data = l;
    l->process = p;
    l->last = &l->first;
    l->ms = p->w->now_ns / SIM_MS;
    the_world = p->w;
}

void sim_loop_free(struct sim_loop *l) {
    while (l->first) {
        struct sim_letter *letter = l->first;
        l->first = letter->next;
        free(letter);
    }
    free(l->handle);
}

void sim_loop_post(struct sim_loop *l, void (*open)(void *arg), void *arg) {
    struct sim_letter *letter = calloc(1, sizeof *letter);
    if (!letter)
        abort();
    letter->open = open;
    letter->arg = arg;
    *l->last = letter;
    l->last = &letter->next;
}

/* ---- handles ---- */

static void add(uv_loop_t *uv, uv_handle_t *h, uv_handle_type type) {
    struct sim_loop *l = loop_of(uv);
    if (wt_grow(&l->handle, &l->cap_handles, l->n_handles + 1, sizeof(uv_handle_t *)) < 0)
        abort();
    l->handle[l->n_handles++] = h;
    h->loop = uv;
    h->type = type;
    h->flags = 0;
    h->close_cb = NULL;
}

int uv_timer_init(uv_loop_t *uv, uv_timer_t *timer) {
    add(uv, (uv_handle_t *)timer, UV_TIMER);
    timer->repeat = 0;
    return 0;
}

int uv_idle_init(uv_loop_t *uv, uv_idle_t *idle) {
    add(uv, (uv_handle_t *)idle, UV_IDLE);
    return 0;
}

int uv_prepare_init(uv_loop_t *uv, uv_prepare_t *prepare) {
    add(uv, (uv_handle_t *)prepare, UV_PREPARE);
    return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t timeout, uint64_t repeat) {
    struct sim_loop *l = loop_of(timer->loop);
    if (timer->flags & CLOSING)
        return UV_EINVAL;
    timer->timer_cb = cb;
    timer->timeout = l->ms + timeout < l->ms ? UINT64_MAX : l->ms + timeout;
    timer->repeat = repeat;
    timer->start_id = ++l->order;
    timer->flags |= ACTIVE;
    return 0;
}

int uv_timer_stop(uv_timer_t *timer) {
    timer->flags &= ~(unsigned)ACTIVE;
    return 0;
}

uint64_t uv_timer_get_due_in(const uv_timer_t *timer) {
    uint64_t now = loop_of(timer->loop)->ms;
    return timer->timeout > now ? timer->timeout - now : 0;
}

int uv_idle_start(uv_idle_t *idle, uv_idle_cb cb) {
    idle->idle_cb = cb;
    idle->flags |= ACTIVE;
    return 0;
}

int uv_idle_stop(uv_idle_t *idle) {
    idle->flags &= ~(unsigned)ACTIVE;
    return 0;
}

int uv_prepare_start(uv_prepare_t *prepare, uv_prepare_cb cb) {
    prepare->prepare_cb = cb;
    prepare->flags |= ACTIVE;
    return 0;
}

int uv_prepare_stop(uv_prepare_t *prepare) {
    prepare->flags &= ~(unsigned)ACTIVE;
    return 0;
}

int uv_is_active(const uv_handle_t *h) {
    return (h->flags & ACTIVE) != 0;
}

int uv_is_closing(const uv_handle_t *h) {
    return (h->flags & CLOSING) != 0;
}

void uv_close(uv_handle_t *h, uv_close_cb cb) {
    h->flags = CLOSING;
    h->close_cb = cb;
}

/* ---- time ---- */

uint64_t uv_now(const uv_loop_t *uv) {
    return loop_of(uv)->ms;
}

uint64_t uv_hrtime(void) {
    return the_world->now_ns;
}

/* The virtual clock stands still while the daemon works. */
uint64_t uv_metrics_idle_time(uv_loop_t *uv) {
    (void)uv;
    return the_world->now_ns;
}

int uv_loop_configure(uv_loop_t *uv, uv_loop_option option, ...) {
    (void)uv;
    (void)option;
    return 0;
}

void uv_update_time(uv_loop_t *uv) {
    loop_of(uv)->ms = the_world->now_ns / SIM_MS;
}

void uv_stop(uv_loop_t *uv) {
    (void)uv; /* only where the daemon gives up on its tiers: host.c sees that it did */
}

/* ---- the machine ---- */

time_t time(time_t *out) {
    time_t now = (time_t)(UINT64_C(1700000000) + the_world->now_ns / SIM_S);
    if (out)
        *out = now;
    return now;
}

pid_t getpid(void) {
    const struct sim_process *p = sim_running();
    return p ? (pid_t)p->pid : 1;
}

ssize_t getrandom(void *buf, size_t len, unsigned flags) {
    (void)flags;
    uint64_t x = sim_random(the_world);
    memset(buf, 0, len);
    memcpy(buf, &x, len < sizeof x ? len : sizeof x);
    return (ssize_t)len;
}

/* ---- the pool ---- */

struct work {
    struct sim_loop *loop;
    uv_work_t *req;
    uv_after_work_cb after;
};

static void worked(void *arg) {
    struct work *k = arg;
    k->loop->works--;
    k->after(k->req, 0);
    free(k);
}

static void run_work(struct sim_world *w, void *arg) {
    struct work *k = arg;
    (void)w;
    k->req->work_cb(k->req);
    sim_loop_post(k->loop, worked, k);
}

int uv_queue_work(uv_loop_t *uv, uv_work_t *req, uv_work_cb run, uv_after_work_cb after) {
    struct work *k = calloc(1, sizeof *k);
    if (!k)
        abort();
    *k = (struct work){loop_of(uv), req, after};
    req->work_cb = run;
    k->loop->works++;
    sim_at(the_world, sim_between(the_world, SIM_MS, 40 * SIM_MS), run_work, k);
    return 0;
}

/* ---- a turn ---- */

static void open_letters(struct sim_loop *l) {
    struct sim_letter *last = NULL;
    for (struct sim_letter *i = l->first; i; i = i->next)
        last = i;
    while (last) { /* what comes while these are read is for the next turn */
        struct sim_letter *letter = l->first;
        l->first = letter->next;
        if (!l->first)
            l->last = &l->first;
        bool end = letter == last;
        letter->open(letter->arg);
        free(letter);
        if (end)
            break;
    }
}

static void close_handles(struct sim_loop *l) {
    for (size_t i = 0; i < l->n_handles;) {
        uv_handle_t *h = l->handle[i];
        if (!(h->flags & CLOSING)) {
            i++;
            continue;
        }
        memmove(&l->handle[i], &l->handle[i + 1], (--l->n_handles - i) * sizeof(uv_handle_t *));
        if (h->close_cb)
            h->close_cb(h); /* may free what the handle is in, and close others */
        i = 0;
    }
}

static uv_timer_t *first_timer(const struct sim_loop *l) {
    uv_timer_t *first = NULL;
    for (size_t i = 0; i < l->n_handles; i++) {
        uv_timer_t *t = (uv_timer_t *)l->handle[i];
        if (t->type != UV_TIMER || !(t->flags & ACTIVE))
            continue;
        if (!first || t->timeout < first->timeout ||
            (t->timeout == first->timeout && t->start_id < first->start_id))
            first = t;
    }
    return first;
}

/* As in libuv: one that is started anew with no delay is due at once, in the same turn. What would
 * never end ends at a bound, as on a machine whose clock goes on. */
static void run_timers(struct sim_loop *l) {
    for (unsigned n = 0; n < 1000; n++) {
        uv_timer_t *t = first_timer(l);
        if (!t || t->timeout > l->ms)
            return;
        uv_timer_stop(t);
        if (t->repeat)
            uv_timer_start(t, t->timer_cb, t->repeat, t->repeat);
        t->timer_cb(t);
    }
}

static void run_idle(struct sim_loop *l, uv_handle_type type) {
    for (size_t i = 0; i < l->n_handles; i++) {
        uv_handle_t *h = l->handle[i];
        if (h->type != type || !(h->flags & ACTIVE))
            continue;
        if (type == UV_IDLE)
            ((uv_idle_t *)h)->idle_cb((uv_idle_t *)h);
        else
            ((uv_prepare_t *)h)->prepare_cb((uv_prepare_t *)h);
    }
}

void sim_loop_turn(struct sim_loop *l) {
    uv_update_time(&l->uv);
    open_letters(l);
    close_handles(l);
    uv_update_time(&l->uv);
    run_timers(l);
    run_idle(l, UV_IDLE);
    run_idle(l, UV_PREPARE);
}

uint64_t sim_loop_due_ns(const struct sim_loop *l) {
    if (l->first)
        return 0;
    for (size_t i = 0; i < l->n_handles; i++)
        if ((l->handle[i]->flags & CLOSING) ||
            (l->handle[i]->type == UV_IDLE && (l->handle[i]->flags & ACTIVE)))
            return 0;
    const uv_timer_t *t = first_timer(l);
    return t && t->timeout < UINT64_MAX / SIM_MS ? t->timeout * SIM_MS : UINT64_MAX;
}

bool sim_loop_over(const struct sim_loop *l) {
    return l->n_handles == 0 && !l->first && l->works == 0;
}
