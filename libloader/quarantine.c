/* The list of bad samples; see quarantine.h. A list that is full keeps what came first. */
#include "libloader/quarantine.h"

#include "core/mem.h"
#include "libloader/internal.h"

#include <stdlib.h>
#include <string.h>

struct wt_quarantine *wt_quarantine_new(void) {
    struct wt_quarantine *q = wt_calloc(1, sizeof *q);
    if (q)
        pthread_mutex_init(&q->mutex, NULL);
    return q;
}

void wt_quarantine_free(struct wt_quarantine *q) {
    if (!q)
        return;
    pthread_mutex_destroy(&q->mutex);
    free(q);
}

static void copy_text(char *to, size_t size, const char *from) {
    size_t n = strnlen(from, size - 1);
    memcpy(to, from, n);
    to[n] = '\0';
}

void wt_quarantine_add(struct wt_quarantine *q, const char *shard, const char *key,
                       uint64_t epoch) {
    pthread_mutex_lock(&q->mutex);
    wl_bad_sample *s = q->list, *end = q->list + q->n;
    while (s < end && (strcmp(s->key, key) != 0 || strcmp(s->shard, shard) != 0))
        s++;
    if (s < end) {
        s->times++;
    } else if (q->n < WT_QUARANTINE_MAX) {
        q->n++;
        copy_text(s->shard, sizeof s->shard, shard);
        copy_text(s->key, sizeof s->key, key);
        s->epoch = epoch;
        s->times = 1;
    }
    pthread_mutex_unlock(&q->mutex);
}

size_t wt_quarantine_list(struct wt_quarantine *q, size_t first, wl_bad_sample *list, size_t n) {
    pthread_mutex_lock(&q->mutex);
    size_t all = q->n, left = first < all ? all - first : 0;
    if (list && left && n)
        memcpy(list, q->list + first, (n < left ? n : left) * sizeof *list);
    pthread_mutex_unlock(&q->mutex);
    return all;
}

size_t wl_quarantine(const wl_loader *l, wl_bad_sample *list, size_t n) {
    return l ? wt_quarantine_list(l->quarantine, 0, list, n) : 0;
}
