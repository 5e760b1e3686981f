/* Blocking calls (sync.h), reading a data set (load.h) and client configurations (conf.h), over
 * file:. */
#include "kit.h"

#include "tiers/conf.h"
#include "tiers/load.h"
#include "tiers/sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct env {
    char folder[256];
    struct wt_sync *sync;
    struct wt_tier *tier;
};

static int open_env(void **state) {
    struct env *e = calloc(1, sizeof *e);
    kit_make_folder(e->folder);
    struct wt_tier_opts opts = {.name = "cold"};
    snprintf(opts.url, sizeof opts.url, "file://%s/tier", e->folder);
    assert_int_equal(wt_sync_new(NULL, &e->sync, NULL), 0);
    assert_int_equal(wt_sync_open(e->sync, &opts, &e->tier, NULL), 0);
    *state = e;
    return 0;
}

static int close_env(void **state) {
    struct env *e = *state;
    wt_sync_free(e->sync);
    kit_remove_folder(e->folder);
    free(e);
    return 0;
}

/* ---- sync ---- */

static void round_trip(struct env *e, size_t len) {
    uint8_t *data = malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)(i * 31 + (i >> 13));
    struct wt_err err = {0};
    assert_int_equal(wt_sync_write(e->sync, e->tier, "a/b", data, len, WT_PUT_REPLACE, &err), 0);
    uint8_t *back = NULL;
    size_t got = 0;
    assert_int_equal(wt_sync_read(e->sync, e->tier, "a/b", len, &back, &got, &err), 0);
    assert_int_equal(got, len);
    assert_memory_equal(back, data, len);
    free(back);
    back = NULL;
    if (len) {
        assert_int_equal(wt_sync_read(e->sync, e->tier, "a/b", len - 1, &back, &got, &err),
                         WT_ERANGE);
        assert_null(back);
        assert_non_null(strstr(err.text, "a/b"));
    }
    free(data);
}

static void sync_round_trips(void **state) {
    struct env *e = *state;
    static const size_t sizes[] = {0, 1, 1000, WT_PART - 1, WT_PART, WT_PART + 1, 5 * WT_PART + 77};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        round_trip(e, sizes[i]);
}

static int count(void *arg, const struct wt_entry *entry) {
    (void)entry;
    return ++*(int *)arg == 5 ? 9 : 0;
}

static void sync_errors(void **state) {
    struct env *e = *state;
    struct wt_err err = {0};
    uint8_t *data = NULL;
    size_t len;
    uint64_t size;
    assert_int_equal(wt_sync_read(e->sync, e->tier, "no", 10, &data, &len, &err), WT_EMISSING);
    assert_non_null(strstr(err.text, "tier cold"));
    assert_int_equal(wt_sync_stat(e->sync, e->tier, "no", &size, &err), WT_EMISSING);
    assert_int_equal(wt_sync_remove(e->sync, e->tier, "no", &err), WT_EMISSING);
    assert_int_equal(wt_sync_stat(e->sync, e->tier, "../no", &size, &err), WT_EINVAL);
    assert_int_equal(wt_sync_write(e->sync, e->tier, "k", "1", 1, 0, &err), 0);
    assert_int_equal(wt_sync_write(e->sync, e->tier, "k", "2", 1, 0, &err), WT_EEXISTS);
    assert_int_equal(wt_sync_stat(e->sync, e->tier, "k", &size, &err), 0);
    assert_int_equal(size, 1);
    int n = 0;
    assert_int_equal(wt_sync_list(e->sync, e->tier, "", 0, count, &n, &err), 0);
    assert_int_equal(n, 1);
    for (int i = 0; i < 9; i++) {
        char key[20];
        snprintf(key, sizeof key, "many/%d", i);
        assert_int_equal(wt_sync_write(e->sync, e->tier, key, "1", 1, 0, &err), 0);
    }
    n = 0;
    assert_int_equal(wt_sync_list(e->sync, e->tier, "many/", 0, count, &n, &err), 9);
    assert_int_equal(n, 5);
    assert_int_equal(wt_sync_list(e->sync, e->tier, "../", 0, count, &n, &err), WT_EINVAL);
    assert_int_equal(wt_sync_remove(e->sync, e->tier, "k", &err), 0);
}

/* ---- a data set made by hand ---- */

enum { SHARDS = 1000, PER_PART = 300 };

static void put(struct env *e, const char *key, const void *data, size_t len) {
    struct wt_err err = {0};
    if (wt_sync_write(e->sync, e->tier, key, data, len, WT_PUT_REPLACE, &err) < 0)
        fail_msg("%s", err.text);
}

