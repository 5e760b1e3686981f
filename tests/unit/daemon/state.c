/* Snapshot and journal: round trip, damage at every byte, truncation at every byte, other tiers,
 * other generations. */
#include "daemon/state.h"

#include "daemon/state_file.h"
#include "sets.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct wt_tier_opts tiers[3] = {{.name = "cold"}, {.name = "warm"}, {.name = "hot"}};

struct box {
    char root[64], folder[96];
    struct wt_catalog c;
    struct wt_catalog_set *set;
};

static int setup(void **state) {
    struct box *b = calloc(1, sizeof *b);
    assert_non_null(b);
    snprintf(b->root, sizeof b->root, "/tmp/wt-state-XXXXXX");
    assert_non_null(mkdtemp(b->root));
    snprintf(b->folder, sizeof b->folder, "%s/state", b->root);
    *state = b;
    return 0;
}

static void empty_folder(const char *path) {
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
}

static int teardown(void **state) {
    struct box *b = *state;
    empty_folder(b->folder);
    rmdir(b->folder);
    rmdir(b->root);
    wt_catalog_free(&b->c);
    free(b);
    return 0;
}

static void fresh_catalog(struct box *b, uint64_t salt) {
    struct wt_err err = {0};
    struct wt_dataset d = make_set("wafers", 1, 6, 1000, salt, 0);
    wt_catalog_free(&b->c);
    wt_catalog_init(&b->c, 3);
    assert_int_equal(wt_catalog_add(&b->c, &d, (struct wt_hash){salt, 1}, &b->set, &err), 0);
}

static struct wt_state *open_with(struct box *b, const struct wt_tier_opts *t, uint32_t n) {
    struct wt_state *s;
    struct wt_err err = {0};
    if (wt_state_open(b->folder, t, n, NULL, &s, &err) < 0)
        fail_msg("%s", err.text);
    return s;
}

static struct wt_state *open_state(struct box *b) {
    return open_with(b, tiers, 3);
}

/* As the daemon does before the set enters its catalog. */
static bool applied(struct box *b, struct wt_state *s) {
    wt_state_fill(s, &b->c.clock, b->set);
    void *known = wt_state_forget(s, "wafers");
    free(known);
    return known != NULL;
}

static void hold(struct box *b, struct wt_state *s, uint64_t shard, uint32_t tier) {
    wt_catalog_hold(&b->c, b->set, shard, tier, 50, true);
    wt_state_note(s, b->set, shard, tier, true);
}

/* Shards 0 and 1 in hot, 2 in warm by snapshot; then 1 leaves hot and 3 comes to warm by journal.
 */
static void write_both(struct box *b) {
    struct wt_err err = {0};
    fresh_catalog(b, 9);
    struct wt_state *s = open_state(b);
    hold(b, s, 0, 2);
    hold(b, s, 1, 2);
    hold(b, s, 2, 1);
    b->set->shard[0].heat = 2.5f;
    b->set->shard[0].heated = 1234;
    b->set->shard[5].heat = 1;
    b->set->shard[2].pin = 2;
    assert_int_equal(wt_state_save(s, &b->c, &err), 0);
    wt_catalog_lose(&b->c, b->set, 1, 2);
    wt_state_note(s, b->set, 1, 2, false);
    hold(b, s, 3, 1);
    wt_state_free(s);
}

static void masks(struct box *b, const int want[6]) {
    for (int i = 0; i < 6; i++)
        if (b->set->shard[i].mask != want[i])
            fail_msg("shard %d: mask %d, not %d", i, b->set->shard[i].mask, want[i]);
}

