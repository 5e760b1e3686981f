/* Where shards begin, and which codec pays; see packer.h. */
#include "core/mem.h"
#include "tools/packer.h"

#include <stdlib.h>

#define SHARD_SIZE_MIN (UINT64_C(256) << 10)
#define SHARD_SIZE_MAX (UINT64_C(64) << 20)
enum { SHARDS_WANTED = 256, SIDECARS = 4 * 512, TRIAL_SAMPLES = 16 };
#define TRIAL_BYTES (UINT64_C(16) << 20)

static uint64_t sample_bytes(const struct wt_source *source, uint64_t i, bool sidecars) {
    return source->ops->tar_bytes(source, i) + (sidecars ? SIDECARS : 0);
}

static uint64_t default_size(const struct wt_source *source, bool sidecars) {
    uint64_t total = 0;
    for (uint64_t i = 0; i < source->samples; i++)
        total += sample_bytes(source, i, sidecars);
    uint64_t size = total / SHARDS_WANTED;
    return size < SHARD_SIZE_MIN ? SHARD_SIZE_MIN : size > SHARD_SIZE_MAX ? SHARD_SIZE_MAX : size;
}

int wt_pack_cut(const struct wt_source *source, uint64_t shard_size, bool sidecars,
                struct wt_pack_plan *plan, struct wt_err *err) {
    struct wt_pack_plan p = {.shard_size =
                                 shard_size ? shard_size : default_size(source, sidecars)};
    size_t cap = 0;
    uint64_t in_shard = 0;
    for (uint64_t i = 0; i <= source->samples; i++) {
        uint64_t bytes = i < source->samples ? sample_bytes(source, i, sidecars) : 0;
        bool begins = i == 0 || i == source->samples || in_shard + bytes > p.shard_size ||
                      i - p.first[p.shards - 1] == UINT32_MAX;
        if (begins) {
            if (wt_grow(&p.first, &cap, p.shards + 1, sizeof *p.first) < 0) {
                free(p.first);
                return wt_err_set(err, WT_ENOMEM, "no memory to plan %llu samples",
                                  (unsigned long long)source->samples);
            }
            p.first[p.shards++] = i;
            in_shard = 0;
        }
        in_shard += bytes;
    }
    p.shards--; /* the last mark is the end */
    *plan = p;
    return 0;
}

struct wt_shard_opts wt_pack_shard_opts(const struct wt_source *source,
                                        const struct wt_pack_opts *opts, enum wt_codec codec) {
    return (struct wt_shard_opts){
        .codec = codec,
        .level = (int)opts->level,
        .sidecars = !opts->index_only,
        .n_multihot = source->label_kind == WT_LABEL_MULTIHOT ? source->n_classes : 0};
}

struct trial {
    struct wt_shard_writer *writer[2]; /* by codec */
};

static int add_to_both(void *arg, const struct wt_sample_in *s, struct wt_err *err) {
    struct trial *t = arg;
    int rc = wt_shard_writer_add(t->writer[WT_CODEC_TAR], s, err);
    return rc < 0 ? rc : wt_shard_writer_add(t->writer[WT_CODEC_ZSTD], s, err);
}

/* A few samples from all over the source, or from its start where it has to be read in order. */
static int read_trial(struct wt_source *source, struct wt_image *image, struct trial *t,
                      struct wt_err *err) {
    uint64_t n = source->samples < TRIAL_SAMPLES ? source->samples : TRIAL_SAMPLES;
    bool ordered = source->ops->ordered(source, 0, source->samples);
    int rc = 0;
    uint64_t bytes = 0;
    for (uint64_t k = 0; rc == 0 && k < n && bytes < TRIAL_BYTES; k++) {
        uint64_t i = ordered ? k : k * (source->samples / n);
        bytes += source->ops->tar_bytes(source, i);
        rc = source->ops->read(source, image, i, 1, add_to_both, t, err);
    }
    return rc;
}

static int finish_trial(struct trial *t, enum wt_codec *codec, struct wt_err *err) {
    uint64_t size[2] = {0, 0};
    for (int c = 0; c < 2; c++) {
        struct wt_shard_out out;
        if (wt_shard_writer_samples(t->writer[c]) == 0)
            break; /* all of them were bad */
        int rc = wt_shard_writer_finish(t->writer[c], &out, err);
        if (rc < 0)
            return rc;
        size[c] = out.size;
        wt_shard_out_free(&out);
    }
    *codec = size[WT_CODEC_ZSTD] <= size[WT_CODEC_TAR] / 4 * 3 ? WT_CODEC_ZSTD : WT_CODEC_TAR;
    return 0;
}

int wt_pack_choose(struct wt_source *source, const struct wt_pack_opts *opts, enum wt_codec *codec,
                   struct wt_err *err) {
    if (opts->codec != WT_PACK_AUTO) {
        *codec = opts->codec == WT_PACK_ZSTD ? WT_CODEC_ZSTD : WT_CODEC_TAR;
        return 0;
    }
    struct trial t = {{NULL, NULL}};
    struct wt_image image = {0};
    int rc = 0;
    for (int c = 0; rc == 0 && c < 2; c++) {
        struct wt_shard_opts shard = wt_pack_shard_opts(source, opts, (enum wt_codec)c);
        rc = wt_shard_writer_new(&shard, &t.writer[c], err);
    }
    if (rc == 0)
        rc = read_trial(source, &image, &t, err);
    if (rc == 0)
        rc = finish_trial(&t, codec, err);
    wt_shard_writer_free(t.writer[0]);
    wt_shard_writer_free(t.writer[1]);
    wt_image_free(&image);
    return rc;
}
