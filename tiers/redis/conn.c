/*
 * The life of a connection: resolve -> connect -> TLS -> greeting (hello.c) -> ready -> lost ->
 * again.
 *
 * Happy path: connections are opened in the background as soon as a server is known, and kept.
 * Failures: each step has RDS_CONNECT_MS in all; a lost connection sends its commands to another
 * one (once; those that must not be repeated end with WT_EDOWN) and comes back, at once after a
 * good life, else after 20, 40 ... 1000 ms. A dropped command whose reply does not come within
 * RDS_ABANDON_MS ends the connection.
 */
#include "tiers/redis/internal.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { KEEPALIVE_S = 5, DEAD_PEER_MS = 15000, GOOD_LIFE_MS = 1000, LOSSES_MAX = 2 };

struct rds_resolve {
    uv_getaddrinfo_t req;
    struct rds_conn *conn; /* NULL: nobody waits any more */
    struct rds *r;
};

static void on_timer(uv_timer_t *timer);
static void connect_next(struct rds_conn *conn);

struct rds_conn *rds_conn_new(struct rds_node *node) {
    struct rds_conn *conn = calloc(1, sizeof *conn);
    if (!conn)
        return NULL;
    conn->node = node;
    conn->fd = -1;
    uv_timer_init(node->r->loop, &conn->timer);
    conn->timer.data = conn;
    node->r->handles++;
    return conn;
}

/* ---- the socket and its poll handle ---- */

static void on_poll_closed(uv_handle_t *handle) {
    struct rds *r = handle->data;
    free(handle);
    rds_handle_closed(r);
}

static void drop_socket(struct rds_conn *conn) {
    rds_tls_free(conn->tls);
    conn->tls = NULL;
    if (conn->poll) {
        conn->poll->data = conn->node->r;
        uv_close((uv_handle_t *)conn->poll, on_poll_closed);
        conn->poll = NULL;
    }
    if (conn->fd >= 0)
        close(conn->fd);
    conn->fd = -1;
    conn->events = 0;
}

/* Everything of this connection but its commands. */
static void tear_down(struct rds_conn *conn) {
    uv_timer_stop(&conn->timer);
    drop_socket(conn);
    if (conn->resolve) {
        uv_cancel((uv_req_t *)&conn->resolve->req);
        conn->resolve->conn = NULL;
        conn->resolve = NULL;
    }
    if (conn->addrs)
        freeaddrinfo(conn->addrs);
    conn->addrs = conn->addr = NULL;
    if (conn->reader)
        redisReaderFree(conn->reader);
    conn->reader = NULL;
    conn->state = CONN_IDLE;
    conn->fed = conn->body_left = conn->in_pos = conn->in_len = 0;
    conn->in_body = false;
    conn->doom.code = 0;
}

static void on_poll(uv_poll_t *poll, int status, int events);

void rds_conn_poll(struct rds_conn *conn) {
    int events = UV_READABLE;
    if (conn->state == CONN_CONNECTING)
        events = UV_WRITABLE;
    else if (conn->writing || (conn->tls && rds_tls_wants_write(conn->tls)))
        events |= UV_WRITABLE;
    if (events == conn->events)
        return;
    conn->events = events;
    uv_poll_start(conn->poll, events, on_poll);
}

static void hand_shake(struct rds_conn *conn) {
    struct wt_err why;
    int rc = rds_tls_handshake(conn->tls, &why);
    if (rc > 0)
        rds_conn_on_connected(conn);
    else if (rc < 0)
        rds_conn_lost(conn, &why);
    else
        rds_conn_poll(conn);
}