static void round_trip(void **state) {
    struct box *b = *state;
    write_both(b);
    for (int again = 0; again < 3; again++) { /* also from the journals that each open begins */
        fresh_catalog(b, 9);
        struct wt_state *s = open_state(b);
        assert_string_equal(wt_state_pending(s, 0), "wafers");
        assert_null(wt_state_pending(s, 1));
        assert_true(applied(b, s));
        assert_false(applied(b, s));
        masks(b, (const int[]){5, 1, 3, 3, 1, 1});
        assert_true(b->set->shard[0].heat > 2.4f && b->set->shard[5].heat > 0.9f);
        assert_int_equal(b->set->shard[0].heated, 1234);
        assert_int_equal(b->set->shard[3].since, 50);
        assert_int_equal(b->set->shard[2].pin, 2);
        assert_int_equal(b->set->shard[0].sure, 1); /* believed, not seen */
        assert_int_equal(wt_state_damaged(s), 0);
        wt_state_free(s);
    }
}

/* The run that wrote this had its clock ahead: dates are brought back, else heat would stand still
 * for years. */
static uint64_t no_time(void) {
    return 7;
}

static void a_clock_that_was_ahead(void **state) {
    struct box *b = *state;
    write_both(b);
    fresh_catalog(b, 9);
    wt_clock_start(&b->c.clock, 1000, no_time);
    struct wt_state *s = open_state(b);
    assert_true(applied(b, s));
    assert_int_equal(b->set->shard[0].heated, 1000); /* was 1234 */
    assert_int_equal(b->set->shard[3].since, 50);
    assert_true(b->set->shard[0].heat > 2.4f);
    wt_state_free(s);
}

static void what_is_not_applied_is_kept(void **state) {
    struct box *b = *state;
    struct wt_err err = {0};
    write_both(b);
    struct wt_catalog empty;
    wt_catalog_init(&empty, 3);
    for (int i = 0; i < 2; i++) { /* cold is away: the data set cannot be loaded, snapshots are
                                     written nevertheless */
        struct wt_state *s = open_state(b);
        assert_int_equal(wt_state_save(s, &empty, &err), 0);
        wt_state_free(s);
    }
    fresh_catalog(b, 9);
    struct wt_state *s = open_state(b);
    assert_true(applied(b, s));
    masks(b, (const int[]){5, 1, 3, 3, 1, 1});
    wt_state_free(s);
}

static void another_generation_is_not_believed(void **state) {
    struct box *b = *state;
    write_both(b);
    /* the low half of a hash is the shard's number in these tests: other contents need other
     * numbers */
    fresh_catalog(b, 9);
    for (uint64_t i = 0; i < 6; i++) {
        struct wt_shard_rec rec;
        wt_catalog_rec(b->set, i, &rec);
        rec.hash.lo += 100;
        wt_shard_rec_encode(&rec, b->set->d.idx + i * WT_IDX_RECORD);
    }
    struct wt_state *s = open_state(b);
    assert_true(applied(b, s));
    masks(b, (const int[]){1, 1, 1, 1, 1, 1});
    wt_state_free(s);
}

static void other_tiers(void **state) {
    struct box *b = *state;
    static const struct wt_tier_opts swapped[3] = {
        {.name = "cold"}, {.name = "hot"}, {.name = "attic"}};
    write_both(b);
    fresh_catalog(b, 9);
    struct wt_state *s = open_with(b, swapped, 3);
    assert_true(applied(b, s));
    masks(b, (const int[]){3, 1, 1, 1, 1, 1}); /* hot is tier 1 now, warm is gone */
    wt_state_free(s);
}

static void copy_file(const char *path, uint8_t *data, size_t *len) {
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    *len = fread(data, 1, 65536, f);
    fclose(f);
}
static void put_file(const char *path, const uint8_t *data, size_t len) {
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    fclose(f);
}

/* The journal that write_both leaves: the newest with changes in it. */
static void journal_path(const struct box *b, char path[200]) {
    DIR *d = opendir(b->folder);
    off_t best = -1;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char at[400];
        struct stat st;
        snprintf(at, sizeof at, "%s/%s", b->folder, e->d_name);
        if (strncmp(e->d_name, "journal-", 8) == 0 && stat(at, &st) == 0 && st.st_size > best) {
            best = st.st_size;
            snprintf(path, 200, "%s/%.60s", b->folder, e->d_name);
        }
    }
    closedir(d);
    assert_true(best > WT_STATE_HEAD + 8);
}

