/*
 * One connection to a cluster: rados_t, ioctx, pool. Shared by reference: the last one to let go
 * shuts it down, which blocks, so that happens on worker threads only (rados_conn_unref is never
 * called on a loop).
 */
#ifndef WT_TIERS_RADOS_CONN_H
#define WT_TIERS_RADOS_CONN_H

#include "tiers/rados/url.h"

#include <rados/librados.h>
#include <stdatomic.h>
#include <stdint.h>

struct rados_conn {
    rados_t cluster;
    rados_ioctx_t io;
    int64_t pool;
    atomic_uint refs;
};

/* Blocks, up to some seconds. op_timeout: seconds after which librados itself gives an op up; 0:
 * never. */
int rados_conn_open(const struct rados_url *url, unsigned op_timeout, struct rados_conn **out,
                    struct wt_err *err);
void rados_conn_ref(struct rados_conn *conn);
void rados_conn_unref(struct rados_conn *conn);

/* Blocks: is the pool still the one that was opened? 0; WT_EDOWN: it is gone; or why nobody can
 * tell. */
int rados_conn_check_pool(struct rados_conn *conn, const struct rados_url *url, struct wt_err *err);

/* The code for librados' negative errno, and a message: "WHAT: text". */
int rados_error(struct wt_err *err, int rc, const char *what);

#endif
