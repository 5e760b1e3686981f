/* See loader_kit.h. */
#include "loader_kit.h"

#include "tiers/sync.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const class_names[] = {"none", "center", "donut", "edge", "scratch"};

/* ---- the data set ---- */

static uint16_t pixel(unsigned sample, size_t p) {
    return (uint16_t)(sample * 31 + p * 7);
}

static int32_t label_of(unsigned sample) {
    return sample % 7 == 6 ? WT_UNLABELLED : (int32_t)(sample % 5);
}

static void key_of(unsigned sample, char out[WT_KEY_MAX]) {
    snprintf(out, WT_KEY_MAX, "lot%u/w%u/s%06u", sample / 100, sample / 10 % 10, sample);
}

static void add_sample(const struct kit_shape *s, struct wt_shard_writer *w, unsigned i) {
    struct wt_err err = {0};
    unsigned h = s->h + (s->odd_one && i == s->odd_one);
    size_t n = (size_t)h * s->w;
    uint16_t *image = malloc(n * sizeof *image);
    uint8_t *mask = malloc(n + s->w), hot[64] = {0};
    assert_non_null(image);
    assert_non_null(mask);
    for (size_t p = 0; p < n; p++) {
        image[p] = pixel(i, p);
        mask[p] = (uint8_t)(image[p] >> 3);
    }
    memset(mask + n, 0, s->w);
    for (unsigned c = 0; c < s->multihot; c++)
        hot[c] = (i >> c) & 1;
    struct wt_tensor tensors[2] = {
        {.name = "", .shape = {WT_DTYPE_U16, 2, {h, s->w}}, .data = image},
        {.name = "mask",
         .shape = {WT_DTYPE_U8, 2, {s->h + (s->ragged && i == 3), s->w}},
         .data = mask},
    };
    char key[WT_KEY_MAX];
    key_of(i, key);
    struct wt_sample_in in = {.key = key,
                              .id = 1000 + i,
                              .label = label_of(i),
                              .multihot = s->multihot && label_of(i) >= 0 ? hot : NULL,
                              .json = "{\"die\":[1,2]}",
                              .tensors = tensors,
                              .n_tensors = s->mask ? 2 : 1};
    if (wt_shard_writer_add(w, &in, &err) < 0)
        fail_msg("%s", err.text);
    free(image);
    free(mask);
}

static void fill_manifest(const struct kit_shape *s, struct wt_manifest *m) {
    strcpy(m->name, "wafers");
    m->generation = 1;
    m->created = 1700000000;
    m->samples = s->samples;
    m->shards = (s->samples + s->per_shard - 1) / s->per_shard;
    m->lots = m->wafers = 1;
    m->label_kind = s->multihot ? WT_LABEL_MULTIHOT : WT_LABEL_CLASS;
    m->n_classes = s->multihot ? s->multihot : 5;
    m->classes = calloc(m->n_classes, sizeof(char *));
    m->class_count = calloc(m->n_classes, sizeof *m->class_count);
    for (unsigned c = 0; c < m->n_classes; c++) {
        char name[16];
        snprintf(name, sizeof name, "c%u", c);
        m->classes[c] = strdup(s->multihot ? name : class_names[c]);
    }
    for (unsigned i = 0; i < s->samples; i++) {
        if (label_of(i) < 0)
            continue;
        m->labelled++;
        for (unsigned c = 0; c < m->n_classes; c++)
            m->class_count[c] += s->multihot ? (i >> c) & 1 : (unsigned)label_of(i) == c;
    }
    m->n_fields = s->mask ? 2 : 1;
    m->field[0].shape = (struct wt_shape){WT_DTYPE_U16, 2, {s->h, s->w}};
    strcpy(m->field[1].name, "mask");
    m->field[1].shape = (struct wt_shape){WT_DTYPE_U8, 2, {s->h, s->w}};
    if (s->ragged)
        m->field[1].shape.ndim = UINT32_MAX;
}

static void put(struct wt_sync *sync, struct wt_tier *tier, const char *name, const void *data,
                size_t len) {
    struct wt_err err = {0};
    if (wt_sync_write(sync, tier, name, data, len, 0, &err) < 0)
        fail_msg("%s", err.text);
}

