/*
 * Blocking calls over the asynchronous tiers; see sync.h.
 *
 * Happy path: submit, run the loop until done() was called. Whole objects go in parts, READ_AHEAD
 * of them in flight. Failures: the first error stops the sending of further parts; those in flight
 * are waited for, since they hold the buffer.
 */
#include "tiers/sync.h"

#include <stdlib.h>
#include <string.h>

enum { READ_AHEAD = 4, READ_TRIES = 3 };

struct wt_sync {
    uv_loop_t loop;
    const struct wt_log *log;
    struct wt_tier *tier[WT_TIERS_MAX * 4];
    size_t n_tiers;
    size_t open;
};

int wt_sync_new(const struct wt_log *log, struct wt_sync **out, struct wt_err *err) {
    struct wt_sync *s = calloc(1, sizeof *s);
    if (!s)
        return wt_err_set(err, WT_ENOMEM, "out of memory");
    int rc = uv_loop_init(&s->loop);
    if (rc < 0) {
        free(s);
        return wt_err_sys(err, -rc, "an event loop cannot be made");
    }
    s->log = log;
    *out = s;
    return 0;
}

int wt_sync_open(struct wt_sync *s, const struct wt_tier_opts *opts, struct wt_tier **out,
                 struct wt_err *err) {
    if (s->n_tiers == sizeof s->tier / sizeof s->tier[0])
        return wt_err_set(err, WT_EINVAL, "tier %s: too many tiers are open", opts->name);
    int rc = wt_tier_open(&s->loop, opts, s->log, out, err);
    if (rc == 0)
        s->tier[s->n_tiers++] = *out;
    return rc;
}

static void on_closed(void *arg) {
    struct wt_sync *s = arg;
    s->open--;
}

void wt_sync_free(struct wt_sync *s) {
    if (!s)
        return;
    s->open = s->n_tiers;
    for (size_t i = 0; i < s->n_tiers; i++)
        wt_tier_close(s->tier[i], on_closed, s);
    while (s->open)
        uv_run(&s->loop, UV_RUN_ONCE);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    uv_loop_close(&s->loop);
    free(s);
}

static void on_done(struct wt_req *req) {
    *(bool *)req->arg = true;
}

int wt_sync_do(struct wt_sync *s, struct wt_tier *tier, struct wt_req *req) {
    bool done = false;
    req->done = on_done;
    req->arg = &done;
    int rc = wt_tier_submit(tier, req);
    if (rc < 0)
        return rc;
    while (!done)
        uv_run(&s->loop, UV_RUN_ONCE);
    return req->rc;
}

static int give(const struct wt_req *req, int rc, struct wt_err *err) {
    if (rc < 0 && err)
        *err = req->err;
    return rc;
}

int wt_sync_remove(struct wt_sync *s, struct wt_tier *tier, const char *key, struct wt_err *err) {
    struct wt_req req = {.op = WT_OP_REMOVE, .key = key};
    return give(&req, wt_sync_do(s, tier, &req), err);
}

int wt_sync_stat(struct wt_sync *s, struct wt_tier *tier, const char *key, uint64_t *size,
                 struct wt_err *err) {
    struct wt_req req = {.op = WT_OP_STAT, .key = key};
    int rc = give(&req, wt_sync_do(s, tier, &req), err);
    if (rc == 0)
        *size = req.size;
    return rc;
}

/* ---- list ---- */

struct listing {
    bool done; /* first: on_done sets it */
    int (*each)(void *arg, const struct wt_entry *entry);
    void *arg;
};

static int on_entry(struct wt_req *req, const struct wt_entry *entry) {
    struct listing *l = req->arg;
    return l->each(l->arg, entry);
}

static void on_listed(struct wt_req *req) {
    struct listing *l = req->arg;
    l->done = true;
}

int wt_sync_list(struct wt_sync *s, struct wt_tier *tier, const char *prefix, unsigned flags,
                 int (*each)(void *arg, const struct wt_entry *entry), void *arg,
                 struct wt_err *err) {
    struct listing l = {.each = each, .arg = arg};
    struct wt_req req = {.op = WT_OP_LIST,
                         .key = prefix,
                         .flags = flags,
                         .on_entry = on_entry,
                         .done = on_listed,
                         .arg = &l};
    int rc = wt_tier_submit(tier, &req);
    while (rc == 0 && !l.done)
        uv_run(&s->loop, UV_RUN_ONCE);
    return give(&req, rc < 0 ? rc : req.rc, err);
}

/* ---- whole objects, in parts ---- */

struct transfer {
    struct wt_sync *sync;
    struct wt_tier *tier;
    struct wt_req proto; /* op, key or put */
    uint8_t *buf;
    const uint8_t *src;
    uint64_t size, next;
    unsigned in_flight;
    int rc;
    struct wt_err err;
    struct wt_req req[READ_AHEAD];
};

static void fail(struct transfer *t, int rc, const struct wt_err *err) {
    if (t->rc == 0) {
        t->rc = rc;
        t->err = *err;
    }
}

static void send_next(struct transfer *t, struct wt_req *req);

static void on_part(struct wt_req *req) {
    struct transfer *t = req->arg;
    t->in_flight--;
    if (req->rc == 0 && req->op == WT_OP_GET && req->got < req->len)
        req->rc =
            wt_err_set(&req->err, WT_ECHANGED, "%s: it ended early while it was read", req->key);
    if (req->rc < 0)
        fail(t, req->rc, &req->err);
    send_next(t, req);
}

