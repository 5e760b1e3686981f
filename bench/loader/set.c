/* Reads manifest and shards.idx as a loader would, maps all shards; see set.h. */
#include "bench/loader/set.h"

#include "bench/measure.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t *map_file(const char *folder, const char *name, size_t *size) {
    char path[1024];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size == 0)
        bench_die("%s cannot be read", path);
    *size = (size_t)st.st_size;
    void *data = mmap(NULL, *size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (data == MAP_FAILED)
        bench_die("%s cannot be mapped", path);
    close(fd);
    return data;
}

static void read_index(struct set *s, const char *folder, const char *dataset) {
    struct wt_err err = {0};
    struct wt_manifest m = {0};
    char name[WT_OBJECT_NAME];
    size_t size;
    wt_manifest_name(dataset, name);
    const uint8_t *text = map_file(folder, name, &size);
    if (wt_manifest_parse((const char *)text, size, &m, &err) < 0)
        bench_die("%s: %s", name, err.text);
    const void **parts = calloc(m.n_parts, sizeof *parts);
    size_t *lens = calloc(m.n_parts, sizeof *lens);
    if (!parts || !lens)
        bench_die("out of memory");
    for (uint32_t i = 0; i < m.n_parts; i++) {
        wt_idx_name(dataset, m.part[i].hash, name);
        parts[i] = map_file(folder, name, &lens[i]);
    }
    if (wt_dataset_build(&m, parts, lens, &s->ds, &err) < 0)
        bench_die("%s: %s", dataset, err.text);
    free(parts);
    free(lens);
}

static void open_shard(struct set *s, uint64_t number, const char *folder, const char *dataset) {
    struct wt_err err = {0};
    struct set_shard *sh = &s->shard[number];
    char name[WT_OBJECT_NAME];
    size_t size;
    wt_dataset_rec(&s->ds, number, &sh->rec);
    wt_shard_name(dataset, number, &sh->rec, name);
    sh->data = map_file(folder, name, &size);
    if (size != sh->rec.size ||
        wt_shard_index_parse(sh->data + sh->rec.index_off, size - sh->rec.index_off,
                             sh->rec.index_off, size, sh->rec.codec, &sh->index, &err) < 0)
        bench_die("%s: %s", name, err.text);
}

static const uint8_t *decode_shard(const struct set_shard *sh, struct wt_decoder *d) {
    const struct wt_shard_index *x = &sh->index;
    struct wt_span span = wt_shard_span(x, 0, sh->rec.samples);
    struct wt_err err = {0};
    uint8_t *tar = malloc(span.tar_len);
    if (!tar || !d)
        bench_die("out of memory");
    for (uint32_t i = span.frame_first; i < span.frame_first + span.n_frames; i++)
        if (wt_shard_decode_frame(d, x, i, sh->data + x->frame[i].off, tar + x->frame[i].tar_off,
                                  &err) < 0)
            bench_die("%s", err.text);
    return tar;
}

void set_open(struct set *s, const char *folder, const char *dataset) {
    uint64_t bytes;
    read_index(s, folder, dataset);
    const struct wt_manifest *m = &s->ds.m;
    if (m->n_fields != 1 || m->field[0].shape.ndim > WT_MAX_NDIM ||
        !wt_shape_bytes(&m->field[0].shape, &bytes))
        bench_die("%s: images of one shape and no other field are wanted", dataset);
    s->row = (size_t)bytes;
    s->shard = calloc(m->shards, sizeof *s->shard);
    if (!s->shard)
        bench_die("out of memory");
    struct wt_decoder *d = wt_decoder_new();
    for (uint64_t i = 0; i < m->shards; i++) {
        struct set_shard *sh = &s->shard[i];
        open_shard(s, i, folder, dataset);
        sh->tar = sh->rec.codec == WT_CODEC_TAR ? sh->data : decode_shard(sh, d);
    }
    wt_decoder_free(d);
}

void set_close(struct set *s) {
    for (uint64_t i = 0; i < s->ds.m.shards; i++) {
        if (s->shard[i].tar != s->shard[i].data)
            free((void *)s->shard[i].tar);
        munmap((void *)s->shard[i].data, s->shard[i].rec.size);
        wt_shard_index_free(&s->shard[i].index);
    }
    free(s->shard);
    wt_dataset_free(&s->ds);
}

struct set_place set_find(const struct set *s, uint64_t ordinal) {
    uint64_t n = wt_dataset_find(&s->ds, ordinal);
    const struct set_shard *sh = &s->shard[n];
    uint32_t sample = (uint32_t)(ordinal - s->ds.cum[n]);
    return (struct set_place){sh, sample, wt_shard_ref(&sh->index, sample, 0)->off};
}

uint64_t *set_order(const wl_info *info, uint64_t seed, uint64_t epoch) {
    struct wt_plan plan;
    struct wt_plan_opts o = {.samples = info->samples,
                             .seed = seed,
                             .batch = info->rank_batch,
                             .block = info->block,
                             .lanes = info->lanes,
                             .window = info->window};
    uint64_t *order = calloc(info->steps * info->rank_batch, sizeof *order);
    if (!order || wt_plan_init(&plan, &o, NULL) < 0)
        bench_die("out of memory");
    struct wt_epoch e = wt_plan_epoch(&plan, epoch);
    for (uint64_t i = 0; i < plan.steps * plan.o.batch; i++) {
        uint64_t step = i / plan.o.batch, row = i % plan.o.batch;
        order[i] = wt_epoch_sample(&e, wt_plan_lane_of(&plan, row),
                                   step * plan.lane_batch + row % plan.lane_batch);
    }
    return order;
}
