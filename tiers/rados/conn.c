/*
 * Connecting to a cluster, and what librados' errors mean.
 *
 * Happy path: create, read the configuration, set our options, connect, open the pool.
 * Failures: the monitors do not answer within client_mount_timeout, the key is refused, the pool is
 * not there: a message that says which and what to do. What was half made is shut down again.
 */
#include "tiers/rados/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rados_error(struct wt_err *err, int rc, const char *what) {
    switch (-rc) {
    case ECANCELED:
        return wt_err_set(err, WT_ECANCELED, "%s: canceled", what);
    case ESHUTDOWN: /* also EBLOCKLISTED */
        return wt_err_set(err, WT_EDOWN, "%s: the cluster has shut this client out (blocklist)",
                          what);
    case EPERM:
    case EACCES:
        return wt_err_set(err, WT_EDENIED,
                          "%s: the cluster refuses it: see the caps of this client "
                          "(ceph auth get)",
                          what);
    case EDQUOT:
        return wt_err_set(err, WT_EFULL, "%s: the pool is full or at its quota", what);
    case ENOSPC:
        return wt_err_set(err, WT_EFULL, "%s: the cluster is full", what);
    case ENOENT:
    case EEXIST:
    case ETIMEDOUT:
    case ENOTCONN:
    case ENOMEM:
        return wt_err_sys(err, -rc, "%s", what);
    default:
        wt_err_sys(err, -rc, "%s", what);
        if (err)
            err->code = WT_EIO;
        return WT_EIO;
    }
}

struct setting {
    const char *name, *value;
};

static int set_all(rados_t cluster, const struct setting *set, struct wt_err *err) {
    for (; set->name; set++) {
        int rc = rados_conf_set(cluster, set->name, set->value);
        if (rc < 0)
            return wt_err_set(err, WT_EINVAL, "librados refuses the option %s = %s", set->name,
                              set->value);
    }
    return 0;
}

static int configure(rados_t cluster, const struct rados_url *url, unsigned op_timeout,
                     struct wt_err *err) {
    char seconds[16];
    snprintf(seconds, sizeof seconds, "%u", op_timeout);
    const struct setting ours[] = {
        /* Deadlines are our own. These make lost servers known, and let a new map in, before they
           pass. */
        {"client_mount_timeout", "3"},
        {"rados_mon_op_timeout", "5"},
        {"rados_osd_op_timeout", seconds},
        {"objecter_timeout", "1"},
        {"objecter_tick_interval", "0.5"},
        /* What is in flight is bounded here; librados' throttle would block the loop. */
        {"objecter_inflight_op_bytes", "0"},
        {"objecter_inflight_ops", "0"},
        /* A library never prints. */
        {"log_to_stderr", "false"},
        {"err_to_stderr", "false"},
        {"mon_cluster_log_to_stderr", "false"},
        {NULL, NULL}};
    int rc = rados_conf_read_file(cluster, url->conf[0] ? url->conf : NULL);
    if (rc < 0)
        return wt_err_sys(err, -rc, "the configuration %s cannot be read",
                          url->conf[0] ? url->conf : "of Ceph (conf=FILE in the URL)");
    rc = set_all(cluster, ours, err);
    const struct setting keyring[] = {{"keyring", url->keyring}, {NULL, NULL}};
    return rc == 0 && url->keyring[0] ? set_all(cluster, keyring, err) : rc;
}

static int connect_error(struct wt_err *err, int rc, const struct rados_url *url) {
    if (rc == -ETIMEDOUT)
        return wt_err_set(err, WT_EDOWN, "no monitor answers (see mon_host in the configuration)");
    if (rc == -EACCES || rc == -EPERM)
        return wt_err_set(err, WT_EDOWN, "the monitors refuse client.%s: check its key and caps",
                          url->id);
    if (rc == -ENOENT)
        return wt_err_set(err, WT_EDOWN, "client.%s has no key here: check keyring=FILE in the URL",
                          url->id);
    int code = rados_error(err, rc, "connecting");
    return code;
}

static int open_pool(struct rados_conn *conn, const struct rados_url *url, struct wt_err *err) {
    int rc = rados_ioctx_create(conn->cluster, url->pool, &conn->io);
    if (rc == -ENOENT)
        return wt_err_set(err, WT_EDOWN, "pool \"%s\" does not exist: ceph osd pool create %s",
                          url->pool, url->pool);
    if (rc < 0)
        return rados_error(err, rc, "opening the pool");
    rados_ioctx_set_namespace(conn->io, url->nspace);
    conn->pool = rados_ioctx_get_id(conn->io);
    return 0;
}

static void shut(struct rados_conn *conn) {
    if (conn->io)
        rados_ioctx_destroy(conn->io);
    if (conn->cluster)
        rados_shutdown(conn->cluster);
    free(conn);
}

int rados_conn_open(const struct rados_url *url, unsigned op_timeout, struct rados_conn **out,
                    struct wt_err *err) {
    char name[RADOS_NAME_SIZE + 8];
    struct rados_conn *conn = calloc(1, sizeof *conn);
    if (!conn)
        return wt_err_set(err, WT_ENOMEM, "out of memory for a connection");
    atomic_init(&conn->refs, 1);
    snprintf(name, sizeof name, "client.%s", url->id);
    int rc = rados_create2(&conn->cluster, url->cluster, name, 0);
    if (rc < 0) {
        free(conn);
        return rados_error(err, rc, "creating a client");
    }
    rc = configure(conn->cluster, url, op_timeout, err);
    if (rc == 0) {
        rc = rados_connect(conn->cluster);
        if (rc < 0)
            rc = connect_error(err, rc, url);
    }
    if (rc == 0)
        rc = open_pool(conn, url, err);
    if (rc < 0)
        shut(conn);
    else
        *out = conn;
    return rc;
}

void rados_conn_ref(struct rados_conn *conn) {
    atomic_fetch_add(&conn->refs, 1);
}

void rados_conn_unref(struct rados_conn *conn) {
    if (conn && atomic_fetch_sub(&conn->refs, 1) == 1)
        shut(conn);
}

int rados_conn_check_pool(struct rados_conn *conn, const struct rados_url *url,
                          struct wt_err *err) {
    int64_t id = rados_pool_lookup(conn->cluster, url->pool);
    if (id == conn->pool)
        return 0;
    if (id >= 0 || id == -ENOENT)
        return wt_err_set(err, WT_EDOWN, "pool \"%s\" %s", url->pool,
                          id >= 0 ? "was made anew" : "does not exist any more");
    return rados_error(err, (int)id, "asking for the pool");
}
