/*
 * The rados backend's own view of a tier: the client (client.c), the call that stands for a
 * request, and the aio that stands for one librados operation (aio.c).
 *
 * Everything here belongs to the loop's thread, but for the list of ended aios and what `check` of
 * an aio does. A call ends when its last aio has come back: only then nobody writes to the
 * request's buffer any more.
 */
#ifndef WT_TIERS_RADOS_INTERNAL_H
#define WT_TIERS_RADOS_INTERNAL_H

#include "tiers/backend.h"
#include "tiers/pool.h"
#include "tiers/rados/cache.h"
#include "tiers/rados/conn.h"
#include "tiers/rados/head.h"

#include <pthread.h>

struct rados_client;
struct rados_call;

/* ---- one librados operation ---- */

enum rados_aio_place {
    RADOS_AIO_IDLE,
    RADOS_AIO_WAITS,
    RADOS_AIO_PREPARES,
    RADOS_AIO_FLIES,
    RADOS_AIO_ENDED
};

struct rados_aio {
    /* set by the owner */
    struct rados_call *call;           /* NULL: work behind the scenes */
    void (*go)(struct rados_aio *aio); /* begins it: rados_aio_fly_..., or something before that */
    void (*check)(struct rados_aio *aio); /* on librados' thread, after success; may be NULL */
    void (*end)(struct rados_aio *aio);   /* on the loop; may free it */
    uint64_t bytes; /* of data that it moves: counts against what may be in flight */
    int rc;

    struct rados_client *client;
    rados_completion_t completion;
    rados_read_op_t read_op;
    rados_write_op_t write_op;
    enum rados_aio_place place;
    atomic_bool given; /* what the loop wrote before it gave the aio away is seen by the callback */
    bool canceled;
    struct rados_aio *next, *prev; /* flying or waiting */
    struct rados_aio *ended_next;  /* under the client's lock */
};

struct aio_list {
    struct rados_aio *first, *last;
};

/* Calls go() now or when there is room. end() comes in any case, never from inside. */
void rados_aio_begin(struct rados_client *c, struct rados_aio *aio);
/* From go() or later, on the loop: hands the op to librados. */
void rados_aio_fly_read(struct rados_aio *aio, const char *oid, void *buf, size_t len,
                        uint64_t off);
void rados_aio_fly_read_op(struct rados_aio *aio, rados_read_op_t op, const char *oid, int flags);
void rados_aio_fly_write_op(struct rados_aio *aio, rados_write_op_t op, const char *oid);
void rados_aio_fly_stat(struct rados_aio *aio, const char *oid, uint64_t *size);
/* It ends with rc without librados. */
void rados_aio_fail(struct rados_aio *aio, int rc);
void rados_aio_stop(struct rados_aio *aio);
void rados_aio_on_async(uv_async_t *async);
void rados_aio_stop_all(struct rados_client *c,
                        const struct rados_call *call); /* NULL: really all */

/* ---- a request ---- */

struct rados_call {
    struct rados_client *client;
    struct wt_req *req;
    void (*start)(struct rados_call *call);   /* connected: begin; inside the op */
    void (*cancel)(struct rados_call *call);  /* beside its aios; may be NULL */
    void (*release)(struct rados_call *call); /* frees what it holds, not itself; may be NULL */
    bool canceled;
    int rc;                     /* what it will end with, where that is known before it may */
    struct call_list *waits_in; /* NULL: it runs */
    void (*then)(struct rados_call *call, int rc); /* after rados_confirm_pool or a count */
    struct rados_call *next, *prev;
};

struct call_list {
    struct rados_call *first, *last;
};

/* A zeroed call of `size` bytes, started or waiting for the connection; or the request fails. */
void rados_call_new(struct wt_tier *tier, struct wt_req *req, size_t size,
                    void (*start)(struct rados_call *call));
/* The same in two steps: NULL: the request fails for want of memory. */
struct rados_call *rados_call_make(struct wt_tier *tier, struct wt_req *req, size_t size,
                                   void (*start)(struct rados_call *call));
void rados_call_route(struct rados_call *call);
/* The request ends with rc (its err is set already or made from rc). Frees the call. At the loop's
 * next turn. */
void rados_call_end(struct rados_call *call, int rc);
/* The same from librados' rc; a cancel that nobody asked for means that the connection was given
 * up. */
void rados_call_end_rados(struct rados_call *call, int rc, const char *what);
void rados_call_cancel(struct wt_tier *tier, struct wt_req *req);

/* ---- the client ---- */

