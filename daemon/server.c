/* libmicrohttpd on a uv loop; see server.h. */
#include "daemon/server.h"

#include <unistd.h>

#define PRIORITIES "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

enum { CONNECTION_BYTES = 32 << 10 };

/* At the connection limit MHD stops listening, and begins again in the run *after* the one in which
 * a connection went. */
static void on_connection(void *arg, struct MHD_Connection *connection, void **con,
                          enum MHD_ConnectionNotificationCode what) {
    struct wt_server *s = arg;
    (void)connection;
    (void)con;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED)
        s->again = true;
}

static void on_timer(uv_timer_t *timer);

static void run(struct wt_server *s) {
    MHD_UNSIGNED_LONG_LONG ms = 0;
    s->again = false;
    MHD_run(s->mhd);
    if (s->again)
        uv_timer_start(&s->timer, on_timer, 0, 0);
    else if (MHD_get_timeout(s->mhd, &ms) == MHD_YES)
        uv_timer_start(&s->timer, on_timer, ms, 0);
    else
        uv_timer_stop(&s->timer);
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
    if (!s->stopping)
        uv_timer_start(&s->timer, on_timer, 0, 0);
}

unsigned wt_server_connections(const struct wt_server *s) {
    const union MHD_DaemonInfo *info =
        s->mhd ? MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS) : NULL;
    return info ? info->num_connections : 0;
}

static struct MHD_Daemon *start_mhd(struct wt_server *s, const struct wt_server_opts *o) {
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)o->cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)o->key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)PRIORITIES},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (o->cert ? MHD_USE_TLS : 0);
    return MHD_start_daemon(
        flags, 0, NULL, NULL, o->request, o->arg, MHD_OPTION_LISTEN_SOCKET, o->fd,
        MHD_OPTION_CONNECTION_LIMIT, o->connections, MHD_OPTION_CONNECTION_TIMEOUT, o->idle_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, s, MHD_OPTION_NOTIFY_COMPLETED, o->completed, o->arg, MHD_OPTION_ARRAY,
        o->cert ? tls : none, MHD_OPTION_END);
}

int wt_server_start(struct wt_server *s, uv_loop_t *loop, const struct wt_server_opts *opts,
                    struct wt_err *err) {
    *s = (struct wt_server){.mhd = start_mhd(s, opts)};
    const union MHD_DaemonInfo *info =
        s->mhd ? MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info || uv_poll_init(loop, &s->poll, info->epoll_fd) < 0) {
        if (s->mhd)
            MHD_stop_daemon(s->mhd); /* closes the socket */
        else
            close(opts->fd);
        s->mhd = NULL;
        return wt_err_set(err, WT_ESYSTEM, "%s: the HTTP server does not start%s", opts->what,
                          opts->cert ? "; is the key the certificate's?" : "");
    }
    uv_timer_init(loop, &s->timer);
    s->poll.data = s->timer.data = s;
    s->open = 2;
    uv_poll_start(&s->poll, UV_READABLE, on_poll);
    return 0;
}

static void on_closed(uv_handle_t *h) {
    struct wt_server *s = h->data;
    if (--s->open > 0)
        return;
    MHD_stop_daemon(s->mhd);
    s->mhd = NULL;
    s->closed(s->closed_arg); /* may free s */
}

void wt_server_stop(struct wt_server *s, void (*closed)(void *arg), void *arg) {
    s->stopping = true;
    s->closed = closed;
    s->closed_arg = arg;
    MHD_run(s->mhd); /* one run takes back what was resumed, the next sends */
    MHD_run(s->mhd);
    uv_poll_stop(&s->poll);
    uv_close((uv_handle_t *)&s->poll, on_closed);
    uv_close((uv_handle_t *)&s->timer, on_closed);
}
