/* A small table under a lock, and the arithmetic of waiting; see moves.h. */
#include "libloader/moves.h"

#include <math.h>
#include <string.h>

void wt_moves_init(struct wt_moves *m) {
    m->n = m->next = 0;
    pthread_mutex_init(&m->mutex, NULL);
}

void wt_moves_free(struct wt_moves *m) {
    pthread_mutex_destroy(&m->mutex);
}

static struct wt_coming *find(struct wt_moves *m, uint64_t shard) {
    for (unsigned i = 0; i < m->n; i++)
        if (m->row[i].shard == shard)
            return &m->row[i];
    return NULL;
}

void wt_moves_tell(struct wt_moves *m, const struct wt_coming *c) {
    pthread_mutex_lock(&m->mutex);
    struct wt_coming *at = find(m, c->shard);
    if (!at && m->n < WT_COMING_MAX) {
        at = &m->row[m->n++];
    } else if (!at) {
        at = &m->row[m->next];
        m->next = (m->next + 1) % WT_COMING_MAX;
    }
    *at = *c;
    pthread_mutex_unlock(&m->mutex);
}

void wt_moves_forget(struct wt_moves *m, uint64_t shard) {
    pthread_mutex_lock(&m->mutex);
    struct wt_coming *at = find(m, shard);
    if (at)
        *at = m->row[--m->n];
    if (m->next >= m->n)
        m->next = 0;
    pthread_mutex_unlock(&m->mutex);
}

bool wt_moves_find(struct wt_moves *m, uint64_t shard, struct wt_coming *out) {
    pthread_mutex_lock(&m->mutex);
    const struct wt_coming *at = find(m, shard);
    if (at)
        *out = *at;
    pthread_mutex_unlock(&m->mutex);
    return at != NULL;
}

bool wt_coming_sooner(const struct wt_coming *c, uint64_t now_ns, double own_us, double then_us,
                      uint64_t *look_ns, uint64_t *until_ns) {
    double spare_us = own_us - then_us; /* infinite, or not a number: a tier is down */
    double left_us = c->end_ns > now_ns ? (double)(c->end_ns - now_ns) / 1000 : 0;
    if (!isfinite(spare_us) || left_us >= spare_us || spare_us > 1e12)
        return false;
    *look_ns = c->end_ns > now_ns ? c->end_ns : now_ns;
    *until_ns = now_ns + (uint64_t)(spare_us * 1000);
    return true;
}
