/*
 * The real wafertierd among hostile and slow clients: descriptors and memory stay bounded, moves
 * go on, who is connected is served, and all is well when they are gone. And an idle daemon costs
 * next to nothing.
 */
#include "kit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { SHARDS = 24, SAMPLES = 40, CROWD = 1000, MOST_FDS = 700 };

/* ---- what the daemon uses ---- */

static long memory_kib(struct kit *k) {
    char path[64], line[256];
    long kib = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)k->pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        sscanf(line, "VmRSS: %ld", &kib);
    fclose(f);
    assert_true(kib > 0);
    return kib;
}

static unsigned descriptors(struct kit *k) {
    char command[96];
    unsigned n = 0;
    snprintf(command, sizeof command, "ls /proc/%d/fd | wc -l", (int)k->pid);
    FILE *f = popen(command, "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%u", &n), 1);
    pclose(f);
    return n;
}

/* Of all its threads. */
static uint64_t cpu_ns(struct kit *k) {
    char command[128];
    unsigned long long ns = 0;
    snprintf(command, sizeof command,
             "cat /proc/%d/task/*/schedstat | awk '{ s += $1 } END { printf \"%%.0f\", s }'",
             (int)k->pid);
    FILE *f = popen(command, "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%llu", &ns), 1);
    pclose(f);
    return ns;
}

/* ---- clients ---- */

static void may_open(unsigned n) {
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur >= n)
        return;
    limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void say(int fd, const char *text) {
    if (fd >= 0 && send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* it was closed, or its buffer is full: both are the daemon's right */
}

/* A request on a connection that stays; ms until its answer was whole. */
static unsigned ask(int fd) {
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    char answer[4096];
    size_t have = 0;
    uint64_t began = kit_now();
    say(fd, request);
    while (have == 0 || !strstr(answer, "}\n")) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 5000) != 1)
            fail_msg("a connected client got no answer within 5 s");
        ssize_t n = recv(fd, answer + have, sizeof answer - 1 - have, 0);
        if (n <= 0)
            fail_msg("a connected client was cut off");
        have += (size_t)n;
        answer[have] = '\0';
    }
    return (unsigned)(kit_now() - began);
}

