/*
 * Mappings on tmpfs against those who change or truncate what is mapped: what was mapped stays as
 * it was, nobody gets a signal, later reads see the file as it is. And what is not mapped: files
 * that somebody writes to, files with holes, more than the descriptors allow, another user's.
 */
#include "kit.h"

#include "tiers/sync.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 3 * 1000 * 1000 + 7 };

struct place {
    char folder[256];
    struct wt_sync *sync;
    struct wt_tier *tier;
    uint8_t *data;
};

static void open_tier(struct place *p, const char *params) {
    struct wt_tier_opts opts = {.name = "t"};
    snprintf(opts.url, sizeof opts.url, "file://%s%s", p->folder, params);
    struct wt_err err = {0};
    if (wt_sync_open(p->sync, &opts, &p->tier, &err) < 0)
        fail_msg("%s", err.text);
}

static int setup(void **state) {
    struct place *p = calloc(1, sizeof *p);
    snprintf(p->folder, sizeof p->folder, "/dev/shm/wt-maps-XXXXXX");
    if (!mkdtemp(p->folder))
        fail_msg("no folder in /dev/shm");
    assert_int_equal(wt_sync_new(NULL, &p->sync, NULL), 0);
    open_tier(p, "");
    p->data = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        p->data[i] = (uint8_t)(i * 7 + i / 4096 + 1);
    *state = p;
    return 0;
}

static int teardown(void **state) {
    struct place *p = *state;
    wt_sync_free(p->sync);
    kit_remove_folder(p->folder);
    free(p->data);
    free(p);
    return 0;
}

static void put(struct place *p, const char *key) {
    assert_int_equal(wt_sync_write(p->sync, p->tier, key, p->data, SIZE, 0, NULL), 0);
}

static int map(struct place *p, const char *key, struct wt_map **out) {
    struct wt_req req = {.op = WT_OP_MAP, .key = key};
    int rc = wt_sync_do(p->sync, p->tier, &req);
    *out = req.map;
    return rc;
}

static const uint8_t *bytes_of(const struct wt_map *m) {
    assert_int_equal(wt_map_view(m).size, SIZE);
    return wt_map_view(m).data;
}

/* ---- somebody writes ---- */

struct writer {
    char path[300];
    bool overwrite; /* else truncates */
    uint64_t waited_ns;
};

static void *write_there(void *arg) {
    struct writer *w = arg;
    uint64_t begin = uv_hrtime();
    if (w->overwrite) {
        int fd = open(w->path, O_WRONLY);
        w->waited_ns = uv_hrtime() - begin;
        static const char junk[100] = "junk";
        if (fd < 0 || pwrite(fd, junk, sizeof junk, 5000) != sizeof junk || close(fd) < 0)
            w->waited_ns = UINT64_MAX;
    } else if (truncate(w->path, 1000) < 0) {
        w->waited_ns = UINT64_MAX;
    } else {
        w->waited_ns = uv_hrtime() - begin;
    }
    return NULL;
}

/* Reads all of the mapping again and again while the file changes. */
static void read_while_written(struct place *p, bool overwrite) {
    struct wt_map *m, *again;
    put(p, "a/object");
    assert_int_equal(map(p, "a/object", &m), 0);
    assert_int_equal(map(p, "a/object", &again), 0);
    struct writer w = {.overwrite = overwrite};
    snprintf(w.path, sizeof w.path, "%s/a/object", p->folder);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_there, &w), 0);
    uint64_t end = uv_hrtime() + UINT64_C(1000000000);
    while (uv_hrtime() < end)
        assert_memory_equal(bytes_of(m), p->data, SIZE);
    pthread_join(thread, NULL);
    assert_memory_equal(bytes_of(again), p->data, SIZE);
    assert_true(w.waited_ns < UINT64_C(5000000000)); /* not until the kernel lost patience */
    /* What comes now sees the file as it is. */
    uint8_t *buf = malloc(SIZE);
    struct wt_req get = {.op = WT_OP_GET, .key = "a/object", .buf = buf, .len = SIZE};
    assert_int_equal(wt_sync_do(p->sync, p->tier, &get), 0);
    assert_int_equal(get.got, overwrite ? SIZE : 1000);
    assert_int_equal(memcmp(buf, p->data, 1000), 0);
    struct wt_map *third;
    assert_int_equal(map(p, "a/object", &third), 0);
    assert_int_equal(wt_map_view(third).size, get.got);
    assert_memory_equal(wt_map_view(third).data, buf, get.got);
    free(buf);
    wt_map_release(m);
    wt_map_release(again);
    wt_map_release(third);
}

