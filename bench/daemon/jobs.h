/*
 * Jobs that report to the daemon as loaders do: each reads the whole data set in an order of its
 * own in some hours, and tells every second what it read.
 *
 * Happy path: start registers them and reports from a thread of its own; stop ends the thread and
 * the jobs. Failures end the program.
 */
#ifndef WT_BENCH_DAEMON_JOBS_H
#define WT_BENCH_DAEMON_JOBS_H

#include <stdint.h>

struct jobs;
struct jobs *jobs_start(const char *address, uint64_t shards, unsigned n);
struct jobs_result {
    uint64_t reports, reads;
    double p50_ms, p99_ms, max_ms; /* of an answer to a report */
};
void jobs_stop(struct jobs *jobs, struct jobs_result *out);

#endif
