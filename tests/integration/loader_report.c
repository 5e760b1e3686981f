/*
 * The loader and a daemon: a small server of our own that speaks the control protocol on a Unix
 * socket, so that every answer can be chosen. (The real daemon is in the daemon's own tests.)
 */
#include "loader_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum mode { NORMAL, FORGETFUL, SILENT, NONSENSE };

struct server {
    int fd;
    pthread_t thread;
    _Atomic bool stop;
    enum mode mode;
    char path[108];
    pthread_mutex_t mutex; /* guards what follows */
    unsigned registered, reports, deleted, bad;
    uint64_t ranges, bytes, next;
    unsigned bad_samples;
    char bad_key[96];
    json_t *job;
    unsigned mask; /* what residency says of every shard: bits of cold, hot, warm (in this order) */
};

static void reply(int fd, int status, const char *body) {
    char text[65536];
    int n =
        snprintf(text, sizeof text,
                 "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nContent-Type: application/json\r\n\r\n%s",
                 status, strlen(body), body);
    if (send(fd, text, (size_t)n, MSG_NOSIGNAL) != n)
        return;
}

static void on_progress(struct server *s, int fd, const json_t *body) {
    const json_t *reads = json_object_get(body, "reads"), *next = json_object_get(body, "next");
    json_t *residency = json_array();
    for (size_t i = 0; i < json_array_size(reads); i++) {
        s->ranges += (uint64_t)json_integer_value(json_array_get(json_array_get(reads, i), 2));
        s->bytes += (uint64_t)json_integer_value(json_array_get(json_array_get(reads, i), 3));
    }
    for (size_t i = 0; i < json_array_size(next); i++, s->next++)
        json_array_append_new(
            residency,
            json_pack("[I, i]", json_integer_value(json_array_get(next, i)), (int)s->mask));
    const json_t *bad = json_object_get(body, "bad");
    s->bad_samples += (unsigned)json_array_size(bad);
    if (json_array_size(bad))
        snprintf(s->bad_key, sizeof s->bad_key, "%s",
                 json_string_value(json_array_get(json_array_get(bad, 0), 1)));
    s->reports++;
    json_t *answer = json_pack("{s:o, s:[s, s, s], s:[]}", "residency", residency, "tiers", "cold",
                               "hot", "warm", "moves");
    char *text = json_dumps(answer, 0);
    reply(fd, 200, text);
    free(text);
    json_decref(answer);
}

static void on_request(struct server *s, int fd, const char *method, const char *path,
                       const json_t *body) {
    pthread_mutex_lock(&s->mutex);
    if (strcmp(method, "POST") == 0 && strcmp(path, "/v1/jobs") == 0) {
        s->registered++;
        json_decref(s->job);
        s->job = json_deep_copy(body);
        reply(fd, 200,
              s->mode == NONSENSE ? "{\"id\":7,\"report_ms\":[]}"
                                  : "{\"id\":\"j1-x\",\"report_ms\":20,\"shards\":1}");
    } else if (strcmp(path, "/v1/jobs/j1-x/progress") == 0) {
        if (s->mode == FORGETFUL && s->reports++ % 3 == 2)
            reply(fd, 404, "{\"error\":\"unknown job\",\"code\":\"MISSING\"}");
        else
            on_progress(s, fd, body);
    } else if (strcmp(method, "DELETE") == 0 && strcmp(path, "/v1/jobs/j1-x") == 0) {
        s->deleted++;
        reply(fd, 200, "{}");
    } else {
        s->bad++;
        reply(fd, 400, "{}");
    }
    pthread_mutex_unlock(&s->mutex);
}

/* One request after another until the client goes. */
static void serve(struct server *s, int fd) {
    static const size_t size = 1 << 20;
    char *buf = malloc(size);
    size_t have = 0;
    while (!s->stop && buf) {
        buf[have] = '\0';
        char *end = strstr(buf, "\r\n\r\n"), *at = end ? strcasestr(buf, "Content-Length:") : NULL;
        size_t body = at && at < end ? strtoul(at + 15, NULL, 10) : 0,
               head = end ? (size_t)(end + 4 - buf) : 0;
        if (end && have >= head + body && s->mode != SILENT) {
            char method[16], path[200];
            assert_int_equal(sscanf(buf, "%15s %199s", method, path), 2);
            json_t *json = json_loadb(buf + head, body, 0, NULL);
            on_request(s, fd, method, path, json);
            json_decref(json);
            memmove(buf, buf + head + body, have - head - body);
            have -= head + body;
            continue;
        }
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 50) == 1) {
            ssize_t n = recv(fd, buf + have, size - have - 1, 0);
            if (n <= 0)
                break;
            have += (size_t)n;
        }
    }
    free(buf);
    close(fd);
}