static void make_part(struct env *e, struct wt_manifest *m, uint32_t part, uint64_t first,
                      uint32_t records) {
    uint8_t *bytes = malloc((size_t)records * WT_IDX_RECORD);
    for (uint32_t i = 0; i < records; i++) {
        uint64_t shard = first + i;
        struct wt_shard_rec rec = {.hash = {.hi = shard, .lo = 7},
                                   .size = 100000,
                                   .tar_size = 100000,
                                   .index_off = 90000,
                                   .first = m->samples,
                                   .samples = 2,
                                   .codec = WT_CODEC_TAR};
        wt_shard_rec_encode(&rec, bytes + (size_t)i * WT_IDX_RECORD);
        m->samples += 2;
        m->stored_bytes += rec.size;
        m->tar_bytes += rec.tar_size;
    }
    m->part[part].records = records;
    m->part[part].hash = wt_hash(bytes, (size_t)records * WT_IDX_RECORD);
    char key[WT_OBJECT_NAME];
    wt_idx_name("wafers", m->part[part].hash, key);
    put(e, key, bytes, (size_t)records * WT_IDX_RECORD);
    free(bytes);
}

/* Writes it; *text gets the manifest's bytes. */
static void make_dataset(struct env *e, char **text) {
    struct wt_manifest m = {.name = "wafers",
                            .generation = 3,
                            .created = 1700000000,
                            .lots = 1,
                            .wafers = 1,
                            .shards = SHARDS,
                            .n_fields = 1,
                            .n_parts = 4};
    m.field[0] = (struct wt_field_info){"", {WT_DTYPE_U8, 2, {52, 52}}};
    m.part = calloc(4, sizeof *m.part);
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t first = (uint64_t)i * PER_PART;
        make_part(e, &m, i, first, SHARDS - first < PER_PART ? SHARDS - (uint32_t)first : PER_PART);
    }
    m.pixel_bytes = m.samples * 2704;
    *text = wt_manifest_format(&m);
    assert_non_null(*text);
    put(e, "wafers/manifest.json", *text, strlen(*text));
    wt_manifest_free(&m);
}

struct waiting {
    struct wt_load_dataset load;
    bool done;
    unsigned calls;
};

static void on_loaded(struct wt_load_dataset *load) {
    struct waiting *w = load->arg;
    w->done = true;
    w->calls++;
}

/* The loop belongs to the sync object: turned by a request that takes a while. */
static void turn(struct env *e) {
    struct wt_req probe = {.op = WT_OP_PROBE};
    wt_sync_do(e->sync, e->tier, &probe);
}

static int load(struct env *e, struct waiting *w, const char *name, int cancel_after) {
    *w = (struct waiting){.load = {.tier = e->tier, .done = on_loaded, .arg = w}};
    snprintf(w->load.name, sizeof w->load.name, "%s", name);
    int rc = wt_load_dataset(&w->load);
    if (rc < 0)
        return rc;
    for (int turns = 0; !w->done && turns < 20000; turns++) {
        if (turns == cancel_after)
            wt_load_dataset_cancel(&w->load);
        turn(e);
    }
    assert_int_equal(w->calls, 1);
    return w->load.rc;
}

static void loads(void **state) {
    struct env *e = *state;
    char *text;
    make_dataset(e, &text);
    struct waiting w;
    assert_int_equal(load(e, &w, "wafers", -1), 0);
    assert_int_equal(w.load.dataset.m.shards, SHARDS);
    assert_int_equal(w.load.dataset.m.samples, 2 * SHARDS);
    assert_true(wt_hash_equal(w.load.manifest_hash, wt_hash(text, strlen(text))));
    struct wt_shard_rec rec;
    wt_dataset_rec(&w.load.dataset, 777, &rec);
    assert_int_equal(rec.hash.hi, 777);
    assert_int_equal(wt_dataset_find(&w.load.dataset, 1555), 777);
    wt_dataset_free(&w.load.dataset);
    free(text);
}

