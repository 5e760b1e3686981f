/* The fault tests' tools; see rados_util.h. */
#include "rados_util.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *folder(void) {
    const char *dir = getenv("WT_TEST_CEPH");
    if (!dir)
        fail_msg("WT_TEST_CEPH does not name the folder of a running cluster");
    return dir;
}

static const char *scripts(void) {
    const char *dir = getenv("WT_TEST_SERVERS");
    return dir ? dir : "tests/servers";
}

/* ---- daemons ---- */

void fault_daemon(const char *verb, const char *name) {
    char command[1000];
    snprintf(command, sizeof command, "timeout 60 '%s/ceph' %s '%s' %s", scripts(), verb, folder(),
             name);
    if (system(command) != 0)
        fail_msg("%s", command);
}

void fault_signal(const char *name, int signal) {
    char command[1000];
    int pid = 0;
    snprintf(command, sizeof command, "'%s/ceph' pid '%s' %s", scripts(), folder(), name);
    FILE *pipe = popen(command, "r");
    if (!pipe || fscanf(pipe, "%d", &pid) != 1 || pid <= 1)
        fail_msg("%s", command);
    pclose(pipe);
    assert_int_equal(kill((pid_t)pid, signal), 0);
}

void fault_mon(struct fault *f, char **out, const char *format, ...) {
    char command[1000], *answer = NULL, *status = NULL;
    size_t len = 0, status_len = 0;
    const char *commands[] = {command};
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    int rc = rados_mon_command(f->ceph, commands, 1, "", 0, &answer, &len, &status, &status_len);
    if (rc < 0)
        fail_msg("%s: %d %.*s", command, rc, (int)status_len, status);
    if (out)
        *out = strndup(answer ? answer : "", len);
    rados_buffer_free(answer);
    rados_buffer_free(status);
}

/* ---- the tier ---- */

void fault_open(struct fault *f) {
    struct wt_err err = {0};
    if (wt_sync_new(NULL, &f->sync, &err) < 0 ||
        wt_sync_open(f->sync, &f->opts, &f->tier, &err) < 0)
        fail_msg("%s", err.text);
}

void fault_close(struct fault *f) {
    uint64_t begin = uv_hrtime();
    wt_sync_free(f->sync);
    f->sync = NULL;
    assert_true(uv_hrtime() - begin < UINT64_C(8000000000));
}

void fault_connect(struct fault *f) {
    assert_int_equal(rados_create(&f->ceph, "admin"), 0);
    assert_int_equal(rados_conf_read_file(f->ceph, f->conf), 0);
    rados_conf_set(f->ceph, "rados_osd_op_timeout", "30");
    rados_conf_set(f->ceph, "rados_mon_op_timeout", "30");
    rados_conf_set(f->ceph, "client_mount_timeout", "30");
    assert_int_equal(rados_connect(f->ceph), 0);
    fault_mon(
        f, NULL,
        "{\"prefix\":\"osd pool create\",\"pool\":\"%s\",\"pg_num\":4,\"pgp_num\":4,\"size\":1}",
        f->pool);
    assert_int_equal(rados_ioctx_create(f->ceph, f->pool, &f->io), 0);
}

void fault_disconnect(struct fault *f) {
    rados_ioctx_destroy(f->io);
    rados_shutdown(f->ceph);
}

int fault_setup(void **state) {
    static unsigned n;
    struct fault *f = calloc(1, sizeof *f);
    snprintf(f->conf, sizeof f->conf, "%s/ceph.conf", folder());
    snprintf(f->pool, sizeof f->pool, "fault-%d-%u", (int)getpid(), n++);
    snprintf(f->opts.name, sizeof f->opts.name, "cold");
    snprintf(f->opts.url, sizeof f->opts.url, "rados://%s?conf=%s", f->pool, f->conf);
    f->opts.timeout_ms = FAULT_DEADLINE_MS;
    fault_daemon("up", "");
    fault_connect(f);
    fault_open(f);
    fault_until_stat(f, "nothing", WT_EMISSING);
    *state = f;
    return 0;
}

int fault_teardown(void **state) {
    struct fault *f = *state;
    fault_daemon("up", "");
    if (f->sync)
        fault_close(f);
    fault_mon(f, NULL,
              "{\"prefix\":\"osd pool delete\",\"pool\":\"%s\",\"pool2\":\"%s\","
              "\"yes_i_really_really_mean_it\":true}",
              f->pool, f->pool);
    fault_disconnect(f);
    free(f);
    return 0;
}