static void a_crowd_is_bounded(void **state) {
    struct kit *k = *state;
    uint64_t size = kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    k->tier_extra = "filter = \"delay write=50ms\"";
    may_open(CROWD + 200);
    kit_start(k);
    int good = kit_connect(k);
    assert_true(good >= 0);
    ask(good);
    long before = memory_kib(k);
    static const char *const openings[] = {
        "",                                  /* says nothing */
        "GET /v1/stats HTTP/1.1\r\nHost: x", /* never ends its head */
        "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{\"name\": \"",
        "GET /v1/events?since=0 HTTP/1.1\r\nHost: x\r\n\r\n", /* never reads */
        "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10000\r\n",
    };
    static int fd[CROWD];
    json_decref(kit_report(k, kit_register(k, "wafers"), 0, 0, SHARDS, "cold", size));
    for (int i = 0; i < CROWD; i++) {
        fd[i] = kit_connect_now(k);
        say(fd[i], openings[i % 5]);
    }
    unsigned worst = 0, most = 0;
    char more[4096];
    memset(more, 'a', sizeof more - 1);
    more[sizeof more - 1] = '\0';
    for (int round = 0; round < 20; round++) {
        unsigned ms = ask(good);
        worst = ms > worst ? ms : worst;
        unsigned n = descriptors(k);
        most = n > most ? n : most;
        for (int i = 2; i < CROWD; i += 5)
            say(fd[i], more); /* a body that goes on */
        kit_sleep(50);
    }
    long after = memory_kib(k);
    print_message("descriptors at most %u, memory %ld -> %ld KiB, a connected client waited %u ms "
                  "at most\n",
                  most, before, after, worst);
    assert_true(most <= MOST_FDS);
    assert_true(after - before < 160 << 10); /* 512 connections of 32 KiB, and bodies begun */
    assert_true(worst < 2000);
    for (int i = 0; i < CROWD; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    kit_wait_status(k, "ok", 15000);
    kit_until(k, "/v1/stats", "tiers.2.shards", SHARDS, 10000); /* moves went on */
    close(good);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

static void event_readers_are_bounded(void **state) {
    struct kit *k = *state;
    kit_pack(k, "wafers", 2, SAMPLES, 1, 1, 0);
    kit_start(k);
    int fd[40];
    unsigned refused = 0;
    for (int i = 0; i < 40; i++) {
        char head[64] = "";
        fd[i] = kit_connect(k);
        assert_true(fd[i] >= 0);
        say(fd[i], "GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n");
        struct pollfd p = {.fd = fd[i], .events = POLLIN};
        assert_int_equal(poll(&p, 1, 5000), 1);
        assert_true(recv(fd[i], head, sizeof head - 1, 0) > 12);
        refused += strncmp(head, "HTTP/1.1 429", 12) == 0;
    }
    assert_int_equal(refused, 8);
    json_t *o = kit_call(k, "GET", "/v1/stats", NULL, NULL);
    assert_int_equal(kit_int(o, "control.event_streams"), 32);
    json_decref(o);
    for (int i = 1; i < 40; i++)
        close(fd[i]);
    /* Far more events than are kept, for a reader that does not read: it is told so at the end. */
    char reload[] = "{}";
    for (int i = 0; i < 6000; i++) {
        json_t *answer = kit_call(k, "POST", "/v1/reload", reload, NULL);
        json_decref(answer);
    }
    static char text[4 << 20];
    size_t have = 0;
    for (ssize_t n; have + 1 < sizeof text; have += (size_t)n) {
        struct pollfd p = {.fd = fd[0], .events = POLLIN};
        if (poll(&p, 1, 10000) != 1 ||
            (n = recv(fd[0], text + have, sizeof text - 1 - have, 0)) <= 0)
            break;
    }
    text[have] = '\0';
    close(fd[0]);
    assert_non_null(strstr(text, "this reader is too slow"));
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

static void a_gigabyte_is_not_taken(void **state) {
    struct kit *k = *state;
    static char answer[65536];
    kit_start(k);
    long before = memory_kib(k);
    const char *huge =
        "POST /v1/warm HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n{\"a\":\"";
    kit_raw(k, huge, strlen(huge), answer, sizeof answer, 3000);
    assert_non_null(strstr(answer, " 413 "));
    /* a gigabyte of chunks: cut off soon after the first megabyte */
    int fd = kit_connect(k);
    static char block[65536];
    memset(block, 'x', sizeof block);
    say(fd, "POST /v1/warm HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n40000000\r\n");
    uint64_t sent = 0;
    for (ssize_t n; sent < UINT64_C(1) << 30; sent += (uint64_t)n)
        if ((n = send(fd, block, sizeof block, MSG_NOSIGNAL)) <= 0)
            break;
    close(fd);
    assert_true(sent < 16 << 20);
    assert_true(memory_kib(k) - before < 16 << 10);
    /* nesting and numbers that a parser may choke on */
    char *deep = malloc(1 << 20);
    assert_non_null(deep);
    size_t at = (size_t)sprintf(deep, "{\"dataset\":");
    memset(deep + at, '[', 500000);
    deep[at + 500000] = '\0';
    int status;
    json_decref(kit_call(k, "POST", "/v1/pin", deep, &status));
    assert_int_equal(status, 400);
    free(deep);
    static const char *const odd[] = {
        "{\"dataset\":1}",
        "{\"dataset\":\"\\u0000\"}",
        "{\"dataset\":\"a\",\"bytes\":1e999}",
        "{\"dataset\":\"a\",\"bytes\":99999999999999999999}",
        "{\"dataset\":\"a\",\"bytes\":-1}",
        "\xff\xfe{}",
    };
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        json_decref(kit_call(k, "POST", "/v1/quota", odd[i], &status));
        assert_int_equal(status, 400);
    }
    static const char *const queries[] = {"/v1/shards", "/v1/shards?dataset=a&limit=0",
                                          "/v1/shards?dataset=a&limit=-1", "/v1/shards?dataset=%00",
                                          "/v1/events?since=x"};
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        json_decref(kit_call(k, "GET", queries[i], NULL, &status));
        assert_int_equal(status, 400);
    }
    kit_wait_status(k, "ok", 2000);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

/* CPU time of a daemon with a data set and nothing to do, at the default tick.
 */
static void idle_costs_nothing(void **state) {
    struct kit *k = *state;
    kit_pack(k, "wafers", SHARDS, SAMPLES, 1, 1, 0);
    kit_write_conf(k);
    char command[300];
    snprintf(command, sizeof command, "sed -i '/^tick/d; /log_level/d' %s", k->conf);
    assert_int_equal(system(command), 0);
    k->pid = kit_spawn(k, k->log, NULL);
    kit_wait_status(k, "ok", 10000);
    kit_until(k, "/v1/stats", "shards", SHARDS, 10000);
    kit_sleep(2000);
    uint64_t before = cpu_ns(k), began = kit_now();
    kit_sleep(5000);
    double part = (double)(cpu_ns(k) - before) / 1e6 / (double)(kit_now() - began);
    print_message("idle: %.4f%% of a core\n", part * 100);
    assert_true(part < IDLE_MOST);
    assert_int_equal(kit_stop(k, SIGTERM, 5000), 0);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        T(a_crowd_is_bounded),
        T(event_readers_are_bounded),
        T(a_gigabyte_is_not_taken),
        T(idle_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
