/*
 * `wafertier flush`: brings a data set that was landed in another tier to cold, or waits until the
 * daemon has.
 *
 * Happy path: a lease keeps gc off; each shard that cold lacks is read where it was landed,
 * compared with its hash, put into cold, read back and compared again; then the next generation's
 * manifest says that all is in cold. Failures: a shard that is damaged or gone is told, the rest is
 * brought over, and the manifest stays as it is. Killed at any point: run it again. Beside a daemon
 * that does the same: whoever comes second finds it done.
 */
#include "core/bytes.h"
#include "tools/daemon.h"
#include "tools/progress.h"
#include "tools/publish.h"
#include "tools/stop.h"
#include "tools/verb.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct flush_args {
    struct wt_target_opts target;
    uint64_t timeout_ms;
    bool wait, quiet;
};

static const struct wt_arg args[] = {
    {.name = "config",
     .letter = 'c',
     .type = WT_ARG_TEXT,
     .offset = offsetof(struct flush_args, target.config),
     .value = "FILE",
     .help = "take the tiers from this configuration; without it: $WAFERTIER_CONFIG, else the "
             "installed one"},
    {.name = "wait",
     .letter = 'w',
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct flush_args, wait),
     .help = "leave the work to the daemon and wait for its end"},
    {.name = "timeout",
     .type = WT_ARG_TIME,
     .offset = offsetof(struct flush_args, timeout_ms),
     .value = "TIME",
     .min = 1000,
     .max = UINT64_C(604800000),
     .help = "how long to wait at most (1h)"},
    {.name = "quiet",
     .letter = 'q',
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct flush_args, quiet),
     .help = "no progress and no summary"},
};

struct flush {
    struct wt_target *t;
    const struct wt_dataset *d;
    struct wt_publish publish;
    struct wt_progress progress;
    uint64_t copied, bytes, bad;
};

/* ---- one shard ---- */

static int read_right(struct flush *f, struct wt_tier *tier, const struct wt_shard_rec *rec,
                      const char *name, uint8_t **data, struct wt_err *err) {
    size_t len = 0;
    int rc = wt_sync_read(f->t->sync, tier, name, rec->size, data, &len, err);
    if (rc == WT_ERANGE ||
        (rc == 0 && (len != rec->size || !wt_hash_equal(wt_hash(*data, len), rec->hash)))) {
        if (rc == 0)
            free(*data);
        rc = wt_err_set(err, WT_ECORRUPT, "%s: the copy in tier %s is damaged", name,
                        wt_tier_name(tier));
    }
    return rc;
}

/* Is it in cold, and right? *there: something is. */
static int look_at_cold(struct flush *f, const struct wt_shard_rec *rec, const char *name,
                        bool *there, struct wt_err *err) {
    uint8_t *data = NULL;
    int rc = read_right(f, f->t->tier, rec, name, &data, err);
    if (rc == 0)
        free(data);
    *there = rc != WT_EMISSING;
    return rc;
}

static int copy(struct flush *f, const struct wt_shard_rec *rec, const char *name, bool there,
                struct wt_err *err) {
    uint8_t *data = NULL;
    int rc = read_right(f, f->t->home_tier, rec, name, &data, err);
    if (rc < 0)
        return rc;
    rc = wt_sync_write(f->t->sync, f->t->tier, name, data, rec->size, there ? WT_PUT_REPLACE : 0,
                       err);
    free(data);
    if (rc == WT_EEXISTS) /* the daemon was first */
        rc = 0;
    if (rc == 0)
        rc = look_at_cold(f, rec, name, &there, err);
    f->copied += rc == 0;
    return rc;
}

static int flush_shard(struct flush *f, uint64_t shard, struct wt_err *err) {
    struct wt_shard_rec rec;
    char name[WT_OBJECT_NAME];
    struct wt_err why = {0};
    bool there;
    wt_dataset_rec(f->d, shard, &rec);
    wt_shard_name(f->d->m.name, shard, &rec, name);
    int rc = look_at_cold(f, &rec, name, &there, &why);
    if (rc == WT_EMISSING || rc == WT_ECORRUPT) {
        why = (struct wt_err){0};
        rc = copy(f, &rec, name, there, &why);
    }
    f->bytes += rec.size;
    if (rc == WT_EMISSING || rc == WT_ECORRUPT) {
        f->bad++;
        wt_progress_clear(&f->progress);
        fprintf(stderr, "wafertier flush: %s\n", why.text);
        return 0;
    }
    if (rc < 0)
        *err = why;
    return rc;
}

/* ---- the data set ---- */

