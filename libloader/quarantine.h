/*
 * The samples that were found bad in their cold copy: each once, with how often and when, for
 * wl_quarantine and the daemon. Bounded; what does not fit is counted alone.
 */
#ifndef WT_LOADER_QUARANTINE_H
#define WT_LOADER_QUARANTINE_H

#include <wafertier/loader.h>

#include <pthread.h>

enum { WT_QUARANTINE_MAX = 256 };

struct wt_quarantine {
    pthread_mutex_t mutex;
    size_t n;
    wl_bad_sample list[WT_QUARANTINE_MAX];
};

struct wt_quarantine *wt_quarantine_new(void); /* NULL: no memory */
void wt_quarantine_free(struct wt_quarantine *q);
/* key "": all samples of the shard, whose index is damaged. Any thread. */
void wt_quarantine_add(struct wt_quarantine *q, const char *shard, const char *key, uint64_t epoch);
/* Copies those from `first` on, at most n; gives how many there are in all. Any thread. */
size_t wt_quarantine_list(struct wt_quarantine *q, size_t first, wl_bad_sample *list, size_t n);

#endif
