/*
 * Repairs; see fsck.h. Nothing is removed or replaced before a right copy was read in this run:
 * what is right is known by its content hash, not by where it lies.
 */
#include "tools/fsck/fsck.h"

#include "tools/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOCK_MS = 30000 };

static uint64_t now_ms(void) {
    return (uint64_t)(wt_now() * 1000);
}

int wt_fsck_lock(struct wt_fsck *f, struct wt_err *err) {
    char host[64] = "localhost";
    if (!(wt_tier_caps(f->tier[0]) & WT_CAP_LOCK))
        return 0;
    if (!f->owner[0]) {
        gethostname(host, sizeof host - 1);
        snprintf(f->owner, sizeof f->owner, "fsck %ld on %s", (long)getpid(), host);
    } else if (now_ms() - f->locked_ms < LOCK_MS / 3) {
        return 0;
    }
    struct wt_req req = {
        .op = WT_OP_LOCK, .key = WT_LOCK_KEY, .owner = f->owner, .ttl_ms = LOCK_MS};
    int rc = wt_sync_do(f->cold->sync, f->tier[0], &req);
    f->locked_ms = now_ms();
    if (rc < 0) {
        f->owner[0] = '\0';
        *err = req.err;
        wt_err_wrap(err, "the lock that keeps a daemon from moving meanwhile");
    }
    return rc;
}

void wt_fsck_unlock(struct wt_fsck *f) {
    struct wt_req req = {.op = WT_OP_UNLOCK, .key = WT_LOCK_KEY, .owner = f->owner};
    if (f->owner[0])
        wt_sync_do(f->cold->sync, f->tier[0], &req); /* failing that, it expires */
    f->owner[0] = '\0';
}

static void say(const struct wt_fsck *f, uint32_t tier, const char *name, const char *text) {
    printf("%-12s %-8s %s: %s\n", wt_tier_name(f->tier[tier]), "repair", name, text);
}

/* A right copy above cold. */
static int find_right(struct wt_fsck *f, uint64_t s, uint32_t *from, uint8_t **data) {
    for (uint32_t t = 1; t < f->n_tiers; t++) {
        struct wt_err why = {0};
        *from = t;
        if ((f->shard[s].there & 1u << t) && wt_fsck_read(f, s, t, data, &why) == 0)
            return 0;
    }
    return WT_EMISSING;
}

static int restore_cold(struct wt_fsck *f, uint64_t s, struct wt_err *err) {
    struct wt_shard_rec rec;
    char name[WT_OBJECT_NAME], text[128];
    uint8_t *data = NULL;
    uint32_t from;
    wt_fsck_name(f, s, &rec, name);
    if (find_right(f, s, &from, &data) < 0) {
        f->hopeless++;
        say(f, 0, name,
            "there is no right copy in any tier: pack the data set anew, or restore it "
            "from a backup");
        return 0;
    }
    struct wt_err why = {0};
    int rc = wt_fsck_lock(f, err);
    if (rc == 0 &&
        wt_sync_write(f->cold->sync, f->tier[0], name, data, rec.size, WT_PUT_REPLACE, &why) < 0)
        wt_fsck_trouble(f, name, &why);
    free(data);
    if (rc < 0 || why.code)
        return rc;
    if (wt_fsck_read(f, s, 0, NULL, &why) < 0) {
        wt_fsck_trouble(f, name, &why);
        return 0;
    }
    f->shard[s].there |= 1;
    f->shard[s].damaged &= (uint8_t)~1u;
    f->repaired++;
    snprintf(text, sizeof text, "put anew from tier %.64s", wt_tier_name(f->tier[from]));
    say(f, 0, name, text);
    return 0;
}

static int remove_copy(struct wt_fsck *f, uint64_t s, uint32_t tier, struct wt_err *err) {
    struct wt_shard_rec rec;
    struct wt_err why = {0};
    char name[WT_OBJECT_NAME];
    wt_fsck_name(f, s, &rec, name);
    if (!(f->shard[s].sound & 1) && wt_fsck_read(f, s, 0, NULL, &why) < 0) {
        say(f, tier, name, "the damaged copy stays, since cold has no right one");
        return 0;
    }
    int rc = wt_fsck_lock(f, err);
    if (rc < 0)
        return rc;
    rc = wt_sync_remove(f->cold->sync, f->tier[tier], name, &why);
    if (rc < 0 && rc != WT_EMISSING) {
        wt_fsck_trouble(f, name, &why);
        return 0;
    }
    f->repaired++;
    say(f, tier, name, "the damaged copy was removed");
    return 0;
}

static int repair_shard(struct wt_fsck *f, uint64_t s, struct wt_err *err) {
    const struct wt_fsck_shard *shard = &f->shard[s];
    int rc = 0;
    if (!(f->away & 1) && !(shard->there & 1))
        rc = restore_cold(f, s, err);
    for (uint32_t t = 1; rc == 0 && t < f->n_tiers; t++)
        if (shard->damaged & 1u << t)
            rc = remove_copy(f, s, t, err);
    return rc;
}

int wt_fsck_repair(struct wt_fsck *f, struct wt_err *err) {
    int rc = 0;
    for (uint64_t s = 0; rc == 0 && s < f->d.m.shards; s++) {
        rc = repair_shard(f, s, err);
        if (rc == 0 && f->o.stopped && f->o.stopped(f->o.stopped_arg))
            rc = wt_err_set(err, WT_ECANCELED, "interrupted; what was repaired stays repaired");
    }
    return rc;
}
