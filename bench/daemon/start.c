/*
 * How long the daemon needs from its start until it knows all its shards.
 *
 *     bench_start FOLDER [SHARDS]       10 million; FOLDER takes 100 bytes a shard and is left
 * empty
 *
 * Happy path: a data set is written as it lies in a cold tier (manifest and index, no shards), a
 * state folder in which every shard has heat and a quarter a warm copy; then the daemon is started
 * in this process on both, and stopped when its catalog has everything. The page cache is warm, as
 * after a restart of the daemon alone. Limits are those of the design: 30 s; no turn of the loop
 * over 100 ms would be noticed by a request. Failures end the program with their reason.
 */
#include "core/mem.h"
#include "daemon/daemon.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_S = 30, SIZE = 64 << 20, SAMPLES = 100, GIVE_UP_S = 300 };

struct bench {
    char folder[200], conf[256], state[256];
    uint64_t shards;
    uv_loop_t loop;
    uv_check_t turn;
    uv_timer_t watch;
    struct wt_daemon d;
    uint64_t began, last, longest, held, known, warm;
};

static _Noreturn void die(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static double seconds(uint64_t ns) {
    return (double)ns / 1e9;
}

/* ---- what lies there ---- */

static void write_file(const struct bench *b, const char *key, const void *data, size_t len) {
    char path[512];
    snprintf(path, sizeof path, "%s/cold/%s", b->folder, key);
    FILE *f = fopen(path, "we");
    if (!f || fwrite(data, 1, len, f) != len || fclose(f) != 0)
        die("%s cannot be written", path);
}

static void make_folder(const struct bench *b, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", b->folder, name);
    if (mkdir(path, 0755) < 0)
        die("%s cannot be made", path);
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
static uint8_t *make_set(struct bench *b, struct wt_manifest *m) {
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
        die("no memory for %" PRIu64 " shards", b->shards);
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
        die("no memory for a manifest");
    wt_manifest_name(m->name, key);
    write_file(b, key, text, strlen(text));
    free(text);
    return idx;
}

static void make_state(struct bench *b, const struct wt_daemon_conf *conf, struct wt_manifest *m,
                       uint8_t *idx) {
    struct wt_err err = {0};
    struct wt_catalog c;
    struct wt_dataset d;
    struct wt_catalog_set *set;
    struct wt_state *state;
    const void **parts = calloc(m->n_parts, sizeof *parts);
    size_t *lens = calloc(m->n_parts, sizeof *lens);
    if (!parts || !lens)
        die("out of memory");
    for (uint32_t p = 0; p < m->n_parts; p++) {
        parts[p] = idx + (size_t)p * WT_IDX_PART * WT_IDX_RECORD;
        lens[p] = (size_t)m->part[p].records * WT_IDX_RECORD;
    }
    wt_catalog_init(&c, (uint32_t)conf->n_tiers);
    if (wt_dataset_build(m, parts, lens, &d, &err) < 0 ||
        wt_catalog_add(&c, &d, (struct wt_hash){1, 1}, &set, &err) < 0 ||
        wt_state_open(b->state, conf->tier, (uint32_t)conf->n_tiers, NULL, &state, &err) < 0)
        die("%s", err.text);
    for (uint64_t i = 0; i < b->shards; i++) {
        set->shard[i].heat = 1 + (float)(i % 7);
        set->shard[i].heated = wt_clock_now(&c.clock);
        if (i % 4 == 0)
            wt_catalog_hold(&c, set, i, 1, wt_clock_now(&c.clock), true);
    }
    if (wt_state_save(state, &c, &err) < 0)
        die("%s", err.text);
    wt_state_free(state);
    wt_catalog_free(&c);
    free(parts);
    free(lens);
}

static void write_conf(const struct bench *b) {
    FILE *f = fopen(b->conf, "we");
    if (!f)
        die("%s cannot be written", b->conf);
    fprintf(f,
            "state_folder = \"%s\"\ncontrol = \"unix:%s/sock\"\nlog_level = warn\n"
            "tier cold { url = \"file://%s/cold\" }\ntier warm { url = \"file://%s/warm\" }\n",
            b->state, b->folder, b->folder, b->folder);
    if (fclose(f) != 0)
        die("%s cannot be written", b->conf);
}

/* ---- the start ---- */

/* The catalog is complete; the state has been applied in the same turn. */
static void on_watch(uv_timer_t *timer) {
    struct bench *b = timer->data;
    uint64_t now = uv_hrtime();
    if (!b->held && wt_daemon_active(&b->d))
        b->held = now;
    if (now - b->began > GIVE_UP_S * UINT64_C(1000000000))
        die("the daemon does not know its shards after %d s", GIVE_UP_S);
    if (b->d.catalog.shards < b->shards)
        return;
    b->known = now;
    b->warm = b->d.catalog.held[1];
    uv_timer_stop(timer);
    uv_close((uv_handle_t *)timer, NULL);
    uv_check_stop(&b->turn);
    uv_close((uv_handle_t *)&b->turn, NULL);
    wt_daemon_stop(&b->d);
}

/* From poll to poll: what a request that comes now may have to wait. */
static void on_turn(uv_check_t *check) {
    struct bench *b = check->data;
    uint64_t now = uv_hrtime(), took = now - b->last;
    b->longest = b->last && took > b->longest ? took : b->longest;
    b->last = now;
}

static void run(struct bench *b, const struct wt_daemon_conf *conf) {
    struct wt_log log = {.fn = wt_log_stderr, .arg = (void *)(uintptr_t) "bench_start"};
    struct wt_err err = {0};
    uv_loop_init(&b->loop);
    uv_check_init(&b->loop, &b->turn);
    uv_timer_init(&b->loop, &b->watch);
    b->turn.data = b->watch.data = b;
    uv_check_start(&b->turn, on_turn);
    uv_timer_start(&b->watch, on_watch, 1, 10);
    b->began = uv_hrtime();
    if (wt_daemon_start(&b->d, &b->loop, b->conf, conf, &log, &err) < 0)
        die("%s", err.text);
    uv_run(&b->loop, UV_RUN_DEFAULT);
}

static void report(const struct bench *b) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    double s = seconds(b->known - b->began);
    printf("%" PRIu64 " shards, %" PRIu64 " of them with a warm copy\n", b->shards, b->warm);
    printf("lock held and state read   %8.2f s\n", seconds(b->held - b->began));
    printf("all shards known           %8.2f s   limit %d s, ratio %.2f\n", s, LIMIT_S,
           s / LIMIT_S);
    printf("longest turn of the loop   %8.1f ms\n", seconds(b->longest) * 1000);
    printf("memory at most             %8.1f bytes a shard\n",
           (double)use.ru_maxrss * 1024 / (double)b->shards);
    /* The first few are looked for already: none is there. */
    if (b->warm + 1000 < b->shards / 4)
        die("only %" PRIu64 " warm copies were remembered", b->warm);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st;
    (void)type;
    return ftw->level ? remove(path) : 0;
}

int main(int argc, char **argv) {
    static struct bench b = {.shards = 10000000};
    struct wt_daemon_conf conf;
    struct wt_manifest m;
    struct wt_err err = {0};
    if (argc < 2 || argc > 3 || argv[1][0] != '/' || strlen(argv[1]) >= sizeof b.folder)
        die("usage: %s /FOLDER [SHARDS]", argv[0]);
    if (argc > 2)
        b.shards = strtoull(argv[2], NULL, 10);
    snprintf(b.folder, sizeof b.folder, "%s", argv[1]);
    snprintf(b.conf, sizeof b.conf, "%.190s/conf", argv[1]);
    snprintf(b.state, sizeof b.state, "%.190s/state", argv[1]);
    static const char *const folders[] = {"cold", "warm", "cold/wafers", "cold/wafers/idx"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        make_folder(&b, folders[i]);
    write_conf(&b);
    if (wt_daemon_conf_load(b.conf, &conf, &err) < 0)
        die("%s", err.text);
    if (fork() == 0) { /* its memory is not the daemon's */
        uint8_t *idx = make_set(&b, &m);
        make_state(&b, &conf, &m, idx);
        _exit(0);
    }
    int status;
    if (wait(&status) < 0 || status != 0)
        return 1;
    run(&b, &conf);
    report(&b);
    wt_daemon_free(&b.d);
    nftw(b.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