static void send_next(struct transfer *t, struct wt_req *req) {
    if (t->rc < 0 || t->next == t->size)
        return;
    uint64_t left = t->size - t->next;
    *req = t->proto;
    req->off = t->next;
    req->len = left < WT_PART ? (size_t)left : WT_PART;
    if (t->buf)
        req->buf = t->buf + t->next;
    else
        req->src = t->src + t->next;
    req->done = on_part;
    req->arg = t;
    int rc = wt_tier_submit(t->tier, req);
    if (rc < 0) {
        fail(t, rc, &req->err);
        return;
    }
    t->next += req->len;
    t->in_flight++;
}

static int run_parts(struct transfer *t) {
    for (int i = 0; i < READ_AHEAD; i++)
        send_next(t, &t->req[i]);
    while (t->in_flight)
        uv_run(&t->sync->loop, UV_RUN_ONCE);
    return t->rc;
}

/* A small object may be replaced at any time (a manifest): one read sees one version, and one byte
 * more than STAT said shows that it has grown. */
static int read_small(struct wt_sync *s, struct wt_tier *tier, const char *key, uint8_t *buf,
                      size_t size, struct wt_err *err) {
    struct wt_req req = {.op = WT_OP_GET, .key = key, .buf = buf, .len = size + 1};
    int rc = give(&req, wt_sync_do(s, tier, &req), err);
    if (rc == 0 && req.got != size)
        rc = wt_err_set(err, WT_ECHANGED, "tier %s (%s): %s: its size changed while it was read",
                        wt_tier_name(tier), wt_tier_url(tier), key);
    return rc;
}

static int read_large(struct wt_sync *s, struct wt_tier *tier, const char *key, uint8_t *buf,
                      uint64_t size, struct wt_err *err) {
    struct transfer *t = calloc(1, sizeof *t);
    if (!t)
        return wt_err_set(err, WT_ENOMEM, "%s: out of memory", key);
    *t = (struct transfer){
        .sync = s, .tier = tier, .buf = buf, .size = size, .proto = {.op = WT_OP_GET, .key = key}};
    int rc = run_parts(t);
    if (rc < 0 && err)
        *err = t->err;
    free(t);
    return rc;
}

static int read_once(struct wt_sync *s, struct wt_tier *tier, const char *key, uint64_t max,
                     uint8_t **data, size_t *len, struct wt_err *err) {
    uint64_t size = 0;
    int rc = wt_sync_stat(s, tier, key, &size, err);
    if (rc < 0)
        return rc;
    if (size > max || size >= SIZE_MAX - 1)
        return wt_err_set(err, WT_ERANGE, "tier %s (%s): %s: %llu bytes are more than %llu",
                          wt_tier_name(tier), wt_tier_url(tier), key, (unsigned long long)size,
                          (unsigned long long)max);
    uint8_t *buf = malloc((size_t)size + 1);
    if (!buf)
        return wt_err_set(err, WT_ENOMEM, "%s: out of memory for %llu bytes", key,
                          (unsigned long long)size);
    rc = size < WT_PART ? read_small(s, tier, key, buf, (size_t)size, err)
                        : read_large(s, tier, key, buf, size, err);
    if (rc < 0) {
        free(buf);
        return rc;
    }
    *data = buf;
    *len = (size_t)size;
    return 0;
}

int wt_sync_read(struct wt_sync *s, struct wt_tier *tier, const char *key, uint64_t max,
                 uint8_t **data, size_t *len, struct wt_err *err) {
    int rc = WT_ECHANGED;
    for (int i = 0; i < READ_TRIES && rc == WT_ECHANGED; i++)
        rc = read_once(s, tier, key, max, data, len, err);
    return rc;
}

static int end_put(struct wt_sync *s, struct wt_tier *tier, struct wt_put *put, enum wt_op op,
                   struct wt_err *err) {
    struct wt_req req = {.op = op, .put = put};
    return give(&req, wt_sync_do(s, tier, &req), err);
}

int wt_sync_write(struct wt_sync *s, struct wt_tier *tier, const char *key, const void *data,
                  size_t len, unsigned flags, struct wt_err *err) {
    struct wt_req open = {.op = WT_OP_PUT_OPEN, .key = key, .size = len, .flags = flags};
    int rc = give(&open, wt_sync_do(s, tier, &open), err);
    if (rc < 0)
        return rc;
    struct transfer *t = calloc(1, sizeof *t);
    if (!t) {
        end_put(s, tier, open.put, WT_OP_PUT_ABORT, NULL);
        return wt_err_set(err, WT_ENOMEM, "%s: out of memory", key);
    }
    *t = (struct transfer){.sync = s,
                           .tier = tier,
                           .src = data,
                           .size = len,
                           .proto = {.op = WT_OP_PUT_WRITE, .put = open.put}};
    rc = run_parts(t);
    if (rc < 0) {
        end_put(s, tier, open.put, WT_OP_PUT_ABORT, NULL);
        if (err)
            *err = t->err;
    } else {
        rc = end_put(s, tier, open.put, WT_OP_PUT_COMMIT, err);
    }
    free(t);
    return rc;
}
