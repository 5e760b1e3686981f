/* Cutting into shards, and publishing: whole or not at all. */
#include "kit.h"

#include "tools/gen/gen.h"
#include "tools/packer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sized {
    struct wt_source source;
    const uint64_t *bytes;
};

static uint64_t sized_bytes(const struct wt_source *src, uint64_t i) {
    return ((const struct sized *)src)->bytes[i];
}

static void shards_are_cut_by_size(void **state) {
    (void)state;
    static const struct wt_source_ops ops = {.tar_bytes = sized_bytes};
    static const uint64_t same[10] = {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000};
    static const uint64_t mixed[6] = {10, 5000, 10, 10, 2990, 11};
    struct sized src = {.source = {.ops = &ops, .samples = 10}, .bytes = same};
    struct wt_pack_plan plan;
    assert_int_equal(wt_pack_cut(&src.source, 3500, false, &plan, NULL), 0);
    assert_int_equal(plan.shards, 4);
    for (uint64_t s = 0; s < 4; s++)
        assert_int_equal(plan.first[s], 3 * s);
    assert_int_equal(plan.first[4], 10);
    free(plan.first);
    src = (struct sized){.source = {.ops = &ops, .samples = 6}, .bytes = mixed};
    assert_int_equal(wt_pack_cut(&src.source, 3000, false, &plan, NULL), 0);
    static const uint64_t want[] = {0, 1, 2,
                                    4, 5, 6}; /* 5000 alone is over the size: a shard of one */
    assert_int_equal(plan.shards, 5);
    assert_memory_equal(plan.first, want, sizeof want);
    free(plan.first);
    assert_int_equal(wt_pack_cut(&src.source, 0, false, &plan, NULL), 0);
    assert_int_equal(plan.shard_size, 256 << 10);
    assert_int_equal(plan.shards, 1);
    free(plan.first);
}

struct place {
    struct wt_target target;
    struct wt_source *source;
    struct wt_gen *gen;
};

