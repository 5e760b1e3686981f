/*
 * Leases of registered jobs: a record in the cold tier for each generation that jobs read, so that
 * `wafertier gc` keeps it (core/lease.h). A job whose own credentials can only read, or which runs
 * on another host, is thereby held by its registration.
 *
 * Happy path: at a tick, a generation that got its first job is leased; the record is written anew
 * at a third of its life, and removed when the last job has gone. One request at a time. Failures:
 * told once in the log, tried again; a daemon that is killed leaves records that expire.
 */
#ifndef WT_DAEMON_LEASES_H
#define WT_DAEMON_LEASES_H

#include "core/log.h"
#include "daemon/catalog.h"

#include <uv.h>

enum { WT_LEASE_LIFE_S = 600 };

struct wt_leases;
struct wt_leases *wt_leases_new(uv_loop_t *loop, struct wt_tier *cold,
                                const struct wt_catalog *catalog, const struct wt_log *log);
/* At each tick while the lock is held. */
void wt_leases_look(struct wt_leases *ls);
size_t wt_leases_count(const struct wt_leases *ls);
/* `stopped` is called (perhaps at once) when no request runs; then free. Records stay: the jobs go
 * on, and the next daemon takes them over. */
void wt_leases_stop(struct wt_leases *ls, void (*stopped)(void *arg), void *arg);
void wt_leases_free(struct wt_leases *ls);

#endif
