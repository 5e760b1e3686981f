/* What a simulation found, beside what other policies reach on the same requests; as a table or as
 * JSON. Ratios are of bytes that left cold to those of the bound (offline.h). */
#ifndef WT_TOOLS_SIM_RESULT_H
#define WT_TOOLS_SIM_RESULT_H

#include "tools/sim/run.h"

#include <stdio.h>

struct wt_sim_result {
    struct wt_world_count count;
    struct wt_foresight_stats foresight; /* of the whole run */
    struct wt_offline other[WT_OFFLINE_COUNT];
    uint64_t cache, bytes; /* above cold; of all shards */
    uint32_t jobs, shards, n_tiers;
    uint64_t requests; /* with those of the warm-up */
    double bandwidth, seconds;
    bool churns;   /* churn means something: jobs read in epochs */
    double epochs; /* counted ones, of all jobs together */
};

double wt_sim_ratio(const struct wt_sim_result *r);
/* Bytes that were dropped for others, in caches an epoch. */
double wt_sim_churn(const struct wt_sim_result *r);
void wt_sim_print(const struct wt_sim_result *r, FILE *out);
int wt_sim_print_json(const struct wt_sim_result *r, FILE *out, struct wt_err *err);

#endif
