/*
 * The file: backend's face to the core: URL, requests to jobs and back.
 *
 * Happy path: an op copies its request into a job; the job runs on the tier's pool with a
 * descriptor on the root; done, its results go into the request. Failures: the root is looked at
 * once more when something is missing, so that a lost mount is WT_EDOWN, not WT_EMISSING. A cancel
 * (or deadline) abandons the job and completes the request at once; only a read into or a write
 * from the caller's own buffer is waited for, on file systems that do not hang.
 */
#include "tiers/file/file.h"

#include "tiers/forms.h"
#include "tiers/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORKERS = 64, OPEN_WAIT_MS = 2000 };

struct file_tier {
    struct file_root *root;
    struct wt_pool *pool;
};

static int (*const runs[WT_OP_COUNT])(struct file_job *, const struct file_dir *) = {
    [WT_OP_STAT] = file_run_stat,
    [WT_OP_GET] = file_run_get,
    [WT_OP_MAP] = file_run_map,
    [WT_OP_PUT_OPEN] = file_run_put_open,
    [WT_OP_PUT_WRITE] = file_run_put_write,
    [WT_OP_PUT_COMMIT] = file_run_put_commit,
    [WT_OP_PUT_ABORT] = file_run_put_abort,
    [WT_OP_REMOVE] = file_run_remove,
    [WT_OP_LIST] = file_run_list,
    [WT_OP_USAGE] = file_run_usage,
    [WT_OP_PROBE] = file_run_probe,
    [WT_OP_LOCK] = file_run_lock,
    [WT_OP_UNLOCK] = file_run_unlock,
};

/* ---- jobs ---- */

static void job_free(struct file_job *job) {
    file_put_unref(job->put);
    file_batch_free(job->batch);
    file_root_unref(job->root);
    free(job);
}

/* A walk of a folder that was removed finds nothing, and no error. */
static bool walks(const struct file_job *job) {
    return job->run == file_run_list || job->run == file_run_count;
}

/* One try; *again: the root is another one now. */
static int try_run(struct file_job *job, const struct file_dir *dir, bool *again) {
    int moved = walks(job) ? file_root_moved(job->root, dir, &job->err) : 0;
    int rc = moved ? moved : job->run(job, dir);
    /* A mount that died and came back answers ENOTCONN on the old folder. */
    if (rc == WT_EMISSING || rc == WT_EDOWN)
        moved = file_root_moved(job->root, dir, &job->err);
    if (moved > 0 && job->put) /* its temporary is in the old one */
        return wt_err_set(&job->err, WT_EDOWN, "root %s was replaced", job->root->path);
    *again = moved > 0;
    return moved < 0 ? moved : rc;
}

static void run_on_root(struct file_job *job) {
    bool again = true;
    for (int tries = 0; again && tries < 2; tries++) {
        struct file_dir *dir = file_root_dir(job->root, &job->err);
        if (!dir) {
            job->rc = job->err.code;
            return;
        }
        job->rc = try_run(job, dir, &again);
        /* Nobody waits for this put any more. */
        if (job->opened && wt_job_stopped(&job->job)) {
            file_put_undo(job->opened, dir);
            file_put_unref(job->opened);
            job->opened = NULL;
            job->rc = WT_ECANCELED;
        }
        file_dir_unref(dir);
    }
    if (again) /* it moved twice */
        job->rc = wt_err_set(&job->err, WT_EDOWN, "root %s comes and goes", job->root->path);
}

static bool ends_put(enum wt_op op) {
    return op == WT_OP_PUT_COMMIT || op == WT_OP_PUT_ABORT;
}

/* On a worker. */
static void job_run(struct wt_job *base) {
    struct file_job *job = (struct file_job *)base;
    run_on_root(job);
    if (job->run == file_run_count && job->rc < 0)
        file_count_failed(job->root, &job->err);
    if (ends_put(job->op)) { /* here, since closing its file may block */
        file_put_unref(job->put);
        job->put = NULL;
    }
}

/* What an abandoned job has made is of no use to anybody. Any thread. A temporary that was made in
 * the very moment stays for gc: removing it could block the loop. */
static void job_discard(struct wt_job *base) {
    struct file_job *job = (struct file_job *)base;
    wt_map_release(job->map);
    file_lock_free(job->locked);
    file_put_unref(job->opened);
    job_free(job);
}

