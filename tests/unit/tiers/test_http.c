/* The HTTP client against a tiny server of the test's own, on a Unix socket, one thread. */
#include "kit.h"

#include "core/http.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Answers by the path of the request; keeps the connection until the client ends it. */
struct server {
    char folder[256], address[300];
    int fd;
    pthread_t thread;
    int connections;
};

static void send_all(int fd, const char *data, size_t len) {
    while (len) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        data += n;
        len -= (size_t)n;
    }
}

static void reply(int fd, const char *status, const char *body, size_t len) {
    char head[200];
    int n = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", status, len);
    send_all(fd, head, (size_t)n);
    send_all(fd, body, len);
}

/* An answer without end. */
static void flood(int fd) {
    static char block[1 << 20];
    send_all(fd, "HTTP/1.1 200 OK\r\n\r\n", 19);
    for (int i = 0; i < 80; i++)
        if (send(fd, block, sizeof block, MSG_NOSIGNAL) <= 0)
            return;
}

/* An endless answer that falls silent after three pieces. */
static void drip(int fd) {
    static const char *const piece[] = {"4\r\none\n\r\n", "3\r\ntw", "o\r\n1\r\n\n\r\n"};
    char c;
    send_all(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 47);
    for (int i = 0; i < 3; i++) {
        send_all(fd, piece[i], strlen(piece[i]));
        usleep(20000);
    }
    while (recv(fd, &c, 1, 0) > 0)
        ;
}

/* false: hang up. */
static bool answer(int fd, char *request) {
    char *body = strstr(request, "\r\n\r\n");
    body = body ? body + 4 : request;
    if (strstr(request, "GET /silent")) {
        char c;
        while (recv(fd, &c, 1, 0) > 0)
            ;
        return false;
    }
    if (strstr(request, "GET /hangup"))
        return false;
    if (strstr(request, "GET /flood")) {
        flood(fd);
        return false;
    }
    if (strstr(request, "GET /drip")) {
        drip(fd);
        return false;
    }
    if (strstr(request, "GET /short")) {
        send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
                 strlen("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"));
        return false;
    }
    if (strstr(request, "GET /rubbish")) {
        send_all(fd, "what?\r\n\r\n", 9);
        return false;
    }
    if (strstr(request, "GET /empty"))
        reply(fd, "204 No Content", "", 0);
    else if (strstr(request, "POST /echo"))
        reply(fd, "200 OK", body, strlen(body));
    else if (strstr(request, "GET /lines"))
        reply(fd, "200 OK", "one\ntwo\n", 8);
    else if (strstr(request, "GET /refused"))
        reply(fd, "429 Too Many Requests", "{\"error\":\"later\"}", 17);
    else if (strstr(request, "DELETE /job"))
        reply(fd, "404 Not Found", "{\"error\":\"gone\"}", 16);
    else
        reply(fd, "200 OK", "{}", 2);
    return true;
}

static void serve_one(int fd) {
    char request[5000];
    size_t len = 0;
    for (;;) {
        ssize_t n = recv(fd, request + len, sizeof request - 1 - len, 0);
        if (n <= 0)
            break;
        len += (size_t)n;
        request[len] = '\0';
        char *end = strstr(request, "\r\n\r\n");
        char *length = strstr(request, "Content-Length: ");
        size_t want = length ? (size_t)atol(length + 16) : 0;
        if (!end || len < (size_t)(end + 4 - request) + want)
            continue;
        if (!answer(fd, request))
            break;
        len = 0;
    }
    close(fd);
}

static void *serve(void *arg) {
    struct server *s = arg;
    for (;;) {
        int fd = accept(s->fd, NULL, NULL);
        if (fd < 0)
            return NULL;
        s->connections++;
        serve_one(fd);
    }
}

static int start(void **state) {
    struct server *s = calloc(1, sizeof *s);
    kit_make_folder(s->folder);
    snprintf(s->address, sizeof s->address, "unix:%s/sock", s->folder);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", s->address + 5);
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
    *state = s;
    return 0;
}

static int stop(void **state) {
    struct server *s = *state;
    shutdown(s->fd, SHUT_RDWR); /* ends accept */
    pthread_join(s->thread, NULL);
    close(s->fd);
    kit_remove_folder(s->folder);
    free(s);
    return 0;
}

