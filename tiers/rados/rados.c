/*
 * rados://POOL[/NAMESPACE]: objects in a Ceph pool; see head.h for how they lie there.
 *
 * Happy path: open starts to connect; requests become calls (internal.h), calls become librados
 * operations, which come back to the loop. Failures: client.c for the connection, each op's file
 * for its own.
 */
#include "tiers/rados/rados.h"

#include "tiers/forms.h"
#include "tiers/rados/client.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int backend_open(struct wt_tier *tier, const char *url, struct wt_err *err) {
    struct rados_url u;
    int rc = rados_url_parse(url, &u, err);
    if (rc == 0 && u.conf[0] && access(u.conf, R_OK) != 0)
        rc = wt_err_set(err, WT_EINVAL, "conf=%s in the URL cannot be read: %s", u.conf,
                        strerror(errno));
    if (rc == 0 && u.keyring[0] && access(u.keyring, R_OK) != 0)
        rc = wt_err_set(err, WT_EINVAL, "keyring=%s in the URL cannot be read: %s", u.keyring,
                        strerror(errno));
    return rc < 0 ? rc : rados_client_open(tier, &u, err);
}

static unsigned backend_caps(const struct wt_tier *tier) {
    return wt_backend_opts(tier)->read_only ? 0 : WT_CAP_LOCK | WT_CAP_WRITE;
}

const struct wt_backend wt_backend_rados = {
    .scheme = "rados",
    .help = WT_FORM_RADOS,
    .depth = 32,
    .prior_us = 1500,
    .open = backend_open,
    .close = rados_client_close,
    .caps = backend_caps,
    .op =
        {
            [WT_OP_STAT] = rados_op_stat,
            [WT_OP_GET] = rados_op_get,
            [WT_OP_PUT_OPEN] = rados_op_put_open,
            [WT_OP_PUT_WRITE] = rados_op_put_write,
            [WT_OP_PUT_COMMIT] = rados_op_put_commit,
            [WT_OP_PUT_ABORT] = rados_op_put_abort,
            [WT_OP_REMOVE] = rados_op_remove,
            [WT_OP_LIST] = rados_op_list,
            [WT_OP_USAGE] = rados_op_usage,
            [WT_OP_PROBE] = rados_op_probe,
            [WT_OP_LOCK] = rados_op_lock,
            [WT_OP_UNLOCK] = rados_op_unlock,
        },
    .cancel = rados_call_cancel,
    .drop = rados_put_drop,
    .describe = rados_describe,
};