static void *client_run(void *arg) {
    void **both = arg;
    serve(both[0], (int)(intptr_t)both[1]);
    free(both);
    return NULL;
}

static void *server_run(void *arg) {
    struct server *s = arg;
    pthread_t clients[64];
    unsigned n = 0;
    while (!s->stop) {
        struct pollfd p = {.fd = s->fd, .events = POLLIN};
        if (poll(&p, 1, 50) != 1 || n == 64)
            continue;
        int fd = accept(s->fd, NULL, NULL);
        void **both = malloc(2 * sizeof *both);
        if (fd < 0 || !both)
            abort();
        both[0] = s;
        both[1] = (void *)(intptr_t)fd;
        if (pthread_create(&clients[n++], NULL, client_run, both) != 0)
            abort();
    }
    for (unsigned i = 0; i < n; i++)
        pthread_join(clients[i], NULL);
    return NULL;
}

static void server_start(struct server *s, const struct kit *k, enum mode mode, unsigned mask) {
    memset(s, 0, sizeof *s);
    s->mode = mode;
    s->mask = mask;
    pthread_mutex_init(&s->mutex, NULL);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(s->path, sizeof s->path, "%.90s/c.sock", k->root);
    strcpy(a.sun_path, s->path);
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, server_run, s), 0);
    char text[256];
    snprintf(text, sizeof text, "control = \"unix:%s\"\n", s->path);
    kit_config(k, text);
}

static void server_stop(struct server *s) {
    s->stop = true;
    pthread_join(s->thread, NULL);
    close(s->fd);
    json_decref(s->job);
    pthread_mutex_destroy(&s->mutex);
}

static unsigned reports(struct server *s) {
    pthread_mutex_lock(&s->mutex);
    unsigned n = s->reports;
    pthread_mutex_unlock(&s->mutex);
    return n;
}

static void wait_reports(struct server *s, unsigned n) {
    for (int i = 0; i < 500 && reports(s) < n; i++)
        usleep(10000);
    assert_true(reports(s) >= n);
}

static const struct kit_shape shape = {
    .samples = 240, .per_shard = 8, .h = 8, .w = 8, .codec = WT_CODEC_TAR};

static wl_options options(const struct kit *k) {
    wl_options o = kit_options(k);
    o.tail = WL_TAIL_PAD;
    o.lanes = 2;
    o.window = 1;
    o.epochs = 3;
    o.job = "training-7";
    return o;
}

static void test_what_is_reported(void **state) {
    (void)state;
    struct kit k;
    struct server s;
    kit_make(&k, &shape);
    server_start(&s, &k, NORMAL, 1);
    wl_options o = options(&k);
    wl_loader *l = kit_open(&o);
    struct kit_epoch e = {.batch = o.batch};
    wait_reports(&s, 2);
    for (int i = 0; i < 3; i++)
        kit_read_epoch(&k, l, &e);
    uint64_t bytes = kit_bytes_read(l);
    wl_stats st = kit_stats(l);
    wl_close(l);
    assert_int_equal(s.registered, 1);
    assert_int_equal(s.deleted, 1);
    assert_int_equal(s.bad, 0);
    assert_int_equal(s.bytes, bytes); /* nothing is lost or told twice */
    assert_int_equal(s.ranges, st.tier[0].reads);
    assert_true(s.next > 0);
    assert_string_equal(json_string_value(json_object_get(s.job, "name")), "training-7");
    assert_string_equal(json_string_value(json_object_get(s.job, "dataset")), "wafers");
    assert_int_equal(json_integer_value(json_object_get(s.job, "generation")), 1);
    assert_string_equal(json_string_value(json_array_get(json_object_get(s.job, "tiers"), 2)),
                        "hot");
    const json_t *plan = json_object_get(s.job, "plan");
    assert_int_equal(json_integer_value(json_object_get(plan, "samples")), 240);
    assert_int_equal(json_integer_value(json_object_get(plan, "lanes")), 2);
    assert_string_equal(json_string_value(json_object_get(plan, "tail")), "pad");
    kit_epoch_free(&e);
    server_stop(&s);
    kit_free(&k);
}

