/* The control socket itself; see listen.h. */
#include "daemon/listen.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 64, GROUPS_MAX = 65536 };

static int find_group(const char *name, gid_t *group, struct wt_err *err) {
    *group = getegid();
    if (name[0] == '\0')
        return 0;
    char buf[4096];
    struct group entry, *found = NULL;
    int rc = getgrnam_r(name, &entry, buf, sizeof buf, &found);
    if (!found)
        return rc ? wt_err_sys(err, rc, "control_group '%s' cannot be looked up", name)
                  : wt_err_set(
                        err, WT_EINVAL,
                        "control_group '%s' does not exist; create it or leave the option empty",
                        name);
    *group = found->gr_gid;
    return 0;
}

/* Does somebody answer at the address? */
static bool is_live(const struct sockaddr_un *at) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return true; /* cannot tell: leave it alone */
    bool live = connect(fd, (const struct sockaddr *)at, sizeof *at) == 0 ||
                (errno != ECONNREFUSED && errno != ENOENT);
    close(fd);
    return live;
}

static int clear_path(const struct sockaddr_un *at, struct wt_err *err) {
    struct stat st;
    if (lstat(at->sun_path, &st) < 0)
        return errno == ENOENT ? 0 : wt_err_sys(err, errno, "control socket %s", at->sun_path);
    if (!S_ISSOCK(st.st_mode))
        return wt_err_set(err, WT_EEXISTS,
                          "control socket %s: a file that is no socket stands there; remove it",
                          at->sun_path);
    if (is_live(at))
        return wt_err_set(err, WT_EBUSY, "control socket %s: another daemon listens there",
                          at->sun_path);
    if (unlink(at->sun_path) < 0)
        return wt_err_sys(err, errno, "control socket %s: the old one cannot be removed",
                          at->sun_path);
    return 0;
}

static int bind_socket(int fd, const struct sockaddr_un *at, unsigned mode, gid_t group,
                       struct wt_err *err) {
    mode_t old = umask(0177); /* nobody gets in before mode and group are right */
    int rc = bind(fd, (const struct sockaddr *)at, sizeof *at);
    int saved = errno;
    umask(old);
    if (rc < 0)
        return wt_err_sys(err, saved, "control socket %s cannot be made", at->sun_path);
    if (group != getegid() && chown(at->sun_path, (uid_t)-1, group) < 0)
        return wt_err_sys(err, errno, "control socket %s: its group cannot be set", at->sun_path);
    if (chmod(at->sun_path, mode) < 0)
        return wt_err_sys(err, errno, "control socket %s: its mode cannot be set", at->sun_path);
    return listen(fd, BACKLOG) < 0 ? wt_err_sys(err, errno, "control socket %s", at->sun_path) : 0;
}

int wt_listen_open(struct wt_listen *l, const char *path, unsigned mode, const char *group,
                   struct wt_err *err) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    gid_t gid;
    if (strlen(path) >= sizeof at.sun_path)
        return wt_err_set(err, WT_EINVAL, "control socket %s: the path is too long", path);
    memcpy(at.sun_path, path, strlen(path) + 1);
    int rc = find_group(group, &gid, err);
    if (rc == 0)
        rc = clear_path(&at, err);
    if (rc < 0)
        return rc;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return wt_err_sys(err, errno, "control socket %s", path);
    rc = bind_socket(fd, &at, mode, gid, err);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    *l = (struct wt_listen){.fd = fd, .group = gid};
    return 0;
}

static bool in_group(int connection, gid_t group) {
    socklen_t len = GROUPS_MAX * sizeof(gid_t);
    gid_t *groups = malloc(len);
    bool in = false;
    if (groups && getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, groups, &len) == 0)
        for (size_t i = 0; i < len / sizeof(gid_t) && !in; i++)
            in = groups[i] == group;
    free(groups);
    return in;
}

bool wt_listen_may_change(const struct wt_listen *l, int connection) {
    struct ucred peer;
    socklen_t len = sizeof peer;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return false;
    return peer.uid == 0 || peer.uid == geteuid() || peer.gid == l->group ||
           in_group(connection, l->group);
}
