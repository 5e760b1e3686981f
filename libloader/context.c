/* The context and its I/O thread; see context.h. */
#include "libloader/context.h"

#include "core/mem.h"
#include "libloader/errors.h"
#include "libloader/keeper.h"
#include "libloader/options.h"
#include "libloader/ring.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS_DEFAULT_MAX = 16 };
#define CONFIG_DEFAULT "/etc/wafertier/loader.conf"

/* ---- the I/O thread ---- */

static void run_posts(uv_async_t *wake) {
    struct wl_context *ctx = wake->data;
    pthread_mutex_lock(&ctx->post_mutex);
    struct wt_post *list = ctx->post_first;
    ctx->post_first = NULL;
    ctx->post_last = &ctx->post_first;
    pthread_mutex_unlock(&ctx->post_mutex);
    while (list) {
        struct wt_post *next = list->next; /* the post is its owner's once it runs */
        list->run(list);
        list = next;
    }
}

static void run_delays(struct wl_context *ctx, uint64_t now) {
    while (ctx->delays && ctx->delays->due_ns <= now) {
        struct wt_delay *d = ctx->delays;
        ctx->delays = d->next;
        d->run(d);
    }
}

static void arm_timer(struct wl_context *ctx);

static void on_timer(uv_timer_t *timer) {
    struct wl_context *ctx = timer->data;
    run_delays(ctx, wt_now_ns());
    arm_timer(ctx);
}

static void arm_timer(struct wl_context *ctx) {
    if (!ctx->delays) {
        uv_timer_stop(&ctx->timer);
        return;
    }
    uint64_t now = wt_now_ns(), due = ctx->delays->due_ns;
    uv_update_time(&ctx->loop);
    uv_timer_start(&ctx->timer, on_timer, due > now ? (due - now) / 1000000 + 1 : 0, 0);
}

void wt_context_delay(struct wl_context *ctx, struct wt_delay *delay, uint64_t ms) {
    delay->due_ns = wt_now_ns() + ms * 1000000;
    struct wt_delay **at = &ctx->delays;
    while (*at && (*at)->due_ns <= delay->due_ns)
        at = &(*at)->next;
    delay->next = *at;
    *at = delay;
    arm_timer(ctx);
}

void wt_context_undelay(struct wl_context *ctx, struct wt_delay *delay) {
    struct wt_delay **at = &ctx->delays;
    while (*at && *at != delay)
        at = &(*at)->next;
    if (*at)
        *at = delay->next;
}

void wt_context_flush(struct wl_context *ctx) {
    struct wt_delay *list = ctx->delays;
    ctx->delays = NULL;
    while (list) {
        struct wt_delay *next = list->next;
        list->run(list);
        list = next;
    }
    arm_timer(ctx);
}

void wt_context_post(struct wl_context *ctx, struct wt_post *post) {
    post->next = NULL;
    pthread_mutex_lock(&ctx->post_mutex);
    *ctx->post_last = post;
    ctx->post_last = &post->next;
    /* Under the lock: once it is given up the post may run, and it may be the one that closes the
     * handle. */
    uv_async_send(&ctx->wake);
    pthread_mutex_unlock(&ctx->post_mutex);
}

static void close_handles(struct wl_context *ctx) {
    uv_close((uv_handle_t *)&ctx->timer, NULL);
    uv_close((uv_handle_t *)&ctx->wake, NULL);
}

static void on_tier_closed(void *arg) {
    struct wl_context *ctx = arg;
    if (--ctx->closing == 0)
        close_handles(ctx);
}

static void close_tiers(struct wl_context *ctx) {
    ctx->closing = 1;
    for (unsigned i = 0; i < ctx->n_tiers; i++) {
        ctx->closing++;
        wt_tier_close(ctx->tier[i], on_tier_closed, ctx);
    }
    if (ctx->leases) {
        ctx->closing++;
        wt_tier_close(ctx->leases, on_tier_closed, ctx);
    }
    on_tier_closed(ctx);
}

static void on_end(struct wt_post *post) {
    struct wl_context *ctx = (struct wl_context *)((char *)post - offsetof(struct wl_context, end));
    ctx->ended = true;
    if (ctx->tenants == 0)
        close_tiers(ctx);
}

