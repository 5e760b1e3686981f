/* Decayed heat; see heat.h. */
#include "daemon/heat.h"

#include <math.h>

/* A report may claim more than a shard has (several ranks, retries), but not without end. */
#define READS_MAX 1e6
#define ROUNDS    8.0            /* times that all is read in a half-life */
#define LONGEST_S (90.0 * 86400) /* half-life */

double wt_heat_at(float heat, uint32_t then, uint32_t now, double half_life_s) {
    if (now <= then || heat <= 0)
        return heat > 0 ? (double)heat : 0;
    double h = (double)heat * exp2(-(double)(now - then) / half_life_s);
    return h < WT_HEAT_FLOOR ? 0 : h;
}

void wt_heat_add(float *heat, uint32_t *then, uint32_t now, double half_life_s, uint64_t bytes,
                 uint64_t size) {
    double reads = size ? (double)bytes / (double)size : 0;
    if (reads > READS_MAX)
        reads = READS_MAX;
    *heat = (float)(wt_heat_at(*heat, *then, now, half_life_s) + reads);
    if (now > *then)
        *then = now;
}

double wt_heat_half_life(double least_s, uint64_t known, double rate) {
    double s = rate > 0 ? ROUNDS * (double)known / rate : least_s;
    s = s < LONGEST_S ? s : LONGEST_S;
    return s > least_s ? s : least_s > 0 ? least_s : 1;
}
