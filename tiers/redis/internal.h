/*
 * What the files of the Redis backend share.
 *
 *   op (get.c, put.c ...) --commands--> cmd.c --routes--> node.c --lanes--> conn.c/io.c --> server
 *
 * A command (struct rds_cmd) is one Redis command and its reply. It waits in a lane of its server
 * until a connection takes it, is sent, and ends by its callback, always from the loop, never from
 * inside rds_cmd_submit or rds_cmd_drop. What may pass (a lost connection, LOADING, a moved slot)
 * is tried again within RDS_RETRY_MS: readers have other copies and shall not wait for this one. A
 * dropped command's callback is never called and its buffers are never touched again: what is still
 * to come for it is read and thrown away, or the connection is closed after RDS_ABANDON_MS.
 */
#ifndef WT_TIERS_REDIS_INTERNAL_H
#define WT_TIERS_REDIS_INTERNAL_H

#include "tiers/backend.h"
#include "tiers/redis/head.h"
#include "tiers/redis/url.h"

#include <hiredis/hiredis.h>
#include <sys/uio.h>

enum {
    RDS_WINDOW = 16, /* commands of one request in flight */
    RDS_NODES_MAX = 256,
    RDS_SLOTS = 16384,
    RDS_CONNECT_MS = 3000,
    RDS_RETRY_MS = 1000,
    RDS_ABANDON_MS = 1000,
    RDS_BACKOFF_MS = 20,
    RDS_BACKOFF_MAX_MS = 1000,
    RDS_PIPELINE = 128, /* small commands in flight on a connection */
    RDS_REDIRECTS = 5,
    RDS_INPUT = 64 << 10,
    RDS_REPLY_MAX = (4 << 20) + (128 << 10), /* that hiredis parses: the longest header */
};

struct rds;
struct rds_node;
struct rds_conn;
struct rds_tls;
struct rds_tls_ctx;

/* ---- commands: cmd.c ---- */

enum rds_lane { RDS_SMALL, RDS_BULK, RDS_LANES };

struct rds_cmd;
struct rds_queue {
    struct rds_cmd *first, *last;
    uint32_t count;
};

struct rds_cmd {
    struct rds_cmd *next, *prev;
    struct rds_queue *queue; /* where it stands; NULL: nowhere */
    struct rds *r;
    struct rds_conn *conn; /* set while sent */

    /* what is sent: text, then body and CRLF where there is a body */
    char *text;
    size_t text_len;
    const uint8_t *body;
    size_t body_len;
    uint8_t *body_copy; /* of a dropped command: body points into it */

    /* bulk reply into the caller's memory */
    bool reads_body;
    uint8_t *sink;
    size_t sink_len;

    enum rds_lane lane;
    uint16_t slot;
    struct rds_node *fixed;  /* for this server and no other */
    struct rds_node *target; /* of a redirect, for one attempt */
    bool asking;             /* ASKING goes before it */
    bool once;               /* not safe to repeat: a lost connection ends it */
    bool greeting;           /* belongs to its connection */
    uint8_t skip;            /* replies to throw away before its own */
    uint8_t redirects, losses;
    uint32_t wait_ms;
    uint64_t due_ms, give_up_ms;

    void (*done)(struct rds_cmd *cmd); /* NULL: dropped. After it the command is freed */
    void *arg;
    uint32_t at; /* the op's own */

    /* results */
    int rc;
    struct wt_err err;
    redisReply *reply; /* of commands that do not read a body */
    bool nil;          /* body: there is no such value */
    size_t body_seen;  /* body: its length; sink is filled only where it is sink_len */
};

/* A command for the slot of argv[1]. NULL: out of memory. */
struct rds_cmd *rds_cmd_new(struct rds *r, int argc, const char *const *argv, const size_t *lens);
struct rds_cmd *rds_cmd_key(struct rds *r, const char *verb, const char *name);
/* SET name body, without a copy of the body. */
struct rds_cmd *rds_cmd_set(struct rds *r, const char *name, const void *body, size_t len);
/* Any command with a key: in a cluster it is answered when the slots are known. */
struct rds_cmd *rds_cmd_any(struct rds *r);
/* GET or GETRANGE name into sink. */
struct rds_cmd *rds_cmd_read(struct rds *r, const char *name, uint32_t off, size_t len, bool whole,
                             void *sink);
