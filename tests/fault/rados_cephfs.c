/*
 * Faults under a file: tier on CephFS (ceph-fuse): a mount that hangs (MDS or OSD killed or
 * stopped) or dies (ceph-fuse killed) is a tier that is down: requests end by their deadline,
 * nobody writes to their buffers afterwards, and the tier comes back by itself. WT_TEST_CEPHFS
 * names the mount.
 */
#include "rados_util.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 20 << 20 };

static void mount_script(const char *verb, const char *cluster) {
    char command[1000];
    snprintf(command, sizeof command, "timeout 60 '%s/cephfs' %s %s '%s'",
             getenv("WT_TEST_SERVERS"), verb, cluster, getenv("WT_TEST_CEPHFS"));
    if (system(command) != 0)
        fail_msg("%s", command);
}

static int setup(void **state) {
    static unsigned n;
    struct fault *f = calloc(1, sizeof *f);
    const char *mount = getenv("WT_TEST_CEPHFS");
    if (!mount || !getenv("WT_TEST_SERVERS"))
        fail_msg("WT_TEST_CEPHFS and WT_TEST_SERVERS are not set");
    snprintf(f->opts.name, sizeof f->opts.name, "warm");
    snprintf(f->opts.url, sizeof f->opts.url, "file://%s/fault-%d-%u", mount, (int)getpid(), n++);
    f->opts.timeout_ms = FAULT_DEADLINE_MS;
    fault_daemon("up", "");
    fault_open(f);
    fault_until_stat(f, "nothing", WT_EMISSING);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    struct fault *f = *state;
    fault_daemon("up", "");
    if (f->sync) {
        fault_until_stat(f, "nothing", WT_EMISSING);
        fault_remove(f, "a");
        fault_remove(f, "b");
        fault_close(f);
    }
    free(f);
    return 0;
}

static bool blames_tier(int rc) {
    return rc == WT_EDOWN || rc == WT_ETIMEDOUT;
}

static void reads_well(struct fault *f, const char *key, const uint8_t *data) {
    uint8_t *buf = malloc(SIZE);
    size_t got = 0;
    fault_well(f, fault_get(f, key, 0, buf, SIZE, &got));
    assert_int_equal(got, SIZE);
    assert_memory_equal(buf, data, SIZE);
    free(buf);
}

/* Without the page cache a read needs the OSD. */
static void drop_page_cache(void) {
    FILE *file = fopen("/proc/sys/vm/drop_caches", "w");
    if (file) {
        fputs("1\n", file);
        fclose(file);
    }
}

static void fuse_killed_and_remounted(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 1), *buf = malloc(SIZE);
    size_t got;
    fault_well(f, fault_put(f, "a", data, SIZE));
    reads_well(f, "a", data);
    mount_script("kill", "");
    for (int i = 0; i < 4; i++)
        assert_true(blames_tier(fault_get(f, "a", 0, buf, SIZE, &got)));
    assert_true(wt_tier_is_down(f->tier));
    assert_true(blames_tier(fault_put(f, "b", data, SIZE)));
    mount_script("umount", "");
    mount_script("mount", getenv("WT_TEST_CEPH"));
    fault_until_stat(f, "a", 0);
    reads_well(f, "a", data);
    free(buf);
    free(data);
}

static void mds_killed(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 2);
    fault_well(f, fault_put(f, "a", data, SIZE));
    fault_daemon("kill", "mds.a");
    /* What needs the MDS hangs in the kernel; here it ends. */
    int rc = 0;
    for (int i = 0; i < 4; i++)
        rc = fault_put(f, "b", data, SIZE);
    assert_true(blames_tier(rc));
    fault_daemon("up", "mds.a");
    fault_until_stat(f, "a", 0);
    reads_well(f, "a", data);
    rc = fault_put(f, "b", data, SIZE);
    assert_true(rc == 0 || rc == WT_EEXISTS);
    reads_well(f, "b", data);
    free(data);
}

static void osd_stopped_in_reads(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 3), *buf = malloc(SIZE);
    size_t got;
    fault_well(f, fault_put(f, "a", data, SIZE));
    drop_page_cache();
    fault_signal("osd.0", SIGSTOP);
    int rc = fault_get(f, "a", 0, buf, SIZE, &got);
    if (rc == 0)
        print_message("the page cache could not be dropped: the read needed no OSD\n");
    else
        assert_true(blames_tier(rc));
    memset(buf, 0x5a, SIZE);
    fault_signal("osd.0", SIGCONT);
    fault_until_stat(f, "a", 0);
    uv_sleep(500);
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(buf[i], 0x5a);
    reads_well(f, "a", data);
    free(buf);
    free(data);
}

static void hand(const struct fault *f, const char *format) {
    char command[1000], path[600];
    snprintf(path, sizeof path, "%s/a", f->opts.url + strlen("file://"));
    snprintf(command, sizeof command, format, path);
    if (system(command) != 0)
        fail_msg("%s", command);
}

/* A file has no sums of its own: what it lost shows, what was changed is for the reader's sums. */
static void damaged_by_hand(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 4), *buf = malloc(SIZE);
    size_t got;
    fault_well(f, fault_put(f, "a", data, SIZE));
    hand(f, "timeout 20 truncate -s 9000000 '%s'");
    fault_well(f, fault_get(f, "a", 0, buf, SIZE, &got));
    assert_int_equal(got, 9000000);
    assert_memory_equal(buf, data, got);
    fault_well(f, fault_get(f, "a", 10000000, buf, SIZE, &got));
    assert_int_equal(got, 0);
    hand(f, "timeout 20 rm '%s'");
    assert_int_equal(fault_get(f, "a", 0, buf, SIZE, &got), WT_EMISSING);
    assert_false(wt_tier_is_down(f->tier));
    fault_well(f, fault_put(f, "a", data, SIZE));
    reads_well(f, "a", data);
    free(buf);
    free(data);
}

