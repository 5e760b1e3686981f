/*
 * A small server that speaks the daemon's control protocol to loaders on a Unix socket, so that
 * every answer can be chosen: also the ones that a real daemon does not give. (The real one is in
 * tests/integration/daemon and tests/servers.)
 */
#ifndef CONTROL_KIT_H
#define CONTROL_KIT_H

#include "loader_kit.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

enum control_mode {
    CONTROL_NORMAL,
    CONTROL_FORGETFUL, /* does not know the job in every third report */
    CONTROL_SILENT,    /* never answers */
    CONTROL_NONSENSE   /* answers what no daemon would */
};

struct control {
    int fd;
    pthread_t thread;
    _Atomic bool stop;
    enum control_mode mode;
    char path[108];
    pthread_mutex_t mutex; /* guards what follows */
    unsigned registered, reports, deleted, bad;
    uint64_t ranges, bytes, next;
    unsigned bad_samples;
    char bad_key[96];
    json_t *job;
    unsigned mask; /* what residency says of every shard: bits of cold, hot, warm (in this order) */
    const bool *hot; /* [shards], NULL: these are in hot besides */
    /* What `moves` of an answer is, for the shards of `next`; NULL: none. With the mutex held. */
    json_t *(*moves)(void *arg, const json_t *next);
    void *arg;
};

/* Begins to listen, and names its socket in the kit's configuration. */
void control_start(struct control *s, const struct kit *k, enum control_mode mode, unsigned mask);
void control_stop(struct control *s);
unsigned control_reports(struct control *s);
void control_wait(struct control *s, unsigned reports);

#endif
