/*
 * `wafertier verify`: reads every shard of a data set whole and checks it against everything that
 * is known of it.
 *
 * Each thread has a connection of its own and takes the next shard. A shard is good when its size
 * and content hash are those of shards.idx, its index is sound, and every sum or frame in it is
 * right. Damage is told as it is found; the exit code is 1 then.
 */
#include "core/bytes.h"
#include "core/mem.h"
#include "tools/progress.h"
#include "tools/stop.h"
#include "tools/target.h"
#include "tools/verb.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct verify_args {
    struct wt_target_opts target;
    uint64_t threads;
    bool quiet;
};

static const struct wt_arg args[] = {
    WT_TARGET_ARGS(struct verify_args, target, "from"),
    {.name = "threads",
     .letter = 'j',
     .type = WT_ARG_COUNT,
     .offset = offsetof(struct verify_args, threads),
     .value = "N",
     .min = 1,
     .max = 256,
     .help = "shards checked at the same time (the processors of this machine)"},
    {.name = "quiet",
     .letter = 'q',
     .type = WT_ARG_FLAG,
     .offset = offsetof(struct verify_args, quiet),
     .help = "only damage is printed"},
};

struct job {
    const struct wt_dataset *dataset;
    struct wt_stop *stop;
    struct wt_progress progress;
    bool every_copy;      /* false: a cache tier, which need not hold all shards */
    pthread_mutex_t lock; /* of all below */
    uint64_t next, done, bytes, damaged, absent;
    bool stopped;
};

struct verifier {
    struct job *job;
    struct wt_target target;
    struct wt_decoder *decoder;
    uint8_t *frame;
    size_t frame_cap;
    pthread_t thread;
    bool started;
};

static int check_frames(struct verifier *v, const struct wt_shard_index *x, const uint8_t *data,
                        struct wt_err *err) {
    int rc = 0;
    for (uint32_t f = 0; rc == 0 && f < x->n_frames; f++) {
        size_t len = (size_t)(x->frame[f + 1].tar_off - x->frame[f].tar_off);
        if (wt_grow(&v->frame, &v->frame_cap, len ? len : 1, 1) < 0)
            return wt_err_set(err, WT_ENOMEM, "no memory for a frame of %zu bytes", len);
        rc = wt_shard_decode_frame(v->decoder, x, f, data + x->frame[f].off, v->frame, err);
    }
    return rc;
}

static int check_contents(struct verifier *v, const struct wt_shard_rec *rec, const uint8_t *data,
                          size_t len, struct wt_err *err) {
    struct wt_shard_index x;
    if (len != rec->size)
        return wt_err_set(err, WT_ECORRUPT, "has %zu bytes, not %" PRIu64, len, rec->size);
    if (!wt_hash_equal(wt_hash(data, len), rec->hash))
        wt_err_set(err, WT_ECORRUPT, "its content hash is wrong");
    int rc = wt_shard_index_parse(data + rec->index_off, len - rec->index_off, rec->index_off, len,
                                  rec->codec, &x, err);
    if (rc < 0)
        return rc;
    if (x.samples != rec->samples || x.tar_size != rec->tar_size)
        rc = wt_err_set(err, WT_ECORRUPT, "its index has %u samples, not %u", x.samples,
                        rec->samples);
    else if (rec->codec == WT_CODEC_ZSTD)
        rc = check_frames(v, &x, data, err);
    else
        rc = wt_shard_verify(&x, 0, x.samples, data, 0, err);
    wt_shard_index_free(&x);
    /* A wrong hash is told by what explains it, where something does. */
    return rc < 0 ? rc : err->code;
}

static void tell(struct job *job, const char *name, int rc, size_t len, const struct wt_err *err) {
    pthread_mutex_lock(&job->lock);
    job->done++;
    job->bytes += len;
    if (rc == WT_EMISSING && !job->every_copy) {
        job->absent++;
    } else if (rc < 0) {
        job->damaged++;
        wt_progress_clear(&job->progress);
        printf("%s: %s\n", name, err->text);
        fflush(stdout);
    }
    wt_progress_at(&job->progress, job->done, job->bytes);
    pthread_mutex_unlock(&job->lock);
}

static void check_shard(struct verifier *v, uint64_t shard) {
    const struct wt_dataset *d = v->job->dataset;
    struct wt_shard_rec rec;
    char name[WT_OBJECT_NAME];
    uint8_t *data = NULL;
    size_t len = 0;
    struct wt_err err = {0};
    wt_dataset_rec(d, shard, &rec);
    wt_shard_name(d->m.name, shard, &rec, name);
    int rc = wt_target_read(&v->target, name, rec.size, &data, &len, &err);
    if (rc == 0)
        rc = check_contents(v, &rec, data, len, &err);
    tell(v->job, name, rc, len, &err);
    free(data);
}

/* The next shard to check; false: there is none. */
static bool take_shard(struct job *job, uint64_t *shard) {
    pthread_mutex_lock(&job->lock);
    job->stopped = job->stopped || wt_stop_asked(job->stop);
    bool go = !job->stopped && job->next < job->dataset->m.shards;
    *shard = job->next;
    job->next += go;
    pthread_mutex_unlock(&job->lock);
    return go;
}

static void *run_verifier(void *arg) {
    struct verifier *v = arg;
    uint64_t shard;
    while (take_shard(v->job, &shard))
        check_shard(v, shard);
    return NULL;
}

