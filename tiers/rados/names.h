/*
 * A set of names, for a list that tells each folder once. Bounded: a folder with more sub-folders
 * than RADOS_NAMES_MAX is refused rather than told twice.
 */
#ifndef WT_TIERS_RADOS_NAMES_H
#define WT_TIERS_RADOS_NAMES_H

#include <stddef.h>
#include <stdint.h>

enum { RADOS_NAMES_MAX = 1 << 20 };

struct rados_names { /* zeroed: empty */
    uint64_t *slot;  /* hashes of 64 bits, 0: free */
    size_t cap, count;
};

/* 1: it was not there and is now; 0: it was; WT_ERANGE: too many; WT_ENOMEM. Two names of one hash
 * (one in 10^7 for a full set) are taken for one. */
int rados_names_add(struct rados_names *set, const char *name, size_t len);
void rados_names_free(struct rados_names *set);

#endif
