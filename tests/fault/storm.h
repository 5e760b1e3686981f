/*
 * What the parts of the storm share: a loader and a daemon on three real tiers (RADOS, CephFS,
 * Redis behind a proxy), and faults that come over these, one after the other, in an order that a
 * seed gives.
 *
 * storm.c runs the sequence and judges; storm_setup.c sets up; storm_faults.c has the faults;
 * storm_reader.c the loader, which goes in step with one that reads the same data set from a plain
 * folder. crash_servers.c does other things to the same daemon, loaders and tiers.
 */
#ifndef WT_TESTS_FAULT_STORM_H
#define WT_TESTS_FAULT_STORM_H

#include "rados_util.h"
#include "tests/integration/daemon/kit.h"
#include "tests/servers/proxy.h"

#include <wafertier/loader.h>

#include <pthread.h>
#include <stdatomic.h>

#define STORM_SET "storm"

enum { STORM_KEY = 300 };

/* Two loaders in step: every batch of the one must be that of the other. */
struct storm_reader {
    wl_loader *real, *plain;
    pthread_t thread;
    bool started;
    atomic_bool stop; /* at the end of the epoch */
    atomic_bool ended;
    atomic_ullong batches, epochs;
    uint64_t *id; /* of the samples that came in this epoch */
    uint64_t samples, came;
    uint64_t longest_ms; /* between two batches */
    char failure[800];   /* "": none */
};

/* Opens both and starts to read, epoch after epoch; fails the test where that does not work. */
void storm_reader_start(struct storm_reader *r, const char *conf, const char *plain_conf,
                        uint64_t seed);
/* Reads on to the end of the epoch and closes both. */
void storm_reader_stop(struct storm_reader *r);
/* Waits for n more batches; fails the test when they do not come, or are not right. */
void storm_reader_advance(struct storm_reader *r, unsigned n, unsigned ms);

enum storm_group { STORM_CEPH, STORM_REDIS, STORM_GROUPS };

struct storm {
    struct kit *kit;     /* the daemon, and a folder */
    struct fault ceph;   /* the pool of cold, the cluster's administrator */
    char redis[128];     /* folder of its server */
    struct proxy *proxy; /* in front of it */
    char warm[200];      /* root of the warm tier */
    char loader_conf[200], plain_conf[200];
    char plain[200];     /* the same data set in a folder */
    char mount_dir[120]; /* where CephFS is mounted */
    uint64_t random;
    struct storm_reader reader, second; /* second: of crash_servers.c alone */
    uint64_t slowest_ms;                /* answer of the daemon */
    bool well;                          /* the test came to its end */

    /* What the fault on Ceph has to put back. */
    pid_t fuse_stopped; /* 0: it is not */
    char key[STORM_KEY], object[STORM_KEY];
    char *saved;
    size_t saved_len;
};

struct storm_fault {
    const char *name;
    enum storm_group group;
    void (*begin)(struct storm *s, const struct storm_fault *f);
    void (*end)(struct storm *s, const struct storm_fault *f); /* NULL: nothing to put back */
    const char *what;                                          /* daemon, command... */
    const char *undo;
    int number; /* mode of the proxy */
    bool alone; /* ends before the next one begins */
};
extern const struct storm_fault storm_faults[];
extern const size_t storm_n_faults;

/* cmocka's: *state is a struct storm. */
int storm_setup(void **state);
int storm_teardown(void **state);
void storm_start(struct storm *s); /* the servers */
void storm_write_confs(struct storm *s, const char *lock_ttl);
void storm_make_data(const struct storm *s);

uint64_t storm_random(struct storm *s, uint64_t below);
/* From the environment. */
uint64_t storm_number(const char *name, uint64_t otherwise);
/* The shell, bounded by a minute; fails the test where it fails. */
void storm_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* tests/servers/redis VERB DIR ARGS. */
void storm_redis(const struct storm *s, const char *verb, const char *args);

#endif
