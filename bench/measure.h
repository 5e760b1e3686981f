/*
 * How benchmarks measure: time, CPU time, page faults and cycles of this process, and the median of
 * a row of ratios with its 95% interval.
 *
 * Cycles come from the processor's counter (perf_event_open) where the machine lets us have it;
 * else they are CPU time times the rate of the time stamp counter, and `bench_cycles_source` says
 * so.
 */
#ifndef WT_BENCH_MEASURE_H
#define WT_BENCH_MEASURE_H

#include <stddef.h>
#include <stdint.h>

struct bench_meter {
    int fd;     /* of the cycle counter; -1: none */
    double tsc; /* ticks a second; 0: no time stamp counter */
};
void bench_meter_open(struct bench_meter *m); /* before any thread is started */
const char *bench_cycles_source(const struct bench_meter *m);

struct bench_use { /* since some moment, or between two */
    double wall, cpu;
    double faults, cycles;
};
struct bench_use bench_now(const struct bench_meter *m);
struct bench_use bench_since(const struct bench_meter *m, const struct bench_use *begin);

/* Sorts x[n]. The interval is of order statistics: it holds the true median with 95% or more; for
 * n < 6 it is all of x. */
struct bench_middle {
    double median, low, high;
};
struct bench_middle bench_middle(double *x, size_t n);

_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