static void take_results(struct file_job *job, struct wt_req *req) {
    req->rc = job->rc;
    req->err = job->err;
    if (job->rc < 0) {
        if (req->err.code && (ends_put(job->op) || job->op == WT_OP_PUT_WRITE))
            wt_err_wrap(&req->err, "%s", job->key);
        return;
    }
    req->got = job->got;
    req->used = job->used;
    req->capacity = job->limit;
    req->map = job->map;
    if (job->op == WT_OP_STAT)
        req->size = job->size;
    if (job->opened)
        req->put = &job->opened->head;
    if (job->locked)
        file_lock_keep(job->root, job->locked);
}

static void job_done(struct wt_job *base) {
    struct file_job *job = (struct file_job *)base;
    struct wt_req *req = job->req;
    if (req) {
        take_results(job, req);
        req->priv[0] = NULL;
    }
    job_free(job);
    if (req)
        wt_req_complete(req);
}

static struct file_put *put_of(struct wt_put *head) {
    return (struct file_put *)head; /* its first member */
}

static struct file_job *job_new(struct wt_tier *tier, struct file_root *root, enum wt_op op) {
    struct file_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->job.run = job_run;
    job->job.done = job_done;
    job->job.discard = job_discard;
    job->job.progress = file_list_progress;
    job->tier = tier;
    job->root = file_root_ref(root);
    job->op = op;
    job->run = runs[op];
    return job;
}

static void copy_request(struct file_job *job, struct wt_req *req) {
    bool on_buffer = req->op == WT_OP_GET || req->op == WT_OP_PUT_WRITE;
    job->req = req;
    job->direct = on_buffer && file_root_kind(job->root) != FILE_NETWORK;
    job->off = req->off;
    job->len = req->len;
    job->buf = req->buf;
    job->src = req->src;
    job->size = req->size;
    job->flags = req->flags;
    job->ttl_ms = req->ttl_ms;
    if (ends_put(req->op) || req->op == WT_OP_PUT_WRITE) {
        job->put = put_of(req->put);
        /* A write borrows the put; commit and abort take the core's reference over. */
        if (req->op == WT_OP_PUT_WRITE)
            file_put_ref(job->put);
        memcpy(job->key, job->put->head.key, sizeof job->key);
    } else if (req->key && req->op != WT_OP_USAGE && req->op != WT_OP_PROBE) {
        snprintf(job->key, sizeof job->key, "%s", req->key);
    }
    if (req->op == WT_OP_LOCK || req->op == WT_OP_UNLOCK)
        snprintf(job->owner, sizeof job->owner, "%s", req->owner);
}

/* ---- ops ---- */

static void fail_later(struct wt_req *req) {
    req->rc = req->err.code;
    if (ends_put(req->op))
        file_put_unref(put_of(req->put)); /* its temporary stays for gc */
    wt_req_later(req);
}

/* A job of the backend's own, which no request waits for. */
static int background(struct wt_tier *tier, enum wt_op op, struct file_put *put,
                      int (*run)(struct file_job *, const struct file_dir *), struct wt_err *err) {
    struct file_tier *f = wt_backend_state(tier);
    struct file_job *job = job_new(tier, f->root, op);
    if (!job)
        return wt_err_set(err, WT_ENOMEM, "out of memory for a job");
    job->run = run;
    job->put = put;
    int rc = wt_pool_submit(f->pool, &job->job, err);
    if (rc < 0) {
        job->put = NULL;
        job_free(job);
    }
    return rc;
}

static void file_resize(struct wt_tier *tier, uint64_t capacity) {
    struct file_tier *f = wt_backend_state(tier);
    atomic_store(&f->root->capacity, capacity);
}

/* Before the first request that must know how full the tier is. */
static void count_if_needed(struct wt_tier *tier, const struct wt_req *req) {
    struct file_tier *f = wt_backend_state(tier);
    bool needed =
        req->op == WT_OP_USAGE || (req->op == WT_OP_PUT_OPEN && atomic_load(&f->root->capacity));
    struct wt_err err;
    if (needed && file_count_begin(f->root) &&
        background(tier, WT_OP_LIST, NULL, file_run_count, &err) < 0)
        file_count_failed(f->root, &err);
}

