/* From a source to a published data set; see packer.h. */
#include "tools/packer.h"

#include "core/mem.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 256 };

static unsigned choose_threads(uint64_t wanted) {
    cpu_set_t set;
    if (wanted == 0)
        wanted = sched_getaffinity(0, sizeof set, &set) == 0 ? (uint64_t)CPU_COUNT(&set) : 1;
    return (unsigned)(wanted > THREADS_MAX ? THREADS_MAX : wanted);
}

static int copy_classes(const struct wt_source *source, struct wt_manifest *m, struct wt_err *err) {
    m->label_kind = source->label_kind;
    m->classes = wt_calloc(source->n_classes, sizeof *m->classes);
    if (!m->classes)
        return wt_err_set(err, WT_ENOMEM, "no memory for class names");
    for (; m->n_classes < source->n_classes; m->n_classes++) {
        m->classes[m->n_classes] = strdup(source->classes[m->n_classes]);
        if (!m->classes[m->n_classes])
            return wt_err_set(err, WT_ENOMEM, "no memory for class names");
    }
    return 0;
}

static int put_shards(struct wt_publish *p, struct wt_builder *b, enum wt_codec codec,
                      const struct wt_pack_opts *opts, struct wt_err *err) {
    struct wt_shard_out out;
    int more;
    while ((more = wt_builder_next(b, opts->stopped, opts->stopped_arg, &out, err)) > 0) {
        if (out.samples == 0)
            continue;
        int rc = wt_publish_shard(p, codec, &out, err);
        wt_shard_out_free(&out);
        if (rc < 0)
            return rc;
        if (opts->progress)
            wt_progress_at(opts->progress, p->samples, p->pixel_bytes);
    }
    return more;
}

static int build_and_put(struct wt_source *source, const struct wt_pack_plan *plan,
                         enum wt_codec codec, struct wt_publish *p, const struct wt_pack_opts *opts,
                         struct wt_manifest *m, struct wt_err *err) {
    struct wt_shard_opts shard = wt_pack_shard_opts(source, opts, codec);
    struct wt_builder *b;
    int rc = wt_builder_start(source, plan, &shard, choose_threads(opts->threads), &b, err);
    if (rc < 0)
        return rc;
    rc = put_shards(p, b, codec, opts, err);
    if (rc < 0) {
        wt_builder_end(b, NULL, NULL);
        return rc;
    }
    return wt_builder_end(b, m, err);
}

/* Says in the error what became of the objects that were put. */
static void undo(struct wt_publish *p, struct wt_err *err) {
    uint64_t removed, left = wt_publish_undo(p, &removed);
    size_t n = strlen(err->text);
    if (left)
        snprintf(err->text + n, sizeof err->text - n,
                 "; %llu objects could not be removed and stay for gc", (unsigned long long)left);
    else
        snprintf(err->text + n, sizeof err->text - n,
                 "; nothing was packed (%llu objects removed again)", (unsigned long long)removed);
}

static int land_in(struct wt_publish *p, const char *name, struct wt_err *err) {
    struct wt_tier_opts opts;
    struct wt_tier *tier;
    int rc = wt_target_named(p->target, name, &tier, &opts, err);
    if (rc < 0)
        return rc;
    if (wt_tier_caps(tier) & WT_CAP_VOLATILE)
        return wt_err_set(err, WT_EINVAL,
                          "nothing can be landed in tier '%s' (%s): what it holds may vanish", name,
                          wt_tier_url(tier));
    if (opts.land_max == 0)
        return wt_err_set(err, WT_EINVAL,
                          "nothing may be landed in tier '%s': its land_max is 0; set it to what "
                          "that tier may keep alone",
                          name);
    return wt_publish_land(p, tier, opts.land_max, err);
}

int wt_pack_run(struct wt_source *source, struct wt_target *target, const struct wt_pack_opts *opts,
                struct wt_manifest *m, struct wt_err *err) {
    struct wt_publish p;
    struct wt_pack_plan plan = {0};
    struct wt_manifest made = {0};
    enum wt_codec codec = WT_CODEC_TAR;
    int rc = wt_publish_begin(&p, target, opts->dataset, opts->replace, err);
    if (rc == 0 && opts->land)
        rc = land_in(&p, opts->land, err);
    if (rc == 0)
        rc = wt_pack_cut(source, opts->shard_size, !opts->index_only, &plan, err);
    if (rc == 0)
        rc = wt_pack_choose(source, opts, &codec, err);
    if (rc == 0)
        rc = copy_classes(source, &made, err);
    if (rc == 0)
        rc = build_and_put(source, &plan, codec, &p, opts, &made, err);
    if (rc == 0 && opts->stopped && opts->stopped(opts->stopped_arg))
        rc = wt_err_set(err, WT_ECANCELED, "interrupted");
    if (rc == 0)
        rc = wt_publish_commit(&p, &made, err);
    if (opts->progress)
        wt_progress_clear(opts->progress);
    if (rc < 0) {
        if (p.put.len)
            undo(&p, err);
        wt_manifest_free(&made);
    } else {
        *m = made;
    }
    wt_publish_end(&p);
    free(plan.first);
    return rc;
}
