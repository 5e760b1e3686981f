/* Clocks, counters and order statistics; see measure.h. A benchmark that cannot measure ends. */
#include "bench/measure.h"

#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void bench_die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static double clock_seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The time stamp counter runs at one rate whatever the processor does: measured over 50 ms. */
static double tsc_rate(void) {
#if defined(__x86_64__)
    double began = clock_seconds(CLOCK_MONOTONIC), now;
    uint64_t ticks = __builtin_ia32_rdtsc();
    do
        now = clock_seconds(CLOCK_MONOTONIC);
    while (now - began < 0.05);
    return (double)(__builtin_ia32_rdtsc() - ticks) / (now - began);
#else
    return 0;
#endif
}

static int open_counter(void) {
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_HW_CPU_CYCLES,
                                   .inherit = 1};
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

void bench_meter_open(struct bench_meter *m) {
    m->fd = open_counter();
    m->tsc = m->fd < 0 ? tsc_rate() : 0;
}

const char *bench_cycles_source(const struct bench_meter *m) {
    if (m->fd >= 0)
        return "cycles: the processor's counter";
    return m->tsc > 0 ? "cycles: CPU time x rate of the time stamp counter (no cycle counter here)"
                      : "cycles: not measured on this machine";
}

static double cycles(const struct bench_meter *m, double cpu) {
    uint64_t n;
    if (m->fd < 0)
        return cpu * m->tsc;
    if (read(m->fd, &n, sizeof n) != sizeof n)
        bench_die("the cycle counter cannot be read");
    return (double)n;
}

struct bench_use bench_now(const struct bench_meter *m) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    struct bench_use u = {.wall = clock_seconds(CLOCK_MONOTONIC),
                          .cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID),
                          .faults = (double)(usage.ru_minflt + usage.ru_majflt)};
    u.cycles = cycles(m, u.cpu);
    return u;
}

struct bench_use bench_since(const struct bench_meter *m, const struct bench_use *begin) {
    struct bench_use u = bench_now(m);
    u.wall -= begin->wall;
    u.cpu -= begin->cpu;
    u.faults -= begin->faults;
    u.cycles -= begin->cycles;
    return u;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How many values to leave out at each end: the number below the true median is binomial(n, 1/2).
 */
static size_t trim(size_t n) {
    double p = 1, tail = 0;
    for (size_t i = 0; i < n; i++)
        p /= 2;
    for (size_t k = 0; k < n / 2; k++) {
        tail += p;
        if (tail > 0.025)
            return k;
        p *= (double)(n - k) / (double)(k + 1);
    }
    return n / 2;
}

struct bench_middle bench_middle(double *x, size_t n) {
    if (n == 0)
        return (struct bench_middle){0};
    qsort(x, n, sizeof *x, by_value);
    size_t out = trim(n);
    out = out > 0 ? out - 1 : 0;
    return (struct bench_middle){(x[(n - 1) / 2] + x[n / 2]) / 2, x[out], x[n - 1 - out]};
}
