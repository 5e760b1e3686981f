/*
 * Chores: chunks that are removed behind the scenes, after a removal, a replacement, an abort.
 *
 * Happy path: a chore waits for its time (readers of a removed object get a read's deadline), then
 * UNLINKs its chunks, RDS_WINDOW at a time. UNDO first looks whether the header of a commit that
 * nobody waited for is there. Failures: a chunk that cannot be removed stays, an orphan that LIST
 * shows; one line in the log tells how many. When memory is short, chores do not wait
 * (rds_chores_hurry).
 */
#include "tiers/redis/internal.h"

#include <stdio.h>
#include <stdlib.h>

struct rds_chore *rds_chore_add(struct rds *r, enum rds_chore_kind kind, const char *key,
                                uint64_t token, const struct rds_layout *layout, uint64_t wait_ms) {
    struct rds_chore *chore = calloc(1, sizeof *chore);
    if (!chore)
        return NULL;
    chore->r = r;
    chore->kind = kind;
    snprintf(chore->key, sizeof chore->key, "%s", key);
    chore->token = token;
    chore->n_chunks = layout->n_chunks;
    chore->bytes = layout->size;
    chore->due_ms = rds_now(r) + wait_ms;
    chore->head_seen = kind == RDS_UNLINK;
    chore->next = r->chores;
    r->chores = chore;
    r->chore_bytes += chore->bytes;
    rds_wake_at(r, chore->due_ms);
    return chore;
}

bool rds_chores_hurry(struct rds *r) {
    bool some = false;
    for (struct rds_chore *c = r->chores; c; c = c->next) {
        if (c->kind != RDS_UNLINK)
            continue;
        c->due_ms = 0;
        some = true;
    }
    rds_wake_at(r, rds_now(r));
    return some;
}

static void free_chore(struct rds_chore *chore) {
    struct rds_chore **at = &chore->r->chores;
    while (*at != chore)
        at = &(*at)->next;
    *at = chore->next;
    chore->r->chore_bytes -= chore->bytes;
    free(chore);
}

static void end_chore(struct rds_chore *chore) {
    void (*done)(void *) = chore->done;
    void *arg = chore->arg;
    if (chore->failed)
        wt_log(chore->r->log, WT_LOG_WARN,
               "%s: %u of %u chunks could not be removed; gc finds them", chore->key, chore->failed,
               chore->n_chunks);
    free_chore(chore);
    if (done)
        done(arg);
}

static void step(struct rds_chore *chore);

static struct rds_chore *replied(struct rds_cmd *cmd) {
    struct rds_chore *chore = cmd->arg;
    chore->cmd[cmd->at] = NULL;
    chore->busy--;
    return chore;
}

static bool issue(struct rds_chore *chore, struct rds_cmd *cmd, void (*done)(struct rds_cmd *)) {
    if (!cmd)
        return false;
    while (chore->cmd[cmd->at])
        cmd->at++;
    chore->cmd[cmd->at] = cmd;
    chore->busy++;
    cmd->done = done;
    cmd->arg = chore;
    rds_cmd_submit(cmd);
    return true;
}

/* ---- the header of an undone commit ---- */

static void on_deleted(struct rds_cmd *cmd) {
    struct rds_chore *chore = replied(cmd);
    if (cmd->rc < 0) /* it stands: its chunks must stay as well */
        end_chore(chore);
    else
        step(chore);
}

static void on_peeked(struct rds_cmd *cmd) {
    struct rds_chore *chore = replied(cmd);
    struct rds_head head = {0};
    struct wt_err err;
    int rc = rds_cmd_expect(cmd, REDIS_REPLY_STRING, &err);
    if (rc == 0 && cmd->reply->len)
        rc = rds_head_peek(cmd->reply->str, (size_t)cmd->reply->len, &head, &err);
    bool ours = rc == 0 && head.token == chore->token;
    if (rc < 0 || (ours && chore->kind == RDS_UNDO_UNLESS)) {
        end_chore(chore);
        return;
    }
    chore->head_seen = true;
    char name[RDS_NAME_SIZE];
    rds_name_head(name, chore->key);
    if (!ours)
        step(chore);
    else if (!issue(chore, rds_cmd_key(chore->r, "DEL", name), on_deleted))
        end_chore(chore);
}

/* ---- chunks ---- */

static void on_unlinked(struct rds_cmd *cmd) {
    struct rds_chore *chore = replied(cmd);
    chore->failed += cmd->rc < 0;
    step(chore);
}

static void step(struct rds_chore *chore) {
    if (!chore->head_seen) {
        if (!issue(chore, rds_cmd_peek(chore->r, chore->key), on_peeked))
            end_chore(chore);
        return;
    }
    while (chore->busy < RDS_WINDOW && chore->next_chunk < chore->n_chunks) {
        char name[RDS_NAME_SIZE];
        rds_name_chunk(name, chore->token, chore->next_chunk++, chore->key);
        if (!issue(chore, rds_cmd_key(chore->r, "UNLINK", name), on_unlinked))
            chore->failed++;
    }
    if (chore->busy == 0)
        end_chore(chore);
}

uint64_t rds_chores_run(struct rds *r, uint64_t now) {
    uint64_t next = UINT64_MAX;
    struct rds_chore *following;
    for (struct rds_chore *c = r->chores; c; c = following) {
        following = c->next;
        if (c->busy)
            continue;
        if (c->due_ms <= now)
            step(c);
        else if (c->due_ms < next)
            next = c->due_ms;
    }
    return next;
}

void rds_chores_free(struct rds *r) {
    while (r->chores) {
        struct rds_chore *chore = r->chores;
        for (uint32_t i = 0; i < RDS_WINDOW; i++)
            if (chore->cmd[i])
                rds_cmd_drop(chore->cmd[i]);
        chore->failed = chore->n_chunks - chore->next_chunk + chore->busy;
        chore->done = NULL;
        end_chore(chore);
    }
}
