/* The data set, the state and the configuration of bench_daemon; see made.h. */
#include "made.h"

#include "../measure.h"
#include "core/dataset.h"
#include "core/mem.h"
#include "daemon/state.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = MADE_SAMPLES, SIZE = 64 << 20 };

static void write_file(const struct made *b, const char *key, const void *data, size_t len) {
    char path[512];
    snprintf(path, sizeof path, "%s/cold/%s", b->folder, key);
    FILE *f = fopen(path, "we");
    if (!f || fwrite(data, 1, len, f) != len || fclose(f) != 0)
        bench_die("%s cannot be written", path);
}

static void make_folder(const struct made *b, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", b->folder, name);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        bench_die("%s cannot be made", path);
}

static void fill_part(struct wt_manifest *m, uint8_t *idx, uint64_t first, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        struct wt_shard_rec rec = {.hash = {first + i, first + i},
                                   .size = SIZE,
                                   .tar_size = SIZE,
                                   .index_off = SIZE / 2,
                                   .first = m->samples,
                                   .samples = SAMPLES,
                                   .codec = WT_CODEC_TAR};
        wt_shard_rec_encode(&rec, idx + (size_t)i * WT_IDX_RECORD);
        m->samples += SAMPLES;
        m->stored_bytes += SIZE;
        m->tar_bytes += SIZE;
    }
}

/* Comes back with the index in memory too. */
static uint8_t *make_set(struct made *b, struct wt_manifest *m) {
    uint32_t parts = (uint32_t)((b->shards + WT_IDX_PART - 1) / WT_IDX_PART);
    uint8_t *idx = malloc((size_t)b->shards * WT_IDX_RECORD);
    char key[WT_OBJECT_NAME];
    *m = (struct wt_manifest){.name = "wafers",
                              .generation = 1,
                              .created = 1,
                              .shards = b->shards,
                              .lots = 1,
                              .wafers = 1,
                              .n_fields = 1,
                              .n_parts = parts};
    m->field[0].shape = (struct wt_shape){.dtype = WT_DTYPE_U8, .ndim = 2, .dim = {512, 512}};
    m->part = calloc(parts, sizeof *m->part);
    if (!idx || !m->part)
        bench_die("no memory for %" PRIu64 " shards", b->shards);
    for (uint32_t p = 0; p < parts; p++) {
        uint64_t first = (uint64_t)p * WT_IDX_PART, left = b->shards - first;
        uint32_t n = left < WT_IDX_PART ? (uint32_t)left : (uint32_t)WT_IDX_PART;
        uint8_t *at = idx + first * WT_IDX_RECORD;
        fill_part(m, at, first, n);
        m->part[p] = (struct wt_idx_part){wt_hash(at, (size_t)n * WT_IDX_RECORD), n};
        wt_idx_name(m->name, m->part[p].hash, key);
        write_file(b, key, at, (size_t)n * WT_IDX_RECORD);
    }
    char *text = wt_manifest_format(m);
    if (!text)
        bench_die("no memory for a manifest");
    wt_manifest_name(m->name, key);
    write_file(b, key, text, strlen(text));
    free(text);
    return idx;
}

/* Copies in warm: files of the right size without any content. */
static void make_copies(const struct made *b, const struct wt_dataset *d) {
    char path[512], key[WT_OBJECT_NAME];
    for (uint64_t i = 0; i < b->shards; i += MADE_WARM) {
        struct wt_shard_rec rec;
        wt_dataset_rec(d, i, &rec);
        wt_shard_name(d->m.name, i, &rec, key);
        snprintf(path, sizeof path, "%s/warm/%s", b->folder, key);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0 && errno == ENOENT) { /* the first of its folder */
            *strrchr(path, '/') = '\0';
            if (mkdir(path, 0755) < 0 && errno != EEXIST)
                bench_die("%s cannot be made", path);
            i -= MADE_WARM;
            continue;
        }
        if (fd < 0 || ftruncate(fd, (off_t)rec.size) < 0)
            bench_die("%s cannot be written", path);
        close(fd);
    }
}