static void load_failures(void **state) {
    struct env *e = *state;
    struct waiting w;
    assert_int_equal(load(e, &w, "Bad Name", -1), WT_EINVAL);
    assert_int_equal(load(e, &w, "absent", -1), WT_EMISSING);
    assert_non_null(strstr(w.load.err.text, "absent"));
    char *text;
    make_dataset(e, &text);
    /* The manifest of another data set under this name. */
    put(e, "other/manifest.json", text, strlen(text));
    assert_int_equal(load(e, &w, "other", -1), WT_ECORRUPT);
    put(e, "wafers/manifest.json", text, strlen(text) / 2);
    assert_true(load(e, &w, "wafers", -1) < 0);
    put(e, "wafers/manifest.json", "", 0);
    assert_true(load(e, &w, "wafers", -1) < 0);
    put(e, "wafers/manifest.json", text, strlen(text));
    /* A part that is damaged, too long, too short, away. */
    struct wt_manifest m = {0};
    assert_int_equal(wt_manifest_parse(text, strlen(text), &m, NULL), 0);
    char key[WT_OBJECT_NAME];
    wt_idx_name("wafers", m.part[2].hash, key);
    size_t len = (size_t)m.part[2].records * WT_IDX_RECORD;
    uint8_t *part = NULL;
    size_t got;
    assert_int_equal(wt_sync_read(e->sync, e->tier, key, len, &part, &got, NULL), 0);
    part = realloc(part, len + 1);
    part[len] = 0;
    put(e, key, part, len + 1);
    assert_int_equal(load(e, &w, "wafers", -1), WT_ECORRUPT);
    put(e, key, part, len - 1);
    assert_int_equal(load(e, &w, "wafers", -1), WT_ECORRUPT);
    part[77] ^= 1;
    put(e, key, part, len);
    assert_int_equal(load(e, &w, "wafers", -1), WT_ECORRUPT);
    part[77] ^= 1;
    put(e, key, part, len);
    assert_int_equal(load(e, &w, "wafers", -1), 0);
    wt_dataset_free(&w.load.dataset);
    assert_int_equal(wt_sync_remove(e->sync, e->tier, key, NULL), 0);
    assert_int_equal(load(e, &w, "wafers", -1), WT_ECORRUPT);
    free(part);
    wt_manifest_free(&m);
    free(text);
}

static void load_canceled(void **state) {
    struct env *e = *state;
    char *text;
    make_dataset(e, &text);
    free(text);
    bool canceled = false;
    for (int after = 0; after < 12; after++) {
        struct waiting w;
        int rc = load(e, &w, "wafers", after);
        if (rc == 0)
            wt_dataset_free(&w.load.dataset);
        else
            assert_int_equal(rc, WT_ECANCELED);
        canceled |= rc == WT_ECANCELED;
        wt_load_dataset_cancel(&w.load); /* over: nothing happens */
    }
    assert_true(canceled);
}

/* ---- configurations ---- */

static int load_conf(struct env *e, const char *text, struct wt_client_conf *conf,
                     struct wt_err *err) {
    char path[300];
    snprintf(path, sizeof path, "%s/conf", e->folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return wt_client_conf_load(path, conf, err);
}

static void client_conf(void **state) {
    struct env *e = *state;
    struct wt_client_conf conf;
    struct wt_err err = {0};
    const char *text =
        "control = \"unix:/run/x.sock\"\n"
        "log_level = \"debug\"\n"
        "mover { moves = 3 }\n"
        "tier \"cold\" { url = \"file:///a\" depth = 7 }\n"
        "tier \"hot\" { url = \"file:///b\" capacity = \"2GiB\" timeout = \"3s\" }\n";
    if (load_conf(e, text, &conf, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(conf.n_tiers, 2);
    assert_string_equal(conf.control, "unix:/run/x.sock");
    assert_string_equal(conf.tier[0].name, "cold");
    assert_string_equal(conf.tier[0].url, "file:///a");
    assert_int_equal(conf.tier[0].depth, 7);
    assert_int_equal(conf.tier[0].timeout_ms, 10000);
    assert_int_equal(conf.tier[1].capacity, UINT64_C(2) << 30);
    assert_int_equal(conf.tier[1].timeout_ms, 3000);
    assert_int_equal(load_conf(e, "control = \"\"\n", &conf, &err), WT_EINVAL);
    assert_non_null(strstr(err.text, "tier"));
    assert_true(load_conf(e, "tier \"cold\" { capacity = \"1GiB\" }\n", &conf, &err) < 0);
    assert_true(load_conf(e, "tier \"cold\" {", &conf, &err) < 0);
    assert_true(wt_client_conf_load("/nonexistent/conf", &conf, &err) < 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sync_round_trips, open_env, close_env),
        cmocka_unit_test_setup_teardown(sync_errors, open_env, close_env),
        cmocka_unit_test_setup_teardown(loads, open_env, close_env),
        cmocka_unit_test_setup_teardown(load_failures, open_env, close_env),
        cmocka_unit_test_setup_teardown(load_canceled, open_env, close_env),
        cmocka_unit_test_setup_teardown(client_conf, open_env, close_env),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
