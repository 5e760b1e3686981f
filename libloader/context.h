/*
 * What loaders share: the tiers and the one thread that owns them, the crew, the memory budget,
 * kept mappings, the log.
 *
 * Happy path: wl_context_open starts the I/O thread, which runs a uv loop and opens the tiers on
 * it; loaders post work to it (wt_context_post) and it calls them back on that thread. The last
 * reference closes the tiers, ends the loop and joins. Failure modes: an unreadable configuration
 * or a bad URL fails the open; a tier that is away does not.
 */
#ifndef WT_LOADER_CONTEXT_H
#define WT_LOADER_CONTEXT_H

#include "core/log.h"
#include "libloader/crew.h"
#include "tiers/conf.h"
#include "tiers/tier.h"

#include <wafertier/loader.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

struct wt_post { /* the poster's memory, until run is called */
    void (*run)(struct wt_post *post);
    struct wt_post *next;
};

struct wt_delay { /* the same, later; only from the I/O thread */
    void (*run)(struct wt_delay *delay);
    uint64_t due_ns;
    struct wt_delay *next;
};

struct wt_keeper;

struct wl_context {
    pthread_mutex_t mutex;
    unsigned refs;
    uint64_t budget, used; /* bytes */

    struct wt_client_conf conf;
    char config[256];
    struct wt_log log;
    wl_log_fn user_log;
    void *user_log_arg;
    struct wt_crew *crew;
    struct wt_keeper *keeper;

    pthread_t io;
    bool io_started;
    pthread_mutex_t post_mutex;
    pthread_cond_t post_cond; /* the I/O thread is up, or failed */
    struct wt_post *post_first, **post_last;
    int io_rc; /* 1: not yet known */
    struct wt_err io_err;

    /* the I/O thread's own */
    uv_loop_t loop;
    uv_async_t wake;
    uv_timer_t timer;
    struct wt_delay *delays; /* ascending by due_ns */
    struct wt_tier *tier[WT_TIERS_MAX];
    unsigned n_tiers;       /* set before the context is handed out, constant then */
    struct wt_tier *leases; /* NULL: they are in the cold tier */
    unsigned caps[WT_TIERS_MAX];
    _Atomic bool down[WT_TIERS_MAX]; /* as last seen by a fetch; for statistics */
    unsigned closing;
    unsigned tenants; /* leases: the tiers stay open for them */
    bool ended;
    struct wt_post end;
};

void wt_context_ref(struct wl_context *ctx);
void wt_context_post(struct wl_context *ctx, struct wt_post *post);
void wt_context_delay(struct wl_context *ctx, struct wt_delay *delay, uint64_t ms);
/* Forgets a delay; nothing happens when it is not pending. I/O thread. */
void wt_context_undelay(struct wl_context *ctx, struct wt_delay *delay);
/* One more (1) or one less (-1) that needs the tiers open. I/O thread. */
void wt_context_tenant(struct wl_context *ctx, int change);
/* Runs all delays now (they find out themselves that their owner is closing). I/O thread. */
void wt_context_flush(struct wl_context *ctx);
/* Takes bytes from the budget; WT_ENOMEM says how many are left. Any thread. */
int wt_context_take(struct wl_context *ctx, uint64_t bytes, struct wt_err *err);
void wt_context_give(struct wl_context *ctx, uint64_t bytes);
uint64_t wt_context_spare(struct wl_context *ctx);

#endif