static void make_state(struct made *b, struct wt_manifest *m, uint8_t *idx) {
    struct wt_err err = {0};
    struct wt_catalog c;
    struct wt_dataset d;
    struct wt_catalog_set *set;
    struct wt_state *s;
    char state[300];
    static const struct wt_tier_opts tier[2] = {{.name = "cold"}, {.name = "warm"}};
    snprintf(state, sizeof state, "%s/state", b->folder);
    const void **parts = calloc(m->n_parts, sizeof *parts);
    size_t *lens = calloc(m->n_parts, sizeof *lens);
    if (!parts || !lens)
        bench_die("out of memory");
    for (uint32_t p = 0; p < m->n_parts; p++) {
        parts[p] = idx + (size_t)p * WT_IDX_PART * WT_IDX_RECORD;
        lens[p] = (size_t)m->part[p].records * WT_IDX_RECORD;
    }
    wt_catalog_init(&c, 2);
    if (wt_dataset_build(m, parts, lens, &d, &err) < 0 ||
        wt_catalog_add(&c, &d, (struct wt_hash){1, 1}, &set, &err) < 0 ||
        wt_state_open(state, tier, 2, NULL, &s, &err) < 0)
        bench_die("%s", err.text);
    for (uint64_t i = 0; i < b->shards; i++) {
        set->shard[i].heat =
            i % MADE_WARM ? 1 : 2; /* what is warm belongs there: nothing is to be done */
        set->shard[i].heated = (uint32_t)time(NULL);
        if (i % MADE_WARM == 0)
            wt_catalog_hold(&c, set, i, 1, (uint32_t)time(NULL), true);
    }
    if (wt_state_save(s, &c, &err) < 0)
        bench_die("%s", err.text);
    wt_state_free(s);
    make_copies(b, &set->d);
    wt_catalog_free(&c);
    free(parts);
    free(lens);
}

static void write_conf(const struct made *b) {
    char path[512];
    uint64_t capacity = (b->shards / MADE_WARM + 1) * SIZE / 95 * 100; /* up to the mark */
    snprintf(path, sizeof path, "%s/conf", b->folder);
    FILE *f = fopen(path, "we");
    if (!f)
        bench_die("%s cannot be written", path);
    /* The shards are not there: moves fail, and wait; then no more are begun. */
    fprintf(f,
            "state_folder = \"%s/state\"\ncontrol = \"unix:%s/sock\"\nlog_level = error\n"
            "tier cold { url = \"file://%s/cold\" }\n"
            "tier warm { url = \"file://%s/warm\"\n capacity = \"%" PRIu64 "\" }\n"
            "mover { retries = 100\n backoff = 10min\n backoff_max = 10min }\n",
            b->folder, b->folder, b->folder, b->folder, capacity);
    if (fclose(f) != 0)
        bench_die("%s cannot be written", path);
}

static void fill(struct made *b) {
    struct wt_manifest m;
    static const char *const folders[] = {
        "cold", "warm", "cold/wafers", "warm/wafers", "cold/wafers/idx", "warm/wafers/shards"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        make_folder(b, folders[i]);
    uint8_t *idx = make_set(b, &m);
    make_state(b, &m, idx);
    free(idx);
    write_conf(b); /* the last: it says that all is there */
}

bool made_is_there(const struct made *b) {
    char path[512];
    snprintf(path, sizeof path, "%s/conf", b->folder);
    return access(path, F_OK) == 0;
}

void made_make(struct made *b) {
    int status;
    pid_t child = fork(); /* what it needs is not the benchmark's */
    if (child == 0) {
        fill(b);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
        bench_die("the data set cannot be made");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st;
    (void)type;
    return ftw->level ? remove(path) : 0;
}

void made_remove(const struct made *b) {
    nftw(b->folder, remove_one, 32, FTW_DEPTH | FTW_PHYS);
}
