/*
 * The loader under measurement, as a program uses it: through its public functions alone.
 *
 * A measured run is one epoch, from rest to rest: the loader has filled its slots and the windows
 * behind them when the clock starts, and again when it stops. So exactly one epoch's work lies
 * between, whatever was prepared ahead.
 */
#ifndef WT_BENCH_OURS_H
#define WT_BENCH_OURS_H

#include "bench/loader/set.h"

struct ours {
    const struct set *set;
    wl_loader *l;
    wl_info info;
    uint64_t epoch, seed; /* epoch: the next one */
    unsigned slots;
};

struct ours_opts {
    const char *folder, *dataset; /* a loader.conf is written into the folder */
    unsigned threads, slots;
    uint64_t batch;
    int verify; /* verify_every_read */
};

void ours_open(struct ours *o, const struct set *s, const struct ours_opts *opts);
void ours_close(struct ours *o);
/* One epoch in which every row is compared with the data set; then rest. */
void ours_check_epoch(struct ours *o);
void ours_epoch(struct ours *o);
/* One epoch without rest. at[steps]: when each batch came (seconds), NULL: not wanted. work:
 * seconds that the consumer keeps each batch. Gives the seconds spent in wl_next. */
double ours_consume(struct ours *o, double *at, double work);

#endif