void wt_context_tenant(struct wl_context *ctx, int change) {
    ctx->tenants += (unsigned)change;
    if (ctx->ended && ctx->tenants == 0)
        close_tiers(ctx);
}

static int open_tiers(struct wl_context *ctx, struct wt_err *err) {
    for (size_t i = 0; i < ctx->conf.n_tiers; i++) {
        int rc = wt_tier_open(&ctx->loop, &ctx->conf.tier[i], &ctx->log, &ctx->tier[i], err);
        if (rc) {
            wt_err_wrap(err, "%s", ctx->config);
            return rc;
        }
        ctx->caps[i] = wt_tier_caps(ctx->tier[i]);
        ctx->n_tiers++;
    }
    struct wt_tier_opts leases;
    int rc = 0;
    if (ctx->conf.lease && wt_client_conf_leases(&ctx->conf, &leases))
        rc = wt_tier_open(&ctx->loop, &leases, &ctx->log, &ctx->leases, err);
    if (rc)
        wt_err_wrap(err, "%s: leases", ctx->config);
    return rc;
}

static void tell(struct wl_context *ctx, int rc) {
    pthread_mutex_lock(&ctx->post_mutex);
    ctx->io_rc = rc;
    pthread_cond_signal(&ctx->post_cond);
    pthread_mutex_unlock(&ctx->post_mutex);
}

static void *io_run(void *arg) {
    struct wl_context *ctx = arg;
    int rc = open_tiers(ctx, &ctx->io_err);
    if (rc)
        close_tiers(ctx);
    tell(ctx, rc);
    uv_run(&ctx->loop, UV_RUN_DEFAULT);
    uv_loop_close(&ctx->loop);
    return NULL;
}

/* The loop and its handles are made here so that posting is allowed from the first moment. */
static int start_io(struct wl_context *ctx, struct wt_err *err) {
    int rc = uv_loop_init(&ctx->loop);
    if (rc)
        return wt_err_set(err, WT_ESYSTEM, "starting an event loop: %s", uv_strerror(rc));
    rc = uv_async_init(&ctx->loop, &ctx->wake, run_posts);
    if (rc) {
        uv_loop_close(&ctx->loop);
        return wt_err_set(err, WT_ESYSTEM, "starting an event loop: %s", uv_strerror(rc));
    }
    uv_timer_init(&ctx->loop, &ctx->timer);
    ctx->wake.data = ctx->timer.data = ctx;
    rc = wt_thread_start(&ctx->io, io_run, ctx);
    if (rc) {
        close_handles(ctx);
        uv_run(&ctx->loop, UV_RUN_DEFAULT);
        uv_loop_close(&ctx->loop);
        return wt_err_sys(err, rc, "starting the I/O thread");
    }
    ctx->io_started = true;
    pthread_mutex_lock(&ctx->post_mutex);
    while (ctx->io_rc > 0)
        pthread_cond_wait(&ctx->post_cond, &ctx->post_mutex);
    rc = ctx->io_rc;
    pthread_mutex_unlock(&ctx->post_mutex);
    if (rc)
        *err = ctx->io_err;
    return rc;
}

/* ---- opening and closing ---- */

static void forward_log(void *arg, enum wt_log_level level, const char *line) {
    struct wl_context *ctx = arg;
    ctx->user_log(ctx->user_log_arg, (int)level, line);
}

static unsigned default_threads(void) {
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : n > THREADS_DEFAULT_MAX ? (unsigned)THREADS_DEFAULT_MAX : (unsigned)n;
}

static uint64_t default_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 4 : UINT64_C(1) << 30;
}

static int load_conf(struct wl_context *ctx, const char *path, struct wt_err *err) {
    if (!path)
        path = getenv("WAFERTIER_CONFIG");
    if (!path || !path[0])
        path = CONFIG_DEFAULT;
    snprintf(ctx->config, sizeof ctx->config, "%s", path);
    int rc = wt_client_conf_load(path, &ctx->conf, err);
    if (!rc && ctx->conf.n_tiers == 0)
        rc = wt_err_set(err, WT_EINVAL, "%s: names no tier", path);
    return rc;
}

