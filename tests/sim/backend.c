/*
 * The way from a tier to its store: a backend like the others, on the virtual clock.
 *
 * Happy path: an op is drawn a way there and a way back; when it arrives it has its effect on the
 * store, and later its answer is found by the daemon's loop. Failures: a store that is down says
 * so, one that hangs says nothing until it is canceled; some requests fail before their effect,
 * some after it. A canceled one ends at once or with its real answer; what was sent may still
 * arrive, as the contract warns for a commit. Of a process that died the same holds for all it had
 * sent. Buffers of the caller are touched only while the request is in flight.
 */
#include "sim.h"

#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOST_PER_MILLE = 500 };

struct sim_put {
    struct wt_put head;
    unsigned refs;
    struct sim_blob *blob;
    struct sim_store *store;
    uint64_t epoch; /* of the store when it was opened */
    bool counted;   /* its bytes are reserved */
};

struct sim_op {
    struct sim_op *next, **at; /* of the process */
    struct sim_process *process;
    struct sim_store *store;
    struct wt_tier *tier;
    struct wt_req *req; /* NULL: it has ended for the daemon */
    enum wt_op op;
    char key[WT_KEY_SIZE], owner[128];
    uint64_t off, len, ttl_ms, size, way_back;
    unsigned flags;
    struct sim_put *put;
    bool lost, fails; /* it does not arrive; it is said to fail though it did not */
    /* result */
    int rc;
    struct sim_blob *blob;
};

static struct sim_store *store_of(struct wt_tier *tier) {
    return wt_backend_state(tier);
}

static struct sim_process *process_of(const struct wt_tier *tier) {
    return ((struct sim_loop *)wt_backend_loop(tier)->data)->process;
}

/* ---- puts ---- */

static void unreserve(struct sim_put *p) {
    if (p->counted && p->epoch == p->store->epoch)
        p->store->reserved -= p->head.size;
    p->counted = false;
}

static void put_unref(struct sim_put *p) {
    if (!p || --p->refs)
        return;
    unreserve(p);
    wt_put_fini(&p->head);
    sim_blob_unref(p->blob);
    free(p);
}

static struct sim_put *put_new(const struct sim_op *op) {
    struct sim_put *p = calloc(1, sizeof *p);
    if (!p || wt_put_init(&p->head, op->key, op->size, op->flags) < 0)
        abort();
    p->refs = 1;
    p->blob = sim_blob_new((size_t)op->size);
    p->store = op->store;
    p->epoch = op->store->epoch;
    p->counted = true;
    p->store->reserved += op->size;
    return p;
}

/* ---- effects ---- */

static int locked(struct sim_op *op) {
    struct sim_store *s = op->store;
    uint64_t now = s->w->now_ns;
    if (s->owner[0] && s->lock_until > now && strcmp(s->owner, op->owner) != 0)
        return WT_ELOCKED;
    if (strcmp(s->owner, op->owner) != 0) {
        sim_say(s->w, "%u has the lock", op->process->pid);
        s->w->count.takeovers++;
    }
    snprintf(s->owner, sizeof s->owner, "%s", op->owner);
    s->owner_pid = op->process->pid;
    s->lock_until = now + op->ttl_ms * SIM_MS;
    return 0;
}

static int unlocked(struct sim_op *op) {
    if (strcmp(op->store->owner, op->owner) == 0)
        op->store->owner[0] = '\0';
    return 0;
}

static int opened(struct sim_op *op) {
    struct sim_store *s = op->store;
    if (sim_store_find(s, op->key) && !(op->flags & WT_PUT_REPLACE))
        return WT_EEXISTS;
    if (s->capacity && s->used + s->reserved + s->foreign + op->size > s->capacity)
        return WT_EFULL;
    op->put = put_new(op);
    return 0;
}

