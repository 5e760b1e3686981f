/* Durations; see times.h. */
#include "times.h"

#include "../measure.h"
#include "core/mem.h"

#include <stdlib.h>
#include <time.h>

double times_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void times_add(struct times *t, double seconds) {
    if (wt_grow(&t->s, &t->cap, t->n + 1, sizeof *t->s) < 0)
        bench_die("no memory for times");
    t->s[t->n++] = seconds;
}

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double times_part(struct times *t, double part) {
    if (t->n == 0)
        return 0;
    qsort(t->s, t->n, sizeof *t->s, by_time);
    size_t i = (size_t)(part * (double)t->n);
    return t->s[i < t->n ? i : t->n - 1];
}

void times_free(struct times *t) {
    free(t->s);
    *t = (struct times){0};
}
