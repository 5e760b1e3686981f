/*
 * The contract of a storage tier.
 *
 * Happy path: open a tier on a uv loop, fill a caller-owned `struct wt_req`, submit it; it
 * completes exactly once, on the thread that runs that loop, never from inside submit. Then the
 * request and its buffers are the caller's again.
 *
 * Rules that every backend and filter keeps (tests/contract runs them all):
 *   - Completion means that nobody will write to the buffer again, also after a deadline or a
 * cancel.
 *   - Every request ends by its deadline (plus what a copy already begun takes); deadlines grow
 * with bytes.
 *   - put is visible whole or not at all. Readers see an object only after PUT_COMMIT.
 *   - Requests in flight are bounded; beyond the bound the core queues up to WT_QUEUE_MAX, then
 * WT_EBUSY.
 *   - Errors say what they broke: object, tier or caller (wt_err_blame). A tier that keeps failing
 * is marked down by a circuit breaker, answers WT_EDOWN at once, is probed, and comes back by
 * itself. Full is not down. A PUT_COMMIT that ends by its deadline or by a cancel is usually
 * undone, but its outcome is unknown: STAT tells. Thread rule: a tier belongs to the loop it was
 * opened on; all calls from that loop's thread, but for wt_map_release (any thread).
 */
#ifndef WT_TIERS_TIER_H
#define WT_TIERS_TIER_H

#include "core/err.h"
#include "core/hist.h"
#include "core/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct wt_tier;
struct wt_put;
struct wt_map;

enum wt_op {
    WT_OP_STAT, /* key -> size */
    WT_OP_GET,  /* key, off, buf, len -> got (short only at the object's end) */
    WT_OP_MAP,  /* key -> map: the whole object in memory, kept while held; only with WT_CAP_MAP.
                   WT_EUNSUPPORTED: not this object now, read it */
    WT_OP_PUT_OPEN,  /* key, size, flags -> put */
    WT_OP_PUT_WRITE, /* put, off, src, len: parts in any order, each byte once; parts of WT_PART but
                        for the last */
    WT_OP_PUT_COMMIT, /* put: durable and visible, or an error and nothing. Ends the put. After its
                         last write completed */
    WT_OP_PUT_ABORT,  /* put: nothing is left but what gc finds. Ends the put */
    WT_OP_REMOVE,     /* key; WT_EMISSING when it is not there */
    WT_OP_LIST,   /* key = prefix; each name goes to on_entry on the loop thread; only for fsck, gc
                     and finding data sets */
    WT_OP_USAGE,  /* -> used, capacity */
    WT_OP_PROBE,  /* -> rc: is the tier there? */
    WT_OP_LOCK,   /* key, owner, ttl_ms: take or renew an expiring exclusive lock. WT_ELOCKED: text
                     names the holder */
    WT_OP_UNLOCK, /* key, owner */
    WT_OP_COUNT
};

enum {
    WT_PART = 8 << 20, /* part size of a put and of a whole-object read */
    WT_KEY_SIZE = 256, /* longest key with the NUL: [A-Za-z0-9._=+%~@-] parts separated by '/', no
                          part empty, "." or ".." */
    WT_QUEUE_MAX = 4096,
    WT_TIERS_MAX = 8,
};

/* flags of GET */
enum {
    WT_GET_ONCE = 1 /* the source of a move: on a network mount its range leaves the page cache */
};
/* flags of PUT_OPEN */
enum {
    WT_PUT_REPLACE = 1 /* may replace an existing object atomically (the manifest alone); else
                          WT_EEXISTS at OPEN or COMMIT */
};
/* flags of LIST */
enum {
    /* key names a folder ("" the root): only what lies directly in it. Entries are still whole
       keys; those of folders end in '/' */
    WT_LIST_SHALLOW = 1
};

struct wt_entry {
    const char *key;
    uint64_t size;
    int64_t mtime;    /* seconds since 1970 */
    bool unpublished; /* a temporary or an object without head: gc's business */
};

struct wt_req {
    /* set by the caller; untouched by the tier until completion. `key` must live until then */
    enum wt_op op;
    const char *key;
    uint64_t off;
    void *buf;
    const void *src;
    size_t len;
    uint64_t size;
    unsigned flags;
    struct wt_put *put;
    const char *owner;
    uint64_t ttl_ms;
    int (*on_entry)(struct wt_req *req,
                    const struct wt_entry *entry); /* non-zero ends the list; that is its rc */
    uint32_t timeout_ms;                           /* 0: the tier's rule, wt_tier_deadline() */
    void (*done)(struct wt_req *req);
    void *arg;

    /* results, valid in done() */
    int rc;            /* 0, WT_E..., or what on_entry gave */
    struct wt_err err; /* names tier and key when rc < 0 */
    size_t got;
    /* also: size (STAT), put (PUT_OPEN), */
    struct wt_map *map;
    uint64_t used, capacity; /* bytes; capacity 0: unlimited */
    uint64_t elapsed_us;