struct files {
    char snapshot[200], journal[200];
    uint8_t snapshot_data[65536], journal_data[65536];
    size_t snapshot_len, journal_len;
};

static struct files *load_files(struct box *b) {
    struct files *f = calloc(1, sizeof *f);
    assert_non_null(f);
    write_both(b);
    snprintf(f->snapshot, sizeof f->snapshot, "%s/snapshot", b->folder);
    journal_path(b, f->journal);
    copy_file(f->snapshot, f->snapshot_data, &f->snapshot_len);
    copy_file(f->journal, f->journal_data, &f->journal_len);
    return f;
}

/* Writes the two files, opens, applies; returns how many were set aside. */
static uint64_t reopen(struct box *b, const struct files *f, size_t snapshot_len,
                       size_t journal_len) {
    empty_folder(b->folder);
    put_file(f->snapshot, f->snapshot_data, snapshot_len);
    put_file(f->journal, f->journal_data, journal_len);
    fresh_catalog(b, 9);
    struct wt_state *s = open_state(b);
    applied(b, s);
    uint64_t damaged = wt_state_damaged(s);
    wt_state_free(s);
    return damaged;
}

static void damage_at_every_byte(void **state) {
    struct box *b = *state;
    struct files *f = load_files(b);
    for (size_t i = 0; i < f->snapshot_len; i++) {
        f->snapshot_data[i] ^= 0x20;
        assert_int_equal(reopen(b, f, f->snapshot_len, f->journal_len), 1);
        masks(b, (const int[]){1, 1, 1, 3, 1, 1}); /* the journal alone */
        f->snapshot_data[i] ^= 0x20;
    }
    for (size_t i = 0; i < f->journal_len; i++) {
        f->journal_data[i] ^= 0x20;
        assert_int_equal(reopen(b, f, f->snapshot_len, f->journal_len), 1);
        int mask1 = b->set->shard[1].mask, mask3 = b->set->shard[3].mask;
        assert_true(mask1 == 1 ||
                    mask1 == 5); /* the changes before the damage count, those after it do not */
        assert_int_equal(mask3, 1);
        assert_int_equal(b->set->shard[0].mask, 5);
        f->journal_data[i] ^= 0x20;
    }
    char aside[240];
    snprintf(aside, sizeof aside, "%s.damaged-1", f->journal);
    assert_int_equal(access(aside, F_OK), 0);
    assert_int_equal(reopen(b, f, f->snapshot_len, f->journal_len), 0);
    free(f);
}

static void cut_at_every_byte(void **state) {
    struct box *b = *state;
    struct files *f = load_files(b);
    for (size_t i = 0; i < f->snapshot_len; i++) {
        assert_int_equal(reopen(b, f, i, f->journal_len), 1);
        masks(b, (const int[]){1, 1, 1, 3, 1, 1});
    }
    for (size_t i = 0; i < f->journal_len; i++) {
        uint64_t damaged = reopen(b, f, f->snapshot_len, i);
        size_t whole = i < WT_STATE_HEAD + 8 ? 0 : (i - WT_STATE_HEAD - 8) / WT_STATE_CHANGE;
        assert_int_equal(damaged,
                         i > 0 && i < WT_STATE_HEAD + 8); /* in a record: a crash, and no damage */
        masks(b, (const int[]){5, whole > 0 ? 1 : 5, 3, whole > 1 ? 3 : 1, 1, 1});
    }
    free(f);
}

static void a_lying_snapshot(void **state) {
    struct box *b = *state;
    struct files *f = load_files(b);
    /* right sum, impossible numbers: sets, records, tiers */
    static const size_t at[] = {24, WT_STATE_HEAD + WT_DATASET_NAME, 12};
    for (size_t i = 0; i < 3; i++) {
        uint8_t old[8];
        memcpy(old, f->snapshot_data + at[i], 8);
        memset(f->snapshot_data + at[i], 0xff, i == 2 ? 4 : 8);
        wt_put64(f->snapshot_data + f->snapshot_len - 8,
                 wt_hash64(f->snapshot_data, f->snapshot_len - 8));
        assert_int_equal(reopen(b, f, f->snapshot_len, f->journal_len), 1);
        memcpy(f->snapshot_data + at[i], old, 8);
    }
    free(f);
}