/* The TCP connection stands: TLS, or the greeting. */
static void on_socket(struct rds_conn *conn) {
    int sys = 0;
    socklen_t len = sizeof sys;
    getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &sys, &len);
    if (sys) {
        struct wt_err why;
        if (conn->addr && conn->addr->ai_next) {
            conn->addr = conn->addr->ai_next;
            connect_next(conn);
            return;
        }
        wt_err_sys(&why, sys, "cannot connect");
        why.code = WT_EDOWN;
        rds_conn_lost(conn, &why);
        return;
    }
    if (!conn->node->r->tls) {
        rds_conn_on_connected(conn);
        return;
    }
    conn->state = CONN_TLS;
    conn->tls = rds_tls_new(conn->node->r->tls, conn->fd, conn->node->addr.host);
    if (conn->tls) {
        hand_shake(conn);
    } else {
        struct wt_err why;
        wt_err_set(&why, WT_ENOMEM, "out of memory for TLS");
        rds_conn_lost(conn, &why);
    }
}

static void exchange(struct rds_conn *conn, int events) {
    struct wt_err why;
    int rc = 0;
    if (events & (UV_READABLE | UV_DISCONNECT) || conn->tls)
        rc = rds_conn_read(conn, &why);
    if (rc == 0 && conn->writing)
        rc = rds_conn_write(conn, &why);
    if (rc < 0)
        rds_conn_lost(conn, &why);
    else
        rds_conn_poll(conn);
}

static void on_poll(uv_poll_t *poll, int status, int events) {
    struct rds_conn *conn = poll->data;
    /* An error of the descriptor: reading tells which. */
    if (status < 0)
        events = UV_READABLE;
    switch (conn->state) {
    case CONN_CONNECTING:
        on_socket(conn);
        break;
    case CONN_TLS:
        hand_shake(conn);
        break;
    case CONN_GREETING:
    case CONN_READY:
        exchange(conn, events);
        break;
    default:
        break;
    }
}

/* ---- connecting ---- */