static int call(struct wt_http *h, const char *method, const char *path, const char *body,
                unsigned ms, long *status, char **text, struct wt_err *err) {
    size_t len = 0;
    *text = NULL;
    int rc = wt_http_call(h, method, path, body, ms, status, text, &len, err);
    if (rc == 0)
        assert_int_equal(strlen(*text), len);
    return rc;
}

static void answers(void **state) {
    struct server *s = *state;
    struct wt_http *h;
    assert_int_equal(wt_http_new(s->address, &h, NULL), 0);
    /* Whatever the environment says about proxies. */
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    long status;
    char *text;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(call(h, "GET", "/v1/stats", NULL, 5000, &status, &text, NULL), 0);
        assert_int_equal(status, 200);
        assert_string_equal(text, "{}");
        free(text);
    }
    unsetenv("http_proxy");
    assert_int_equal(call(h, "POST", "/echo", "{\"a\":1}", 5000, &status, &text, NULL), 0);
    assert_string_equal(text, "{\"a\":1}");
    free(text);
    assert_int_equal(call(h, "POST", "/echo", NULL, 5000, &status, &text, NULL), 0);
    assert_string_equal(text, "");
    free(text);
    assert_int_equal(call(h, "DELETE", "/job", NULL, 5000, &status, &text, NULL), 0);
    assert_int_equal(status, 404);
    assert_string_equal(text, "{\"error\":\"gone\"}");
    free(text);
    assert_int_equal(call(h, "GET", "/empty", NULL, 5000, &status, &text, NULL), 0);
    assert_int_equal(status, 204);
    assert_string_equal(text, "");
    free(text);
    wt_http_free(h);
    assert_int_equal(s->connections, 1); /* kept alive */
}

static void failures(void **state) {
    struct server *s = *state;
    struct wt_http *h;
    struct wt_err err;
    long status = 7;
    char *text;
    assert_int_equal(wt_http_new(s->address, &h, NULL), 0);
    uint64_t begin = uv_hrtime();
    assert_int_equal(call(h, "GET", "/silent", NULL, 200, &status, &text, &err), WT_ETIMEDOUT);
    assert_true(uv_hrtime() - begin < UINT64_C(2000000000));
    assert_int_equal(call(h, "GET", "/hangup", NULL, 5000, &status, &text, &err), WT_EDOWN);
    assert_int_equal(call(h, "GET", "/short", NULL, 5000, &status, &text, &err), WT_EDOWN);
    assert_int_equal(call(h, "GET", "/rubbish", NULL, 5000, &status, &text, &err), WT_EFORMAT);
    assert_int_equal(call(h, "GET", "/flood", NULL, 20000, &status, &text, &err), WT_ERANGE);
    assert_int_equal(status, 7); /* untouched */
    assert_null(text);
    assert_int_equal(call(h, "GET", "no-slash", NULL, 5000, &status, &text, &err), WT_EINVAL);
    /* And then it works again. */
    assert_int_equal(call(h, "GET", "/", NULL, 5000, &status, &text, &err), 0);
    free(text);
    wt_http_free(h);
}

static void nobody_there(void **state) {
    (void)state;
    char folder[256], address[300];
    kit_make_folder(folder);
    snprintf(address, sizeof address, "unix:%s/sock", folder);
    struct wt_http *h;
    struct wt_err err;
    long status;
    char *text;
    assert_int_equal(wt_http_new(address, &h, NULL), 0);
    assert_int_equal(call(h, "GET", "/", NULL, 5000, &status, &text, &err), WT_EDOWN);
    assert_non_null(strstr(err.text, address));
    /* A socket that nobody listens on any more. */
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%.100s", address + 5);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    close(fd);
    assert_int_equal(call(h, "GET", "/", NULL, 5000, &status, &text, &err), WT_EDOWN);
    wt_http_free(h);
    kit_remove_folder(folder);
    assert_int_equal(wt_http_new("http://localhost:80", &h, &err), WT_EINVAL);
    assert_int_equal(wt_http_new("unix:relative", &h, &err), WT_EINVAL);
    char longest[200] = "unix:/";
    memset(longest + 6, 'x', 190);
    assert_int_equal(wt_http_new(longest, &h, &err), WT_EINVAL);
    wt_http_free(NULL);
}

