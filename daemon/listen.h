/*
 * A listening Unix socket with mode and group, and who is at the other end of a connection.
 *
 * Happy path: bind, chmod, chown, listen. Failures: somebody listens there (WT_EBUSY); the folder,
 * the group or the rights (named). A socket file that nobody listens on is what a killed daemon
 * left: it is replaced; another kind of file is not.
 */
#ifndef WT_DAEMON_LISTEN_H
#define WT_DAEMON_LISTEN_H

#include "core/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct wt_listen {
    int fd;
    gid_t group; /* whose members may change things */
};

int wt_listen_open(struct wt_listen *l, const char *path, unsigned mode, const char *group,
                   struct wt_err *err);
/* The peer of a connection is root, the daemon's user, or a member of the group. */
bool wt_listen_may_change(const struct wt_listen *l, int connection);

#endif
