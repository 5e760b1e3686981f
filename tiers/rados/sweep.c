/*
 * Removing the parts of a put, a few at a time, behind the scenes or with a call that waits for it.
 * What cannot be removed (no connection, no answer before the close) stays as an orphan for gc,
 * which finds it through LIST.
 */
#include "tiers/rados/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { LANES = 4, SWEEPS_MAX = 1024 };

struct rados_sweep;

struct lane {
    struct rados_aio aio;
    struct rados_sweep *sweep;
    uint32_t part;
};

struct rados_sweep {
    struct rados_client *client;
    struct rados_call *waiter;
    char key[WT_KEY_SIZE];
    uint64_t token;
    uint32_t next_part, n_parts, failed, flying;
    struct lane lanes[LANES];
    struct rados_sweep *next, *prev;
};

rados_write_op_t rados_remove_op(void) {
    rados_write_op_t op = rados_create_write_op();
    if (op)
        rados_write_op_remove(op);
    return op;
}

static void lane_go(struct rados_aio *aio) {
    struct lane *lane = (struct lane *)aio;
    char oid[RADOS_OID_SIZE];
    rados_part_name(oid, lane->sweep->key, lane->sweep->token, lane->part);
    rados_aio_fly_write_op(aio, rados_remove_op(), oid);
}

static void over(struct rados_sweep *s) {
    struct rados_client *c = s->client;
    *(s->prev ? &s->prev->next : &c->sweeps) = s->next;
    if (s->next)
        s->next->prev = s->prev;
    c->n_sweeps--;
    if (s->failed)
        wt_log(c->log, WT_LOG_WARN, "tier %s: %s: %u of its parts stay behind for gc",
               wt_tier_name(c->tier), s->key, s->failed);
    if (s->waiter)
        rados_call_end(s->waiter, s->waiter->rc);
    free(s);
}

static void lane_next(struct lane *lane) {
    struct rados_sweep *s = lane->sweep;
    lane->part = s->next_part++;
    s->flying++;
    rados_aio_begin(s->client, &lane->aio);
}

static void lane_end(struct rados_aio *aio) {
    struct lane *lane = (struct lane *)aio;
    struct rados_sweep *s = lane->sweep;
    s->flying--;
    s->failed += aio->rc < 0 && aio->rc != -ENOENT;
    if (aio->rc == -ECANCELED) { /* close, or no connection: the rest would fare the same */
        s->failed += s->n_parts - s->next_part;
        s->next_part = s->n_parts;
    }
    if (s->next_part < s->n_parts)
        lane_next(lane);
    else if (s->flying == 0)
        over(s);
}

static struct rados_sweep *new_sweep(struct rados_client *c) {
    struct rados_sweep *s = c->n_sweeps < SWEEPS_MAX ? calloc(1, sizeof *s) : NULL;
    if (!s)
        return NULL;
    s->client = c;
    s->next = c->sweeps;
    if (s->next)
        s->next->prev = s;
    c->sweeps = s;
    c->n_sweeps++;
    return s;
}

void rados_sweep_begin(struct rados_client *c, const char *key, uint64_t token, uint32_t n,
                       struct rados_call *waiter) {
    struct rados_sweep *s = n ? new_sweep(c) : NULL;
    if (!s) {
        if (n)
            wt_log(c->log, WT_LOG_WARN, "tier %s: %s: %u parts stay behind for gc",
                   wt_tier_name(c->tier), key, n);
        if (waiter)
            rados_call_end(waiter, waiter->rc);
        return;
    }
    snprintf(s->key, sizeof s->key, "%s", key);
    s->token = token;
    s->n_parts = n;
    s->waiter = waiter;
    for (uint32_t i = 0; i < LANES; i++) {
        s->lanes[i].sweep = s;
        s->lanes[i].aio = (struct rados_aio){.go = lane_go, .end = lane_end};
    }
    for (uint32_t i = 0; i < LANES && s->next_part < n; i++)
        lane_next(&s->lanes[i]);
}

void rados_sweep_forget(struct rados_client *c, const struct rados_call *waiter) {
    for (struct rados_sweep *s = c->sweeps; s; s = s->next)
        if (s->waiter == waiter)
            s->waiter = NULL;
}
