/*
 * The circuit breaker of a tier: a pure state machine, no clock and no I/O of its own.
 *
 *   closed --WT_BREAKER_FAILURES failures in a row, or a trip--> open --a success--> closed
 *
 * While it is open the owner probes after wt_breaker_backoff() milliseconds; each failed probe
 * doubles the wait. A success of a probe alone does not forget the back-off: a tier whose probes
 * pass and whose reads fail is tried ever more rarely.
 */
#ifndef WT_TIERS_BREAKER_H
#define WT_TIERS_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WT_BREAKER_FAILURES = 3,
    WT_BREAKER_BACKOFF_MS = 100,
    WT_BREAKER_BACKOFF_MAX_MS = 10000,
};

struct wt_breaker { /* zeroed: closed */
    bool open;
    uint32_t failures; /* in a row */
    uint32_t backoff_ms;
};

enum wt_breaker_event { WT_BREAKER_STAYS, WT_BREAKER_OPENS, WT_BREAKER_CLOSES };

/* Does this result say that the tier is not well? FULL, DENIED and LOCKED do not. */
bool wt_breaker_counts(int rc);
/* A request that the tier served has ended. `probe`: it was one of the owner's probes. */
enum wt_breaker_event wt_breaker_result(struct wt_breaker *b, int rc, bool probe);
/* The tier is known to be away. */
enum wt_breaker_event wt_breaker_trip(struct wt_breaker *b);
/* Milliseconds until the next probe; doubles with each call. */
uint32_t wt_breaker_backoff(struct wt_breaker *b);

#endif