static void put_shards(struct kit *k, struct wt_sync *sync, struct wt_tier *tier,
                       struct wt_manifest *m, uint8_t *idx) {
    const struct kit_shape *s = &k->shape;
    struct wt_err err = {0};
    struct wt_shard_writer *w;
    struct wt_shard_opts opts = {.codec = s->codec, .sidecars = true, .n_multihot = s->multihot};
    assert_int_equal(wt_shard_writer_new(&opts, &w, &err), 0);
    unsigned i = 0;
    for (uint64_t n = 0; n < m->shards; n++) {
        struct wt_shard_rec rec = {.first = i, .codec = s->codec};
        for (unsigned j = 0; j < s->per_shard && i < s->samples; j++)
            add_sample(s, w, i++);
        struct wt_shard_out out;
        if (wt_shard_writer_finish(w, &out, &err) < 0)
            fail_msg("%s", err.text);
        rec.hash = out.hash;
        rec.size = out.size;
        rec.tar_size = out.tar_size;
        rec.index_off = out.index_off;
        rec.samples = out.samples;
        char name[WT_OBJECT_NAME];
        wt_shard_name("wafers", n, &rec, name);
        put(sync, tier, name, out.data, out.size);
        wt_shard_rec_encode(&rec, idx + n * WT_IDX_RECORD);
        m->stored_bytes += out.size;
        m->tar_bytes += out.tar_size;
        m->pixel_bytes += out.pixel_bytes;
        wt_shard_out_free(&out);
    }
    wt_shard_writer_free(w);
}

static void put_dataset(struct kit *k) {
    struct wt_err err = {0};
    struct wt_sync *sync;
    struct wt_tier *tier;
    struct wt_tier_opts opts = {.name = "cold"};
    snprintf(opts.url, sizeof opts.url, "file://%s/cold", k->root);
    assert_int_equal(wt_sync_new(NULL, &sync, &err), 0);
    if (wt_sync_open(sync, &opts, &tier, &err) < 0)
        fail_msg("%s", err.text);
    struct wt_manifest m = {.generation = 0};
    fill_manifest(&k->shape, &m);
    uint8_t *idx = calloc(m.shards, WT_IDX_RECORD);
    assert_non_null(idx);
    put_shards(k, sync, tier, &m, idx);
    size_t len = m.shards * WT_IDX_RECORD;
    m.part = calloc(1, sizeof *m.part);
    m.n_parts = 1;
    m.part[0] = (struct wt_idx_part){wt_hash(idx, len), (uint32_t)m.shards};
    char name[WT_OBJECT_NAME];
    wt_idx_name("wafers", m.part[0].hash, name);
    put(sync, tier, name, idx, len);
    char *text = wt_manifest_format(&m);
    assert_non_null(text);
    wt_manifest_name("wafers", name);
    put(sync, tier, name, text, strlen(text));
    free(text);
    const void *parts[] = {idx};
    if (wt_dataset_build(&m, parts, &len, &k->ds, &err) < 0)
        fail_msg("%s", err.text);
    free(idx);
    wt_sync_free(sync);
}

/* ---- folders ---- */

