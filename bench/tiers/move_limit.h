/*
 * The limits of a move: what its two tiers give by themselves, the same bytes, as many requests in
 * flight. The source is read through its tier (bench_cold, bench_warm and bench_hot hold these
 * against bare readers); the destination is written without any tier, by the plainest means.
 */
#ifndef WT_BENCH_TIERS_MOVE_LIMIT_H
#define WT_BENCH_TIERS_MOVE_LIMIT_H

#include "tiers/tier.h"

struct limit_data {
    const char *(*key)(unsigned i); /* of object i */
    unsigned n;                     /* objects */
    size_t size;                    /* of each: whole parts, `flight` of them at most */
    uint8_t *data;                  /* `flight` parts: written to and read from */
    unsigned flight;                /* parts read at a time */
    unsigned writers;               /* objects written at a time */
};

/* Each reads or writes all objects once; seconds. */
double limit_read_tier(const struct limit_data *d, uv_loop_t *loop, struct wt_tier *tier);
/* Values of 1 MiB - 4 KiB by SET over one connection, a whole object's in flight; removed again. */
double limit_write_redis(const struct limit_data *d, const char *socket);
/* `writers` threads: a temporary, write(2) of parts, fsync, rename; removed again. */
double limit_write_files(const struct limit_data *d, const char *folder);
/* The objects of a file: tier leave the page cache. */
void limit_uncache(const struct limit_data *d, const char *folder);

/* What move_both.c needs of them. */
double limit_now(void); /* seconds */
int limit_connect(const char *socket);
void limit_set_part(int fd, unsigned object, unsigned part, uint8_t *data);
void limit_flush(const char *socket); /* everything in it is removed */

#endif