static int committed(struct sim_op *op) {
    struct sim_put *p = op->put;
    struct sim_store *s = op->store;
    if (p->epoch != s->epoch)
        return WT_EIO; /* what was written went with the restart */
    if (sim_store_find(s, op->key) && !(p->head.flags & WT_PUT_REPLACE))
        return WT_EEXISTS;
    unreserve(p);
    sim_store_set(s, op->key, sim_blob_ref(p->blob), false);
    sim_say(s->w, "%u commits %s in %s", op->process->pid, op->key, s->w->tier[s->tier].name);
    sim_check_commit(op->process, s, op->key, p->blob);
    return 0;
}

static int removed(struct sim_op *op) {
    struct sim_object *o = sim_store_find(op->store, op->key);
    if (!o)
        return WT_EMISSING;
    sim_check_remove(op->process, op->store, o);
    sim_say(op->store->w, "%u removes %s from %s", op->process->pid, op->key,
            op->store->w->tier[op->store->tier].name);
    sim_store_delete(op->store, o);
    return 0;
}

static int read_object(struct sim_op *op) {
    struct sim_object *o = sim_store_find(op->store, op->key);
    if (!o)
        return WT_EMISSING;
    const struct sim_shard *shard = sim_shard_of(op->store->w, op->key);
    if (op->op == WT_OP_GET && shard && !sim_whole(shard, o) && sim_chance(op->store->w, 500))
        return WT_ECORRUPT; /* a backend with sums of its own finds it */
    op->blob = sim_blob_ref(o->blob);
    return 0;
}

static int effect(struct sim_op *op) {
    switch (op->op) {
    case WT_OP_STAT:
    case WT_OP_GET:
        return read_object(op);
    case WT_OP_PUT_OPEN:
        return opened(op);
    case WT_OP_PUT_WRITE:
        return op->put->epoch == op->store->epoch ? 0 : WT_EIO;
    case WT_OP_PUT_COMMIT:
        return committed(op);
    case WT_OP_REMOVE:
        return removed(op);
    case WT_OP_LOCK:
        return locked(op);
    case WT_OP_UNLOCK:
        return unlocked(op);
    default:
        return 0; /* LIST, USAGE and PROBE read when they are answered; ABORT frees */
    }
}

/* ---- the answer ---- */

static void free_op(struct sim_op *op) {
    if (op->at) {
        *op->at = op->next;
        if (op->next)
            op->next->at = op->at;
    }
    sim_blob_unref(op->blob);
    put_unref(op->put);
    free(op);
}

static void list(struct sim_op *op, struct wt_req *req) {
    const struct sim_store *s = op->store;
    size_t prefix = strlen(op->key);
    for (size_t i = 0; i < s->n && req->rc == 0; i++) {
        struct wt_entry e = {
            .key = s->object[i].key, .size = s->object[i].blob->size, .mtime = s->object[i].mtime};
        char folder[WT_KEY_SIZE];
        if (strncmp(e.key, op->key, prefix) != 0)
            continue;
        const char *slash = op->flags & WT_LIST_SHALLOW ? strchr(e.key + prefix, '/') : NULL;
        if (slash && strcmp(slash, "/manifest.json") != 0)
            continue; /* one of each folder is enough */
        if (slash) {
            snprintf(folder, sizeof folder, "%.*s", (int)(slash - e.key) + 1, e.key);
            e.key = folder;
        }
        req->rc = req->on_entry(req, &e);
    }
}

static void fill(struct sim_op *op, struct wt_req *req) {
    struct sim_store *s = op->store;
    struct sim_object *o;
    req->rc = op->rc;
    if (op->rc < 0) {
        if (op->rc == WT_ELOCKED)
            wt_err_set(&req->err, WT_ELOCKED, "held by %s", s->owner);
        return;
    }
    switch (op->op) {
    case WT_OP_STAT:
        req->size = op->blob->size;
        break;
    case WT_OP_GET:
        req->got = op->off < op->blob->size ? op->blob->size - op->off : 0;
        req->got = req->got < op->len ? req->got : op->len;
        if (req->got)
            memcpy(req->buf, op->blob->data + op->off, req->got);
        break;
    case WT_OP_PUT_OPEN:
        op->put->refs++;
        req->put = &op->put->head;
        break;
    case WT_OP_PUT_COMMIT:
        o = sim_store_find(op->store, op->key);
        if (o && o->blob == op->put->blob)
            o->told = true;
        break;
    case WT_OP_LIST:
        list(op, req);
        break;
    case WT_OP_USAGE:
        req->used = s->used + s->foreign;
        sim_say(s->w, "%u hears of %llu bytes in %s", op->process->pid,
                (unsigned long long)req->used, s->w->tier[s->tier].name);
        s->late = sim_active(s->w) == op->process ? 0 : s->late;
        req->capacity = s->capacity;
        break;
    default:
        break;
    }
}