static void a_folder_that_cannot_be(void **state) {
    struct box *b = *state;
    struct wt_state *s;
    struct wt_err err = {0};
    assert_int_equal(wt_state_open("/nonexistent/deep/state", tiers, 3, NULL, &s, &err),
                     WT_EMISSING);
    assert_non_null(strstr(err.text, "/nonexistent/deep/state"));
    put_file(b->folder, (const uint8_t *)"x", 1);
    assert_int_not_equal(wt_state_open(b->folder, tiers, 3, NULL, &s, &err), 0);
    unlink(b->folder);
}

static void saved_in_a_worker(void **state) {
    struct box *b = *state;
    uv_loop_t loop;
    write_both(b);
    fresh_catalog(b, 9);
    assert_int_equal(uv_loop_init(&loop), 0);
    struct wt_state *s = open_state(b);
    assert_true(applied(b, s));
    wt_state_save_later(s, &b->c, &loop);
    assert_true(wt_state_saving(s));
    hold(b, s, 4, 2); /* while it is written: goes to the new journal */
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_false(wt_state_saving(s));
    wt_state_free(s);
    assert_int_equal(uv_loop_close(&loop), 0);
    fresh_catalog(b, 9);
    s = open_state(b);
    assert_true(applied(b, s));
    masks(b, (const int[]){5, 1, 3, 3, 5, 1});
    wt_state_free(s);
}

/* More than a piece, and another data set comes while it is written: it begins anew. */
static void many_pieces(void **state) {
    enum { MANY = 50000 };
    struct box *b = *state;
    struct wt_err err = {0};
    uv_loop_t loop;
    struct wt_dataset d = make_set("wafers", 1, MANY, 1000, 9, 0),
                      e = make_set("others", 1, 3, 1000, 7, 0);
    struct wt_catalog_set *others;
    wt_catalog_free(&b->c);
    wt_catalog_init(&b->c, 3);
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(wt_catalog_add(&b->c, &d, (struct wt_hash){9, 1}, &b->set, &err), 0);
    struct wt_state *s = open_state(b);
    for (uint64_t i = 0; i < MANY; i += 3)
        wt_catalog_hold(&b->c, b->set, i, 1, 50, true);
    wt_state_save_later(s, &b->c, &loop);
    uv_run(&loop, UV_RUN_ONCE);
    assert_true(wt_state_saving(s));
    assert_int_equal(wt_catalog_add(&b->c, &e, (struct wt_hash){7, 1}, &others, &err), 0);
    wt_catalog_hold(&b->c, others, 1, 2, 50, true);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_false(wt_state_saving(s));
    wt_state_save_later(s, &b->c, &loop); /* one that is canceled leaves the older snapshot */
    wt_state_save_cancel(s);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_false(wt_state_saving(s));
    wt_state_free(s);
    assert_int_equal(uv_loop_close(&loop), 0);
    for (uint64_t i = 0; i < MANY; i++)
        b->set->shard[i].mask = 1;
    others->shard[1].mask = 1;
    s = open_state(b);
    assert_int_equal(wt_state_damaged(s), 0);
    assert_true(applied(b, s));
    wt_state_fill(s, &b->c.clock, others);
    free(wt_state_forget(s, "others"));
    for (uint64_t i = 0; i < MANY; i++)
        assert_int_equal(b->set->shard[i].mask, i % 3 ? 1 : 3);
    assert_int_equal(others->shard[1].mask, 5);
    wt_state_free(s);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {T(round_trip),
                                       T(a_clock_that_was_ahead),
                                       T(what_is_not_applied_is_kept),
                                       T(another_generation_is_not_believed),
                                       T(other_tiers),
                                       T(damage_at_every_byte),
                                       T(cut_at_every_byte),
                                       T(a_lying_snapshot),
                                       T(a_folder_that_cannot_be),
                                       T(saved_in_a_worker),
                                       T(many_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
