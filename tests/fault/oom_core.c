/* Out of memory in core: shards written and read, manifests, shards.idx, configurations, hashing,
 * buffers. */
#include "core/conf.h"
#include "core/dataset.h"
#include "core/mem.h"
#include "core/shard.h"
#include "daemon/config.h"
#include "oom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 2000 };

/* ---- shards ---- */

struct shard_case {
    enum wt_codec codec;
    struct wt_shard_out out; /* made in peace */
};

static int add_samples(struct wt_shard_writer *w, struct wt_err *err) {
    static const uint16_t pixels[40000] = {7};
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < 20; i++) {
        char key[32];
        snprintf(key, sizeof key, "lot/w/s%u", i);
        struct wt_tensor tensors[] = {
            {.name = "", .shape = {WT_DTYPE_U16, 2, {200, 200}}, .data = pixels},
            {.name = "mask", .shape = {WT_DTYPE_U8, 1, {i + 1}}, .data = pixels}};
        struct wt_sample_in s = {.key = key,
                                 .id = i,
                                 .label = 1,
                                 .json = "{\"x\":[1,2]}",
                                 .tensors = tensors,
                                 .n_tensors = 2};
        rc = wt_shard_writer_add(w, &s, err);
    }
    return rc;
}

static int write_shard(void *arg, struct wt_err *err) {
    struct shard_case *c = arg;
    struct wt_shard_opts opts = {.codec = c->codec, .sidecars = true};
    struct wt_shard_writer *w = NULL;
    struct wt_shard_out out = {0};
    int rc = wt_shard_writer_new(&opts, &w, err);
    if (rc == 0)
        rc = add_samples(w, err);
    if (rc == 0)
        rc = wt_shard_writer_finish(w, &out, err);
    if (rc == 0 && !c->out.data) {
        c->out = out;
        out.data = NULL;
    } else if (rc == 0) {
        assert_int_equal(out.size, c->out.size);
        assert_memory_equal(out.data, c->out.data, out.size);
    }
    if (rc == 0)
        wt_shard_out_free(&out);
    wt_shard_writer_free(w);
    return rc;
}

static int decode_all(const struct wt_shard_index *x, const uint8_t *object, struct wt_decoder *d,
                      uint8_t *tar, struct wt_err *err) {
    int rc = 0;
    for (uint32_t f = 0; rc == 0 && f + 1 < x->n_frames; f++)
        rc = wt_shard_decode_frame(d, x, f, object + x->frame[f].off, tar + x->frame[f].tar_off,
                                   err);
    return rc;
}

static int read_shard(void *arg, struct wt_err *err) {
    const struct shard_case *c = arg;
    const struct wt_shard_out *o = &c->out;
    struct wt_shard_index x = {0};
    struct wt_mem tar = {0};
    int rc = wt_shard_index_parse(o->data + o->index_off, (size_t)(o->size - o->index_off),
                                  o->index_off, o->size, c->codec, &x, err);
    if (rc < 0)
        return rc;
    struct wt_decoder *d = wt_decoder_new();
    rc = d ? wt_mem_map(&tar, (size_t)x.tar_size, err) : wt_err_set(err, WT_ENOMEM, "no decoder");
    if (rc == 0 && c->codec == WT_CODEC_TAR)
        memcpy(tar.ptr, o->data, (size_t)o->size);
    else if (rc == 0)
        rc = decode_all(&x, o->data, d, tar.ptr, err);
    if (rc == 0)
        rc = wt_shard_verify(&x, 0, x.samples, tar.ptr, 0, err);
    if (rc == 0)
        assert_memory_equal((uint8_t *)tar.ptr + wt_shard_ref(&x, 3, 0)->off, "\7\0\0\0", 4);
    wt_mem_unmap(&tar);
    wt_decoder_free(d);
    wt_shard_index_free(&x);
    return rc;
}

static void shards(void **state) {
    (void)state;
    for (int codec = WT_CODEC_TAR; codec <= WT_CODEC_ZSTD; codec++) {
        struct shard_case c = {.codec = (enum wt_codec)codec};
        struct wt_err err = {0};
        assert_int_equal(write_shard(&c, &err), 0);
        assert_true(oom_each(&(struct oom_case){
                        .name = "write a shard", .run = write_shard, .arg = &c, .most = MOST}) >
                    40);
        assert_true(oom_each(&(struct oom_case){
                        .name = "read a shard", .run = read_shard, .arg = &c, .most = MOST}) >= 3);
        wt_shard_out_free(&c.out);
    }
}

/* ---- data sets ---- */

static const struct wt_manifest sample = {
    .name = "wafers",
    .generation = 1,
    .created = 5,
    .shards = 2,
    .samples = 3,
    .stored_bytes = 3 * 8192,
    .tar_bytes = 3 * 8192,
    .pixel_bytes = 300,
    .labelled = 3,
    .lots = 1,
    .wafers = 1,
    .label_kind = WT_LABEL_CLASS,
    .n_fields = 2,
    .field = {{.name = "", .shape = {WT_DTYPE_U8, 2, {10, 10}}},
              {.name = "mask", .shape = {WT_DTYPE_U8, 1, {4}}}}};

struct dataset_case {
    uint8_t idx[2 * WT_IDX_RECORD];
    char *text;
};

static void fill_manifest(const struct dataset_case *c, struct wt_manifest *m, char **classes,
                          uint64_t *count, struct wt_idx_part *part) {
    static char a[] = "none", b[] = "scratch";
    classes[0] = a;
    classes[1] = b;
    count[0] = 1;
    count[1] = 2;
    *part = (struct wt_idx_part){.hash = wt_hash(c->idx, sizeof c->idx), .records = 2};
    *m = sample;
    m->classes = classes;
    m->n_classes = 2;
    m->class_count = count;
    m->part = part;
    m->n_parts = 1;
}

