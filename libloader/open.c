/*
 * wl_open and wl_close.
 *
 * Happy path: options, context, manifest, plan, tensors, memory, ring, reporter, engine; from then
 * on batches are prepared. Whatever fails on the way is undone in reverse and told through
 * wl_last_error(NULL). Closing ends the engine, waits for what is under way (all of it has
 * deadlines) and leaves the ring to the batches that are still held.
 */
#include "libloader/open.h"

#include "libloader/quarantine.h"

#include "libloader/env.h"
#include "libloader/options.h"
#include "libloader/report.h"
#include "libloader/tenancy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What most shards hold: a block that is a shard is read in one go. Majority vote, else the mean.
 */
static uint64_t typical_block(const struct wt_dataset *ds) {
    uint64_t candidate = 0, votes = 0, count = 0;
    for (uint64_t i = 0; i < ds->m.shards; i++) {
        uint64_t n = ds->cum[i + 1] - ds->cum[i];
        if (votes == 0)
            candidate = n;
        votes = n == candidate ? votes + 1 : votes - 1;
    }
    for (uint64_t i = 0; i < ds->m.shards; i++)
        count += ds->cum[i + 1] - ds->cum[i] == candidate;
    uint64_t mean = (ds->m.samples + ds->m.shards - 1) / ds->m.shards;
    return count * 2 > ds->m.shards ? candidate : mean;
}

static void ask_plan(struct wl_loader *l) {
    const struct wt_manifest *m = &l->ds.m;
    l->asked =
        (struct wt_plan_opts){.samples = m->samples,
                              .seed = l->o.seed,
                              .batch = l->o.batch,
                              .block = l->o.block ? l->o.block : typical_block(&l->ds),
                              .lanes = l->o.lanes,
                              .window = l->o.window,
                              .tail = l->o.tail == WL_TAIL_PAD ? WT_TAIL_PAD : WT_TAIL_DROP,
                              .mode = l->o.mode == WL_MODE_EVAL ? WT_PLAN_EVAL : WT_PLAN_TRAIN};
    l->asked.block_bytes = m->tar_bytes / m->samples * l->asked.block;
}

int wt_loader_plan(struct wl_loader *l, struct wt_err *err) {
    struct wt_plan plan;
    int rc = wt_plan_init(&plan, &l->asked, err);
    if (rc)
        return rc;
    if ((uint64_t)l->o.world > plan.o.batch)
        return wt_err_set(err, WT_EINVAL,
                          "batch %llu is less than world %d: every rank needs a row",
                          (unsigned long long)plan.o.batch, l->o.world);
    if (plan.steps == 0)
        return wt_err_set(err, WT_EINVAL,
                          "data set '%s' has %llu samples, too few for a batch of %llu: set "
                          "tail=pad, or a smaller batch",
                          l->dataset, (unsigned long long)plan.o.samples,
                          (unsigned long long)plan.o.batch);
    l->plan = plan;
    wt_plan_rank(&l->plan, (uint32_t)l->o.rank, (uint32_t)l->o.world, &l->first_row, &l->rows);
    return 0;
}

static void set_base(struct wl_loader *l) {
    struct wt_state *s = &l->ring->base;
    strcpy(s->dataset, l->ds.m.name);
    s->generation = l->ds.m.generation;
    s->idx = wt_state_idx(&l->ds.m);
    s->seed = l->o.seed;
    s->samples = l->plan.o.samples;
    s->block = l->plan.o.block;
    s->lanes = l->plan.o.lanes;
    s->window = l->plan.o.window;
    s->tail = (uint32_t)l->plan.o.tail;
    s->mode = (uint32_t)l->plan.o.mode;
    s->plan_version = WT_PLAN_VERSION;
}

static int copy_texts(struct wl_loader *l, struct wt_err *err) {
    char host[64] = "host", job[128];
    gethostname(host, sizeof host - 1);
    snprintf(job, sizeof job, "%s-%ld", host, (long)getpid());
    l->dataset = strdup(l->o.dataset);
    l->job = strdup(l->o.job ? l->o.job : job);
    if (!l->dataset || !l->job)
        return wt_err_set(err, WT_ENOMEM, "out of memory for a loader");
    return strlen(l->dataset) < WT_DATASET_NAME
               ? 0
               : wt_err_set(err, WT_EINVAL, "option 'dataset': '%.80s...' is too long for a name",
                            l->dataset);
}

