/*
 * Bytes of a connection: commands out, replies in.
 *
 * Happy path: commands that wait are gathered into one sendmsg; bodies of SET go out from the
 * caller's memory, bodies of GET are read straight into it, together with the line that follows.
 * Replies that are not bodies go to hiredis. Failures: the end of the stream, an errno, or a reply
 * that is not one: the connection is lost. A dropped command has no sink: its body is read and
 * thrown away.
 */
#include "tiers/redis/internal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { IOV_MAX_OUT = 48, LOOKAHEAD = 1024, LINE_MAX_LEN = 64, FLOWING = 16 << 10 };

static const char asking[] = "*1\r\n$6\r\nASKING\r\n";

/* ---- out ---- */

void rds_conn_take(struct rds_conn *conn, struct rds_cmd *cmd) {
    cmd->conn = conn;
    cmd->skip = cmd->asking;
    rds_queue_add(&conn->sent, cmd);
    conn->bulks += cmd->lane == RDS_BULK;
    if (!conn->writing)
        conn->writing = cmd;
}

struct gather {
    struct iovec iov[IOV_MAX_OUT];
    int n;
    size_t skip; /* of the first command's bytes: written already */
};

static void gather_add(struct gather *g, const void *data, size_t len) {
    if (g->skip >= len) {
        g->skip -= len;
        return;
    }
    g->iov[g->n++] = (struct iovec){(char *)data + g->skip, len - g->skip};
    g->skip = 0;
}

static size_t cmd_size(const struct rds_cmd *cmd) {
    return (cmd->asking ? sizeof asking - 1 : 0) + cmd->text_len +
           (cmd->body ? cmd->body_len + 2 : 0);
}

static void gather_cmd(struct gather *g, const struct rds_cmd *cmd) {
    if (cmd->asking)
        gather_add(g, asking, sizeof asking - 1);
    gather_add(g, cmd->text, cmd->text_len);
    if (cmd->body) {
        gather_add(g, cmd->body, cmd->body_len);
        gather_add(g, "\r\n", 2);
    }
}

/* `n` more bytes are out. */
static void written(struct rds_conn *conn, size_t n) {
    conn->write_off += n;
    while (conn->writing && conn->write_off >= cmd_size(conn->writing)) {
        conn->write_off -= cmd_size(conn->writing);
        conn->writing = conn->writing->next;
    }
}

static ssize_t send_some(struct rds_conn *conn, struct gather *g) {
    if (conn->tls)
        return rds_tls_write(conn->tls, g->iov[0].iov_base, g->iov[0].iov_len);
    struct msghdr msg = {.msg_iov = g->iov, .msg_iovlen = (size_t)g->n};
    ssize_t n = sendmsg(conn->fd, &msg, MSG_NOSIGNAL);
    return n < 0 ? -errno : n;
}

int rds_conn_write(struct rds_conn *conn, struct wt_err *err) {
    while (conn->writing) {
        struct gather g = {.skip = conn->write_off};
        for (struct rds_cmd *c = conn->writing; c && g.n + 4 <= IOV_MAX_OUT; c = c->next)
            gather_cmd(&g, c);
        ssize_t n = send_some(conn, &g);
        if (n == -EAGAIN)
            return 0;
        if (n == -EINTR)
            continue;
        if (n < 0) {
            wt_err_sys(err, (int)-n, "connection lost while writing");
            return err->code = WT_EDOWN;
        }
        written(conn, (size_t)n);
    }
    return 0;
}

/* ---- in: replies ---- */

static int bad_reply(struct wt_err *err, const char *what) {
    return wt_err_set(err, WT_EDOWN, "%s; is this a Redis server?", what);
}