static void truncated(void **state) {
    read_while_written(*state, false);
}

static void overwritten(void **state) {
    read_while_written(*state, true);
}

/* By another process, and when the tier is closed already. */
static void truncated_after_the_close(void **state) {
    struct place *p = *state;
    struct wt_map *m;
    put(p, "k");
    assert_int_equal(map(p, "k", &m), 0);
    wt_sync_free(p->sync);
    assert_int_equal(wt_sync_new(NULL, &p->sync, NULL), 0);
    char command[400];
    snprintf(command, sizeof command, ": >'%s/k'", p->folder);
    assert_int_equal(system(command), 0);
    assert_memory_equal(bytes_of(m), p->data, SIZE);
    wt_map_release(m);
    /* Released, nobody waits. */
    open_tier(p, "");
    put(p, "k2");
    assert_int_equal(map(p, "k2", &m), 0);
    wt_map_release(m);
    uint64_t begin = uv_hrtime();
    snprintf(command, sizeof command, "%s/k2", p->folder);
    assert_int_equal(truncate(command, 0), 0);
    assert_true(uv_hrtime() - begin < UINT64_C(150000000));
}

/* Removing and replacing wait for nothing, and change nothing. */
static void removed(void **state) {
    struct place *p = *state;
    struct wt_map *m;
    put(p, "k");
    assert_int_equal(map(p, "k", &m), 0);
    uint64_t begin = uv_hrtime();
    assert_int_equal(wt_sync_remove(p->sync, p->tier, "k", NULL), 0);
    assert_true(uv_hrtime() - begin < UINT64_C(1000000000));
    assert_memory_equal(bytes_of(m), p->data, SIZE);
    wt_map_release(m);
}

static void no_signal_for_us(void **state) {
    struct place *p = *state;
    struct wt_map *m;
    put(p, "k");
    assert_int_equal(map(p, "k", &m), 0);
    sigset_t all, got, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    struct writer w = {.overwrite = false};
    snprintf(w.path, sizeof w.path, "%s/k", p->folder);
    pthread_t thread;
    pthread_create(&thread, NULL, write_there, &w);
    pthread_join(thread, NULL);
    sigpending(&got);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    for (int s = 1; s < 32; s++)
        assert_false(sigismember(&got, s) == 1);
    wt_map_release(m);
}

/* ---- what is not mapped ---- */

static void not_while_it_is_written(void **state) {
    struct place *p = *state;
    struct wt_map *m;
    char path[300];
    put(p, "k");
    snprintf(path, sizeof path, "%s/k", p->folder);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(map(p, "k", &m), WT_EUNSUPPORTED);
    close(fd);
    assert_int_equal(map(p, "k", &m), 0);
    wt_map_release(m);
}

static void no_holes(void **state) {
    struct place *p = *state;
    struct wt_map *m;
    char path[300];
    snprintf(path, sizeof path, "%s/k", p->folder);
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    assert_int_equal(ftruncate(fd, SIZE), 0);
    close(fd);
    assert_int_equal(map(p, "k", &m), WT_EUNSUPPORTED);
    assert_false(wt_tier_is_down(p->tier));
    int again = open(path, O_WRONLY); /* no lease was left behind */
    assert_true(again >= 0);
    close(again);
}