/* The daemon's part of a put ends with its COMMIT or ABORT. */
static void end_put(const struct sim_op *op) {
    if (op->op == WT_OP_PUT_COMMIT || op->op == WT_OP_PUT_ABORT)
        put_unref(op->put);
}

static void answer(void *arg) {
    struct sim_op *op = arg;
    struct wt_req *req = op->req;
    if (req) {
        op->req = NULL;
        fill(op, req);
        sim_check_stat(op->process, op->store, op->key, req);
        sim_note(op->store->w, &req->rc, sizeof req->rc);
        end_put(op);
        if (req->rc < 0 && op->op == WT_OP_PUT_OPEN && op->put)
            req->put = NULL;
    }
    free_op(op);
    if (req)
        wt_req_complete(req);
}

static void return_answer(struct sim_world *w, void *arg) {
    struct sim_op *op = arg;
    (void)w;
    if (op->req)
        sim_loop_post(&op->process->loop, answer, op);
    else
        free_op(op);
}

static void arrive(struct sim_world *w, void *arg) {
    struct sim_op *op = arg;
    struct sim_store *s = op->store;
    bool away = s->hang_until > w->now_ns || (op->process->cut && s->tier == 0);
    if (op->lost) {
        free_op(op);
        return;
    }
    if (away) { /* it arrives when it can; its sender has given it up by then, or not */
        sim_at(w, SIM_S, arrive, op);
        return;
    }
    uint64_t what[] = {wt_hash64(op->key, strlen(op->key)), op->op, s->tier, op->process->pid};
    sim_note(w, what, sizeof what);
    op->rc = s->down_until > w->now_ns ? WT_EDOWN : effect(op);
    if (op->fails)
        op->rc = WT_EIO;
    sim_at(w, op->way_back, return_answer, op);
}

/* ---- the backend's functions ---- */

static uint64_t way(struct sim_world *w, const struct sim_store *s, uint64_t bytes) {
    uint64_t ns = s->latency_ns / 2 + sim_below(w, s->latency_ns) + bytes * 4;
    if (s->slow_until > w->now_ns || (w->trouble && sim_chance(w, 5)))
        ns *= sim_between(w, 10, 200);
    return ns;
}

