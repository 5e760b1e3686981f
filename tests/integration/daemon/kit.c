/* See kit.h. */
#include "kit.h"

#include "core/dataset.h"
#include "tiers/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIDE = KIT_SIDE };

uint64_t kit_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void kit_sleep(unsigned ms) {
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

/* ---- folders ---- */

static void make_folder(const char *root, const char *name) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", root, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

int kit_setup(void **state) {
    struct kit *k = calloc(1, sizeof *k);
    assert_non_null(k);
    const char *tmp = getenv("TMPDIR");
    snprintf(k->root, sizeof k->root, "%.40s/wt-daemon-XXXXXX",
             tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    assert_non_null(mkdtemp(k->root));
    snprintf(k->hot, sizeof k->hot, "/dev/shm/wt-daemon-XXXXXX");
    if (!mkdtemp(k->hot)) {
        snprintf(k->hot, sizeof k->hot, "%.50s/hot", k->root);
        make_folder(k->root, "hot");
    }
    make_folder(k->root, "cold");
    make_folder(k->root, "warm");
    snprintf(k->conf, sizeof k->conf, "%s/daemon.conf", k->root);
    snprintf(k->log, sizeof k->log, "%s/log", k->root);
    snprintf(k->sock, sizeof k->sock, "%s/control.sock", k->root);
    *state = k;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static void remove_tree(const char *path) {
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int kit_teardown(void **state) {
    struct kit *k = *state;
    if (k->pid > 0) {
        kill(k->pid, SIGKILL);
        waitpid(k->pid, NULL, 0);
    }
    remove_tree(k->root);
    remove_tree(k->hot);
    free(k);
    return 0;
}

/* ---- data sets ---- */

static void noise(uint8_t *out, size_t n, uint64_t seed) {
    uint64_t x = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        out[i] = (uint8_t)x;
    }
}

void kit_image(uint64_t shard, uint32_t i, unsigned salt, uint8_t *out) {
    noise(out, SIDE * SIDE, shard * 1000003 + i * 7919 + salt + 1);
}

static void must(int rc, const struct wt_err *err) {
    if (rc < 0)
        fail_msg("%s", err->text);
}

static void write_shard(struct wt_shard_writer *w, uint64_t shard, uint32_t samples, unsigned salt,
                        struct wt_shard_out *out) {
    struct wt_err err = {0};
    uint8_t *image = malloc(SIDE * SIDE);
    assert_non_null(image);
    for (uint32_t i = 0; i < samples; i++) {
        char key[64];
        snprintf(key, sizeof key, "lot/w%llu/s%u", (unsigned long long)shard, i);
        kit_image(shard, i, salt, image);
        struct wt_tensor t = {.name = "",
                              .shape = {.dtype = WT_DTYPE_U8, .ndim = 2, .dim = {SIDE, SIDE}},
                              .data = image};
        struct wt_sample_in s = {.key = key,
                                 .id = shard * samples + i,
                                 .label = WT_UNLABELLED,
                                 .tensors = &t,
                                 .n_tensors = 1};
        must(wt_shard_writer_add(w, &s, &err), &err);
    }
    must(wt_shard_writer_finish(w, out, &err), &err);
    free(image);
}

struct pack {
    struct wt_sync *sync;
    struct wt_tier *cold;
    struct wt_manifest m;
    uint8_t *idx;
};

static void put(struct pack *p, const char *key, const void *data, size_t len, unsigned flags) {
    struct wt_err err = {0};
    int rc = wt_sync_write(p->sync, p->cold, key, data, len, flags, &err);
    if (rc != WT_EEXISTS)
        must(rc, &err);
}

static uint64_t put_shard(struct pack *p, struct wt_shard_writer *w, uint64_t shard,
                          uint32_t samples, unsigned salt) {
    struct wt_shard_out out;
    char name[WT_OBJECT_NAME];
    write_shard(w, shard, samples, salt, &out);
    struct wt_shard_rec rec = {.hash = out.hash,
                               .size = out.size,
                               .tar_size = out.tar_size,
                               .index_off = out.index_off,
                               .first = p->m.samples,
                               .samples = out.samples,
                               .codec = WT_CODEC_TAR};
    wt_shard_rec_encode(&rec, p->idx + shard * WT_IDX_RECORD);
    wt_shard_name(p->m.name, shard, &rec, name);
    put(p, name, out.data, out.size, 0);
    p->m.samples += out.samples;
    p->m.stored_bytes += out.size;
    p->m.tar_bytes += out.tar_size;
    p->m.pixel_bytes += out.pixel_bytes;
    uint64_t size = out.size;
    wt_shard_out_free(&out);
    return size;
}

static void put_manifest(struct pack *p, uint64_t shards) {
    struct wt_idx_part part = {.hash = wt_hash(p->idx, shards * WT_IDX_RECORD),
                               .records = (uint32_t)shards};
    char name[WT_OBJECT_NAME];
    wt_idx_name(p->m.name, part.hash, name);
    put(p, name, p->idx, shards * WT_IDX_RECORD, 0);
    p->m.part = &part;
    p->m.n_parts = 1;
    char *text = wt_manifest_format(&p->m);
    assert_non_null(text);
    wt_manifest_name(p->m.name, name);
    put(p, name, text, strlen(text), WT_PUT_REPLACE);
    free(text);
}

uint64_t kit_pack(struct kit *k, const char *name, uint64_t shards, uint32_t samples,
                  uint64_t generation, unsigned salt, uint64_t keep) {
    struct pack p = {.m = {.generation = generation,
                           .created = 1,
                           .shards = shards,
                           .lots = 1,
                           .wafers = (uint32_t)shards,
                           .n_fields = 1}};
    struct wt_err err = {0};
    struct wt_tier_opts opts = {.name = "cold"};
    struct wt_shard_writer *w;
    uint64_t size = 0;
    snprintf(p.m.name, sizeof p.m.name, "%s", name);
    p.m.field[0].shape = (struct wt_shape){.dtype = WT_DTYPE_U8, .ndim = 2, .dim = {SIDE, SIDE}};
    snprintf(opts.url, sizeof opts.url, "file://%s/cold", k->root);
    must(wt_sync_new(NULL, &p.sync, &err), &err);
    must(wt_sync_open(p.sync, &opts, &p.cold, &err), &err);
    must(wt_shard_writer_new(&(struct wt_shard_opts){.codec = WT_CODEC_TAR}, &w, &err), &err);
    p.idx = calloc(shards, WT_IDX_RECORD);
    assert_non_null(p.idx);
    for (uint64_t s = 0; s < shards; s++)
        size = put_shard(&p, w, s, samples, s < keep ? 0 : salt);
    put_manifest(&p, shards);
    free(p.idx);
    wt_shard_writer_free(w);
    wt_sync_free(p.sync);
    return size;
}

/* ---- the daemon ---- */

void kit_write_conf(struct kit *k) {
    FILE *f = fopen(k->conf, "we");
    assert_non_null(f);
    fprintf(f,
            "state_folder = \"%s/state\"\ncontrol = \"unix:%s\"\nlog_level = debug\ntick = "
            "100ms\nreport_interval = 50ms\n%s\n",
            k->root, k->sock, k->extra);
    const char *more = k->tier_extra ? k->tier_extra : "";
    fprintf(f, "tier cold { url = \"file://%s/cold\" %s }\n", k->root, more);
    fprintf(f, "tier warm { url = \"file://%s/warm\" capacity = \"%s\" %s }\n", k->root,
            k->warm_capacity ? k->warm_capacity : "0", more);
    fprintf(f, "tier hot { url = \"file://%s\" capacity = \"%s\" %s }\n", k->hot,
            k->hot_capacity ? k->hot_capacity : "0", more);
    assert_int_equal(fclose(f), 0);
}

pid_t kit_spawn(struct kit *k, const char *log, const char *const *args) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(fd, 1);
    dup2(fd, 2);
    const char *own[] = {"wafertierd", "--config", k->conf, NULL};
    execv(WAFERTIERD, (char *const *)(uintptr_t)(args ? args : own));
    _exit(127);
}

void kit_wait_status(struct kit *k, const char *status, unsigned ms) {
    uint64_t end = kit_now() + ms;
    char last[64] = "no answer";
    while (kit_now() < end) {
        int fd = kit_connect(k);
        if (fd >= 0) {
            close(fd);
            json_t *health = kit_call(k, "GET", "/healthz", NULL, NULL);
            snprintf(last, sizeof last, "%s", json_string_value(json_object_get(health, "status")));
            json_decref(health);
            if (strcmp(last, status) == 0)
                return;
        }
        kit_sleep(10);
    }
    fail_msg("health is '%s' after %u ms, not '%s'", last, ms, status);
}

void kit_start(struct kit *k) {
    kit_write_conf(k);
    k->pid = kit_spawn(k, k->log, NULL);
    kit_wait_status(k, "ok", 10000);
}

int kit_wait_exit(pid_t pid, unsigned ms) {
    uint64_t end = kit_now() + ms;
    int status;
    while (kit_now() < end) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
        kit_sleep(5);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    fail_msg("the daemon did not end within %u ms", ms);
    return -1;
}

int kit_stop(struct kit *k, int sig, unsigned ms) {
    pid_t pid = k->pid;
    k->pid = 0;
    kill(pid, sig);
    return kit_wait_exit(pid, ms);
}

bool kit_log_has(const char *path, const char *text) {
    FILE *f = fopen(path, "re");
    char line[2048];
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f))
        found = strstr(line, text) != NULL;
    if (f)
        fclose(f);
    return found;
}