/* An abort that nobody waits for. Takes the put over. */
static void file_drop(struct wt_tier *tier, struct wt_put *head) {
    struct file_put *put = put_of(head);
    if (background(tier, WT_OP_PUT_ABORT, put, file_run_put_abort, NULL) < 0)
        file_put_unref(put); /* its temporary stays for gc */
}

static void file_op(struct wt_tier *tier, struct wt_req *req) {
    struct file_tier *f = wt_backend_state(tier);
    struct file_job *job = job_new(tier, f->root, req->op);
    if (!job) {
        wt_err_set(&req->err, WT_ENOMEM, "out of memory for a request");
        fail_later(req);
        return;
    }
    count_if_needed(tier, req);
    copy_request(job, req);
    req->priv[0] = job;
    if (req->op == WT_OP_PUT_COMMIT && wt_put_check(req->put, &job->err) < 0)
        job->run = file_run_put_refuse;
    if (wt_pool_submit(f->pool, &job->job, &req->err) == 0)
        return;
    req->priv[0] = NULL;
    req->rc = req->err.code;
    job_free(job);
    wt_req_later(req);
}

static void file_cancel(struct wt_tier *tier, struct wt_req *req) {
    struct file_job *job = req->priv[0];
    if (!job)
        return;
    if (job->direct) {
        if (!wt_job_stop(&job->job))
            return; /* the call returns by itself, and done() tells */
        job_discard(&job->job);
    } else {
        enum wt_abandon how = wt_job_abandon(&job->job);
        if (how == WT_ABANDON_ENDED)
            return;
        job->req = NULL;
        if (how == WT_ABANDON_DROPPED) {
            if (ends_put(job->op)) {
                file_drop(tier, &job->put->head);
                job->put = NULL;
            }
            job_discard(&job->job);
        }
    }
    req->priv[0] = NULL;
    req->rc = WT_ECANCELED;
    wt_req_later(req);
}

/* ---- open and close ---- */

struct url_params {
    bool bounce, mount_required;
    enum file_map map;
};

static bool take_param(const struct wt_url_param *p, struct url_params *out) {
    static const char *const maps[] = {
        [FILE_MAP_SAFE] = "safe", [FILE_MAP_ALWAYS] = "always", [FILE_MAP_NEVER] = "never"};
    if (strcmp(p->name, "bounce") == 0) {
        out->bounce = strcmp(p->value, "1") == 0;
        return out->bounce || strcmp(p->value, "0") == 0;
    }
    if (strcmp(p->name, "mount") == 0) {
        out->mount_required = strcmp(p->value, "required") == 0;
        return out->mount_required;
    }
    for (unsigned i = 0; strcmp(p->name, "map") == 0 && i <= FILE_MAP_NEVER; i++) {
        if (strcmp(p->value, maps[i]) == 0) {
            out->map = (enum file_map)i;
            return true;
        }
    }
    return false;
}

static int parse_url(const char *text, char path[512], struct url_params *params,
                     struct wt_err *err) {
    struct wt_url url;
    int rc = wt_url_parse(text, &url, err);
    if (rc < 0)
        return rc;
    if (url.authority[0])
        return wt_err_set(err, WT_EINVAL, "url \"%.200s\": a file url has no host: file:///PATH",
                          text);
    size_t len = strlen(url.path);
    while (len && url.path[len - 1] == '/')
        url.path[--len] = '\0';
    if (len == 0)
        return wt_err_set(err, WT_EINVAL, "url \"%.200s\": the root folder itself cannot be a tier",
                          text);
    *params = (struct url_params){0};
    for (size_t i = 0; i < url.n_params; i++) {
        if (!take_param(&url.param[i], params))
            return wt_err_set(err, WT_EINVAL,
                              "url \"%.200s\": %s=%.60s: known are bounce=0 or 1, map=safe, "
                              "always or never, mount=required",
                              text, url.param[i].name, url.param[i].value);
    }
    memcpy(path, url.path, len + 1);
    return 0;
}

static void on_stuck(void *arg, int delta) {
    wt_backend_stuck(arg, delta);
}

static int make_pool(struct wt_tier *tier, struct file_tier *f, struct wt_err *err) {
    size_t workers = (size_t)wt_backend_depth(tier) + 1; /* one for a count */
    if (workers > MAX_WORKERS)
        workers = MAX_WORKERS;
    struct wt_pool_opts opts = {workers, WT_STUCK_MAX, on_stuck, tier};
    return wt_pool_new(wt_backend_loop(tier), &opts, &f->pool, err);
}