static void open_place(struct kit *k, struct place *p) {
    struct wt_err err = {0};
    const struct wt_gen_opts o = {.kind = WT_GEN_MAP,
                                  .height = 40,
                                  .width = 40,
                                  .dtype = WT_DTYPE_U8,
                                  .samples = 300,
                                  .lots = 3,
                                  .wafers = 2};
    char root[600];
    snprintf(root, sizeof root, "%s/cold", k->dir);
    if (wt_target_open(&(struct wt_target_opts){.url = root}, &p->target, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(wt_gen_open(&o, &p->gen, &err), 0);
    p->source = wt_gen_source(p->gen);
}

static void close_place(struct place *p) {
    wt_gen_close(p->gen);
    wt_target_close(&p->target);
}

static int count_one(void *arg, const struct wt_entry *e) {
    (void)e;
    ++*(int *)arg;
    return 0;
}

static int count_objects(struct place *p) {
    int n = 0;
    struct wt_err err = {0};
    if (wt_sync_list(p->target.sync, p->target.tier, "", 0, count_one, &n, &err) < 0)
        fail_msg("%s", err.text);
    return n;
}

static int pack(struct place *p, struct wt_pack_opts o, struct wt_manifest *m, struct wt_err *err) {
    o.dataset = "d";
    o.threads = 2;
    o.shard_size = 64 << 10;
    *m = (struct wt_manifest){0};
    *err = (struct wt_err){0};
    return wt_pack_run(p->source, &p->target, &o, m, err);
}

static void published_data_sets_read_back(void **state) {
    struct kit *k = *state;
    struct place p;
    struct wt_manifest m;
    struct wt_err err;
    struct wt_dataset d;
    open_place(k, &p);
    if (pack(&p, (struct wt_pack_opts){0}, &m, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(m.samples, 300);
    assert_int_equal(m.lots, 3);
    assert_int_equal(m.wafers, 6);
    assert_int_equal(m.labelled, 300);
    assert_int_equal(m.n_classes, 9);
    assert_int_equal(m.pixel_bytes, 300 * 1600);
    assert_true(m.shards > 10);
    assert_int_equal(count_objects(&p), (int)m.shards + 2);
    assert_int_equal(wt_target_dataset(&p.target, "d", &d, &err), 0);
    uint32_t seen = 0;
    for (uint64_t s = 0; s < d.m.shards; s++) {
        struct wt_shard_blob b;
        assert_int_equal(wt_target_index(&p.target, &d, s, &b, &err), 0);
        assert_int_equal(b.rec.first, seen);
        seen += b.index.samples;
        wt_shard_blob_free(&b);
    }
    assert_int_equal(seen, 300);
    wt_dataset_free(&d);
    wt_manifest_free(&m);

    /* The name is taken; a replacement is a new generation that finds its shards there already. */
    assert_int_equal(pack(&p, (struct wt_pack_opts){0}, &m, &err), WT_EEXISTS);
    assert_non_null(strstr(err.text, "--replace"));
    int before = count_objects(&p);
    assert_int_equal(pack(&p, (struct wt_pack_opts){.replace = true}, &m, &err), 0);
    assert_int_equal(m.generation, 2);
    assert_int_equal(count_objects(&p), before + 1); /* the manifest that was replaced */
    wt_manifest_free(&m);
    close_place(&p);
}

struct countdown {
    int left;
};
static bool run_down(void *arg) {
    struct countdown *c = arg;
    return c->left-- <= 0;
}

static void an_interrupt_leaves_nothing(void **state) {
    struct kit *k = *state;
    struct place p;
    struct wt_manifest m;
    struct wt_err err;
    int interrupted = 0;
    open_place(k, &p);
    for (int after = 0; after < 200; after += 3) {
        struct countdown c = {after};
        int rc = pack(&p, (struct wt_pack_opts){.stopped = run_down, .stopped_arg = &c}, &m, &err);
        if (rc == 0) {
            wt_manifest_free(&m);
            assert_true(interrupted > 3);
            close_place(&p);
            return;
        }
        interrupted++;
        assert_int_equal(rc, WT_ECANCELED);
        assert_int_equal(count_objects(&p), 0);
    }
    fail_msg("it never ended");
}

static void foreign_objects_are_not_removed(void **state) {
    struct kit *k = *state;
    struct place p;
    struct wt_manifest m;
    struct wt_err err;
    open_place(k, &p);
    assert_int_equal(pack(&p, (struct wt_pack_opts){0}, &m, &err), 0);
    wt_manifest_free(&m);
    int before = count_objects(&p);
    struct countdown c = {8};
    assert_int_equal(
        pack(&p, (struct wt_pack_opts){.replace = true, .stopped = run_down, .stopped_arg = &c}, &m,
             &err),
        WT_ECANCELED);
    assert_int_equal(count_objects(&p), before); /* the old generation is whole */
    struct wt_dataset d;
    assert_int_equal(wt_target_dataset(&p.target, "d", &d, &err), 0);
    assert_int_equal(d.m.generation, 1);
    /* An object in the way, of another size, is an error and stays. */
    struct wt_shard_rec rec;
    char name[WT_OBJECT_NAME], manifest[WT_OBJECT_NAME];
    wt_dataset_rec(&d, 1, &rec);
    wt_shard_name("d", 1, &rec, name);
    wt_manifest_name("d", manifest);
    wt_dataset_free(&d);
    assert_int_equal(wt_sync_remove(p.target.sync, p.target.tier, name, &err), 0);
    assert_int_equal(wt_sync_remove(p.target.sync, p.target.tier, manifest, &err), 0);
    assert_int_equal(wt_sync_write(p.target.sync, p.target.tier, name, "short", 5, 0, &err), 0);
    assert_int_equal(pack(&p, (struct wt_pack_opts){0}, &m, &err), WT_ECORRUPT);
    assert_non_null(strstr(err.text, name));
    uint64_t size;
    assert_int_equal(wt_sync_stat(p.target.sync, p.target.tier, name, &size, &err), 0);
    assert_int_equal(size, 5);
    close_place(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_are_cut_by_size),
        cmocka_unit_test_setup_teardown(published_data_sets_read_back, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(an_interrupt_leaves_nothing, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(foreign_objects_are_not_removed, kit_setup, kit_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
