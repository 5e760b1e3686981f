/*
 * What the fault tests on Ceph share: a tier on a pool of the test's own, the cluster's daemons to
 * kill, stop and start again (tests/servers/ceph), the cluster itself beside the tier, and clocks.
 */
#ifndef WT_TESTS_FAULT_RADOS_UTIL_H
#define WT_TESTS_FAULT_RADOS_UTIL_H

#include "tiers/sync.h"

#include <rados/librados.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The deadline of each request, and how much later its end may come (the target is one second). */
enum { FAULT_DEADLINE_MS = 1500, FAULT_LATE_MS = 1000, FAULT_BACK_MS = 90000 };

struct fault {
    struct wt_sync *sync;
    struct wt_tier *tier;
    struct wt_tier_opts opts;
    char pool[64], conf[300];
    char last_error[WT_ERR_TEXT]; /* of fault_do */
    rados_t ceph;                 /* client.admin */
    rados_ioctx_t io;
};

/* cmocka's set-up and tear-down of one test: brings every daemon up, makes and removes the pool. */
int fault_setup(void **state);
int fault_teardown(void **state);
void fault_open(struct fault *f);
void fault_close(struct fault *f);
void fault_connect(struct fault *f); /* ceph, io */
void fault_disconnect(struct fault *f);

/* tests/servers/ceph VERB DIR NAME. */
void fault_daemon(const char *verb, const char *name);
void fault_signal(const char *name, int signal);
/* JSON of a mon command; fails the test when refused. out (may be NULL) is free()d by the caller.
 */
void fault_mon(struct fault *f, char **out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Each checks that its end came by the deadline. */
int fault_do(struct fault *f, struct wt_req *req);
int fault_get(struct fault *f, const char *key, uint64_t off, void *buf, size_t len, size_t *got);
int fault_stat(struct fault *f, const char *key);
int fault_put(struct fault *f, const char *key, const void *data, size_t len);
int fault_remove(struct fault *f, const char *key);
/* Waits until a STAT of key gives rc; fails the test after FAULT_BACK_MS. */
void fault_until_stat(struct fault *f, const char *key, int rc);
/* Objects in the pool, as RADOS sees them. */
unsigned fault_count(struct fault *f);
/* Name of the first part of key. */
void fault_part(struct fault *f, const char *key, char out[300]);
/* rc must be 0; says the last error where it is not. */
void fault_well(const struct fault *f, int rc);
uint8_t *fault_bytes(size_t len, unsigned seed);

#endif
