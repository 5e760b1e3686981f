/*
 * Damaged shards through the whole loader: a flipped bit in every byte, a cut at every length, in
 * the cold copies (bad samples are masked) and in copies above them (the cold one serves); files
 * that are cut, overwritten and removed while they are mapped and read; rights that are withdrawn;
 * filters that fail and lie. What is delivered is right, or it is not delivered; nothing crashes.
 *
 * The data sets have many small shards, so that one epoch tries as many places.
 */
#include "loader_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHARDS = 128 };

static const struct kit_shape shapes[] = {
    {.samples = 2 * SHARDS, .per_shard = 2, .h = 5, .w = 7, .codec = WT_CODEC_TAR},
    {.samples = 2 * SHARDS, .per_shard = 2, .h = 5, .w = 7, .codec = WT_CODEC_ZSTD},
};

/* The files of a tier, kept to be restored. */
struct files {
    const struct kit *k;
    unsigned tier;
    uint64_t largest;
    struct file {
        char path[512];
        uint64_t size;
        uint8_t *data;
    } file[SHARDS];
};

static void keep_files(struct files *f, const struct kit *k, unsigned tier) {
    *f = (struct files){.k = k, .tier = tier};
    for (uint64_t s = 0; s < SHARDS; s++) {
        struct file *x = &f->file[s];
        struct wt_shard_rec rec;
        wt_dataset_rec(&k->ds, s, &rec);
        x->size = rec.size;
        f->largest = rec.size > f->largest ? rec.size : f->largest;
        x->data = malloc(rec.size);
        kit_path(k, tier, s, x->path);
        int fd = open(x->path, O_RDONLY);
        assert_int_equal(read(fd, x->data, rec.size), rec.size);
        close(fd);
    }
}

static void free_files(struct files *f) {
    for (uint64_t s = 0; s < SHARDS; s++)
        free(f->file[s].data);
}

/* Writes [from, to) of the kept content, or of `other`. */
static void write_range(const struct file *x, const uint8_t *other, uint64_t from, uint64_t to) {
    int fd = open(x->path, O_WRONLY | O_CREAT, 0644);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, (other ? other : x->data) + from, to - from, (off_t)from),
                     to - from);
    close(fd);
}

static void flip(struct files *f, uint64_t round, unsigned bit) {
    for (uint64_t s = 0; s < SHARDS; s++) {
        struct file *x = &f->file[s];
        uint64_t at = (s + round * SHARDS) % x->size;
        x->data[at] ^= (uint8_t)(1u << bit);
        write_range(x, NULL, at, at + 1);
        x->data[at] ^= (uint8_t)(1u << bit);
    }
}

static void cut(struct files *f, uint64_t round, uint64_t step) {
    for (uint64_t s = 0; s < SHARDS; s++) {
        struct file *x = &f->file[s];
        assert_int_equal(truncate(x->path, (off_t)((s + round * SHARDS) * step % x->size)), 0);
    }
}

static void restore(struct files *f) {
    for (uint64_t s = 0; s < SHARDS; s++)
        write_range(&f->file[s], NULL, 0, f->file[s].size);
}

static wl_options mask_options(const struct kit *k) {
    wl_options o = kit_options(k);
    o.tail = WL_TAIL_PAD;
    o.epochs = 1;
    o.bad = WL_BAD_MASK;
    o.bad_max = k->shape.samples;
    return o;
}

/* One epoch; every valid row is checked by the kit. Returns how many samples were bad. */
static uint64_t read_masked(const struct kit *k, const wl_options *o) {
    wl_loader *l = kit_open(o);
    struct kit_epoch e = {.batch = o->batch};
    kit_read_epoch(k, l, &e);
    uint64_t bad = kit_stats(l).bad_samples;
    assert_int_equal(e.valid + bad, k->shape.samples);
    wl_close(l);
    kit_epoch_free(&e);
    return bad;
}

static uint64_t least_memory(const wl_options *options) {
    wl_options o = *options;
    wl_loader *l;
    unsigned long long need = 0;
    o.memory = 4096;
    assert_int_equal(wl_open(NULL, &o, &l), WL_ERROR_MEMORY);
    const char *says = strstr(wl_last_error(NULL)->message, "needs ");
    assert_true(says && sscanf(says, "needs %llu", &need) == 1);
    return need;
}

