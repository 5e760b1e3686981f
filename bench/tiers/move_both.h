/*
 * The limit of a move whose two tiers share a machine: a bare loop that reads and writes the very
 * bytes that a move does, with nothing of ours in it. Threads by the number of parts in flight each
 * take the next part of the objects under way, read it from the source and write it to the
 * destination; whoever writes an object's last part publishes it. No sums, no hash, no folder
 * synced.
 */
#ifndef WT_BENCH_TIERS_MOVE_BOTH_H
#define WT_BENCH_TIERS_MOVE_BOTH_H

#include "bench/tiers/move_limit.h"

/* One source and one destination are set. */
struct both_ends {
    struct both_pool *from_pool; /* objects of its own, one for each part */
    const char *from_folder;     /* a file: tier's objects, by their keys */
    const char *to_folder;       /* a temporary, pwrite(2) of parts, fsync, rename */
    const char *to_socket;       /* Redis: values of 1 MiB - 4 KiB, a connection for each thread */
};

/* Connects by librados and writes the objects. */
struct both_pool *both_pool_open(const struct limit_data *d, const char *conf, const char *pool);
void both_pool_close(struct both_pool *p);

/* Moves all objects once; seconds. What it wrote is removed again, outside of the time. */
double both_run(const struct limit_data *d, const struct both_ends *ends);

#endif
