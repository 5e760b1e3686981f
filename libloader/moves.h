/*
 * Copies that the daemon said are under way, and whether to wait for one.
 *
 * Happy path: the reporter tells what an answer says; a fetch that would read a tier below asks,
 * and where the copy ends before its own read would, it looks for it then. Failures: an answer may
 * be old, wrong or a lie: a wait is never longer than the own read would have taken, and a copy
 * that was not found is forgotten.
 */
#ifndef WT_LOADER_MOVES_H
#define WT_LOADER_MOVES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { WT_COMING_MAX = 256 };

struct wt_coming {
    uint64_t shard;
    unsigned tier;
    uint64_t end_ns; /* when it should be there */
};

struct wt_moves {
    pthread_mutex_t mutex;
    unsigned n, next; /* next: the one that a further one takes the place of */
    struct wt_coming row[WT_COMING_MAX];
};

void wt_moves_init(struct wt_moves *m);
void wt_moves_free(struct wt_moves *m);
/* All below: any thread. */
void wt_moves_tell(struct wt_moves *m, const struct wt_coming *c);
void wt_moves_forget(struct wt_moves *m, uint64_t shard);
bool wt_moves_find(struct wt_moves *m, uint64_t shard, struct wt_coming *out);

/* Is the copy there, and read, before the own read would end? own_us, then_us: what reading takes
 * now and from the copy. *look_ns: when to look for it, *until_ns: from when on it is too late. */
bool wt_coming_sooner(const struct wt_coming *c, uint64_t now_ns, double own_us, double then_us,
                      uint64_t *look_ns, uint64_t *until_ns);

#endif