static void test_a_flip_in_every_byte(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct kit k;
        struct files f;
        kit_make(&k, &shapes[i]);
        keep_files(&f, &k, 0);
        wl_options o = mask_options(&k);
        uint64_t bad = 0, rounds = f.largest / SHARDS + 1, least = least_memory(&o);
        for (uint64_t r = 0; r < rounds; r++) {
            o.memory = r % 4 == 3 ? least : UINT64_C(512) << 20; /* also sample by sample */
            flip(&f, r, (unsigned)r % 8);
            bad += read_masked(&k, &o);
            restore(&f);
        }
        /* Most flips are in something that matters. */
        assert_true(bad > rounds * SHARDS / (shapes[i].codec == WT_CODEC_TAR ? 10 : 2));
        assert_int_equal(read_masked(&k, &o), 0);
        free_files(&f);
        kit_free(&k);
    }
}

static void test_a_cut_at_every_length(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct kit k;
        struct files f;
        kit_make(&k, &shapes[i]);
        keep_files(&f, &k, 0);
        wl_options o = mask_options(&k);
        /* A tar at every block, a .tar.zst at every byte: its frames end anywhere. */
        uint64_t step = shapes[i].codec == WT_CODEC_TAR ? 512 : 1;
        uint64_t rounds = f.largest / step / SHARDS + 1, least = least_memory(&o);
        for (uint64_t r = 0; r < rounds; r++) {
            o.memory = r % 2 ? least : UINT64_C(512) << 20;
            cut(&f, r, step);
            assert_int_equal(read_masked(&k, &o), k.shape.samples); /* no index, no samples */
            restore(&f);
        }
        assert_int_equal(read_masked(&k, &o), 0);
        free_files(&f);
        kit_free(&k);
    }
}

/* Damage above cold costs nothing but the second read. */
static void test_copies_above_do_not_matter(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (unsigned tier = 1; tier <= 2; tier++) {
            struct kit k;
            struct files f;
            kit_make(&k, &shapes[i]);
            kit_copy_all(&k, tier);
            keep_files(&f, &k, tier);
            wl_options o = mask_options(&k);
            for (uint64_t r = 0; r < 6; r++) {
                if (r % 2)
                    cut(&f, r, 77);
                else
                    flip(&f, r * 5, (unsigned)r);
                assert_int_equal(read_masked(&k, &o), 0);
                restore(&f);
            }
            free_files(&f);
            kit_free(&k);
        }
    }
}

/* ---- while it is read ---- */

struct vandal {
    struct files *f;
    atomic_bool stop;
    atomic_uint deeds;
};

/* Cuts, overwrites and removes the files of a tier, one after the other, again and again. */
static void *vandalise(void *arg) {
    struct vandal *v = arg;
    static const uint8_t junk[8192];
    for (unsigned n = 0; !atomic_load(&v->stop); n++) {
        struct file *x = &v->f->file[n * 7 % SHARDS];
        switch (n / 4 % 4) {
        case 0:
            atomic_fetch_add(&v->deeds, truncate(x->path, (off_t)(x->size / 3)) == 0);
            break;
        case 1:
            atomic_fetch_add(&v->deeds, unlink(x->path) == 0);
            break;
        case 2:
            write_range(x, NULL, 0, x->size);
            break;
        default:
            write_range(x, junk, 0, x->size < sizeof junk ? x->size : sizeof junk);
            break;
        }
        usleep(200);
    }
    return NULL;
}

static void read_beside_a_vandal(unsigned tier, const char *url_params) {
    struct kit k;
    struct files f;
    struct kit_shape shape = shapes[tier % 2];
    kit_make(&k, &shape);
    kit_copy_all(&k, tier);
    keep_files(&f, &k, tier);
    if (url_params) {
        char text[700];
        snprintf(text, sizeof text,
                 "tier \"cold\" { url = \"file://%s/cold\" read_only = true }\n"
                 "tier \"hot\" { url = \"file://%s/hot%s\" read_only = true }\n",
                 k.root, k.hot, url_params);
        assert_int_equal(unlink(k.config), 0);
        kit_config(&k, text);
    }
    wl_options o = kit_options(&k);
    o.tail = WL_TAIL_PAD;
    o.epochs = 0;
    wl_loader *l = kit_open(&o);
    struct vandal v = {.f = &f};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, vandalise, &v), 0);
    for (int i = 0; i < 30 || (i < 2000 && atomic_load(&v.deeds) < 12); i++) {
        struct kit_epoch e = {.batch = o.batch};
        kit_read_epoch(&k, l, &e);
        kit_all_once(&k, &e); /* nothing is missing, nothing is wrong */
        kit_epoch_free(&e);
        usleep(10000);
    }
    wl_close(l); /* before the thread's end: it may wait for a lease of ours */
    atomic_store(&v.stop, true);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&v.deeds) >= 12);
    free_files(&f);
    kit_free(&k);
}

