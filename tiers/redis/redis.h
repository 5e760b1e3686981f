/*
 * The Redis backend: objects as values in a Redis server or cluster, for the hot tier.
 *
 *   redis://[user:password@]HOST[:PORT][/DB]     one server
 *   rediss://[user:password@]HOST[:PORT][/DB]    the same over TLS, verified
 *   redis+unix:///PATH[?db=N]                    a Unix socket
 *   redis+cluster://HOST:PORT,HOST:PORT,...      a cluster; any of its nodes
 *
 * Parameters (?a=1&b=2): user, password_file, password_env, db, connections (per server, 2), depth
 * (values in flight per connection, 2), verify=1 (check the crc32c of whole chunks: shards have
 * sums of their own, which their readers check), cacert, cert, key (PEM files), tls_verify=0 (any
 * certificate will do), tls=1 (cluster over TLS).
 *
 * What is kept where: head.h. How requests become commands: get.c, put.c, remove.c, list.c,
 * usage.c. How commands reach a server: cmd.c (life), node.c (servers), cluster.c (slots), conn.c
 * and io.c (connections), tls.c.
 */
#ifndef WT_TIERS_REDIS_REDIS_H
#define WT_TIERS_REDIS_REDIS_H

#include "tiers/backend.h"

extern const struct wt_backend wt_backend_redis;
extern const struct wt_backend wt_backend_rediss;
extern const struct wt_backend wt_backend_redis_unix;
extern const struct wt_backend wt_backend_redis_cluster;

#endif