static int flush_shards(struct flush *f, struct wt_stop *stop, struct wt_err *err) {
    int rc = 0;
    for (uint64_t s = 0; rc == 0 && s < f->d->m.shards; s++) {
        if (wt_stop_asked(stop))
            return wt_err_set(err, WT_ECANCELED,
                              "interrupted; what is in cold stays, run it again for the rest");
        wt_hold_keep(&f->publish.hold);
        rc = flush_shard(f, s, err);
        wt_progress_at(&f->progress, s + 1, f->bytes);
    }
    if (rc == 0 && f->bad)
        rc = wt_err_set(err, WT_ECORRUPT,
                        "%" PRIu64 " of %" PRIu64 " shards are right in no tier: pack the data set "
                        "again under another name; it stays at home in tier '%s'",
                        f->bad, f->d->m.shards, f->d->m.home);
    return rc;
}

static bool is_flushed(struct wt_target *t, const char *name) {
    struct wt_manifest m = {0};
    bool flushed = wt_target_manifest(t, name, &m, NULL) == 0 && !m.home[0];
    wt_manifest_free(&m);
    return flushed;
}

static int flush(struct flush *f, const struct flush_args *a, struct wt_stop *stop,
                 struct wt_err *err) {
    const struct wt_manifest *m = &f->d->m;
    int rc = wt_target_home(f->t, err);
    if (rc == 0)
        rc = wt_publish_resume(&f->publish, f->t, m->name, m->generation, err);
    if (rc < 0)
        return rc;
    wt_progress_start(&f->progress, "flush", "shards", m->shards, a->quiet);
    rc = flush_shards(f, stop, err);
    wt_progress_clear(&f->progress);
    if (rc == 0)
        rc = wt_publish_flushed(&f->publish, err);
    if (rc < 0 && rc != WT_ECORRUPT && is_flushed(f->t, m->name))
        rc = 0; /* the daemon was first */
    wt_publish_end(&f->publish);
    return rc;
}

static int wait_flushed(struct wt_target *t, const char *name, const struct flush_args *a,
                        struct wt_stop *stop, struct wt_err *err) {
    uint64_t limit = a->timeout_ms ? a->timeout_ms : 3600000;
    double end = wt_now() + (double)limit / 1000;
    while (!is_flushed(t, name)) {
        if (wt_stop_asked(stop))
            return wt_err_set(err, WT_ECANCELED, "interrupted; the daemon goes on");
        if (wt_now() >= end)
            return wt_err_set(
                err, WT_ETIMEDOUT,
                "data set '%s' is not flushed after %.0f s; see 'wafertier stats' and "
                "'wafertier moves', or run flush without --wait",
                name, (double)limit / 1000);
        nanosleep(&(struct timespec){.tv_nsec = 250000000}, NULL);
    }
    return 0;
}

static int run_on(const struct wt_verb *verb, const struct flush_args *a, const char *name,
                  struct wt_err *err) {
    struct wt_stop stop = {.fd = -1};
    struct wt_target t = {0};
    struct wt_dataset d = {0};
    struct flush f = {.t = &t, .d = &d};
    char bytes[WT_SIZE_TEXT];
    int rc = wt_stop_open(&stop, err);
    if (rc == 0)
        rc = wt_target_open(&a->target, &t, err);
    if (rc == 0)
        rc = wt_target_dataset(&t, name, &d, err);
    if (rc == 0 && d.m.home[0]) {
        rc = a->wait ? wait_flushed(&t, name, a, &stop, err) : flush(&f, a, &stop, err);
        if (rc == 0 && !a->wait)
            wt_daemon_announce(verb, t.control, name);
    }
    if (rc == 0 && !a->quiet)
        printf("%s: all of its %" PRIu64 " shards, %s, are in cold; %" PRIu64 " were copied\n",
               name, d.m.shards, wt_size_format(d.m.stored_bytes, bytes), f.copied);
    wt_dataset_free(&d);
    wt_target_close(&t);
    wt_stop_close(&stop);
    return rc;
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct flush_args a = {0};
    struct wt_operands operands;
    struct wt_err err = {0};
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n != 1)
        return wt_verb_usage(verb, "give one data set");
    return run_on(verb, &a, operands.arg[0], &err) < 0 ? wt_verb_fail(verb, &err) : WT_EXIT_OK;
}

const struct wt_verb wt_verb_flush = {
    .name = "flush",
    .summary = "bring to cold what was landed in another tier",
    .operands = "DATASET",
    .about =
        "Copies each shard of a data set that was packed with --land from the tier where it lies "
        "to the cold one, reads it back, and writes the next generation, which is at home in "
        "cold. The daemon does the same by itself; this is for a setup without one, or for "
        "not waiting. It may be interrupted and run again.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
