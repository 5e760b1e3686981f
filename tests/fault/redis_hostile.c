/* A server that is none: whatever it sends, the tier says so within its deadlines and comes to no
 * harm. */
#include "redis_kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Answers whatever comes with the same bytes: after `polite` proper replies to the greeting. */
struct liar {
    int listener;
    uint16_t port;
    pthread_t thread;
    atomic_bool stop;
    const char *text;
    size_t len;
    int polite;
};

/* INFO, SET, GET of the greeting, in that order. */
static const char *const greeting[] = {"$11\r\nrun_id:abc\r\n\r\n", "+OK\r\n", "$-1\r\n"};

static bool send_all(int fd, const char *data, size_t len) {
    while (len) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        struct pollfd at = {.fd = fd, .events = POLLOUT};
        if (n < 0 && (errno != EAGAIN || poll(&at, 1, 200) <= 0))
            return false;
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
    return true;
}

static void serve(const struct liar *l, int fd) {
    char in[4096];
    for (int i = 0; i < l->polite; i++)
        send_all(fd, greeting[i], strlen(greeting[i]));
    while (!l->stop) {
        struct pollfd at = {.fd = fd, .events = POLLIN};
        if (poll(&at, 1, 20) <= 0)
            continue;
        if (recv(fd, in, sizeof in, 0) <= 0 || !send_all(fd, l->text, l->len))
            break;
    }
    close(fd);
}

static void *run(void *arg) {
    struct liar *l = arg;
    while (!l->stop) {
        struct pollfd at = {.fd = l->listener, .events = POLLIN};
        int fd = poll(&at, 1, 20) > 0 ? accept(l->listener, NULL, NULL) : -1;
        if (fd >= 0)
            serve(l, fd);
    }
    return NULL;
}

static void start(struct liar *l) {
    struct sockaddr_in in = {.sin_family = AF_INET};
    socklen_t len = sizeof in;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    l->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(l->listener, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(l->listener, 8), 0);
    assert_int_equal(getsockname(l->listener, (struct sockaddr *)&in, &len), 0);
    l->port = ntohs(in.sin_port);
    assert_int_equal(pthread_create(&l->thread, NULL, run, l), 0);
}

static void stop(struct liar *l) {
    l->stop = true;
    pthread_join(l->thread, NULL);
    close(l->listener);
}

/* Every request must end in time, with an error of the tier or the object. */
static void face(struct kit *k, const char *text, size_t len, int polite) {
    struct liar l = {.text = text, .len = len, .polite = polite};
    char url[100];
    start(&l);
    snprintf(url, sizeof url, "redis://127.0.0.1:%u?connections=1", l.port);
    kit_open(k, url);
    uint8_t buf[100];
    for (int i = 0; i < 3; i++) {
        struct wt_req get = {
            .op = WT_OP_GET, .key = "o", .buf = buf, .len = sizeof buf, .timeout_ms = 300};
        struct wt_req open = {.op = WT_OP_PUT_OPEN, .key = "o", .size = 100, .timeout_ms = 300};
        struct wt_req usage = {.op = WT_OP_USAGE, .timeout_ms = 300};
        assert_true(kit_do(k, &get) < 0);
        assert_true(kit_do(k, &open) < 0);
        assert_true(kit_do(k, &usage) < 0);
    }
    kit_close(k);
    stop(&l);
}

static void lies(struct kit *k) {
    static const char *const texts[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "$99999999999999999999\r\n",
        "$-2\r\n",
        "$5\r\nabcdefg\r\n",
        "*1000000000\r\n",
        "*-5\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        ":12345\r\n",
        "+OK\r\n",
        "-MOVED 5 127.0.0.1:1\r\n",
        "-ASK x\r\n",
        "-\r\n",
        "-ERR unknown command `AUTH`, with args beginning with: `secret`\r\n",
        "*2\r\n$1\r\n7\r\n*0\r\n",
        "%1\r\n+a\r\n+b\r\n",
        "\r\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        face(k, texts[i], strlen(texts[i]), 0);
        face(k, texts[i], strlen(texts[i]), 3);
    }
}

static void noise(struct kit *k) {
    char text[3000];
    uint64_t x = 42;
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof text; i++) {
            x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            /* Half of it bytes that mean something. */
            text[i] = x >> 63 ? "$*:+-\r\n0123456789"[(x >> 40) % 17] : (char)(x >> 56);
        }
        face(k, text, sizeof text, round % 4);
    }
}

static void floods(struct kit *k) {
    enum { LEN = 6 << 20 };
    char *text = malloc(LEN);
    memset(text, 'x', LEN);
    text[0] = '+';
    face(k, text, LEN, 0); /* a line without end */
    face(k, text, LEN, 3);
    memcpy(text, "$6000000\r\n", 10); /* longer than any header */
    face(k, text, LEN, 3);
    free(text);
}

const struct kit_test kit_hostile_tests[] = {
    {"answers that are none", lies},
    {"noise", noise},
    {"floods", floods},
    {NULL, NULL},
};