static void no_more_than_descriptors(void **state) {
    struct place *p = *state;
    enum { MAPS = 80 };
    struct wt_map *m[MAPS];
    struct rlimit old, low;
    getrlimit(RLIMIT_NOFILE, &old);
    low = (struct rlimit){.rlim_cur = 200, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    unsigned n = 0;
    for (unsigned i = 0; i < MAPS; i++) {
        char key[20];
        snprintf(key, sizeof key, "k%u", i);
        assert_int_equal(wt_sync_write(p->sync, p->tier, key, "abc", 3, 0, NULL), 0);
        int rc = map(p, key, &m[n]);
        assert_int_equal(rc, i < 50 ? 0 : WT_EUNSUPPORTED);
        n += rc == 0;
    }
    wt_map_release(m[--n]);
    assert_int_equal(map(p, "k79", &m[n]), 0);
    n++;
    while (n)
        wt_map_release(m[--n]);
    setrlimit(RLIMIT_NOFILE, &old);
}

static void another_users_file(void **state) {
    struct place *p = *state;
    if (geteuid() != 0) {
        print_message("SKIPPED: only root can become somebody else\n");
        skip();
    }
    put(p, "k");
    chmod(p->folder, 0755);
    struct wt_map *m;
    /* All threads of the process: glibc sees to it. */
    assert_int_equal(seteuid(65534), 0);
    int rc = map(p, "k", &m);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(rc, WT_EUNSUPPORTED);
    wt_sync_free(p->sync);
    wt_sync_new(NULL, &p->sync, NULL);
    open_tier(p, "?map=always"); /* for those who trust whoever can write there */
    assert_int_equal(seteuid(65534), 0);
    rc = map(p, "k", &m);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(rc, 0);
    assert_memory_equal(bytes_of(m), p->data, SIZE);
    wt_map_release(m);
}

static void never(void **state) {
    struct place *p = *state;
    open_tier(p, "?map=never");
    struct wt_map *m;
    assert_int_equal(wt_tier_caps(p->tier) & WT_CAP_MAP, 0);
    assert_int_equal(map(p, "k", &m), WT_EUNSUPPORTED);
    struct wt_tier_opts opts = {.name = "t"};
    struct wt_err err = {0};
    snprintf(opts.url, sizeof opts.url, "file://%s?map=maybe", p->folder);
    assert_int_equal(wt_sync_open(p->sync, &opts, &p->tier, &err), WT_EINVAL);
    assert_non_null(strstr(err.text, "map=safe"));
}

static unsigned threads(void) {
    char line[200];
    unsigned n = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "Threads: %u", &n);
    if (f)
        fclose(f);
    return n;
}

static void nothing_is_left(void **state) {
    struct place *p = *state;
    put(p, "k");
    wt_sync_free(p->sync);
    usleep(300000);
    unsigned before = threads(), most = 0;
    for (int i = 0; i < 50; i++) {
        struct wt_map *m;
        assert_int_equal(wt_sync_new(NULL, &p->sync, NULL), 0);
        open_tier(p, "");
        assert_int_equal(map(p, "k", &m), 0);
        wt_map_release(m);
        wt_sync_free(p->sync);
        most = threads() > most ? threads() : most;
    }
    assert_true(most < before + 8);
    for (int i = 0; i < 100 && threads() > before; i++)
        usleep(10000);
    assert_int_equal(threads(), before);
    assert_int_equal(wt_sync_new(NULL, &p->sync, NULL), 0);
}

int main(void) {
    alarm(100);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(truncated),
        T(overwritten),
        T(removed),
        T(truncated_after_the_close),
        T(no_signal_for_us),
        T(not_while_it_is_written),
        T(no_holes),
        T(no_more_than_descriptors),
        T(never),
        T(another_users_file),
        T(nothing_is_left),
    };
#undef T
    return cmocka_run_group_tests_name("maps", tests, NULL, NULL);
}