void rds_cmd_submit(struct rds_cmd *cmd);
void rds_cmd_drop(struct rds_cmd *cmd);
void rds_cmd_free(struct rds_cmd *cmd);
/* Where a command came from does not matter any more: choose a server anew. */
void rds_cmd_route(struct rds_cmd *cmd);
/* As new, for another attempt; in no queue. */
void rds_cmd_rewind(struct rds_cmd *cmd);
/* Ends it (callback, free); rc and err are set. */
void rds_cmd_end(struct rds_cmd *cmd);
void rds_cmd_fail(struct rds_cmd *cmd, const struct wt_err *why);
/* Later again, or the end where its time is over. */
void rds_cmd_retry(struct rds_cmd *cmd, const struct wt_err *why);
/* Its reply is there (in cmd, or an error text). */
void rds_cmd_replied(struct rds_cmd *cmd);
uint64_t rds_cmds_run_delayed(struct rds *r, uint64_t now); /* -> when next */

void rds_queue_add(struct rds_queue *q, struct rds_cmd *cmd);
void rds_queue_push(struct rds_queue *q, struct rds_cmd *cmd); /* in front */
void rds_queue_remove(struct rds_cmd *cmd);                    /* from where it stands */
void rds_queue_move(struct rds_queue *from, struct rds_queue *to);
void rds_queue_fail(struct rds_queue *q, const struct wt_err *why);

/* ---- replies: reply.c ---- */

enum rds_verdict {
    RDS_FINAL,  /* an error for the op */
    RDS_PASSES, /* LOADING and the like */
    RDS_MOVED,
    RDS_ASK,
};
/* What an error reply means; err gets code and message. `text` need not end in NUL. */
enum rds_verdict rds_reply_judge(const char *text, size_t len, struct wt_err *err);
/* "MOVED 1234 host:port" */
int rds_reply_redirect(const char *text, uint16_t *slot, struct rds_addr *to);
/* fn: room for its functions, kept as long as the reader. */
redisReader *rds_reader_new(redisReplyObjectFunctions *fn);
/* The value of "name:" in a reply of INFO; false where it lacks. */
bool rds_info_number(const char *info, const char *name, uint64_t *value);
bool rds_info_text(const char *info, const char *name, char *out, size_t size);

/* ---- servers: node.c ---- */

/* What its last INFO told, for people: describe.c. */
struct rds_about {
    bool known;
    char version[32], policy[32], aof[8];
    uint64_t used, max;
    int64_t clock_ms; /* its clock less ours */
};
void rds_about_note(struct rds_about *about, const char *info);
void rds_describe(struct wt_tier *tier, wt_fact_fn fact, void *arg);

struct rds_node {
    struct rds *r;
    struct rds_addr addr;
    char name[RDS_HOST_SIZE + 8];
    struct rds_queue lane[RDS_LANES];
    struct rds_conn *conn[RDS_CONNS_MAX];
    uint32_t n_conns;
    bool down;      /* the last attempt failed, and no connection is ready */
    bool seed;      /* named in the URL */
    uint32_t slots; /* that it owns */
    struct wt_err why;
    char run_id[48], mark[48], new_mark[48];
    struct rds_about about;
};

int rds_node_find(struct rds *r, const struct rds_addr *addr, struct rds_node **out);
void rds_node_free(struct rds_node *node);
bool rds_node_ready(const struct rds_node *node);
bool rds_node_trying(const struct rds_node *node);
/* In a cluster, servers without slots are left alone. */
bool rds_node_wanted(const struct rds_node *node);
/* Starts connections that wait for their turn. */
void rds_node_hurry(struct rds_node *node);
void rds_node_flush(struct rds_node *node);
void rds_node_up(struct rds_node *node);
void rds_node_failed(struct rds_node *node, const struct wt_err *why);
/* The sentinel's name on this server; false where none can be told. */
bool rds_node_mark(const struct rds_node *node, char out[RDS_NAME_SIZE]);
void rds_node_saw_run_id(struct rds_node *node, const char *run_id);
void rds_node_saw_mark(struct rds_node *node, const redisReply *reply);