void kit_config(const struct kit *k, const char *text) {
    FILE *f = fopen(k->config, "a");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* A failed assertion leaves a test by longjmp: what it did not remove goes when the program ends.
 */
struct leftover {
    char path[128];
};
static struct leftover leftovers[256];
static size_t n_leftovers;

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static void remove_leftovers(void) {
    for (size_t i = 0; i < n_leftovers; i++)
        nftw(leftovers[i].path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void remember(const char *path) {
    if (n_leftovers == 0)
        atexit(remove_leftovers);
    assert_true(n_leftovers < sizeof leftovers / sizeof leftovers[0]);
    snprintf(leftovers[n_leftovers++].path, sizeof leftovers[0].path, "%s", path);
}

void kit_make(struct kit *k, const struct kit_shape *shape) {
    memset(k, 0, sizeof *k);
    k->shape = *shape;
    const char *tmp = getenv("TMPDIR");
    snprintf(k->root, sizeof k->root, "%s/wt-loader-XXXXXX", tmp ? tmp : "/tmp");
    snprintf(k->hot, sizeof k->hot, "/dev/shm/wt-loader-XXXXXX");
    assert_non_null(mkdtemp(k->root));
    assert_non_null(mkdtemp(k->hot));
    remember(k->root);
    remember(k->hot);
    snprintf(k->config, sizeof k->config, "%s/loader.conf", k->root);
    char text[1024];
    snprintf(text, sizeof text,
             "tier \"cold\" { url = \"file://%s/cold\" read_only = true }\n"
             "tier \"warm\" { url = \"file://%s/warm\" read_only = true }\n"
             "tier \"hot\" { url = \"file://%s/hot\" read_only = true }\n",
             k->root, k->root, k->hot);
    kit_config(k, text);
    for (unsigned t = 0; t < KIT_TIERS; t++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", t == 2 ? k->hot : k->root,
                 t == 0   ? "cold"
                 : t == 1 ? "warm"
                          : "hot");
        assert_int_equal(mkdir(path, 0755), 0);
    }
    put_dataset(k);
}

void kit_free(struct kit *k) {
    nftw(k->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    nftw(k->hot, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    wt_dataset_free(&k->ds);
}

void kit_shard_name(const struct kit *k, uint64_t shard, char out[WT_OBJECT_NAME]) {
    struct wt_shard_rec rec;
    wt_dataset_rec(&k->ds, shard, &rec);
    wt_shard_name("wafers", shard, &rec, out);
}

void kit_path(const struct kit *k, unsigned tier, uint64_t shard, char out[512]) {
    char name[WT_OBJECT_NAME];
    kit_shard_name(k, shard, name);
    snprintf(out, 512, "%s/%s/%s", tier == 2 ? k->hot : k->root,
             tier == 0   ? "cold"
             : tier == 1 ? "warm"
                         : "hot",
             name);
}

static void make_parents(char *path) {
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(path, 0755) != 0)
            assert_int_equal(errno, EEXIST);
        *at = '/';
    }
}

/* By rename, as the file: tier publishes. */
void kit_copy(const struct kit *k, uint64_t shard, unsigned tier) {
    char from[512], to[512], tmp[520];
    kit_path(k, 0, shard, from);
    kit_path(k, tier, shard, to);
    make_parents(to);
    snprintf(tmp, sizeof tmp, "%s.t", to);
    FILE *in = fopen(from, "rb"), *out = fopen(tmp, "wb");
    assert_non_null(in);
    assert_non_null(out);
    char buf[65536];
    for (size_t n; (n = fread(buf, 1, sizeof buf, in)) > 0;)
        assert_int_equal(fwrite(buf, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(rename(tmp, to), 0);
}

void kit_copy_all(const struct kit *k, unsigned tier) {
    for (uint64_t s = 0; s < k->ds.m.shards; s++)
        kit_copy(k, s, tier);
}

void kit_remove(const struct kit *k, uint64_t shard, unsigned tier) {
    char path[512];
    kit_path(k, tier, shard, path);
    assert_int_equal(unlink(path), 0);
}

void kit_damage(const struct kit *k, uint64_t shard, unsigned tier, uint64_t off) {
    char path[512];
    uint8_t byte;
    kit_path(k, tier, shard, path);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t)off), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)off), 1);
    close(fd);
}

void kit_cut(const struct kit *k, uint64_t shard, unsigned tier, uint64_t size) {
    char path[512];
    kit_path(k, tier, shard, path);
    assert_int_equal(truncate(path, (off_t)size), 0);
}

/* ---- reading ---- */

wl_options kit_options(const struct kit *k) {
    wl_options o = WL_OPTIONS_INIT;
    o.config = k->config;
    o.dataset = "wafers";
    o.batch = 16;
    o.threads = 2;
    o.rank = 0;
    o.world = 1;
    o.timeout_ms = 5000;
    o.memory = 512 << 20;
    return o;
}

wl_loader *kit_open(const wl_options *o) {
    wl_loader *l;
    if (wl_open(NULL, o, &l) < 0)
        fail_msg("%s", wl_last_error(NULL)->message);
    return l;
}