static void test_mapped_files_under_a_vandal(void **state) {
    (void)state;
    read_beside_a_vandal(2, NULL);
}

static void test_files_under_a_vandal(void **state) {
    (void)state;
    read_beside_a_vandal(1, NULL);
    read_beside_a_vandal(2, "?map=never");
}

/* ---- rights ---- */

static bool other_user(bool on) {
    return seteuid(on ? 65534 : 0) == 0;
}

static void test_rights_withdrawn(void **state) {
    (void)state;
    if (geteuid() != 0) {
        print_message("SKIPPED: only root can become somebody else\n");
        skip();
    }
    struct kit k;
    char path[512];
    kit_make(&k, &shapes[0]);
    chmod(k.root, 0755);
    chmod(k.hot, 0755);
    kit_copy_all(&k, 2);
    for (uint64_t s = 0; s < SHARDS; s++) {
        kit_path(&k, 2, s, path);
        assert_int_equal(chmod(path, s % 2 ? 0600 : 0644), 0);
        kit_path(&k, 0, s, path);
        assert_int_equal(chmod(path, 0644), 0);
    }
    wl_options o = mask_options(&k);
    o.timeout_ms = 500;
    assert_true(other_user(true));
    assert_int_equal(read_masked(&k, &o), 0); /* hot is not ours to read, cold is */
    assert_true(other_user(false));
    for (uint64_t s = 0; s < SHARDS; s++) {
        kit_path(&k, 0, s, path);
        assert_int_equal(chmod(path, 0600), 0);
    }
    assert_true(other_user(true));
    wl_loader *l = kit_open(&o);
    wl_batch *b;
    int rc;
    while ((rc = wl_next(l, NULL, 20000, &b)) == WL_OK)
        wl_batch_release(b, NULL);
    char message[1024];
    snprintf(message, sizeof message, "%s", wl_last_error(l)->message);
    wl_close(l);
    assert_true(other_user(false));
    assert_int_equal(rc, WL_ERROR_STORAGE); /* never as if the samples were bad */
    assert_non_null(strstr(message, "ermission denied"));
    assert_non_null(strstr(message, "tier cold"));
    kit_free(&k);
}

/* ---- filters ---- */

static void config_with(const struct kit *k, const char *cold, const char *hot) {
    char text[1200];
    snprintf(text, sizeof text,
             "tier \"cold\" { url = \"file://%s/cold\" read_only = true filter = \"%s\" }\n"
             "tier \"hot\" { url = \"file://%s/hot\" read_only = true filter = \"%s\" }\n",
             k->root, cold, k->hot, hot);
    unlink(k->config);
    kit_config(k, text);
}

static void test_faults_are_not_seen(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct kit k;
        kit_make(&k, &shapes[i]);
        kit_copy_all(&k, 2);
        wl_options o = mask_options(&k);
        o.timeout_ms = 20000;
        static const char *const hot[] = {
            "fault read=CORRUPT seed=3",
            "fault read=SHORT",
            "fault read=MISSING:0.5 read=CHANGED:0.5",
            "fault read=IO:0.2 read=CORRUPT:0.3 seed=9",
            "fault read=DENIED:0.3",
            "delay read=1ms..3ms; fault read=TIMEDOUT:every5",
        };
        for (size_t n = 0; n < sizeof hot / sizeof hot[0]; n++) {
            config_with(&k, "", hot[n]);
            assert_int_equal(read_masked(&k, &o), 0);
        }
        /* Cold too, now and then: it is asked again. */
        config_with(&k, "fault read=IO:0.1 seed=5", "fault read=IO:0.5 seed=6");
        assert_int_equal(read_masked(&k, &o), 0);
        /* Where every copy lies there is nothing to deliver. */
        config_with(&k, "fault read=CORRUPT:every3 seed=1", "fault read=MISSING");
        wl_loader *l;
        if (wl_open(NULL, &o, &l) == WL_OK) { /* the manifest may have been hit */
            wl_close(l);
            (void)read_masked(&k, &o);
        }
        kit_free(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_flip_in_every_byte),
        cmocka_unit_test(test_a_cut_at_every_length),
        cmocka_unit_test(test_copies_above_do_not_matter),
        cmocka_unit_test(test_mapped_files_under_a_vandal),
        cmocka_unit_test(test_files_under_a_vandal),
        cmocka_unit_test(test_rights_withdrawn),
        cmocka_unit_test(test_faults_are_not_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
