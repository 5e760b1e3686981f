/*
 * A slow SCAN over every server: what LIST gives, and what is counted once for USAGE.
 *
 * Happy path: a batch of names; for each header its fixed part is read (size, time) and the entry
 * handed on; the next batch, the next server. With orphans, chunks are looked at too: those whose
 * attempt no header names are orphans, or belong to a put under way (unpublished, with the
 * attempt's time: gc leaves the young ones alone). SCAN may tell a name twice: names given are
 * remembered. Failures: an object that goes away meanwhile is left out; a damaged header is an
 * entry of size 0, so that somebody finds it. `each` may stop the scan that it runs for.
 */
#include "tiers/redis/internal.h"

#include "core/mem.h"
#include "core/sum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SET_START = 256 };

/* ---- a set of 64-bit hashes ---- */

struct hash_set {
    uint64_t *at; /* 0: free */
    size_t size, count;
};

static size_t slot_of(const struct hash_set *set, uint64_t hash) {
    size_t i = (size_t)hash & (set->size - 1);
    while (set->at[i] && set->at[i] != hash)
        i = (i + 1) & (set->size - 1);
    return i;
}

static bool set_has(const struct hash_set *set, uint64_t hash) {
    return set->count && set->at[slot_of(set, hash | 1)];
}

static int set_grow(struct hash_set *set) {
    struct hash_set next = {.size = set->size ? set->size * 2 : SET_START};
    next.at = wt_calloc(next.size, sizeof *next.at);
    if (!next.at)
        return WT_ENOMEM;
    for (size_t i = 0; i < set->size; i++)
        if (set->at[i])
            next.at[slot_of(&next, set->at[i])] = set->at[i];
    next.count = set->count;
    free(set->at);
    *set = next;
    return 0;
}

/* 1: new; 0: it was there. */
static int set_add(struct hash_set *set, uint64_t hash) {
    if (set->count * 2 >= set->size && set_grow(set) < 0)
        return WT_ENOMEM;
    size_t i = slot_of(set, hash | 1);
    if (set->at[i])
        return 0;
    set->at[i] = hash | 1;
    set->count++;
    return 1;
}

/* ---- the scan ---- */

struct rds_scan {
    struct rds_op op; /* its commands; it has no request of its own */
    struct rds_scan_opts opts;
    uint32_t node_at; /* the server that is scanned */
    char cursor[24];
    bool finished; /* the server's last batch is the one at hand */
    redisReply *batch;
    size_t next; /* name of the batch */
    struct hash_set given, published;
    bool inside;  /* `each` runs */
    bool stopped; /* it has stopped us */
};

static void free_scan(struct rds_scan *l) {
    if (l->batch)
        freeReplyObject(l->batch);
    free(l->given.at);
    free(l->published.at);
    rds_op_end(&l->op, 0, NULL);
}

static void end_scan(struct rds_scan *l, int rc, const struct wt_err *err) {
    struct rds_scan_opts opts = l->opts;
    bool stopped = l->stopped;
    free_scan(l);
    if (!stopped)
        opts.ended(opts.arg, rc, err);
}

void rds_scan_stop(struct rds_scan *l) {
    l->stopped = true;
    if (!l->inside)
        free_scan(l);
}

/* 0, or what ends the scan. */
static int give(struct rds_scan *l, const struct wt_entry *entry) {
    int rc = set_add(&l->given, wt_hash64(entry->key, strlen(entry->key)));
    if (rc <= 0)
        return rc;
    l->inside = true;
    rc = l->opts.each(l->opts.arg, entry);
    l->inside = false;
    return l->stopped ? WT_ECANCELED : rc;
}

static const redisReply *name_at(const struct rds_scan *l, size_t i) {
    return l->batch->element[1]->element[i];
}

static int step(struct rds_scan *l, struct wt_err *err);

static void go_on(struct rds_scan *l, int rc, struct wt_err *err) {
    if (rc == 0)
        rc = step(l, err);
    if (rc != 0 || l->op.busy == 0)
        end_scan(l, rc, err);
}

/* ---- entries ---- */

