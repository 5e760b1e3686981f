/* See redis_kit.h. */
#include "redis_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- servers ---- */

static void command(const struct kit *k, const char *verb, const char *args, char *out,
                    size_t size) {
    snprintf(out, size, "timeout 60 '%s/redis' %s '%s' %s", getenv("WT_TEST_SERVERS"), verb, k->dir,
             args);
}

void kit_script(const struct kit *k, const char *verb, const char *args) {
    char line[1024], quiet[1100];
    command(k, verb, args, line, sizeof line);
    snprintf(quiet, sizeof quiet, "%s >/dev/null", line);
    if (system(quiet) != 0)
        fail_msg("failed: %s", line);
}

void kit_script_later(const struct kit *k, const char *verb, const char *args) {
    char line[1024], later[1100];
    command(k, verb, args, line, sizeof line);
    snprintf(later, sizeof later, "%s >/dev/null 2>&1 &", line);
    if (system(later) != 0)
        fail_msg("failed: %s", line);
}

void kit_ask(const struct kit *k, const char *args, char *out, size_t size) {
    char line[1024];
    command(k, "cli", args, line, sizeof line);
    FILE *f = popen(line, "r");
    assert_non_null(f);
    size_t n = fread(out, 1, size - 1, f);
    out[n] = '\0';
    out[strcspn(out, "\n")] = '\0';
    assert_int_equal(pclose(f), 0);
}

static void read_file(const struct kit *k, const char *name, char *out, size_t size) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", k->dir, name);
    FILE *f = fopen(path, "r");
    if (!f || !fgets(out, (int)size, f))
        fail_msg("cannot read %s", path);
    fclose(f);
    out[strcspn(out, "\n")] = '\0';
}

uint16_t kit_port(const struct kit *k, int n) {
    char name[16], text[16];
    snprintf(name, sizeof name, "port%d", n);
    read_file(k, name, text, sizeof text);
    return (uint16_t)atoi(text);
}

void kit_url(const struct kit *k, char *out, size_t size) {
    read_file(k, "url", out, size);
}

static void on_log(void *arg, enum wt_log_level level, const char *line) {
    (void)level;
    struct kit *k = arg;
    size_t used = strlen(k->lines);
    snprintf(k->lines + used, sizeof k->lines - used, "%s\n", line);
}

struct kit *kit_start(const char *kind) {
    struct kit *k = calloc(1, sizeof *k);
    snprintf(k->dir, sizeof k->dir, "/tmp/wt-redis-XXXXXX");
    if (!mkdtemp(k->dir))
        fail_msg("no temporary folder");
    k->kind = kind;
    k->log = (struct wt_log){on_log, k, WT_LOG_DEBUG};
    kit_script(k, "start", kind);
    assert_int_equal(uv_loop_init(&k->loop), 0);
    return k;
}

/* Also after a failed test, whose requests may point into frames that are gone: then the loop is
 * left alone. */
void kit_stop(struct kit *k) {
    proxy_stop(k->proxy);
    kit_script(k, "wipe", "");
    if (!k->failed) {
        uv_run(&k->loop, UV_RUN_NOWAIT);
        assert_int_equal(uv_loop_close(&k->loop), 0);
    }
    free(k);
}

/* ---- the tier ---- */

void kit_open(struct kit *k, const char *url) {
    struct wt_err err = {0};
    snprintf(k->opts.name, sizeof k->opts.name, "hot");
    snprintf(k->opts.url, sizeof k->opts.url, "%s", url);
    if (wt_tier_open(&k->loop, &k->opts, &k->log, &k->tier, &err) < 0)
        fail_msg("%s", err.text);
}

static void set_flag(void *arg) {
    *(bool *)arg = true;
}

static void on_timer(uv_timer_t *timer) {
    set_flag(timer->data);
}

/* Runs the loop until *flag; false: not within ms. */
static bool run_until(struct kit *k, const bool *flag, unsigned ms) {
    bool late = false;
    uv_timer_t timer;
    uv_timer_init(&k->loop, &timer);
    timer.data = &late;
    uv_timer_start(&timer, on_timer, ms, 0);
    while (!*flag && !late)
        uv_run(&k->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&k->loop, UV_RUN_NOWAIT);
    return *flag;
}

void kit_close(struct kit *k) {
    bool closed = false;
    wt_tier_close(k->tier, set_flag, &closed);
    k->tier = NULL;
    assert_true(run_until(k, &closed, 5000));
}

void kit_sleep(struct kit *k, unsigned ms) {
    bool never = false;
    run_until(k, &never, ms);
}

void kit_until_down(struct kit *k, bool down) {
    for (int i = 0; i < 1500 && wt_tier_is_down(k->tier) != down; i++)
        kit_sleep(k, 10);
    assert_int_equal(wt_tier_is_down(k->tier), down);
}