    /* the tier's own */
    struct wt_tier *tier;
    struct wt_req *next, *prev;
    void *priv[2];
    uint64_t start_ns, served_ns, deadline_ns;
    uint64_t weight;
    uint32_t heap_at;
    int state;
    unsigned level; /* filters that have yet to see it on its way up */
    uint64_t held_ns;
    struct wt_req *held_next, *held_prev;
};

struct wt_tier_opts { /* a `tier` section of a configuration */
    char name[64];
    char url[512];
    uint64_t capacity;   /* bytes, 0: the backend's own or unlimited */
    int64_t depth;       /* requests in flight, 0: the backend's default */
    uint64_t timeout_ms; /* base of deadlines, 0: 10 s */
    uint64_t min_rate;   /* bytes a second that deadlines assume, 0: 8 MiB/s */
    uint64_t land_max;   /* bytes that packs may land in it before they are in cold, 0: none */
    bool read_only;      /* put, remove and lock are WT_EDENIED */
    char filter[256];    /* "throttle rate=50MiB; delay read=2ms": docs/filters.md; "": none */
};

enum {
    WT_CAP_MAP = 1,
    WT_CAP_LOCK = 2,
    WT_CAP_WRITE = 4,
    WT_CAP_VOLATILE = 8 /* contents may vanish at a restart */
};

/* A tier that is away opens and is down (file: waits 2 s at most for a mount that hangs). Bad URLs
 * and options are errors. `log` must outlive the tier. An open tier keeps its loop alive. */
int wt_tier_open(uv_loop_t *loop, const struct wt_tier_opts *opts, const struct wt_log *log,
                 struct wt_tier **out, struct wt_err *err);
/* Cancels what is in flight, ends open puts; `closed` (may be NULL) is called on the loop when
 * every request has completed and nothing is left. Once. */
void wt_tier_close(struct wt_tier *tier, void (*closed)(void *arg), void *arg);

/* 0: accepted, done() will be called. Negative: refused at once, done() will not be called
 * (WT_EINVAL: a bad request; WT_EBUSY: queue full; WT_EUNSUPPORTED; WT_ECANCELED: the tier is
 * closing); req->rc and req->err tell. */
int wt_tier_submit(struct wt_tier *tier, struct wt_req *req);
/* Asks for an early end; done() comes with WT_ECANCELED, or with the real result when that was
 * first; never from inside this call. Nothing happens for a request that is not in flight (zeroed,
 * or completed). */
void wt_tier_cancel(struct wt_req *req);

/* Another capacity from now on. What is there stays; puts that are open are let end. */
void wt_tier_resize(struct wt_tier *tier, uint64_t capacity);

unsigned wt_tier_caps(const struct wt_tier *tier);
const char *wt_tier_name(const struct wt_tier *tier);
const char *wt_tier_url(const struct wt_tier *tier); /* without secrets */
bool wt_tier_is_down(const struct wt_tier *tier);
uint32_t wt_tier_deadline(const struct wt_tier *tier, uint64_t bytes); /* ms */
/* Estimated microseconds for a read of `bytes` now: decayed latency + bytes / decayed bandwidth,
 * with what is queued. Infinite when down. A tier never measured has a prior of its kind (tmpfs <
 * local file < network). */
double wt_tier_cost(const struct wt_tier *tier, uint64_t bytes);

struct wt_tier_stats {            /* counters since open; bytes count where they moved */
    uint64_t ops[WT_OP_COUNT];    /* completed */
    uint64_t errors[WT_OP_COUNT]; /* of these failed, but for missing and canceled ones */
    uint64_t bytes_read, bytes_written;
    uint64_t missing, corrupt, timeouts, cancels, down_count;
    uint64_t losses; /* times that it was found to have lost, perhaps, what it held */
    uint32_t in_flight, queued, stuck;
    bool down;
    double latency_us,
        bandwidth; /* decayed estimates; bandwidth in bytes a second, 0: not measured */
    struct wt_hist get,
        put; /* from submit to completion, of those that ended well; put: of a part */
    char last_error[WT_ERR_TEXT];
};
void wt_tier_stats(const struct wt_tier *tier, struct wt_tier_stats *out);

/* What a server tells of itself, fact by fact, as in ("", "server", "Redis 7.0.15"). `where` is ""
 * or, in a cluster, which of its servers. */
typedef void (*wt_fact_fn)(void *arg, const char *where, const char *name, const char *value);
/* For tools: it may ask a server and wait, 5 s at most. Most is known after a USAGE only. */
void wt_tier_describe(struct wt_tier *tier, wt_fact_fn fact, void *arg);

struct wt_map_view {
    const void *data;
    size_t size;
};
struct wt_map_view wt_map_view(const struct wt_map *map);
void wt_map_release(struct wt_map *map); /* NULL is fine */

const char *wt_op_name(enum wt_op op); /* "get" */
/* 0, or WT_EINVAL with what is wrong with it. */
int wt_key_check(const char *key, struct wt_err *err);

#endif
