/* See control_kit.h. */
#include "control_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void reply(int fd, int status, const char *body) {
    static const size_t room = 1 << 20;
    char *text = malloc(room);
    assert_non_null(text);
    int n =
        snprintf(text, room,
                 "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nContent-Type: application/json\r\n\r\n%s",
                 status, strlen(body), body);
    assert_in_range(n, 1, room - 1);
    for (ssize_t at = 0, one; at < n; at += one)
        if ((one = send(fd, text + at, (size_t)(n - at), MSG_NOSIGNAL)) <= 0)
            break; /* the client went */
    free(text);
}

static void on_progress(struct control *s, int fd, const json_t *body) {
    const json_t *reads = json_object_get(body, "reads"), *next = json_object_get(body, "next");
    json_t *residency = json_array();
    for (size_t i = 0; i < json_array_size(reads); i++) {
        s->ranges += (uint64_t)json_integer_value(json_array_get(json_array_get(reads, i), 2));
        s->bytes += (uint64_t)json_integer_value(json_array_get(json_array_get(reads, i), 3));
    }
    for (size_t i = 0; i < json_array_size(next); i++, s->next++) {
        json_int_t shard = json_integer_value(json_array_get(next, i));
        unsigned hot = s->hot && s->hot[shard] ? 2 : 0;
        json_array_append_new(residency, json_pack("[I, i]", shard, (int)(s->mask | hot)));
    }
    const json_t *bad = json_object_get(body, "bad");
    s->bad_samples += (unsigned)json_array_size(bad);
    if (json_array_size(bad))
        snprintf(s->bad_key, sizeof s->bad_key, "%s",
                 json_string_value(json_array_get(json_array_get(bad, 0), 1)));
    s->reports++;
    json_t *answer =
        json_pack("{s:o, s:[s, s, s], s:o}", "residency", residency, "tiers", "cold", "hot", "warm",
                  "moves", s->moves ? s->moves(s->arg, next) : json_array());
    char *text = json_dumps(answer, 0);
    reply(fd, 200, text);
    free(text);
    json_decref(answer);
}

static void on_request(struct control *s, int fd, const char *method, const char *path,
                       const json_t *body) {
    pthread_mutex_lock(&s->mutex);
    if (strcmp(method, "POST") == 0 && strcmp(path, "/v1/jobs") == 0) {
        s->registered++;
        json_decref(s->job);
        s->job = json_deep_copy(body);
        reply(fd, 200,
              s->mode == CONTROL_NONSENSE ? "{\"id\":7,\"report_ms\":[]}"
                                          : "{\"id\":\"j1-x\",\"report_ms\":20,\"shards\":1}");
    } else if (strcmp(path, "/v1/jobs/j1-x/progress") == 0) {
        if (s->mode == CONTROL_FORGETFUL && s->reports++ % 3 == 2)
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
static void serve(struct control *s, int fd) {
    static const size_t size = 1 << 20;
    char *buf = malloc(size);
    size_t have = 0;
    while (!s->stop && buf) {
        buf[have] = '\0';
        char *end = strstr(buf, "\r\n\r\n"), *at = end ? strcasestr(buf, "Content-Length:") : NULL;
        size_t body = at && at < end ? strtoul(at + 15, NULL, 10) : 0,
               head = end ? (size_t)(end + 4 - buf) : 0;
        if (end && have >= head + body && s->mode != CONTROL_SILENT) {
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

static void *control_run(void *arg) {
    struct control *s = arg;
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

void control_start(struct control *s, const struct kit *k, enum control_mode mode, unsigned mask) {
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
    assert_int_equal(pthread_create(&s->thread, NULL, control_run, s), 0);
    char text[256];
    snprintf(text, sizeof text, "control = \"unix:%s\"\n", s->path);
    kit_config(k, text);
}

void control_stop(struct control *s) {
    s->stop = true;
    pthread_join(s->thread, NULL);
    close(s->fd);
    json_decref(s->job);
    pthread_mutex_destroy(&s->mutex);
}

unsigned control_reports(struct control *s) {
    pthread_mutex_lock(&s->mutex);
    unsigned n = s->reports;
    pthread_mutex_unlock(&s->mutex);
    return n;
}

void control_wait(struct control *s, unsigned n) {
    for (int i = 0; i < 500 && control_reports(s) < n; i++)
        usleep(10000);
    assert_true(control_reports(s) >= n);
}
