/*
 * A TCP proxy with faults, for tests: it stands between a client and a server on this machine.
 *
 * Happy path: proxy_start, a port to connect to; bytes pass both ways. proxy_set changes what
 * happens to connections, those that are open included, at once. One thread; every function may be
 * called from any.
 */
#ifndef WT_TESTS_SERVERS_PROXY_H
#define WT_TESTS_SERVERS_PROXY_H

#include <stdint.h>

enum proxy_mode {
    PROXY_PASS,
    PROXY_CUT,     /* value: bytes of answers from now on, after which a connection is cut */
    PROXY_DELAY,   /* value: milliseconds that answers are held back */
    PROXY_DRIBBLE, /* answers go one byte at a time, every millisecond */
    PROXY_MUTE,    /* takes all, answers nothing */
    PROXY_REFUSE,  /* accepts, and closes at once */
};

struct proxy;
/* In front of 127.0.0.1:port. NULL: no socket, no thread. */
struct proxy *proxy_start(uint16_t port);
uint16_t proxy_port(const struct proxy *p);
void proxy_set(struct proxy *p, enum proxy_mode mode, uint64_t value);
void proxy_stop(struct proxy *p); /* NULL is fine */

#endif