static void submit(struct wt_tier *tier, struct wt_req *req) {
    struct sim_process *p = process_of(tier);
    struct sim_store *s = store_of(tier);
    struct sim_op *op = calloc(1, sizeof *op);
    if (!op)
        abort();
    *op = (struct sim_op){.process = p,
                          .store = s,
                          .tier = tier,
                          .req = req,
                          .op = req->op,
                          .off = req->off,
                          .len = req->len,
                          .size = req->size,
                          .flags = req->flags,
                          .ttl_ms = req->ttl_ms};
    if (req->op == WT_OP_PUT_WRITE || req->op == WT_OP_PUT_COMMIT || req->op == WT_OP_PUT_ABORT) {
        op->put = (struct sim_put *)req->put;
        op->put->refs++;
        snprintf(op->key, sizeof op->key, "%s", req->put->key);
    } else if (req->key) {
        snprintf(op->key, sizeof op->key, "%s", req->key);
    }
    if (req->owner)
        snprintf(op->owner, sizeof op->owner, "%s", req->owner);
    if (req->op == WT_OP_PUT_WRITE)
        memcpy(op->put->blob->data + req->off, req->src, req->len);
    req->priv[0] = op;
    op->next = p->ops;
    op->at = &p->ops;
    if (op->next)
        op->next->at = &op->next;
    p->ops = op;
    if (!p->host) { /* nothing of a dead process leaves it */
        op->lost = true;
        op->req = NULL;
        end_put(op);
        req->rc = WT_EDOWN;
        wt_req_later(req);
        sim_at(s->w, 0, arrive, op);
        return;
    }
    sim_check_submit(p, s, req);
    if (sim_chance(s->w, s->faults)) {
        op->fails = true;
        op->lost = false;
        if (sim_chance(s->w, 500)) { /* before its effect */
            op->rc = WT_EIO;
            op->way_back = 0;
            sim_at(s->w, way(s->w, s, 0), return_answer, op);
            return;
        }
    }
    op->way_back = way(s->w, s, req->op == WT_OP_GET ? req->len : 0);
    sim_at(s->w, way(s->w, s, req->op == WT_OP_PUT_WRITE ? req->len : 0), arrive, op);
}

static void detach(struct sim_op *op) {
    struct wt_req *req = op->req;
    op->req = NULL;
    op->lost = sim_chance(op->store->w, LOST_PER_MILLE);
    end_put(op);
    req->rc = WT_ECANCELED;
    wt_req_later(req);
}

static void cancel(struct wt_tier *tier, struct wt_req *req) {
    (void)tier;
    struct sim_op *op = req->priv[0];
    if (op && op->req == req)
        detach(op);
}

void sim_backend_abandon(struct sim_process *p) {
    for (struct sim_op *op = p->ops; op; op = op->next)
        if (op->req)
            detach(op);
}

bool sim_backend_owes(const struct sim_process *p) {
    for (const struct sim_op *op = p->ops; op; op = op->next)
        if (op->req &&
            (op->op == WT_OP_PUT_COMMIT || op->op == WT_OP_PUT_ABORT || op->op == WT_OP_REMOVE))
            return true;
    return false;
}

static void drop(struct wt_tier *tier, struct wt_put *put) {
    (void)tier;
    put_unref((struct sim_put *)put);
}

static int open_tier(struct wt_tier *tier, const char *url, struct wt_err *err) {
    struct sim_world *w = process_of(tier)->w;
    unsigned long n = strtoul(url + strlen("sim:"), NULL, 10);
    if (n >= SIM_TIERS)
        return wt_err_set(err, WT_EINVAL, "no store %lu", n);
    wt_backend_set(tier, &w->store[n]);
    return 0;
}

static void close_tier(struct wt_tier *tier) {
    wt_backend_closed(tier);
}

static unsigned caps(const struct wt_tier *tier) {
    const struct sim_store *s = wt_backend_state(tier);
    return WT_CAP_LOCK | WT_CAP_WRITE | (s->is_volatile ? WT_CAP_VOLATILE : 0u);
}

static const struct wt_backend wt_backend_sim = {
    .scheme = "sim",
    .help = "sim:N",
    .depth = 16,
    .prior_us = 1000,
    .open = open_tier,
    .close = close_tier,
    .caps = caps,
    .op = {[WT_OP_STAT] = submit,
           [WT_OP_GET] = submit,
           [WT_OP_PUT_OPEN] = submit,
           [WT_OP_PUT_WRITE] = submit,
           [WT_OP_PUT_COMMIT] = submit,
           [WT_OP_PUT_ABORT] = submit,
           [WT_OP_REMOVE] = submit,
           [WT_OP_LIST] = submit,
           [WT_OP_USAGE] = submit,
           [WT_OP_PROBE] = submit,
           [WT_OP_LOCK] = submit,
           [WT_OP_UNLOCK] = submit},
    .cancel = cancel,
    .drop = drop,
};

/* The table of tiers/registry.c, with this one alone. */
const struct wt_backend *const wt_backends[] = {&wt_backend_sim, NULL};