static int start_verifier(struct verifier *v, struct job *job, const struct wt_target *target,
                          struct wt_err *err) {
    v->job = job;
    v->decoder = wt_decoder_new();
    if (!v->decoder)
        return wt_err_set(err, WT_ENOMEM, "no memory for a decoder");
    int rc = wt_target_clone(target, &v->target, err);
    if (rc < 0)
        return rc;
    int sys = pthread_create(&v->thread, NULL, run_verifier, v);
    if (sys)
        return wt_err_sys(err, sys, "a thread cannot be started");
    v->started = true;
    return 0;
}

static int run_all(struct job *job, const struct wt_target *target, uint64_t threads,
                   struct wt_err *err) {
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t n = threads ? threads : cpus > 0 ? (uint64_t)cpus : 1;
    n = n > job->dataset->m.shards ? job->dataset->m.shards : n;
    struct verifier *v = wt_calloc(n, sizeof *v);
    if (!v)
        return wt_err_set(err, WT_ENOMEM, "no memory for threads");
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < n; i++)
        rc = start_verifier(&v[i], job, target, err);
    if (rc < 0) {
        pthread_mutex_lock(&job->lock);
        job->stopped = true;
        pthread_mutex_unlock(&job->lock);
    }
    for (uint64_t i = 0; i < n; i++)
        if (v[i].started)
            pthread_join(v[i].thread, NULL);
    for (uint64_t i = 0; i < n; i++) {
        wt_target_close(&v[i].target);
        wt_decoder_free(v[i].decoder);
        free(v[i].frame);
    }
    free(v);
    return rc;
}

static int finish(struct job *job, const struct verify_args *a, struct wt_err *err) {
    char bytes[WT_SIZE_TEXT];
    double took = wt_progress_seconds(&job->progress);
    wt_progress_clear(&job->progress);
    if (job->stopped)
        return wt_err_set(err, WT_ECANCELED,
                          "interrupted after %" PRIu64 " of %" PRIu64 " shards, %" PRIu64
                          " damaged",
                          job->done, job->dataset->m.shards, job->damaged);
    if (job->damaged)
        return wt_err_set(err, WT_ECORRUPT, "%s: %" PRIu64 " of %" PRIu64 " shards are damaged",
                          job->dataset->m.name, job->damaged, job->done);
    if (!a->quiet) {
        printf("%s: %" PRIu64 " shards, %s, all good", job->dataset->m.name,
               job->done - job->absent, wt_size_format(job->bytes, bytes));
        if (job->absent)
            printf(", %" PRIu64 " not in this tier", job->absent);
        printf(" (%.1f MB/s)\n", took > 0 ? (double)job->bytes / 1e6 / took : 0);
    }
    return 0;
}

/* The manifest and shards.idx lie in the cold tier, whichever tier is checked. */
static int load(const struct verify_args *a, const char *name, struct wt_dataset *d,
                struct wt_err *err) {
    struct wt_target_opts cold = {
        .url = a->target.url, .config = a->target.config, .read_only = true};
    struct wt_target t;
    int rc = wt_target_open(&cold, &t, err);
    if (rc < 0)
        return rc;
    rc = wt_target_dataset(&t, name, d, err);
    wt_target_close(&t);
    return rc;
}

static int verify(struct verify_args *a, const char *name, struct wt_err *err) {
    struct wt_stop stop = {.fd = -1};
    struct wt_target target = {0};
    struct wt_dataset d = {0};
    int rc = wt_stop_open(&stop, err);
    if (rc == 0)
        rc = wt_target_open(&a->target, &target, err);
    if (rc == 0)
        rc = load(a, name, &d, err);
    if (rc == 0) {
        if (!a->target.tier) /* what cold lacks may be where it was landed */
            memcpy(target.home, d.m.home, sizeof target.home);
        struct job job = {.dataset = &d, .stop = &stop, .every_copy = !a->target.tier};
        pthread_mutex_init(&job.lock, NULL);
        wt_progress_start(&job.progress, "verify", "shards", d.m.shards, a->quiet);
        rc = run_all(&job, &target, a->threads, err);
        if (rc == 0)
            rc = finish(&job, a, err);
        pthread_mutex_destroy(&job.lock);
    }
    wt_dataset_free(&d);
    wt_target_close(&target);
    wt_stop_close(&stop);
    return rc;
}

static int run(const struct wt_verb *verb, int argc, char **argv) {
    struct verify_args a = {.target = {.read_only = true}};
    struct wt_operands operands;
    struct wt_err err = {0};
    int code = wt_args_parse(verb, argc, argv, &a, &operands);
    if (code >= 0)
        return code;
    if (operands.n != 1)
        return wt_verb_usage(verb, "give one data set");
    return verify(&a, operands.arg[0], &err) < 0 ? wt_verb_fail(verb, &err) : WT_EXIT_OK;
}

const struct wt_verb wt_verb_verify = {
    .name = "verify",
    .summary = "read a data set whole and check every sum",
    .operands = "DATASET",
    .about = "Reads every shard of the data set's newest generation and checks size, content hash, "
             "index and every sum or frame. "
             "Damaged shards are named with what is wrong with them, and the exit code is 1. "
             "Shards that "
             "were landed and are not flushed yet are read where they were landed. With "
             "--tier the copies in that tier are checked; "
             "a tier other than the cold one need not hold all shards.",
    .args = args,
    .n_args = sizeof args / sizeof args[0],
    .run = run,
};
