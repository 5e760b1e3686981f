/*
 * STAT and GET.
 *
 * Happy path of a GET: head (from the cache, or read) -> aio_read of each part that the range
 * touches, all at once, straight into the caller's buffer; a part that is read whole is checked
 * against its sum, on librados' thread. Failures: a part that is missing or short means that the
 * head is stale (the object was removed or replaced) or the object is damaged. The head is read
 * again: gone: WT_EMISSING; another token: once more with that; the same: WT_ECORRUPT. An object
 * that is replaced all the time is WT_ECHANGED in the end.
 */
#include "tiers/rados/internal.h"

#include "core/mem.h"
#include "core/sum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 8 };

/* ---- stat ---- */

struct stat_call {
    struct rados_call call;
    struct rados_fetch fetch;
};

static void missing(struct rados_call *call, int rc) {
    if (rc == 0)
        rc = wt_err_set(&call->req->err, WT_EMISSING, "there is no such object");
    rados_call_end(call, rc);
}

static void stat_fetched(struct rados_fetch *f) {
    struct rados_call *call = f->aio.call;
    if (f->rc == WT_EMISSING) {
        rados_confirm_pool(call, missing);
        return;
    }
    if (f->rc == 0)
        call->req->size = f->head->size;
    rados_head_unref(f->head);
    call->req->err = f->err;
    rados_call_end(call, f->rc);
}

static void stat_start(struct rados_call *call) {
    struct stat_call *s = (struct stat_call *)call;
    s->fetch.done = stat_fetched;
    rados_fetch_begin(call->client, &s->fetch, call, call->req->key, 0);
}

void rados_op_stat(struct wt_tier *tier, struct wt_req *req) {
    rados_call_new(tier, req, sizeof(struct stat_call), stat_start);
}

/* ---- get ---- */

struct get_part {
    struct rados_aio aio;
    uint32_t n;
    uint64_t off; /* in the part */
    uint8_t *dst;
    bool whole, wrong; /* read whole; its sum is wrong */
};

struct get_call {
    struct rados_call call;
    struct rados_fetch fetch;
    struct rados_head *head;
    struct get_part *parts;
    uint32_t n_parts, left;
    size_t want; /* bytes, cut at the object's end */
    unsigned tries;
    uint64_t stale_token; /* of a head whose parts were not all there; 0: none yet */
};

static void get_release(struct rados_call *call) {
    struct get_call *g = (struct get_call *)call;
    rados_head_unref(g->head);
    free(g->parts);
}

static void get_fetched(struct rados_fetch *f);

static void fetch_head(struct get_call *g) {
    rados_head_unref(g->head);
    g->head = NULL;
    free(g->parts);
    g->parts = NULL;
    g->fetch.done = get_fetched;
    rados_fetch_begin(g->call.client, &g->fetch, &g->call, g->call.req->key, 0);
}

/* On librados' thread, which has just copied these bytes. */
static void check_sum(struct rados_aio *aio) {
    struct get_part *p = (struct get_part *)aio;
    struct get_call *g = (struct get_call *)aio->call;
    if (p->whole && (uint64_t)aio->rc == aio->bytes)
        p->wrong = wt_crc32c(0, p->dst, (size_t)aio->bytes) != g->head->crc[p->n];
}

static void part_go(struct rados_aio *aio) {
    struct get_part *p = (struct get_part *)aio;
    struct get_call *g = (struct get_call *)aio->call;
    char oid[RADOS_OID_SIZE];
    rados_part_name(oid, aio->call->req->key, g->head->token, p->n);
    rados_aio_fly_read(aio, oid, p->dst, (size_t)aio->bytes, p->off);
}

static bool is_gone(const struct get_part *p) {
    return p->aio.rc == -ENOENT || (p->aio.rc >= 0 && (uint64_t)p->aio.rc < p->aio.bytes);
}

/* The part to tell of: one that says more about the tier comes before one that says it of the
 * object. */
static const struct get_part *worst(const struct get_call *g) {
    const struct get_part *bad = NULL;
    for (uint32_t i = 0; i < g->n_parts; i++) {
        const struct get_part *p = &g->parts[i];
        if (p->aio.rc < 0 && !is_gone(p))
            return p;
        if (is_gone(p) || (p->wrong && !bad))
            bad = p;
    }
    return bad;
}

