/*
 * Durations, all of them kept, and their percentiles. One thread at a time.
 */
#ifndef WT_BENCH_DAEMON_TIMES_H
#define WT_BENCH_DAEMON_TIMES_H

#include <stddef.h>

struct times {
    double *s;
    size_t n, cap;
};
double times_now(void); /* seconds of a clock that nobody sets */
void times_add(struct times *t, double seconds);
/* What `part` (0 to 1) of them do not exceed; 0 when there is none. Sorts. */
double times_part(struct times *t, double part);
void times_free(struct times *t);

#endif