/* ---- the slots of a cluster: cluster.c ---- */

struct rds_map {
    bool known, wanted;
    struct rds_cmd *cmd; /* the question under way */
    uint64_t asked_ms;
    uint32_t turn;
    struct rds_node *of[RDS_SLOTS], *next[RDS_SLOTS]; /* the map, and the one to come */
};
void rds_map_want(struct rds *r);
uint64_t rds_map_run(struct rds *r, uint64_t now); /* -> when next */

/* ---- connections: conn.c, io.c ---- */

enum rds_conn_state {
    CONN_IDLE, /* waits for its turn */
    CONN_RESOLVING,
    CONN_CONNECTING,
    CONN_TLS,
    CONN_GREETING,
    CONN_READY,
};

struct rds_conn {
    struct rds_node *node;
    enum rds_conn_state state;
    int fd;
    uv_poll_t *poll;
    int events;
    struct rds_tls *tls;
    uv_timer_t timer; /* one use at a time: back-off, connecting, dropped commands */
    struct rds_resolve *resolve;
    struct addrinfo *addrs, *addr; /* all, and the one in use */
    uint32_t backoff_ms;
    bool hasty; /* has come back at once after a short life */
    uint64_t ready_ms;
    uint32_t greetings; /* replies to come before it is ready */
    struct wt_err doom; /* found out while parsing: ends the connection */

    struct rds_queue sent;   /* in the order of their replies */
    struct rds_cmd *writing; /* the first of `sent` that is not written whole */
    size_t write_off;
    uint32_t bulks; /* of `sent` */

    redisReader *reader;
    redisReplyObjectFunctions reader_fn;
    size_t fed, fed_max; /* bytes of the reply that it is at, and how many there may be */
    bool has_room;       /* a bulk command has ended since the last look */
    bool in_body;
    size_t body_left; /* of the body; then CRLF */
    size_t in_pos, in_len;
    uint8_t in[RDS_INPUT];
};

struct rds_conn *rds_conn_new(struct rds_node *node);
void rds_conn_start(struct rds_conn *conn);
/* Ends what there is, deals with its commands, comes back later. */
void rds_conn_lost(struct rds_conn *conn, const struct wt_err *why);
/* At the tier's close: no reconnect; its timer is closed, its memory freed after that. */
void rds_conn_close(struct rds_conn *conn);
void rds_conn_poll(struct rds_conn *conn);
void rds_conn_on_connected(struct rds_conn *conn);
/* Sends a command on this connection; it must be in no queue. */
void rds_conn_take(struct rds_conn *conn, struct rds_cmd *cmd);
/* A command of this connection is dropped: true where it was sent, and stays until its reply is
 * there. */
bool rds_conn_keeps(struct rds_conn *conn, struct rds_cmd *cmd);
/* 0, or an error with which the connection is lost. */
int rds_conn_write(struct rds_conn *conn, struct wt_err *err);
int rds_conn_read(struct rds_conn *conn, struct wt_err *err);
/* hello.c: AUTH, SELECT, who are you; then ready. */
int rds_conn_greet(struct rds_conn *conn, struct wt_err *err);

/* ---- TLS: tls.c ---- */

int rds_tls_ctx_new(const struct rds_url *url, struct rds_tls_ctx **out, struct wt_err *err);
void rds_tls_ctx_free(struct rds_tls_ctx *ctx);
struct rds_tls *rds_tls_new(struct rds_tls_ctx *ctx, int fd, const char *host);
void rds_tls_free(struct rds_tls *tls);
/* 1: done; 0: goes on; negative: an error. */
int rds_tls_handshake(struct rds_tls *tls, struct wt_err *err);
/* Bytes; 0: the end; -EAGAIN or another negative errno. */
ssize_t rds_tls_read(struct rds_tls *tls, void *buf, size_t len);
ssize_t rds_tls_write(struct rds_tls *tls, const void *buf, size_t len);
bool rds_tls_wants_write(const struct rds_tls *tls);