/* A pool that is being removed loses parts before heads. */
static void incomplete(struct rados_call *call, int rc) {
    const struct get_call *g = (struct get_call *)call;
    const struct get_part *p = worst(g);
    if (rc == 0 && p)
        rc = wt_err_set(&call->req->err, WT_ECORRUPT, "part %u of %u is missing or short", p->n,
                        g->head->n_parts);
    rados_call_end(call, rc);
}

static void part_is_gone(struct get_call *g) {
    struct rados_call *call = &g->call;
    rados_cache_drop(call->client->cache, call->req->key);
    if (g->stale_token == g->head->token) {
        rados_confirm_pool(call, incomplete);
    } else if (++g->tries >= TRIES) {
        rados_call_end(call, wt_err_set(&call->req->err, WT_ECHANGED,
                                        "it was replaced %u times while it was read", g->tries));
    } else {
        g->stale_token = g->head->token;
        fetch_head(g);
    }
}

static void parts_ended(struct get_call *g) {
    struct rados_call *call = &g->call;
    const struct get_part *p = worst(g);
    if (call->canceled) {
        rados_call_end(call, WT_ECANCELED);
    } else if (!p) {
        call->req->got = g->want;
        rados_call_end(call, 0);
    } else if (is_gone(p)) {
        part_is_gone(g);
    } else if (p->wrong) {
        rados_call_end(call, wt_err_set(&call->req->err, WT_ECORRUPT,
                                        "part %u of %u has a wrong sum", p->n, g->head->n_parts));
    } else {
        rados_call_end_rados(call, p->aio.rc, "reading a part");
    }
}

static void part_end(struct rados_aio *aio) {
    struct get_call *g = (struct get_call *)aio->call;
    if (--g->left == 0)
        parts_ended(g);
}

static void fill_parts(struct get_call *g) {
    uint64_t at = g->call.req->off, end = at + g->want;
    uint8_t *dst = g->call.req->buf;
    for (uint32_t i = 0; i < g->n_parts; i++) {
        struct get_part *p = &g->parts[i];
        p->n = (uint32_t)(at / RADOS_PART);
        p->off = at % RADOS_PART;
        uint64_t length = rados_part_length(g->head->size, p->n), n = length - p->off;
        n = n < end - at ? n : end - at;
        p->dst = dst;
        p->whole = n == length;
        p->aio = (struct rados_aio){
            .call = &g->call, .go = part_go, .check = check_sum, .end = part_end, .bytes = n};
        dst += n;
        at += n;
    }
}

static void read_parts(struct get_call *g) {
    uint64_t off = g->call.req->off;
    g->n_parts = (uint32_t)((off + g->want - 1) / RADOS_PART - off / RADOS_PART) + 1;
    g->parts = wt_calloc(g->n_parts, sizeof *g->parts);
    if (!g->parts) {
        rados_call_end(&g->call, WT_ENOMEM);
        return;
    }
    fill_parts(g);
    g->left = g->n_parts;
    for (uint32_t i = 0, n = g->n_parts; i < n; i++)
        rados_aio_begin(g->call.client, &g->parts[i].aio);
}

/* With a head. */
static void read_range(struct get_call *g) {
    struct wt_req *req = g->call.req;
    const struct rados_head *h = g->head;
    uint64_t left = req->off < h->size ? h->size - req->off : 0;
    g->want = req->len < left ? req->len : (size_t)left;
    if (g->want && !h->data) {
        read_parts(g);
        return;
    }
    if (g->want)
        memcpy(req->buf, h->data + req->off, g->want);
    req->got = g->want;
    rados_call_end(&g->call, 0);
}

static void get_fetched(struct rados_fetch *f) {
    struct rados_call *call = f->aio.call;
    struct get_call *g = (struct get_call *)call;
    if (f->rc == WT_EMISSING) {
        rados_confirm_pool(call, missing);
    } else if (f->rc < 0) {
        call->req->err = f->err;
        rados_call_end(call, f->rc);
    } else {
        g->head = f->head;
        rados_cache_put(call->client->cache, call->req->key, g->head);
        read_range(g);
    }
}

static void get_start(struct rados_call *call) {
    struct get_call *g = (struct get_call *)call;
    call->release = get_release;
    g->head = rados_cache_get(call->client->cache, call->req->key);
    if (g->head)
        read_range(g);
    else
        fetch_head(g);
}

void rados_op_get(struct wt_tier *tier, struct wt_req *req) {
    rados_call_new(tier, req, sizeof(struct get_call), get_start);
}