static void set_options(int fd) {
    int on = 1, idle = KEEPALIVE_S, dead = DEAD_PEER_MS;
    /* All of these only help: a failure changes nothing that matters. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead, sizeof dead);
}

/* 0, or an errno. */
static int open_socket(struct rds_conn *conn, int family, const struct sockaddr *addr,
                       socklen_t len) {
    drop_socket(conn);
    conn->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (conn->fd < 0)
        return errno;
    if (family != AF_UNIX)
        set_options(conn->fd);
    if (connect(conn->fd, addr, len) < 0 && errno != EINPROGRESS)
        return errno;
    conn->poll = malloc(sizeof *conn->poll);
    if (!conn->poll)
        return ENOMEM;
    int rc = uv_poll_init_socket(conn->node->r->loop, conn->poll, conn->fd);
    if (rc < 0) {
        free(conn->poll);
        conn->poll = NULL;
        return -rc;
    }
    conn->poll->data = conn;
    conn->node->r->handles++;
    conn->state = CONN_CONNECTING;
    rds_conn_poll(conn);
    return 0;
}

static void cannot_connect(struct rds_conn *conn, int sys) {
    struct wt_err why;
    wt_err_sys(&why, sys, "cannot connect");
    if (sys != EACCES && sys != EPERM) /* no such socket, refused...: away */
        why.code = WT_EDOWN;
    rds_conn_lost(conn, &why);
}

static void connect_next(struct rds_conn *conn) {
    int sys = EADDRNOTAVAIL;
    for (; conn->addr; conn->addr = conn->addr->ai_next) {
        sys = open_socket(conn, conn->addr->ai_family, conn->addr->ai_addr, conn->addr->ai_addrlen);
        if (sys == 0)
            return;
    }
    cannot_connect(conn, sys);
}

static void resolved(struct rds_conn *conn, int rc, struct addrinfo *list) {
    if (rc == 0) {
        conn->addrs = conn->addr = list;
        connect_next(conn);
        return;
    }
    struct wt_err why;
    wt_err_set(&why, WT_EDOWN, "cannot resolve the host name: %s", uv_strerror(rc));
    rds_conn_lost(conn, &why);
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *list) {
    struct rds_resolve *resolve = req->data;
    struct rds_conn *conn = resolve->conn;
    struct rds *r = resolve->r;
    free(resolve);
    if (conn) {
        conn->resolve = NULL;
        resolved(conn, status, list);
    } else {
        uv_freeaddrinfo(list);
    }
    rds_handle_closed(r);
}

/* Addresses at once, names in the background. */
static void resolve(struct rds_conn *conn) {
    struct rds *r = conn->node->r;
    char port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *list;
    snprintf(port, sizeof port, "%u", conn->node->addr.port);
    if (getaddrinfo(conn->node->addr.host, port, &hints, &list) == 0) {
        resolved(conn, 0, list);
        return;
    }
    struct rds_resolve *res = calloc(1, sizeof *res);
    hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
    int rc = UV_ENOMEM;
    if (res) {
        *res = (struct rds_resolve){.conn = conn, .r = r};
        res->req.data = res;
        rc = uv_getaddrinfo(r->loop, &res->req, on_resolved, conn->node->addr.host, port, &hints);
    }
    if (rc < 0) {
        free(res);
        resolved(conn, rc, NULL);
        return;
    }
    r->handles++;
    conn->resolve = res;
}

void rds_conn_start(struct rds_conn *conn) {
    const struct rds_addr *addr = &conn->node->addr;
    if (conn->node->r->closing)
        return;
    conn->state = CONN_RESOLVING;
    uv_timer_start(&conn->timer, on_timer, RDS_CONNECT_MS, 0);
    if (addr->port) {
        resolve(conn);
        return;
    }
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    memcpy(un.sun_path, addr->host, strnlen(addr->host, sizeof un.sun_path - 1));
    int sys = open_socket(conn, AF_UNIX, (const struct sockaddr *)&un, sizeof un);
    if (sys)
        cannot_connect(conn, sys);
}

void rds_conn_on_connected(struct rds_conn *conn) {
    struct wt_err why;
    conn->state = CONN_GREETING;
    conn->reader = rds_reader_new(&conn->reader_fn);
    int rc = conn->reader ? rds_conn_greet(conn, &why)
                          : wt_err_set(&why, WT_ENOMEM, "out of memory for a connection");
    if (rc == 0)
        rc = rds_conn_write(conn, &why);
    if (rc < 0)
        rds_conn_lost(conn, &why);
    else
        rds_conn_poll(conn);
}

/* ---- the end, and again ---- */

/* What becomes of a command whose connection is gone. */
static void salvage(struct rds_cmd *cmd, bool begun, const struct wt_err *why) {
    if (!cmd->done || cmd->greeting) {
        cmd->done = NULL;
        rds_cmd_end(cmd);
    } else if (begun && (cmd->once || ++cmd->losses >= LOSSES_MAX)) {
        rds_cmd_fail(cmd, why);
    } else {
        rds_cmd_rewind(cmd);
        rds_cmd_route(cmd);
    }
}

/* One that was ready comes back at once, but not twice in a short time. */
static void come_back(struct rds_conn *conn, bool was_ready, bool was_good) {
    if (conn->node->r->closing || !rds_node_wanted(conn->node))
        return;
    if (was_good || (was_ready && !conn->hasty)) {
        conn->hasty = !was_good;
        conn->backoff_ms = 0;
        rds_conn_start(conn);
        return;
    }
    uint32_t next = conn->backoff_ms ? conn->backoff_ms * 2 : RDS_BACKOFF_MS;
    conn->backoff_ms = next < RDS_BACKOFF_MAX_MS ? next : RDS_BACKOFF_MAX_MS;
    uv_timer_start(&conn->timer, on_timer, conn->backoff_ms, 0);
}

void rds_conn_lost(struct rds_conn *conn, const struct wt_err *reason) {
    struct rds *r = conn->node->r;
    struct wt_err why = *reason;
    wt_err_wrap(&why, "%s", conn->node->name);
    why.code =
        WT_EDOWN; /* a refused password too: nothing can be done here until it is put right */
    bool was_ready = conn->state == CONN_READY;
    bool was_good = was_ready && rds_now(r) - conn->ready_ms >= GOOD_LIFE_MS;
    struct rds_cmd *writing = conn->writing;
    size_t write_off = conn->write_off;
    struct rds_queue sent = {0};
    rds_queue_move(&conn->sent, &sent);
    conn->writing = NULL;
    conn->write_off = 0;
    conn->bulks = conn->greetings = 0;
    for (struct rds_cmd *cmd = sent.first; cmd; cmd = cmd->next)
        cmd->conn = NULL;
    tear_down(conn);
    wt_log(r->log, was_ready ? WT_LOG_INFO : WT_LOG_DEBUG, "redis %s", why.text);
    come_back(conn, was_ready, was_good);
    bool begun = true;
    while (sent.first) {
        if (sent.first == writing)
            begun = write_off > 0;
        bool this_begun = begun;
        if (sent.first == writing)
            begun = false;
        salvage(sent.first, this_begun, &why);
    }
    rds_node_failed(conn->node, &why);
}

static void on_conn_timer_closed(uv_handle_t *handle) {
    struct rds_conn *conn = handle->data;
    rds_handle_closed(conn->node->r);
}

void rds_conn_close(struct rds_conn *conn) {
    struct rds_queue sent = {0};
    rds_queue_move(&conn->sent, &sent);
    conn->writing = NULL;
    tear_down(conn);
    while (sent.first) {
        sent.first->done = NULL;
        rds_cmd_end(sent.first);
    }
    uv_close((uv_handle_t *)&conn->timer, on_conn_timer_closed);
}

/* ---- dropped commands ---- */

static bool comes_before(const struct rds_cmd *cmd, const struct rds_cmd *other) {
    for (; cmd; cmd = cmd->next)
        if (cmd == other)
            return true;
    return false;
}

/* Not a byte of it is written. */
static bool is_unsent(const struct rds_conn *conn, const struct rds_cmd *cmd) {
    if (!conn->writing)
        return false;
    if (cmd == conn->writing)
        return conn->write_off == 0;
    return !comes_before(cmd, conn->writing);
}

bool rds_conn_keeps(struct rds_conn *conn, struct rds_cmd *cmd) {
    if (is_unsent(conn, cmd)) {
        if (conn->writing == cmd)
            conn->writing = cmd->next;
        conn->bulks -= cmd->lane == RDS_BULK;
        return false;
    }
    if (cmd == conn->writing && cmd->body && !cmd->body_copy) {
        /* The rest of it goes out from memory of our own. */
        cmd->body_copy = malloc(cmd->body_len);
        if (cmd->body_copy)
            memcpy(cmd->body_copy, cmd->body, cmd->body_len);
        else
            shutdown(conn->fd, SHUT_RDWR); /* out of memory: the next write ends the connection */
        cmd->body = cmd->body_copy;
    }
    cmd->due_ms = rds_now(conn->node->r) + RDS_ABANDON_MS;
    if (conn->state == CONN_READY && !uv_is_active((uv_handle_t *)&conn->timer))
        uv_timer_start(&conn->timer, on_timer, RDS_ABANDON_MS, 0);
    return true;
}

/* Replies come in order: the first dropped one is the oldest that is still awaited. */
static void check_dropped(struct rds_conn *conn) {
    uint64_t now = rds_now(conn->node->r), next = UINT64_MAX;
    for (struct rds_cmd *cmd = conn->sent.first; cmd; cmd = cmd->next)
        if (!cmd->done && !cmd->greeting && cmd->due_ms < next)
            next = cmd->due_ms;
    if (next <= now) {
        struct wt_err why;
        wt_err_set(&why, WT_EDOWN, "no answer to a command that ran out of time");
        rds_conn_lost(conn, &why);
    } else if (next != UINT64_MAX) {
        uv_timer_start(&conn->timer, on_timer, next - now, 0);
    }
}

static void on_timer(uv_timer_t *timer) {
    struct rds_conn *conn = timer->data;
    struct wt_err why;
    switch (conn->state) {
    case CONN_IDLE:
        rds_conn_start(conn);
        break;
    case CONN_READY:
        check_dropped(conn);
        break;
    default:
        wt_err_set(&why, WT_EDOWN, "no connection within %d ms", RDS_CONNECT_MS);
        rds_conn_lost(conn, &why);
        break;
    }
}
