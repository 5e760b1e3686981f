/*
 * Reading a head: one read op, with its object's length unknown; a second one where it is longer
 * than most. Happy path: read -> decode -> done(). A head that does not add up is WT_ECORRUPT.
 */
#include "tiers/rados/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void go(struct rados_aio *aio) {
    struct rados_fetch *f = (struct rados_fetch *)aio;
    rados_read_op_t op = rados_create_read_op();
    if (op)
        rados_read_op_read(op, 0, f->len, (char *)f->buf, &f->got, NULL);
    rados_aio_fly_read_op(aio, op, f->oid, f->flags);
}

static void finish(struct rados_fetch *f, int rc) {
    free(f->buf);
    f->buf = NULL;
    f->rc = rc;
    f->done(f);
}

/* 1: once more, with room for all of it. */
static int understand(struct rados_fetch *f) {
    struct rados_head fixed;
    int rc = rados_head_peek(f->buf, f->got, &fixed, &f->err);
    if (rc < 0)
        return rc;
    if (fixed.length <= f->len)
        return rados_head_decode(f->buf, f->got, &f->head, &f->err);
    uint8_t *larger = realloc(f->buf, fixed.length);
    if (!larger)
        return wt_err_set(&f->err, WT_ENOMEM, "out of memory for a head of %u bytes", fixed.length);
    f->buf = larger;
    f->len = fixed.length;
    return 1;
}

static void end(struct rados_aio *aio) {
    struct rados_fetch *f = (struct rados_fetch *)aio;
    int rc = aio->rc;
    if (rc == -ECANCELED && !(aio->call && aio->call->canceled))
        rc = wt_err_set(&f->err, WT_EDOWN, "reading its head: the connection was given up");
    else if (rc < 0)
        rc = rados_error(&f->err, rc, "reading its head");
    else
        rc = understand(f);
    if (rc == 1)
        rados_aio_begin(aio->client, aio);
    else
        finish(f, rc);
}

static void fail_go(struct rados_aio *aio) {
    rados_aio_fail(aio, -ENOMEM);
}

void rados_fetch_begin(struct rados_client *c, struct rados_fetch *f, struct rados_call *call,
                       const char *key, int flags) {
    snprintf(f->oid, sizeof f->oid, "%s", key);
    f->len = RADOS_HEAD_READ;
    f->got = 0;
    f->flags = flags;
    f->head = NULL;
    f->err = (struct wt_err){0};
    f->buf = malloc(f->len);
    f->aio = (struct rados_aio){.call = call, .go = f->buf ? go : fail_go, .end = end};
    rados_aio_begin(c, &f->aio);
}
