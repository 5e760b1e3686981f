/* Data sets as `wafertier pack` leaves them in the cold store; see sim.h. Bytes are random. */
#include "sim.h"

#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP_PER_MILLE = 700, SAMPLE = 1024 };

struct sim_shard *sim_shard_of(struct sim_world *w, const char *key) {
    uint64_t hash = wt_hash64(key, strlen(key));
    for (size_t i = 0; i < w->n_shards; i++)
        if (w->shard[i].key_hash == hash && strcmp(w->shard[i].key, key) == 0)
            return &w->shard[i];
    return NULL;
}

bool sim_whole(const struct sim_shard *s, const struct sim_object *o) {
    return s->blob == o->blob || (s->blob->size == o->blob->size &&
                                  memcmp(s->blob->data, o->blob->data, s->blob->size) == 0);
}

static struct sim_blob *random_bytes(struct sim_world *w, uint64_t size) {
    struct sim_blob *b = sim_blob_new((size_t)size);
    uint64_t x = sim_random(w);
    for (size_t i = 0; i + 8 <= b->size; i += 8) {
        x = x * UINT64_C(6364136223846793005) + 1;
        memcpy(b->data + i, &x, 8);
    }
    memset(b->data + b->size / 8 * 8, 0, b->size % 8);
    return b;
}

static size_t new_shard(struct sim_world *w, uint64_t number, struct wt_shard_rec *rec) {
    uint64_t size = w->shard_size > WT_PART ? w->shard_size : SAMPLE + sim_below(w, w->shard_size);
    struct sim_blob *b = random_bytes(w, size);
    if (wt_grow(&w->shard, &w->cap_shards, w->n_shards + 1, sizeof *w->shard) < 0)
        abort();
    struct sim_shard *s = &w->shard[w->n_shards];
    *s = (struct sim_shard){.blob = b, .hash = wt_hash(b->data, b->size)};
    uint64_t most = size / SAMPLE;
    *rec = (struct wt_shard_rec){.hash = s->hash,
                                 .size = size,
                                 .tar_size = size,
                                 .index_off = size / 2,
                                 .samples = (uint32_t)sim_between(w, 1, most < 8 ? most : 8),
                                 .codec = WT_CODEC_TAR};
    wt_shard_name("wafers", number, rec, s->key);
    s->key_hash = wt_hash64(s->key, strlen(s->key));
    sim_store_set(&w->store[0], s->key, sim_blob_ref(b), true);
    return w->n_shards++;
}

/* The shard is that of the generation before, most often. */
static size_t pick_shard(struct sim_world *w, const struct sim_set *before, uint64_t i,
                         struct wt_shard_rec *rec) {
    if (!before || i >= before->d.m.shards || !sim_chance(w, KEEP_PER_MILLE))
        return new_shard(w, i, rec);
    wt_dataset_rec(&before->d, i, rec);
    return before->shard[i];
}

static void put_bytes(struct sim_world *w, const char *key, const void *data, size_t len) {
    struct sim_blob *b = sim_blob_new(len);
    memcpy(b->data, data, len);
    sim_store_set(&w->store[0], key, b, true);
}

/* Index and manifest; the set takes the manifest over. */
static void publish(struct sim_world *w, struct sim_set *set, struct wt_manifest *m,
                    const uint8_t *idx) {
    size_t len = (size_t)m->shards * WT_IDX_RECORD;
    struct wt_idx_part *part = calloc(1, sizeof *part);
    char name[WT_OBJECT_NAME];
    struct wt_err err;
    if (!part)
        abort();
    *part = (struct wt_idx_part){.hash = wt_hash(idx, len), .records = (uint32_t)m->shards};
    m->part = part;
    m->n_parts = 1;
    wt_idx_name(m->name, part->hash, name);
    put_bytes(w, name, idx, len);
    char *text = wt_manifest_format(m);
    if (!text)
        abort();
    wt_manifest_name(m->name, name);
    put_bytes(w, name, text, strlen(text));
    free(text);
    if (wt_dataset_build(m, &(const void *){idx}, &len, &set->d, &err) < 0)
        sim_break(w, "the simulator packs badly: %s", err.text);
}

void sim_pack(struct sim_world *w, uint64_t generation) {
    const struct sim_set *before = w->n_sets ? &w->set[w->n_sets - 1] : NULL;
    uint64_t n = before ? before->d.m.shards + sim_below(w, 3) : w->shards_begin;
    struct sim_set *set = &w->set[w->n_sets];
    struct wt_manifest m = {
        .generation = generation, .created = 1, .shards = n, .lots = 1, .wafers = 1, .n_fields = 1};
    snprintf(m.name, sizeof m.name, "wafers");
    m.field[0].shape = (struct wt_shape){.dtype = WT_DTYPE_U8, .ndim = 2, .dim = {8, 8}};
    uint8_t *idx = calloc((size_t)n, WT_IDX_RECORD);
    set->shard = calloc((size_t)n, sizeof *set->shard);
    if (!idx || !set->shard)
        abort();
    for (uint64_t i = 0; i < n; i++) {
        struct wt_shard_rec rec;
        set->shard[i] = pick_shard(w, before, i, &rec);
        rec.first = m.samples;
        wt_shard_rec_encode(&rec, idx + i * WT_IDX_RECORD);
        m.samples += rec.samples;
        m.stored_bytes += rec.size;
        m.tar_bytes += rec.tar_size;
        m.pixel_bytes += rec.samples * UINT64_C(64);
    }
    publish(w, set, &m, idx);
    free(idx);
    w->n_sets++;
    sim_say(w, "generation %llu is packed: %llu shards", (unsigned long long)generation,
            (unsigned long long)n);
}

void sim_data_free(struct sim_world *w) {
    for (size_t i = 0; i < w->n_sets; i++) {
        wt_dataset_free(&w->set[i].d);
        free(w->set[i].shard);
    }
    for (size_t i = 0; i < w->n_shards; i++)
        sim_blob_unref(w->shard[i].blob);
    free(w->shard);
}