/* ---- requests: op.c ---- */

struct rds_op { /* the head of every op's own struct */
    struct rds *r;
    struct wt_req *req; /* NULL: nobody waits any more */
    struct rds_cmd *cmd[RDS_WINDOW];
    uint32_t busy;
    void (*cancel)(struct rds_op *op); /* frees what the op's struct holds */
};
/* A zeroed struct of `size` bytes for req, or NULL with the request ended. */
void *rds_op_new(struct rds *r, struct wt_req *req, size_t size, void (*cancel)(struct rds_op *));
/* Submits cmd as one of the op's; there is room (busy < RDS_WINDOW). cmd NULL: WT_ENOMEM. */
int rds_op_issue(struct rds_op *op, struct rds_cmd *cmd, void (*done)(struct rds_cmd *cmd));
/* First thing in a command's callback. */
void *rds_op_replied(struct rds_cmd *cmd);
void rds_op_drop_all(struct rds_op *op);
/* Drops its commands, ends its request with rc (message from err, may be NULL), frees it. */
void rds_op_end(struct rds_op *op, int rc, const struct wt_err *err);
/* 0: a reply of this type is there; else rc and *err. */
int rds_cmd_expect(struct rds_cmd *cmd, int type, struct wt_err *err);

/* The fixed part of an object's header ("" where there is none). */
struct rds_cmd *rds_cmd_peek(struct rds *r, const char *key);
void rds_op_stat(struct wt_tier *tier, struct wt_req *req); /* get.c */
void rds_op_get(struct wt_tier *tier, struct wt_req *req);
void rds_op_put_open(struct wt_tier *tier, struct wt_req *req); /* put.c */
void rds_op_put_write(struct wt_tier *tier, struct wt_req *req);
void rds_op_put_commit(struct wt_tier *tier, struct wt_req *req); /* commit.c */
void rds_op_put_abort(struct wt_tier *tier, struct wt_req *req);
void rds_put_drop(struct wt_tier *tier, struct wt_put *put);
/* An object whose header is gone (`header`: what it was): its chunks are removed when readers had
 * time to end. */
void rds_retire(struct rds *r, const char *key, const redisReply *header, uint64_t but_token);
void rds_op_remove(struct wt_tier *tier, struct wt_req *req); /* remove.c */
void rds_op_list(struct wt_tier *tier, struct wt_req *req);   /* list.c */
void rds_op_usage(struct wt_tier *tier, struct wt_req *req);  /* usage.c */
void rds_op_probe(struct wt_tier *tier, struct wt_req *req);

/* ---- scan.c: every object of the tier, slowly ---- */

struct rds_scan;
struct rds_scan_opts {
    const char *prefix; /* lives as long as the scan */
    bool shallow, orphans;
    int (*each)(void *arg, const struct wt_entry *entry); /* non-zero ends the scan with it */
    void (*alive)(void *arg);                             /* NULL, or: it moves on */
    void (*ended)(void *arg, int rc, const struct wt_err *err);
    void *arg;
};
struct rds_scan *rds_scan_start(struct rds *r,
                                const struct rds_scan_opts *opts); /* NULL: out of memory */
/* Also from inside `each`; `ended` is not called. */
void rds_scan_stop(struct rds_scan *scan);

/* ---- list.c: the count of the bytes of all objects ---- */

struct rds_waiter {
    struct rds_waiter *next;
    void (*ready)(struct rds_waiter *w, int rc, const struct wt_err *err);
};
struct rds_count {
    bool known;
    uint64_t used, seen;
    struct rds_scan *scan; /* counts */
    struct rds_waiter *waiters;
};
/* 0: known; 1: w is called when it is; negative: it cannot be. */
int rds_count_want(struct rds *r, struct rds_waiter *w);
void rds_count_leave(struct rds *r, const struct rds_waiter *w);
void rds_count_add(struct rds *r, uint64_t bytes);
void rds_count_take(struct rds *r, uint64_t bytes);
void rds_count_forget(struct rds *r);
void rds_count_stop(struct rds *r);

