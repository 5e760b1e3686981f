/*
 * What bench_daemon starts the daemon on: a data set as it lies in a cold tier (manifest and index,
 * no shards), a state in which every shard has heat and a part a warm copy, and these copies (files
 * of the right size without content).
 */
#ifndef WT_BENCH_DAEMON_MADE_H
#define WT_BENCH_DAEMON_MADE_H

#include <stdbool.h>
#include <stdint.h>

enum { MADE_SAMPLES = 100 /* of a shard */, MADE_WARM = 4 /* of so many shards one is warm */ };

struct made {
    char folder[200];
    uint64_t shards;
};
bool made_is_there(const struct made *b);
void made_make(struct made *b);
void made_remove(const struct made *b); /* the folder stays, empty */

#endif
