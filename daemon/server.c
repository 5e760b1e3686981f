/* libmicrohttpd on a uv loop; see server.h. */
#include "daemon/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define PRIORITIES "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

enum { CONNECTION_BYTES = 32 << 10, ENGINES_MAX = 4 };

struct wt_server_engine {          /* an MHD daemon in the loop */
    struct wt_server_engine *next; /* older */
    struct wt_server *server;
    uv_poll_t poll;
    uv_timer_t timer;
    unsigned open; /* handles */
    struct MHD_Daemon *mhd;
    bool again, closing;
};

/* At the connection limit MHD stops listening, and begins again in the run *after* the one in which
 * a connection went. */
static void on_connection(void *arg, struct MHD_Connection *connection, void **con,
                          enum MHD_ConnectionNotificationCode what) {
    struct wt_server_engine *e = arg;
    (void)connection;
    (void)con;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED)
        e->again = true;
}

static unsigned connections(const struct wt_server_engine *e) {
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(e->mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info ? info->num_connections : 0;
}

static void close_engine(struct wt_server_engine *e);
static void on_timer(uv_timer_t *timer);

static void run(struct wt_server_engine *e) {
    MHD_UNSIGNED_LONG_LONG ms = 0;
    e->again = false;
    MHD_run(e->mhd);
    if (e != e->server->first && connections(e) == 0)
        close_engine(e);
    else if (e->again)
        uv_timer_start(&e->timer, on_timer, 0, 0);
    else if (MHD_get_timeout(e->mhd, &ms) == MHD_YES)
        uv_timer_start(&e->timer, on_timer, ms, 0);
    else
        uv_timer_stop(&e->timer);
}

static void on_timer(uv_timer_t *timer) {
    run(timer->data);
}

static void on_poll(uv_poll_t *poll, int status, int events) {
    (void)status;
    (void)events;
    run(poll->data);
}

void wt_server_kick(struct wt_server *s) {
    for (struct wt_server_engine *e = s->first; e && !s->stopping; e = e->next)
        if (!e->closing)
            uv_timer_start(&e->timer, on_timer, 0, 0);
}

unsigned wt_server_connections(const struct wt_server *s) {
    unsigned n = 0;
    for (const struct wt_server_engine *e = s->first; e; e = e->next)
        n += connections(e);
    return n;
}

/* ---- engines ---- */

/* fd is MHD's from now on, also on failure. */
static struct MHD_Daemon *start_mhd(struct wt_server_engine *e, int fd, const char *cert,
                                    const char *key) {
    const struct wt_server_opts *o = &e->server->o;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)PRIORITIES},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (cert ? MHD_USE_TLS : 0);
    struct MHD_Daemon *mhd = MHD_start_daemon(
        flags, 0, NULL, NULL, o->request, o->arg, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, o->connections, MHD_OPTION_CONNECTION_TIMEOUT, o->idle_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, e, MHD_OPTION_NOTIFY_COMPLETED, o->completed, o->arg, MHD_OPTION_ARRAY,
        cert ? tls : none, MHD_OPTION_END);
    if (!mhd)
        close(fd);
    return mhd;
}

static int no_start(const struct wt_server *s, const char *cert, struct wt_err *err) {
    return wt_err_set(err, WT_ESYSTEM, "%s: the HTTP server does not start%s", s->o.what,
                      cert ? "; is the key the certificate's?" : "");
}

/* The new one stands first. */
static int start_engine(struct wt_server *s, int fd, const char *cert, const char *key,
                        struct wt_err *err) {
    struct wt_server_engine *e = calloc(1, sizeof *e);
    if (!e) {
        close(fd);
        return wt_err_set(err, WT_ENOMEM, "%s: out of memory", s->o.what);
    }
    e->server = s;
    e->mhd = start_mhd(e, fd, cert, key);
    const union MHD_DaemonInfo *info =
        e->mhd ? MHD_get_daemon_info(e->mhd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info || uv_poll_init(s->loop, &e->poll, info->epoll_fd) < 0) {
        if (e->mhd)
            MHD_stop_daemon(e->mhd); /* closes the socket */
        free(e);
        return no_start(s, cert, err);
    }
    uv_timer_init(s->loop, &e->timer);
    e->poll.data = e->timer.data = e;
    e->open = 2;
    uv_poll_start(&e->poll, UV_READABLE, on_poll);
    e->next = s->first;
    s->first = e;
    s->fd = fd;
    return 0;
}

static void on_closed(uv_handle_t *h) {
    struct wt_server_engine *e = h->data;
    struct wt_server *s = e->server;
    if (--e->open > 0)
        return;
    MHD_stop_daemon(e->mhd);
    for (struct wt_server_engine **at = &s->first; *at; at = &(*at)->next)
        if (*at == e) {
            *at = e->next;
            break;
        }
    free(e);
    if (!s->first)
        s->closed(s->closed_arg); /* may free s */
}

static void close_engine(struct wt_server_engine *e) {
    if (e->closing)
        return;
    e->closing = true;
    uv_poll_stop(&e->poll);
    uv_close((uv_handle_t *)&e->poll, on_closed);
    uv_close((uv_handle_t *)&e->timer, on_closed);
}

/* ---- the server ---- */

int wt_server_start(struct wt_server *s, uv_loop_t *loop, const struct wt_server_opts *opts,
                    struct wt_err *err) {
    *s = (struct wt_server){.loop = loop, .o = *opts};
    s->o.cert = s->o.key = NULL; /* the caller's */
    return start_engine(s, opts->fd, opts->cert, opts->key, err);
}

int wt_server_renew(struct wt_server *s, const char *cert, const char *key, struct wt_err *err) {
    struct wt_server_engine *old = s->first;
    unsigned n = 0;
    for (const struct wt_server_engine *e = old; e; e = e->next)
        n++;
    if (n >= ENGINES_MAX)
        return wt_err_set(err, WT_EBUSY,
                          "%s: connections with %u older certificates are still open; try later",
                          s->o.what, n - 1);
    int fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return wt_err_sys(err, errno, "%s: no further descriptor", s->o.what);
    int rc = start_engine(s, fd, cert, key, err);
    if (rc < 0)
        return rc;
    MHD_socket listening = MHD_quiesce_daemon(old->mhd);
    if (listening != MHD_INVALID_SOCKET)
        close(listening);
    wt_server_kick(s); /* the old one may have no connection left */
    return 0;
}

void wt_server_stop(struct wt_server *s, void (*closed)(void *arg), void *arg) {
    s->stopping = true;
    s->closed = closed;
    s->closed_arg = arg;
    for (struct wt_server_engine *e = s->first; e; e = e->next) {
        MHD_run(e->mhd); /* one run takes back what was resumed, the next sends */
        MHD_run(e->mhd);
        close_engine(e);
    }
}