/* A sample that is damaged in its cold copy is told once, however often it is met. */
static void test_bad_samples_are_told(void **state) {
    (void)state;
    struct kit k;
    struct server s;
    kit_make(&k, &shape);
    server_start(&s, &k, NORMAL, 1);
    kit_damage(&k, 2, 0, 512 + 128 + 8); /* in pixels */
    wl_options o = options(&k);
    o.bad = WL_BAD_MASK;
    o.bad_max = 20;
    wl_loader *l = kit_open(&o);
    struct kit_epoch e = {.batch = o.batch};
    for (int i = 0; i < 3; i++)
        kit_read_epoch(&k, l, &e);
    wl_bad_sample bad[8];
    size_t n = wl_quarantine(l, bad, 8);
    wl_close(l);
    assert_true(n >= 1 && n <= 8);
    assert_int_equal(bad[0].times, 3);
    assert_int_equal(s.bad_samples, n);
    assert_string_equal(s.bad_key, bad[0].key);
    kit_epoch_free(&e);
    server_stop(&s);
    kit_free(&k);
}

/* The daemon says: hot has them, warm does not. Then warm is not asked. Its tiers come in another
 * order than ours. */
static void test_hints_are_used(void **state) {
    (void)state;
    struct kit k;
    struct server s;
    kit_make(&k, &shape);
    kit_copy_all(&k, 1);
    server_start(&s, &k, NORMAL, 1); /* cold alone, it says: the warm copies are not seen */
    wl_options o = options(&k);
    o.epochs = 0;
    wl_loader *l = kit_open(&o);
    struct kit_epoch e = {.batch = o.batch};
    wait_reports(&s, 3);
    uint64_t warm = kit_stats(l).tier[1].reads;
    for (int i = 0; i < 2; i++) {
        wait_reports(&s, reports(&s) + 3);
        kit_read_epoch(&k, l, &e);
    }
    /* What was under way before the first answer, and what a new epoch forgets before the next
     * answer, may still go to warm. */
    wl_stats st = kit_stats(l);
    assert_true(st.tier[0].reads > st.tier[1].reads - warm);
    pthread_mutex_lock(&s.mutex);
    s.mask = 1 | 4; /* warm, in the server's order */
    pthread_mutex_unlock(&s.mutex);
    wait_reports(&s, reports(&s) + 3);
    kit_read_epoch(&k, l, &e);
    assert_true(kit_stats(l).tier[1].reads > st.tier[1].reads);
    assert_int_equal(kit_stats(l).tier[0].misses, 0);
    wl_close(l);
    kit_epoch_free(&e);
    server_stop(&s);
    kit_free(&k);
}

static void test_forgetful_daemon(void **state) {
    (void)state;
    struct kit k;
    struct server s;
    kit_make(&k, &shape);
    server_start(&s, &k, FORGETFUL, 1);
    wl_options o = options(&k);
    wl_loader *l = kit_open(&o);
    struct kit_epoch e = {.batch = o.batch};
    kit_read_epoch(&k, l, &e);
    for (int i = 0; i < 100 && kit_stats(l).batches && reports(&s) < 8; i++)
        usleep(100000);
    wl_close(l);
    assert_true(s.registered >= 2);
    kit_epoch_free(&e);
    server_stop(&s);
    kit_free(&k);
}

/* A daemon that hangs, or talks nonsense, costs the data path nothing and closing little. */
static void test_useless_daemons(void **state) {
    (void)state;
    static const enum mode modes[] = {SILENT, NONSENSE};
    for (size_t i = 0; i < 2; i++) {
        struct kit k;
        struct server s;
        kit_make(&k, &shape);
        server_start(&s, &k, modes[i], 7);
        wl_options o = options(&k);
        wl_loader *l = kit_open(&o);
        struct kit_epoch e = {.batch = o.batch};
        kit_read_epoch(&k, l, &e);
        kit_all_once(&k, &e);
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        wl_close(l);
        clock_gettime(CLOCK_MONOTONIC, &b);
        assert_true(b.tv_sec - a.tv_sec <= 2);
        assert_int_equal(s.reports, 0);
        kit_epoch_free(&e);
        server_stop(&s);
        kit_free(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_reported), cmocka_unit_test(test_bad_samples_are_told),
        cmocka_unit_test(test_hints_are_used),   cmocka_unit_test(test_forgetful_daemon),
        cmocka_unit_test(test_useless_daemons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