static int format_manifest(void *arg, struct wt_err *err) {
    struct dataset_case *c = arg;
    struct wt_manifest m;
    char *classes[2];
    uint64_t count[2];
    struct wt_idx_part part;
    fill_manifest(c, &m, classes, count, &part);
    char *text = wt_manifest_format(&m);
    if (!text)
        return wt_err_set(err, WT_ENOMEM, "no memory for the manifest");
    if (c->text) {
        assert_string_equal(text, c->text);
        free(text);
    } else {
        c->text = text;
    }
    return 0;
}

static int load_dataset(void *arg, struct wt_err *err) {
    struct dataset_case *c = arg;
    struct wt_manifest m = {0};
    struct wt_dataset d = {0};
    const void *parts[] = {c->idx};
    const size_t lens[] = {sizeof c->idx};
    int rc = wt_manifest_parse(c->text, strlen(c->text), &m, err);
    if (rc == 0)
        rc = wt_dataset_build(&m, parts, lens, &d, err);
    if (rc == 0) {
        assert_int_equal(d.m.n_classes, 2);
        assert_string_equal(d.m.classes[1], "scratch");
        assert_int_equal(wt_dataset_find(&d, 2), 1);
    }
    wt_manifest_free(&m);
    wt_dataset_free(&d);
    return rc;
}

static void datasets(void **state) {
    (void)state;
    struct dataset_case c = {.text = NULL};
    struct wt_err err = {0};
    for (uint32_t i = 0; i < 2; i++) {
        struct wt_shard_rec r = {.size = 8192 * (i + 1),
                                 .tar_size = 8192 * (i + 1),
                                 .index_off = 1024,
                                 .first = i,
                                 .samples = i + 1};
        wt_shard_rec_encode(&r, c.idx + (size_t)i * WT_IDX_RECORD);
    }
    assert_int_equal(format_manifest(&c, &err), 0);
    assert_true(oom_each(&(struct oom_case){
                    .name = "write a manifest", .run = format_manifest, .arg = &c, .most = MOST}) >
                50);
    assert_true(oom_each(&(struct oom_case){
                    .name = "load a data set", .run = load_dataset, .arg = &c, .most = MOST}) > 50);
    free(c.text);
}

/* ---- configurations ---- */

static const char conf_text[] =
    "log_level = \"debug\"\nmover { moves = 3 }\n"
    "tier \"cold\" { url = \"file:///c\" }\ntier \"hot\" { url = \"file:///h\" }\n";

static int parse_conf(void *arg, struct wt_err *err) {
    (void)arg;
    struct wt_daemon_conf *conf = calloc(1, sizeof *conf);
    if (!conf)
        return wt_err_set(err, WT_ENOMEM, "out of memory");
    int rc = wt_conf_parse(&wt_daemon_conf_table, "test.conf", conf_text, conf, err);
    if (rc == 0)
        rc = wt_daemon_conf_check(conf, err);
    if (rc == 0) {
        assert_int_equal(conf->n_tiers, 2);
        assert_string_equal(conf->tier[1].url, "file:///h");
        assert_int_equal(conf->moves, 3);
    }
    free(conf);
    return rc;
}

static int load_conf(void *arg, struct wt_err *err) {
    (void)arg;
    struct wt_daemon_conf *conf = calloc(1, sizeof *conf);
    char path[32];
    if (!conf)
        return wt_err_set(err, WT_ENOMEM, "out of memory");
    int fd = memfd_create("conf", MFD_CLOEXEC);
    int rc = fd < 0 ? wt_err_set(err, WT_ENOMEM, "out of memory") : 0;
    if (rc == 0) {
        assert_int_equal(write(fd, conf_text, sizeof conf_text - 1), sizeof conf_text - 1);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        rc = wt_daemon_conf_load(path, conf, err);
        close(fd);
    }
    free(conf);
    return rc;
}

static void configurations(void **state) {
    (void)state;
    assert_true(
        oom_each(&(struct oom_case){
            .name = "parse a configuration", .run = parse_conf, .arg = NULL, .most = MOST}) > 3);
    assert_true(oom_each(&(struct oom_case){
                    .name = "load a configuration", .run = load_conf, .arg = NULL, .most = MOST}) >
                3);
}

/* ---- small things ---- */

static int map_buffers(void *arg, struct wt_err *err) {
    (void)arg;
    struct wt_mem small = {0}, huge = {0};
    int rc = wt_mem_map(&small, 100, err);
    if (rc == 0)
        rc = wt_mem_map(&huge, 3 << 20, err);
    if (rc == 0)
        assert_int_equal(((char *)huge.ptr)[(3 << 20) - 1], 0);
    wt_mem_unmap(&huge);
    wt_mem_unmap(&small);
    return rc;
}

static int hash_stream(void *arg, struct wt_err *err) {
    (void)arg;
    struct wt_hasher *h = wt_hasher_new();
    if (!h)
        return wt_err_set(err, WT_ENOMEM, "no hasher");
    wt_hasher_add(h, "abc", 3);
    assert_true(wt_hash_equal(wt_hasher_end(h), wt_hash("abc", 3)));
    wt_hasher_free(h);
    return 0;
}

static void small_things(void **state) {
    (void)state;
    assert_int_equal(oom_each(&(struct oom_case){
                         .name = "map buffers", .run = map_buffers, .arg = NULL, .most = MOST}),
                     2);
    assert_true(oom_each(&(struct oom_case){
                    .name = "hash a stream", .run = hash_stream, .arg = NULL, .most = MOST}) >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards),
        cmocka_unit_test(datasets),
        cmocka_unit_test(configurations),
        cmocka_unit_test(small_things),
    };
    oom_init();
    alarm(300);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