/* The reply of the first command is complete. */
static int finish(struct rds_conn *conn, struct rds_cmd *cmd, struct wt_err *err) {
    if (cmd == conn->writing) {
        if (cmd->reply && cmd->reply->type == REDIS_REPLY_ERROR)
            rds_reply_judge(cmd->reply->str, (size_t)cmd->reply->len, err);
        else
            bad_reply(err, "an answer before its command");
        return err->code = WT_EDOWN;
    }
    rds_queue_remove(cmd);
    conn->bulks -= cmd->lane == RDS_BULK;
    conn->has_room |= cmd->lane == RDS_BULK;
    rds_cmd_replied(cmd);
    rds_kick(conn->node->r); /* a place is free */
    if (conn->doom.code) {
        *err = conn->doom;
        return err->code;
    }
    return 0;
}

/* 1: a reply was parsed; 0: more bytes are needed. */
static int parse_reply(struct rds_conn *conn, struct rds_cmd *cmd, struct wt_err *err) {
    size_t len = conn->in_len - conn->in_pos;
    void *reply = NULL;
    if (conn->fed == 0) /* hiredis looks for the end of a line from its start, each time */
        conn->fed_max = strchr("$*", conn->in[conn->in_pos]) ? RDS_REPLY_MAX : RDS_INPUT;
    if (redisReaderFeed(conn->reader, (const char *)conn->in + conn->in_pos, len) != REDIS_OK ||
        redisReaderGetReply(conn->reader, &reply) != REDIS_OK)
        return bad_reply(err, "an answer that cannot be read");
    conn->fed += len;
    conn->in_pos = conn->in_len;
    if (!reply) {
        if (conn->fed > conn->fed_max)
            return bad_reply(err, "an answer that is too long");
        return 0;
    }
    /* What follows the reply is ours again. */
    conn->in_pos -= conn->reader->len - conn->reader->pos;
    conn->reader->pos = conn->reader->len;
    conn->fed = 0;
    if (cmd->skip) {
        cmd->skip--;
        freeReplyObject(reply);
        return 1;
    }
    cmd->reply = reply;
    int rc = finish(conn, cmd, err);
    return rc < 0 ? rc : 1;
}

/* "$123\r\n" at the start of the input: its length, -1 for nil; else an error, or not there yet. */
static int parse_bulk_line(struct rds_conn *conn, long long *length, struct wt_err *err) {
    const char *p = (const char *)conn->in + conn->in_pos;
    size_t have = conn->in_len - conn->in_pos;
    const char *end = memchr(p, '\n', have < LINE_MAX_LEN ? have : LINE_MAX_LEN);
    if (!end)
        return have < LINE_MAX_LEN ? 0 : bad_reply(err, "a line that is too long");
    const char *q = p + 1;
    bool minus = *q == '-';
    q += minus;
    long long v = 0;
    const char *digits = q;
    for (; q < end && *q >= '0' && *q <= '9' && v < INT_MAX; q++)
        v = v * 10 + (*q - '0');
    if (q == digits || *q != '\r' || q + 1 != end || (minus && v != 1))
        return bad_reply(err, "a length that is not one");
    *length = minus ? -1 : v;
    conn->in_pos += (size_t)(end + 1 - p);
    return 1;
}

static int begin_body(struct rds_conn *conn, struct rds_cmd *cmd, struct wt_err *err) {
    if (conn->in[conn->in_pos] != '$') /* an error: hiredis reads it */
        return parse_reply(conn, cmd, err);
    long long length = 0;
    int rc = parse_bulk_line(conn, &length, err);
    if (rc <= 0)
        return rc;
    if (length < 0) {
        cmd->nil = true;
        rc = finish(conn, cmd, err);
        return rc < 0 ? rc : 1;
    }
    conn->in_body = true;
    conn->body_left = (size_t)length;
    cmd->body_seen = (size_t)length;
    if (cmd->body_seen != cmd->sink_len)
        cmd->sink = NULL; /* not what was expected: thrown away */
    return 1;
}