static void context_free(struct wl_context *ctx) {
    wt_crew_free(ctx->crew);
    wt_keeper_free(ctx->keeper);
    if (ctx->io_started) {
        /* After a failed start the thread has closed its tiers and is ending by itself. */
        if (ctx->io_rc == 0) {
            ctx->end.run = on_end;
            wt_context_post(ctx, &ctx->end);
        }
        pthread_join(ctx->io, NULL);
    }
    pthread_cond_destroy(&ctx->post_cond);
    pthread_mutex_destroy(&ctx->post_mutex);
    pthread_mutex_destroy(&ctx->mutex);
    free(ctx);
}

static struct wl_context *context_alloc(const wl_context_options *o) {
    struct wl_context *ctx = wt_calloc(1, sizeof *ctx);
    if (!ctx)
        return NULL;
    pthread_mutex_init(&ctx->mutex, NULL);
    pthread_mutex_init(&ctx->post_mutex, NULL);
    pthread_cond_init(&ctx->post_cond, NULL);
    ctx->refs = 1;
    ctx->io_rc = 1;
    ctx->post_last = &ctx->post_first;
    ctx->budget = o->memory ? o->memory : default_memory();
    ctx->user_log = o->log;
    ctx->user_log_arg = o->log_arg;
    ctx->log = (struct wt_log){o->log ? forward_log : NULL, ctx, (enum wt_log_level)o->log_level};
    return ctx;
}

int wl_context_open(const wl_context_options *options, wl_context **out) {
    struct wt_err err = {0};
    wl_context_options o;
    if (!out)
        return wt_error_set(wt_error_thread(), WL_ERROR_INVALID, "wl_context_open: out is needed");
    if (wt_context_options_take(options, &o, &err))
        return wt_error_from(wt_error_thread(), &err);
    struct wl_context *ctx = context_alloc(&o);
    if (!ctx)
        return wt_error_set(wt_error_thread(), WL_ERROR_MEMORY, "out of memory for a context");
    int rc = load_conf(ctx, o.config, &err);
    if (!rc)
        rc = wt_keeper_new(ctx, &ctx->keeper, &err);
    if (!rc)
        rc = wt_crew_new(o.threads ? (unsigned)o.threads : default_threads(), &ctx->crew, &err);
    if (!rc)
        rc = start_io(ctx, &err);
    if (rc) {
        context_free(ctx);
        return wt_error_from(wt_error_thread(), &err);
    }
    *out = ctx;
    return WL_OK;
}

void wt_context_ref(struct wl_context *ctx) {
    pthread_mutex_lock(&ctx->mutex);
    ctx->refs++;
    pthread_mutex_unlock(&ctx->mutex);
}

void wl_context_close(wl_context *ctx) {
    if (!ctx)
        return;
    pthread_mutex_lock(&ctx->mutex);
    bool last = --ctx->refs == 0;
    pthread_mutex_unlock(&ctx->mutex);
    if (last)
        context_free(ctx);
}

/* ---- the budget ---- */

int wt_context_take(struct wl_context *ctx, uint64_t bytes, struct wt_err *err) {
    pthread_mutex_lock(&ctx->mutex);
    uint64_t left = ctx->budget - ctx->used;
    int rc = 0;
    if (bytes <= left)
        ctx->used += bytes;
    else
        rc = wt_err_set(
            err, WT_ENOMEM,
            "%llu bytes are needed and %llu of the budget of %llu are left: raise 'memory'",
            (unsigned long long)bytes, (unsigned long long)left, (unsigned long long)ctx->budget);
    pthread_mutex_unlock(&ctx->mutex);
    return rc;
}

void wt_context_give(struct wl_context *ctx, uint64_t bytes) {
    pthread_mutex_lock(&ctx->mutex);
    ctx->used -= bytes;
    pthread_mutex_unlock(&ctx->mutex);
}

uint64_t wt_context_spare(struct wl_context *ctx) {
    pthread_mutex_lock(&ctx->mutex);
    uint64_t left = ctx->budget - ctx->used;
    pthread_mutex_unlock(&ctx->mutex);
    return left;
}