/* ---- usage.c ---- */

struct rds_survey { /* what the servers have room for; filled by asking each */
    uint32_t next_node;
    uint64_t room; /* UINT64_MAX: no limit */
    bool blind;    /* a server did not tell */
};
/* Asks on, at the start and in each reply's callback: 1: replies are to come; 0: all are in; or an
 * error. */
int rds_survey_ask(struct rds_op *op, struct rds_survey *s, void (*done)(struct rds_cmd *cmd));
int rds_survey_add(struct rds *r, struct rds_survey *s, struct rds_cmd *cmd, struct wt_err *err);

/* ---- puts: put.c writes, commit.c ends ---- */

struct rds_put {
    struct wt_put head;
    uint64_t token;
    struct rds_layout layout;
    uint32_t *crc;     /* of each chunk */
    uint8_t *small;    /* the data of an object that goes into its header */
    uint64_t reserved; /* bytes that are not stored yet */
    bool entered;      /* it counts in open_bytes */
    bool stored;       /* chunks may be there */
    bool dirty;        /* a write was dropped: its chunks may still arrive */
};

void rds_put_free(struct rds *r, struct rds_put *put); /* and what it reserves */

/* ---- chores: what is removed behind the scenes: chore.c ---- */

enum rds_chore_kind {
    RDS_UNLINK,      /* chunks of an attempt that nobody can read */
    RDS_UNDO,        /* of a commit that nobody waits for: the header too, where it is there */
    RDS_UNDO_UNLESS, /* the same, but an attempt that has replaced the object stays */
};

struct rds_chore {
    struct rds_chore *next;
    struct rds *r;
    enum rds_chore_kind kind;
    char key[WT_KEY_SIZE];
    uint64_t token, bytes;
    uint32_t n_chunks, next_chunk, failed;
    uint64_t due_ms;
    bool head_seen; /* kind UNDO: the question about the header is answered */
    struct rds_cmd *cmd[RDS_WINDOW];
    uint32_t busy;
    void (*done)(void *arg);
    void *arg;
};
/* Begins after wait_ms. NULL: out of memory, the chunks stay, as orphans. done may be set in the
 * result. */
struct rds_chore *rds_chore_add(struct rds *r, enum rds_chore_kind kind, const char *key,
                                uint64_t token, const struct rds_layout *layout, uint64_t wait_ms);
/* All are due now, but undoings, which must wait; false: there is none. */
bool rds_chores_hurry(struct rds *r);
uint64_t rds_chores_run(struct rds *r, uint64_t now); /* -> when next */
void rds_chores_free(struct rds *r);

/* ---- the tier: redis.c ---- */

struct rds {
    struct wt_tier *tier;
    uv_loop_t *loop;
    const struct wt_log *log;
    struct rds_url url;
    struct rds_tls_ctx *tls;
    struct rds_node *node[RDS_NODES_MAX];
    uint32_t n_nodes;
    struct rds_map map;
    struct rds_queue waiting; /* for the slots */
    struct rds_queue delayed; /* for their time */
    struct rds_chore *chores;
    uint64_t chore_bytes; /* that they will free */
    uint64_t reserved;    /* by open puts, not stored yet */
    uint64_t open_bytes;  /* of open puts, stored or not */
    struct rds_count count;
    uint64_t tokens; /* given out */
    struct rds_cache cache;
    uv_idle_t idle;
    uv_timer_t timer;
    uint64_t armed_ms; /* 0: not armed */
    unsigned handles;
    bool warned_policy;
    bool closing;         /* no new connections, no second attempts */
    uint64_t close_by_ms; /* 0: not asked to close */
};

uint64_t rds_now(const struct rds *r);
void rds_kick(struct rds *r);                 /* flush at the loop's next turn */
void rds_wake_at(struct rds *r, uint64_t ms); /* run what is due */
void rds_handle_closed(struct rds *r);
uint64_t rds_token_new(struct rds *r);

#endif