/* ---- HTTP ---- */

static int connect_with(struct kit *k, int flags) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, k->sock, strlen(k->sock) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    struct timeval wait = {.tv_sec = 15};
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait); /* bounds connect as well */
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int kit_connect(struct kit *k) {
    return connect_with(k, 0);
}

int kit_connect_now(struct kit *k) {
    return connect_with(k, SOCK_NONBLOCK);
}

static void send_all(int fd, const char *data, size_t len) {
    while (len) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* it closed: the answer says why */
        data += n;
        len -= (size_t)n;
    }
}

size_t kit_raw(struct kit *k, const void *data, size_t len, char *buf, size_t size, unsigned ms) {
    int fd = kit_connect(k);
    assert_true(fd >= 0);
    struct timeval wait = {.tv_sec = ms / 1000, .tv_usec = (long)(ms % 1000) * 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    send_all(fd, data, len);
    size_t have = 0;
    for (ssize_t n; have + 1 < size && (n = recv(fd, buf + have, size - 1 - have, 0)) > 0;)
        have += (size_t)n;
    close(fd);
    buf[have] = '\0';
    return have;
}

json_t *kit_call(struct kit *k, const char *method, const char *path, const char *body,
                 int *status) {
    static const size_t room = 4 << 20;
    size_t len = body ? strlen(body) : 0;
    char *request = malloc(len + 512), *answer = malloc(room);
    assert_non_null(request);
    assert_non_null(answer);
    int head = snprintf(
        request, 512,
        "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
        method, path, len);
    memcpy(request + head, body ? body : "", len);
    kit_raw(k, request, (size_t)head + len, answer, room, 10000);
    int code = 0;
    if (sscanf(answer, "HTTP/1.1 %d", &code) != 1)
        fail_msg("%s %s: no answer", method, path);
    char *text = strstr(answer, "\r\n\r\n");
    json_t *json = text ? json_loads(text + 4, 0, NULL) : NULL;
    if (!json)
        fail_msg("%s %s: no JSON: %s", method, path, answer);
    if (!status && code != 200)
        fail_msg("%s %s: %d %s", method, path, code, text + 4);
    if (status)
        *status = code;
    free(request);
    free(answer);
    return json;
}

static json_t *find(json_t *o, const char *path) {
    char copy[128];
    snprintf(copy, sizeof copy, "%s", path);
    for (char *save, *part = strtok_r(copy, ".", &save); part && o;
         part = strtok_r(NULL, ".", &save))
        o = json_is_array(o) ? json_array_get(o, strtoul(part, NULL, 10))
                             : json_object_get(o, part);
    return o;
}

int64_t kit_int(json_t *o, const char *path) {
    o = find(o, path);
    if (!json_is_integer(o))
        fail_msg("no integer at %s", path);
    return json_integer_value(o);
}

void kit_until(struct kit *k, const char *path, const char *where, int64_t least, unsigned ms) {
    uint64_t end = kit_now() + ms;
    int64_t last = -1;
    while (kit_now() < end) {
        json_t *o = kit_call(k, "GET", path, NULL, NULL);
        json_t *at = find(o, where);
        last = json_is_integer(at) ? json_integer_value(at) : -1;
        json_decref(o);
        if (last >= least)
            return;
        kit_sleep(20);
    }
    fail_msg("%s of %s is %lld after %u ms, not %lld", where, path, (long long)last, ms,
             (long long)least);
}

const char *kit_register(struct kit *k, const char *dataset) {
    static char id[64];
    char body[512];
    snprintf(body, sizeof body,
             "{\"name\":\"test-1\",\"dataset\":\"%s\",\"tiers\":[\"cold\",\"warm\",\"hot\"],"
             "\"world\":1,\"seed\":7,\"epoch\":0,"
             "\"plan\":{\"version\":1,\"samples\":10,\"batch\":2,\"block\":1,\"lanes\":1,"
             "\"window\":1,\"tail\":\"drop\",\"mode\":\"train\"}}",
             dataset);
    json_t *o = kit_call(k, "POST", "/v1/jobs", body, NULL);
    snprintf(id, sizeof id, "%s", json_string_value(json_object_get(o, "id")));
    assert_int_equal(kit_int(o, "report_ms"), 50);
    json_decref(o);
    return id;
}

json_t *kit_report(struct kit *k, const char *id, unsigned epoch, uint64_t first, uint64_t n,
                   const char *tier, uint64_t bytes) {
    json_t *reads = json_array(), *next = json_array();
    char path[128];
    for (uint64_t s = first; s < first + n; s++) {
        json_array_append_new(reads,
                              json_pack("[I,s,i,I]", (json_int_t)s, tier, 2, (json_int_t)bytes));
        json_array_append_new(next, json_integer((json_int_t)s));
    }
    json_t *o = json_pack("{s:i, s:i, s:o, s:o}", "epoch", (int)epoch, "step", 3, "reads", reads,
                          "next", next);
    char *body = json_dumps(o, 0);
    json_decref(o);
    snprintf(path, sizeof path, "/v1/jobs/%s/progress", id);
    json_t *answer = kit_call(k, "POST", path, body, NULL);
    free(body);
    return answer;
}

/* ---- comparing ---- */

static bool same_content(const char *a, const char *b) {
    FILE *x = fopen(a, "re"), *y = fopen(b, "re");
    bool same = x && y;
    char p[65536], q[65536];
    for (size_t n = 1; same && n;) {
        n = fread(p, 1, sizeof p, x);
        same = fread(q, 1, sizeof q, y) == n && memcmp(p, q, n) == 0;
    }
    if (x)
        fclose(x);
    if (y)
        fclose(y);
    return same;
}

/* The names that the shell finds: independent of the code under test. */
static uint64_t count(struct kit *k, const char *folder, const char *dataset) {
    char command[256], path[512];
    snprintf(command, sizeof command, "find %s/%s/shards -type f -printf '%%P\\n' 2>/dev/null",
             folder, dataset);
    FILE *list = popen(command, "re");
    uint64_t n = 0;
    assert_non_null(list);
    while (fscanf(list, "%300s", path) == 1) {
        char a[600], b[600];
        snprintf(a, sizeof a, "%s/%s/shards/%s", folder, dataset, path);
        snprintf(b, sizeof b, "%s/cold/%s/shards/%s", k ? k->root : "", dataset, path);
        n += !k || same_content(a, b);
    }
    pclose(list);
    return n;
}

uint64_t kit_count(const char *folder, const char *dataset) {
    return count(NULL, folder, dataset);
}
uint64_t kit_count_equal(struct kit *k, const char *folder, const char *dataset) {
    return count(k, folder, dataset);
}

static void format(char command[2048], const char *fmt, va_list args) {
    int n = vsnprintf(command, 2048, fmt, args);
    assert_in_range(n, 1, 2047);
}

void kit_shell(const char *fmt, ...) {
    char command[2048];
    va_list args;
    va_start(args, fmt);
    format(command, fmt, args);
    va_end(args);
    if (system(command) != 0)
        fail_msg("failed: %s", command);
}

uint64_t kit_number(const char *fmt, ...) {
    char command[2048];
    unsigned long long n = 0;
    va_list args;
    va_start(args, fmt);
    format(command, fmt, args);
    va_end(args);
    FILE *f = popen(command, "re");
    assert_non_null(f);
    if (fscanf(f, "%llu", &n) != 1)
        fail_msg("no number from: %s", command);
    pclose(f);
    return n;
}

uint64_t kit_setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}