/* Root may open any socket, so the test becomes somebody else for the call. */
static void no_right(void **state) {
    struct server *s = *state;
    assert_int_equal(chmod(s->address + 5, 0), 0);
    struct wt_http *h;
    struct wt_err err;
    long status;
    char *text;
    assert_int_equal(wt_http_new(s->address, &h, NULL), 0);
    bool root = geteuid() == 0;
    if (root) {
        assert_int_equal(chmod(s->folder, 0755), 0);
        assert_int_equal(seteuid(65534), 0);
    }
    int rc = call(h, "GET", "/", NULL, 5000, &status, &text, &err);
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(rc, WT_EDENIED);
    wt_http_free(h);
}

static void *abort_soon(void *arg) {
    uv_sleep(100);
    wt_http_abort(arg);
    return NULL;
}

static void aborted(void **state) {
    struct server *s = *state;
    struct wt_http *h;
    long status;
    char *text;
    assert_int_equal(wt_http_new(s->address, &h, NULL), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, abort_soon, h), 0);
    uint64_t begin = uv_hrtime();
    assert_int_equal(call(h, "GET", "/silent", NULL, 20000, &status, &text, NULL), WT_ECANCELED);
    assert_true((uv_hrtime() - begin) / 1000000 < 300);
    pthread_join(thread, NULL);
    assert_int_equal(call(h, "GET", "/", NULL, 5000, &status, &text, NULL), WT_ECANCELED);
    wt_http_free(h);
}

struct pieces {
    char text[64];
    size_t len, enough;
};

static int take_piece(void *arg, const char *data, size_t len) {
    struct pieces *p = arg;
    assert_true(p->len + len < sizeof p->text);
    memcpy(p->text + p->len, data, len);
    p->len += len;
    return p->enough && p->len >= p->enough ? WT_ECANCELED : 0;
}

static int stream(struct server *s, const char *path, struct pieces *p, long *status,
                  char **refusal, struct wt_err *err) {
    struct wt_http *h;
    assert_int_equal(wt_http_new(s->address, &h, NULL), 0);
    *status = 0;
    int rc = wt_http_stream(h, path, 1000, take_piece, p, status, refusal, err);
    wt_http_free(h);
    return rc;
}

/* A stream that ends, one that is ended here, one that falls silent, one that is refused. */
static void streams(void **state) {
    struct server *s = *state;
    struct wt_err err = {0};
    struct pieces p = {0};
    char *refusal;
    long status;
    assert_int_equal(stream(s, "/lines", &p, &status, &refusal, &err), 0);
    assert_int_equal(status, 200);
    assert_null(refusal);
    assert_string_equal(p.text, "one\ntwo\n");
    p = (struct pieces){.enough = 8};
    assert_int_equal(stream(s, "/drip", &p, &status, &refusal, &err), WT_ECANCELED);
    assert_string_equal(p.text, "one\ntwo\n");
    p = (struct pieces){0};
    assert_int_equal(stream(s, "/drip", &p, &status, &refusal, &err), WT_ETIMEDOUT);
    assert_string_equal(p.text, "one\ntwo\n");
    p = (struct pieces){0};
    assert_int_equal(stream(s, "/refused", &p, &status, &refusal, &err), 0);
    assert_int_equal(status, 429);
    assert_int_equal(p.len, 0);
    assert_string_equal(refusal, "{\"error\":\"later\"}");
    free(refusal);
    assert_int_equal(stream(s, "/hangup", &p, &status, &refusal, &err), WT_EDOWN);
    assert_int_equal(stream(s, "wrong", &p, &status, &refusal, &err), WT_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers, start, stop),
        cmocka_unit_test_setup_teardown(failures, start, stop),
        cmocka_unit_test(nobody_there),
        cmocka_unit_test_setup_teardown(no_right, start, stop),
        cmocka_unit_test_setup_teardown(aborted, start, stop),
        cmocka_unit_test_setup_teardown(streams, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