static void check_row(const struct kit *k, const wl_batch *b, uint64_t row) {
    unsigned i = (unsigned)(((const uint64_t *)wl_batch_tensor(b, "sample_id")->data)[row] - 1000);
    assert_true(i < k->shape.samples);
    char key[WT_KEY_MAX];
    key_of(i, key);
    assert_string_equal(wl_batch_key(b, row), key);
    const int32_t *size = (const int32_t *)wl_batch_tensor(b, "size")->data + 2 * row;
    assert_int_equal(size[0], k->shape.h);
    assert_int_equal(size[1], k->shape.w);
    size_t n = (size_t)k->shape.h * k->shape.w;
    const uint16_t *image = (const uint16_t *)wl_batch_tensor(b, "image")->data + row * n;
    for (size_t p = 0; p < n; p++)
        assert_int_equal(image[p], pixel(i, p));
    const wl_tensor *mask = wl_batch_tensor(b, "mask");
    for (size_t p = 0; mask && p < n; p++)
        assert_int_equal(((const uint8_t *)mask->data)[row * n + p], (uint8_t)(pixel(i, p) >> 3));
    int32_t label = ((const int32_t *)wl_batch_tensor(b, "label")->data)[row];
    const wl_tensor *hot = wl_batch_tensor(b, "multihot");
    if (!hot) {
        assert_int_equal(label, label_of(i));
        return;
    }
    assert_int_equal(label, label_of(i) < 0 ? -1 : 0);
    for (unsigned c = 0; c < k->shape.multihot; c++)
        assert_int_equal(((const uint8_t *)hot->data)[row * k->shape.multihot + c],
                         label < 0 ? 0 : (i >> c) & 1);
}

void kit_check_batch(const struct kit *k, const wl_batch *b) {
    const uint8_t *valid = wl_batch_tensor(b, "valid")->data;
    for (uint64_t row = 0; row < wl_batch_size(b); row++) {
        if (valid[row]) {
            check_row(k, b, row);
            continue;
        }
        assert_int_equal(((const int32_t *)wl_batch_tensor(b, "label")->data)[row], -1);
        const uint16_t *image = wl_batch_tensor(b, "image")->data;
        size_t n = (size_t)k->shape.h * k->shape.w;
        for (size_t p = 0; p < n; p++)
            assert_int_equal(image[row * n + p], 0);
    }
}

void kit_read_epoch(const struct kit *k, wl_loader *l, struct kit_epoch *e) {
    wl_info info;
    wl_get_info(l, &info);
    uint64_t batch = e->batch ? e->batch : info.rank_batch * (uint64_t)info.world;
    if (!e->id) {
        e->steps = info.steps;
        e->batch = batch;
        e->id = calloc(info.steps * batch, sizeof *e->id);
    }
    assert_int_equal(e->steps, info.steps);
    uint64_t first = batch * (uint64_t)info.rank / (uint64_t)info.world, steps = 0;
    wl_batch *b;
    int rc;
    while ((rc = wl_next(l, NULL, 20000, &b)) == WL_OK) {
        uint64_t step = wl_batch_step(b);
        assert_int_equal(step, steps++);
        kit_check_batch(k, b);
        const uint64_t *id = wl_batch_tensor(b, "sample_id")->data;
        const uint8_t *valid = wl_batch_tensor(b, "valid")->data;
        for (uint64_t row = 0; row < info.rank_batch; row++) {
            e->id[step * batch + first + row] = valid[row] ? id[row] : 0;
            e->valid += valid[row];
        }
        wl_batch_release(b, NULL);
    }
    if (rc < 0)
        fail_msg("%s: %s", wl_result_name(rc), wl_last_error(l)->message);
    assert_int_equal(rc, WL_END_OF_EPOCH);
    assert_int_equal(steps, info.steps);
}

void kit_epoch_free(struct kit_epoch *e) {
    free(e->id);
    memset(e, 0, sizeof *e);
}

void kit_same(const struct kit_epoch *a, const struct kit_epoch *b) {
    assert_int_equal(a->steps, b->steps);
    assert_int_equal(a->batch, b->batch);
    assert_memory_equal(a->id, b->id, a->steps * a->batch * sizeof *a->id);
}

void kit_all_once(const struct kit *k, const struct kit_epoch *e) {
    uint8_t *seen = calloc(k->shape.samples, 1);
    assert_non_null(seen);
    for (uint64_t i = 0; i < e->steps * e->batch; i++)
        if (e->id[i])
            assert_int_equal(seen[e->id[i] - 1000]++, 0);
    assert_null(memchr(seen, 0, k->shape.samples));
    free(seen);
}

wl_stats kit_stats(const wl_loader *l) {
    wl_stats s = {.size = sizeof s};
    assert_int_equal(wl_get_stats(l, &s), WL_OK);
    return s;
}

uint64_t kit_bytes_read(const wl_loader *l) {
    wl_stats s = kit_stats(l);
    uint64_t bytes = 0;
    for (size_t i = 0; i < s.tiers; i++)
        bytes += s.tier[i].bytes;
    return bytes;
}