/* ---- requests ---- */

enum { SIZE_OF_PUTS = 20 << 20 };

int fault_do(struct fault *f, struct wt_req *req) {
    /* A commit's deadline counts the whole put. */
    uint64_t begin = uv_hrtime(), bytes = req->put ? SIZE_OF_PUTS : req->len;
    uint64_t limit = wt_tier_deadline(f->tier, bytes) + (uint64_t)FAULT_LATE_MS;
    int rc = wt_sync_do(f->sync, f->tier, req);
    if (rc < 0)
        snprintf(f->last_error, sizeof f->last_error, "%s", req->err.text);
    uint64_t ms = (uv_hrtime() - begin) / 1000000;
    if (ms > limit)
        fail_msg("%s took %llu ms, its deadline was %llu ms before", wt_op_name(req->op),
                 (unsigned long long)ms, (unsigned long long)(ms - limit + FAULT_LATE_MS));
    return rc;
}

int fault_get(struct fault *f, const char *key, uint64_t off, void *buf, size_t len, size_t *got) {
    struct wt_req req = {.op = WT_OP_GET, .key = key, .off = off, .buf = buf, .len = len};
    int rc = fault_do(f, &req);
    *got = req.got;
    return rc;
}

int fault_stat(struct fault *f, const char *key) {
    struct wt_req req = {.op = WT_OP_STAT, .key = key};
    return fault_do(f, &req);
}

static int put_parts(struct fault *f, struct wt_put *put, const uint8_t *data, size_t len) {
    int rc = 0;
    for (size_t off = 0; off < len && rc == 0; off += WT_PART) {
        struct wt_req req = {.op = WT_OP_PUT_WRITE,
                             .put = put,
                             .off = off,
                             .src = data + off,
                             .len = len - off < WT_PART ? len - off : (size_t)WT_PART};
        rc = fault_do(f, &req);
    }
    return rc;
}

int fault_put(struct fault *f, const char *key, const void *data, size_t len) {
    struct wt_req open = {.op = WT_OP_PUT_OPEN, .key = key, .size = len};
    int rc = fault_do(f, &open);
    if (rc < 0)
        return rc;
    rc = put_parts(f, open.put, data, len);
    struct wt_req end = {.op = rc < 0 ? WT_OP_PUT_ABORT : WT_OP_PUT_COMMIT, .put = open.put};
    if (rc < 0)
        fault_do(f, &end);
    else
        rc = fault_do(f, &end);
    return rc;
}

int fault_remove(struct fault *f, const char *key) {
    struct wt_req req = {.op = WT_OP_REMOVE, .key = key};
    return fault_do(f, &req);
}

void fault_until_stat(struct fault *f, const char *key, int rc) {
    uint64_t begin = uv_hrtime();
    int last = 1;
    while (uv_hrtime() - begin < (uint64_t)FAULT_BACK_MS * 1000000) {
        last = fault_stat(f, key);
        if (last == rc)
            return;
        uv_sleep(20);
    }
    fail_msg("a stat of %s gives %s after %d s, not %s", key, wt_err_name(last),
             FAULT_BACK_MS / 1000, wt_err_name(rc));
}

/* ---- the pool from outside ---- */

static unsigned walk(struct fault *f, const char *prefix, char *first) {
    rados_list_ctx_t list;
    const char *name;
    unsigned n = 0;
    assert_int_equal(rados_nobjects_list_open(f->io, &list), 0);
    while (rados_nobjects_list_next(list, &name, NULL, NULL) == 0) {
        if (strncmp(name, prefix, strlen(prefix)) != 0)
            continue;
        if (n++ == 0 && first)
            snprintf(first, 300, "%s", name);
    }
    rados_nobjects_list_close(list);
    return n;
}

unsigned fault_count(struct fault *f) {
    return walk(f, "", NULL);
}

void fault_part(struct fault *f, const char *key, char out[300]) {
    char prefix[300];
    snprintf(prefix, sizeof prefix, "%s@", key);
    assert_true(walk(f, prefix, out) > 0);
    char *number = strrchr(out, '.');
    assert_non_null(number);
    memcpy(number, ".0", 3);
}

void fault_well(const struct fault *f, int rc) {
    if (rc != 0)
        fail_msg("%s", f->last_error);
}

uint8_t *fault_bytes(size_t len, unsigned seed) {
    uint8_t *data = malloc(len);
    uint64_t x = seed + 1;
    for (size_t i = 0; i < len; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        data[i] = (uint8_t)(x >> 56);
    }
    return data;
}
