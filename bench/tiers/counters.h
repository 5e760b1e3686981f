/*
 * The servers' own counters, against which a benchmark holds the bytes that it believes to have
 * moved: an OSD's by its admin socket, a Redis' by INFO.
 */
#ifndef WT_BENCH_TIERS_COUNTERS_H
#define WT_BENCH_TIERS_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

/* name: "op_r_out_bytes" (to clients), "op_w_in_bytes" (from clients). */
uint64_t bench_osd_counter(const char *admin_socket, const char *name);
/* name: "total_net_output_bytes", "total_net_input_bytes", "used_memory". */
uint64_t bench_redis_counter(const char *socket, const char *name);
/* Prints both and the ratio; false: they differ by more than 2%. */
bool bench_bytes_agree(const char *what, double ours, double server);

#endif
