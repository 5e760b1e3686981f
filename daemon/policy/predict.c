/* A small world for a prediction; see predict.h. */
#include "daemon/policy/predict.h"

#include "core/mem.h"
#include "core/plan.h"
#include "daemon/policy/offline.h"

#include <stdlib.h>

enum { OBJECTS = 200, ROUNDS = 6, UNIT = 1 << 20, FASTEST = 8 };

struct small { /* OBJECTS of each data set; jobs ask in turn, the faster ones more often */
    uint32_t n;
    double due[WT_PREDICT_JOBS], step[WT_PREDICT_JOBS];
    uint32_t first[WT_PREDICT_JOBS], done[WT_PREDICT_JOBS]; /* object of its set; requests */
    uint64_t set_bytes[WT_PREDICT_JOBS];
    uint32_t sets;
    struct wt_requests q;
};

static uint32_t set_of(struct small *s, const struct wt_predict_job *job, uint32_t j) {
    for (uint32_t k = 0; k < j; k++)
        if (job[k].set == job[j].set)
            return s->first[k] / OBJECTS;
    s->set_bytes[s->sets] = job[j].bytes;
    return s->sets++;
}

static double typical(const struct wt_predict_job *job, uint32_t n) {
    double sum = 0;
    uint32_t known = 0;
    for (uint32_t j = 0; j < n; j++) {
        sum += job[j].epoch_s > 0 ? job[j].epoch_s : 0;
        known += job[j].epoch_s > 0;
    }
    return known ? sum / known : 1;
}

static void prepare(struct small *s, const struct wt_predict_job *job, uint32_t n) {
    double usual = typical(job, n);
    s->n = n;
    for (uint32_t j = 0; j < n; j++) {
        double epoch = job[j].epoch_s > 0 ? job[j].epoch_s / usual : 1;
        s->step[j] = epoch < 1.0 / FASTEST ? 1.0 / FASTEST : epoch > FASTEST ? FASTEST : epoch;
        s->due[j] = OBJECTS * s->step[j] * 0.618 * j; /* they are not in step */
        s->first[j] = set_of(s, job, j) * OBJECTS;
    }
}

static uint32_t ask(struct small *s, uint32_t j) {
    uint32_t i = s->done[j]++;
    struct wt_perm p = wt_perm_make(OBJECTS, j, i / OBJECTS, 1);
    s->due[j] += s->step[j];
    return s->first[j] + (uint32_t)wt_perm_at(&p, i % OBJECTS);
}

static double play(struct small *s, uint64_t capacity, uint64_t *size, uint32_t *object) {
    uint64_t total = 0;
    for (uint32_t k = 0; k < s->sets; k++)
        total += s->set_bytes[k];
    double unit = (double)UINT64_C(1) * UNIT / ((double)total + 1); /* of all sets */
    for (uint32_t k = 0; k < s->sets * OBJECTS; k++)
        size[k] = 1 + (uint64_t)((double)s->set_bytes[k / OBJECTS] * unit * 1000 / OBJECTS);
    uint64_t n = (uint64_t)s->n * OBJECTS * ROUNDS;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t first = 0;
        for (uint32_t j = 1; j < s->n; j++)
            first = s->due[j] < s->due[first] ? j : first;
        object[i] = ask(s, first);
    }
    s->q = (struct wt_requests){
        .object = object, .n = n, .size = size, .objects = s->sets * OBJECTS, .from = n / 2};
    struct wt_offline out;
    struct wt_err err;
    double cache = (double)capacity * unit * 1000;
    if (wt_offline_run(WT_BOUND, &s->q, cache < 1e18 ? (uint64_t)cache : UINT64_C(1) << 60, &out,
                       &err) < 0)
        return 1;
    return out.bytes ? 1 - (double)out.hit_bytes / (double)out.bytes : 1;
}

double wt_predict(const struct wt_predict_job *job, uint32_t n, uint64_t capacity) {
    struct small s = {0};
    if (n == 0)
        return 1;
    n = n < WT_PREDICT_JOBS ? n : WT_PREDICT_JOBS;
    if (n == 1)
        return capacity >= job->bytes ? 0 : 1 - (double)capacity / (double)job->bytes;
    prepare(&s, job, n);
    uint64_t *size = wt_calloc((size_t)n * OBJECTS, sizeof *size);
    uint32_t *object = wt_calloc((size_t)n * OBJECTS * ROUNDS, sizeof *object);
    double cold = size && object ? play(&s, capacity, size, object) : 1;
    free(size);
    free(object);
    return cold;
}
