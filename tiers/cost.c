/* Decayed latency and bandwidth; see cost.h. */
#include "tiers/cost.h"

#include <math.h>

static const double new_share = 0.2;       /* of the newest sample in an average */
static const double prior_bandwidth = 1e9; /* before the first large read */

void wt_cost_init(struct wt_cost *c, double prior_us) {
    *c = (struct wt_cost){.prior_us = prior_us, .latency_us = prior_us};
}

/* How much of a measurement is still believed. */
static double trust(uint64_t measured_ns, uint64_t now_ns) {
    if (measured_ns == 0)
        return 0;
    double age_s = now_ns > measured_ns ? (double)(now_ns - measured_ns) / 1e9 : 0;
    return exp2(-age_s / WT_COST_HALF_LIFE_S);
}

static double latency_now(const struct wt_cost *c, uint64_t now_ns) {
    return c->prior_us + (c->latency_us - c->prior_us) * trust(c->latency_ns, now_ns);
}

static double bandwidth_now(const struct wt_cost *c, uint64_t now_ns) {
    return prior_bandwidth + (c->bandwidth - prior_bandwidth) * trust(c->bandwidth_ns, now_ns);
}

/* believed: what is left of the old estimate now. An old one must not come back with a new sample.
 */
static void learn(double *value, uint64_t *when, double believed, double sample, uint64_t now_ns) {
    *value = *when ? believed + (sample - believed) * new_share : sample;
    *when = now_ns;
}

void wt_cost_sample(struct wt_cost *c, uint64_t bytes, double us, uint64_t now_ns) {
    if (bytes <= WT_COST_SMALL) {
        double moving = (double)bytes / bandwidth_now(c, now_ns) * 1e6;
        /* Never less than a tenth: the bandwidth is an estimate too. */
        double latency = us - moving > us / 10 ? us - moving : us / 10;
        learn(&c->latency_us, &c->latency_ns, latency_now(c, now_ns), latency, now_ns);
        return;
    }
    double latency = latency_now(c, now_ns);
    if (us < latency) /* it cannot have been more than all of it */
        learn(&c->latency_us, &c->latency_ns, latency, us, now_ns);
    double moving = us - latency > us / 10 ? us - latency : us / 10;
    if (moving > 0)
        learn(&c->bandwidth, &c->bandwidth_ns, bandwidth_now(c, now_ns),
              (double)bytes / moving * 1e6, now_ns);
}

void wt_cost_failed(struct wt_cost *c, double us, uint64_t now_ns) {
    learn(&c->latency_us, &c->latency_ns, latency_now(c, now_ns), us, now_ns);
}

double wt_cost_of(const struct wt_cost *c, uint64_t bytes, size_t ahead, size_t depth,
                  uint64_t now_ns) {
    double alone = latency_now(c, now_ns) + (double)bytes / bandwidth_now(c, now_ns) * 1e6;
    return alone * (1 + (double)ahead / (double)(depth ? depth : 1));
}
