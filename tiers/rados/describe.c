/*
 * What the cluster tells of itself, for people: its id, its version, ours. The monitors are asked
 * for their version, which blocks until rados_mon_op_timeout (conn.c) at most; a client without the
 * right to ask gets the rest.
 */
#include "core/json.h"
#include "tiers/rados/internal.h"

#include <jansson.h>
#include <stdio.h>

static void tell_version(struct rados_conn *conn, wt_fact_fn fact, void *arg) {
    const char *cmd[] = {"{\"prefix\":\"version\",\"format\":\"json\"}"};
    char *out = NULL, *status = NULL;
    size_t out_len = 0, status_len = 0;
    int rc = rados_mon_command(conn->cluster, cmd, 1, "", 0, &out, &out_len, &status, &status_len);
    json_t *root = NULL;
    if (rc == 0)
        wt_json_load(out, out_len, 0, &root, NULL);
    const char *version = json_string_value(json_object_get(root, "version"));
    if (version) { /* "ceph version 16.2.15 (hash) pacific (stable)" */
        char text[64], number[32] = "", name[32] = "";
        if (sscanf(version, "ceph version %31s %*s %31s", number, name) < 1)
            snprintf(number, sizeof number, "%.31s", version);
        snprintf(text, sizeof text, "Ceph %.20s %.20s", number, name);
        fact(arg, "", "server", text);
    }
    json_decref(root);
    rados_buffer_free(out);
    rados_buffer_free(status);
}

void rados_describe(struct wt_tier *tier, wt_fact_fn fact, void *arg) {
    const struct rados_client *c = wt_backend_state(tier);
    char text[64];
    int major, minor, extra;
    rados_version(&major, &minor, &extra);
    snprintf(text, sizeof text, "librados %d.%d.%d", major, minor, extra);
    fact(arg, "", "client", text);
    if (c->state != RADOS_ON || !c->conn)
        return;
    if (rados_cluster_fsid(c->conn->cluster, text, sizeof text) >= 0)
        fact(arg, "", "cluster", text);
    tell_version(c->conn, fact, arg);
}
