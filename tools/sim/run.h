/*
 * What can be simulated: a mix of jobs whose order is known, or a trace of which nothing is.
 * Both give the list of requests as they were made, for the policies that are compared.
 */
#ifndef WT_TOOLS_SIM_RUN_H
#define WT_TOOLS_SIM_RUN_H

#include "daemon/policy/offline.h"
#include "tools/sim/world.h"

enum wt_sim_sizes { WT_SIM_EVEN, WT_SIM_LOGNORMAL };
enum wt_sim_offset { WT_SIM_RANDOM, WT_SIM_NONE };

struct wt_sim_mix {
    uint32_t jobs, shards;
    uint64_t epochs, seed, mean; /* mean: bytes of a shard */
    int sizes, offset;           /* enums above */
    uint32_t prefetch;           /* reads that a job has begun before it needs them */
    double epoch_s;
};

struct wt_sim_load { /* objects with their sizes, and requests with their times */
    uint64_t *size;
    uint32_t objects;
    uint32_t *object;
    double *time;
    uint64_t n, bytes; /* bytes: of all objects */
    size_t cap, time_cap, size_cap;
    uint64_t from; /* requests before are not counted */
};
void wt_sim_load_free(struct wt_sim_load *load);

int wt_sim_mix_sizes(const struct wt_sim_mix *mix, struct wt_sim_load *load, struct wt_err *err);
/* The order in which the jobs of a mix ask when nobody ever waits. */
int wt_sim_mix_requests(const struct wt_sim_mix *mix, struct wt_sim_load *load, struct wt_err *err);
double wt_sim_mix_seconds(const struct wt_sim_mix *mix, const struct wt_sim_load *load);
/* Runs the world; load's requests are replaced by those that were made. */
int wt_sim_run_mix(const struct wt_sim_mix *mix, struct wt_world *w, struct wt_sim_load *load,
                   struct wt_err *err);

/* "time object size" a line (# begins a comment), or records of 24 bytes {u32 time, u64 object, u32
 * size, i64 next}: `binary`. Errors name the line or the record. */
int wt_sim_load_trace(const char *path, bool binary, struct wt_sim_load *load, struct wt_err *err);
int wt_sim_run_trace(struct wt_world *w, const struct wt_sim_load *load, struct wt_err *err);

#endif