enum rados_state { RADOS_OFF, RADOS_CONNECTING, RADOS_ON, RADOS_DRAINING };

struct rados_sweep;
struct rados_held;

struct rados_client {
    struct wt_tier *tier;
    struct rados_url url;
    const struct wt_log *log;
    enum rados_state state;
    struct rados_conn *conn;
    struct rados_cache *cache;
    struct wt_pool *pool;    /* calls that block: connect, lists, usage */
    struct wt_pool *writers; /* copies of what is written */
    unsigned pools_open;

    pthread_mutex_t lock;
    struct rados_aio *ended_first, *ended_last; /* under lock */
    uv_async_t async;

    struct aio_list flying; /* all that are not waiting */
    struct aio_list waiting;
    size_t n_flying;
    uint64_t flying_bytes;

    struct call_list wait_conn, wait_pool, wait_count;
    bool checking_pool, counting, counted;
    struct rados_held *held; /* locks */
    struct rados_sweep *sweeps;
    size_t n_sweeps;
    uint64_t stored;  /* what this client put, less what it removed; when `counted`, also what was
                         there */
    uint64_t putting; /* bytes of open puts */
    uv_timer_t grace; /* at the close: until what is behind the scenes is stopped */
    bool closing, stopping, gone;
    unsigned handles;
};

/* The connection is useless: all in flight ends, the tier is down until a probe connects anew. */
void rados_client_lost(struct rados_client *c, const struct wt_err *why);
/* After each change: does a waiting teardown go on? */
void rados_client_step(struct rados_client *c);
/* "No such object" may mean that the pool is gone: then(call, 0) when it is there, else with the
 * code in call->req->err. Each asks anew, or joins the question that is being asked: what was known
 * a moment ago says nothing of a pool that was removed since. */
void rados_confirm_pool(struct rados_call *call, void (*then)(struct rados_call *call, int rc));

/* Waiting for the count of what is stored (list.c), and those that wait, one by one; NULL: no more.
 */
void rados_wait_count(struct rados_call *call, void (*then)(struct rados_call *call, int rc));
struct rados_call *rados_waiting_count(struct rados_client *c);

/* ---- reading a head: fetch.c ---- */

struct rados_fetch {
    struct rados_aio aio;
    char oid[RADOS_OID_SIZE];
    uint8_t *buf;
    size_t len, got;
    int flags;
    int rc; /* 0 or WT_E...; WT_EMISSING: the pool is not confirmed */
    struct wt_err err;
    struct rados_head *head; /* rc == 0: a reference of the owner's */
    void (*done)(struct rados_fetch *fetch);
};

/* done() on the loop, never from inside. Zeroed but for `done`; embedded in its owner. */
void rados_fetch_begin(struct rados_client *c, struct rados_fetch *fetch, struct rados_call *call,
                       const char *key, int flags);

/* ---- removing parts behind the scenes: sweep.c ---- */

/* Parts 0 to n-1 of a put; failures leave them to gc. `waiter` (may be NULL) then ends with its rc.
 */
void rados_sweep_begin(struct rados_client *c, const char *key, uint64_t token, uint32_t n,
                       struct rados_call *waiter);
void rados_sweep_forget(struct rados_client *c, const struct rados_call *waiter);

/* A write op that is tried also on a full pool: begins with it, ends with *_fly_write_op. NULL: no
 * memory. */
rados_write_op_t rados_remove_op(void);

/* ---- the ops ---- */
void rados_op_stat(struct wt_tier *tier, struct wt_req *req);
void rados_op_get(struct wt_tier *tier, struct wt_req *req);
void rados_op_put_open(struct wt_tier *tier, struct wt_req *req);
void rados_op_put_write(struct wt_tier *tier, struct wt_req *req);
void rados_op_put_commit(struct wt_tier *tier, struct wt_req *req);
void rados_op_put_abort(struct wt_tier *tier, struct wt_req *req);
void rados_op_remove(struct wt_tier *tier, struct wt_req *req);
void rados_op_list(struct wt_tier *tier, struct wt_req *req);
void rados_op_usage(struct wt_tier *tier, struct wt_req *req);
void rados_op_probe(struct wt_tier *tier, struct wt_req *req);
void rados_op_lock(struct wt_tier *tier, struct wt_req *req);
void rados_op_unlock(struct wt_tier *tier, struct wt_req *req);
void rados_put_drop(struct wt_tier *tier, struct wt_put *put);
void rados_describe(struct wt_tier *tier, wt_fact_fn fact, void *arg);

#endif