/* Pages of "a" in the page cache. */
static unsigned cached_pages(const struct fault *f) {
    char path[600];
    snprintf(path, sizeof path, "%s/a", f->opts.url + strlen("file://"));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = SIZE / page;
    void *map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(map != MAP_FAILED);
    unsigned char *in = malloc(pages);
    assert_int_equal(mincore(map, SIZE, in), 0);
    unsigned n = 0;
    for (size_t i = 0; i < pages; i++)
        n += in[i] & 1;
    free(in);
    munmap(map, SIZE);
    close(fd);
    return n;
}

/* Of what a move wrote or read nothing stays in the page cache; what a reader read does. */
static void page_cache_left(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 7), *buf = malloc(SIZE);
    struct wt_req get = {
        .op = WT_OP_GET, .flags = WT_GET_ONCE, .key = "a", .buf = buf, .len = SIZE};
    fault_well(f, fault_put(f, "a", data, SIZE));
    assert_int_equal(cached_pages(f), 0);
    reads_well(f, "a", data);
    assert_true(cached_pages(f) > SIZE / 2 / (size_t)sysconf(_SC_PAGESIZE));
    fault_well(f, fault_do(f, &get));
    assert_memory_equal(buf, data, SIZE);
    assert_int_equal(cached_pages(f), 0);
    free(buf);
    free(data);
}

static unsigned local_entries(void) {
    char command[600];
    unsigned n = 0;
    snprintf(command, sizeof command, "find '%s' -mindepth 1 | wc -l", getenv("WT_TEST_CEPHFS"));
    FILE *f = popen(command, "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%u", &n), 1);
    pclose(f);
    return n;
}

/* mount=required: where nothing is mounted the tier is down, and nothing lands on the local disk.
 */
static void mount_missing(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 6);
    fault_well(f, fault_put(f, "a", data, SIZE));
    fault_close(f);
    snprintf(f->opts.url + strlen(f->opts.url), sizeof f->opts.url - strlen(f->opts.url),
             "?mount=required");
    mount_script("umount", "");
    fault_open(f); /* as a daemon that starts before the mount */
    assert_int_equal(fault_put(f, "b", data, SIZE), WT_EDOWN);
    assert_non_null(strstr(f->last_error, "mount=required"));
    assert_true(wt_tier_is_down(f->tier));
    assert_int_equal(local_entries(), 0);
    mount_script("mount", getenv("WT_TEST_CEPH"));
    fault_until_stat(f, "a", 0);
    reads_well(f, "a", data);
    mount_script("umount", ""); /* and as one under which it goes */
    assert_true(blames_tier(fault_put(f, "b", data, SIZE)));
    assert_int_equal(local_entries(), 0);
    mount_script("mount", getenv("WT_TEST_CEPH"));
    fault_until_stat(f, "a", 0);
    fault_well(f, fault_put(f, "b", data, SIZE));
    free(data);
}

static void set_quota(struct fault *f, unsigned long long bytes) {
    fault_mon(f, NULL,
              "{\"prefix\":\"osd pool set-quota\",\"pool\":\"cephfs_data\","
              "\"field\":\"max_bytes\",\"val\":\"%llu\"}",
              bytes);
}

static int put_numbered(struct fault *f, const uint8_t *data, int i) {
    char key[32];
    snprintf(key, sizeof key, "q/%d", i);
    return fault_put(f, key, data, SIZE);
}

/* Full is not down: reads and removals go on, and puts as soon as there is room. */
static void pool_at_its_quota(void **state) {
    struct fault *f = *state;
    uint8_t *data = fault_bytes(SIZE, 5);
    snprintf(f->conf, sizeof f->conf, "%s/ceph.conf", getenv("WT_TEST_CEPH"));
    snprintf(f->pool, sizeof f->pool, "fault-quota-%d", (int)getpid());
    fault_daemon("up", "mgr.x"); /* quotas need its figures */
    fault_connect(f);
    fault_well(f, fault_put(f, "a", data, SIZE));
    set_quota(f, 1);
    int rc = 0, n = 0;
    for (uint64_t begin = uv_hrtime(); rc == 0 && uv_hrtime() - begin < UINT64_C(60000000000);) {
        rc = put_numbered(f, data, n++);
        uv_sleep(100);
    }
    assert_int_equal(rc, WT_EFULL);
    for (int i = 0; i < 5; i++)
        assert_int_equal(put_numbered(f, data, 1000 + i), WT_EFULL);
    assert_false(wt_tier_is_down(f->tier));
    reads_well(f, "a", data);
    for (int i = 0; i < n - 1; i++) {
        char key[32];
        snprintf(key, sizeof key, "q/%d", i);
        fault_well(f, fault_remove(f, key));
    }
    set_quota(f, 0);
    for (uint64_t begin = uv_hrtime(); rc != 0 && uv_hrtime() - begin < UINT64_C(60000000000);) {
        rc = put_numbered(f, data, 2000);
        uv_sleep(100);
    }
    assert_int_equal(rc, 0);
    fault_remove(f, "q/2000");
    fault_mon(f, NULL,
              "{\"prefix\":\"osd pool delete\",\"pool\":\"%s\",\"pool2\":\"%s\","
              "\"yes_i_really_really_mean_it\":true}",
              f->pool, f->pool);
    fault_disconnect(f);
    free(data);
}

int main(void) {
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(fuse_killed_and_remounted), T(mds_killed),    T(osd_stopped_in_reads), T(damaged_by_hand),
        T(page_cache_left),           T(mount_missing), T(pool_at_its_quota)};
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