static int own_context(struct wl_loader *l, struct wl_context *ctx) {
    if (ctx) {
        wt_context_ref(ctx);
        l->ctx = ctx;
        return WL_OK;
    }
    wl_context_options o = WL_CONTEXT_OPTIONS_INIT;
    o.config = l->o.config;
    o.memory = l->o.memory;
    o.threads = l->o.threads;
    o.log = l->o.log;
    o.log_arg = l->o.log_arg;
    return wl_context_open(&o, &l->ctx);
}

static int build_ring(struct wl_loader *l, struct wt_err *err) {
    struct wt_tensor_spec spec[WT_RING_TENSORS];
    const struct wt_accel *accel;
    size_t n;
    int rc = wt_accel_choose(l->o.accel, &l->ctx->log, &accel, err);
    if (!rc)
        rc = wt_loader_fields(l, spec, &n, err);
    if (rc)
        return rc;
    uint64_t bytes = wt_ring_bytes(spec, n, l->rows, l->o.slots);
    if (bytes == UINT64_MAX)
        return wt_err_set(err, WT_EINVAL, "a batch of %llu rows is too large",
                          (unsigned long long)l->rows);
    rc = wt_memory_reserve(l, bytes, err);
    if (!rc)
        rc = wt_ring_new(spec, n, l->rows, l->o.slots, accel, &l->ring, err);
    if (rc)
        return rc;
    l->ring_bytes = bytes;
    l->by_seq = wt_calloc(l->o.slots, sizeof(struct wl_batch *));
    rc =
        l->by_seq ? wt_stage_new(l, err) : wt_err_set(err, WT_ENOMEM, "out of memory for a loader");
    set_base(l);
    l->ring->owner = l;
    l->ring->freed = wt_loader_freed;
    return rc;
}

static void loader_free(struct wl_loader *l) {
    wt_tenancy_end(l->tenancy);
    if (l->ring) {
        wt_stage_free(l);
        wt_ring_disown(l->ring);
    }
    wt_memory_release(l);
    wt_residency_free(&l->residency);
    wt_moves_free(&l->moves);
    wt_dataset_free(&l->ds);
    wl_context_close(l->ctx);
    wt_quarantine_free(l->quarantine);
    free(l->by_seq);
    free(l->dataset);
    free(l->job);
    free(l);
}

static int build(struct wl_loader *l, struct wt_err *err) {
    l->quarantine = wt_quarantine_new();
    if (!l->quarantine)
        return wt_err_set(err, WT_ENOMEM, "out of memory for a loader");
    int rc = wt_loader_read_dataset(l, err);
    if (rc)
        return rc;
    ask_plan(l);
    rc = wt_loader_plan(l, err);
    if (!rc)
        rc = build_ring(l, err);
    if (!rc && wt_residency_init(&l->residency, l->ds.m.shards, l->home != 0) < 0)
        rc = wt_err_set(err, WT_ENOMEM, "out of memory for %llu shards",
                        (unsigned long long)l->ds.m.shards);
    if (!rc)
        rc = wt_reporter_new(l, &l->reporter, err);
    if (rc)
        return rc;
    rc = wt_engine_start(l, 0, 0, err);
    if (rc)
        wt_reporter_free(l->reporter);
    else
        l->tenancy = wt_tenancy_begin(l->ctx, l->ds.m.name, l->ds.m.generation, l->job);
    return rc;
}

int wl_open(wl_context *ctx, const wl_options *options, wl_loader **out) {
    struct wt_err err = {0};
    wl_options o;
    if (!out)
        return wt_error_set(wt_error_thread(), WL_ERROR_INVALID, "wl_open: out is needed");
    if (wt_options_take(options, &o, &err) || wt_env_ranks(&o.rank, &o.world, &err))
        return wt_error_from(wt_error_thread(), &err);
    struct wl_loader *l = wt_calloc(1, sizeof *l);
    if (!l)
        return wt_error_set(wt_error_thread(), WL_ERROR_MEMORY, "out of memory for a loader");
    l->o = o;
    l->opened_ns = wt_now_ns();
    atomic_store(&l->stopping, true);
    atomic_store(&l->meter.blame_tier, -1);
    wt_moves_init(&l->moves);
    int code = own_context(l, ctx);
    if (code == WL_OK && (copy_texts(l, &err) || build(l, &err)))
        code = wt_error_from(wt_error_thread(), &err);
    if (code < 0) {
        loader_free(l);
        return code;
    }
    *out = l;
    return WL_OK;
}

void wl_close(wl_loader *l) {
    if (!l)
        return;
    wl_abort(l);
    wt_engine_stop(l); /* first: what is under way tells the reporter what it read */
    wt_reporter_free(l->reporter);
    if (l->into)
        wt_ring_release(l->into);
    loader_free(l);
}
