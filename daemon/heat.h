/*
 * Heat of a shard: bytes read ÷ its size, halved every half-life. One whole read adds 1.
 *
 * Heat and the second it was last brought up to date are kept with each shard and decayed when
 * looked at. Pure; a clock that goes backwards decays nothing.
 */
#ifndef WT_DAEMON_HEAT_H
#define WT_DAEMON_HEAT_H

#include <stdint.h>

/* Heat below this is none: it would only keep entries in the snapshot. */
#define WT_HEAT_FLOOR 1e-6

double wt_heat_at(float heat, uint32_t then, uint32_t now, double half_life_s);
/* Adds a read of `bytes` of `size`. */
void wt_heat_add(float *heat, uint32_t *then, uint32_t now, double half_life_s, uint64_t bytes,
                 uint64_t size);
/* The half-life that fits what is read: at least `least_s`, and long enough that each byte of the
 * `known` ones is read several times in it at `rate` bytes a second; else heat would tell what was
 * read last, not what is read often. */
double wt_heat_half_life(double least_s, uint64_t known, double rate);

#endif
