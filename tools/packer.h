/*
 * Packing: samples of a source become shards in a tier.
 *
 * Happy path: the source is cut into ranges, one a shard, by a rule that depends on sizes alone;
 * workers read and build shards, each into memory of its own; the calling thread puts them in order
 * (publish.h) while the workers go on, and the manifest last. Failures: the first error in the
 * order of shards, or an interrupt, stops the workers; what was put is removed again, and nothing
 * has become visible. Memory: at most threads + 2 shards, and a writer for each thread.
 */
#ifndef WT_TOOLS_PACKER_H
#define WT_TOOLS_PACKER_H

#include "tools/progress.h"
#include "tools/publish.h"
#include "tools/source.h"

enum wt_pack_codec { WT_PACK_AUTO, WT_PACK_TAR, WT_PACK_ZSTD };

struct wt_pack_opts {
    const char *dataset;
    const char *land;    /* the tier that shards are landed in, NULL: the target's */
    int codec;           /* enum wt_pack_codec */
    uint64_t level;      /* zstd, 0: the default */
    uint64_t shard_size; /* bound of decoded bytes, 0: a 256th of the data set, 256 KiB to 64 MiB */
    bool index_only;     /* no .cls and .json members */
    bool replace;
    uint64_t threads; /* 0: the processors that this process may use */
    bool (*stopped)(void *arg);
    void *stopped_arg;
    struct wt_progress *progress; /* started by the packer's caller; NULL: none */
};

/* Fills *m (wt_manifest_free) with what was published. */
int wt_pack_run(struct wt_source *source, struct wt_target *target, const struct wt_pack_opts *opts,
                struct wt_manifest *m, struct wt_err *err);

/* ---- its steps, for tests ---- */

struct wt_pack_plan {
    uint64_t *first; /* [shards + 1] */
    uint64_t shards, shard_size;
};
int wt_pack_cut(const struct wt_source *source, uint64_t shard_size, bool sidecars,
                struct wt_pack_plan *plan, struct wt_err *err);
/* The codec that pays: zstd where it saves a quarter of a plain tar or more, tried on a few
 * samples. */
int wt_pack_choose(struct wt_source *source, const struct wt_pack_opts *opts, enum wt_codec *codec,
                   struct wt_err *err);
/* Options of a shard writer for this source. */
struct wt_shard_opts wt_pack_shard_opts(const struct wt_source *source,
                                        const struct wt_pack_opts *opts, enum wt_codec codec);

/* The workers: shards come out in order. */
struct wt_builder;
int wt_builder_start(struct wt_source *source, const struct wt_pack_plan *plan,
                     const struct wt_shard_opts *shard, unsigned threads, struct wt_builder **out,
                     struct wt_err *err);
/* The next shard: 1 (out->samples may be 0: all of its samples were bad), 0: that was all;
 * WT_ECANCELED when `stopped` says so. */
int wt_builder_next(struct wt_builder *b, bool (*stopped)(void *), void *arg,
                    struct wt_shard_out *out, struct wt_err *err);
/* Ends the workers; *m gets their counts when it is not NULL. */
int wt_builder_end(struct wt_builder *b, struct wt_manifest *m, struct wt_err *err);

#endif