static void on_orphan_size(struct rds_cmd *cmd) {
    struct rds_scan *l = rds_op_replied(cmd);
    const redisReply *name = name_at(l, cmd->at);
    struct wt_err err = {0};
    char key[WT_KEY_SIZE], orphan[WT_KEY_SIZE];
    uint64_t token;
    uint32_t chunk;
    int rc = rds_cmd_expect(cmd, REDIS_REPLY_INTEGER, &err);
    if (rc == 0 && cmd->reply->integer > 0 &&
        rds_name_parse_chunk(name->str, (size_t)name->len, &token, &chunk, key) == 0) {
        struct wt_entry entry = {
            .key = orphan,
            .size = (uint64_t)cmd->reply->integer,
            .mtime = rds_token_time(token),
            .unpublished = true,
        };
        if (rds_orphan_key(orphan, token, chunk, key) == 0)
            rc = give(l, &entry);
        else
            wt_log(l->op.r->log, WT_LOG_WARN, "a chunk without header, to be removed by hand: %s",
                   name->str);
    }
    go_on(l, rc, &err);
}

/* The header of the object whose chunk this is. */
static void on_owner(struct rds_cmd *cmd) {
    struct rds_scan *l = rds_op_replied(cmd);
    const redisReply *name = name_at(l, cmd->at);
    struct wt_err err = {0};
    struct rds_head head = {0};
    char key[WT_KEY_SIZE], text[RDS_NAME_SIZE];
    uint64_t token = 0;
    uint32_t chunk;
    int rc = rds_cmd_expect(cmd, REDIS_REPLY_STRING, &err);
    rds_name_parse_chunk(name->str, (size_t)name->len, &token, &chunk, key);
    bool known =
        rc == 0 && rds_head_peek(cmd->reply->str, (size_t)cmd->reply->len, &head, NULL) == 0;
    if (known && set_add(&l->published, head.token) < 0)
        rc = WT_ENOMEM;
    if (rc == 0 && (!known || head.token != token)) {
        snprintf(text, sizeof text, "%.*s", (int)name->len, name->str);
        struct rds_cmd *size = rds_cmd_key(l->op.r, "STRLEN", text);
        if (size)
            size->at = cmd->at;
        rc = rds_op_issue(&l->op, size, on_orphan_size);
    }
    go_on(l, rc, &err);
}

static void on_header(struct rds_cmd *cmd) {
    struct rds_scan *l = rds_op_replied(cmd);
    const redisReply *name = name_at(l, cmd->at);
    struct wt_err err = {0};
    struct rds_head head = {0};
    char key[WT_KEY_SIZE];
    int rc = rds_cmd_expect(cmd, REDIS_REPLY_STRING, &err);
    if (rc == WT_ECORRUPT) /* not even a string */
        rc = 0;
    if (rc == 0 && (!cmd->reply || cmd->reply->len) &&
        rds_name_parse_head(name->str, (size_t)name->len, key) == 0) {
        if (cmd->reply && cmd->reply->type == REDIS_REPLY_STRING)
            rds_head_peek(cmd->reply->str, (size_t)cmd->reply->len, &head, NULL);
        struct wt_entry entry = {.key = key, .size = head.layout.size, .mtime = head.mtime};
        if (head.token && set_add(&l->published, head.token) < 0)
            rc = WT_ENOMEM;
        if (rc == 0)
            rc = give(l, &entry);
    }
    go_on(l, rc, &err);
}

/* ---- names ---- */

/* Below a folder there are folders, told by their names alone. 1: it was one. */
static int give_folder(struct rds_scan *l, char *key) {
    size_t skip = strlen(l->opts.prefix);
    if (skip && l->opts.prefix[skip - 1] != '/')
        skip++;
    char *slash = strchr(key + skip, '/');
    if (!slash)
        return 0;
    slash[1] = '\0';
    struct wt_entry entry = {.key = key};
    int rc = give(l, &entry);
    return rc ? rc : 1;
}

static int peek(struct rds_scan *l, const char *key, void (*done)(struct rds_cmd *)) {
    struct rds_cmd *cmd = rds_cmd_peek(l->op.r, key);
    if (cmd)
        cmd->at = (uint32_t)l->next;
    return rds_op_issue(&l->op, cmd, done);
}