static void on_done(struct wt_req *req) {
    set_flag(req->arg);
}

int kit_do(struct kit *k, struct wt_req *req) {
    bool done = false;
    req->done = on_done;
    req->arg = &done;
    if (!req->timeout_ms)
        req->timeout_ms = KIT_DEADLINE_MS;
    if (wt_tier_submit(k->tier, req) < 0)
        return req->rc;
    if (!run_until(k, &done, req->timeout_ms + 1000))
        fail_msg("%s hangs past its deadline", wt_op_name(req->op));
    return req->rc;
}

/* ---- objects ---- */

void kit_fill(uint8_t *data, size_t len, const char *key) {
    uint64_t x = 1;
    for (; *key; key++)
        x = x * 31 + (uint8_t)*key;
    for (size_t i = 0; i < len; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        data[i] = (uint8_t)(x >> 56);
    }
}

int kit_put(struct kit *k, const char *key, size_t len) {
    uint8_t *data = malloc(len + 1);
    kit_fill(data, len, key);
    struct wt_req open = {.op = WT_OP_PUT_OPEN, .key = key, .size = len};
    int rc = kit_do(k, &open);
    for (size_t off = 0; rc == 0 && off < len; off += WT_PART) {
        size_t n = len - off < WT_PART ? len - off : (size_t)WT_PART;
        struct wt_req write = {
            .op = WT_OP_PUT_WRITE, .put = open.put, .off = off, .src = data + off, .len = n};
        rc = kit_do(k, &write);
    }
    if (open.rc == 0) {
        struct wt_req end = {.op = rc == 0 ? WT_OP_PUT_COMMIT : WT_OP_PUT_ABORT, .put = open.put};
        int end_rc = kit_do(k, &end);
        rc = rc ? rc : end_rc;
    }
    free(data);
    return rc;
}

int kit_get(struct kit *k, const char *key, size_t len, struct wt_err *err) {
    uint8_t *buf = calloc(1, len + 1), *want = malloc(len + 1);
    struct wt_req req = {.op = WT_OP_GET, .key = key, .buf = buf, .len = len};
    int rc = kit_do(k, &req);
    if (rc == 0) {
        kit_fill(want, len, key);
        assert_int_equal(req.got, len);
        assert_memory_equal(buf, want, len);
    }
    if (err)
        *err = req.err;
    free(buf);
    free(want);
    return rc;
}

int kit_stat(struct kit *k, const char *key) {
    struct wt_req req = {.op = WT_OP_STAT, .key = key};
    return kit_do(k, &req);
}

int kit_remove(struct kit *k, const char *key) {
    struct wt_req req = {.op = WT_OP_REMOVE, .key = key};
    return kit_do(k, &req);
}

/* ---- every group, or one by name ---- */

static const struct kit_group groups[] = {
    {"server", "single", kit_server_tests},   {"rights", "acl", kit_rights_tests},
    {"memory", "small", kit_memory_tests},    {"data", "single", kit_data_tests},
    {"proxy", "single", kit_proxy_tests},     {"cluster", "cluster", kit_cluster_tests},
    {"hostile", "single", kit_hostile_tests},
};

struct bound {
    const struct kit_group *group;
    const struct kit_test *test;
    struct kit *kit;
};

static int set_up(void **state) {
    struct bound *b = *state;
    b->kit = kit_start(b->group->kind);
    return 0;
}

static void run_bound(void **state) {
    const struct bound *b = *state;
    b->kit->failed = true; /* until it has ended */
    b->test->run(b->kit);
    if (b->kit->tier)
        kit_close(b->kit);
    b->kit->failed = false;
}

static int tear_down(void **state) {
    struct bound *b = *state;
    kit_stop(b->kit);
    return 0;
}

static int run_group(const struct kit_group *group) {
    struct CMUnitTest unit[32] = {0};
    struct bound bound[32];
    size_t n = 0;
    for (const struct kit_test *t = group->tests; t->name; t++, n++) {
        bound[n] = (struct bound){group, t, NULL};
        unit[n] = (struct CMUnitTest){t->name, run_bound, set_up, tear_down, &bound[n]};
    }
    return _cmocka_run_group_tests(group->name, unit, n, NULL, NULL);
}

int main(int argc, char **argv) {
    int failed = 0;
    if (!getenv("WT_TEST_SERVERS")) {
        fprintf(stderr, "SKIPPED: WT_TEST_SERVERS is not set\n");
        return 77;
    }
    if (system("command -v redis-server >/dev/null") != 0) {
        fprintf(stderr, "SKIPPED: redis-server is not installed (scripts/setup test)\n");
        return 77;
    }
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        if (argc < 2 || strcmp(argv[1], groups[i].name) == 0)
            failed += run_group(&groups[i]);
    return failed ? 1 : 0;
}