/* Body bytes that came along with a line. */
static int continue_body(struct rds_conn *conn, struct rds_cmd *cmd, struct wt_err *err) {
    size_t have = conn->in_len - conn->in_pos;
    size_t n = have < conn->body_left ? have : conn->body_left;
    const uint8_t *from = conn->in + conn->in_pos;
    if (n && cmd->sink)
        memcpy(cmd->sink + (cmd->body_seen - conn->body_left), from, n);
    conn->in_pos += n;
    conn->body_left -= n;
    if (conn->body_left || have - n < 2)
        return 0;
    if (memcmp(conn->in + conn->in_pos, "\r\n", 2) != 0)
        return bad_reply(err, "a value that does not end where it should");
    conn->in_pos += 2;
    conn->in_body = false;
    int rc = finish(conn, cmd, err);
    return rc < 0 ? rc : 1;
}

static int parse(struct rds_conn *conn, struct wt_err *err) {
    int rc = 1;
    while (rc > 0 && conn->in_pos < conn->in_len) {
        struct rds_cmd *cmd = conn->sent.first;
        if (!cmd)
            return bad_reply(err, "an answer that nobody asked for");
        if (conn->in_body)
            rc = continue_body(conn, cmd, err);
        else if (cmd->reads_body && !cmd->skip && conn->fed == 0)
            rc = begin_body(conn, cmd, err);
        else
            rc = parse_reply(conn, cmd, err);
    }
    if (conn->in_pos == conn->in_len)
        conn->in_pos = conn->in_len = 0;
    return rc < 0 ? rc : 0;
}

/* ---- in: bytes ---- */

struct reading {
    struct iovec iov[2];
    int n;
    size_t body; /* how many of the bytes are body */
};

static struct reading where_to(struct rds_conn *conn) {
    struct reading at = {0};
    struct rds_cmd *cmd = conn->sent.first;
    if (conn->in_pos) {
        memmove(conn->in, conn->in + conn->in_pos, conn->in_len - conn->in_pos);
        conn->in_len -= conn->in_pos;
        conn->in_pos = 0;
    }
    if (conn->in_body && conn->body_left && cmd->sink) {
        at.body = conn->body_left;
        at.iov[at.n++] =
            (struct iovec){cmd->sink + (cmd->body_seen - conn->body_left), conn->body_left};
        at.iov[at.n++] = (struct iovec){conn->in, LOOKAHEAD};
    } else {
        at.iov[at.n++] = (struct iovec){conn->in + conn->in_len, sizeof conn->in - conn->in_len};
    }
    return at;
}

static ssize_t receive(struct rds_conn *conn, struct reading *at) {
    if (conn->tls)
        return rds_tls_read(conn->tls, at->iov[0].iov_base, at->iov[0].iov_len);
    ssize_t n = readv(conn->fd, at->iov, at->n);
    return n < 0 ? -errno : n;
}

static int lost_reading(ssize_t n, struct wt_err *err) {
    if (n == 0)
        return wt_err_set(err, WT_EDOWN, "the server closed the connection");
    wt_err_sys(err, (int)-n, "connection lost while reading");
    return err->code = WT_EDOWN;
}

int rds_conn_read(struct rds_conn *conn, struct wt_err *err) {
    conn->has_room = false;
    for (;;) {
        struct reading at = where_to(conn);
        size_t room = at.iov[0].iov_len + at.iov[1].iov_len;
        ssize_t got = receive(conn, &at);
        if (got == -EINTR)
            continue;
        if (got == -EAGAIN)
            return 0;
        if (got <= 0)
            return lost_reading(got, err);
        size_t n = (size_t)got;
        size_t body = n < at.body ? n : at.body;
        conn->body_left -= body;
        conn->in_len += n - body;
        int rc = parse(conn, err);
        if (rc < 0)
            return rc;
        /* The next command goes out before more is read, so that the server never runs dry. In the
         * middle of a body more has often come while we copied; else a stream that gave less than
         * asked is empty. The loop tells when there is more, but for what TLS has read ahead. */
        bool flows = conn->in_body && n >= FLOWING;
        if (!conn->tls && (conn->has_room || (n < room && !flows)))
            return 0;
    }
}