static int take_name(struct rds_scan *l) {
    const redisReply *name = name_at(l, l->next);
    char key[WT_KEY_SIZE];
    uint64_t token;
    uint32_t chunk;
    if (name->type != REDIS_REPLY_STRING)
        return 0;
    if (rds_name_parse_head(name->str, (size_t)name->len, key) == 0) {
        int rc = l->opts.shallow ? give_folder(l, key) : 0;
        return rc ? (rc == 1 ? 0 : rc) : peek(l, key, on_header);
    }
    if (l->opts.orphans &&
        rds_name_parse_chunk(name->str, (size_t)name->len, &token, &chunk, key) == 0 &&
        !set_has(&l->published, token))
        return peek(l, key, on_owner);
    return 0;
}

/* ---- batches ---- */

static void on_batch(struct rds_cmd *cmd) {
    struct rds_scan *l = rds_op_replied(cmd);
    const redisReply *r = cmd->reply;
    struct wt_err err = {0};
    int rc = rds_cmd_expect(cmd, REDIS_REPLY_ARRAY, &err);
    if (rc == 0 &&
        (r->elements != 2 || r->element[0]->type != REDIS_REPLY_STRING ||
         r->element[0]->len >= (int)sizeof l->cursor || r->element[1]->type != REDIS_REPLY_ARRAY))
        rc = wt_err_set(&err, WT_EIO, "SCAN answers with something unexpected");
    if (rc == 0) {
        l->batch = cmd->reply;
        cmd->reply = NULL;
        l->next = 0;
        snprintf(l->cursor, sizeof l->cursor, "%s", l->batch->element[0]->str);
        l->finished = strcmp(l->cursor, "0") == 0;
        if (l->opts.alive)
            l->opts.alive(l->opts.arg);
    }
    go_on(l, rc, &err);
}

static int scan(struct rds_scan *l) {
    struct rds *r = l->op.r;
    const char *prefix = l->opts.prefix;
    size_t len = strlen(prefix);
    bool folder = l->opts.shallow && len && prefix[len - 1] != '/';
    char pattern[RDS_NAME_SIZE];
    if (l->opts.orphans)
        snprintf(pattern, sizeof pattern, "wt:*");
    else /* keys have no character that means something in a pattern */
        snprintf(pattern, sizeof pattern, "wt:{%s%s*", prefix, folder ? "/" : "");
    const char *argv[] = {"SCAN", l->cursor, "MATCH", pattern, "COUNT", "500"};
    struct rds_cmd *cmd = rds_cmd_new(r, 6, argv, NULL);
    if (cmd)
        cmd->fixed = r->node[l->node_at];
    return rds_op_issue(&l->op, cmd, on_batch);
}

static bool next_server(struct rds_scan *l) {
    const struct rds *r = l->op.r;
    while (++l->node_at < r->n_nodes && r->url.cluster && r->node[l->node_at]->slots == 0)
        ;
    snprintf(l->cursor, sizeof l->cursor, "0");
    l->finished = false;
    return l->node_at < r->n_nodes;
}

/* Names of the batch, while there are places; then the next batch. 0 with nothing under way: all
 * done. */
static int step(struct rds_scan *l, struct wt_err *err) {
    while (l->batch && l->next < l->batch->element[1]->elements && l->op.busy < RDS_WINDOW) {
        int rc = take_name(l);
        if (rc != 0)
            return rc < 0 ? wt_err_set(err, rc, "the scan ended early: %s", wt_err_text(rc)) : rc;
        l->next++;
    }
    if (l->op.busy)
        return 0;
    if (l->batch)
        freeReplyObject(l->batch);
    l->batch = NULL;
    if (l->finished && !next_server(l))
        return 0;
    return scan(l);
}

static void on_scan_gate(struct rds_cmd *cmd) {
    struct rds_scan *l = rds_op_replied(cmd);
    struct wt_err err = cmd->err;
    if (l->op.r->url.cluster && l->op.r->node[0]->slots == 0)
        next_server(l);
    go_on(l, cmd->rc, &err);
}

struct rds_scan *rds_scan_start(struct rds *r, const struct rds_scan_opts *opts) {
    struct rds_scan *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->op.r = r;
    l->opts = *opts;
    snprintf(l->cursor, sizeof l->cursor, "0");
    /* Answered when the slots of a cluster are known. */
    if (rds_op_issue(&l->op, rds_cmd_any(r), on_scan_gate) < 0) {
        free_scan(l);
        return NULL;
    }
    return l;
}
