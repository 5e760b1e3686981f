/*
 * What the optimum would read from cold for the jobs of now: a small world is played through.
 * One job: what does not fit. Several: objects in orders of their own, with the jobs' relative
 * speeds and the data sets' relative sizes, against the offline bound. Takes a few milliseconds;
 * good to about 2%. Failures: no memory, then everything is predicted to be read from cold.
 */
#ifndef WT_DAEMON_POLICY_PREDICT_H
#define WT_DAEMON_POLICY_PREDICT_H

#include <stdint.h>

enum { WT_PREDICT_JOBS = 16 }; /* more of them change little */

struct wt_predict_job {
    uint32_t set;   /* number of its data set: jobs with the same one share it */
    uint64_t bytes; /* that an epoch reads */
    double epoch_s; /* 0: not known, as others */
};

/* The part of what they read that must come from cold, 0..1. */
double wt_predict(const struct wt_predict_job *job, uint32_t n, uint64_t capacity);

#endif
