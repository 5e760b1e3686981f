/* A TCP proxy with faults; see proxy.h. One poll loop over pairs of sockets, a buffer for each way.
 */
#include "tests/servers/proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PAIRS_MAX = 32, BUFFER = 64 << 10 };

struct way { /* one direction */
    size_t from, len;
    uint64_t came_ms; /* when its bytes came */
    uint8_t data[BUFFER];
};

struct pair {
    int client, server; /* -1: free */
    struct way ask, answer;
    uint64_t answered; /* bytes, since `era` */
    unsigned era;
};

struct proxy {
    int listener;
    uint16_t port, target;
    pthread_t thread;
    atomic_bool stop;
    atomic_int mode;
    atomic_ullong value;
    atomic_uint era; /* counts proxy_set */
    struct pair pair[PAIRS_MAX];
};

static uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void drop_pair(struct pair *p) {
    if (p->client < 0)
        return;
    close(p->client);
    close(p->server);
    p->client = p->server = -1;
}

static struct sockaddr_in local(uint16_t port) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return in;
}

static void make_ready(int fd) {
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void accept_one(struct proxy *p) {
    int client = accept(p->listener, NULL, NULL);
    if (client < 0)
        return;
    struct pair *free_pair = NULL;
    for (int i = 0; i < PAIRS_MAX && !free_pair; i++)
        if (p->pair[i].client < 0)
            free_pair = &p->pair[i];
    struct sockaddr_in in = local(p->target);
    int server = -1;
    if (free_pair && p->mode != PROXY_REFUSE)
        server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0 || connect(server, (struct sockaddr *)&in, sizeof in) < 0) {
        close(client);
        if (server >= 0)
            close(server);
        return;
    }
    make_ready(client);
    make_ready(server);
    free_pair->client = client;
    free_pair->server = server;
    free_pair->answered = 0;
    free_pair->ask.len = free_pair->answer.len = 0;
}

/* false: the connection ended. */
static bool fill(int fd, struct way *w) {
    if (w->len)
        return true;
    ssize_t n = recv(fd, w->data, sizeof w->data, 0);
    if (n < 0)
        return errno == EAGAIN;
    w->from = 0;
    w->len = (size_t)n;
    w->came_ms = now_ms();
    return n > 0;
}

static bool drain(int fd, struct way *w, size_t limit) {
    size_t want = w->len < limit ? w->len : limit;
    if (!want)
        return true;
    ssize_t n = send(fd, w->data + w->from, want, MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN;
    w->from += (size_t)n;
    w->len -= (size_t)n;
    return true;
}

/* How many bytes of answers may go now. */
static size_t allowance(const struct proxy *p, const struct pair *q) {
    uint64_t value = p->value;
    switch ((enum proxy_mode)p->mode) {
    case PROXY_CUT:
        return q->answered < value ? (size_t)(value - q->answered) : 0;
    case PROXY_DELAY:
        return now_ms() >= q->answer.came_ms + value ? SIZE_MAX : 0;
    case PROXY_DRIBBLE:
        return 1;
    case PROXY_MUTE:
    case PROXY_REFUSE:
        return 0;
    default:
        return SIZE_MAX;
    }
}

static bool move(struct proxy *p, struct pair *q) {
    if (q->era != p->era)
        q->answered = 0;
    q->era = p->era;
    if (!fill(q->client, &q->ask) || !drain(q->server, &q->ask, SIZE_MAX) ||
        !fill(q->server, &q->answer))
        return false;
    size_t before = q->answer.len;
    if (!drain(q->client, &q->answer, allowance(p, q)))
        return false;
    q->answered += before - q->answer.len;
    if (p->mode == PROXY_MUTE)
        q->answer.len = 0;
    return !(p->mode == PROXY_CUT && q->answered >= p->value) && p->mode != PROXY_REFUSE;
}

static void *run(void *arg) {
    struct proxy *p = arg;
    while (!p->stop) {
        struct pollfd at[1 + 2 * PAIRS_MAX];
        nfds_t n = 0;
        at[n++] = (struct pollfd){.fd = p->listener, .events = POLLIN};
        bool held = false;
        for (int i = 0; i < PAIRS_MAX; i++) {
            const struct pair *q = &p->pair[i];
            if (q->client < 0)
                continue;
            bool blocked = q->answer.len && p->mode != PROXY_PASS && p->mode != PROXY_CUT;
            held |= blocked;
            at[n++] = (struct pollfd){.fd = q->client,
                                      .events = (short)((q->ask.len ? 0 : POLLIN) |
                                                        (q->answer.len && !blocked ? POLLOUT : 0))};
            at[n++] = (struct pollfd){
                .fd = q->server,
                .events = (short)((q->answer.len ? 0 : POLLIN) | (q->ask.len ? POLLOUT : 0))};
        }
        poll(at, n, held ? 1 : 20);
        if (at[0].revents & POLLIN)
            accept_one(p);
        for (int i = 0; i < PAIRS_MAX; i++)
            if (p->pair[i].client >= 0 && !move(p, &p->pair[i]))
                drop_pair(&p->pair[i]);
    }
    return NULL;
}

struct proxy *proxy_start(uint16_t port) {
    struct proxy *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    for (int i = 0; i < PAIRS_MAX; i++)
        p->pair[i].client = p->pair[i].server = -1;
    p->target = port;
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in in = local(0);
    socklen_t len = sizeof in;
    if (p->listener < 0 || bind(p->listener, (struct sockaddr *)&in, sizeof in) < 0 ||
        listen(p->listener, 16) < 0 || getsockname(p->listener, (struct sockaddr *)&in, &len) < 0 ||
        pthread_create(&p->thread, NULL, run, p) != 0) {
        if (p->listener >= 0)
            close(p->listener);
        free(p);
        return NULL;
    }
    p->port = ntohs(in.sin_port);
    return p;
}

uint16_t proxy_port(const struct proxy *p) {
    return p->port;
}

void proxy_set(struct proxy *p, enum proxy_mode mode, uint64_t value) {
    p->value = value;
    p->mode = (int)mode;
    p->era++;
}

void proxy_stop(struct proxy *p) {
    if (!p)
        return;
    p->stop = true;
    pthread_join(p->thread, NULL);
    for (int i = 0; i < PAIRS_MAX; i++)
        drop_pair(&p->pair[i]);
    close(p->listener);
    free(p);
}