/* The first look at the root, on a worker: the mount may hang. */
static void first_look(struct wt_tier *tier, struct file_tier *f) {
    struct wt_err err = {0};
    struct file_job *job = job_new(tier, f->root, WT_OP_PROBE);
    if (!job || wt_pool_submit(f->pool, &job->job, &err) < 0) {
        wt_err_set(&err, WT_EDOWN, "no worker to look at its root");
        wt_backend_down(tier, &err);
        if (job)
            job_free(job);
        return;
    }
    if (wt_pool_wait(f->pool, OPEN_WAIT_MS)) {
        if (job->rc < 0)
            wt_backend_down(tier, &job->err);
        return; /* job_done frees it at the loop's next turn */
    }
    if (wt_job_abandon(&job->job) == WT_ABANDON_DROPPED)
        job_discard(&job->job);
    wt_err_set(&err, WT_EDOWN, "root %s: no answer within %d ms", f->root->path, OPEN_WAIT_MS);
    wt_backend_down(tier, &err);
}

static const double priors_us[] = {[FILE_TMPFS] = 30, [FILE_LOCAL] = 200, [FILE_NETWORK] = 1500};

static int file_open(struct wt_tier *tier, const char *text, struct wt_err *err) {
    char path[512];
    struct url_params params;
    int rc = parse_url(text, path, &params, err);
    if (rc < 0)
        return rc;
    struct file_tier *f = calloc(1, sizeof *f);
    if (f)
        f->root = file_root_new(wt_backend_opts(tier), path, params.bounce);
    if (!f || !f->root) {
        free(f);
        return wt_err_set(err, WT_ENOMEM, "out of memory for a tier");
    }
    f->root->mount_required = params.mount_required;
    f->root->map =
        params.map == FILE_MAP_SAFE && !file_leases_possible() ? FILE_MAP_NEVER : params.map;
    rc = make_pool(tier, f, err);
    if (rc < 0) {
        file_root_unref(f->root);
        free(f);
        return rc;
    }
    wt_backend_set(tier, f);
    first_look(tier, f);
    wt_backend_prior(tier, priors_us[file_root_kind(f->root)]);
    return 0;
}

static unsigned file_caps(const struct wt_tier *tier) {
    const struct file_tier *f = wt_backend_state(tier);
    return file_root_caps(f->root);
}

static void on_pool_closed(void *arg) {
    struct wt_tier *tier = arg;
    struct file_tier *f = wt_backend_state(tier);
    file_root_unref(f->root); /* a job left behind may hold it for longer */
    free(f);
    wt_backend_closed(tier);
}

static void file_close(struct wt_tier *tier) {
    struct file_tier *f = wt_backend_state(tier);
    atomic_store(&f->root->closing, true);
    file_maps_closing(f->root);
    /* Failing that, the locks go with the root. */
    background(tier, WT_OP_UNLOCK, NULL, file_run_release_all, NULL);
    wt_pool_close(f->pool, on_pool_closed, tier);
}

const struct wt_backend wt_backend_file = {
    .scheme = "file",
    .help = WT_FORM_FILE
    " (bounce: treat it as a network mount; mount=required: down while nothing is mounted there)",
    .depth = 16,
    .prior_us = 200,
    .open = file_open,
    .close = file_close,
    .caps = file_caps,
    .op =
        {
            [WT_OP_STAT] = file_op,
            [WT_OP_GET] = file_op,
            [WT_OP_MAP] = file_op,
            [WT_OP_PUT_OPEN] = file_op,
            [WT_OP_PUT_WRITE] = file_op,
            [WT_OP_PUT_COMMIT] = file_op,
            [WT_OP_PUT_ABORT] = file_op,
            [WT_OP_REMOVE] = file_op,
            [WT_OP_LIST] = file_op,
            [WT_OP_USAGE] = file_op,
            [WT_OP_PROBE] = file_op,
            [WT_OP_LOCK] = file_op,
            [WT_OP_UNLOCK] = file_op,
        },
    .cancel = file_cancel,
    .drop = file_drop,
    .resize = file_resize,
};
